//! One record of a journal: its encoding, its hash, and what is checked before a word of it is believed.
//!
//! A record is canonical JSON (`lease/canonical.rs`). **Its hash is the SHA-256 of its stored bytes**:
//! nothing is left out of it and nothing is encoded again to compute it, so `sha256sum` audits a
//! journal. Tenant, session and sequence number stand inside the bytes, so that a copied record never
//! answers in another place; a fresh nonce makes two writers' records differ even where they say the
//! same.
//!
//! A record that cannot be believed is one of two things, never silently skipped: broken
//! ([`DecodeError::is_unsupported`] is false) or written by a newer version.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::digest::{Sha256Digest, tagged_hash};
use crate::ids::{SessionId, Tenant};
use crate::lease::canonical::{self, CanonicalError, MAX_INTEGER};
use crate::lease::entry::{Entry, OPS};
use crate::limits::{MAX_RECORD_BYTES, MAX_RECORD_ENTRIES};

/// The version of the encoding; another one is not read.
pub const RECORD_VERSION: u64 = 1;

/// What a reader of this version knows about beyond [`RECORD_VERSION`].
pub const KNOWN_FEATURES: &[&str] = &[];

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The journal's tenant.
    pub tenant: Tenant,
    /// The journal's session.
    pub session: SessionId,
    /// Its place, from 0.
    pub seq: u64,
    /// Hash of the record before it, or of the journal's name ([`genesis_hash`]).
    pub prev: Sha256Digest,
    /// The process that wrote it.
    pub writer: Uuid,
    /// Fresh for every batch that is aimed at a slot.
    pub nonce: Uuid,
    /// The store's own date as the writer last saw it, at most ten minutes earlier.
    pub as_of: Option<Timestamp>,
    /// What it says, in order.
    pub entries: Vec<Entry>,
}

/// A record's encoding is out of bounds; a defect of whoever built it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// No entry, or more than [`MAX_RECORD_ENTRIES`].
    #[error("a record has 1 to {MAX_RECORD_ENTRIES} entries, not {0}")]
    EntryCount(usize),
    /// More than [`MAX_RECORD_BYTES`].
    #[error("a record has at most {MAX_RECORD_BYTES} bytes, not {0}")]
    TooLarge(usize),
    /// A number that not every reader keeps.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// Stored bytes are not the record that has to stand there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not the ones whose hash is known.
    #[error("the stored bytes hash to {actual}, not {expected}")]
    BadHash {
        /// What a later record, a checkpoint or a receipt says.
        expected: Sha256Digest,
        /// What they hash to.
        actual: Sha256Digest,
    },
    /// Not a record at all, or not spelled as one.
    #[error("unreadable: {0}")]
    Unreadable(String),
    /// A record of another tenant or session.
    #[error("a record of session `{session}` of tenant `{tenant}`")]
    ForeignSession {
        /// What it says.
        tenant: String,
        /// What it says.
        session: String,
    },
    /// A record of another place in this journal.
    #[error("says that it is record {actual}, at the place of record {expected}")]
    WrongSequence {
        /// Its place.
        expected: u64,
        /// What it says.
        actual: u64,
    },
    /// It follows another record than the one before it.
    #[error("follows {actual}, but the record before it is {expected}")]
    BadLink {
        /// The hash of the record before it.
        expected: Sha256Digest,
        /// What it says.
        actual: Sha256Digest,
    },
    /// Written by a newer version: valid perhaps, but not to be folded, appended to or collected here.
    #[error("not supported by this version: {0}")]
    Unsupported(String),
}

impl DecodeError {
    /// Returns whether a newer version may read it: the journal is read-only here, not broken.
    pub const fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported(_))
    }
}

/// What has to be true of the record at a place.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The journal's tenant.
    pub tenant: &'a Tenant,
    /// The journal's session.
    pub session: &'a SessionId,
    /// Its place.
    pub seq: u64,
    /// The hash of the record before it.
    pub prev: Sha256Digest,
    /// Its own hash, where a later record, a checkpoint or a receipt names it.
    pub sha256: Option<Sha256Digest>,
}

/// Returns what the first record of a journal follows: a hash of the journal's name.
pub fn genesis_hash(tenant: &Tenant, session: &SessionId) -> Sha256Digest {
    let fields = [tenant.as_str().as_bytes(), session.as_str().as_bytes()];
    tagged_hash("spillbox/journal/v1", &fields)
}

/// The encoding's members; `canonical` sorts them.
#[derive(Serialize, Deserialize)]
struct Stored {
    v: u64,
    tenant: Tenant,
    session: SessionId,
    seq: u64,
    prev: Sha256Digest,
    writer: Uuid,
    nonce: Uuid,
    as_of: Option<Timestamp>,
    entries: Vec<Entry>,
}

impl Record {
    /// Returns the stored form.
    ///
    /// # Errors
    /// See [`EncodeError`].
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        if !(1..=MAX_RECORD_ENTRIES).contains(&self.entries.len()) {
            return Err(EncodeError::EntryCount(self.entries.len()));
        }
        let stored = Stored {
            v: RECORD_VERSION,
            tenant: self.tenant.clone(),
            session: self.session.clone(),
            seq: self.seq,
            prev: self.prev,
            writer: self.writer,
            nonce: self.nonce,
            as_of: self.as_of,
            entries: self.entries.clone(),
        };
        let value = serde_json::to_value(stored).expect("text, numbers and lists always serialise");
        let bytes = canonical::encode(&value)?;
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(EncodeError::TooLarge(bytes.len()));
        }
        Ok(bytes)
    }

    /// Reads the stored form of the record that `expected` describes.
    ///
    /// # Errors
    /// See [`DecodeError`]; the hash is compared before the bytes are parsed.
    pub fn decode(bytes: &[u8], expected: &Expected<'_>) -> Result<Self, DecodeError> {
        check_bytes(bytes, expected)?;
        let value =
            canonical::decode(bytes).map_err(|error| DecodeError::Unreadable(error.to_string()))?;
        check_place(&value, expected)?;
        check_vocabulary(&value)?;
        let stored: Stored = serde_json::from_value(value)
            .map_err(|error| DecodeError::Unreadable(error.to_string()))?;
        let record = Self {
            tenant: stored.tenant,
            session: stored.session,
            seq: stored.seq,
            prev: stored.prev,
            writer: stored.writer,
            nonce: stored.nonce,
            as_of: stored.as_of,
            entries: stored.entries,
        };
        record.check_entries()?;
        // Members that this version does not know, times and digests in another spelling: whoever
        // changes the encoding changes `v`.
        match record.encode() {
            Ok(again) if again == bytes => Ok(record),
            Ok(_) => Err(DecodeError::Unreadable(
                "not the encoding of what it says".to_owned(),
            )),
            Err(error) => Err(DecodeError::Unreadable(error.to_string())),
        }
    }

    fn check_entries(&self) -> Result<(), DecodeError> {
        let begins = |(index, entry): (usize, &Entry)| {
            matches!(entry, Entry::Genesis { .. }) == (self.seq == 0 && index == 0)
        };
        if !self.entries.iter().enumerate().all(begins) {
            return Err(DecodeError::Unreadable(
                "`genesis` is the first entry of record 0 and no other".to_owned(),
            ));
        }
        let counts_nothing = |entry: &Entry| matches!(entry, Entry::Prepared(prepared) if prepared.reference_count == 0);
        if self.entries.iter().any(counts_nothing) {
            return Err(DecodeError::Unreadable(
                "`reference_count` is at least 1".to_owned(),
            ));
        }
        Ok(())
    }
}

fn check_bytes(bytes: &[u8], expected: &Expected<'_>) -> Result<(), DecodeError> {
    if let Some(known) = expected.sha256 {
        let actual = Sha256Digest::of(bytes);
        if actual != known {
            return Err(DecodeError::BadHash {
                expected: known,
                actual,
            });
        }
    }
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(DecodeError::Unreadable(format!("{} bytes", bytes.len())));
    }
    Ok(())
}

fn check_place(value: &Value, expected: &Expected<'_>) -> Result<(), DecodeError> {
    let missing = |name: &str| DecodeError::Unreadable(format!("no valid `{name}`"));
    let number = |name: &str| value[name].as_u64().ok_or(missing(name));
    let text = |name: &str| value[name].as_str().ok_or(missing(name));
    let version = number("v")?;
    if version != RECORD_VERSION {
        return Err(DecodeError::Unsupported(format!(
            "record version {version}"
        )));
    }
    let (tenant, session) = (text("tenant")?, text("session")?);
    if tenant != expected.tenant.as_str() || session != expected.session.as_str() {
        return Err(DecodeError::ForeignSession {
            tenant: tenant.to_owned(),
            session: session.to_owned(),
        });
    }
    let seq = number("seq")?;
    if seq != expected.seq {
        return Err(DecodeError::WrongSequence {
            expected: expected.seq,
            actual: seq,
        });
    }
    let prev: Sha256Digest = text("prev")?.parse().map_err(|_| missing("prev"))?;
    if prev != expected.prev {
        return Err(DecodeError::BadLink {
            expected: expected.prev,
            actual: prev,
        });
    }
    Ok(())
}

/// Finds what only a newer version knows, so that it is not taken for damage.
fn check_vocabulary(value: &Value) -> Result<(), DecodeError> {
    let Some(entries) = value["entries"].as_array() else {
        return Err(DecodeError::Unreadable("no list of entries".to_owned()));
    };
    for entry in entries {
        let Some(op) = entry["op"].as_str() else {
            return Err(DecodeError::Unreadable("an entry without `op`".to_owned()));
        };
        if !OPS.contains(&op) {
            return Err(DecodeError::Unsupported(format!("entry `{op}`")));
        }
        let features = entry["features"].as_array().map_or(&[][..], Vec::as_slice);
        for feature in features.iter().filter_map(Value::as_str) {
            check_feature(feature).map_err(DecodeError::Unsupported)?;
        }
    }
    Ok(())
}

/// Checks one feature that a journal names at its beginning.
///
/// # Errors
/// What is not supported, in words.
pub fn check_feature(feature: &str) -> Result<(), String> {
    if KNOWN_FEATURES.contains(&feature) {
        Ok(())
    } else {
        Err(format!("feature `{feature}`"))
    }
}

/// Returns whether the encoding keeps this number.
pub const fn is_encodable(number: u64) -> bool {
    number <= MAX_INTEGER
}

#[cfg(test)]
mod tests;
