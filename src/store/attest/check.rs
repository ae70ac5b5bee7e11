//! What was tried and what was seen; facts only, no judgement.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AttestOptions, Diagnosis};
use crate::store::Versioning;
use crate::store::probe::BucketFacts;

/// One thing that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// A second create of a key is refused and changes nothing.
    CreateTwice,
    /// Of many creators at once exactly one wins, and its bytes stay.
    CreateRace,
    /// A writer whose body comes late does not undo one that was faster.
    CreateSlowWriter,
    /// A put with `If-Match` takes effect on the right ETag only.
    ReplaceIfMatch,
    /// Compare-and-swap workers reach the exact count.
    ReplaceRace,
    /// A delete without a condition deletes, and may be repeated.
    DeletePlain,
    /// A delete with a stale `If-Match` is refused and the object stays.
    DeleteIfMatch,
    /// Stale deletes against an overwrite lose no acknowledged write.
    DeleteRace,
    /// A delete of an old version keeps the newer one.
    DeleteVersion,
    /// What was written or deleted is seen at once, on every endpoint.
    ReadAfterWrite,
    /// A listing shows at once what was written or deleted.
    ListAfterWrite,
    /// A conditional read of an unchanged object answers 304.
    ConditionalGet,
    /// A conditional read of a changed object brings the new bytes.
    ChangedGet,
    /// Bytes come back as they were sent, whole and in part.
    ByteFidelity,
    /// A multipart upload becomes its parts' bytes, and can be aborted.
    Multipart,
    /// A body that is not its checksum's is refused and not stored.
    ChecksumVerified,
    /// The store tells the checksum that it keeps.
    ChecksumKept,
    /// Whether the bucket keeps versions is told.
    Versioning,
}

impl CheckName {
    /// Every check, in the order of the table.
    pub const ALL: [Self; 18] = [
        Self::CreateTwice,
        Self::CreateRace,
        Self::CreateSlowWriter,
        Self::ReplaceIfMatch,
        Self::ReplaceRace,
        Self::DeletePlain,
        Self::DeleteIfMatch,
        Self::DeleteRace,
        Self::DeleteVersion,
        Self::ReadAfterWrite,
        Self::ListAfterWrite,
        Self::ConditionalGet,
        Self::ChangedGet,
        Self::ByteFidelity,
        Self::Multipart,
        Self::ChecksumVerified,
        Self::ChecksumKept,
        Self::Versioning,
    ];

    /// Returns what the store is asked to do, for the table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CreateTwice => "create refuses a taken key",
            Self::CreateRace => "create has one winner in a race",
            Self::CreateSlowWriter => "create holds against a slow writer",
            Self::ReplaceIfMatch => "PUT If-Match is exact",
            Self::ReplaceRace => "PUT If-Match is exact in a race",
            Self::DeletePlain => "DELETE deletes",
            Self::DeleteIfMatch => "DELETE If-Match is exact",
            Self::DeleteRace => "DELETE If-Match is exact in a race",
            Self::DeleteVersion => "DELETE ?versionId keeps newer versions",
            Self::ReadAfterWrite => "reads see writes at once",
            Self::ListAfterWrite => "listings see writes at once",
            Self::ConditionalGet => "unchanged objects answer 304",
            Self::ChangedGet => "changed objects answer their bytes",
            Self::ByteFidelity => "bytes come back as sent",
            Self::Multipart => "multipart uploads work",
            Self::ChecksumVerified => "wrong checksums are refused",
            Self::ChecksumKept => "checksums are kept and told",
            Self::Versioning => "versioning state is told",
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should be.
    Passed,
    /// Not as it should be: the store did something else and said that it had worked, or lost data.
    Failed,
    /// The store, or our way to it, says that it cannot.
    Unsupported,
    /// The credentials may not.
    Denied,
    /// It could not be found out.
    Unknown,
    /// It was not tried: it means nothing here, or an earlier check decided.
    Skipped,
}

/// A check's end and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The end.
    pub outcome: Outcome,
    /// What was seen, for people.
    pub evidence: String,
}

impl Check {
    /// Builds a check's end.
    pub fn new(outcome: Outcome, evidence: impl Into<String>) -> Self {
        Self {
            outcome,
            evidence: evidence.into(),
        }
    }

    pub(super) fn passed(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Passed, evidence)
    }

    pub(super) fn failed(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, evidence)
    }

    pub(super) fn unsupported(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Unsupported, evidence)
    }

    pub(super) fn unknown(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Unknown, evidence)
    }
}

/// Whether the bucket keeps versions, as far as it told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Never had versions.
    NeverEnabled,
    /// Every write makes a version.
    Enabled,
    /// Old versions are there; new writes replace the version `null`.
    Suspended,
    /// The question was refused or not answered.
    Unknown,
}

impl From<Option<Versioning>> for Mode {
    fn from(versioning: Option<Versioning>) -> Self {
        match versioning {
            Some(Versioning::NeverEnabled) => Self::NeverEnabled,
            Some(Versioning::Enabled) => Self::Enabled,
            Some(Versioning::Suspended) => Self::Suspended,
            None => Self::Unknown,
        }
    }
}

/// How far an endpoint's clock is ahead of this host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The endpoint's name.
    pub endpoint: String,
    /// Milliseconds ahead (negative: behind), true to about a second; `None` where the reply had no
    /// date.
    pub ahead_ms: Option<i64>,
}

/// Everything that one attestation saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    /// What was attested ([`Target::fingerprint`](super::Target::fingerprint)).
    pub fingerprint: String,
    /// When, by the store's clock where it told one, else by the host's.
    pub measured_at: Timestamp,
    /// Writers of one key.
    pub contenders: usize,
    /// Races for a key whose end was clear.
    pub rounds: usize,
    /// Set where the store could not be reached at all.
    pub unreachable: Option<Diagnosis>,
    /// Whether the bucket keeps versions.
    pub mode: Mode,
    /// The endpoints' clocks.
    pub clocks: Vec<ClockReading>,
    /// What the bucket says of itself.
    pub facts: BucketFacts,
    /// Permissions that the credentials lack.
    pub denied: BTreeSet<String>,
    /// How each check ended; one that is absent was skipped.
    pub checks: BTreeMap<CheckName, Check>,
    /// Probe objects, versions and uploads that could not be removed.
    pub left_behind: u64,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl Observations {
    /// Begins an attestation in which nothing was seen yet.
    pub fn new(fingerprint: String, options: AttestOptions, now: Timestamp) -> Self {
        Self {
            fingerprint,
            measured_at: now,
            contenders: options.contenders,
            rounds: 0,
            unreachable: None,
            mode: Mode::Unknown,
            clocks: Vec::new(),
            facts: BucketFacts::default(),
            denied: BTreeSet::new(),
            checks: BTreeMap::new(),
            left_behind: 0,
            elapsed_ms: 0,
        }
    }

    /// Notes how a check ended.
    pub fn note(&mut self, name: CheckName, check: Check) {
        self.checks.insert(name, check);
    }

    /// Returns how a check ended.
    pub fn outcome(&self, name: CheckName) -> Outcome {
        self.checks
            .get(&name)
            .map_or(Outcome::Skipped, |check| check.outcome)
    }

    /// Returns whether a check was made and passed.
    pub fn passed(&self, name: CheckName) -> bool {
        self.outcome(name) == Outcome::Passed
    }

    /// Returns what a check saw.
    pub fn evidence(&self, name: CheckName) -> &str {
        self.checks
            .get(&name)
            .map_or("", |check| check.evidence.as_str())
    }
}
