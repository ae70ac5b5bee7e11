//! Strict query parameters, read off the raw query string so that an error names the parameter.
//!
//! Unknown and repeated parameters are refused: a misspelled `ofset` that was ignored would return the
//! wrong lines without a word. `+` is a space, as forms and the common client libraries write it.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::error::ErrorCode;
use crate::http::problem::{Problem, excerpt};

/// A parameter that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{parameter}`: {rule}")]
pub struct InvalidParameterError {
    /// The parameter's name; for an unknown one, the caller's text, shortened.
    pub parameter: String,
    /// What is allowed.
    pub rule: String,
}

impl InvalidParameterError {
    /// Creates the error of one parameter.
    pub fn new(parameter: &str, rule: impl Into<String>) -> Self {
        Self {
            parameter: excerpt(parameter),
            rule: rule.into(),
        }
    }
}

impl From<InvalidParameterError> for Problem {
    fn from(error: InvalidParameterError) -> Self {
        Self::new(ErrorCode::InvalidParameter, error.to_string())
    }
}

/// The decoded parameters of one request.
#[derive(Debug, Clone)]
pub struct Query {
    allowed: &'static [&'static str],
    pairs: Vec<(&'static str, String)>,
}

impl Query {
    /// Parses the raw query string of a path that takes the parameters `allowed`.
    ///
    /// # Errors
    /// A parameter is unknown, repeated, wrongly percent-encoded, or not UTF-8.
    pub fn parse(
        raw: Option<&str>,
        allowed: &'static [&'static str],
    ) -> Result<Self, InvalidParameterError> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        for piece in raw.unwrap_or_default().split('&').filter(|p| !p.is_empty()) {
            let (raw_name, raw_value) = piece.split_once('=').unwrap_or((piece, ""));
            let decoded_name = decode(raw_name);
            let known = decoded_name
                .as_deref()
                .ok()
                .and_then(|name| allowed.iter().find(|known| **known == name));
            let Some(name) = known else {
                let name = decoded_name.unwrap_or_else(|_| raw_name.to_owned());
                return Err(InvalidParameterError::new(&name, unknown_rule(allowed)));
            };
            if pairs.iter().any(|(seen, _)| seen == name) {
                return Err(InvalidParameterError::new(name, "given more than once"));
            }
            let value = decode(raw_value).map_err(|rule| InvalidParameterError::new(name, rule))?;
            pairs.push((name, value));
        }
        Ok(Self { allowed, pairs })
    }

    /// Returns a parameter's text; an empty value is `Some("")`.
    pub fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(self.allowed.contains(&name), "`{name}` is not declared");
        let pair = self.pairs.iter().find(|(known, _)| *known == name)?;
        Some(&pair.1)
    }

    /// Returns a whole number inside `bounds`.
    ///
    /// # Errors
    /// The value is not written in digits, or lies outside.
    pub fn number(
        &self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, InvalidParameterError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = is_plain.then(|| text.parse().ok()).flatten();
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (least, most) = bounds.into_inner();
                let rule = if most == u64::MAX {
                    format!("a whole number, at least {least}")
                } else {
                    format!("a whole number from {least} to {most}")
                };
                Err(InvalidParameterError::new(name, rule))
            }
        }
    }

    /// Returns `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, InvalidParameterError> {
        self.one_of(name, &[("true", true), ("false", false)])
    }

    /// Returns what one of the listed words stands for.
    ///
    /// # Errors
    /// The value is none of them.
    pub fn one_of<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, InvalidParameterError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| Some(*value)).ok_or_else(|| {
            let listed: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            InvalidParameterError::new(name, format!("one of {}", listed.join(", ")))
        })
    }

    /// Returns a value of a type that validates its own text; the error's text is the rule.
    ///
    /// # Errors
    /// The type refuses the value.
    pub fn parsed<T>(&self, name: &str) -> Result<Option<T>, InvalidParameterError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let parse = |text: &str| {
            text.parse()
                .map_err(|rule: T::Err| InvalidParameterError::new(name, rule.to_string()))
        };
        self.text(name).map(parse).transpose()
    }
}

/// Extracts nothing: the path takes no parameters, and says so to who sends one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoQuery;

impl<S: Send + Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Query::parse(parts.uri.query(), &[])?;
        Ok(Self)
    }
}

fn unknown_rule(allowed: &[&str]) -> String {
    let mut rule = String::from("unknown; ");
    let written = if allowed.is_empty() {
        write!(rule, "this path takes none")
    } else {
        write!(rule, "this path takes {}", allowed.join(", "))
    };
    written.expect("writing to a string does not fail");
    rule
}

/// Decodes one name or value of a query.
fn decode(raw: &str) -> Result<String, &'static str> {
    decode_percent(&raw.replace('+', " "))
}

/// Decodes `%XX` strictly: a `%` without two hex digits is refused, not passed through, so that no two
/// spellings that a client means differently become one text.
pub(crate) fn decode_percent(raw: &str) -> Result<String, &'static str> {
    let escapes_are_whole = raw.split('%').skip(1).all(|after| {
        let digits = after.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    });
    if !escapes_are_whole {
        return Err("wrongly percent-encoded");
    }
    percent_encoding::percent_decode_str(raw)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| "not UTF-8")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::CallId;

    const PAGE: &[&str] = &["limit", "offset", "from_end", "mode", "call_id"];

    fn parse(raw: &str) -> Result<Query, InvalidParameterError> {
        Query::parse(Some(raw), PAGE)
    }

    fn refusal(raw: &str) -> String {
        parse(raw).unwrap_err().to_string()
    }

    #[test]
    fn values_are_decoded_once() {
        let query = parse("call_id=a%2Fb%00%2525+c%2B%F0%9F%8E%89&&limit").unwrap();
        assert_eq!(query.text("call_id"), Some("a/b\0%25 c+🎉"));
        assert_eq!(query.text("limit"), Some(""));
        assert_eq!(query.text("offset"), None);
        assert!(Query::parse(None, PAGE).unwrap().text("limit").is_none());
        assert_eq!(parse("%6Cimit=5").unwrap().text("limit"), Some("5"));
    }

    #[test]
    fn an_unknown_parameter_is_named_with_the_allowed_ones() {
        let text = refusal("ofset=3");
        assert!(text.starts_with("parameter `ofset`: unknown"), "{text}");
        assert!(text.contains("limit, offset, from_end"), "{text}");
        assert!(refusal("%zz=1").contains("%zz"));
        assert!(refusal("=1").contains("unknown"));
        let long = refusal(&"x".repeat(9_000));
        assert!(long.len() < 300, "{}", long.len());
        let none = Query::parse(Some("a=1"), &[]).unwrap_err();
        assert!(none.to_string().contains("takes none"), "{none}");
    }

    #[test]
    fn repeats_and_bad_encodings_are_refused() {
        assert_eq!(
            refusal("limit=1&limit=1"),
            "parameter `limit`: given more than once"
        );
        for raw in [
            "limit=%",
            "limit=%4",
            "limit=%zz",
            "limit=%%41",
            "limit=%é1",
        ] {
            assert_eq!(
                refusal(raw),
                "parameter `limit`: wrongly percent-encoded",
                "{raw}"
            );
        }
        assert_eq!(refusal("limit=%FF"), "parameter `limit`: not UTF-8");
    }

    #[test]
    fn numbers_are_digits_inside_their_bounds() {
        let number = |text: &str| {
            let query = parse(&format!("limit={text}")).unwrap();
            query.number("limit", 1..=1000).map_err(|e| e.to_string())
        };
        assert_eq!(number("1"), Ok(Some(1)));
        assert_eq!(number("0001000"), Ok(Some(1000)));
        for bad in [
            "",
            "0",
            "1001",
            "-1",
            "%2B1",
            "1.0",
            "1e3",
            "0x1",
            "١",
            " 1",
            "18446744073709551616",
        ] {
            let rule = "parameter `limit`: a whole number from 1 to 1000";
            assert_eq!(number(bad), Err(rule.to_owned()), "{bad}");
        }
        let open = parse("offset=18446744073709551615").unwrap();
        assert_eq!(open.number("offset", 0..=u64::MAX), Ok(Some(u64::MAX)));
        assert_eq!(open.number("limit", 1..=2), Ok(None));
    }

    #[test]
    fn words_and_validated_types_name_what_is_allowed() {
        let query = parse("mode=regex&from_end=TRUE&call_id=").unwrap();
        let modes = [("literal", 0), ("regex", 1)];
        assert_eq!(query.one_of("mode", &modes), Ok(Some(1)));
        let error = query.flag("from_end").unwrap_err().to_string();
        assert_eq!(error, "parameter `from_end`: one of true, false");
        let error = query.parsed::<CallId>("call_id").unwrap_err().to_string();
        assert!(error.contains("1 to 4096 bytes"), "{error}");
        let query = parse("call_id=c-7").unwrap();
        assert_eq!(
            query.parsed::<CallId>("call_id").unwrap().unwrap().as_str(),
            "c-7"
        );
    }

    proptest! {
        #[test]
        fn no_query_panics(raw in "\\PC{0,40}") {
            if let Ok(query) = parse(&raw) {
                let _ = query.number("limit", 0..=9);
            }
        }

        #[test]
        fn an_encoded_value_comes_back(value in any::<String>()) {
            let encoded = percent_encoding::utf8_percent_encode(
                &value, percent_encoding::NON_ALPHANUMERIC);
            let query = parse(&format!("call_id={encoded}")).unwrap();
            prop_assert_eq!(query.text("call_id"), Some(value.as_str()));
        }
    }
}
