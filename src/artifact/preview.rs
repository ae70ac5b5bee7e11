//! What of a body is shown: a head and a tail, cut between characters, with the omission exact.
//!
//! Offsets are half-open byte offsets into the stored body, and always
//! `head_end + omitted + (size - tail_start) = size`.

use super::escape::{LOOKAHEAD_BYTES, Shown};
use super::windows::Windows;

/// What was left out of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// Nothing.
    None,
    /// This many units.
    Exact(u64),
    /// Something; how much is not known.
    Unknown,
}

impl Omission {
    /// Says it in words; nothing for nothing.
    pub fn describe(self, unit: &str) -> String {
        match self {
            Self::None | Self::Exact(0) => String::new(),
            Self::Exact(count) => format!("{count} {unit} omitted"),
            Self::Unknown => format!("an unknown number of {unit} omitted"),
        }
    }
}

/// A head and a tail of raw bytes, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retained {
    /// Head and tail, one after the other; the whole body when nothing is omitted. Lossy only where the
    /// body is not UTF-8.
    pub text: String,
    /// Where the head ends.
    pub head_end: u64,
    /// Where the tail begins.
    pub tail_start: u64,
}

impl Retained {
    /// Returns how many bytes of the body are not shown.
    pub fn omitted_bytes(&self) -> u64 {
        self.tail_start - self.head_end
    }
}

/// Keeps at most `head_bytes` and `tail_bytes` of a body. A body that both cover is kept whole;
/// otherwise a code point that a cut would split is left out, and none is rebuilt across the gap.
///
/// The windows must hold as much as is asked for; where they hold less, less is kept.
pub fn retain(windows: &Windows, head_bytes: usize, tail_bytes: usize) -> Retained {
    let size = windows.size_bytes();
    if size <= head_bytes as u64 + tail_bytes as u64
        && let Some(whole) = windows.whole()
    {
        return Retained {
            text: String::from_utf8_lossy(&whole).into_owned(),
            head_end: size,
            tail_start: size,
        };
    }
    let head = windows.head();
    let head = without_open_end(&head[..head_bytes.min(head.len())]);
    let tail = windows.tail();
    // Windows that hold less than the budgets may overlap; a byte is shown once.
    let room = usize::try_from(size - head.len() as u64).unwrap_or(usize::MAX);
    let tail = without_open_start(&tail[tail.len() - tail_bytes.min(tail.len()).min(room)..]);
    Retained {
        text: String::from_utf8_lossy(head).into_owned() + &String::from_utf8_lossy(tail),
        head_end: head.len() as u64,
        tail_start: size - tail.len() as u64,
    }
}

/// Drops the beginning of a code point from the end.
pub(crate) fn without_open_end(bytes: &[u8]) -> &[u8] {
    let last = bytes.len().saturating_sub(3)..bytes.len();
    for start in last.rev() {
        if let Err(error) = std::str::from_utf8(&bytes[start..])
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return &bytes[..start];
        }
    }
    bytes
}

/// Drops the rest of a code point from the start: continuation bytes, of which one has at most three.
fn without_open_start(bytes: &[u8]) -> &[u8] {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let open = bytes.iter().take(3).take_while(is_continuation).count();
    &bytes[open..]
}

/// A head and a tail as they stand in a replacement: escaped, and cut at line ends where that costs
/// little.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The escaped head.
    pub head: String,
    /// The escaped tail.
    pub tail: String,
    /// Where the head ends in the body.
    pub head_end: u64,
    /// Where the tail begins in the body.
    pub tail_start: u64,
}

impl Excerpt {
    /// Returns how many bytes of the body are not shown.
    pub fn omitted_bytes(&self) -> u64 {
        self.tail_start - self.head_end
    }
}

/// Takes an excerpt of at most `budget_bytes`, escapes included. The head takes at most half; what it
/// leaves goes to the tail, where the outcome of a command stands.
pub fn excerpt(windows: &Windows, budget_bytes: usize) -> Excerpt {
    let size = windows.size_bytes();
    let (head, head_end) = cut_head(windows, budget_bytes / 2);
    let (tail, tail_len) = cut_tail(windows, budget_bytes - head.len(), size - head_end);
    Excerpt {
        head,
        tail,
        head_end,
        tail_start: size - tail_len,
    }
}

fn cut_head(windows: &Windows, budget_bytes: usize) -> (String, u64) {
    let window = windows.head();
    let reach = budget_bytes.saturating_add(LOOKAHEAD_BYTES);
    let mut bytes = &window[..reach.min(window.len())];
    if (bytes.len() as u64) < windows.size_bytes() {
        bytes = without_open_end(bytes);
    }
    let shown = Shown::of(bytes);
    let fitting = shown
        .borders
        .partition_point(|(_, text)| *text <= budget_bytes);
    let borders = &shown.borders[..fitting];
    let at_line_end = borders
        .iter()
        .rev()
        .take_while(|(_, text)| *text > budget_bytes / 2)
        .find(|(raw, _)| *raw > 0 && bytes[*raw - 1] == b'\n');
    let (raw, text) = at_line_end.or(borders.last()).copied().unwrap_or((0, 0));
    let mut head = shown.text;
    head.truncate(text);
    (head, raw as u64)
}

/// Returns the escaped tail and how many bytes of the body it shows, at most `available`.
fn cut_tail(windows: &Windows, budget_bytes: usize, available: u64) -> (String, u64) {
    let window = windows.tail();
    let available = usize::try_from(available).unwrap_or(usize::MAX);
    let reach = budget_bytes.min(available).min(window.len());
    // One byte more than can be shown tells whether the tail begins at a line start.
    let lead = usize::from(reach < window.len());
    let lead_is_lf = lead == 1 && window[window.len() - reach - 1] == b'\n';
    let exact = &window[window.len() - reach..];
    let begins_inside = reach < available || window.len() as u64 != windows.size_bytes();
    let bytes = if begins_inside {
        without_open_start(exact)
    } else {
        exact
    };
    let shown = Shown::of(bytes);
    let total = shown.text.len();
    let first = shown
        .borders
        .partition_point(|(_, text)| total - *text > budget_bytes);
    let borders = &shown.borders[first..];
    let starts_line = |raw: usize| match raw.checked_sub(1) {
        Some(before) => bytes[before] == b'\n',
        None => lead_is_lf && bytes.len() == exact.len(),
    };
    let at_line_start = borders
        .iter()
        .take_while(|(_, text)| total - *text > budget_bytes / 2)
        .find(|(raw, _)| starts_line(*raw));
    let (raw, text) = at_line_start
        .or(borders.first())
        .copied()
        .unwrap_or((bytes.len(), total));
    (shown.text[text..].to_owned(), (bytes.len() - raw) as u64)
}

#[cfg(test)]
mod tests;
