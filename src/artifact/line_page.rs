//! Pages of lines, cut from the chunks that hold them.
//!
//! A page is one contiguous byte range of the body: whole lines, or, where one line is longer than the
//! reply may be, a part of it with the offset to go on from. So `text/plain` pages, followed by
//! `next_byte` or else `next_offset`, put together are the body, byte for byte.
//!
//! Pure: the reader asks [`PageRequest::chunks`] what to fetch, fetches and verifies that one range, and
//! gives it to [`PageRequest::cut`]. For the default reply that is at most two chunks, whatever the size
//! of the body.

use std::ops::Range;

use memchr::{memchr, memchr_iter};
use serde::Serialize;

use super::chunk_table::{ChunkEntry, bytes_of_chunks, chunk_containing, chunks_for_lines};
use super::preview::without_open_end;
use crate::limits::{CHUNK_BYTES, MAX_PAGE_LINES, MAX_REPLY_BYTES};

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageStart {
    /// At the line with this 0-based index.
    Line(u64),
    /// So many lines before the end.
    FromEnd(u64),
    /// At this body offset; one inside a code point means the code point's start.
    Byte(u64),
}

/// How the page is sent: decides what a byte of body costs of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageForm {
    /// The bytes themselves.
    Text,
    /// JSON strings: escapes and quotes count, and bytes that are not UTF-8 become U+FFFD.
    Json,
}

/// What a reply in JSON needs beside the lines.
const JSON_FRAME_BYTES: u64 = 512;
/// Quotes and comma of one line.
const JSON_LINE_BYTES: u64 = 3;
/// A code point before an offset may have begun three bytes earlier; the byte before that tells whether
/// a line starts there.
const LOOK_BACK_BYTES: u64 = 4;
/// The longest code point: given whole even where the cap is smaller.
const CODE_POINT_BYTES: u64 = 4;

/// A page that was asked for, within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    start: PageStart,
    limit_lines: u64,
    max_bytes: u64,
    form: PageForm,
}

/// The page asked for is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPageError {
    /// `limit` (or `from_end`).
    #[error("limit must be 1 to {MAX_PAGE_LINES} lines")]
    Limit,
    /// `max_bytes`.
    #[error("max_bytes must be 1 to {MAX_REPLY_BYTES}")]
    MaxBytes,
}

/// What the manifest says of the body.
#[derive(Debug, Clone, Copy)]
pub struct BodyShape<'a> {
    /// Size of the body.
    pub size_bytes: u64,
    /// Lines of the body.
    pub line_count: u64,
    /// Its chunk table.
    pub chunks: &'a [ChunkEntry],
}

/// A page of lines. Line numbers are 1-based, offsets 0-based.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinePage {
    /// The bytes of the page, line ends included.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// The lines without their LF; U+FFFD for what is not UTF-8.
    pub lines: Vec<String>,
    /// Number of the first line of which the page has something; absent on an empty page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u64>,
    /// Number of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u64>,
    /// Lines of the whole body.
    pub total_lines: u64,
    /// Body offset of the page's first byte.
    pub start_byte: u64,
    /// Body offset behind its last byte.
    pub end_byte: u64,
    /// Size of the whole body.
    pub size_bytes: u64,
    /// Whether the first line here began before the page.
    pub starts_inside_line: bool,
    /// Whether the last line here goes on after the page.
    pub ends_inside_line: bool,
    /// Whether the page asked for begins at or after the end of the body.
    pub past_end: bool,
    /// The line with which to go on; absent at the end, and where `next_byte` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The body offset with which to go on inside a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_byte: Option<u64>,
}

impl PageRequest {
    /// Checks the bounds.
    ///
    /// # Errors
    /// `limit_lines`, the lines of [`PageStart::FromEnd`] or `max_bytes` are zero or too large.
    pub fn new(
        start: PageStart,
        limit_lines: u64,
        max_bytes: u64,
        form: PageForm,
    ) -> Result<Self, InvalidPageError> {
        let lines = 1..=MAX_PAGE_LINES;
        let is_from_end_valid = match start {
            PageStart::FromEnd(count) => lines.contains(&count),
            PageStart::Line(_) | PageStart::Byte(_) => true,
        };
        if !lines.contains(&limit_lines) || !is_from_end_valid {
            return Err(InvalidPageError::Limit);
        }
        if !(1..=MAX_REPLY_BYTES).contains(&max_bytes) {
            return Err(InvalidPageError::MaxBytes);
        }
        Ok(Self {
            start,
            limit_lines,
            max_bytes,
            form,
        })
    }

    /// Returns the 0-based line to begin with; `None` for a byte offset.
    fn first_line(&self, shape: &BodyShape<'_>) -> Option<u64> {
        match self.start {
            PageStart::Line(offset) => Some(offset),
            PageStart::FromEnd(count) => Some(shape.line_count.saturating_sub(count)),
            PageStart::Byte(_) => None,
        }
    }

    /// Returns whether the page begins at or after the end, so that nothing need be read.
    pub fn is_past_end(&self, shape: &BodyShape<'_>) -> bool {
        match self.start {
            PageStart::Byte(offset) => offset >= shape.size_bytes,
            PageStart::Line(offset) => offset >= shape.line_count,
            PageStart::FromEnd(_) => shape.line_count == 0,
        }
    }

    /// Returns the chunks that [`PageRequest::cut`] needs; empty past the end.
    pub fn chunks(&self, shape: &BodyShape<'_>) -> Range<usize> {
        if self.is_past_end(shape) {
            return 0..0;
        }
        let count = shape.chunks.len();
        match (self.first_line(shape), self.start) {
            (Some(line), _) => {
                let by_lines = chunks_for_lines(shape.chunks, line, self.limit_lines);
                // The line starts in that chunk or with the next one's first byte.
                let last_start = (by_lines.start as u64 + 1) * CHUNK_BYTES as u64;
                let by_bytes = chunk_containing(self.last_byte_from(last_start)) + 1;
                by_lines.start..by_lines.end.min(by_bytes).min(count)
            }
            (None, PageStart::Byte(offset)) => {
                // A code point at the offset may have begun a little before it.
                let start = chunk_containing(offset.saturating_sub(LOOK_BACK_BYTES));
                start..(chunk_containing(self.last_byte_from(offset)) + 1).min(count)
            }
            (None, PageStart::Line(_) | PageStart::FromEnd(_)) => 0..0,
        }
    }

    /// The last byte that a page beginning at `start` may look at.
    fn last_byte_from(&self, start: u64) -> u64 {
        start.saturating_add(self.max_bytes.max(CODE_POINT_BYTES) - 1)
    }

    /// Cuts the page out of `window`, the bytes of the chunks that [`PageRequest::chunks`] named.
    /// Of a window that holds less the page holds less; nothing panics.
    pub fn cut(&self, shape: &BodyShape<'_>, chunks: &Range<usize>, window: &[u8]) -> LinePage {
        let window_start = bytes_of_chunks(chunks, shape.size_bytes).start;
        let window_line = shape
            .chunks
            .get(chunks.start)
            .map_or(0, |entry| entry.first_line_index);
        let start = match (self.first_line(shape), self.start) {
            _ if self.is_past_end(shape) => None,
            (Some(line), _) => line
                .checked_sub(window_line)
                .and_then(|skipped| nth_line_start(window, skipped)),
            (None, PageStart::Byte(offset)) => offset
                .checked_sub(window_start)
                .and_then(|at| usize::try_from(at).ok())
                .filter(|at| *at < window.len())
                .map(|at| code_point_start(window, at)),
            (None, PageStart::Line(_) | PageStart::FromEnd(_)) => None,
        };
        let Some(start) = start else {
            return self.empty_page(shape);
        };
        let length = self.fitting(&window[start..], window_start + start as u64, shape);
        self.page(
            shape,
            window,
            window_start,
            window_line,
            start..start + length,
        )
    }

    fn empty_page(&self, shape: &BodyShape<'_>) -> LinePage {
        LinePage {
            bytes: Vec::new(),
            lines: Vec::new(),
            start_line: None,
            end_line: None,
            total_lines: shape.line_count,
            start_byte: shape.size_bytes,
            end_byte: shape.size_bytes,
            size_bytes: shape.size_bytes,
            starts_inside_line: false,
            ends_inside_line: false,
            past_end: true,
            next_offset: None,
            next_byte: None,
        }
    }

    /// Returns how many bytes of `rest` the page takes: whole lines while they fit; of a first line
    /// that does not fit as much as does, at least one code point.
    fn fitting(&self, rest: &[u8], rest_start: u64, shape: &BodyShape<'_>) -> usize {
        let budget = match self.form {
            PageForm::Text => self.max_bytes,
            PageForm::Json => self
                .max_bytes
                .saturating_sub(JSON_FRAME_BYTES)
                .max(self.max_bytes / 2),
        };
        let mut taken = 0;
        let mut spent = 0;
        for _ in 0..self.limit_lines {
            let line_and_rest = &rest[taken..];
            if line_and_rest.is_empty() {
                break;
            }
            let lf = memchr(b'\n', line_and_rest);
            let length = lf.map_or(line_and_rest.len(), |at| at + 1);
            let is_body_end = rest_start + (taken + length) as u64 == shape.size_bytes;
            let is_whole = lf.is_some() || is_body_end;
            let line = &line_and_rest[..length];
            let left = budget.saturating_sub(spent);
            let cost = self.cost_of_line(line, left);
            if !is_whole || cost > left {
                if taken == 0 {
                    let closed = without_open_end(line);
                    let is_cut = !is_whole && !closed.is_empty();
                    return self.fitting_in_line(if is_cut { closed } else { line }, budget);
                }
                break;
            }
            spent += cost;
            taken += length;
        }
        taken
    }

    /// The cost of a line with its LF; may stop counting above `bound`.
    fn cost_of_line(&self, line: &[u8], bound: u64) -> u64 {
        match self.form {
            PageForm::Text => line.len() as u64,
            // An escape is never shorter than what it stands for.
            PageForm::Json if line.len() as u64 > bound => line.len() as u64 + JSON_LINE_BYTES,
            PageForm::Json => {
                let text = line.strip_suffix(b"\n").unwrap_or(line);
                JSON_LINE_BYTES + json_units(text).map(|(_, cost)| cost).sum::<u64>()
            }
        }
    }

    /// How much of one line fits, cut between code points.
    fn fitting_in_line(&self, line: &[u8], budget: u64) -> usize {
        let mut taken = 0;
        let mut spent = match self.form {
            PageForm::Text => 0,
            PageForm::Json => JSON_LINE_BYTES,
        };
        for (length, json_cost) in json_units(line) {
            spent += match self.form {
                PageForm::Text => length as u64,
                PageForm::Json => json_cost,
            };
            if taken > 0 && spent > budget {
                break;
            }
            taken += length;
        }
        taken
    }

    fn page(
        &self,
        shape: &BodyShape<'_>,
        window: &[u8],
        window_start: u64,
        window_line: u64,
        range: Range<usize>,
    ) -> LinePage {
        let bytes = window[range.clone()].to_vec();
        let first_line = window_line + count_lf(&window[..range.start]);
        let last_line = first_line + count_lf(&bytes[..bytes.len().saturating_sub(1)]);
        let end_byte = window_start + range.end as u64;
        let is_end = end_byte == shape.size_bytes;
        let ends_line = bytes.ends_with(b"\n");
        let starts_inside_line = range.start > 0 && window[range.start - 1] != b'\n';
        LinePage {
            lines: split_lines(&bytes),
            bytes,
            start_line: Some(first_line + 1),
            end_line: Some(last_line + 1),
            total_lines: shape.line_count,
            start_byte: window_start + range.start as u64,
            end_byte,
            size_bytes: shape.size_bytes,
            starts_inside_line,
            ends_inside_line: !is_end && !ends_line,
            past_end: false,
            next_offset: (!is_end && ends_line).then_some(last_line + 1),
            next_byte: (!is_end && !ends_line).then_some(end_byte),
        }
    }
}

fn count_lf(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Splits at LF; bytes after the last one are a line only when there are any.
fn split_lines(bytes: &[u8]) -> Vec<String> {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    body.split(|byte| *byte == b'\n')
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

/// Returns where the line starts that begins after `skipped` LF.
fn nth_line_start(window: &[u8], skipped: u64) -> Option<usize> {
    let Some(before) = skipped.checked_sub(1) else {
        return Some(0);
    };
    let lf = memchr_iter(b'\n', window).nth(usize::try_from(before).ok()?)?;
    Some(lf + 1).filter(|start| *start < window.len())
}

/// Moves `at` back to the start of the code point that it is inside of, if it is.
fn code_point_start(window: &[u8], at: usize) -> usize {
    (1..=3.min(at))
        .map(|back| at - back)
        .find(|start| {
            let code_point = &window[*start..window.len().min(start + 4)];
            let length = match std::str::from_utf8(code_point) {
                Ok(text) => text.chars().next().map_or(0, char::len_utf8),
                Err(error) => std::str::from_utf8(&code_point[..error.valid_up_to()])
                    .ok()
                    .and_then(|text| text.chars().next())
                    .map_or(0, char::len_utf8),
            };
            start + length > at
        })
        .unwrap_or(at)
}

/// The lengths of the code points (and ill-formed sequences) of `bytes`, with what each costs in JSON.
fn json_units(bytes: &[u8]) -> impl Iterator<Item = (usize, u64)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(|character| {
            let cost = match character {
                '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
                '\0'..='\u{1f}' => 6,
                _ => character.len_utf8(),
            };
            (character.len_utf8(), cost as u64)
        });
        let invalid = chunk.invalid().len();
        valid.chain((invalid > 0).then_some((invalid, 3)))
    })
}

#[cfg(test)]
mod tests;
