//! What a search asks for, within bounds.

use std::time::Duration;

use crate::limits::{
    DEFAULT_REPLY_BYTES, DEFAULT_SEARCH_HITS, MAX_CONTEXT_LINES, MAX_PATTERN_BYTES,
    MAX_REPLY_BYTES, MAX_SEARCH_HITS, SEARCH_DEADLINE,
};

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchMode {
    /// As the bytes that it consists of.
    #[default]
    Literal,
    /// As a regular expression in the syntax of the `regex` crate.
    Regex,
}

/// What makes two searches the same one: a cursor goes on only with what it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    /// The pattern as the caller wrote it.
    pub pattern: String,
    /// How it is read.
    pub mode: SearchMode,
    /// Whether upper and lower case are the same.
    pub ignore_case: bool,
}

/// A search that was asked for. [`SearchQuery::literal`] has the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// What to look for.
    pub needle: Needle,
    /// Lines shown before and after each hit.
    pub context_lines: usize,
    /// Hits of one reply.
    pub limit: usize,
    /// Bytes of one reply, as JSON. The first hit of a reply is given whatever it costs, cut short.
    pub max_bytes: u64,
    /// Where an earlier reply said to go on.
    pub cursor: Option<String>,
    /// Wall time of one reply, without the wait for a place.
    pub deadline: Duration,
}

/// The search asked for is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSearchError {
    /// `pattern` is empty or too long.
    #[error("must be 1 to {MAX_PATTERN_BYTES} bytes")]
    PatternLength,
    /// A literal `pattern` spans lines.
    #[error("a literal cannot contain a line feed: lines are searched one at a time")]
    PatternLineFeed,
    /// `pattern` is not a regular expression that this service takes; holds what the engine says.
    #[error("{0}")]
    Pattern(String),
    /// `context`.
    #[error("must be 0 to {MAX_CONTEXT_LINES} lines")]
    Context,
    /// `limit`.
    #[error("must be 1 to {MAX_SEARCH_HITS} hits")]
    Limit,
    /// `max_bytes`.
    #[error("must be 1 to {MAX_REPLY_BYTES}")]
    MaxBytes,
    /// `cursor` was not given for this artifact and this pattern.
    #[error(
        "not one that this search of this artifact gave; pattern, mode and ignore_case must stay the same"
    )]
    Cursor,
}

impl SearchQuery {
    /// Returns a literal search for `pattern` with the defaults.
    pub fn literal(pattern: impl Into<String>) -> Self {
        Self {
            needle: Needle {
                pattern: pattern.into(),
                mode: SearchMode::Literal,
                ignore_case: false,
            },
            context_lines: 0,
            limit: DEFAULT_SEARCH_HITS,
            max_bytes: DEFAULT_REPLY_BYTES,
            cursor: None,
            deadline: SEARCH_DEADLINE,
        }
    }

    /// Checks every bound that needs neither the artifact nor the compiled pattern.
    ///
    /// # Errors
    /// See [`InvalidSearchError`].
    pub fn check(&self) -> Result<(), InvalidSearchError> {
        let pattern = &self.needle.pattern;
        if !(1..=MAX_PATTERN_BYTES).contains(&pattern.len()) {
            return Err(InvalidSearchError::PatternLength);
        }
        if self.needle.mode == SearchMode::Literal && pattern.contains('\n') {
            return Err(InvalidSearchError::PatternLineFeed);
        }
        if self.context_lines > MAX_CONTEXT_LINES {
            return Err(InvalidSearchError::Context);
        }
        if !(1..=MAX_SEARCH_HITS).contains(&self.limit) {
            return Err(InvalidSearchError::Limit);
        }
        if !(1..=MAX_REPLY_BYTES).contains(&self.max_bytes) {
            return Err(InvalidSearchError::MaxBytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_refused_on_both_sides() {
        use InvalidSearchError as Refused;
        let query = SearchQuery::literal("x");
        assert_eq!(query.check(), Ok(()));
        let with = |change: fn(&mut SearchQuery)| {
            let mut changed = query.clone();
            change(&mut changed);
            changed.check().unwrap_err()
        };
        let pattern = |text: &str| SearchQuery::literal(text).check();
        assert_eq!(pattern(""), Err(Refused::PatternLength));
        assert_eq!(pattern(&"x".repeat(1_025)), Err(Refused::PatternLength));
        assert_eq!(pattern("a\nb"), Err(Refused::PatternLineFeed));
        assert_eq!(with(|q| q.context_lines = 101), Refused::Context);
        assert_eq!(with(|q| q.limit = 0), Refused::Limit);
        assert_eq!(with(|q| q.limit = 10_001), Refused::Limit);
        assert_eq!(with(|q| q.max_bytes = 0), Refused::MaxBytes);
        assert_eq!(with(|q| q.max_bytes = (1 << 20) + 1), Refused::MaxBytes);
    }
}
