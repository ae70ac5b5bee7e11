//! The longest times between the timestamps of lines.

use super::TimeGap;
use super::timestamp::Stamp;
use crate::limits::{OUTLINE_GAPS, OUTLINE_LEAST_GAP_MS};

/// Enough of a line for any timestamp, what may stand before it included.
const STAMPED_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct GapScan {
    /// The start of the last line that had a timestamp.
    last: Vec<u8>,
    last_index: u64,
    /// The last line begins with its timestamp up to the second, in so many bytes.
    second_bytes: usize,
    /// Sorted, the longest first.
    gaps: Vec<TimeGap>,
}

impl GapScan {
    pub(super) fn line(&mut self, line_index: u64, line: &[u8]) {
        let line = &line[..line.len().min(STAMPED_BYTES)];
        // Most lines of a log are of the same second as the one before: not read at all.
        let is_same_second =
            self.second_bytes > 0 && line.starts_with(&self.last[..self.second_bytes]);
        if !is_same_second {
            let Some(stamp) = Stamp::of(line) else {
                return;
            };
            if let Some(last) = Stamp::of(&self.last) {
                self.compare(&last, &stamp, line_index, line);
            }
            self.second_bytes = stamp.seconds_end;
        }
        self.last.clear();
        self.last.extend_from_slice(line);
        self.last_index = line_index;
    }

    fn compare(&mut self, last: &Stamp, stamp: &Stamp, line_index: u64, line: &[u8]) {
        let Some(gap_ms) = stamp.millis_since(last) else {
            return;
        };
        let rank = self.gaps.partition_point(|gap| gap.gap_ms >= gap_ms);
        if gap_ms < OUTLINE_LEAST_GAP_MS || rank >= OUTLINE_GAPS {
            return;
        }
        let text = |line: &[u8], stamp: &Stamp| {
            String::from_utf8_lossy(&line[stamp.start..stamp.end]).into_owned()
        };
        let gap = TimeGap {
            gap_ms,
            from_line: self.last_index + 1,
            from: text(&self.last, last),
            to_line: line_index + 1,
            to: text(line, stamp),
        };
        self.gaps.insert(rank, gap);
        self.gaps.truncate(OUTLINE_GAPS);
    }

    pub(super) fn finish(self) -> Vec<TimeGap> {
        self.gaps
    }
}
