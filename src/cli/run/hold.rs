//! What of an output `run` prints as it is: as much as the profile leaves in the prompt, inside the bounds
//! that its system puts on a tool's own text. What is over either is stored whole.

use crate::artifact::measure::Measures;
use crate::artifact::rendering::Render as _;
use crate::policy::limit::ToolLimit;
use crate::policy::profile::{Given, OnSaveFailure, Profile};
use crate::policy::text_bounds::TextBounds;

/// The most of an output that is held, also for a tool without a limit: more is stored.
pub(super) const MAX_HELD_BYTES: usize = 8 << 20;

/// What may be printed as it is.
#[derive(Debug, Clone)]
pub(super) struct HoldRule {
    limit: ToolLimit,
    bounds: Option<TextBounds>,
    /// Whether the original is printed where it cannot be stored.
    pub(super) keeps_original: bool,
    /// What of both ends a fallback needs.
    pub(super) window_bytes: usize,
}

impl HoldRule {
    /// Takes the rule of one tool.
    pub(super) fn new(profile: &Profile, tool: &str, given: &Given) -> Self {
        Self {
            limit: profile.limit_of(tool, given),
            bounds: profile.text_bounds,
            keeps_original: profile.on_save_failure != OnSaveFailure::HeadAndTail,
            window_bytes: profile.window_bytes(),
        }
    }

    /// Returns whether an output of this length, or any longer one, is too large.
    pub(super) fn is_exceeded_by(&self, size: &Measures) -> bool {
        let most_bytes = self
            .bounds
            .map_or(MAX_HELD_BYTES, |bounds| bounds.max_bytes);
        self.limit.is_exceeded_by(size) || size.bytes > most_bytes as u64
    }

    /// Returns whether a whole text may be printed.
    pub(super) fn admits(&self, text: &str) -> bool {
        self.bounds.is_none_or(|bounds| bounds.admits(text))
    }
}
