//! Fields of lease requests, each with its own rule.

use std::fmt;

use jiff::Timestamp;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::digest::Sha256Digest;

/// An end: a time of RFC 3339 with its offset, or null for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End(pub(super) Option<Timestamp>);

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = End;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time with its offset, or null")
            }

            fn visit_unit<E: Error>(self) -> Result<End, E> {
                Ok(End(None))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<End, E> {
                let time = rfc3339(text);
                time.map(|time| End(Some(time)))
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// Reads a time of RFC 3339. Our calendar takes more forms (a week date, a zone in brackets); a client
/// that relied on one of them would find it refused elsewhere.
fn rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let is = |at: usize, expected: &[u8]| bytes.get(at).is_some_and(|b| expected.contains(b));
    let has_form = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let has_zone = text.ends_with(['Z', 'z'])
        || bytes
            .len()
            .checked_sub(6)
            .is_some_and(|at| at >= 19 && is(at, b"+-") && is(at + 3, b":"));
    (has_form && has_zone).then(|| text.parse().ok()).flatten()
}

/// A digest: 64 hexadecimal digits, with or without `sha256:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest(pub(super) Sha256Digest);

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("sha256:").unwrap_or(&text);
        let digest = format!("sha256:{}", digits.to_ascii_lowercase()).parse();
        let rule = "64 hexadecimal digits of a SHA-256";
        digest
            .map(Self)
            .map_err(|_| D::Error::invalid_value(Unexpected::Str(&text), &rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_a_zone_or_is_null() {
        let read = |text: &str| serde_json::from_str::<End>(text).map(|end| end.0);
        let time: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        for good in [
            "\"2026-12-01T00:00:00Z\"",
            "\"2026-12-01T00:00:00+00:00\"",
            "\"2026-12-01T02:00:00.000+02:00\"",
            "\"2026-11-30t22:30:00-01:30\"",
        ] {
            assert_eq!(read(good).unwrap(), Some(time), "{good}");
        }
        assert_eq!(read("null").unwrap(), None);
        for bad in [
            "\"\"",
            "\"2026-12-01T00:00:00\"",
            "\"2026-12-01\"",
            "\"20261201T000000Z\"",
            "\"2026-12-01T00:00:00+00:00[UTC]\"",
            "\"2026-12-01T00:00:00+0000\"",
            "\"2026-13-01T00:00:00Z\"",
            "\"2026-02-30T00:00:00Z\"",
            "\"2026-12-01T25:00:00Z\"",
            "\"tomorrow\"",
            "\"\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}Z\"",
            "1796083200",
            "true",
            "[]",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_digest_is_64_digits() {
        let read = |text: String| serde_json::from_value::<Digest>(text.into());
        let digest = Sha256Digest::of(b"x");
        for good in [
            digest.to_hex(),
            digest.to_string(),
            digest.to_hex().to_uppercase(),
        ] {
            assert_eq!(read(good).unwrap().0, digest);
        }
        for bad in [
            "a".repeat(63),
            "g".repeat(64),
            String::new(),
            "sha1:aa".to_owned(),
        ] {
            assert!(read(bad).is_err());
        }
    }
}
