//! What of a text is shown, cut by the rule and in the unit of the profile's system.
//!
//! Cuts fall between characters. The lengths are of the text as it is; escaping may make what is shown
//! longer, and only then.

use serde::{Deserialize, Serialize};

use crate::artifact::escape::Shown;
use crate::artifact::measure::Measure;
use crate::artifact::preview::without_open_end;
use crate::artifact::windows::Windows;

/// What of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PreviewRule {
    /// Both ends, as much as the largest replacement leaves room for.
    Fill,
    /// The first of it.
    Head {
        /// How much.
        length: u64,
        /// Of what.
        measure: Measure,
        /// Where it may end earlier.
        line_end: LineEnd,
    },
    /// The first and the last of it.
    Ends {
        /// How much of its start.
        head: u64,
        /// How much of its end.
        tail: u64,
        /// Of what.
        measure: Measure,
    },
}

/// Whether a head ends at its last line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEnd {
    /// It does not matter.
    Ignored,
    /// Before the last LF, where that stands behind the half.
    BeforeIfPastHalf,
    /// Before the last LF, where that stands at the half or behind it.
    BeforeIfFromHalf,
    /// After the last LF, where that stands behind the half.
    AfterIfPastHalf,
}

impl PreviewRule {
    /// Returns how many bytes of each end it may need; `room_bytes` is what a filling one may take.
    pub fn window_bytes(&self, room_bytes: u64) -> u64 {
        match *self {
            Self::Fill => room_bytes,
            Self::Head {
                length, measure, ..
            } => measure.most_bytes(length),
            Self::Ends {
                head,
                tail,
                measure,
            } => measure.most_bytes(head.max(tail)),
        }
    }
}

/// A head and a tail of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The head, as it is.
    pub head: String,
    /// The tail, as it is.
    pub tail: String,
    /// Where the head ends, in bytes of the body.
    pub head_end: u64,
    /// Where the tail begins.
    pub tail_start: u64,
}

impl Cut {
    /// Returns the bytes that are not shown.
    pub fn omitted_bytes(&self) -> u64 {
        self.tail_start - self.head_end
    }
}

/// Takes the first `length` units of a text, shortened to a line end where the rule says so.
///
/// A text that is no longer is taken whole.
pub fn cut_head(windows: &Windows, length: u64, measure: Measure, line_end: LineEnd) -> Cut {
    let size = windows.size_bytes();
    let text = start_of(windows);
    let (taken, units) = prefix(text, length, measure);
    let has_more = (taken.len() as u64) < size;
    let head = if has_more {
        at_line_end(taken, units.min(length), length, measure, line_end)
    } else {
        taken
    };
    Cut {
        head: head.to_owned(),
        tail: String::new(),
        head_end: head.len() as u64,
        tail_start: size,
    }
}

/// Takes the first `head` and the last `tail` units of a text; nothing is shown twice.
pub fn cut_ends(windows: &Windows, head: u64, tail: u64, measure: Measure) -> Cut {
    let size = windows.size_bytes();
    let (first, _) = prefix(start_of(windows), head, measure);
    let head_end = first.len() as u64;
    let window = windows.tail();
    let available = usize::try_from(size - head_end).unwrap_or(usize::MAX);
    let reach = available.min(window.len());
    let last = suffix(end_of(&window[window.len() - reach..]), tail, measure);
    Cut {
        head: first.to_owned(),
        tail: last.to_owned(),
        head_end,
        tail_start: size - last.len() as u64,
    }
}

/// Takes as much of both ends as fits `budget_bytes` once it is escaped: half of it, rounded up, for
/// the head. What is given back is escaped already.
pub fn cut_escaped(windows: &Windows, budget_bytes: usize) -> Cut {
    let size = windows.size_bytes();
    let (head_budget, tail_budget) = (budget_bytes.div_ceil(2), budget_bytes / 2);
    let first = Shown::of(start_of(windows).as_bytes());
    let fitting = first
        .borders
        .partition_point(|(_, text)| *text <= head_budget);
    let (head_end, head_len) = first.borders[fitting.saturating_sub(1)];
    let window = windows.tail();
    let available = usize::try_from(size).unwrap_or(usize::MAX) - head_end;
    let bytes = end_of(&window[window.len() - available.min(window.len())..]);
    let last = Shown::of(bytes.as_bytes());
    let total = last.text.len();
    let start = last
        .borders
        .partition_point(|(_, text)| total - *text > tail_budget);
    let (raw, text) = last.borders[start];
    let mut head = first.text;
    head.truncate(head_len);
    Cut {
        head,
        tail: last.text[text..].to_owned(),
        head_end: head_end as u64,
        tail_start: size - (bytes.len() - raw) as u64,
    }
}

/// Returns the readable part of the head window. Of a text it is all but an open character.
fn start_of(windows: &Windows) -> &str {
    let window = windows.head();
    let bytes = if (window.len() as u64) < windows.size_bytes() {
        without_open_end(window)
    } else {
        window
    };
    valid_start(bytes)
}

fn valid_start(bytes: &[u8]) -> &str {
    let chunk = bytes.utf8_chunks().next();
    chunk.map_or("", |chunk| chunk.valid())
}

/// Returns the readable part of a window that ends where the text ends.
fn end_of(bytes: &[u8]) -> &str {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let open = bytes.iter().take(3).take_while(is_continuation).count();
    valid_start(&bytes[open..])
}

/// Returns the longest start of `text` that has at most `length` units, and how many it has.
fn prefix(text: &str, length: u64, measure: Measure) -> (&str, u64) {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        let more = measure.of_char(character);
        if units + more > length {
            return (&text[..at], units);
        }
        units += more;
    }
    (text, units)
}

fn suffix(text: &str, length: u64, measure: Measure) -> &str {
    let mut units = 0;
    for (at, character) in text.char_indices().rev() {
        units += measure.of_char(character);
        if units > length {
            return &text[at + character.len_utf8()..];
        }
    }
    text
}

/// Shortens a head of `units` units to its last line end. `length` is what the head may have.
fn at_line_end(head: &str, units: u64, length: u64, measure: Measure, line_end: LineEnd) -> &str {
    let Some(lf) = head.rfind('\n') else {
        return head;
    };
    let behind: u64 = head[lf..].chars().map(|c| measure.of_char(c)).sum();
    let place = units - behind;
    let half = length / 2;
    match line_end {
        LineEnd::BeforeIfPastHalf if place > half => &head[..lf],
        LineEnd::BeforeIfFromHalf if place >= half => &head[..lf],
        LineEnd::AfterIfPastHalf if place > half => &head[..=lf],
        LineEnd::Ignored
        | LineEnd::BeforeIfPastHalf
        | LineEnd::BeforeIfFromHalf
        | LineEnd::AfterIfPastHalf => head,
    }
}

#[cfg(test)]
mod tests;
