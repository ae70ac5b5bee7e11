//! The words around a preview, in the order of parts of each system; the sentences are ours.
//!
//! Nothing volatile stands in them. What a body holds is escaped before it comes here, so that it can
//! neither open nor close a frame.

use std::fmt::Write as _;

use crate::artifact::escape::{SIGIL, escape_field};
use crate::artifact::measure::{Measure, Measures};
use crate::limits::NOTICE_TOOL_CHARS;

/// Changes when a word here changes: a stored replacement keeps its own, and says which version it is.
pub const FORMS_VERSION: u32 = 1;

const OPEN: &str = "<persisted-output>\n";
const CLOSE: &str = "</persisted-output>";

/// What a frame tells of an artifact.
#[derive(Debug, Clone, Copy)]
pub struct FrameFacts<'a> {
    /// The tool's name, where it is known.
    pub tool: Option<&'a str>,
    /// One line.
    pub summary: &'a str,
    /// The length of the whole text.
    pub size: Measures,
    /// `sha256:<hex>` of the body.
    pub digest: &'a str,
    /// How a memory refers to it.
    pub source_id: &'a str,
    /// Where the whole is.
    pub locator: &'a str,
    /// The next call.
    pub hint: Option<&'a str>,
}

/// Returns `58.6`: a count divided by 1,024, as these systems print sizes.
fn kib(count: u64) -> String {
    let tenths = (u128::from(count) * 10 + 512) / 1_024;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Returns `800.0 KB` or `4.8 MB`.
fn human(count: u64) -> String {
    if count < 1 << 20 {
        return format!("{} KB", kib(count));
    }
    format!("{} MB", kib(count >> 10))
}

/// Returns a number with thousands separators.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn push_ended(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}

fn push_preview(text: &mut String, preview: &str, has_more: bool) {
    push_ended(text, preview);
    if has_more {
        text.push_str("...\n");
    }
    text.push_str(CLOSE);
}

/// Size and place in one line, blank line, label, preview, dots; between tags. `units` is the length of
/// the preview.
pub fn tagged(
    facts: &FrameFacts<'_>,
    measure: Measure,
    preview: &str,
    units: u64,
    has_more: bool,
) -> String {
    let (size, shown) = (kib(facts.size.get(measure)), kib(units));
    let locator = facts.locator;
    let mut text =
        format!("{OPEN}The output is too large ({size} KB); all of it is kept at: {locator}\n");
    if let Some(hint) = facts.hint {
        let _ = writeln!(text, "To read on: {hint}");
    }
    let _ = write!(text, "\nPreview (the first {shown} KB):\n");
    push_preview(&mut text, preview, has_more);
    text
}

/// Size in two units, place, how to page, a line against asking the source again, label, preview, dots;
/// between tags.
pub fn tagged_paging(
    facts: &FrameFacts<'_>,
    measure: Measure,
    preview: &str,
    units: u64,
    has_more: bool,
) -> String {
    let count = facts.size.get(measure);
    let (size, human) = (grouped(count), human(count));
    let locator = facts.locator;
    let mut text = format!(
        "{OPEN}The result of this tool was too large for the prompt ({size} characters, {human}).\nAll of it is kept at: {locator}\n"
    );
    match facts.hint {
        Some(hint) => {
            let _ = writeln!(text, "Page through it with offset and limit: {hint}");
        }
        None => text.push_str("Page through it by lines, with offset and limit.\n"),
    }
    text.push_str("Do not ask the remote source for it once more: everything is here.\n");
    let _ = writeln!(text, "Preview (the first {} characters):", grouped(units));
    push_preview(&mut text, preview, has_more);
    text
}

/// The one line after a preview: omission, locator, hint. The words are as long as those of the system
/// that it follows, so that its previews have the same length here.
pub fn trailing_notice(omitted_bytes: u64, locator: &str, hint: Option<&str>) -> String {
    let mut notice =
        format!("{SIGIL} {omitted_bytes} bytes omitted; whole output is kept at: {locator}");
    if let Some(hint) = hint {
        notice.push('\n');
        notice.push_str(hint);
    }
    notice
}

/// Artifact id, summary, source, place; then a head with its label, or both ends around the count of
/// what is between them.
pub fn header(
    facts: &FrameFacts<'_>,
    measure: Measure,
    head: (&str, u64),
    tail: Option<(&str, u64)>,
) -> String {
    let tool: String = facts
        .tool
        .unwrap_or("tool")
        .chars()
        .take(NOTICE_TOOL_CHARS)
        .collect();
    let unit = unit_name(measure);
    let mut text = format!(
        "{SIGIL} artifact: {}\n{SIGIL} summary: {}\n{SIGIL} source: {} {}\n{SIGIL} place: {}\n",
        escape_field(facts.source_id),
        escape_field(facts.summary),
        escape_field(&tool),
        facts.digest,
        facts.locator
    );
    if let Some(hint) = facts.hint {
        let _ = writeln!(text, "{SIGIL} to read on: {hint}");
    }
    let total = facts.size.get(measure);
    match tail {
        None => {
            let _ = writeln!(
                text,
                "{SIGIL} preview: the first {} of {total} {unit}",
                head.1
            );
            text.push_str(head.0);
        }
        Some(tail) => {
            push_ended(&mut text, head.0);
            let omitted = total - head.1 - tail.1;
            let _ = writeln!(text, "{SIGIL} {omitted} {unit} omitted");
            text.push_str(tail.0);
        }
    }
    text
}

fn unit_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Bytes => "bytes",
        Measure::Characters => "characters",
        Measure::Utf16Units => "UTF-16 units",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(size: u64, hint: Option<&'static str>) -> FrameFacts<'static> {
        FrameFacts {
            tool: Some("bash"),
            summary: "s",
            size: Measures {
                bytes: size,
                characters: size,
                utf16_units: size,
            },
            digest: "sha256:00",
            source_id: "artifact:s:a:00",
            locator: "spillbox:a.b",
            hint,
        }
    }

    #[test]
    fn the_forms_of_version_1_are_golden() {
        assert_eq!(
            tagged(&facts(60_000, None), Measure::Utf16Units, "q", 2_000, true),
            "<persisted-output>\nThe output is too large (58.6 KB); all of it is kept at: spillbox:a.b\n\nPreview (the first 2.0 KB):\nq\n...\n</persisted-output>"
        );
        let hinted = tagged(
            &facts(2_049, Some("cat x")),
            Measure::Characters,
            "q\n",
            2,
            false,
        );
        assert!(
            hinted.contains("b\nTo read on: cat x\n\nPreview"),
            "{hinted}"
        );
        assert!(hinted.ends_with("KB):\nq\n</persisted-output>"), "{hinted}");
        assert_eq!(
            tagged_paging(&facts(819_200, None), Measure::Characters, "q", 1_500, true),
            "<persisted-output>\nThe result of this tool was too large for the prompt (819,200 characters, 800.0 KB).\nAll of it is kept at: spillbox:a.b\nPage through it by lines, with offset and limit.\nDo not ask the remote source for it once more: everything is here.\nPreview (the first 1,500 characters):\nq\n...\n</persisted-output>"
        );
        assert_eq!(
            trailing_notice(7, "spill://s/1", Some("Use the reader.")),
            "[spillbox] 7 bytes omitted; whole output is kept at: spill://s/1\nUse the reader."
        );
        assert_eq!(
            header(
                &facts(90, None),
                Measure::Characters,
                ("h", 20),
                Some(("t", 30))
            ),
            "[spillbox] artifact: artifact:s:a:00\n[spillbox] summary: s\n[spillbox] source: bash sha256:00\n[spillbox] place: spillbox:a.b\nh\n[spillbox] 40 characters omitted\nt"
        );
        assert!(
            header(&facts(90, None), Measure::Characters, ("h", 20), None)
                .ends_with("\n[spillbox] preview: the first 20 of 90 characters\nh")
        );
    }

    #[test]
    fn sizes_are_written_as_people_read_them() {
        for (count, text) in [(0, "0.0 KB"), (1_024, "1.0 KB"), (5_033_165, "4.8 MB")] {
            assert_eq!(human(count), text);
        }
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(grouped(count), text);
        }
    }
}
