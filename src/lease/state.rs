//! What a journal's records add up to: the leases, the artifacts that they name, and which entries had
//! no effect.
//!
//! A pure function of the records, equal on every replica; its canonical encoding stands in checkpoints.
//! No clock is read here: where a question depends on one, the time is a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::ArtifactId;
use crate::lease::entry::{
    AbortReason, Condemned, DeleteOutcome, OwnerMode, Prepared, ReleaseReason,
};
use crate::lease::names::{OwnerGeneration, TransactionId};

/// The folded state of one journal. Cheap to clone: leases and artifacts are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub(in crate::lease) features: Vec<String>,
    pub(in crate::lease) leases: BTreeMap<TransactionId, Arc<Lease>>,
    pub(in crate::lease) artifacts: BTreeMap<ArtifactId, Arc<ArtifactRecord>>,
    pub(in crate::lease) ineffective: BTreeSet<u64>,
    pub(in crate::lease) as_of: Option<Timestamp>,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The intent as it was prepared.
    pub intent: Prepared,
    /// Where it stands.
    pub phase: Phase,
    /// Its end now: the intent's, or the last extension; `None` is later than every time.
    pub retain_until: Option<Timestamp>,
    /// The owner's generation as its commit named it.
    pub owner_generation: Option<OwnerGeneration>,
    /// The record that prepared it.
    pub prepared_seq: u64,
    /// That record's `as_of`: at most ten minutes before it was prepared, by the store's date.
    pub prepared_as_of: Option<Timestamp>,
    /// The last record that changed it.
    pub changed_seq: u64,
}

/// Where a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Claimed; protects without end.
    Prepared,
    /// The reference is held; protects until an entry ends it.
    Committed,
    /// The reference never came to be.
    Aborted(AbortReason),
    /// The reference is gone.
    Released(ReleaseReason),
}

impl Phase {
    /// Returns whether the lease keeps its artifact.
    pub const fn protects(self) -> bool {
        matches!(self, Self::Prepared | Self::Committed)
    }

    /// Returns the phase's name: `prepared`, `committed`, `aborted` or `released`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Committed => "committed",
            Self::Aborted(_) => "aborted",
            Self::Released(_) => "released",
        }
    }
}

impl Lease {
    /// Returns whether an entry with this end would be later than the lease's own.
    pub fn is_later(&self, retain_until: Option<Timestamp>) -> bool {
        match (self.retain_until, retain_until) {
            // Nothing is later than an endless lease.
            (None, _) => false,
            (Some(_), None) => true,
            (Some(old), Some(new)) => new > old,
        }
    }

    /// Returns whether the owner publishes after its commit.
    pub fn is_commit_first(&self) -> bool {
        matches!(self.intent.mode, OwnerMode::CommitFirst)
    }
}

/// What the journal says of one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// Whether it lives.
    pub status: ArtifactStatus,
    /// The last record with an effective entry about it or one of its leases.
    pub last_seq: u64,
    /// The last lease or touch entry; `None` where it was only ever condemned.
    pub last_reference: Option<Reference>,
    /// Its leases that protect it, found again from the leases when a checkpoint is read.
    pub(in crate::lease) protectors: BTreeSet<TransactionId>,
}

/// When an artifact was last referred to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The record.
    pub seq: u64,
    /// The record's `as_of`: at most ten minutes before it was written, by the store's date.
    pub as_of: Option<Timestamp>,
}

/// Whether an artifact lives. There is no way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactStatus {
    /// It lives.
    Live,
    /// It will be deleted.
    Condemned(Box<Condemned>),
    /// It is deleted.
    Deleted(DeleteOutcome),
}

/// What the leases on one artifact add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// References, prepared ones included.
    pub reference_count: u64,
    /// The latest end; `None` where any of them has none, or is only prepared.
    pub retain_until: Option<Timestamp>,
}

impl State {
    /// Returns a lease.
    pub fn lease(&self, transaction_id: &TransactionId) -> Option<&Lease> {
        self.leases.get(transaction_id).map(Arc::as_ref)
    }

    /// Returns every lease, ended ones included, by transaction id.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().map(Arc::as_ref)
    }

    /// Returns what the journal says of an artifact; `None` where it says nothing (it may live).
    pub fn artifact(&self, artifact_id: ArtifactId) -> Option<&ArtifactRecord> {
        self.artifacts.get(&artifact_id).map(Arc::as_ref)
    }

    /// Returns every artifact that the journal names.
    pub fn artifacts(&self) -> impl Iterator<Item = (ArtifactId, &ArtifactRecord)> {
        let entries = self.artifacts.iter();
        entries.map(|(artifact_id, record)| (*artifact_id, record.as_ref()))
    }

    /// Returns whether an artifact is neither condemned nor deleted.
    pub fn is_live(&self, artifact_id: ArtifactId) -> bool {
        self.artifact(artifact_id)
            .is_none_or(|record| record.status == ArtifactStatus::Live)
    }

    /// Returns the leases that protect an artifact.
    pub fn protectors(&self, artifact_id: ArtifactId) -> impl Iterator<Item = &Lease> {
        let record = self.artifact(artifact_id);
        let names = record.into_iter().flat_map(|record| &record.protectors);
        names.filter_map(|name| self.lease(name))
    }

    /// Returns whether any lease protects an artifact. A lease past its end protects until an entry
    /// says so.
    pub fn is_protected(&self, artifact_id: ArtifactId) -> bool {
        self.protectors(artifact_id).next().is_some()
    }

    /// Adds up the leases on an artifact: prepared ones, and committed ones whose end lies after `now`.
    ///
    /// Counts add up; the end is the latest, and none where any has none. For people and reports: what
    /// may be deleted is decided by [`State::is_protected`].
    pub fn claim(&self, artifact_id: ArtifactId, now: Timestamp) -> Option<Claim> {
        let end_of = |lease: &Lease| match lease.phase {
            Phase::Committed => lease.retain_until,
            Phase::Prepared | Phase::Aborted(_) | Phase::Released(_) => None,
        };
        self.protectors(artifact_id)
            .map(|lease| (lease.intent.reference_count, end_of(lease)))
            .filter(|(_, end)| end.is_none_or(|end| end > now))
            .map(|(reference_count, retain_until)| Claim {
                reference_count,
                retain_until,
            })
            .reduce(|a, b| Claim {
                reference_count: a.reference_count.saturating_add(b.reference_count),
                retain_until: a.retain_until.zip(b.retain_until).map(|(a, b)| a.max(b)),
            })
    }

    /// Returns the records that hold an entry without effect and were not cleared, in order.
    pub fn ineffective(&self) -> impl Iterator<Item = u64> {
        self.ineffective.iter().copied()
    }

    /// Returns whether the journal holds entries without effect: every record is written only after its
    /// entries were evaluated, so one of them is a defect somewhere. Nothing is destroyed on the word
    /// of such a journal until an operator has cleared it.
    pub fn is_suspect(&self) -> bool {
        !self.ineffective.is_empty()
    }

    /// Returns the latest `as_of` of all records.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }
}

mod encoding;
