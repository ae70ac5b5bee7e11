//! Checkpoints: the folded state through one record, so that an open does not read the whole journal.
//!
//! A checkpoint is a pure function of the log: no host, no time, no other checkpoint stands in it, so
//! whoever writes the checkpoint through a record writes the same bytes, and other bytes there mean
//! that two versions of the product fold differently. It starts a search and is never the root of a
//! deletion: destructive work folds from the checkpoint before it and compares.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;
use crate::ids::{SessionId, Tenant};
use crate::lease::canonical;
use crate::lease::chain::Chain;
use crate::lease::record::check_feature;
use crate::lease::state::State;
use crate::limits::{CHECKPOINT_INTERVAL_RECORDS, CHECKPOINT_MAX_INTERVAL_RECORDS};

/// The version of the encoding; another one is not read.
pub const CHECKPOINT_VERSION: u64 = 1;

/// One checkpoint, read and checked.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The prefix that it stands for.
    pub chain: Chain,
    /// SHA-256 of the state's canonical encoding.
    pub state_sha256: Sha256Digest,
    /// Size of the encoded checkpoint.
    pub size_bytes: u64,
}

/// Why a checkpoint is not believed. It is passed over then: the records say everything that it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not a checkpoint, or damaged.
    #[error("unreadable checkpoint: {0}")]
    Unreadable(String),
    /// Of another journal or place.
    #[error("a checkpoint of another place: {0}")]
    Foreign(String),
    /// Written by a newer version.
    #[error("not supported by this version: {0}")]
    Unsupported(String),
}

#[derive(Serialize, Deserialize)]
struct Stored {
    v: u64,
    tenant: Tenant,
    session: SessionId,
    /// The last record that is folded in, and its hash.
    seq: u64,
    sha256: Sha256Digest,
    state_sha256: Sha256Digest,
    state: State,
}

/// Returns the SHA-256 of a state's canonical encoding: equal on every replica that folded the same
/// records.
pub fn state_sha256(state: &State) -> Sha256Digest {
    let value = serde_json::to_value(state).expect("text, numbers and lists always serialise");
    // Every number of a state was read from, or counts, records whose numbers were in bounds.
    let bytes = canonical::encode(&value).expect("the numbers of a state are in bounds");
    Sha256Digest::of(&bytes)
}

impl Checkpoint {
    /// Returns the stored form of the checkpoint through the last record of `chain`; `None` where
    /// there is no record.
    pub fn encode(chain: &Chain) -> Option<Vec<u8>> {
        let stored = Stored {
            v: CHECKPOINT_VERSION,
            tenant: chain.tenant().clone(),
            session: chain.session().clone(),
            seq: chain.next_seq().checked_sub(1)?,
            sha256: chain.head(),
            state_sha256: state_sha256(chain.state()),
            state: State::clone(chain.state()),
        };
        let value = serde_json::to_value(stored).expect("text, numbers and lists always serialise");
        Some(canonical::encode(&value).expect("the numbers of a state are in bounds"))
    }

    /// Reads the checkpoint through record `seq`.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn decode(
        bytes: &[u8],
        tenant: &Tenant,
        session: &SessionId,
        seq: u64,
    ) -> Result<Self, CheckpointError> {
        let unreadable = |detail: String| CheckpointError::Unreadable(detail);
        let value = canonical::decode(bytes).map_err(|error| unreadable(error.to_string()))?;
        let version = value["v"].as_u64();
        let version = version.ok_or_else(|| unreadable("no version".to_owned()))?;
        if version != CHECKPOINT_VERSION {
            let detail = format!("checkpoint version {version}");
            return Err(CheckpointError::Unsupported(detail));
        }
        let stored: Stored =
            serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))?;
        if (&stored.tenant, &stored.session, stored.seq) != (tenant, session, seq) {
            let detail = format!("record {} of session `{}`", stored.seq, stored.session);
            return Err(CheckpointError::Foreign(detail));
        }
        for feature in &stored.state.features {
            check_feature(feature).map_err(CheckpointError::Unsupported)?;
        }
        let state_sha256 = state_sha256(&stored.state);
        if state_sha256 != stored.state_sha256 {
            return Err(unreadable("the state has another digest".to_owned()));
        }
        let next_seq = seq.checked_add(1);
        let next_seq = next_seq.ok_or_else(|| unreadable("no record follows it".to_owned()))?;
        let state = Arc::new(stored.state);
        let chain = Chain::resume(
            stored.tenant,
            stored.session,
            next_seq,
            stored.sha256,
            state,
        );
        if Self::encode(&chain).as_deref() != Some(bytes) {
            return Err(unreadable("not the encoding of what it says".to_owned()));
        }
        Ok(Self {
            chain,
            state_sha256,
            size_bytes: bytes.len() as u64,
        })
    }
}

/// What is known of the way since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Records since.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Size of the last checkpoint; 0 where there is none.
    pub checkpoint_bytes: u64,
}

impl Tail {
    /// Returns whether whoever appended record `seq` has to write the checkpoint through it.
    ///
    /// Only at every 64th record, so that of many writers exactly one finds it due. A large state is
    /// not written again before its tail has an eighth of its size, and after 512 records always.
    pub const fn is_due(&self, seq: u64) -> bool {
        let is_place = (seq + 1).is_multiple_of(CHECKPOINT_INTERVAL_RECORDS);
        let is_worth_it = self.bytes.saturating_mul(8) >= self.checkpoint_bytes;
        is_place
            && self.records >= CHECKPOINT_INTERVAL_RECORDS
            && (is_worth_it || self.records >= CHECKPOINT_MAX_INTERVAL_RECORDS)
    }

    /// Returns whether an open that folded this tail writes a checkpoint for the next one.
    pub const fn is_long(&self) -> bool {
        self.records > CHECKPOINT_INTERVAL_RECORDS
    }
}

#[cfg(test)]
mod tests;
