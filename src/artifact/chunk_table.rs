//! The chunk table: what makes a part of a body verifiable and addressable by line.
//!
//! One entry for every [`CHUNK_BYTES`] of body: its SHA-256, and the index of the line that contains its
//! first byte. A range or a page is verified by reading only the chunks it touches, and a line is found
//! by a binary search and one chunk, never by reading from the start.

use std::ops::Range;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Sha256Digest;
use crate::limits::CHUNK_BYTES;

/// One chunk of a body. On the wire a pair `["<64 hex digits>", first_line_index]`, because a body of
/// 5 GiB has 20,480 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// SHA-256 of the chunk's bytes.
    pub sha256: Sha256Digest,
    /// 0-based index of the line that contains the chunk's first byte: the number of LF before it.
    pub first_line_index: u64,
}

impl Serialize for ChunkEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.sha256.to_hex(), self.first_line_index).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ChunkEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (hex, first_line_index) = <(String, u64)>::deserialize(deserializer)?;
        let sha256 = Sha256Digest::from_hex(&hex).map_err(serde::de::Error::custom)?;
        Ok(Self {
            sha256,
            first_line_index,
        })
    }
}

/// Returns the index of the chunk that holds the byte at `offset_bytes`.
pub fn chunk_containing(offset_bytes: u64) -> usize {
    usize::try_from(offset_bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX)
}

/// Returns the half-open byte range of the chunks `chunks` of a body of `size_bytes`.
pub fn bytes_of_chunks(chunks: &Range<usize>, size_bytes: u64) -> Range<u64> {
    let offset = |index: usize| (index as u64 * CHUNK_BYTES as u64).min(size_bytes);
    offset(chunks.start)..offset(chunks.end)
}

/// Returns the chunks that overlap the half-open byte range `bytes`.
pub fn chunks_for_bytes(bytes: &Range<u64>) -> Range<usize> {
    let start = chunk_containing(bytes.start);
    if bytes.is_empty() {
        return start..start;
    }
    start..chunk_containing(bytes.end - 1) + 1
}

/// Returns the chunk in which the line `line_index` starts, or, where the line starts with the first
/// byte of a chunk, the one before (the LF that ends the previous line is found there).
fn chunk_of_line_start(table: &[ChunkEntry], line_index: u64) -> usize {
    table
        .partition_point(|entry| entry.first_line_index < line_index)
        .saturating_sub(1)
}

/// Returns the chunks that hold the lines `offset_lines .. offset_lines + limit_lines` whole, the first
/// of them no earlier than it must be. For lines past the end that is at most the last chunk; the
/// caller knows the line count and need not read it.
pub fn chunks_for_lines(table: &[ChunkEntry], offset_lines: u64, limit_lines: u64) -> Range<usize> {
    if table.is_empty() || limit_lines == 0 {
        return 0..0;
    }
    let start = chunk_of_line_start(table, offset_lines);
    let end_line = offset_lines.saturating_add(limit_lines);
    start..chunk_of_line_start(table, end_line) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::scan::BodyScan;
    use proptest::prelude::*;

    #[test]
    fn an_entry_is_a_short_pair_on_the_wire() {
        let entry = ChunkEntry {
            sha256: Sha256Digest::of(b""),
            first_line_index: 7,
        };
        let json = serde_json::to_string(&entry).unwrap();
        assert!(json.len() <= 75, "{json}");
        assert_eq!(serde_json::from_str::<ChunkEntry>(&json).unwrap(), entry);
        assert!(serde_json::from_str::<ChunkEntry>("[\"xyz\",1]").is_err());
    }

    #[test]
    fn byte_ranges_map_to_the_chunks_they_touch() {
        let chunk = CHUNK_BYTES as u64;
        assert_eq!(chunks_for_bytes(&(0..1)), 0..1);
        assert_eq!(chunks_for_bytes(&(chunk - 1..chunk)), 0..1);
        assert_eq!(chunks_for_bytes(&(chunk - 1..chunk + 1)), 0..2);
        assert!(chunks_for_bytes(&(chunk..chunk)).is_empty());
        assert_eq!(bytes_of_chunks(&(1..3), chunk + 5), chunk..chunk + 5);
    }

    fn naive_line_start(body: &[u8], line: usize) -> Option<usize> {
        if line == 0 {
            return Some(0);
        }
        let lf = body.iter().enumerate().filter(|(_, b)| **b == b'\n');
        lf.map(|(at, _)| at + 1).nth(line - 1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_chosen_chunks_hold_every_line_that_was_asked_for(
            line_bytes in proptest::collection::vec(0_usize..200_000, 1..12),
            offset in 0_u64..14,
            limit in 1_u64..6,
        ) {
            let mut body = Vec::new();
            for length in line_bytes {
                body.extend(std::iter::repeat_n(b'x', length));
                body.push(b'\n');
            }
            let mut scan = BodyScan::new(16);
            scan.push(&body);
            let table = scan.finish().chunks;
            let chunks = chunks_for_lines(&table, offset, limit);
            let bytes = bytes_of_chunks(&chunks, body.len() as u64);
            if let Some(start) = naive_line_start(&body, offset as usize) {
                let end = naive_line_start(&body, (offset + limit) as usize).unwrap_or(body.len());
                prop_assert!(bytes.start <= start as u64 && end as u64 <= bytes.end);
                prop_assert!((start as u64) <= bytes.start + CHUNK_BYTES as u64);
            }
        }
    }
}
