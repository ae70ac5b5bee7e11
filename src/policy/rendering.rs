//! Wording what stands for a spilled text, by the profile.
//!
//! The form `notice` is the artifact's own; the others are those of the systems that the profiles
//! reproduce. What holds for all: a replacement is smaller than its body, keeps its cap, shows every
//! byte at most once, and holds no live delimiter of any form that came from the body. Bytes that are no
//! text are described in the artifact's own form: none of those systems has one for them.

use memchr::memchr_iter;

use super::frames::{self, FORMS_VERSION, FrameFacts};
use super::preview::{Cut, PreviewRule, cut_ends, cut_escaped, cut_head};
use super::profile::{MessageForm, Profile};
use crate::artifact::escape::Shown;
use crate::artifact::hint::{ReadOn, hint};
use crate::artifact::measure::Measure;
use crate::artifact::rendering::Render;
use crate::artifact::replacement::{
    PreviewBudgetTooSmallError, Rendered, RenderedForm, ReplacementInput, TEMPLATE_VERSION, render,
};
use crate::artifact::scan::BodyFacts;
use crate::artifact::windows::Windows;
use crate::limits::DEFAULT_REPLACEMENT_BYTES;

/// What a window has beyond the preview itself: a body that is hardly longer than its replacement must
/// be there whole.
const WINDOW_RESERVE_BYTES: u64 = 4_096;

impl Render for Profile {
    fn profile(&self) -> &str {
        &self.name
    }

    fn template_version(&self) -> u32 {
        match self.form {
            MessageForm::Notice => TEMPLATE_VERSION,
            MessageForm::Tagged
            | MessageForm::TaggedPaging
            | MessageForm::Trailing
            | MessageForm::Header => FORMS_VERSION,
        }
    }

    fn window_bytes(&self) -> usize {
        let rules = self.tool_previews.values().chain([&self.preview]);
        let room = self.max_replacement_bytes;
        let most = rules.map(|rule| rule.window_bytes(room)).max();
        // Escaping makes text up to three times as long.
        let most = most.unwrap_or_default() * 3 / 2 + WINDOW_RESERVE_BYTES;
        let description = DEFAULT_REPLACEMENT_BYTES as u64 + 1;
        usize::try_from(most.max(description)).unwrap_or(usize::MAX)
    }

    fn render(
        &self,
        input: &ReplacementInput<'_>,
        facts: &BodyFacts,
    ) -> Result<Rendered, PreviewBudgetTooSmallError> {
        let cap_bytes = usize::try_from(self.max_replacement_bytes).unwrap_or(usize::MAX);
        if self.form == MessageForm::Notice {
            return render(input, facts, cap_bytes);
        }
        if facts.is_binary() || facts.size_bytes == 0 {
            return render(input, facts, cap_bytes.min(DEFAULT_REPLACEMENT_BYTES));
        }
        let message = match self.form {
            MessageForm::Trailing => {
                let read_on = |place| hint(input.means, &input.target, place);
                let body_below = usize::try_from(facts.size_bytes - 1).unwrap_or(usize::MAX);
                let locator = input.target.locator;
                trailing(&facts.windows, cap_bytes.min(body_below), locator, &read_on)
            }
            MessageForm::Notice
            | MessageForm::Tagged
            | MessageForm::TaggedPaging
            | MessageForm::Header => Some(self.framed(input, facts)),
        };
        let fits = |message: &Message| {
            message.text.len() <= cap_bytes && (message.text.len() as u64) < facts.size_bytes
        };
        match message.filter(fits) {
            Some(message) => Ok(message.rendered(facts.size_bytes)),
            None => inline(facts, cap_bytes),
        }
    }
}

/// A worded replacement and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The text.
    pub text: String,
    /// What of the body it shows.
    pub cut: Cut,
    /// The next call, as the text prints it.
    pub hint: Option<String>,
}

impl Message {
    fn rendered(self, size_bytes: u64) -> Rendered {
        let omitted_bytes = self.cut.omitted_bytes();
        Rendered {
            text: self.text,
            form: RenderedForm::Excerpt,
            truncated: true,
            preview_bytes: size_bytes - omitted_bytes,
            omitted_bytes,
            head_end: self.cut.head_end,
            tail_start: self.cut.tail_start,
            hint: self.hint,
        }
    }
}

/// The body itself, where nothing smaller can stand for it.
fn inline(facts: &BodyFacts, cap_bytes: usize) -> Result<Rendered, PreviewBudgetTooSmallError> {
    let whole = facts.windows.whole();
    let text = whole.and_then(|whole| String::from_utf8(whole.into_owned()).ok());
    let Some(text) = text else {
        return Err(PreviewBudgetTooSmallError {
            cap_bytes,
            needed_bytes: cap_bytes + 1,
        });
    };
    Ok(Rendered {
        text,
        form: RenderedForm::Inline,
        truncated: false,
        preview_bytes: facts.size_bytes,
        omitted_bytes: 0,
        head_end: facts.size_bytes,
        tail_start: facts.size_bytes,
        hint: None,
    })
}

/// Words the form with one notice behind the preview, in at most `cap_bytes`. The notice is priced first,
/// at its longest; `None` where it alone does not fit.
pub fn trailing(
    windows: &Windows,
    cap_bytes: usize,
    locator: &str,
    read_on: &dyn Fn(ReadOn) -> Option<String>,
) -> Option<Message> {
    let size = windows.size_bytes();
    let places = [ReadOn::Line(size), ReadOn::Byte(size)];
    let longest = places
        .into_iter()
        .filter_map(read_on)
        .max_by_key(String::len);
    let priced = frames::trailing_notice(size, locator, longest.as_deref());
    let budget = cap_bytes.checked_sub(priced.len() + 2)?;
    let cut = cut_escaped(windows, budget);
    let hint = read_on(place_after(windows, cut.head_end));
    let notice = frames::trailing_notice(cut.omitted_bytes(), locator, hint.as_deref());
    let text = format!("{}{}\n\n{notice}", cut.head, cut.tail);
    Some(Message { text, cut, hint })
}

impl Profile {
    fn framed(&self, input: &ReplacementInput<'_>, facts: &BodyFacts) -> Message {
        let windows = &facts.windows;
        let rule = self.preview_of(input.tool.unwrap_or_default());
        let (cut, measure, has_tail) = match *rule {
            PreviewRule::Head {
                length,
                measure,
                line_end,
            } => (cut_head(windows, length, measure, line_end), measure, false),
            PreviewRule::Ends {
                head,
                tail,
                measure,
            } => (cut_ends(windows, head, tail, measure), measure, true),
            // Refused for these forms when a profile is read; a part of the window is shown then.
            PreviewRule::Fill => {
                let length = DEFAULT_REPLACEMENT_BYTES as u64 / 2;
                (
                    cut_ends(windows, length, length, Measure::Bytes),
                    Measure::Bytes,
                    true,
                )
            }
        };
        let hint = hint(
            input.means,
            &input.target,
            place_after(windows, cut.head_end),
        );
        let digest = facts.sha256.to_string();
        let frame = FrameFacts {
            tool: input.tool,
            summary: input.summary,
            size: facts.measures,
            digest: &digest,
            source_id: input.source_id,
            locator: input.target.locator,
            hint: hint.as_deref(),
        };
        let units = |text: &str| text.chars().map(|c| measure.of_char(c)).sum::<u64>();
        let (head_units, tail_units) = (units(&cut.head), units(&cut.tail));
        let head = Shown::of(cut.head.as_bytes()).text;
        let tail = Shown::of(cut.tail.as_bytes()).text;
        let has_more = cut.omitted_bytes() > 0;
        let text = match self.form {
            MessageForm::TaggedPaging => {
                frames::tagged_paging(&frame, measure, &head, head_units, has_more)
            }
            MessageForm::Header => {
                let tail = has_tail.then_some((tail.as_str(), tail_units));
                frames::header(&frame, measure, (&head, head_units), tail)
            }
            MessageForm::Tagged | MessageForm::Notice | MessageForm::Trailing => {
                frames::tagged(&frame, measure, &head, head_units, has_more)
            }
        };
        Message { text, cut, hint }
    }
}

/// Where reading goes on after a head.
fn place_after(windows: &Windows, head_end: u64) -> ReadOn {
    let end = usize::try_from(head_end).unwrap_or(usize::MAX);
    let window = windows.head();
    let head = &window[..end.min(window.len())];
    let lines = memchr_iter(b'\n', head).count() as u64;
    if window.get(end) == Some(&b'\n') {
        return ReadOn::Line(lines + 1);
    }
    if head.last().is_none_or(|byte| *byte == b'\n') {
        return ReadOn::Line(lines);
    }
    ReadOn::Byte(head_end)
}

#[cfg(test)]
mod tests;
