//! From the domain's errors to problems: what the caller is told, and what only the log gets.

use crate::artifact::read::ReadError;
use crate::artifact::request::SaveError;
use crate::artifact::search::SearchError;
use crate::artifact::session::SessionError;
use crate::decision::DecideResultError;
use crate::http::grep::parameter_of;
use crate::http::problem::{Problem, excerpt};

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let code = error.code();
        match error {
            ReadError::NotFound => Self::new(code, "no such artifact"),
            ReadError::Deleted(deletion) => Self::deleted(deletion),
            ReadError::Store(error) => {
                Self::new(code, store_detail(error.operation)).caused_by(error)
            }
            ReadError::Corrupt(cause) => {
                Self::new(code, "the stored body is not the one that was saved").caused_by(cause)
            }
            ReadError::Format(cause) => {
                Self::new(code, "the stored manifest cannot be read").caused_by(cause)
            }
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        SaveError::Session(error).into()
    }
}

impl From<SaveError> for Problem {
    fn from(error: SaveError) -> Self {
        let code = error.code();
        match error {
            SaveError::Erased(deletion) => Self::deleted(deletion),
            SaveError::Store(error)
            | SaveError::Undecided(error)
            | SaveError::Session(SessionError::Store(error)) => {
                Self::new(code, store_detail(error.operation)).caused_by(error)
            }
            SaveError::Format(cause) | SaveError::Session(SessionError::Format(cause)) => {
                Self::new(code, "what the store holds of this session cannot be read")
                    .caused_by(cause)
            }
            SaveError::BodyDiffers(error) => {
                Self::new(code, "other bytes are stored where this output should be")
                    .caused_by(error)
            }
            SaveError::Internal(cause) => {
                Self::new(code, "the save met a defect of the service").caused_by(cause)
            }
            SaveError::Body(_)
            | SaveError::DigestMismatch { .. }
            | SaveError::ReadOnly
            | SaveError::Saturated(_)
            | SaveError::Quota(_)
            | SaveError::Superseded
            | SaveError::IncarnationsExhausted(_)
            | SaveError::Preview(_) => Self::new(code, error.to_string()),
            // These name a session, which is up to 512 bytes of anything.
            SaveError::Session(
                SessionError::ParentNotFound(session)
                | SessionError::ParentConflict {
                    actual: Some(session),
                },
            ) => {
                let session = excerpt(session.as_str());
                Self::new(code, format!("parent session `{session}`"))
            }
            SaveError::Session(SessionError::ParentConflict { actual: None }) => {
                Self::new(code, "the session was created without a parent")
            }
        }
    }
}

impl From<DecideResultError> for Problem {
    fn from(error: DecideResultError) -> Self {
        match error {
            DecideResultError::Save(error) => error.into(),
        }
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        let code = error.code();
        match error {
            SearchError::Read(error) => error.into(),
            SearchError::Invalid(error) => {
                let parameter = parameter_of(&error);
                Self::new(code, format!("parameter `{parameter}`: {error}"))
            }
            SearchError::Saturated(_) => Self::new(code, error.to_string()),
            SearchError::Internal(cause) => {
                Self::new(code, "the search met a defect of the service").caused_by(cause)
            }
        }
    }
}

/// The code says how it failed; keys and what the store said are for the log.
fn store_detail(operation: &str) -> String {
    format!("a request to the store failed ({operation})")
}
