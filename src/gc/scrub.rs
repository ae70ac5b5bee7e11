//! Reading bodies back against their manifests, and looking for leases whose artifact is gone.
//!
//! A scrub deletes nothing and changes nothing. It reads at a bounded rate, all bodies or a random sample;
//! that a body or a manifest is there is looked at for all of them. Each session is met once: its
//! artifacts, and its journal, from which is known what refers to them. The walk goes over the journals
//! too, so that a lease is seen of which nothing else is left.

use serde::Serialize;

use jiff::Timestamp;
use std::time::Duration;

use crate::gc::plan::Scope;
use crate::gc::status::Tally;
use crate::gc::store_clock::ClockError;
use crate::gc::walk::WalkError;
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::SCRUB_FINDINGS;
use crate::store::StoreError;

mod body;
mod sample;
mod session;
mod walk;

pub use body::Pace;

/// Which bodies are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Every one.
    All,
    /// So many, chosen at random.
    Sample(usize),
}

/// What a scrub looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrubRequest {
    /// Where.
    pub scope: Scope,
    /// Which bodies are read.
    pub depth: Depth,
    /// Bytes of bodies per second.
    pub bytes_per_second: u64,
}

/// What is wrong with an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// Its bytes are not those that were saved.
    Corrupt,
    /// Its manifest lives, but its body is not there.
    Missing,
    /// A lease protects it, and its manifest or its body is not there.
    MissingReferenced,
    /// It could not be read, or its journal could not: nothing is known of it.
    Unreadable,
}

impl Damage {
    /// Every one.
    pub const ALL: [Self; 4] = [
        Self::Corrupt,
        Self::Missing,
        Self::MissingReferenced,
        Self::Unreadable,
    ];

    /// Returns the name in reports and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Corrupt => "corrupt",
            Self::Missing => "missing",
            Self::MissingReferenced => "missing_referenced",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One damaged artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScrubFinding {
    /// Its tenant.
    pub tenant: Tenant,
    /// `{skey}.{aid}`; a session alone where its journal is meant.
    pub artifact: String,
    /// What is wrong.
    pub damage: Damage,
    /// Whether a lease protects it; none where that cannot be told.
    pub is_referenced: Option<bool>,
    /// What was seen.
    pub detail: String,
}

impl ScrubFinding {
    /// Returns whether a memory refers to what is damaged, or may: somebody has to look now.
    pub fn is_alarm(&self) -> bool {
        match self.damage {
            Damage::MissingReferenced => true,
            Damage::Corrupt | Damage::Missing => self.is_referenced != Some(false),
            Damage::Unreadable => self.is_referenced == Some(true),
        }
    }
}

/// What a scrub saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScrubReport {
    /// The store's date when it began.
    pub server_date: Timestamp,
    /// Where it looked.
    pub scope: Scope,
    /// Artifacts whose manifest and body were listed.
    pub artifacts: u64,
    /// Bodies that were read and are what was saved.
    pub sound: Tally,
    /// Journals that were opened.
    pub journals: u64,
    /// Damaged artifacts.
    pub damaged: u64,
    /// Those of them that something refers to, or may.
    pub alarms: u64,
    /// Each damage with its number, 0 included.
    pub counts: std::collections::BTreeMap<&'static str, u64>,
    /// The first ten thousand of them.
    pub findings: Vec<ScrubFinding>,
}

impl ScrubReport {
    fn new(server_date: Timestamp, scope: Scope) -> Self {
        let counts = Damage::ALL.map(|damage| (damage.as_str(), 0));
        Self {
            server_date,
            scope,
            artifacts: 0,
            sound: Tally::default(),
            journals: 0,
            damaged: 0,
            alarms: 0,
            counts: counts.into_iter().collect(),
            findings: Vec::new(),
        }
    }

    fn find(&mut self, finding: ScrubFinding) {
        tracing::error!(
            artifact = finding.artifact,
            damage = finding.damage.as_str(),
            "{}",
            finding.detail
        );
        self.damaged += 1;
        self.alarms += u64::from(finding.is_alarm());
        *self.counts.entry(finding.damage.as_str()).or_default() += 1;
        if self.findings.len() < SCRUB_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// A scrub could not be done to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScrubError {
    /// The store's date cannot be told or believed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A listing could not be read to its end.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A body to read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    tenant: Tenant,
    artifact: ArtifactRef,
}

/// Time between two looks of a body that is not there: the listing may be older than a deletion.
const ABSENT_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
