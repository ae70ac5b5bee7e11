//! Single byte ranges (RFC 9110 §14), decided purely.
//!
//! A `Range` that we do not serve is ignored and the whole body is sent, which the RFC allows for
//! every range: several ranges at once, another unit, malformed text, a method other than GET, a false
//! `If-Range`. Only a well-formed range that lies outside the body is an error.

use std::ops::Range;

use axum::http::header::{IF_RANGE, RANGE};
use axum::http::{HeaderMap, HeaderValue, Method};

use crate::http::condition::EntityTag;
use crate::http::problem::Problem;

/// The requested range lies outside the body (416).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the range lies outside the body of {size_bytes} bytes")]
pub struct UnsatisfiableRangeError {
    /// The size of the whole body.
    pub size_bytes: u64,
}

impl From<UnsatisfiableRangeError> for Problem {
    fn from(error: UnsatisfiableRangeError) -> Self {
        Self::range_not_satisfiable(error.size_bytes)
    }
}

/// Returns the bytes to send: a non-empty range inside the body (206), or `None` for all (200).
///
/// # Errors
/// One well-formed range that holds no byte of the body.
pub fn requested_range(
    method: &Method,
    headers: &HeaderMap,
    tag: &EntityTag,
    size_bytes: u64,
) -> Result<Option<Range<u64>>, UnsatisfiableRangeError> {
    let Some(range) = sole_value(headers, &RANGE) else {
        return Ok(None);
    };
    // Range handling is defined for GET alone; a HEAD describes the whole body.
    if method != Method::GET || !if_range_holds(headers, tag) {
        return Ok(None);
    }
    match parse(range.as_bytes()) {
        Some(spec) => spec.resolve(size_bytes),
        None => Ok(None),
    }
}

/// Returns the `Content-Range` of a part; `range` must not be empty.
pub fn content_range(range: &Range<u64>, size_bytes: u64) -> HeaderValue {
    let last = range.end.saturating_sub(1);
    HeaderValue::try_from(format!("bytes {}-{last}/{size_bytes}", range.start))
        .expect("digits and fixed ASCII are a header value")
}

/// Returns the field's value unless it was sent more than once.
fn sole_value<'a>(
    headers: &'a HeaderMap,
    name: &axum::http::HeaderName,
) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// An absent `If-Range` holds; a date, a weak tag, another tag or several fields do not.
fn if_range_holds(headers: &HeaderMap, tag: &EntityTag) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    sole_value(headers, &IF_RANGE)
        .is_some_and(|value| tag.matches_strongly(value.as_bytes().trim_ascii()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeSpec {
    /// `first-last`; a missing last position means the end.
    From { first: u64, last: u64 },
    /// `-length`.
    Suffix { length: u64 },
}

impl RangeSpec {
    fn resolve(self, size_bytes: u64) -> Result<Option<Range<u64>>, UnsatisfiableRangeError> {
        match self {
            // The last bytes of nothing are nothing: satisfiable, but no 206 can say so.
            Self::Suffix { length } if length > 0 && size_bytes == 0 => Ok(None),
            Self::Suffix { length } if length > 0 => {
                Ok(Some(size_bytes.saturating_sub(length)..size_bytes))
            }
            Self::From { first, last } if first < size_bytes => {
                Ok(Some(first..last.saturating_add(1).min(size_bytes)))
            }
            Self::Suffix { .. } | Self::From { .. } => Err(UnsatisfiableRangeError { size_bytes }),
        }
    }
}

/// Reads one range; `None` for everything that is ignored.
fn parse(value: &[u8]) -> Option<RangeSpec> {
    let text = std::str::from_utf8(value).ok()?.trim_ascii();
    let (unit, set) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut members = set
        .split(',')
        .map(str::trim_ascii)
        .filter(|m| !m.is_empty());
    let (first, last) = members.next()?.split_once('-')?;
    if members.next().is_some() {
        return None;
    }
    match (first, last) {
        ("", length) => Some(RangeSpec::Suffix {
            length: position(length)?,
        }),
        (first, "") => Some(RangeSpec::From {
            first: position(first)?,
            last: u64::MAX,
        }),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then_some(RangeSpec::From { first, last })
        }
    }
}

/// Reads digits; a number beyond 64 bits is well-formed and beyond every body.
fn position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::digest::Sha256Digest;

    fn ask(
        fields: &[(axum::http::HeaderName, &str)],
        size: u64,
    ) -> Result<Option<Range<u64>>, UnsatisfiableRangeError> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        let tag = EntityTag::of(&Sha256Digest::of(b"x"));
        requested_range(&Method::GET, &headers, &tag, size)
    }

    fn range(value: &str, size: u64) -> Result<Option<Range<u64>>, UnsatisfiableRangeError> {
        ask(&[(RANGE, value)], size)
    }

    #[test]
    fn one_range_is_clamped_to_the_body() {
        for (value, want) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-4", 2..5),
            ("bytes=2-", 2..10),
            ("bytes=9-9", 9..10),
            ("bytes=9-10", 9..10),
            ("bytes=0-99999999999999999999999", 0..10),
            ("bytes=0-18446744073709551615", 0..10),
            ("bytes=-3", 7..10),
            ("bytes=-10", 0..10),
            ("bytes=-11", 0..10),
            ("bytes=-99999999999999999999999", 0..10),
            ("Bytes=2-4", 2..5),
            ("bytes= 2-4 ,", 2..5),
        ] {
            assert_eq!(range(value, 10), Ok(Some(want)), "{value}");
        }
    }

    #[test]
    fn what_is_no_single_byte_range_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=--1",
            "bytes=a-b",
            "bytes=1",
            "bytes=4-2",
            "bytes=+1-2",
            "bytes=1 - 2",
            "bytes =1-2",
            "bytes=0-1,3-4",
            "bytes=99-,-1",
            "lines=0-1",
            "0-1",
        ] {
            assert_eq!(range(value, 10), Ok(None), "{value}");
        }
        assert_eq!(ask(&[], 10), Ok(None));
        assert_eq!(
            ask(&[(RANGE, "bytes=0-0"), (RANGE, "bytes=1-1")], 10),
            Ok(None)
        );
    }

    #[test]
    fn a_range_outside_the_body_is_refused_with_its_size() {
        for value in [
            "bytes=10-",
            "bytes=10-12",
            "bytes=-0",
            "bytes=99999999999999999999-",
        ] {
            let refused = Err(UnsatisfiableRangeError { size_bytes: 10 });
            assert_eq!(range(value, 10), refused, "{value}");
        }
    }

    #[test]
    fn an_empty_body_has_no_first_byte_but_a_suffix_of_nothing() {
        let refused = Err(UnsatisfiableRangeError { size_bytes: 0 });
        assert_eq!(range("bytes=0-", 0), refused);
        assert_eq!(range("bytes=0-0", 0), refused);
        assert_eq!(range("bytes=-0", 0), refused);
        assert_eq!(range("bytes=-5", 0), Ok(None));
    }

    #[test]
    fn if_range_holds_for_our_strong_tag_only() {
        let ours = EntityTag::of(&Sha256Digest::of(b"x")).to_header();
        let ours = ours.to_str().unwrap();
        let part = (RANGE, "bytes=1-2");
        assert_eq!(ask(&[part.clone(), (IF_RANGE, ours)], 10), Ok(Some(1..3)));
        let weak = format!("W/{ours}");
        let listed = format!("{ours}, \"b\"");
        for other in [
            "\"b\"",
            &weak,
            &listed,
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "*",
            "",
        ] {
            assert_eq!(
                ask(&[part.clone(), (IF_RANGE, other)], 10),
                Ok(None),
                "{other}"
            );
        }
        let out = (RANGE, "bytes=99-");
        assert_eq!(ask(&[out, (IF_RANGE, "\"b\"")], 10), Ok(None));
    }

    #[test]
    fn a_head_describes_the_whole_body() {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=99-".parse().unwrap());
        let tag = EntityTag::of(&Sha256Digest::of(b"x"));
        assert_eq!(requested_range(&Method::HEAD, &headers, &tag, 10), Ok(None));
    }

    #[test]
    fn content_range_names_the_last_byte() {
        assert_eq!(content_range(&(0..1), 10), "bytes 0-0/10");
        assert_eq!(content_range(&(7..10), 10), "bytes 7-9/10");
    }

    fn is_inside(found: &Range<u64>, size: u64) -> bool {
        found.start < found.end && found.end <= size
    }

    proptest! {
        #[test]
        fn any_text_gives_a_range_inside_the_body(
            text in "(bytes)?=?[ -~]{0,24}", size in prop_oneof![0..20u64, any::<u64>()],
        ) {
            if let Ok(Some(found)) = range(&text, size) {
                prop_assert!(is_inside(&found, size), "{found:?}");
            }
        }

        #[test]
        fn numbers_mean_what_the_rfc_says(
            first in any::<Option<u8>>(), last in any::<Option<u8>>(), size in 0..300u64,
        ) {
            let text = |n: Option<u8>| n.map_or(String::new(), |n| n.to_string());
            let found = range(&format!("bytes={}-{}", text(first), text(last)), size);
            let wanted: Vec<u64> = match (first, last) {
                (None, None) => (0..size).collect(),
                (None, Some(n)) => (size.saturating_sub(n.into())..size).collect(),
                (Some(f), Some(l)) if f > l => (0..size).collect(),
                (Some(f), l) => (f.into()..=l.map_or(u64::MAX - 1, Into::into))
                    .take_while(|at| *at < size)
                    .collect(),
            };
            match found {
                Ok(Some(found)) => {
                    prop_assert!(is_inside(&found, size));
                    prop_assert_eq!(found.collect::<Vec<_>>(), wanted);
                }
                Ok(None) => prop_assert_eq!((0..size).collect::<Vec<_>>(), wanted),
                Err(_) => prop_assert!(wanted.is_empty()),
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            parse(&bytes);
        }
    }
}
