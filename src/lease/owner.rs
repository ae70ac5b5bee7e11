//! What an owner shows of one transaction, and what that means for a lease. Pure.
//!
//! An owner is a memory system that holds references to artifacts. Between `prepared` and `committed`
//! anything may be in flight, so only the owner can say that a publication will never come, and it says
//! so by a **seal**: a decision in the same place where it decides publications. An unsealed "absent" is
//! a moment's look and ends nothing; 404 is no answer at all. What cannot be understood is unknown, and
//! unknown protects.
//!
//! The contract is told in `docs/OWNERS.md`; `spillbox owner check` tries an owner against it.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;
use crate::lease::names::{OwnerGeneration, OwnerName, TransactionId};

mod reply;

pub use reply::{OwnerReply, SealReply, Unclear};

/// What an owner published under a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Under which name it refers to the artifact.
    pub source_id: String,
    /// Digest of the artifact's bytes.
    pub sha256: Sha256Digest,
}

/// Where a transaction stands at its owner. Each carries what it needs and nothing else, so that a
/// contradiction ("absent, with this digest") is no value of this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// The reference is there.
    Published(Publication),
    /// It is not there; a publication may still come.
    Absent,
    /// It is not there and never will be.
    SealedAbsent,
    /// It was there, was removed, and never will be again.
    Removed,
}

/// One look at a transaction: where it stands, and the owner's name of that state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Where it stands.
    pub presence: Presence,
    /// The owner's generation, which a seal has to name.
    pub generation: OwnerGeneration,
}

/// What becomes of a lease after one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The owner holds the reference: commit.
    Commit(OwnerGeneration),
    /// It holds none yet: seal its absence at this generation, and abort only then.
    Seal(OwnerGeneration),
    /// It never will: abort.
    Abort(Why),
    /// It is gone: release.
    Release,
    /// Nothing is appended; the lease stays as it is.
    Stay(Finding),
}

/// Judges what was seen of a transaction against the claim of its lease, which protects.
pub fn judge(
    claim: &Publication,
    is_committed: bool,
    seen: Result<Observation, Unclear>,
) -> Verdict {
    let observation = match seen {
        Ok(observation) => observation,
        Err(Unclear::OtherTransaction) => {
            return Verdict::Stay(Finding::conflict(Why::OwnerTransactionMismatch));
        }
        Err(Unclear::Unknown(detail)) => {
            let finding = Finding::new(Status::PendingUnknown, Why::OwnerResultUnknown);
            return Verdict::Stay(finding.because(detail));
        }
    };
    let generation = observation.generation;
    match (observation.presence, is_committed) {
        (Presence::Published(publication), _) if !publication.is(claim) => {
            Verdict::Stay(Finding::conflict(Why::OwnerReferenceMismatch))
        }
        (Presence::Published(_), true) => Verdict::Stay(Finding::new(
            Status::AlreadyCommitted,
            Why::OwnerConfirmedReference,
        )),
        (Presence::Published(_), false) => Verdict::Commit(generation),
        (Presence::Absent, false) => Verdict::Seal(generation),
        (Presence::SealedAbsent, false) => Verdict::Abort(Why::OwnerSealedAbsence),
        (Presence::Removed, false) => Verdict::Abort(Why::OwnerRemovedReference),
        (Presence::Removed, true) => Verdict::Release,
        // It said that it holds the reference, and shows none without having removed it: perhaps an old
        // copy answers. The bytes are kept either way.
        (Presence::Absent | Presence::SealedAbsent, true) => Verdict::Stay(
            Finding::conflict(Why::OwnerReferenceMismatch)
                .because("the lease is committed, and the owner shows no reference"),
        ),
    }
}

/// Judges what was seen of a transaction whose lease an operator ended: only what the owner still shows
/// matters.
pub fn judge_ended(ended: Status, seen: Result<Observation, Unclear>) -> Finding {
    match seen {
        Ok(observation) => match observation.presence {
            Presence::Published(_) => {
                Finding::new(Status::PublishedUnprotected, Why::OwnerConfirmedReference)
                    .because("an operator ended the lease, and the owner still shows the reference")
            }
            Presence::Absent => Finding::new(ended, Why::OwnerAbsenceNotSealed),
            Presence::SealedAbsent => Finding::new(ended, Why::OwnerSealedAbsence),
            Presence::Removed => Finding::new(ended, Why::OwnerRemovedReference),
        },
        Err(Unclear::OtherTransaction) => Finding::new(ended, Why::OwnerTransactionMismatch),
        Err(Unclear::Unknown(detail)) => {
            Finding::new(ended, Why::OwnerResultUnknown).because(detail)
        }
    }
}

/// What a seal led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sealing {
    /// The absence is sealed.
    Sealed,
    /// The state that it named is not the state any more: another look says which is.
    Moved,
    /// The owner says that it has sealed, and that nothing has changed by it: it contradicts itself.
    NotAdvanced,
    /// Nobody knows; another look may tell.
    Unclear(String),
    /// The answer is of another transaction.
    OtherTransaction,
}

/// Judges an owner's answer to a seal at `sealed_at`.
pub fn judge_seal(sealed_at: &OwnerGeneration, reply: Result<SealReply, Unclear>) -> Sealing {
    match reply {
        Ok(SealReply::Sealed(Some(generation))) if generation == *sealed_at => Sealing::NotAdvanced,
        Ok(SealReply::Sealed(Some(_))) => Sealing::Sealed,
        // Whether it has advanced is then seen by looking.
        Ok(SealReply::Sealed(None)) => Sealing::Unclear("sealed, without a generation".to_owned()),
        Ok(SealReply::Refused) => Sealing::Moved,
        Err(Unclear::OtherTransaction) => Sealing::OtherTransaction,
        Err(Unclear::Unknown(detail)) => Sealing::Unclear(detail),
    }
}

impl Publication {
    fn is(&self, claim: &Self) -> bool {
        self.sha256 == claim.sha256 && self.source_id == claim.source_id
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the word on the wire, stable for ever.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a reconciliation made of a lease.
    Status {
        /// It appended `committed`.
        Committed = "committed",
        /// It appended `aborted`.
        Aborted = "aborted",
        /// It appended `released`.
        Released = "released",
        /// The owner did not say anything that can be relied on: the lease protects on.
        PendingUnknown = "pending_unknown",
        /// The owner contradicts the lease or itself: the lease protects on.
        PendingConflict = "pending_conflict",
        /// The owner moved on meanwhile: the lease protects on, the next run looks again.
        PendingStale = "pending_stale",
        /// It was committed already.
        AlreadyCommitted = "already_committed",
        /// It was aborted already.
        AlreadyAborted = "already_aborted",
        /// It was released already.
        AlreadyReleased = "already_released",
        /// An operator ended the lease, and the owner still shows the reference: an alarm.
        PublishedUnprotected = "published_unprotected",
        /// A hold has no owner to ask.
        Skipped = "skipped",
    }
}

words! {
    /// How that is known.
    Why {
        /// The owner shows the reference that was claimed.
        OwnerConfirmedReference = "owner_confirmed_reference",
        /// The owner sealed its absence.
        OwnerSealedAbsence = "owner_sealed_absence",
        /// The owner removed the reference, and publishes it never again.
        OwnerRemovedReference = "owner_removed_reference",
        /// The owner's answer did not come, or cannot be understood.
        OwnerResultUnknown = "owner_result_unknown",
        /// The owner shows another reference under this transaction, or none where it said that it holds one.
        OwnerReferenceMismatch = "owner_reference_mismatch",
        /// The owner answered about another transaction.
        OwnerTransactionMismatch = "owner_transaction_mismatch",
        /// The owner's state moved between the look and the seal.
        OwnerGenerationChanged = "owner_generation_changed",
        /// The owner did not seal its absence.
        OwnerAbsenceNotSealed = "owner_absence_not_sealed",
        /// The service has no URL to ask this owner at.
        OwnerNotConfigured = "owner_not_configured",
        /// The owner publishes after its commit, which has not come yet.
        CommitAwaited = "commit_awaited",
        /// The owner publishes after its commit, which did not come in time.
        CommitTimedOut = "commit_timed_out",
        /// The journal did not say whether the entry stands.
        JournalOutcomeUnknown = "journal_outcome_unknown",
        /// The journal cannot be read or written now.
        JournalUnavailable = "journal_unavailable",
        /// The lease ended some other way.
        LeaseEnded = "lease_ended",
        /// A person holds the artifact.
        HoldHasNoOwner = "hold_has_no_owner",
    }
}

impl Status {
    /// Returns whether the lease is still to be decided.
    pub const fn is_pending(self) -> bool {
        matches!(
            self,
            Self::PendingUnknown | Self::PendingConflict | Self::PendingStale
        )
    }

    /// Returns whether a person has to look at it.
    pub const fn is_alarm(self) -> bool {
        matches!(self, Self::PublishedUnprotected)
    }
}

/// A status, how it is known, and what else there is to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What became of the lease.
    pub status: Status,
    /// How that is known.
    pub reason: Why,
    /// For people; never a URL, never what an owner wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Finding {
    /// Creates a finding.
    pub const fn new(status: Status, reason: Why) -> Self {
        Self {
            status,
            reason,
            detail: None,
        }
    }

    /// Says more.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    const fn conflict(reason: Why) -> Self {
        Self::new(Status::PendingConflict, reason)
    }
}

/// Which transaction an owner is asked about, and what it should know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The transaction.
    pub transaction_id: TransactionId,
    /// Under which name it would refer to the artifact.
    pub source_id: String,
    /// Digest of the artifact's bytes.
    pub sha256: Sha256Digest,
}

/// How owners are reached. Where each one is stands in the configuration and nowhere else.
///
/// An implementation bounds its time and what it reads, follows no redirect, and never fails: what went
/// wrong is an answer too ([`OwnerReply::Lost`]).
#[async_trait]
pub trait OwnerLink: Send + Sync + fmt::Debug {
    /// Returns whether there is a URL to ask this owner at.
    fn knows(&self, owner: &OwnerName) -> bool;

    /// Looks at a transaction.
    async fn observe(&self, owner: &OwnerName, question: &Question) -> OwnerReply;

    /// Asks the owner to seal the transaction's absence, if its generation is still this one.
    async fn seal(
        &self,
        owner: &OwnerName,
        question: &Question,
        generation: &OwnerGeneration,
    ) -> OwnerReply;
}

/// A service whose configuration names no owner's URL.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOwners;

#[async_trait]
impl OwnerLink for NoOwners {
    fn knows(&self, _owner: &OwnerName) -> bool {
        false
    }

    async fn observe(&self, _owner: &OwnerName, _question: &Question) -> OwnerReply {
        OwnerReply::Lost("the owner has no base_url".to_owned())
    }

    async fn seal(
        &self,
        _owner: &OwnerName,
        _question: &Question,
        _generation: &OwnerGeneration,
    ) -> OwnerReply {
        OwnerReply::Lost("the owner has no base_url".to_owned())
    }
}

#[cfg(test)]
mod tests;
