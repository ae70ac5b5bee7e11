//! What is printed of a large output that could not be stored: both of its ends, since the outcome of a
//! command stands in the last line.

use crate::artifact::escape::{SIGIL, escape_field};
use crate::artifact::preview::excerpt;
use crate::artifact::windows::Windows;
use crate::limits::{DEFAULT_REPLACEMENT_BYTES, NOTICE_TOOL_CHARS};

/// Room for our own lines.
const FRAME_BYTES: usize = 1_000;

/// Renders the two ends, in at most [`DEFAULT_REPLACEMENT_BYTES`].
pub(super) fn text(windows: &Windows, tool: &str) -> String {
    let parts = excerpt(windows, DEFAULT_REPLACEMENT_BYTES - FRAME_BYTES);
    let tool: String = tool.chars().take(NOTICE_TOOL_CHARS).collect();
    let size = windows.size_bytes();
    let omitted = parts.omitted_bytes();
    let mut text = format!(
        "{SIGIL} NOT STORED: output of `{}`, {size} bytes; {omitted} bytes are lost: run it again with less output, or when the store works\n",
        escape_field(&tool)
    );
    push_ended(&mut text, &parts.head);
    if omitted > 0 {
        text.push_str(&format!(
            "{SIGIL} {omitted} bytes lost here: [{}, {})\n",
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

    #[test]
    fn the_last_line_is_shown_and_the_loss_is_exact() {
        let body: String = (0..100_000).map(|n| format!("line {n}\n")).collect();
        let windows = Windows::of(body.as_bytes(), 16 << 10);
        let shown = text(&windows, "make");
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
        let shown = text(&windows, &"\u{1b}".repeat(500));
        assert!(shown.len() <= DEFAULT_REPLACEMENT_BYTES, "{}", shown.len());
        assert!(!shown.contains('\u{1b}'));
    }
}
