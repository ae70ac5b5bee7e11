//! Looks at the lines of a streaming body: for its outline, and for the first error-like line from a
//! given offset on.

use memchr::{memchr, memrchr};

use super::error_line::{ErrorHit, LOOKED_AT_BYTES, Severity, signs};
use super::outline::{Outline, OutlineScan};

/// A line that looks like an error, by its place in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorLine {
    /// 0-based index of the line.
    pub line_index: u64,
    /// Body offset of the word that makes it look like one.
    pub word_offset: u64,
}

/// The scan: of each line no more than its first [`LOOKED_AT_BYTES`] count, so that it holds no more of
/// one. Whole lines are searched where they lie, many at a time.
#[derive(Debug)]
pub(super) struct LineScan {
    errors_from: u64,
    first_error: Option<ErrorLine>,
    outline: OutlineScan,
    /// Body offset and line index of the line that is open.
    line_offset: u64,
    line_index: u64,
    /// What was seen of the open line, up to [`LOOKED_AT_BYTES`]; `open_bytes` counts all of it.
    open: Vec<u8>,
    open_bytes: u64,
}

impl LineScan {
    /// Creates a scan that also finds the first line whose first error word stands at `errors_from` or
    /// later.
    pub(super) fn new(errors_from: u64) -> Self {
        Self {
            errors_from,
            first_error: None,
            outline: OutlineScan::default(),
            line_offset: 0,
            line_index: 0,
            open: Vec::new(),
            open_bytes: 0,
        }
    }

    /// Adds `piece`.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        if self.open_bytes > 0 {
            let Some(lf) = memchr(b'\n', rest) else {
                return self.keep_open(rest);
            };
            self.keep_open(&rest[..lf]);
            self.close_line();
            rest = &rest[lf + 1..];
        }
        let whole_lines = memrchr(b'\n', rest).map_or(0, |lf| lf + 1);
        self.look_at(&rest[..whole_lines]);
        self.line_offset += whole_lines as u64;
        self.keep_open(&rest[whole_lines..]);
    }

    /// Returns the number of lines that ended with an LF.
    pub(super) fn ended_lines(&self) -> u64 {
        self.line_index
    }

    /// Ends the scan.
    pub(super) fn finish(mut self) -> (Option<ErrorLine>, Outline) {
        if self.open_bytes > 0 {
            self.close_line();
        }
        (self.first_error, self.outline.finish())
    }

    fn keep_open(&mut self, bytes: &[u8]) {
        let room = LOOKED_AT_BYTES - self.open.len();
        self.open.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.open_bytes += bytes.len() as u64;
    }

    fn close_line(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.look_at(&open);
        self.open = open;
        self.open.clear();
        self.line_offset += self.open_bytes + 1;
        self.line_index += 1;
        self.open_bytes = 0;
    }

    /// Looks at lines; the line index goes on with each LF.
    fn look_at(&mut self, lines: &[u8]) {
        let mut signs = signs(lines).peekable();
        let mut start = 0;
        while let Some(first) = lines.get(start) {
            // Empty lines cost as good as nothing.
            let length = match first {
                b'\n' => 0,
                _ => memchr(b'\n', &lines[start..]).unwrap_or(lines.len() - start),
            };
            if length > 0 {
                let line = &lines[start..start + length.min(LOOKED_AT_BYTES)];
                self.outline.line(self.line_index, line);
                if let Some(hit) = signs.next_if(|hit| hit.line.start == start) {
                    self.note(&hit, line);
                }
            }
            let has_lf = start + length < lines.len();
            self.line_index += u64::from(has_lf);
            start += length + 1;
        }
    }

    fn note(&mut self, hit: &ErrorHit, line: &[u8]) {
        self.outline.sign(hit.severity, self.line_index, line);
        let word_offset = self.line_offset + hit.word.start as u64;
        let is_late = word_offset >= self.errors_from;
        if hit.severity == Severity::Error && is_late && self.first_error.is_none() {
            self.first_error = Some(ErrorLine {
                line_index: self.line_index,
                word_offset,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::error_line::find_error_word;
    use proptest::prelude::*;

    fn naive(body: &[u8], from: u64) -> Option<ErrorLine> {
        let mut offset = 0;
        for (index, line) in body.split(|b| *b == b'\n').enumerate() {
            if let Some(word) = find_error_word(line)
                && offset + word.start as u64 >= from
            {
                return Some(ErrorLine {
                    line_index: index as u64,
                    word_offset: offset + word.start as u64,
                });
            }
            offset += line.len() as u64 + 1;
        }
        None
    }

    proptest! {
        #[test]
        fn any_split_finds_the_same_line_as_a_naive_search(
            words in proptest::collection::vec(prop_oneof![
                Just("error"), Just(" failed"), Just("0 "), Just("\n"), Just("x"), Just("\n\n"),
                Just("Exception: "), Just("=0"), Just("FATAL"), Just("_"), Just("warn "),
            ], 0..40),
            from in 0_u64..60,
            piece_bytes in 1_usize..20,
        ) {
            let body = words.concat().into_bytes();
            let mut scan = LineScan::new(from);
            for piece in body.chunks(piece_bytes) {
                scan.push(piece);
            }
            prop_assert_eq!(scan.finish().0, naive(&body, from));
        }
    }

    #[test]
    fn an_endless_line_is_held_in_constant_memory() {
        let mut scan = LineScan::new(0);
        for _ in 0..1_000 {
            scan.push(&[b'x'; 1_000]);
            assert!(scan.open.len() <= LOOKED_AT_BYTES);
        }
        scan.push(b"\nerror");
        let found = scan.finish().0.unwrap();
        assert_eq!((found.line_index, found.word_offset), (1, 1_000_001));
    }
}
