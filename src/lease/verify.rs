//! Verification: a journal walked from record 0, and what is wrong with it by name.
//!
//! [`checker`] decides purely, record by record; [`walk`] reads the bucket. Nothing else than the stored
//! bytes is believed: no cache, no checkpoint. Checkpoints and the receipts that owners hold are compared
//! with what the walk finds, so that a journal that lost its tail, or was replaced, is noticed.
//!
//! **What a name rests on.** A record does not hold its own hash; its successor does. Where record *n + 1*
//! follows other bytes than the stored record *n*:
//!
//! | Seen | Name |
//! |---|---|
//! | it follows an older record | `bad_link(n+1)` |
//! | a checkpoint or receipt confirms the stored record *n* | `fork(n)` |
//! | record *n + 2* does not follow it either: it was changed itself | `bad_link(n+1)` |
//! | another process wrote it: two were told that slot *n* is theirs | `fork(n)` |
//! | the process that wrote record *n* wrote it: that one knew what it had written | `bad_hash(n)` |
//!
//! A checkpoint or receipt that names another record *n* than the stored one is `fork(n)` where the
//! journal goes on from the stored one, and `bad_hash(n)` where nothing follows.

pub mod checker;
pub mod receipts;
pub mod walk;

use serde::{Serialize, Serializer};

use crate::digest::Sha256Digest;
use crate::lease::finding::{Finding, FindingKind, worst};

/// The last record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Its place.
    pub seq: u64,
    /// SHA-256 of its stored bytes.
    pub sha256: Sha256Digest,
}

/// What a verification says in one word: `ok`, or the name of its worst finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing was found.
    Ok,
    /// This was.
    Found(FindingKind),
}

impl Status {
    /// Sums findings up.
    pub fn of(findings: &[Finding]) -> Self {
        worst(findings).map_or(Self::Ok, |finding| Self::Found(finding.name))
    }

    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Found(kind) => kind.as_str(),
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In one word.
    pub status: Status,
    /// In detail, in the order of the journal; at most [`crate::limits::MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many there were.
    pub findings_total: u64,
    /// Records read.
    pub records: u64,
    /// The last one.
    pub head: Option<Head>,
    /// Checkpoints that were compared.
    pub checkpoints: u64,
    /// Receipts of this session that were checked.
    pub receipts: u64,
    /// Receipts of other sessions, which were not.
    pub receipts_of_other_sessions: u64,
}

#[cfg(test)]
mod tests;
