//! The one pass over a body: everything that is ever derived from its bytes, in constant memory.
//!
//! Bytes arrive in pieces of any size while they also go to the store; nothing is read twice. Each piece
//! is taken in slices that stay in the processor's cache, and every slice is hashed, counted, validated
//! and searched before the next one, so that the body crosses memory once.
//!
//! What hashing costs: the whole body's SHA-256 and the chunks' cannot be derived from one another, so
//! every byte is compressed twice, in that one traversal. The exception is the first chunk, whose digest
//! is read off the whole body's hasher at its border: a body of at most one chunk is hashed once.

use memchr::memchr;

use super::chunk_table::ChunkEntry;
use super::line_scan::{ErrorLine, LineScan};
use super::measure::Measures;
use super::outline::Outline;
use super::utf8_scan::Utf8Scan;
use super::windows::{WindowBuilder, Windows};
use crate::digest::{Sha256Digest, Sha256Hasher};
use crate::limits::{CHUNK_BYTES, ERROR_SEARCH_MARGIN_BYTES, FIRST_LINE_BYTES};

/// The slice of a piece that is worked on at once: fits the second-level cache beside everything else.
const SLICE_BYTES: usize = 64 << 10;

/// Everything that a save derives from a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFacts {
    /// Size of the body.
    pub size_bytes: u64,
    /// The same in every unit that a profile may count in.
    pub measures: Measures,
    /// SHA-256 of the body.
    pub sha256: Sha256Digest,
    /// One entry for every started 256 KiB; empty for an empty body.
    pub chunks: Vec<ChunkEntry>,
    /// Number of lines: of LF, and one more where bytes follow the last one.
    pub line_count: u64,
    /// Offset of the first byte sequence that is not UTF-8; `None` for valid UTF-8.
    pub first_invalid_utf8: Option<u64>,
    /// Head and tail.
    pub windows: Windows,
    /// The start of the first line that is not blank, up to [`FIRST_LINE_BYTES`], without the white
    /// space before it. Raw bytes: may end within a code point.
    pub first_line: Vec<u8>,
    /// From this body offset on error-like lines were searched; what lies before can be searched in
    /// the head window itself.
    pub late_error_from: u64,
    /// The first error-like line whose word stands at or after `late_error_from`.
    pub late_error: Option<ErrorLine>,
    /// What an agent asks first of the body.
    pub outline: Outline,
}

impl BodyFacts {
    /// Returns the facts of a body that is in memory.
    pub fn of(body: &[u8], window_bytes: usize) -> Self {
        let mut scan = BodyScan::new(window_bytes);
        scan.push(body);
        scan.finish()
    }

    /// Returns whether the body is binary: not empty and not valid UTF-8. A NUL alone does not make it
    /// so.
    pub fn is_binary(&self) -> bool {
        self.first_invalid_utf8.is_some()
    }
}

/// The pass itself. Memory: the two windows, one entry per chunk, and a few hundred bytes.
#[derive(Debug)]
pub struct BodyScan {
    size_bytes: u64,
    whole: Sha256Hasher,
    /// The open chunk; not fed while the first chunk is open (see the module's note on cost).
    chunk: Sha256Hasher,
    /// Bytes that the open chunk has.
    chunk_len: usize,
    chunk_first_line: u64,
    chunks: Vec<ChunkEntry>,
    ends_with_lf: bool,
    utf8: Utf8Scan,
    measures: Measures,
    windows: WindowBuilder,
    first_line: FirstLine,
    lines: LineScan,
    errors_from: u64,
}

impl BodyScan {
    /// Creates a scan that keeps the first and the last `window_bytes` of the body. They should hold
    /// more than the largest replacement that will be rendered.
    pub fn new(window_bytes: usize) -> Self {
        // A word at the very end of the head window cannot be judged from the window alone.
        let errors_from = window_bytes.saturating_sub(ERROR_SEARCH_MARGIN_BYTES) as u64;
        Self {
            size_bytes: 0,
            whole: Sha256Hasher::default(),
            chunk: Sha256Hasher::default(),
            chunk_len: 0,
            chunk_first_line: 0,
            chunks: Vec::new(),
            ends_with_lf: false,
            utf8: Utf8Scan::default(),
            measures: Measures::default(),
            windows: WindowBuilder::new(window_bytes, window_bytes),
            first_line: FirstLine::default(),
            lines: LineScan::new(errors_from),
            errors_from,
        }
    }

    /// Returns how many bytes have been pushed.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Adds the next bytes of the body.
    pub fn push(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            let room = (CHUNK_BYTES - self.chunk_len).min(SLICE_BYTES);
            let (slice, after) = rest.split_at(room.min(rest.len()));
            self.push_slice(slice);
            rest = after;
        }
    }

    /// Takes a slice that crosses no chunk border.
    fn push_slice(&mut self, slice: &[u8]) {
        if self.chunk_len == 0 {
            self.chunk_first_line = self.lines.ended_lines();
        }
        self.whole.update(slice);
        if !self.chunks.is_empty() {
            self.chunk.update(slice);
        }
        self.utf8.push(slice);
        self.measures.push(slice);
        self.windows.push(slice);
        self.first_line.push(slice);
        self.lines.push(slice);
        self.ends_with_lf = slice.ends_with(b"\n");
        self.size_bytes += slice.len() as u64;
        self.chunk_len += slice.len();
        if self.chunk_len == CHUNK_BYTES {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        let hasher = if self.chunks.is_empty() {
            self.whole.clone()
        } else {
            std::mem::take(&mut self.chunk)
        };
        self.chunks.push(ChunkEntry {
            sha256: hasher.finish(),
            first_line_index: self.chunk_first_line,
        });
        self.chunk_len = 0;
    }

    /// Ends the pass.
    pub fn finish(mut self) -> BodyFacts {
        if self.chunk_len > 0 {
            self.close_chunk();
        }
        let ended_lines = self.lines.ended_lines();
        let (late_error, outline) = self.lines.finish();
        let has_open_line = self.size_bytes > 0 && !self.ends_with_lf;
        BodyFacts {
            size_bytes: self.size_bytes,
            measures: self.measures,
            sha256: self.whole.finish(),
            chunks: self.chunks,
            line_count: ended_lines + u64::from(has_open_line),
            first_invalid_utf8: self.utf8.finish(),
            windows: self.windows.finish(),
            first_line: self.first_line.text,
            late_error_from: self.errors_from,
            late_error,
            outline,
        }
    }
}

/// Keeps the start of the first line that is not blank.
#[derive(Debug, Default)]
struct FirstLine {
    text: Vec<u8>,
    is_complete: bool,
}

impl FirstLine {
    fn push(&mut self, piece: &[u8]) {
        if self.is_complete {
            return;
        }
        let bytes = if self.text.is_empty() {
            piece.trim_ascii_start()
        } else {
            piece
        };
        let lf = memchr(b'\n', bytes);
        let line = &bytes[..lf.unwrap_or(bytes.len())];
        let room = FIRST_LINE_BYTES - self.text.len();
        self.text.extend_from_slice(&line[..room.min(line.len())]);
        self.is_complete =
            (lf.is_some() && !self.text.is_empty()) || self.text.len() == FIRST_LINE_BYTES;
    }
}

#[cfg(test)]
mod tests;
