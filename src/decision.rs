//! Deciding results and turns, and freezing what was decided.
//!
//! [`crate::policy`] decides, purely; here it is carried out: earlier decisions are read, new ones are
//! recorded create-only, spilled texts are saved. What must hold:
//!
//! * A decision, once it was answered, is answered again the same way: by every replica, after a restart,
//!   an upgrade or a change of budgets. Of two that decide at once both answer what landed first.
//! * Nothing of ours holds the text of a result but its artifact. An inline text is the caller's own.
//! * A tool that worked never becomes an error because something of ours failed, but where its profile
//!   wants to know.

use crate::artifact::library::Library;
use crate::ids::SessionId;
use crate::policy::template::Templates;

mod answer;
mod freeze;
mod outcome;
mod result;
mod turn;
mod turn_plan;

pub use answer::{Answer, Content};
pub use outcome::DecideResultError;
pub use result::ResultRequest;
pub use turn::{
    DecideTurnError, InvalidTurnError, TurnAnswer, TurnContent, TurnRequest, TurnResult,
};

/// Decides results and turns over the artifacts of one store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Decider {
    library: Library,
    templates: Templates,
}

impl Decider {
    /// Works on `library` with the sentences of this release.
    pub fn new(library: Library) -> Self {
        Self::with_templates(library, Templates::default())
    }

    /// Works with other sentences, as an earlier or a later release would.
    pub fn with_templates(library: Library, templates: Templates) -> Self {
        Self { library, templates }
    }
}

/// A session and those above it, nearest first.
type Chain = Vec<SessionId>;

#[cfg(test)]
mod tests;
