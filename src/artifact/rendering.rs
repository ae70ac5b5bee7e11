//! The seam between what is stored and how it is worded: a save is given its rendering.
//!
//! The module of profiles stands above this one, so a save only knows that somebody renders. Whoever
//! renders is pure: the same input gives the same text on every replica, at any date.

use std::fmt::Debug;
use std::sync::Arc;

use super::replacement::{
    PreviewBudgetTooSmallError, Rendered, ReplacementInput, TEMPLATE_VERSION, render,
};
use super::scan::BodyFacts;
use crate::limits::{DEFAULT_REPLACEMENT_BYTES, PREVIEW_WINDOW_BYTES};

/// Renders the text that stands for a body in the prompt.
pub trait Render: Debug + Send + Sync {
    /// Returns the name under which a manifest says who rendered its text.
    fn profile(&self) -> &str;

    /// Returns the version of the words.
    fn template_version(&self) -> u32;

    /// Returns how many bytes of each end of a body it may need.
    fn window_bytes(&self) -> usize;

    /// Renders. A body that is text comes back as it is where nothing smaller can stand for it.
    ///
    /// # Errors
    /// The notice does not fit the cap.
    fn render(
        &self,
        input: &ReplacementInput<'_>,
        facts: &BodyFacts,
    ) -> Result<Rendered, PreviewBudgetTooSmallError>;
}

/// A shared rendering.
pub type SharedRender = Arc<dyn Render>;

/// The rendering of the profile `default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultRender {
    /// Cap of the whole text, in bytes.
    pub cap_bytes: usize,
}

impl DefaultRender {
    /// Returns a rendering with the cap that holds unless an operator says otherwise.
    pub fn shared() -> SharedRender {
        let cap_bytes = DEFAULT_REPLACEMENT_BYTES;
        Arc::new(Self { cap_bytes })
    }
}

impl Render for DefaultRender {
    fn profile(&self) -> &str {
        "default"
    }

    fn template_version(&self) -> u32 {
        TEMPLATE_VERSION
    }

    fn window_bytes(&self) -> usize {
        PREVIEW_WINDOW_BYTES.max(self.cap_bytes + 1)
    }

    fn render(
        &self,
        input: &ReplacementInput<'_>,
        facts: &BodyFacts,
    ) -> Result<Rendered, PreviewBudgetTooSmallError> {
        render(input, facts, self.cap_bytes)
    }
}
