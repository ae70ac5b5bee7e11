//! From a failed save to an answer: whose failure it is, and what stands in the prompt then.

use crate::artifact::request::{BodyError, SaveError};
use crate::artifact::session::SessionError;
use crate::artifact::windows::Windows;
use crate::decision::answer::Answer;
use crate::error::ErrorCode;
use crate::policy::fallback::{Fallback, Seen, fallback};
use crate::policy::frozen::Action;
use crate::policy::profile::Profile;
use crate::policy::template::Template;

/// A result was not decided.
#[derive(Debug, thiserror::Error)]
pub enum DecideResultError {
    /// The request cannot be served, or the profile wants an error where a save fails.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// Returns whether a failure is the caller's: its body, or a session that cannot be used so. Everything
/// else is ours, and must not turn a good result into an error.
pub(super) fn is_of_the_caller(error: &SaveError) -> bool {
    match error {
        SaveError::Body(BodyError::Incomplete(_) | BodyError::Stalled(_))
        | SaveError::DigestMismatch { .. }
        | SaveError::Session(
            SessionError::ParentNotFound(_) | SessionError::ParentConflict { .. },
        ) => true,
        SaveError::Body(BodyError::TooLarge { .. })
        | SaveError::Session(SessionError::Format(_) | SessionError::Store(_))
        | SaveError::ReadOnly
        | SaveError::Saturated(_)
        | SaveError::Quota(_)
        | SaveError::Erased(_)
        | SaveError::Superseded
        | SaveError::IncarnationsExhausted(_)
        | SaveError::Preview(_)
        | SaveError::BodyDiffers(_)
        | SaveError::Undecided(_)
        | SaveError::Store(_)
        | SaveError::Format(_)
        | SaveError::Internal(_) => false,
    }
}

/// What is known of a result that could not be saved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsaved<'a> {
    pub(super) profile: &'a Profile,
    pub(super) tool: Option<&'a str>,
    pub(super) windows: &'a Windows,
    /// The whole text, where it may be sent back.
    pub(super) text: Option<&'a str>,
    pub(super) seen: Seen,
}

impl Unsaved<'_> {
    /// Answers a failed save: a sentence for what was erased, and else what the profile says.
    ///
    /// # Errors
    /// The failure is the caller's, or the profile wants it.
    pub(super) fn answer(&self, error: SaveError, words: &Template) -> Result<Answer, SaveError> {
        if let SaveError::Erased(deletion) = &error {
            return Ok(deleted(words, self.tool, &deletion.reason));
        }
        if is_of_the_caller(&error) {
            return Err(error);
        }
        let code = error.code();
        let answer = match fallback(self.profile, self.windows, self.tool, self.seen) {
            Fallback::Error => return Err(error),
            Fallback::Original => Answer::inline(self.text),
            Fallback::Text(text) => Answer::sentence(Action::Inline, text),
        };
        tracing::warn!(
            code = code.as_str(),
            error = %error,
            profile = self.profile.name,
            "a result was not stored; its prompt has the fallback"
        );
        Ok(answer.because(code.as_str()))
    }
}

/// Answers for an output that is not kept any longer.
pub(super) fn deleted(words: &Template, tool: Option<&str>, reason: &str) -> Answer {
    Answer::sentence(Action::Spilled, (words.deleted)(tool, reason)).because(reason)
}

impl DecideResultError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Save(error) => error.code(),
        }
    }
}
