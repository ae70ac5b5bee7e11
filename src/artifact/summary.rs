//! The one-line summary of an artifact.

use crate::limits::SUMMARY_CHARS;

/// What a default summary is made of.
#[derive(Debug, Clone, Copy)]
pub struct SummaryFacts<'a> {
    /// The tool's name, where the caller gave one.
    pub tool: Option<&'a str>,
    /// Lines of the body.
    pub line_count: u64,
    /// Size of the body.
    pub size_bytes: u64,
    /// The start of the first line that is not blank.
    pub first_line: &'a [u8],
}

/// Returns the caller's summary, white space collapsed and clipped to 240 characters, or, where it says
/// nothing, the default one. Never fails: a summary that is too long must not cost the save.
pub fn summarise(given: Option<&str>, facts: &SummaryFacts<'_>) -> String {
    let given = clip(&collapse(given.unwrap_or_default()));
    if given.is_empty() {
        default_summary(facts)
    } else {
        given
    }
}

/// `{tool} output: {n} line(s), {size} bytes; starts with: {first line}`, clipped.
fn default_summary(facts: &SummaryFacts<'_>) -> String {
    let tool = collapse(facts.tool.unwrap_or_default());
    let tool = if tool.is_empty() { "tool" } else { &tool };
    let (lines, size) = (facts.line_count, facts.size_bytes);
    let mut summary = format!("{tool} output: {lines} line(s), {size} bytes");
    let first_line = collapse(&String::from_utf8_lossy(facts.first_line));
    if !first_line.is_empty() {
        summary.push_str("; starts with: ");
        summary.push_str(&first_line);
    }
    clip(&summary)
}

/// Joins the words by single spaces. Control characters count as white space: a summary is one line.
fn collapse(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn clip(text: &str) -> String {
    let clipped: String = text.chars().take(SUMMARY_CHARS).collect();
    clipped.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts<'a>(tool: Option<&'a str>, first_line: &'a [u8]) -> SummaryFacts<'a> {
        SummaryFacts {
            tool,
            line_count: 4,
            size_bytes: 24,
            first_line,
        }
    }

    #[test]
    fn a_given_summary_is_collapsed_and_clipped() {
        let facts = facts(Some("bash"), b"x");
        assert_eq!(summarise(Some("  two \n words  "), &facts), "two words");
        let long = "界".repeat(241);
        assert_eq!(summarise(Some(&long), &facts), "界".repeat(240));
    }

    #[test]
    fn a_blank_summary_gives_the_default() {
        let facts = facts(Some("search"), b"alpha    beta ");
        for blank in [None, Some(""), Some(" \n\t\u{3000}")] {
            assert_eq!(
                summarise(blank, &facts),
                "search output: 4 line(s), 24 bytes; starts with: alpha beta"
            );
        }
    }

    #[test]
    fn an_empty_body_or_tool_leaves_no_gap() {
        assert_eq!(
            summarise(None, &facts(None, b"")),
            "tool output: 4 line(s), 24 bytes"
        );
    }

    proptest! {
        #[test]
        fn no_input_makes_a_long_or_multi_line_summary(
            given in proptest::option::of(".{0,300}"),
            tool in proptest::option::of(".{0,300}"),
            first_line in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let summary = summarise(given.as_deref(), &facts(tool.as_deref(), &first_line));
            prop_assert!(summary.chars().count() <= 240);
            prop_assert!(!summary.is_empty() && !summary.contains(char::is_control));
        }
    }
}
