//! Bounds of a text that is shown as it is: bytes, lines, and the length of a line.
//!
//! What a tool (or a reader) of the `hermes` system applies to its own output before anything else looks
//! at it. Nothing of it is stored, so what was left out is always said, exactly.

use serde::{Deserialize, Serialize};

/// Which part of a text with too many lines is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Its first lines.
    Head,
    /// Its last lines.
    Tail,
    /// Half of each, the first half rounded up.
    Ends,
}

/// The bounds; a text at a bound is not over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextBounds {
    /// Bytes of the whole text.
    pub max_bytes: usize,
    /// Lines.
    pub max_lines: usize,
    /// Characters of one line, its LF not counted.
    pub max_line_chars: usize,
    /// What is kept of a text that is over.
    pub keep: Keep,
}

/// A text inside its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// The kept head.
    pub head: String,
    /// The kept tail.
    pub tail: String,
    /// Lines between the two that are left out whole.
    pub omitted_lines: usize,
    /// Bytes that are left out, of those lines and of lines that were clipped.
    pub omitted_bytes: usize,
    /// Lines of the head.
    pub head_lines: usize,
    /// Lines of the tail.
    pub tail_lines: usize,
}

impl Bounded {
    /// Returns whether anything is left out.
    pub fn is_cut(&self) -> bool {
        self.omitted_bytes > 0
    }

    /// Returns the text with a line in the gap that says what is missing. The line is ours and stands
    /// beside the bounds.
    pub fn text(&self) -> String {
        if !self.is_cut() {
            return format!("{}{}", self.head, self.tail);
        }
        let mut text = self.head.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let (lines, bytes) = (self.omitted_lines, self.omitted_bytes);
        text.push_str(&format!(
            "[spillbox] {bytes} bytes omitted, {lines} whole lines\n"
        ));
        text.push_str(&self.tail);
        text
    }
}

impl TextBounds {
    /// Returns whether a text is inside all bounds.
    pub fn admits(&self, text: &str) -> bool {
        text.len() <= self.max_bytes
            && text.split_inclusive('\n').count() <= self.max_lines
            && text
                .split('\n')
                .all(|line| line.len() <= self.max_line_chars || self.clip(line) == line)
    }

    fn clip<'a>(&self, line: &'a str) -> &'a str {
        let end = line.char_indices().nth(self.max_line_chars);
        end.map_or(line, |(at, _)| &line[..at])
    }

    /// Keeps what the bounds allow: lines are clipped, then whole lines are left out until count and
    /// bytes fit. A line that alone is over the bytes is cut, so that something is always shown.
    pub fn apply(&self, text: &str) -> Bounded {
        let clipped: Vec<(&str, bool)> = text
            .split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) => (self.clip(line), true),
                None => (self.clip(line), false),
            })
            .collect();
        let (head_share, tail_share) = match self.keep {
            Keep::Head => (self.max_lines, 0),
            Keep::Tail => (0, self.max_lines),
            Keep::Ends => (self.max_lines.div_ceil(2), self.max_lines / 2),
        };
        let total: usize = clipped.iter().map(size_of_line).sum();
        let fits = clipped.len() <= self.max_lines && total <= self.max_bytes;
        let (head_bytes, tail_bytes) = match self.keep {
            Keep::Head => (self.max_bytes, 0),
            Keep::Tail => (0, self.max_bytes),
            Keep::Ends => (self.max_bytes.div_ceil(2), self.max_bytes / 2),
        };
        let (head_lines, tail_lines) = if fits {
            (clipped.len(), 0)
        } else {
            let head = fitting(clipped.iter(), head_share, head_bytes);
            let rest = clipped.len() - head;
            (
                head,
                fitting(clipped.iter().rev(), tail_share.min(rest), tail_bytes),
            )
        };
        let mut head = joined(&clipped[..head_lines]);
        let mut tail = joined(&clipped[clipped.len() - tail_lines..]);
        if head.is_empty() && tail.is_empty() && !text.is_empty() {
            // The first line to be shown is longer than all of the room.
            match self.keep {
                Keep::Head | Keep::Ends => head = clip_bytes(clipped[0].0, head_bytes).to_owned(),
                Keep::Tail => {
                    let (line, _) = clipped[clipped.len() - 1];
                    tail = clip_start(line, tail_bytes).to_owned();
                }
            }
        }
        Bounded {
            omitted_lines: clipped.len() - head_lines - tail_lines,
            omitted_bytes: text.len() - head.len() - tail.len(),
            head,
            tail,
            head_lines,
            tail_lines,
        }
    }
}

fn size_of_line((line, has_lf): &(&str, bool)) -> usize {
    line.len() + usize::from(*has_lf)
}

/// Returns how many lines fit.
fn fitting<'a>(
    lines: impl Iterator<Item = &'a (&'a str, bool)>,
    most_lines: usize,
    most_bytes: usize,
) -> usize {
    let mut left = most_bytes;
    lines
        .take(most_lines)
        .take_while(|line| match left.checked_sub(size_of_line(line)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count()
}

fn joined(lines: &[(&str, bool)]) -> String {
    let mut text = String::new();
    for (line, has_lf) in lines {
        text.push_str(line);
        if *has_lf {
            text.push('\n');
        }
    }
    text
}

fn clip_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn clip_start(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERMES: TextBounds = TextBounds {
        max_bytes: 50_000,
        max_lines: 2_000,
        max_line_chars: 2_000,
        keep: Keep::Ends,
    };

    #[test]
    fn a_text_at_every_bound_stays() {
        let line = format!("{}\n", "界".repeat(8));
        let text = line.repeat(2_000);
        assert_eq!(text.len(), 50_000);
        assert!(HERMES.admits(&text));
        assert!(!HERMES.apply(&text).is_cut());
        assert_eq!(HERMES.apply(&text).text(), text);
        assert!(!HERMES.admits(&format!("{text}x")));
        assert!(HERMES.admits(&"界".repeat(2_000)));
        assert!(!HERMES.admits(&"q".repeat(2_001)));
    }

    #[test]
    fn both_ends_are_kept_and_the_omission_is_told() {
        let text: String = (0..3_000).map(|n| format!("{n}\n")).collect();
        let bounded = HERMES.apply(&text);
        assert_eq!((bounded.head_lines, bounded.tail_lines), (1_000, 1_000));
        assert_eq!(bounded.omitted_lines, 1_000);
        let shown = bounded.text();
        assert!(shown.starts_with("0\n") && shown.ends_with("2999\n"));
        assert!(shown.contains("bytes omitted, 1000 whole lines\n2000\n"));
    }

    #[test]
    fn one_endless_line_is_never_shown_as_nothing() {
        let text = "q".repeat(900);
        for keep in [Keep::Head, Keep::Tail, Keep::Ends] {
            let bounds = TextBounds {
                max_bytes: 64,
                max_lines: 10,
                max_line_chars: 2_000,
                keep,
            };
            let bounded = bounds.apply(&text);
            let shown = bounded.head.len() + bounded.tail.len();
            assert!((32..=64).contains(&shown), "{keep:?}: {shown}");
            assert_eq!(bounded.omitted_bytes, 900 - shown);
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_inside_the_bounds_and_the_rest_is_counted(
            text in "[ab界\n]{0,300}",
            max_bytes in 1_usize..200,
            max_lines in 1_usize..20,
            max_line_chars in 1_usize..30,
            keep in prop_oneof![Just(Keep::Head), Just(Keep::Tail), Just(Keep::Ends)],
        ) {
            let bounds = TextBounds { max_bytes, max_lines, max_line_chars, keep };
            let bounded = bounds.apply(&text);
            let shown = format!("{}{}", bounded.head, bounded.tail);
            prop_assert!(shown.len() <= max_bytes);
            prop_assert!(bounded.head_lines + bounded.tail_lines <= max_lines);
            prop_assert_eq!(shown.len() + bounded.omitted_bytes, text.len());
            prop_assert_eq!(bounds.admits(&text), !bounded.is_cut());
        }
    }
}
