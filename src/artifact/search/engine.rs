//! The search itself: takes a body in pieces of any size and finds every matching line, in memory that
//! no line and no body makes larger.
//!
//! * Lines up to [`LONG_LINE_BYTES`] go through ripgrep's searcher, a block of whole lines at a time.
//!   Between blocks the caller may stop the search.
//! * A longer line is searched in windows that end at fixed body offsets, each seeing
//!   [`WINDOW_OVERLAP_BYTES`] of the next; there each match is a hit. So the hits are the same wherever a
//!   page ends, and a search that goes on inside such a line needs nothing of what was before.
//!
//! What is found depends on the body and the pattern alone, never on the pieces or the pages.

use std::ops::{ControlFlow, Range};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use memchr::{memchr, memchr_iter, memrchr};

use super::cursor::Place;
use super::hit::Found;
use super::matching_lines::MatchingLines;
use super::page::{Page, TruncatedReason};
use crate::limits::{
    CHUNK_BYTES, CONTEXT_REACH_BYTES, LONG_LINE_BYTES, SEARCH_BLOCK_BYTES, WINDOW_OVERLAP_BYTES,
};

/// The searcher's own buffer is not used on slices; the bound is there should that ever change.
const SEARCHER_HEAP_BYTES: usize = 1 << 20;

/// Windows of long lines end at multiples of this.
const WINDOW_BYTES: u64 = LONG_LINE_BYTES as u64;

/// What `\b` and its like may look at before the place where a search begins: one code point.
const LOOK_BEHIND_BYTES: usize = 4;

/// Where the search begins, and of what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// Where the hits begin.
    pub(super) place: Place,
    /// Body offset of the first byte that is pushed; at most [`CONTEXT_REACH_BYTES`] and a chunk before
    /// the place, and not later than the former unless it is 0.
    pub(super) input_offset: u64,
    /// Index of the line that contains that byte.
    pub(super) input_line_index: u64,
    /// Size of the body.
    pub(super) size_bytes: u64,
}

impl Start {
    /// Returns the first byte to read for hits from `place` on, at the start of a chunk.
    pub(super) fn input_offset_of(place: Place) -> u64 {
        let wanted = place.offset.saturating_sub(CONTEXT_REACH_BYTES as u64);
        wanted - wanted % CHUNK_BYTES as u64
    }
}

/// A running search.
#[derive(Debug)]
pub(super) struct Engine {
    matcher: RegexMatcher,
    searcher: Searcher,
    size_bytes: u64,
    /// What is at hand of the body: what was searched, as far as context and look-behind may need it,
    /// and what is to be searched.
    bytes: Vec<u8>,
    /// Body offset of its first byte.
    offset: u64,
    /// The next byte to be searched. At first it may lie beyond what has come.
    at: usize,
    /// Index of the line that contains it; counted up to `counted`.
    line_index: u64,
    counted: usize,
    is_in_long_line: bool,
    page: Page,
}

/// Asked between blocks whether the page is to end here.
pub(super) type EarlyEnd<'a> = &'a dyn Fn() -> Option<TruncatedReason>;

/// How far one step came.
enum Step {
    /// On.
    Searched,
    /// More of the body must come first.
    NeedsMore,
    /// The page is finished.
    Ended,
}

impl Engine {
    pub(super) fn new(matcher: RegexMatcher, start: &Start, page: Page) -> Self {
        let ahead = start.place.offset.saturating_sub(start.input_offset);
        Self {
            matcher,
            searcher: SearcherBuilder::new()
                .binary_detection(BinaryDetection::none())
                .bom_sniffing(false)
                .line_number(false)
                .heap_limit(Some(SEARCHER_HEAP_BYTES))
                .build(),
            size_bytes: start.size_bytes,
            bytes: Vec::new(),
            offset: start.input_offset,
            at: usize::try_from(ahead).unwrap_or(usize::MAX),
            line_index: start.input_line_index,
            counted: 0,
            is_in_long_line: start.place.is_in_long_line,
            page,
        }
    }

    /// Adds the next bytes of the body and searches what can be searched. Breaks when the page is
    /// finished; `early_end` is asked between blocks whether to end it.
    pub(super) fn push(&mut self, piece: &[u8], early_end: EarlyEnd<'_>) -> ControlFlow<()> {
        self.drop_searched();
        self.bytes.extend_from_slice(piece);
        if self.bytes.len() < self.at {
            return ControlFlow::Continue(());
        }
        loop {
            if let Some(reason) = early_end() {
                self.page.end(self.place(), Some(reason));
                return ControlFlow::Break(());
            }
            match self.step(early_end) {
                Step::Searched => self.page.reached(self.place()),
                Step::NeedsMore => return ControlFlow::Continue(()),
                Step::Ended => return ControlFlow::Break(()),
            }
        }
    }

    /// Where the next unsearched byte is.
    fn place(&self) -> Place {
        self.place_at(self.at)
    }

    /// The place of the index `at` in a line of the same kind.
    fn place_at(&self, at: usize) -> Place {
        Place {
            offset: self.offset + at as u64,
            is_in_long_line: self.is_in_long_line,
        }
    }

    /// Lets go of what was searched and is out of every reach, rarely enough that moving the rest down
    /// costs little.
    fn drop_searched(&mut self) {
        let searched = self.at.min(self.bytes.len());
        let surplus = searched.saturating_sub(CONTEXT_REACH_BYTES);
        if surplus >= CHUNK_BYTES {
            self.count_lines(surplus);
            self.bytes.drain(..surplus);
            self.offset += surplus as u64;
            self.at -= surplus;
            self.counted -= surplus;
        }
    }

    /// Counts the lines before `index`.
    fn count_lines(&mut self, index: usize) {
        if index > self.counted {
            let lines = memchr_iter(b'\n', &self.bytes[self.counted..index]).count();
            self.line_index += lines as u64;
            self.counted = index;
        }
    }

    fn is_all_here(&self) -> bool {
        self.offset + self.bytes.len() as u64 >= self.size_bytes
    }

    fn step(&mut self, early_end: EarlyEnd<'_>) -> Step {
        if self.is_in_long_line {
            return self.search_window(early_end);
        }
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            if !self.is_all_here() {
                return Step::NeedsMore;
            }
            self.page.end(self.place(), None);
            return Step::Ended;
        }
        let head = &rest[..rest.len().min(LONG_LINE_BYTES + 1)];
        let block = &head[..head.len().min(SEARCH_BLOCK_BYTES)];
        let lf = memrchr(b'\n', block).or_else(|| memchr(b'\n', head));
        let end = match lf {
            Some(lf) => self.at + lf + 1,
            None if head.len() > LONG_LINE_BYTES => {
                self.is_in_long_line = true;
                return Step::Searched;
            }
            None if self.is_all_here() => self.bytes.len(),
            None => return Step::NeedsMore,
        };
        let reach = self.page.context_reach_bytes();
        if self.bytes.len() < end + reach && !self.is_all_here() {
            return Step::NeedsMore;
        }
        self.search_lines(end)
    }

    /// Searches whole lines, up to `end`.
    fn search_lines(&mut self, end: usize) -> Step {
        let start = self.at;
        let lines = MatchingLines::find(
            &mut self.searcher,
            &self.matcher,
            &self.bytes[start..end],
            self.page.room_for_hits(),
        );
        for line in lines {
            let line = start + line.start..start + line.end;
            self.count_lines(line.start);
            self.at = line.start;
            let has_lf = self.bytes[line.clone()].ends_with(b"\n");
            let text = line.start..line.end - usize::from(has_lf);
            let matched = self.first_match(&text);
            let found = Found {
                line_index: self.line_index,
                line: text,
                matched,
                is_whole_line: true,
            };
            let next = self.place_at(line.end);
            if self
                .page
                .add(&found, &self.bytes, self.offset, next)
                .is_break()
            {
                self.page.end(self.place(), Some(TruncatedReason::MaxBytes));
                return Step::Ended;
            }
            self.at = line.end;
            if self.page.room_for_hits() == 0 {
                return self.end_at_limit();
            }
        }
        self.at = end;
        Step::Searched
    }

    /// The searcher has found the line by its first match; this says where in it that is.
    fn first_match(&self, line: &Range<usize>) -> Range<usize> {
        let found = self.matcher.find(&self.bytes[line.clone()]);
        let found = found.unwrap_or(None);
        found.map_or(line.start..line.start, |matched| {
            line.start + matched.start()..line.start + matched.end()
        })
    }

    fn end_at_limit(&mut self) -> Step {
        let place = self.place();
        let is_complete = !place.is_in_long_line && place.offset >= self.size_bytes;
        let reason = (!is_complete).then_some(TruncatedReason::Limit);
        self.page.end(place, reason);
        Step::Ended
    }

    /// Searches a long line up to the next border of windows, or to its end.
    fn search_window(&mut self, early_end: EarlyEnd<'_>) -> Step {
        let from_offset = self.offset + self.at as u64;
        let border_offset = (from_offset / WINDOW_BYTES + 1) * WINDOW_BYTES;
        let border = usize::try_from(border_offset - self.offset).unwrap_or(usize::MAX);
        let window_end = border + WINDOW_OVERLAP_BYTES;
        let at_hand = self.bytes.len().min(window_end);
        let lf = memchr(b'\n', &self.bytes[self.at..at_hand]).map(|lf| self.at + lf);
        if lf.is_none() && at_hand < window_end && !self.is_all_here() {
            return Step::NeedsMore;
        }
        let end = lf.unwrap_or(at_hand);
        if self.search_in_window(end, border, early_end).is_break() {
            return Step::Ended;
        }
        if end > border {
            self.at = self.at.max(border);
        } else if self.is_in_long_line {
            self.leave_long_line(end);
        }
        Step::Searched
    }

    fn leave_long_line(&mut self, end: usize) {
        self.at = (end + 1).min(self.bytes.len());
        self.is_in_long_line = false;
    }

    /// Searches a window that ends with the line, or in the next window.
    fn search_in_window(
        &mut self,
        end: usize,
        border: usize,
        early_end: EarlyEnd<'_>,
    ) -> ControlFlow<()> {
        // Else a match that begins at the border or later belongs to the next window.
        let is_last = end <= border;
        // The window begins with the line where it can: there `^` and `\A` match.
        let behind = self.line_start_within(self.at, LOOK_BEHIND_BYTES);
        while self.is_in_long_line && self.at <= end {
            let window = &self.bytes[behind..end];
            let found = self.matcher.find_at(window, self.at - behind);
            let Some(found) = found.unwrap_or(None) else {
                break;
            };
            let matched = behind + found.start()..behind + found.end();
            if !is_last && matched.start >= border {
                break;
            }
            self.take_match(matched, end, is_last)?;
            // To find out that a match is none may take the whole window each time.
            if let Some(reason) = early_end() {
                self.page.end(self.place(), Some(reason));
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn take_match(&mut self, matched: Range<usize>, end: usize, is_last: bool) -> ControlFlow<()> {
        self.count_lines(matched.start);
        let here = self.place_at(matched.start);
        // An empty match must not be found again.
        let next = matched.end.max(matched.start + 1);
        let found = Found {
            line_index: self.line_index,
            line: self.line_start_within(matched.start, CONTEXT_REACH_BYTES)..end,
            matched,
            is_whole_line: false,
        };
        if is_last && next > end {
            self.leave_long_line(end);
        } else {
            self.at = next;
        }
        let next = self.place();
        let added = self.page.add(&found, &self.bytes, self.offset, next);
        if added.is_break() {
            self.page.end(here, Some(TruncatedReason::MaxBytes));
            return added;
        }
        if self.page.room_for_hits() == 0 {
            self.end_at_limit();
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Returns where the line of the index `at` begins, or the index `reach` before it.
    fn line_start_within(&self, at: usize, reach: usize) -> usize {
        let from = at.saturating_sub(reach);
        memrchr(b'\n', &self.bytes[from..at]).map_or(from, |lf| from + lf + 1)
    }
}

#[cfg(test)]
mod tests;
