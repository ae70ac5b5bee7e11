//! A profile: the numbers and the forms of one system, as data.
//!
//! Six are built in ([`super::profiles`]); an operator makes others by overriding fields of one of them
//! ([`super::table`]). Nothing here reads files or the environment.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::limit::{Limit, LimitRules, ToolLimit};
use super::preview::PreviewRule;
use super::text_bounds::TextBounds;
use crate::artifact::hint::RetrievalMeans;
use crate::artifact::measure::Measure;

/// One profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name: `[a-z0-9][a-z0-9-]{0,31}`.
    pub name: String,
    /// The built-in profile that it overrides; its own name for a built-in one.
    pub base: String,
    /// Which results are too large.
    pub limits: LimitRules,
    /// How limits follow the model's context window, where it is known.
    pub scaling: Option<Scaling>,
    /// What a turn may hold.
    pub turn: TurnRule,
    /// What becomes of results with parts that are not text.
    pub mixed_parts: MixedParts,
    /// What of a spilled text is shown.
    pub preview: PreviewRule,
    /// The same by tool, where it differs.
    pub tool_previews: BTreeMap<String, PreviewRule>,
    /// What stands around it.
    pub form: MessageForm,
    /// The largest replacement, notice included, in bytes.
    pub max_replacement_bytes: u64,
    /// What stands in the prompt when a save fails.
    pub on_save_failure: OnSaveFailure,
    /// How the agent can read on, where the caller does not say.
    pub means: Option<Vec<RetrievalMeans>>,
    /// The most of one reply of a reader. Holds for every tool, also for those that are never spilled.
    pub max_reply_bytes: u64,
    /// Bounds of a text that a tool shows by itself, where the system has them.
    pub text_bounds: Option<TextBounds>,
}

/// How limits follow a context window of a known size: a share of it, never above the profile's own
/// limits, never below the floors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Characters that a token is taken for; an estimate.
    pub chars_per_token: u64,
    /// Share of the window that one result may take.
    pub result_percent: u64,
    /// Share of the window that a turn may take.
    pub turn_percent: u64,
    /// The least limit of a result.
    pub result_floor: u64,
    /// The least budget of a turn.
    pub turn_floor: u64,
}

impl Scaling {
    fn share(&self, limit: Limit, tokens: u64, percent: u64, floor: u64) -> Limit {
        let window = u128::from(tokens) * u128::from(self.chars_per_token);
        let share = u64::try_from(window * u128::from(percent) / 100).unwrap_or(u64::MAX);
        Limit::AtMost(share.max(floor)).min(limit)
    }
}

/// What all results of one turn may hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnRule {
    /// The budget.
    pub budget: Limit,
    /// Its unit.
    pub measure: Measure,
    /// Results up to this length, in the unit of the budget, are left alone: taking them out brings
    /// nothing.
    pub result_floor: u64,
    /// Whether the text that stands for a spilled result counts while the pass goes on.
    pub counts_replacements: bool,
}

/// What becomes of results with parts that are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixedParts {
    /// Their largest text part may be spilled; the others stay.
    SpillText,
    /// They stay as they are.
    Untouched,
}

/// The order of the parts of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageForm {
    /// Notice, head, gap marker, tail, closing line.
    Notice,
    /// Between tags: size and place, blank line, preview.
    Tagged,
    /// Between tags: size in two units, place, how to page, a line against asking the source again,
    /// preview.
    TaggedPaging,
    /// Preview, blank line, one line with the omission, the locator and the hint.
    Trailing,
    /// Header lines, then the preview.
    Header,
}

/// What stands in the prompt when a save fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSaveFailure {
    /// Both ends of the text, bounded, and a line that says so.
    HeadAndTail,
    /// The original.
    Original,
    /// Nothing: the caller gets an error and keeps the original.
    Error,
}

/// What a request says of its circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// The most that the tool's server declared for its results.
    pub server_max: Option<u64>,
    /// The model's context window.
    pub context_tokens: Option<u64>,
}

impl Profile {
    /// Returns the limit of one tool's results.
    pub fn limit_of(&self, tool: &str, given: &Given) -> ToolLimit {
        let mut default = self.limits.default;
        if let (Some(scaling), Some(tokens)) = (&self.scaling, known(given.context_tokens)) {
            let (percent, floor) = (scaling.result_percent, scaling.result_floor);
            default.limit = scaling.share(default.limit, tokens, percent, floor);
        }
        self.limits.limit_of(tool, given.server_max, default)
    }

    /// Returns the budget of a turn.
    pub fn turn_budget(&self, given: &Given) -> Limit {
        match (&self.scaling, known(given.context_tokens)) {
            (Some(scaling), Some(tokens)) => {
                let (percent, floor) = (scaling.turn_percent, scaling.turn_floor);
                scaling.share(self.turn.budget, tokens, percent, floor)
            }
            _ => self.turn.budget,
        }
    }

    /// Returns whether a tool's results are never taken out of the prompt. They are bounded all the
    /// same, where they are made: [`Profile::max_reply_bytes`].
    pub fn never_externalizes(&self, tool: &str) -> bool {
        self.limit_of(tool, &Given::default()).limit == Limit::Never
    }

    /// Returns whether a turn may not take a tool's results out either: a tool that is exempt by name. Where
    /// no tool has a limit, the turn's budget is what there is.
    pub fn is_exempt(&self, tool: &str, given: &Given) -> bool {
        let limits = &self.limits;
        let by_name = [&limits.pinned, &limits.operator, &limits.tools];
        let is_named = by_name.iter().any(|map| map.contains_key(tool));
        self.limit_of(tool, given).limit == Limit::Never
            && (is_named || limits.default.limit != Limit::Never)
    }

    /// Returns what of a tool's text is shown.
    pub fn preview_of(&self, tool: &str) -> &PreviewRule {
        self.tool_previews.get(tool).unwrap_or(&self.preview)
    }
}

/// A window of no tokens is an unknown one.
fn known(tokens: Option<u64>) -> Option<u64> {
    tokens.filter(|tokens| *tokens > 0)
}

macro_rules! display_as_written {
    ($($name:ident),+) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    )+ };
}

// A formatter serialises a variant as its name, so that tables show what the settings file takes.
display_as_written!(MixedParts, MessageForm, OnSaveFailure);
