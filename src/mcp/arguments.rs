//! What each tool takes. The doc comments are what a model reads.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The search modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The pattern as it stands.
    Literal,
    /// A regular expression.
    Regex,
}

impl Mode {
    /// Returns the word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Regex => "regex",
        }
    }
}

/// Arguments of `artifact_read`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// The artifact's locator, as it stands in the prompt.
    pub locator: String,
    /// The first line, counted from 0. Give one of offset, from_end and byte_offset.
    pub offset: Option<u64>,
    /// Lines at most; 2000 unless given.
    pub limit: Option<u64>,
    /// The last N lines.
    pub from_end: Option<u64>,
    /// Begins at this byte of the body, also inside a line.
    pub byte_offset: Option<u64>,
    /// Bytes of the reply at most, up to 1048576; 24000 unless given.
    pub max_bytes: Option<u64>,
}

/// Arguments of `artifact_grep`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepArguments {
    /// The artifact's locator, as it stands in the prompt.
    pub locator: String,
    /// What to look for.
    pub pattern: String,
    /// How the pattern is read; literal unless given.
    pub mode: Option<Mode>,
    /// Whether upper and lower case are the same.
    pub ignore_case: Option<bool>,
    /// Lines shown before and after each hit.
    pub context: Option<u64>,
    /// Hits at most.
    pub limit: Option<u64>,
    /// Goes on where an earlier page ended.
    pub cursor: Option<String>,
    /// Bytes of the reply at most, up to 1048576; 24000 unless given.
    pub max_bytes: Option<u64>,
}

/// Arguments of `artifact_stat` and `artifact_outline`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocatorArguments {
    /// The artifact's locator, as it stands in the prompt.
    pub locator: String,
}

/// Arguments of `artifact_list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    /// Whose artifacts; the server's own session unless given.
    pub session: Option<String>,
    /// Only outputs of this tool.
    pub tool: Option<String>,
    /// Artifacts at most, up to 50; 20 unless given.
    pub limit: Option<u64>,
    /// Goes on where an earlier page ended.
    pub cursor: Option<String>,
}

/// Arguments of `artifact_save`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveArguments {
    /// The text to store, at most 1048576 bytes of UTF-8. Larger outputs go through the command line.
    pub content: String,
    /// Where it is stored; the server's own session unless given.
    pub session: Option<String>,
    /// The tool that printed it.
    pub tool: Option<String>,
    /// The id of the call that printed it: the same call with the same text is stored once.
    pub call_id: Option<String>,
    /// A file name for it.
    pub name: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// What it is, in a sentence.
    pub summary: Option<String>,
}
