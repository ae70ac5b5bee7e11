//! The words around a preview: the notice before it, the marker in its gap, the closing line.
//!
//! One fact per line, each line under [`SIGIL`]. Nothing here changes with time, host or load: the same
//! artifact gives the same words for ever, or prompt caches would break.

use std::fmt::Write as _;

use super::completeness::Completeness;
use super::escape::{SIGIL, escape_field};
use super::preview::Omission;
use crate::digest::Sha256Digest;
use crate::limits::NOTICE_TOOL_CHARS;

/// Changes when a word here changes: stored replacements keep theirs, and a decision says which it used.
pub const TEMPLATE_VERSION: u32 = 1;

/// What a tool that printed nothing is shown as: providers refuse an empty text.
pub const EMPTY_OUTPUT_TEXT: &str = "no output (0 bytes)";

/// The facts of an artifact that its notice states.
#[derive(Debug, Clone, Copy)]
pub struct NoticeFacts<'a> {
    /// The tool's name, where the caller gave one.
    pub tool: Option<&'a str>,
    /// The summary, one line.
    pub summary: &'a str,
    /// What the sender declared.
    pub completeness: Completeness,
    /// What the sender knows to be lost.
    pub known_lost: Option<&'a str>,
    /// The body's media type, where the caller gave one.
    pub media_type: Option<&'a str>,
    /// Size of the body.
    pub size_bytes: u64,
    /// Lines of the body.
    pub line_count: u64,
    /// Digest of the body.
    pub sha256: Sha256Digest,
    /// The artifact's source id.
    pub source_id: &'a str,
    /// The artifact's locator.
    pub locator: &'a str,
    /// Offset of the first byte that is not UTF-8.
    pub first_invalid_utf8: Option<u64>,
}

/// What a replacement shows. All numbers are body offsets and 1-based line numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFacts {
    /// Where the head ends.
    pub head_end: u64,
    /// Where the tail begins.
    pub tail_start: u64,
    /// Bytes that are not shown.
    pub omitted_bytes: u64,
    /// The last line of which the head shows something.
    pub head_last_line: u64,
    /// The first line of which the tail shows something.
    pub tail_first_line: u64,
    /// The first line of the omitted part that looks like an error.
    pub error_line: Option<u64>,
    /// The next call.
    pub hint: Option<String>,
    /// Whether the preview is hexadecimal.
    pub is_hex: bool,
    /// Whether something in the preview is escaped.
    pub is_escaped: bool,
}

/// Everything of a replacement that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Stands first; ends in LF.
    pub notice: String,
    /// Stands in the gap; ends in LF; empty when nothing is omitted.
    pub marker: String,
    /// Stands last; no LF.
    pub closing: String,
}

impl Frame {
    /// Words the frame.
    pub fn of(facts: &NoticeFacts<'_>, shown: &ShownFacts) -> Self {
        let mut notice = String::new();
        for line in notice_lines(facts, shown) {
            push_line(&mut notice, &line);
        }
        let ShownFacts {
            head_end,
            tail_start,
            ..
        } = shown;
        let mut marker = String::new();
        let omission = Omission::Exact(shown.omitted_bytes).describe("bytes");
        if !omission.is_empty() {
            push_line(
                &mut marker,
                &format!("{omission} here: [{head_end}, {tail_start})"),
            );
        }
        let closing = if omission.is_empty() {
            format!("{SIGIL} end of the preview")
        } else {
            format!("{SIGIL} end of the preview; {omission}, kept under the locator above")
        };
        Self {
            notice,
            marker,
            closing,
        }
    }

    /// Returns the bytes of all three.
    pub fn len(&self) -> usize {
        self.notice.len() + self.marker.len() + self.closing.len()
    }

    /// Returns whether there are no words at all, which no frame is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(SIGIL);
    text.push(' ');
    text.push_str(line);
    text.push('\n');
}

fn notice_lines(facts: &NoticeFacts<'_>, shown: &ShownFacts) -> Vec<String> {
    let mut lines = vec![
        headline(facts, shown),
        format!("summary: {}", escape_field(facts.summary)),
        shown_line(facts, shown),
    ];
    if let Some(offset) = facts.first_invalid_utf8 {
        lines.push(format!(
            "not valid UTF-8: first bad byte at offset {offset}; this preview is lossy, the stored bytes are exact"
        ));
    }
    if let Some(line) = shown.error_line {
        lines.push(format!(
            "first omitted line that looks like an error: line {line}"
        ));
    }
    lines.push(format!("source_id: {}", escape_field(facts.source_id)));
    lines.push(facts.sha256.to_string());
    lines.push(format!("locator: {}", facts.locator));
    lines.push("the same call would be cut in the same way".to_owned());
    if let Some(hint) = &shown.hint {
        lines.push(format!("to read on: {hint}"));
    }
    lines
}

fn headline(facts: &NoticeFacts<'_>, shown: &ShownFacts) -> String {
    let kind = if facts.first_invalid_utf8.is_some() {
        "DESCRIPTION of binary"
    } else {
        "EXCERPT of"
    };
    let mut line = format!("{kind} tool output");
    if let Some(tool) = facts.tool {
        let tool: String = tool.chars().take(NOTICE_TOOL_CHARS).collect();
        let _ = write!(line, " of `{}`", escape_field(&tool));
    }
    let _ = write!(line, "; completeness: {}", facts.completeness);
    if let Some(lost) = facts.known_lost {
        let lost: String = lost.chars().take(NOTICE_TOOL_CHARS).collect();
        let _ = write!(line, " (lost before: {})", escape_field(&lost));
    }
    let _ = write!(line, "; {} bytes", facts.size_bytes);
    if facts.first_invalid_utf8.is_none() {
        let _ = write!(line, ", {} lines", facts.line_count);
    } else if let Some(media_type) = facts.media_type {
        let media_type: String = media_type.chars().take(NOTICE_TOOL_CHARS).collect();
        let _ = write!(line, " of {}", escape_field(&media_type));
    }
    let _ = write!(line, "; {} bytes omitted", shown.omitted_bytes);
    line
}

fn shown_line(facts: &NoticeFacts<'_>, shown: &ShownFacts) -> String {
    let size = facts.size_bytes;
    let mut parts = Vec::new();
    if shown.head_end > 0 {
        let range = format!("bytes [0, {})", shown.head_end);
        parts.push(if shown.is_hex {
            format!("{range} in hexadecimal")
        } else {
            format!("{range} = lines 1 to {}", shown.head_last_line)
        });
    }
    if shown.tail_start < size {
        parts.push(format!(
            "bytes [{}, {size}) = lines {} to {}",
            shown.tail_start, shown.tail_first_line, facts.line_count
        ));
    }
    let mut line = format!(
        "shown: {}",
        if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join(" and ")
        }
    );
    if shown.is_escaped {
        line.push_str("; control characters and our own mark are escaped");
    }
    line
}
