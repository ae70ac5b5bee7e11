//! Leases and journals as callers see them.

use jiff::Timestamp;
use serde::Serialize;

use crate::artifact::manifest::source_id;
use crate::digest::Sha256Digest;
use crate::ids::{ArtifactId, SessionId};
use crate::lease::entry::{AbortReason, OwnerMode, ReleaseReason};
use crate::lease::journal::{Answer, Receipt};
use crate::lease::names::{OwnerGeneration, OwnerName, Reason, TransactionId};
use crate::lease::state::{Lease, Phase};

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaseReport {
    /// The owner's name of it.
    pub transaction_id: TransactionId,
    /// `prepared`, `committed`, `aborted` or `released`.
    pub state: &'static str,
    /// How it ended: `rejected`, `sealed`, `timeout`, `removed`, `expired` or `operator`.
    pub ended_by: Option<&'static str>,
    /// Who holds the reference.
    pub owner: OwnerName,
    /// In which order it publishes.
    pub mode: OwnerMode,
    /// Under which name it refers to the artifact.
    pub source_id: String,
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// Digest of its bytes, 64 hexadecimal digits.
    pub content_sha256: String,
    /// References that the owner holds.
    pub reference_count: u64,
    /// Its end now; none: it has no end.
    pub retain_until: Option<Timestamp>,
    /// The owner's generation as its commit named it.
    pub owner_generation: Option<OwnerGeneration>,
    /// Why a person holds the artifact; on holds only.
    pub reason: Option<Reason>,
    /// The record that prepared it.
    pub prepared_seq: u64,
    /// By the store's date; at most ten minutes early.
    pub prepared_at: Option<Timestamp>,
    /// The last record that changed it.
    pub changed_seq: u64,
}

impl LeaseReport {
    /// Describes a lease of a session.
    pub fn of(lease: &Lease, session: &SessionId) -> Self {
        let intent = &lease.intent;
        Self {
            transaction_id: intent.transaction_id.clone(),
            state: lease.phase.as_str(),
            ended_by: ended_by(lease.phase),
            owner: intent.owner.clone(),
            mode: intent.mode,
            source_id: source_id(session, &intent.artifact_id, &intent.sha256),
            artifact_id: intent.artifact_id,
            content_sha256: Sha256Digest::to_hex(&intent.sha256),
            reference_count: intent.reference_count,
            retain_until: lease.retain_until,
            owner_generation: lease.owner_generation.clone(),
            reason: intent.reason.clone(),
            prepared_seq: lease.prepared_seq,
            prepared_at: lease.prepared_as_of,
            changed_seq: lease.changed_seq,
        }
    }
}

const fn ended_by(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Prepared | Phase::Committed => None,
        Phase::Aborted(AbortReason::Rejected) => Some("rejected"),
        Phase::Aborted(AbortReason::Sealed) => Some("sealed"),
        Phase::Aborted(AbortReason::Timeout) => Some("timeout"),
        Phase::Released(ReleaseReason::Removed) => Some("removed"),
        Phase::Released(ReleaseReason::Expired { .. }) => Some("expired"),
        Phase::Aborted(AbortReason::Operator) | Phase::Released(ReleaseReason::Operator) => {
            Some("operator")
        }
    }
}

/// Whether a journal's word is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalStatus {
    /// It is.
    Ok,
    /// It holds entries without effect, or a checkpoint contradicts it: nothing is deleted on its word.
    Suspect,
    /// It is broken: nothing is written to it either.
    Corrupt,
    /// A newer version wrote to it: this one does not.
    ReadOnly,
}

/// A journal's end and status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalReport {
    /// Its last record; none for an empty or unreadable journal.
    pub receipt: Option<Receipt>,
    /// Whether its word is good.
    pub status: JournalStatus,
    /// Records with entries without effect that were not cleared.
    pub ineffective: Vec<u64>,
    /// What is wrong, for people.
    pub detail: Option<String>,
}

impl JournalReport {
    /// Describes a journal that could be folded.
    pub fn of(answer: &Answer) -> Self {
        let is_suspect = answer.state.is_suspect() || answer.has_conflict;
        let detail = answer
            .has_conflict
            .then(|| "a stored checkpoint contradicts the records".to_owned());
        Self {
            receipt: answer.receipt.clone(),
            status: if is_suspect {
                JournalStatus::Suspect
            } else {
                JournalStatus::Ok
            },
            ineffective: answer.state.ineffective().collect(),
            detail,
        }
    }
}
