//! What a reply shows of a hit, and what that costs of the reply.

use std::ops::Range;

use memchr::{memchr, memrchr};
use serde::Serialize;

use crate::limits::{CONTEXT_REACH_BYTES, HIT_TEXT_BYTES};

/// Below this a hit's text is not cut to save a reply's budget.
const LEAST_TEXT_BYTES: usize = 16;

/// A matching line, or in a line over 64 KiB a match. Offsets are 0-based, the line number 1-based.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Number of the line.
    pub line_number: u64,
    /// Body offset of the match, the first one in its line.
    pub byte_offset: u64,
    /// The line without its LF, or the part of it around the match; U+FFFD for what is not UTF-8.
    pub text: String,
    /// Body offset of the text's first byte.
    pub text_offset: u64,
    /// Where in `text` the match begins, in bytes of its UTF-8.
    pub match_start: usize,
    /// Where in `text` the match ends, or the text that shows it.
    pub match_end: usize,
    /// Whether the text is less than the line.
    pub clipped: bool,
    /// The lines before, the nearest last, each cut at its end where it is long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context_before: Vec<String>,
    /// The lines after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context_after: Vec<String>,
    /// Whether U+FFFD stands for something here.
    #[serde(skip)]
    pub is_lossy: bool,
}

/// A match as it lies in the bytes at hand.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Number of its line, 0-based.
    pub(super) line_index: u64,
    /// The line, as far as it is at hand.
    pub(super) line: Range<usize>,
    /// The match in it.
    pub(super) matched: Range<usize>,
    /// Whether the bytes at hand are the whole line.
    pub(super) is_whole_line: bool,
}

impl Hit {
    /// Shows `found` of `bytes`, which begin at the body offset `offset`.
    pub(super) fn show(found: &Found, bytes: &[u8], offset: u64, text_bytes: usize) -> Self {
        let clip = clip(bytes, &found.line, &found.matched, text_bytes);
        let shown_match = found.matched.start..found.matched.end.min(clip.end);
        let mut is_lossy = false;
        let mut text = String::new();
        let mut append = |part: Range<usize>| {
            let part = &bytes[part];
            is_lossy |= std::str::from_utf8(part).is_err();
            text.push_str(&String::from_utf8_lossy(part));
            text.len()
        };
        let match_start = append(clip.start..shown_match.start);
        let match_end = append(shown_match.clone());
        append(shown_match.end..clip.end);
        Self {
            line_number: found.line_index + 1,
            byte_offset: offset + found.matched.start as u64,
            text,
            text_offset: offset + clip.start as u64,
            match_start,
            match_end,
            clipped: !found.is_whole_line || clip != found.line,
            context_before: Vec::new(),
            context_after: Vec::new(),
            is_lossy,
        }
    }

    /// Adds up to `count` lines on each side of the line `found`, as far as they begin within
    /// [`CONTEXT_REACH_BYTES`] of it: so the same lines come whatever page the hit is on.
    pub(super) fn add_context(&mut self, found: &Found, bytes: &[u8], offset: u64, count: usize) {
        let reach_start = found.line.start.saturating_sub(CONTEXT_REACH_BYTES);
        let mut start = found.line.start;
        while self.context_before.len() < count && start > reach_start {
            let end = start - 1;
            start = match memrchr(b'\n', &bytes[reach_start..end]) {
                Some(lf) => reach_start + lf + 1,
                None if reach_start as u64 + offset == 0 => 0,
                None => break,
            };
            let line = self.context_text(&bytes[start..end]);
            self.context_before.insert(0, line);
        }
        let reach_end = (found.line.end + CONTEXT_REACH_BYTES).min(bytes.len());
        let mut start = found.line.end + 1;
        while self.context_after.len() < count && start < reach_end {
            let rest = &bytes[start..reach_end];
            let length = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = self.context_text(&rest[..length]);
            self.context_after.push(line);
            start += length + 1;
        }
    }

    fn context_text(&mut self, line: &[u8]) -> String {
        let shown = clip(line, &(0..line.len()), &(0..0), HIT_TEXT_BYTES);
        let line = &line[shown];
        self.is_lossy |= std::str::from_utf8(line).is_err();
        String::from_utf8_lossy(line).into_owned()
    }

    /// Returns what the hit takes of a reply in JSON, its comma included.
    pub(super) fn cost_bytes(&self) -> u64 {
        let json = serde_json::to_vec(self).expect("strings and numbers always serialise");
        json.len() as u64 + 1
    }

    /// Shows `found` as well as it fits into `budget_bytes`: without context, its text cut short.
    pub(super) fn squeeze(found: &Found, bytes: &[u8], offset: u64, budget_bytes: u64) -> Self {
        let mut text_bytes = HIT_TEXT_BYTES;
        loop {
            let hit = Self::show(found, bytes, offset, text_bytes);
            if hit.cost_bytes() <= budget_bytes || text_bytes <= LEAST_TEXT_BYTES {
                return hit;
            }
            text_bytes /= 2;
        }
    }
}

/// Chooses at most `text_bytes` of `line` around `matched`, a quarter of them before it, and moves both
/// ends to borders of code points.
fn clip(
    bytes: &[u8],
    line: &Range<usize>,
    matched: &Range<usize>,
    text_bytes: usize,
) -> Range<usize> {
    if line.len() <= text_bytes {
        return line.clone();
    }
    let matched_start = matched.start.max(line.start);
    let mut start = (matched_start.saturating_sub(text_bytes / 4))
        .min(line.end - text_bytes)
        .max(line.start);
    let mut end = start + text_bytes;
    let is_inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    for _ in 0..3 {
        if start > line.start && start < matched_start && is_inside(start) {
            start += 1;
        }
        if end < line.end && end > matched_start + 1 && is_inside(end) {
            end -= 1;
        }
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8], matched: Range<usize>, text_bytes: usize) -> Hit {
        let found = Found {
            line_index: 6,
            line: 0..line.len(),
            matched,
            is_whole_line: true,
        };
        Hit::show(&found, line, 100, text_bytes)
    }

    #[test]
    fn a_short_line_is_shown_whole_and_a_long_one_around_its_match() {
        let hit = shown(b"an error here", 3..8, 64);
        assert_eq!((hit.text.as_str(), hit.clipped), ("an error here", false));
        assert_eq!(&hit.text[hit.match_start..hit.match_end], "error");
        assert_eq!((hit.line_number, hit.byte_offset), (7, 103));
        let line = format!("{}error{}", "é".repeat(500), "界".repeat(500));
        let hit = shown(line.as_bytes(), 1_000..1_005, 64);
        assert!(hit.clipped && hit.text.len() <= 64 && !hit.is_lossy);
        assert_eq!(&hit.text[hit.match_start..hit.match_end], "error");
        assert_eq!(hit.text_offset + hit.match_start as u64, hit.byte_offset);
    }

    #[test]
    fn what_is_not_text_is_shown_as_such_and_said() {
        let hit = shown(b"\xff\xfe error", 3..8, 64);
        assert_eq!(&hit.text[hit.match_start..hit.match_end], "error");
        assert!(hit.is_lossy && hit.text.starts_with("\u{fffd}\u{fffd} "));
    }

    #[test]
    fn a_match_longer_than_the_text_is_shown_by_its_start() {
        let hit = shown(&[b'x'; 300], 10..290, 64);
        assert_eq!(
            (hit.text.len(), hit.match_end, hit.byte_offset),
            (64, 64, 110)
        );
    }

    #[test]
    fn a_hit_is_squeezed_into_a_small_reply() {
        let line = vec![1_u8; 400];
        let found = Found {
            line_index: 0,
            line: 0..400,
            matched: 200..201,
            is_whole_line: true,
        };
        let hit = Hit::squeeze(&found, &line, 0, 400);
        assert!(hit.cost_bytes() <= 400 && hit.match_end == hit.match_start + 1);
        let least = Hit::squeeze(&found, &line, 0, 1);
        assert!(!least.text.is_empty() && least.text.len() <= LEAST_TEXT_BYTES);
    }
}
