//! Which error code each failure of a lease operation is answered with.

use crate::artifact::read::ReadError;
use crate::artifact::request::code_of_store_error;
use crate::error::{Deletion, ErrorCode};
use crate::ids::InvalidIdError;
use crate::lease::entry::Condemned;
use crate::lease::evaluate::Refusal;
use crate::lease::journal::{JournalError, Receipt};
use crate::lease::open::OpenError;
use crate::lease::owner::Finding;
use crate::store::{StoreError, StoreErrorKind};

impl Refusal {
    /// Returns the code that this refusal is answered with.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::TransactionConflict => ErrorCode::TransactionConflict,
            Self::TransactionEnded(_) => ErrorCode::TransactionEnded,
            Self::TransactionUnknown => ErrorCode::TransactionUnknown,
            Self::IllegalTransition(_) | Self::NotCommitFirst | Self::NotExpired => {
                ErrorCode::IllegalTransition
            }
            Self::EndNotLater(_) => ErrorCode::RetentionNotExtended,
            Self::ArtifactCondemned(_) | Self::ArtifactDeleted => ErrorCode::ArtifactCondemned,
            Self::Leased { .. } | Self::ReferredSince { .. } => ErrorCode::ArtifactLeased,
            Self::NotCondemned => ErrorCode::IllegalTransition,
            Self::Suspect => ErrorCode::JournalSuspect,
            Self::NoSuchRecord { .. } => ErrorCode::InvalidParameter,
            Self::TooLarge => ErrorCode::InvalidLease,
            Self::Defect(_) => ErrorCode::Internal,
        }
    }
}

/// Returns the code for a store that failed before anything was written.
fn code_without_effect(error: &StoreError) -> ErrorCode {
    // Nothing of ours was on its way, so a lost reply is only an unavailable store.
    if error.kind.is_undecided() && error.kind != StoreErrorKind::Throttled {
        return ErrorCode::StoreUnavailable;
    }
    code_of_store_error(error.kind)
}

impl OpenError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => code_without_effect(error),
            Self::Broken { .. } if self.is_unsupported() => ErrorCode::JournalReadOnly,
            Self::Broken { .. } | Self::Gap { .. } => ErrorCode::JournalCorrupt,
        }
    }
}

impl JournalError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
            Self::Unreadable(error) => error.code(),
            Self::Store(error) => code_without_effect(error),
            Self::Contended | Self::Saturated | Self::Closed => ErrorCode::Saturated,
        }
    }

    /// Returns the record whose outcome is unknown: what a 202 states.
    pub fn unknown_record(&self) -> Option<&Receipt> {
        match self {
            Self::OutcomeUnknown { receipt, .. } => Some(receipt),
            Self::Refused(_)
            | Self::Unreadable(_)
            | Self::Store(_)
            | Self::Contended
            | Self::Saturated
            | Self::Closed => None,
        }
    }

    /// Returns the facts of an artifact that is condemned.
    pub fn condemned(&self) -> Option<&Condemned> {
        match self {
            Self::Refused(Refusal::ArtifactCondemned(condemned)) => Some(condemned),
            Self::Refused(_)
            | Self::OutcomeUnknown { .. }
            | Self::Unreadable(_)
            | Self::Store(_)
            | Self::Contended
            | Self::Saturated
            | Self::Closed => None,
        }
    }
}

/// A lease was not prepared, or an artifact not held.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A field is malformed or out of bounds.
    #[error("`{field}`: {rule}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What it must look like.
        rule: &'static str,
    },
    /// The source id or the digest names something else.
    #[error("{0}")]
    SourceMismatch(String),
    /// The owner is configured otherwise.
    #[error("{0}")]
    OwnerMode(String),
    /// The artifact is not there, or cannot be read.
    #[error(transparent)]
    Artifact(#[from] ReadError),
    /// The service does not write.
    #[error("the service does not write to its store")]
    ReadOnly,
    /// The journal says no, or nothing.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<InvalidIdError> for PrepareError {
    fn from(error: InvalidIdError) -> Self {
        Self::Invalid {
            field: error.kind,
            rule: error.rule,
        }
    }
}

impl PrepareError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid { .. } => ErrorCode::InvalidLease,
            Self::SourceMismatch(_) => ErrorCode::SourceMismatch,
            Self::OwnerMode(_) => ErrorCode::OwnerModeConflict,
            Self::Artifact(error) => error.code(),
            Self::ReadOnly => ErrorCode::ReadOnly,
            Self::Journal(error) => error.code(),
        }
    }

    /// Returns the 410 facts of a deleted or condemned artifact.
    pub fn deletion(&self) -> Option<Deletion> {
        match self {
            Self::Artifact(error) => error.deletion().cloned(),
            Self::Journal(error) => error.condemned().map(Condemned::deletion),
            Self::Invalid { .. }
            | Self::SourceMismatch(_)
            | Self::OwnerMode(_)
            | Self::ReadOnly => None,
        }
    }
}

impl Condemned {
    /// Returns the facts that a 410 states.
    pub fn deletion(&self) -> Deletion {
        let reason = match self.why {
            crate::lease::entry::CondemnReason::Expired => "expired",
            crate::lease::entry::CondemnReason::Erased => "erased",
        };
        Deletion {
            reason: reason.to_owned(),
            deleted_at: Some(self.server_date.to_string()),
            digest: self.sha256.map(|digest| digest.to_string()),
            size_bytes: self.size_bytes,
        }
    }
}

/// A lease was not changed or read.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The service does not write.
    #[error("the service does not write to its store")]
    ReadOnly,
    /// The owner did not seal its absence, so the lease goes on protecting.
    #[error("the owner did not seal its absence: {} ({})", .0.reason, .0.status)]
    OwnerUnsealed(Box<Finding>),
    /// The journal says no, or nothing.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A journal that could not be read record by record; nothing was written.
impl From<StoreError> for LeaseError {
    fn from(error: StoreError) -> Self {
        Self::Journal(JournalError::Store(error))
    }
}

impl LeaseError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ReadOnly => ErrorCode::ReadOnly,
            Self::OwnerUnsealed(_) => ErrorCode::OwnerUnsealed,
            Self::Journal(error) => error.code(),
        }
    }
}
