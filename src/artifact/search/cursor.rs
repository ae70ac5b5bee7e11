//! Where a search goes on: a place in the body, bound to the artifact and to what is looked for.
//!
//! Opaque to the caller, and checked, so that a cursor of another search is an error and not a page
//! that looks right. It is no secret and grants nothing: whoever forges one only confuses themselves.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::query::{InvalidSearchError, Needle, SearchMode};
use crate::digest::tagged_hash;
use crate::ids::ArtifactRef;

/// The encoding's version.
const VERSION: u8 = 1;
/// Version, place and check.
const ENCODED_BYTES: usize = 1 + 1 + 8 + CHECK_BYTES;
/// Enough that a mistake is always seen.
const CHECK_BYTES: usize = 8;

/// A place from which on the body is to be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// The body offset.
    pub(super) offset: u64,
    /// Whether it lies in a line that is searched in windows; else a line starts there.
    pub(super) is_in_long_line: bool,
}

impl Place {
    /// Returns the cursor that leads here.
    pub(super) fn to_cursor(self, artifact: &ArtifactRef, needle: &Needle) -> String {
        let mut bytes = Vec::with_capacity(ENCODED_BYTES);
        bytes.push(VERSION);
        bytes.push(u8::from(self.is_in_long_line));
        bytes.extend(self.offset.to_be_bytes());
        bytes.extend(check(&bytes, artifact, needle));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor that [`Place::to_cursor`] made for the same artifact and needle.
    ///
    /// # Errors
    /// It is not such a one.
    pub(super) fn from_cursor(
        cursor: &str,
        artifact: &ArtifactRef,
        needle: &Needle,
    ) -> Result<Self, InvalidSearchError> {
        let bytes = URL_SAFE_NO_PAD
            .decode(cursor)
            .map_err(|_| InvalidSearchError::Cursor)?;
        let (place, stated) = bytes
            .split_at_checked(ENCODED_BYTES - CHECK_BYTES)
            .ok_or(InvalidSearchError::Cursor)?;
        if place[0] != VERSION || stated != check(place, artifact, needle) {
            return Err(InvalidSearchError::Cursor);
        }
        let offset = place[2..].try_into().map(u64::from_be_bytes);
        Ok(Self {
            offset: offset.map_err(|_| InvalidSearchError::Cursor)?,
            is_in_long_line: place[1] == 1,
        })
    }
}

fn check(place: &[u8], artifact: &ArtifactRef, needle: &Needle) -> [u8; CHECK_BYTES] {
    let flags = [
        u8::from(needle.mode == SearchMode::Regex),
        u8::from(needle.ignore_case),
    ];
    let digest = tagged_hash(
        "spillbox.search-cursor.v1",
        &[
            artifact.to_string().as_bytes(),
            place,
            &flags,
            needle.pattern.as_bytes(),
        ],
    );
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&digest.as_bytes()[..CHECK_BYTES]);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(last: char) -> ArtifactRef {
        format!("0123456789abcdefghjkmnpqrs.0123456789abcdefghjkmnpqr{last}")
            .parse()
            .unwrap()
    }

    fn needle(pattern: &str) -> Needle {
        Needle {
            pattern: pattern.to_owned(),
            mode: SearchMode::Literal,
            ignore_case: false,
        }
    }

    #[test]
    fn a_cursor_leads_back_for_the_same_question_only() {
        let place = Place {
            offset: 70_123_456_789,
            is_in_long_line: true,
        };
        let (one, x) = (artifact('s'), needle("x"));
        let cursor = place.to_cursor(&one, &x);
        assert_eq!(Place::from_cursor(&cursor, &one, &x), Ok(place));
        let refused = |cursor: &str, artifact: &ArtifactRef, needle: &Needle| {
            Place::from_cursor(cursor, artifact, needle).unwrap_err();
        };
        refused(&cursor, &artifact('t'), &x);
        refused(&cursor, &one, &needle("y"));
        for changed in [
            Needle {
                mode: SearchMode::Regex,
                ..x.clone()
            },
            Needle {
                ignore_case: true,
                ..x.clone()
            },
        ] {
            refused(&cursor, &one, &changed);
        }
        for wrong in ["", "x", "AQ", &cursor[1..], &format!("{cursor}A"), "é"] {
            refused(wrong, &one, &x);
        }
        for at in 0..cursor.len() {
            let other = if &cursor[at..=at] == "B" { "C" } else { "B" };
            let mut forged = cursor.clone();
            forged.replace_range(at..=at, other);
            refused(&forged, &one, &x);
        }
    }
}
