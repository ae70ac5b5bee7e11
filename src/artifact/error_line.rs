//! Which lines look like an error or a warning.
//!
//! A heuristic for pointing at a line, never for deciding anything: it prefers missing an error to
//! crying wolf. A line counts when, in its first [`LOOKED_AT_BYTES`], it has one of a few words at word
//! borders, and the words around do not take it back (`0 failed`, `no errors`, `errors=0`).

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, Match, MatchKind, Span, packed};
use memchr::{memchr, memrchr};

/// Only this much of a line is looked at: an error says so early, and a minified file of one line costs
/// nothing.
pub const LOOKED_AT_BYTES: usize = 512;

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// An error, whatever else it says.
    Error,
    /// A warning.
    Warning,
}

/// What to look for: all of a word but its first letter, and the words that count, in lower case. Each
/// is searched for in the two spellings that programs print.
const FRAGMENTS: &[(&str, &[&str], Severity)] = &[
    ("rror", &["error", "errors", "errored"], Severity::Error),
    ("atal", &["fatal"], Severity::Error),
    ("anic", &["panic", "panicked", "panics"], Severity::Error),
    ("xception", &["exception"], Severity::Error),
    ("raceback", &["traceback"], Severity::Error),
    ("ailed", &["failed"], Severity::Error),
    ("ailure", &["failure", "failures"], Severity::Error),
    ("arn", &["warn", "warning", "warnings"], Severity::Warning),
];

/// Finds the fragments in one pass: the pattern `2 * n` is the fragment `n` in lower case, the next one
/// in upper case.
struct Finder {
    /// Vectorised, on the processors that it is written for; twice as fast where much is found.
    vectorised: Option<packed::Searcher>,
    portable: AhoCorasick,
}

static FINDER: LazyLock<Finder> = LazyLock::new(|| {
    let spellings: Vec<String> = FRAGMENTS
        .iter()
        .flat_map(|(fragment, ..)| [(*fragment).to_owned(), fragment.to_uppercase()])
        .collect();
    Finder {
        portable: AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&spellings)
            .expect("a handful of short words makes a small automaton"),
        vectorised: packed::Config::new()
            .match_kind(packed::MatchKind::LeftmostFirst)
            .builder()
            .extend(&spellings)
            .build(),
    }
});

impl Finder {
    fn find(&self, text: &[u8], from: usize) -> Option<Match> {
        match &self.vectorised {
            Some(searcher) => searcher.find_in(text, Span::from(from..text.len())),
            None => self.portable.find(Input::new(text).range(from..)),
        }
    }
}

/// Returns whether `line` looks like an error.
pub fn looks_like_error(line: &[u8]) -> bool {
    find_error_word(line).is_some()
}

/// Returns where in `line` (without its LF) the first word stands that makes it look like an error.
pub fn find_error_word(line: &[u8]) -> Option<Range<usize>> {
    find_first_error_line(line).map(|hit| hit.word)
}

/// A line that looks like an error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorHit {
    /// The line, without its LF.
    pub line: Range<usize>,
    /// The word in it that says so.
    pub word: Range<usize>,
    /// What it looks like.
    pub severity: Severity,
}

/// Returns the first line of `text` that looks like an error; `text` begins at the start of a line.
pub fn find_first_error_line(text: &[u8]) -> Option<ErrorHit> {
    signs(text).find(|hit| hit.severity == Severity::Error)
}

/// Returns the lines of `text` that look like an error or a warning, each once, by its first error word
/// or else its first warning word; `text` begins at the start of a line.
pub fn signs(text: &[u8]) -> Signs<'_> {
    Signs { text, from: 0 }
}

/// See [`signs`].
#[derive(Debug)]
pub struct Signs<'a> {
    text: &'a [u8],
    /// The start of a line.
    from: usize,
}

impl Iterator for Signs<'_> {
    type Item = ErrorHit;

    fn next(&mut self) -> Option<ErrorHit> {
        let mut warning: Option<ErrorHit> = None;
        let mut from = self.from;
        while from < self.text.len() {
            let Some(candidate) = FINDER.find(self.text, from) else {
                break;
            };
            let at = candidate.start();
            if warning
                .as_ref()
                .is_some_and(|warning| warning.line.end < at)
            {
                break;
            }
            let Some(line_start) = line_start_near(self.text, at) else {
                from = line_end(self.text, at) + 1;
                continue;
            };
            let looked_at =
                &self.text[line_start..self.text.len().min(line_start + LOOKED_AT_BYTES)];
            let looked_at = &looked_at[..memchr(b'\n', looked_at).unwrap_or(looked_at.len())];
            let (_, words, severity) = FRAGMENTS[candidate.pattern().as_usize() / 2];
            from = at + 1;
            if let Some(word) = word_around(looked_at, at - line_start, candidate.len(), words) {
                let hit = ErrorHit {
                    line: line_start..line_end(self.text, at),
                    word: word.start + line_start..word.end + line_start,
                    severity,
                };
                match severity {
                    Severity::Error => {
                        self.from = hit.line.end + 1;
                        return Some(hit);
                    }
                    Severity::Warning => warning = warning.or(Some(hit)),
                }
            }
        }
        self.from = warning
            .as_ref()
            .map_or(self.text.len(), |warning| warning.line.end + 1);
        warning
    }
}

/// Returns the start of the line that contains `at`, unless that is more than counts before it: one
/// line may be the whole text.
fn line_start_near(text: &[u8], at: usize) -> Option<usize> {
    let reach = at.saturating_sub(LOOKED_AT_BYTES);
    match memrchr(b'\n', &text[reach..at]) {
        Some(lf) => Some(reach + lf + 1),
        None => (reach == 0).then_some(0),
    }
}

fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |lf| at + lf)
}

/// Checks the word of which `line[at..at + len]` is all but the first letter.
fn word_around(line: &[u8], at: usize, len: usize, words: &[&str]) -> Option<Range<usize>> {
    let is_letter = |index: usize| line.get(index).is_some_and(u8::is_ascii_alphabetic);
    let is_joined = |index: usize| line.get(index).is_some_and(|b| *b == b'_');
    if at + len > line.len() {
        return None;
    }
    let start = at.checked_sub(1)?;
    let end = start
        + (start..line.len())
            .take_while(|index| is_letter(*index))
            .count();
    let is_known = words
        .iter()
        .any(|known| line[start..end].eq_ignore_ascii_case(known.as_bytes()));
    if end < at + len || !is_known {
        return None;
    }
    // `ValueError`, `NullPointerException`: an upper-case letter after a lower-case one is a border.
    let is_camel =
        start > 0 && line[start].is_ascii_uppercase() && line[start - 1].is_ascii_lowercase();
    let has_border = start == 0 || is_camel || !(is_letter(start - 1) || is_joined(start - 1));
    (has_border && !is_joined(end) && !is_taken_back(line, start, end)).then_some(start..end)
}

/// `0 failed`, `no errors`, `without error`, `failed=0`, `errors: 0`.
fn is_taken_back(line: &[u8], start: usize, end: usize) -> bool {
    let before = line[..start].trim_ascii_end();
    let word_start = before
        .iter()
        .rposition(|b| !b.is_ascii_alphanumeric())
        .map_or(0, |index| index + 1);
    let word_before = &before[word_start..];
    let is_direct = before.len() < start;
    let denies = [&b"0"[..], b"no", b"without"]
        .iter()
        .any(|word| word_before.eq_ignore_ascii_case(word));
    if is_direct && denies {
        return true;
    }
    let after = line[end..].trim_ascii_start();
    let Some(value) = after
        .strip_prefix(b":")
        .or_else(|| after.strip_prefix(b"="))
    else {
        return false;
    };
    let value = value.trim_ascii_start();
    value.starts_with(b"0") && !value.get(1).is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_report_an_error_are_found() {
        for line in [
            "error[E0308]: line 4001",
            "ERROR something",
            "Error: ENOENT",
            "fatal: not a git repository",
            "thread 'main' panicked at src/main.rs:1:1",
            "panic: runtime error",
            "Traceback (most recent call last):",
            "ValueError: bad",
            "Exception in thread \"main\" java.lang.NullPointerException",
            "test result: FAILED. 3 passed; 1 failed",
            "2 errors",
            "10 failed",
            "0 failed, 3 errors",
            "BUILD FAILURE",
            "gcc: error: x.c",
            "[error] it broke",
            "exit code 1: failed: 07",
        ] {
            assert!(looks_like_error(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn lines_that_only_mention_one_are_not() {
        for line in [
            "",
            "ok",
            "terror and mirrors",
            "t.Errorf(\"x\")",
            "let error_code = 0;",
            "fn is_error(&self)",
            "0 errors",
            "test result: ok. 5 passed; 0 failed; 0 ignored",
            "no errors found",
            "Build finished without error",
            "ok=3 failed=0",
            "errors: 0",
            "organic botanical availability",
            "mechanic",
        ] {
            assert!(!looks_like_error(line.as_bytes()), "{line}");
        }
        let late = format!("{} error", "x".repeat(LOOKED_AT_BYTES));
        assert!(!looks_like_error(late.as_bytes()));
    }

    #[test]
    fn the_first_such_line_of_a_text_is_found_whatever_its_word() {
        let text = b"mirror\n0 failed\nan exception here\nerror\n";
        assert_eq!(
            find_first_error_line(text),
            Some(ErrorHit {
                line: 16..33,
                word: 19..28,
                severity: Severity::Error,
            })
        );
        assert_eq!(find_first_error_line(b"fine\nfine\n"), None);
    }

    #[test]
    fn the_first_word_of_the_line_is_named() {
        assert_eq!(find_error_word(b"a failed error"), Some(2..8));
        assert_eq!(find_error_word(b"0 failed, an Error"), Some(13..18));
        assert_eq!(find_error_word(b"\xff\xfe error"), Some(3..8));
    }

    #[test]
    fn a_line_that_warns_and_fails_is_an_error_and_counts_once() {
        let text =
            b"warning: unused\nWARN x error y\nlearn earning\n0 warnings\nDeprecationWarning: z";
        let found: Vec<_> = signs(text)
            .map(|hit| (&text[hit.word], hit.severity))
            .collect();
        assert_eq!(
            found,
            [
                (&b"warning"[..], Severity::Warning),
                (&b"error"[..], Severity::Error),
                (&b"Warning"[..], Severity::Warning),
            ]
        );
    }

    #[test]
    fn both_searchers_find_the_same() {
        let vectorised = FINDER.vectorised.as_ref();
        let text = "a terror, atal FATAL mechanic learned Exception ailedailure\n".repeat(20);
        let mut from = 0;
        while let Some(found) = FINDER.portable.find(Input::new(&text).range(from..)) {
            let other =
                vectorised.map(|searcher| searcher.find_in(&text, Span::from(from..text.len())));
            assert!(other.is_none_or(|other| other == Some(found)), "{from}");
            from = found.start() + 1;
        }
        assert!(from > 1_000);
    }
}
