//! The text that stands in the prompt instead of a large output (profile `default`).
//!
//! Notice, head, gap marker, tail, closing line. The notice is priced first, at its longest, and only
//! the preview shrinks, so a locator is whole or the rendering is refused. A body that fits the cap
//! stays as it is: a replacement that is not smaller than what it replaces is never made.
//!
//! A pure function of the artifact, the caller's means and the cap: the same bytes on every replica.

use memchr::memchr_iter;

use super::completeness::Completeness;
use super::error_line::find_first_error_line;
use super::hint::{HintTarget, ReadOn, RetrievalMeans, hint};
use super::notice::{EMPTY_OUTPUT_TEXT, Frame, NoticeFacts, ShownFacts};
use super::preview::{Excerpt, excerpt};
use super::scan::BodyFacts;
use super::windows::Windows;
use crate::limits::HEX_PREVIEW_BYTES;

pub use super::notice::TEMPLATE_VERSION;

/// What a replacement says beside what the body itself says.
#[derive(Debug, Clone, Copy)]
pub struct ReplacementInput<'a> {
    /// The tool's name, where the caller gave one.
    pub tool: Option<&'a str>,
    /// The summary, as [`super::summary::summarise`] made it.
    pub summary: &'a str,
    /// What the sender declared.
    pub completeness: Completeness,
    /// What the sender knows to be lost.
    pub known_lost: Option<&'a str>,
    /// The body's media type, where the caller gave one.
    pub media_type: Option<&'a str>,
    /// The artifact's source id.
    pub source_id: &'a str,
    /// What the caller's agent can fetch with; empty: no hint.
    pub means: &'a [RetrievalMeans],
    /// The locator, and what a hint needs beside it.
    pub target: HintTarget<'a>,
}

/// Which of the three forms a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderedForm {
    /// The body itself (of an empty one a fixed sentence).
    Inline,
    /// A notice and a part of the text.
    Excerpt,
    /// A notice and what can be shown of a body that is not UTF-8.
    Description,
}

/// A rendered text, and the facts about it that a receipt repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text for the prompt.
    pub text: String,
    /// Which form it has.
    pub form: RenderedForm,
    /// Whether the text is something else than the body.
    pub truncated: bool,
    /// Bytes of the body that are shown.
    pub preview_bytes: u64,
    /// Bytes of the body that are not.
    pub omitted_bytes: u64,
    /// The head shows the body's bytes `[0, head_end)`.
    pub head_end: u64,
    /// The tail shows the body's bytes `[tail_start, size)`.
    pub tail_start: u64,
    /// The next call, as the text prints it; none where nothing is left out.
    pub hint: Option<String>,
}

/// The cap is too small for the notice, and the body is too large to stay inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a replacement cap of {cap_bytes} bytes is too small: the notice alone needs {needed_bytes}"
)]
pub struct PreviewBudgetTooSmallError {
    /// The cap.
    pub cap_bytes: usize,
    /// The cap that would do.
    pub needed_bytes: usize,
}

/// Returns the recommended text for a tool that printed nothing.
pub fn inline_text_for_empty() -> &'static str {
    EMPTY_OUTPUT_TEXT
}

/// Renders the text that stands for a body in the prompt, at most `cap_bytes` long.
///
/// The windows in `facts` should hold more than `cap_bytes`; from smaller ones less is shown.
///
/// # Errors
/// The notice does not fit: nothing is rendered rather than a locator that is cut.
pub fn render(
    input: &ReplacementInput<'_>,
    facts: &BodyFacts,
    cap_bytes: usize,
) -> Result<Rendered, PreviewBudgetTooSmallError> {
    if let Some(text) = inline_text(facts, cap_bytes) {
        return Ok(Rendered {
            text,
            form: RenderedForm::Inline,
            truncated: false,
            preview_bytes: facts.size_bytes,
            omitted_bytes: 0,
            head_end: facts.size_bytes,
            tail_start: facts.size_bytes,
            hint: None,
        });
    }
    let words = notice_facts(input, facts);
    // Only a description may be longer than its body.
    let cap_bytes = if facts.is_binary() {
        cap_bytes
    } else {
        let below_body = usize::try_from(facts.size_bytes - 1).unwrap_or(usize::MAX);
        cap_bytes.min(below_body)
    };
    let longest = Frame::of(&words, &longest_facts(input, facts));
    let Some(budget) = cap_bytes.checked_sub(longest.len() + LINE_END_BYTES) else {
        return notice_only(input, facts, &words, cap_bytes);
    };
    let preview = Preview::of(facts, budget);
    let shown = shown_facts(input, facts, &preview);
    let frame = Frame::of(&words, &shown);
    let mut text = frame.notice;
    push_ended(&mut text, &preview.parts.head);
    text.push_str(&frame.marker);
    push_ended(&mut text, &preview.parts.tail);
    text.push_str(&frame.closing);
    debug_assert!(text.len() <= cap_bytes);
    Ok(rendered(facts, &preview.parts, text, shown.hint))
}

/// Head and tail may each need a LF of ours after them.
const LINE_END_BYTES: usize = 2;

fn inline_text(facts: &BodyFacts, cap_bytes: usize) -> Option<String> {
    if facts.size_bytes == 0 {
        return Some(EMPTY_OUTPUT_TEXT.to_owned());
    }
    if facts.is_binary() || facts.size_bytes > cap_bytes as u64 {
        return None;
    }
    let whole = facts.windows.whole()?;
    String::from_utf8(whole.into_owned()).ok()
}

/// Without room for marker and closing line, the notice alone may still fit.
fn notice_only(
    input: &ReplacementInput<'_>,
    facts: &BodyFacts,
    words: &NoticeFacts<'_>,
    cap_bytes: usize,
) -> Result<Rendered, PreviewBudgetTooSmallError> {
    let preview = Preview::empty(facts.size_bytes);
    let shown = shown_facts(input, facts, &preview);
    let mut text = Frame::of(words, &shown).notice;
    text.truncate(text.trim_end().len());
    if text.len() > cap_bytes {
        return Err(PreviewBudgetTooSmallError {
            cap_bytes,
            needed_bytes: text.len(),
        });
    }
    Ok(rendered(facts, &preview.parts, text, shown.hint))
}

fn rendered(facts: &BodyFacts, parts: &Excerpt, text: String, hint: Option<String>) -> Rendered {
    let form = if facts.is_binary() {
        RenderedForm::Description
    } else {
        RenderedForm::Excerpt
    };
    Rendered {
        text,
        form,
        truncated: true,
        preview_bytes: facts.size_bytes - parts.omitted_bytes(),
        omitted_bytes: parts.omitted_bytes(),
        head_end: parts.head_end,
        tail_start: parts.tail_start,
        hint,
    }
}

fn push_ended(text: &mut String, part: &str) {
    text.push_str(part);
    if !part.is_empty() && !part.ends_with('\n') {
        text.push('\n');
    }
}

fn notice_facts<'a>(input: &ReplacementInput<'a>, facts: &BodyFacts) -> NoticeFacts<'a> {
    NoticeFacts {
        tool: input.tool,
        summary: input.summary,
        completeness: input.completeness,
        known_lost: input.known_lost,
        media_type: input.media_type,
        size_bytes: facts.size_bytes,
        line_count: facts.line_count,
        sha256: facts.sha256,
        source_id: input.source_id,
        locator: input.target.locator,
        first_invalid_utf8: facts.first_invalid_utf8,
    }
}

/// What is shown between the lines of the frame.
#[derive(Debug)]
struct Preview {
    parts: Excerpt,
    is_hex: bool,
}

impl Preview {
    fn empty(size_bytes: u64) -> Self {
        let parts = Excerpt {
            head: String::new(),
            tail: String::new(),
            head_end: 0,
            tail_start: size_bytes,
        };
        Self {
            parts,
            is_hex: false,
        }
    }

    fn of(facts: &BodyFacts, budget_bytes: usize) -> Self {
        if facts.is_binary() && !is_mostly_text(&facts.windows) {
            return Self::hex(&facts.windows, budget_bytes);
        }
        Self {
            parts: excerpt(&facts.windows, budget_bytes),
            is_hex: false,
        }
    }

    /// Rows of 32 bytes, as many as fit.
    fn hex(windows: &Windows, budget_bytes: usize) -> Self {
        let mut preview = Self::empty(windows.size_bytes());
        preview.is_hex = true;
        let head = windows.head();
        for row in head[..head.len().min(HEX_PREVIEW_BYTES)].chunks(32) {
            let text = hex::encode(row);
            if preview.parts.head.len() + text.len() + 1 > budget_bytes {
                break;
            }
            preview.parts.head.push_str(&text);
            preview.parts.head.push('\n');
            preview.parts.head_end += row.len() as u64;
        }
        preview
    }
}

/// Whether nine of ten characters at the start and at the end can be read: a log with a few bad bytes is
/// shown as text, an image is not.
fn is_mostly_text(windows: &Windows) -> bool {
    const SAMPLE_BYTES: usize = 1 << 10;
    let (head, tail) = (windows.head(), windows.tail());
    let samples = [
        &head[..head.len().min(SAMPLE_BYTES)],
        &tail[tail.len().saturating_sub(SAMPLE_BYTES)..],
    ];
    samples.iter().all(|sample| {
        let text = String::from_utf8_lossy(sample);
        let is_bad = |c: &char| {
            *c == char::REPLACEMENT_CHARACTER
                || (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
        };
        text.chars().filter(is_bad).count() * 10 <= text.chars().count()
    })
}

/// The facts at which the frame is longest: every number at its widest, every clause there.
fn longest_facts(input: &ReplacementInput<'_>, facts: &BodyFacts) -> ShownFacts {
    let size = facts.size_bytes;
    let places = [
        ReadOn::Line(facts.line_count),
        ReadOn::Byte(size),
        ReadOn::Whole,
    ];
    let hints = places.map(|place| hint(input.means, &input.target, place));
    ShownFacts {
        head_end: size.saturating_sub(1),
        tail_start: size.saturating_sub(1),
        omitted_bytes: size,
        head_last_line: facts.line_count,
        tail_first_line: facts.line_count,
        error_line: Some(facts.line_count),
        hint: hints.into_iter().flatten().max_by_key(String::len),
        is_hex: false,
        is_escaped: true,
    }
}

fn shown_facts(input: &ReplacementInput<'_>, facts: &BodyFacts, preview: &Preview) -> ShownFacts {
    let (head_end, tail_start) = (preview.parts.head_end, preview.parts.tail_start);
    let windows = &facts.windows;
    let head = &windows.head()[..usize::try_from(head_end).unwrap_or(usize::MAX)];
    let tail_len = usize::try_from(facts.size_bytes - tail_start).unwrap_or(usize::MAX);
    let tail = &windows.tail()[windows.tail().len() - tail_len..];
    let count_lf = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
    let ends_with_lf = windows.tail().last() == Some(&b'\n');
    let lf_count = facts.line_count - u64::from(!ends_with_lf);
    let is_at_line_start = head.last().is_none_or(|byte| *byte == b'\n');
    let next_line = count_lf(head);
    let read_on = if preview.is_hex {
        ReadOn::Whole
    } else if is_at_line_start {
        ReadOn::Line(next_line)
    } else {
        ReadOn::Byte(head_end)
    };
    let raw_len = (head.len() + tail.len()) as u64;
    let shown_len = (preview.parts.head.len() + preview.parts.tail.len()) as u64;
    ShownFacts {
        head_end,
        tail_start,
        omitted_bytes: preview.parts.omitted_bytes(),
        head_last_line: next_line + u64::from(!is_at_line_start),
        tail_first_line: lf_count - count_lf(tail) + 1,
        error_line: (!preview.is_hex)
            .then(|| omitted_error_line(facts, head_end, tail_start))
            .flatten(),
        hint: hint(input.means, &input.target, read_on),
        is_hex: preview.is_hex,
        is_escaped: !preview.is_hex && shown_len > raw_len,
    }
}

/// The 1-based number of the first line whose error word lies in the omitted part.
fn omitted_error_line(facts: &BodyFacts, head_end: u64, tail_start: u64) -> Option<u64> {
    let is_omitted = |word: u64| (head_end..tail_start).contains(&word);
    let head = facts.windows.head();
    let mut start = 0;
    while let Some(hit) = find_first_error_line(&head[start..]) {
        let word = start + hit.word.start;
        if word as u64 >= facts.late_error_from {
            break;
        }
        if is_omitted(word as u64) {
            return Some(memchr_iter(b'\n', &head[..word]).count() as u64 + 1);
        }
        start = (start + hit.line.end + 1).min(head.len());
    }
    facts
        .late_error
        .filter(|line| is_omitted(line.word_offset))
        .map(|line| line.line_index + 1)
}

#[cfg(test)]
mod tests;
