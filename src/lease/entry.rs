//! What a journal record can say: a closed list.
//!
//! Times in entries are data (an owner's wish, the store's date at that moment); the fold compares them
//! with each other and never with a clock.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;
use crate::ids::{ArtifactId, DecisionId};
use crate::lease::names::{OwnerGeneration, OwnerName, Reason, TransactionId};

/// One entry of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Entry {
    /// Begins the journal: the first entry of record 0, and nowhere else.
    Genesis {
        /// What a reader has to know to fold this journal; none so far.
        features: Vec<String>,
    },
    /// A lease is claimed; it protects from here on, without end, until it is decided.
    Prepared(Box<Prepared>),
    /// The owner holds the reference; the lease protects until its end or release.
    Committed {
        /// The lease.
        transaction_id: TransactionId,
        /// The owner's name of the state in which it holds the reference.
        owner_generation: Option<OwnerGeneration>,
    },
    /// The reference never came to be.
    Aborted {
        /// The lease.
        transaction_id: TransactionId,
        /// How that is known.
        why: AbortReason,
    },
    /// The lease's end moves into the future.
    Extended {
        /// The lease.
        transaction_id: TransactionId,
        /// The new end; `null` is later than every time.
        retain_until: Option<Timestamp>,
    },
    /// The reference is gone.
    Released {
        /// The lease.
        transaction_id: TransactionId,
        /// How that is known.
        why: ReleaseReason,
    },
    /// The artifact will be deleted; irrevocable.
    Condemned(Box<Condemned>),
    /// The artifact's bytes are gone.
    Deleted {
        /// The artifact.
        artifact_id: ArtifactId,
        /// What the collector met.
        outcome: DeleteOutcome,
    },
    /// Somebody used the artifact; it is as good as young.
    Touched {
        /// The artifact.
        artifact_id: ArtifactId,
    },
    /// An operator has looked at the ineffective entries up to `seq`: they make nothing suspect any more.
    Cleared {
        /// Below the record's own sequence number.
        seq: u64,
        /// The operator's words.
        reason: Option<Reason>,
    },
    /// Occupies a slot, so that what was sent to it before can never land.
    Noop,
}

/// A claimed lease: the intent as it was stated, and the artifact as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The owner's name of this lease.
    pub transaction_id: TransactionId,
    /// Who will hold the reference.
    pub owner: OwnerName,
    /// In which order the owner publishes.
    pub mode: OwnerMode,
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// Digest of its bytes, as claimed and as its manifest says.
    pub sha256: Sha256Digest,
    /// Size of its bytes.
    pub size_bytes: u64,
    /// The store's ETag of its body, as its manifest says.
    pub etag: String,
    /// The store's version of its body, where it has versions.
    pub version_id: Option<String>,
    /// How many references the owner will hold; at least 1.
    pub reference_count: u64,
    /// When the owner will not need it any more; `null`: never.
    pub retain_until: Option<Timestamp>,
    /// Why a person holds it; on holds only.
    pub reason: Option<Reason>,
}

/// In which order an owner publishes its reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerMode {
    /// Prepared, published, committed: only the owner can say that a publication will never come.
    OwnerFenced,
    /// Prepared, committed, published: the journal alone decides between committed and aborted.
    CommitFirst,
}

/// How it is known that a prepared lease will never be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    /// The owner refused the publication, with nothing in flight.
    Rejected,
    /// The owner sealed its absence.
    Sealed,
    /// Nobody committed in time; for owners that publish after the commit only.
    Timeout,
    /// An operator says so.
    Operator,
}

/// How it is known that a committed lease's reference is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The owner removed it.
    Removed,
    /// Its end has passed.
    Expired {
        /// The store's date when that was seen.
        server_date: Timestamp,
    },
    /// An operator says so.
    Operator,
}

/// The decision to delete an artifact, and everything that its tombstone will say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condemned {
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// The call record that led to it.
    pub decision_id: Option<DecisionId>,
    /// Digest of its bytes, where a manifest said so.
    pub sha256: Option<Sha256Digest>,
    /// Size of its bytes, where known.
    pub size_bytes: Option<u64>,
    /// The store's ETag of its body.
    pub etag: Option<String>,
    /// The store's version of its body, where it has versions.
    pub version_id: Option<String>,
    /// The checksum that the store kept of its body, as `algorithm:value`.
    pub store_checksum: Option<String>,
    /// The store's version of its manifest, which its tombstone replaces.
    pub manifest_version_id: Option<String>,
    /// Why.
    pub why: CondemnReason,
    /// When, by the store's date.
    pub server_date: Timestamp,
    /// The plan that proposed it; none for an erase.
    pub plan_id: Option<String>,
}

/// Why an artifact is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CondemnReason {
    /// Nothing referred to it for longer than the orphan TTL.
    Expired,
    /// Somebody asked for it; final.
    Erased,
}

/// What a collector met when it deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeleteOutcome {
    /// It deleted the bytes.
    Deleted,
    /// They were gone.
    AlreadyMissing,
}

/// The names of all entries, for telling an unknown one (a newer version wrote it) from a broken one.
pub const OPS: &[&str] = &[
    "aborted",
    "cleared",
    "committed",
    "condemned",
    "deleted",
    "extended",
    "genesis",
    "noop",
    "prepared",
    "released",
    "touched",
];

impl Entry {
    /// Returns the entry's name in the encoding.
    pub const fn op(&self) -> &'static str {
        match self {
            Self::Genesis { .. } => "genesis",
            Self::Prepared(_) => "prepared",
            Self::Committed { .. } => "committed",
            Self::Aborted { .. } => "aborted",
            Self::Extended { .. } => "extended",
            Self::Released { .. } => "released",
            Self::Condemned(_) => "condemned",
            Self::Deleted { .. } => "deleted",
            Self::Touched { .. } => "touched",
            Self::Cleared { .. } => "cleared",
            Self::Noop => "noop",
        }
    }

    /// Returns the lease that the entry names.
    pub fn transaction_id(&self) -> Option<&TransactionId> {
        match self {
            Self::Prepared(prepared) => Some(&prepared.transaction_id),
            Self::Committed { transaction_id, .. }
            | Self::Aborted { transaction_id, .. }
            | Self::Extended { transaction_id, .. }
            | Self::Released { transaction_id, .. } => Some(transaction_id),
            Self::Genesis { .. }
            | Self::Condemned(_)
            | Self::Deleted { .. }
            | Self::Touched { .. }
            | Self::Cleared { .. }
            | Self::Noop => None,
        }
    }

    /// Returns the artifact that the entry itself names.
    pub fn artifact_id(&self) -> Option<ArtifactId> {
        match self {
            Self::Prepared(prepared) => Some(prepared.artifact_id),
            Self::Condemned(condemned) => Some(condemned.artifact_id),
            Self::Deleted { artifact_id, .. } | Self::Touched { artifact_id } => Some(*artifact_id),
            Self::Genesis { .. }
            | Self::Committed { .. }
            | Self::Aborted { .. }
            | Self::Extended { .. }
            | Self::Released { .. }
            | Self::Cleared { .. }
            | Self::Noop => None,
        }
    }
}
