//! What stands in the prompt when a save failed. A tool that worked never becomes an error by it, except
//! where the profile's adapter wants to know.

use super::profile::{OnSaveFailure, Profile};
use crate::artifact::escape::{SIGIL, escape_field};
use crate::artifact::preview::excerpt;
use crate::artifact::windows::Windows;
use crate::limits::{DEFAULT_REPLACEMENT_BYTES, NOTICE_TOOL_CHARS};

/// What stands in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The original, whole.
    Original,
    /// This text instead.
    Text(String),
    /// Nothing: the caller gets the error.
    Error,
}

/// How much of an output was seen before the save failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// All of it.
    Whole,
    /// Only its start: reading stopped there.
    StartOnly,
    /// All of it, and it is kept on this host until it can be stored.
    Kept,
}

/// Room for our own lines.
const FRAME_BYTES: usize = 1_000;

/// Says what stands in the prompt for an output that could not be saved.
pub fn fallback(profile: &Profile, windows: &Windows, tool: Option<&str>, seen: Seen) -> Fallback {
    match profile.on_save_failure {
        OnSaveFailure::Error => Fallback::Error,
        OnSaveFailure::Original => Fallback::Original,
        OnSaveFailure::HeadAndTail => {
            let cap_bytes = usize::try_from(profile.max_replacement_bytes).unwrap_or(usize::MAX);
            let tool = tool.unwrap_or("a tool");
            let text = ends(windows, tool, cap_bytes, seen);
            Fallback::Text(match &profile.text_bounds {
                // No text of a tool passes them, the one that could not be stored no more than others.
                Some(bounds) => bounds.apply(&text).text(),
                None => text,
            })
        }
    }
}

/// Renders both ends of an output that could not be stored, since the outcome of a command stands in the
/// last line. At most [`DEFAULT_REPLACEMENT_BYTES`], or `cap_bytes` where that leaves room for a frame. An
/// output that fits is shown whole.
pub fn ends(windows: &Windows, tool: &str, cap_bytes: usize, seen: Seen) -> String {
    let cap_bytes = cap_bytes.clamp(2 * FRAME_BYTES, DEFAULT_REPLACEMENT_BYTES);
    let budget = cap_bytes - FRAME_BYTES;
    let tool: String = tool.chars().take(NOTICE_TOOL_CHARS).collect();
    let tool = escape_field(&tool);
    let size = windows.size_bytes();
    if seen == Seen::StartOnly {
        let parts = excerpt(&Windows::of(windows.head(), budget), budget);
        let mut text = format!(
            "{SIGIL} NOT STORED: output of `{tool}`, more than {size} bytes; only its start was read, the rest is lost: run it again with less output\n"
        );
        push_ended(&mut text, &parts.head);
        return text;
    }
    let parts = excerpt(windows, budget);
    let omitted = parts.omitted_bytes();
    let mut text = if seen == Seen::Kept {
        format!(
            "{SIGIL} NOT STORED YET: output of `{tool}`, {size} bytes; {omitted} bytes are not shown, and kept on this host until the service is back\n"
        )
    } else {
        format!(
            "{SIGIL} NOT STORED: output of `{tool}`, {size} bytes; {omitted} bytes are lost: run it again with less output, or when the store works\n"
        )
    };
    push_ended(&mut text, &parts.head);
    if omitted > 0 {
        let fate = if seen == Seen::Kept {
            "omitted"
        } else {
            "lost"
        };
        text.push_str(&format!(
            "{SIGIL} {omitted} bytes {fate} here: [{}, {})\n",
            parts.head_end, parts.tail_start
        ));
    }
    push_ended(&mut text, &parts.tail);
    text
}

fn push_ended(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::profiles::{built_in, default, hermes};

    #[test]
    fn the_last_line_is_shown_and_the_loss_is_exact() {
        let body: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let windows = Windows::of(body.as_bytes(), 16 << 10);
        let shown = ends(&windows, "make", usize::MAX, Seen::Whole);
        assert!(shown.len() <= DEFAULT_REPLACEMENT_BYTES, "{}", shown.len());
        assert!(
            shown.contains("\nline 0\n") && shown.ends_with("line 99999\n"),
            "{shown}"
        );
        let words = excerpt(&windows, DEFAULT_REPLACEMENT_BYTES - FRAME_BYTES);
        assert!(shown.contains(&format!("{} bytes are lost", words.omitted_bytes())));
    }

    #[test]
    fn one_endless_line_of_escapes_stays_bounded() {
        let windows = Windows::of(&vec![0x1b; 100_000], 16 << 10);
        for seen in [Seen::Whole, Seen::StartOnly] {
            let shown = ends(&windows, &"\u{1b}".repeat(500), usize::MAX, seen);
            assert!(shown.len() <= DEFAULT_REPLACEMENT_BYTES, "{}", shown.len());
            assert!(!shown.contains('\u{1b}'));
        }
    }

    #[test]
    fn a_start_is_not_taken_for_the_whole() {
        let windows = Windows::of("line\n".repeat(9_000).as_bytes(), 16 << 10);
        let shown = ends(&windows, "make", usize::MAX, Seen::StartOnly);
        assert!(shown.contains("only its start was read"), "{shown}");
        assert!(!shown.contains("lost here"), "{shown}");
    }

    #[test]
    fn each_profile_has_its_own_way() {
        let windows = Windows::of("line\n".repeat(9_000).as_bytes(), 16 << 10);
        for profile in built_in() {
            let found = fallback(&profile, &windows, Some("make"), Seen::Whole);
            let expected = match profile.name.as_str() {
                "default" | "hermes" => {
                    Fallback::Text(ends(&windows, "make", usize::MAX, Seen::Whole))
                }
                "workbuddy" => Fallback::Error,
                _ => Fallback::Original,
            };
            assert_eq!(found, expected, "{}", profile.name);
        }
        let long_lines = Windows::of("q".repeat(9_000).as_bytes(), 16 << 10);
        let Fallback::Text(shown) = fallback(&hermes(), &long_lines, None, Seen::Whole) else {
            panic!("hermes shows both ends");
        };
        assert!(shown.lines().all(|line| line.len() <= 2_000), "{shown}");
        assert!(shown.contains("bytes omitted, 0 whole lines"), "{shown}");
        let nameless = fallback(&default(), &windows, None, Seen::Whole);
        assert!(matches!(nameless, Fallback::Text(text) if text.contains("`a tool`")));
    }
}
