//! Finds the first error-like line of a streaming body, from a given offset on.

use memchr::{memchr, memchr_iter, memrchr};

use super::error_line::{LOOKED_AT_BYTES, find_first_error_line};

/// A line that looks like an error, by its place in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorLine {
    /// 0-based index of the line.
    pub line_index: u64,
    /// Body offset of the word that makes it look like one.
    pub word_offset: u64,
}

/// The search: holds no more than the looked-at part of one line.
///
/// It is over with its first find, so that a body with an early error costs nothing further; one
/// without costs one vectorised pass per fragment of `error_line`.
#[derive(Debug)]
pub struct ErrorSearch {
    from_offset: u64,
    /// Body offset and line index of the line that is open.
    line_offset: u64,
    line_index: u64,
    /// What was seen of the open line, up to [`LOOKED_AT_BYTES`]; `open_bytes` counts all of it.
    open: Vec<u8>,
    open_bytes: u64,
    found: Option<ErrorLine>,
}

impl ErrorSearch {
    /// Creates a search for the first line whose first error word stands at `from_offset` or later.
    pub fn new(from_offset: u64) -> Self {
        Self {
            from_offset,
            line_offset: 0,
            line_index: 0,
            open: Vec::new(),
            open_bytes: 0,
            found: None,
        }
    }

    /// Adds `piece`.
    pub fn push(&mut self, piece: &[u8]) {
        if self.found.is_some() {
            return;
        }
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
        self.search_lines(&rest[..whole_lines]);
        self.keep_open(&rest[whole_lines..]);
    }

    /// Returns the first find.
    pub fn finish(mut self) -> Option<ErrorLine> {
        if self.found.is_none() {
            self.close_line();
        }
        self.found
    }

    fn keep_open(&mut self, bytes: &[u8]) {
        let room = LOOKED_AT_BYTES - self.open.len();
        self.open.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.open_bytes += bytes.len() as u64;
    }

    fn close_line(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.search(&open);
        self.open = open;
        self.open.clear();
        self.line_offset += self.open_bytes + 1;
        self.line_index += 1;
        self.open_bytes = 0;
    }

    fn search_lines(&mut self, lines: &[u8]) {
        self.search(lines);
        self.line_offset += lines.len() as u64;
        self.line_index += memchr_iter(b'\n', lines).count() as u64;
    }

    /// Searches `text`, which begins with the open line.
    fn search(&mut self, text: &[u8]) {
        let mut start = 0;
        while self.found.is_none()
            && let Some(hit) = find_first_error_line(&text[start..])
        {
            let word_offset = self.line_offset + (start + hit.word.start) as u64;
            if word_offset >= self.from_offset {
                let lines_before = memchr_iter(b'\n', &text[..start + hit.word.start]).count();
                self.found = Some(ErrorLine {
                    line_index: self.line_index + lines_before as u64,
                    word_offset,
                });
            }
            start = (start + hit.line.end + 1).min(text.len());
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
                Just("Exception: "), Just("=0"), Just("FATAL"), Just("_"),
            ], 0..40),
            from in 0_u64..60,
            piece_bytes in 1_usize..20,
        ) {
            let body = words.concat().into_bytes();
            let mut search = ErrorSearch::new(from);
            for piece in body.chunks(piece_bytes) {
                search.push(piece);
            }
            prop_assert_eq!(search.finish(), naive(&body, from));
        }
    }

    #[test]
    fn an_endless_line_is_held_in_constant_memory() {
        let mut search = ErrorSearch::new(0);
        for _ in 0..1_000 {
            search.push(&[b'x'; 1_000]);
            assert!(search.open.len() <= LOOKED_AT_BYTES);
        }
        search.push(b"\nerror");
        let found = search.finish().unwrap();
        assert_eq!((found.line_index, found.word_offset), (1, 1_000_001));
    }
}
