//! One result: does it stay in the prompt?

use serde::Serialize;

use super::limit::Limit;
use super::profile::{Given, MixedParts, Profile};
use crate::artifact::measure::Measures;

/// What is known of a result before it is decided.
#[derive(Debug, Clone, Copy)]
pub struct ResultFacts<'a> {
    /// The tool's name; empty where it is not known.
    pub tool: &'a str,
    /// The length of its text.
    pub size: Measures,
    /// Whether its bytes are not valid UTF-8.
    pub is_binary: bool,
    /// Whether nothing of it can be seen: no bytes, or only white space.
    pub is_blank: bool,
    /// Whether it has parts that are not text.
    pub is_mixed: bool,
    /// How the call came about.
    pub circumstance: Circumstance,
}

/// How a call came about. A service knows only ordinary ones; a harness may be inside a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Circumstance {
    /// The model called the tool.
    #[default]
    Ordinary,
    /// A tool called the tool: the caller's program gets the value, not the prompt.
    Nested,
    /// A hook blocked the call; the text is the hook's reason.
    Blocked,
    /// A hook replaced the value; it is as long as the hook wants it.
    Replaced,
    /// The copy of a nested call that goes into a durable log. Nobody reads by it, so readers are no
    /// exception.
    LogCopy,
}

/// The label of an artifact that was made of a [`Circumstance::LogCopy`].
pub const LOG_COPY_LABEL: &str = "dispatch";

/// What becomes of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It stays as it is.
    Inline,
    /// It stays, worded: providers refuse an empty text.
    Sentence,
    /// It is stored, and a replacement stands for it.
    Spilled,
    /// It is stored whatever its size, and a description stands for it: it cannot stand in a prompt.
    Described,
}

impl Decision {
    /// Returns whether something is stored.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Spilled | Self::Described)
    }
}

/// Decides one result. Whether its replacement would be smaller is not known yet: where it would not be,
/// a [`Decision::Spilled`] one stays inline.
pub fn decide(profile: &Profile, facts: &ResultFacts<'_>, given: &Given) -> Decision {
    if facts.is_blank && !facts.is_mixed {
        return Decision::Sentence;
    }
    match facts.circumstance {
        Circumstance::Nested | Circumstance::Blocked | Circumstance::Replaced => {
            return Decision::Inline;
        }
        Circumstance::Ordinary => {}
        Circumstance::LogCopy => {
            return if profile.limits.default.is_exceeded_by(&facts.size) {
                Decision::Spilled
            } else {
                Decision::Inline
            };
        }
    }
    if facts.is_mixed && profile.mixed_parts == MixedParts::Untouched {
        return Decision::Inline;
    }
    let limit = profile.limit_of(facts.tool, given);
    if limit.limit == Limit::Never {
        return Decision::Inline;
    }
    if facts.is_binary {
        return Decision::Described;
    }
    if limit.is_exceeded_by(&facts.size) {
        return Decision::Spilled;
    }
    Decision::Inline
}

/// Returns whether nothing of a text can be seen.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::profiles::{built_in, claude_code, default, dsh};

    fn facts<'a>(tool: &'a str, text: &str) -> ResultFacts<'a> {
        ResultFacts {
            tool,
            size: Measures::of(text.as_bytes()),
            is_binary: false,
            is_blank: is_blank(text),
            is_mixed: false,
            circumstance: Circumstance::Ordinary,
        }
    }

    #[test]
    fn nothing_to_see_becomes_a_sentence_under_every_profile() {
        for profile in built_in() {
            for text in ["", "\n", "   \t\u{3000}"] {
                let decision = decide(&profile, &facts("bash", text), &Given::default());
                assert_eq!(decision, Decision::Sentence, "{}", profile.name);
            }
        }
    }

    #[test]
    fn bytes_are_described_unless_their_tool_is_exempt() {
        for (tool, expected) in [("bash", Decision::Described), ("Read", Decision::Inline)] {
            let mut facts = facts(tool, "x");
            facts.is_binary = true;
            let decision = decide(&default(), &facts, &Given::default());
            assert_eq!(decision, expected, "{tool}");
        }
    }

    #[test]
    fn mixed_results_follow_their_profile() {
        let mut mixed = facts("fetch", &"q".repeat(60_000));
        mixed.is_mixed = true;
        let given = Given::default();
        assert_eq!(decide(&claude_code(), &mixed, &given), Decision::Spilled);
        assert_eq!(decide(&dsh(), &mixed, &given), Decision::Inline);
    }
}
