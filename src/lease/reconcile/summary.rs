//! What a reconciliation of many leases adds up to.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lease::owner::Status;

/// The encoding of a stored summary.
const VERSION: u64 = 1;

/// The sums of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Journals that were opened.
    pub journals: u64,
    /// Leases that were looked at.
    pub leases: u64,
    /// How many of them have each status; those that none has are left out.
    pub statuses: BTreeMap<Status, u64>,
    /// Leases whose artifact, or a part of it, is not there.
    pub missing_referenced: u64,
    /// Leases that could not be worked on: the journal or the store did not answer.
    pub failed: u64,
    /// Journals that cannot be read.
    pub unreadable: u64,
    /// Leases that are prepared still.
    pub pending: u64,
    /// Whether a bound ended the run before it had seen everything.
    pub is_cut: bool,
}

impl Summary {
    /// Returns how many leases have a status.
    pub fn of(&self, status: Status) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Returns whether a person has to look at something.
    pub fn has_alarm(&self) -> bool {
        let is_alarm = |status: &Status| status.is_alarm() && self.of(*status) > 0;
        self.missing_referenced > 0 || Status::ALL.iter().any(is_alarm)
    }

    /// Returns whether nothing is left: all decided, all seen, no alarm.
    pub fn is_clean(&self) -> bool {
        !self.is_cut
            && !self.has_alarm()
            && self.pending == 0
            && self.failed == 0
            && self.unreadable == 0
    }

    pub(super) fn add(&mut self, status: Status, is_missing: bool, is_prepared: bool) {
        self.leases += 1;
        *self.statuses.entry(status).or_default() += 1;
        self.missing_referenced += u64::from(is_missing);
        self.pending += u64::from(is_prepared);
    }
}

/// The summary of the last run over the whole store, as it is kept there: what every replica's metrics
/// show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The encoding.
    pub v: u64,
    /// When the run ended.
    pub ended_at: Timestamp,
    /// Its sums.
    pub summary: Summary,
}

impl Kept {
    /// Describes a run that ended now.
    pub const fn new(ended_at: Timestamp, summary: Summary) -> Self {
        Self {
            v: VERSION,
            ended_at,
            summary,
        }
    }

    /// Reads a kept summary; `None` for what another version wrote.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let kept: Self = serde_json::from_slice(bytes).ok()?;
        (kept.v == VERSION).then_some(kept)
    }

    /// Returns the stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and words serialise")
    }
}
