//! What an agent asks first of a long output: which lines look like errors and warnings, where time was
//! lost, and where the parts of a known tool's report begin.
//!
//! Taken in the one pass of a save and kept in the manifest. All of it points at lines and decides
//! nothing. Bounded whatever the body; the same for every split of it into pieces.

use serde::{Deserialize, Serialize};

use super::error_line::Severity;
use super::escape::escape_field;
use crate::limits::OUTLINE_TEXT_BYTES;

mod gap;
mod section;
mod timestamp;

use self::gap::GapScan;
use self::section::{SectionScan, without_colour};

/// The outline of a body. Line numbers are 1-based.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outline {
    /// Lines that look like an error.
    pub errors: NotedLines,
    /// Lines that look like a warning and not like an error.
    pub warnings: NotedLines,
    /// The longest times between the timestamps of two lines that follow each other, at most
    /// [`crate::limits::OUTLINE_GAPS`], the longest first. Lines without a timestamp may lie between.
    pub gaps: Vec<TimeGap>,
    /// The first and the last sections, together at most [`crate::limits::OUTLINE_SECTIONS`], in the body's order.
    pub sections: Vec<Section>,
    /// How many sections there are, the ones between included.
    pub section_count: u64,
}

/// Lines of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NotedLines {
    /// How many there are.
    pub count: u64,
    /// The first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<NotedLine>,
    /// The last; absent when it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<NotedLine>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedLine {
    /// Its number.
    pub line_number: u64,
    /// Its start, control characters escaped.
    pub text: String,
}

/// A time in which nothing was printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeGap {
    /// How long, in milliseconds.
    pub gap_ms: u64,
    /// Number of the line before it.
    pub from_line: u64,
    /// Its timestamp, as it stands there.
    pub from: String,
    /// Number of the line after it.
    pub to_line: u64,
    /// Its timestamp.
    pub to: String,
}

/// Where a part of a tool's report begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The tool that prints such a line: `cargo`, `pytest`, `jest`, `go` or `make`.
    pub tool: String,
    /// Number of the line.
    pub line_number: u64,
    /// The line, escaped as [`NotedLine::text`].
    pub text: String,
}

/// Takes an outline line by line.
#[derive(Debug, Default)]
pub(super) struct OutlineScan {
    errors: NotedScan,
    warnings: NotedScan,
    gaps: GapScan,
    sections: SectionScan,
}

impl OutlineScan {
    /// Looks at the start of the line `line_index`.
    pub(super) fn line(&mut self, line_index: u64, line: &[u8]) {
        let line = without_colour(line);
        self.gaps.line(line_index, line);
        self.sections.line(line_index, line);
    }

    /// The line `line_index` looks like what `severity` says.
    pub(super) fn sign(&mut self, severity: Severity, line_index: u64, line: &[u8]) {
        match severity {
            Severity::Error => self.errors.note(line_index, line),
            Severity::Warning => self.warnings.note(line_index, line),
        }
    }

    pub(super) fn finish(self) -> Outline {
        let (sections, section_count) = self.sections.finish();
        Outline {
            errors: self.errors.finish(),
            warnings: self.warnings.finish(),
            gaps: self.gaps.finish(),
            sections,
            section_count,
        }
    }
}

#[derive(Debug, Default)]
struct NotedScan {
    count: u64,
    first: Option<(u64, Vec<u8>)>,
    last: Option<(u64, Vec<u8>)>,
}

impl NotedScan {
    fn note(&mut self, line_index: u64, line: &[u8]) {
        self.count += 1;
        let line = &line[..line.len().min(OUTLINE_TEXT_BYTES)];
        if self.first.is_none() {
            self.first = Some((line_index, line.to_vec()));
            return;
        }
        let (index, text) = self.last.get_or_insert_default();
        *index = line_index;
        text.clear();
        text.extend_from_slice(line);
    }

    fn finish(self) -> NotedLines {
        let noted = |(line_index, line): (u64, Vec<u8>)| NotedLine {
            line_number: line_index + 1,
            text: shown(&line, OUTLINE_TEXT_BYTES),
        };
        NotedLines {
            count: self.count,
            first: self.first.map(noted),
            last: self.last.map(noted),
        }
    }
}

/// Shows a line on one line, in at most `most_bytes`.
fn shown(line: &[u8], most_bytes: usize) -> String {
    // A cut may have split a code point.
    let cut = line.utf8_chunks().last().map_or(0, |chunk| {
        let is_open =
            std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if is_open { chunk.invalid().len() } else { 0 }
    });
    let line = String::from_utf8_lossy(&line[..line.len() - cut]);
    let mut text = escape_field(line.trim_end());
    text.truncate(text.floor_char_boundary(most_bytes));
    text
}

#[cfg(test)]
mod tests;
