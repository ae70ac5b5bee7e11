//! One slot of a journal: creating its record, and reading it.
//!
//! A slot is decided only when it is seen occupied. A `412` is compared before it is believed ("was it
//! me?"): an earlier try may have landed. `409`, throttling and lost replies are undecided, and the
//! answer to them is **the same bytes to the same slot again**; anything else could put two records of
//! one batch into the journal. A 404 is never final: the write may still be travelling.

use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout_at};

use crate::lease::pace::undecided_pause;
use crate::store::keys::Key;
use crate::store::register::read_register;
use crate::store::{ObjectStore, Payload, PutMode, StoreError, StoreErrorKind, checksum};

/// How a slot was decided, or not.
#[derive(Debug)]
pub enum Outcome {
    /// It holds our bytes.
    Won {
        /// The store's date of the reply that said so.
        date: Option<Timestamp>,
    },
    /// It holds other bytes.
    Lost(Stored),
    /// Nothing of ours is there, nor on its way.
    Failed(StoreError),
    /// Ours may be there, or may still arrive.
    Unknown(StoreError),
}

/// The record of a slot as it was read.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its bytes.
    pub bytes: Bytes,
    /// The store's date of the reply.
    pub date: Option<Timestamp>,
}

/// What one try said.
enum Tried {
    Decided(Outcome),
    Again(StoreError),
}

/// Creates `key` with `bytes` unless it is there, until that is decided or `deadline` has passed.
///
/// `may_have_landed` says whether these bytes were sent to this slot before. `chance` gives numbers
/// between 0 and 1.
pub async fn decide(
    store: &dyn ObjectStore,
    key: &Key,
    bytes: &Bytes,
    mut may_have_landed: bool,
    deadline: Instant,
    chance: &(dyn Fn() -> f64 + Send + Sync),
) -> Outcome {
    let mut attempt = 0;
    loop {
        let tried = timeout_at(deadline, try_once(store, key, bytes)).await;
        let failure = match tried {
            Ok(Tried::Decided(Outcome::Failed(error))) if may_have_landed => {
                return Outcome::Unknown(error);
            }
            Ok(Tried::Decided(outcome)) => return outcome,
            Ok(Tried::Again(failure)) => failure,
            Err(_) => {
                let detail = "no answer in time";
                let error = StoreError::new(StoreErrorKind::Ambiguous, "put", key, detail);
                return Outcome::Unknown(error);
            }
        };
        may_have_landed |= failure.kind.is_undecided();
        let pause = undecided_pause(attempt, chance());
        if Instant::now() + pause >= deadline {
            return if may_have_landed {
                Outcome::Unknown(failure)
            } else {
                Outcome::Failed(failure)
            };
        }
        sleep(pause).await;
        attempt += 1;
    }
}

async fn try_once(store: &dyn ObjectStore, key: &Key, bytes: &Bytes) -> Tried {
    let payload: Payload = bytes.clone().into();
    let ours = checksum::of_payload(&payload);
    match store.put(key, payload, PutMode::CreateIfAbsent).await {
        Ok(receipt) => Tried::Decided(
            match checksum::contradiction(receipt.checksum.as_deref(), &ours) {
                None => Outcome::Won { date: receipt.date },
                // The slot is taken by bytes that nobody can read: the next fold finds that out.
                Some(detail) => {
                    let kind = StoreErrorKind::Rejected;
                    Outcome::Failed(StoreError::new(kind, "put", key, detail))
                }
            },
        ),
        Err(error) if error.is(StoreErrorKind::AlreadyExists) => match read(store, key).await {
            Ok(Some(found)) if found.bytes == *bytes => {
                Tried::Decided(Outcome::Won { date: found.date })
            }
            Ok(Some(found)) => Tried::Decided(Outcome::Lost(found)),
            // There a moment ago and gone now: an older state was read, and the same bytes again
            // settle it.
            Ok(None) => Tried::Again(StoreError {
                kind: StoreErrorKind::Conflict,
                ..error
            }),
            // The slot is taken, perhaps by an earlier try of ours: that is undecided, whatever
            // the read failed with.
            Err(read_error) => Tried::Again(StoreError {
                kind: StoreErrorKind::Ambiguous,
                ..read_error
            }),
        },
        Err(error) if error.kind.is_transient() => Tried::Again(error),
        Err(error) => Tried::Decided(Outcome::Failed(error)),
    }
}

/// Reads a slot; `None` when the store shows nothing there.
///
/// # Errors
/// Any store error but an absence; a body that ended early.
pub async fn read(store: &dyn ObjectStore, key: &Key) -> Result<Option<Stored>, StoreError> {
    let Some(found) = read_register(store, key).await? else {
        return Ok(None);
    };
    if found.bytes.len() as u64 != found.meta.size_bytes {
        let detail = "the body ended early";
        return Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "get",
            key,
            detail,
        ));
    }
    Ok(Some(Stored {
        bytes: found.bytes,
        date: found.date,
    }))
}
