//! Entity tags and the conditions of a request (RFC 9110 §13).
//!
//! Our tag is strong, `"sha256:<hex>"` of the whole body. We send no `Last-Modified`, so that a date
//! in a condition never matches.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::digest::Sha256Digest;

/// The strong entity tag of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// Builds the tag of a body with this digest.
    pub fn of(digest: &Sha256Digest) -> Self {
        Self(digest.to_string())
    }

    /// Returns the header value, quotes included.
    pub fn to_header(&self) -> HeaderValue {
        HeaderValue::try_from(format!("\"{}\"", self.0))
            .expect("a digest's text is visible ASCII without quotes")
    }

    /// Compares strongly with one entity tag as a header states it: weak tags never match.
    pub fn matches_strongly(&self, tag: &[u8]) -> bool {
        matches!(parse_tag(tag), Some((false, opaque, [])) if opaque == self.0.as_bytes())
    }
}

/// What a request's conditions say about serving it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionVerdict {
    /// Serve it.
    Proceed,
    /// Answer 304: the caller has these bytes.
    NotModified,
    /// Answer 412 (`precondition_failed`).
    Failed,
}

/// Evaluates `If-Match` and then `If-None-Match` against a body that exists.
pub fn evaluate(method: &Method, headers: &HeaderMap, tag: &EntityTag) -> ConditionVerdict {
    if headers.contains_key(IF_MATCH) && !any_matches(headers, &IF_MATCH, tag, false) {
        return ConditionVerdict::Failed;
    }
    if !any_matches(headers, &IF_NONE_MATCH, tag, true) {
        return ConditionVerdict::Proceed;
    }
    if method == Method::GET || method == Method::HEAD {
        ConditionVerdict::NotModified
    } else {
        ConditionVerdict::Failed
    }
}

/// Whether a list of tags, which may be spread over several fields, names `tag`.
fn any_matches(headers: &HeaderMap, name: &HeaderName, tag: &EntityTag, allow_weak: bool) -> bool {
    headers
        .get_all(name)
        .iter()
        .any(|value| list_matches(value.as_bytes(), tag, allow_weak))
}

fn list_matches(list: &[u8], tag: &EntityTag, allow_weak: bool) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        // An opaque tag may hold commas, so the list cannot be split at them.
        while let [b' ' | b'\t' | b',', after @ ..] = rest {
            rest = after;
        }
        // A malformed list ends where it stops making sense; what stands before it counts.
        let Some((is_weak, opaque, after)) = parse_tag(rest) else {
            return false;
        };
        if opaque == tag.0.as_bytes() && (allow_weak || !is_weak) {
            return true;
        }
        rest = after;
    }
}

/// Reads `[W/]"opaque"` and returns whether it is weak, the opaque part, and what follows.
fn parse_tag(text: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let (is_weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let inner = quoted.strip_prefix(b"\"")?;
    let end = inner.iter().position(|b| *b == b'"')?;
    Some((is_weak, &inner[..end], &inner[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag() -> EntityTag {
        EntityTag::of(&Sha256Digest::of(b"x"))
    }

    fn verdict(method: Method, fields: &[(HeaderName, &str)]) -> ConditionVerdict {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        evaluate(&method, &headers, &tag())
    }

    #[test]
    fn if_none_match_compares_weakly_over_the_whole_list() {
        let ours = tag().to_header().to_str().unwrap().to_owned();
        for list in [
            "*",
            " * ",
            &ours,
            &format!("W/{ours}"),
            &format!("\"a,b\", {ours}"),
            &format!(",, \"x\" ,W/{ours} , junk"),
        ] {
            let seen = verdict(Method::GET, &[(IF_NONE_MATCH, list)]);
            assert_eq!(seen, ConditionVerdict::NotModified, "{list}");
        }
        let unquoted = ours.trim_matches('"');
        for list in [
            "",
            "\"x\"",
            unquoted,
            "junk, *",
            "\"open",
            "Sun, 06 Nov 1994",
        ] {
            let seen = verdict(Method::HEAD, &[(IF_NONE_MATCH, list)]);
            assert_eq!(seen, ConditionVerdict::Proceed, "{list}");
        }
        let split = [(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, ours.as_str())];
        assert_eq!(verdict(Method::GET, &split), ConditionVerdict::NotModified);
        let fails = verdict(Method::DELETE, &[(IF_NONE_MATCH, &ours)]);
        assert_eq!(fails, ConditionVerdict::Failed);
    }

    #[test]
    fn if_match_compares_strongly_and_comes_first() {
        let ours = tag().to_header().to_str().unwrap().to_owned();
        let weak = format!("W/{ours}");
        let fields = [(IF_MATCH, ours.as_str())];
        assert_eq!(verdict(Method::GET, &fields), ConditionVerdict::Proceed);
        assert_eq!(
            verdict(Method::GET, &[(IF_MATCH, "*")]),
            ConditionVerdict::Proceed
        );
        for list in [weak.as_str(), "\"other\"", "junk", ""] {
            let fields = [(IF_MATCH, list), (IF_NONE_MATCH, ours.as_str())];
            assert_eq!(
                verdict(Method::GET, &fields),
                ConditionVerdict::Failed,
                "{list}"
            );
        }
        let both = [(IF_MATCH, ours.as_str()), (IF_NONE_MATCH, ours.as_str())];
        assert_eq!(verdict(Method::GET, &both), ConditionVerdict::NotModified);
    }

    proptest! {
        #[test]
        fn no_field_value_panics_or_loops(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            list_matches(&bytes, &tag(), true);
            tag().matches_strongly(&bytes);
        }
    }
}
