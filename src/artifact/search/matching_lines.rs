//! The lines of a block that match, as ripgrep's searcher reports them.

use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkMatch};

/// Collects matching lines, line ends included, until there are enough.
#[derive(Debug)]
pub(super) struct MatchingLines {
    lines: Vec<Range<usize>>,
    most: usize,
}

impl MatchingLines {
    /// Returns the first `most` lines of `block` that match; it begins and ends with a line.
    pub(super) fn find(
        searcher: &mut Searcher,
        matcher: impl Matcher,
        block: &[u8],
        most: usize,
    ) -> Vec<Range<usize>> {
        let mut found = Self {
            lines: Vec::new(),
            most,
        };
        searcher
            .search_slice(matcher, block, &mut found)
            .expect("neither this sink nor a regex fails, and the line ends of both are LF");
        found.lines
    }
}

impl Sink for MatchingLines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let start = usize::try_from(line.absolute_byte_offset()).unwrap_or(usize::MAX);
        self.lines.push(start..start + line.bytes().len());
        Ok(self.lines.len() < self.most)
    }
}
