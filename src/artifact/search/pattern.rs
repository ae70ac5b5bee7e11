//! Compiling a pattern, within bounds on its size.

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::query::{InvalidSearchError, Needle, SearchMode};
use crate::limits::{PATTERN_CACHE_BYTES, PATTERN_PROGRAM_BYTES};

/// Compiles what is looked for. A match never spans lines, and `^` and `$` are a line's ends.
///
/// Takes up to some tens of milliseconds for a pattern that is refused for its size.
///
/// # Errors
/// The pattern is no regular expression, can only match across lines, or is too large when compiled.
pub(super) fn compile(needle: &Needle) -> Result<RegexMatcher, InvalidSearchError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .fixed_strings(needle.mode == SearchMode::Literal)
        .case_insensitive(needle.ignore_case)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_PROGRAM_BYTES)
        .dfa_size_limit(PATTERN_CACHE_BYTES);
    builder
        .build(&needle.pattern)
        .map_err(|error| InvalidSearchError::Pattern(error.to_string()))
}

#[cfg(test)]
mod tests {
    use grep_matcher::Matcher;

    use super::*;

    fn regex(pattern: &str) -> Result<RegexMatcher, InvalidSearchError> {
        compile(&Needle {
            pattern: pattern.to_owned(),
            mode: SearchMode::Regex,
            ignore_case: false,
        })
    }

    #[test]
    fn a_bad_pattern_says_what_is_wrong_with_it() {
        for (pattern, part) in [
            ("a(b", "unclosed group"),
            ("a\nb", "not allowed"),
            (r"\w{500}", "size limit"),
            ("(((a{900}){900}){900})", "size limit"),
            (&"(".repeat(600), ""),
        ] {
            let error = regex(pattern).unwrap_err().to_string();
            assert!(error.contains(part), "{pattern}: {error}");
        }
    }

    #[test]
    fn a_literal_means_its_bytes() {
        let needle = Needle {
            pattern: "a.(b".to_owned(),
            mode: SearchMode::Literal,
            ignore_case: true,
        };
        let matcher = compile(&needle).unwrap();
        assert!(matcher.is_match(b"xA.(B").unwrap());
        assert!(!matcher.is_match(b"axxb a.b").unwrap());
    }
}
