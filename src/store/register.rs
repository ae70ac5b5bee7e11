//! Deciding a register: create-if-absent, sent until its outcome is known.
//!
//! Every record, manifest and descriptor is a register that is decided once. A `412` is compared
//! before it is believed ("was it me?"), because a lost reply may hide our own success; `409`,
//! throttling and lost replies are undecided, and the answer to them is the same bytes to the same
//! key again. What stays undecided is reported as such and never taken for a loss.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use jiff::Timestamp;

use crate::limits::{MAX_MANIFEST_BYTES, MAX_UNDECIDED_ATTEMPTS};
use crate::store::checksum;
use crate::store::keys::Key;
use crate::store::{
    ETag, GetOptions, GetReply, ObjectMeta, ObjectStore, Payload, PutMode, PutReceipt, StoreError,
    StoreErrorKind, VersionId,
};

/// First pause before an undecided request is sent again; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The stored identity of an object that we wrote, or found to be what we would have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its ETag.
    pub etag: ETag,
    /// Its version, where the store has versions.
    pub version_id: Option<VersionId>,
    /// The checksum that the store kept.
    pub checksum: Option<String>,
    /// When it was written, by the store's clock, as far as the store told.
    pub date: Option<Timestamp>,
}

impl From<PutReceipt> for Stored {
    fn from(receipt: PutReceipt) -> Self {
        let PutReceipt {
            etag,
            version_id,
            checksum,
            date,
        } = receipt;
        Self {
            etag,
            version_id,
            checksum,
            date,
        }
    }
}

impl From<ObjectMeta> for Stored {
    fn from(meta: ObjectMeta) -> Self {
        let ObjectMeta {
            etag,
            version_id,
            checksum,
            last_modified,
            ..
        } = meta;
        Self {
            etag,
            version_id,
            checksum,
            date: Some(last_modified),
        }
    }
}

/// A small object read whole.
#[derive(Debug, Clone)]
pub struct Register {
    /// Its bytes.
    pub bytes: Bytes,
    /// What the store says of it.
    pub meta: ObjectMeta,
    /// The store's own date of the reply.
    pub date: Option<Timestamp>,
}

/// How a register was decided.
#[derive(Debug)]
pub enum Decision {
    /// It holds our bytes.
    Won(Stored),
    /// It holds other bytes.
    Lost(Register),
}

/// A register could not be decided.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// Nothing of ours can be there, now or later.
    #[error(transparent)]
    Failed(StoreError),
    /// Our bytes may be there, or may still arrive.
    #[error("outcome unknown: {0}")]
    Undecided(StoreError),
    /// Other bytes stand where only ours can: the store took a damaged body, or somebody changed it.
    #[error("{0}")]
    Differs(StoreError),
}

impl DecideError {
    /// Returns the store's last answer.
    pub fn into_store_error(self) -> StoreError {
        match self {
            Self::Failed(error) | Self::Differs(error) => error,
            Self::Undecided(error) => StoreError {
                kind: StoreErrorKind::Ambiguous,
                ..error
            },
        }
    }
}

/// Pauses between attempts at an undecided request: 50 ms, doubling to 1.6 s.
#[derive(Debug)]
pub struct Attempts {
    made: u32,
}

impl Attempts {
    /// Starts with none made.
    pub fn new() -> Self {
        Self { made: 0 }
    }

    /// Waits before the next attempt; `false` when there is none left.
    pub async fn pause(&mut self) -> bool {
        self.made += 1;
        if self.made >= MAX_UNDECIDED_ATTEMPTS {
            return false;
        }
        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(self.made - 1)).await;
        true
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self::new()
    }
}

/// Creates `key` with `bytes` unless it is there, and says who decided it.
///
/// # Errors
/// [`DecideError::Undecided`] when every attempt allowed stayed without an answer that can be
/// believed; [`DecideError::Failed`] when the store refused and nothing of ours was on its way.
pub async fn decide(
    store: &dyn ObjectStore,
    key: &Key,
    bytes: &Bytes,
) -> Result<Decision, DecideError> {
    let mut attempts = Attempts::new();
    let mut may_have_landed = false;
    loop {
        let failure = match store
            .put(key, bytes.clone().into(), PutMode::CreateIfAbsent)
            .await
        {
            Ok(receipt) => return Ok(Decision::Won(receipt.into())),
            Err(error) if error.is(StoreErrorKind::AlreadyExists) => {
                match read_register(store, key).await {
                    Ok(Some(found)) if found.bytes == *bytes => {
                        return Ok(Decision::Won(found.meta.into()));
                    }
                    Ok(Some(found)) => return Ok(Decision::Lost(found)),
                    // There a moment ago and gone now: nothing of ours deletes registers, so the
                    // store contradicts itself; the same bytes again settle it.
                    Ok(None) => StoreError {
                        kind: StoreErrorKind::Conflict,
                        ..error
                    },
                    Err(read_error) => read_error,
                }
            }
            Err(error) => error,
        };
        may_have_landed |= failure.kind.is_undecided();
        if !(failure.kind.is_transient() && attempts.pause().await) {
            return Err(if may_have_landed {
                DecideError::Undecided(failure)
            } else {
                DecideError::Failed(failure)
            });
        }
    }
}

/// Reads a small object whole; `None` when it is absent.
///
/// # Errors
/// Any store error but an absence; an object over the manifest cap is rejected.
pub async fn read_register(
    store: &dyn ObjectStore,
    key: &Key,
) -> Result<Option<Register>, StoreError> {
    match store.get(key, GetOptions::default()).await {
        Ok(GetReply::Found(object)) => {
            let (meta, date) = (object.meta, object.date);
            if meta.size_bytes > MAX_MANIFEST_BYTES {
                let detail = format!("{} bytes are too many for a register", meta.size_bytes);
                return Err(StoreError::new(
                    StoreErrorKind::Rejected,
                    "get",
                    key,
                    detail,
                ));
            }
            let bytes = collect(object.body).await?;
            Ok(Some(Register { bytes, meta, date }))
        }
        Ok(GetReply::NotModified { .. }) => {
            let detail = "304 to an unconditional request";
            Err(StoreError::new(
                StoreErrorKind::Rejected,
                "get",
                key,
                detail,
            ))
        }
        Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Collects a bounded body into one piece.
///
/// # Errors
/// The stream's own error.
pub async fn collect(body: crate::store::ByteStream) -> Result<Bytes, StoreError> {
    let pieces: Vec<Bytes> = body.try_collect().await?;
    Ok(match pieces.as_slice() {
        [one] => one.clone(),
        many => many.concat().into(),
    })
}

/// Creates a body under a key that only equal bytes are ever written to, and reads its identity
/// where somebody else (or our own lost request) was first.
///
/// What stands there is compared before its identity is believed: by size and checksum where the store
/// names one, else by reading it.
///
/// # Errors
/// As [`decide`]; and [`DecideError::Differs`].
pub async fn create_body(
    store: &dyn ObjectStore,
    key: &Key,
    payload: &Payload,
) -> Result<Stored, DecideError> {
    let mut attempts = Attempts::new();
    let mut may_have_landed = false;
    loop {
        let failure = match store
            .put(key, payload.clone(), PutMode::CreateIfAbsent)
            .await
        {
            Ok(receipt) => {
                let ours = checksum::of_payload(payload);
                return match checksum::contradiction(receipt.checksum.as_deref(), &ours) {
                    None => Ok(receipt.into()),
                    Some(detail) => Err(differs(key, detail)),
                };
            }
            Err(error) if error.is(StoreErrorKind::AlreadyExists) => {
                match compare(store, key, payload).await {
                    Ok(Comparison::Equal(stored)) => return Ok(stored),
                    Ok(Comparison::Differs(detail)) => return Err(differs(key, detail)),
                    Err(gone) if gone.is(StoreErrorKind::NotFound) => StoreError {
                        kind: StoreErrorKind::Conflict,
                        ..error
                    },
                    Err(read_error) => read_error,
                }
            }
            Err(error) => error,
        };
        may_have_landed |= failure.kind.is_undecided();
        if !(failure.kind.is_transient() && attempts.pause().await) {
            return Err(if may_have_landed {
                DecideError::Undecided(failure)
            } else {
                DecideError::Failed(failure)
            });
        }
    }
}

/// How a stored body compares with the one that should be there.
enum Comparison {
    Equal(Stored),
    Differs(String),
}

async fn compare(
    store: &dyn ObjectStore,
    key: &Key,
    payload: &Payload,
) -> Result<Comparison, StoreError> {
    let meta = store.head(key).await?.meta;
    if meta.size_bytes != payload.size_bytes() {
        let (stored, sent) = (meta.size_bytes, payload.size_bytes());
        let detail = format!("the stored object has {stored} bytes instead of {sent}");
        return Ok(Comparison::Differs(detail));
    }
    let ours = checksum::of_payload(payload);
    if meta.checksum.as_ref() == Some(&ours) {
        return Ok(Comparison::Equal(meta.into()));
    }
    if let Some(detail) = checksum::contradiction(meta.checksum.as_deref(), &ours) {
        return Ok(Comparison::Differs(detail));
    }
    // No checksum to go by, as on a directory: at most one part is read.
    match read_register(store, key).await? {
        Some(found) if found.bytes == payload.to_bytes() => {
            Ok(Comparison::Equal(found.meta.into()))
        }
        Some(_) => Ok(Comparison::Differs(
            "the stored object has other bytes".to_owned(),
        )),
        None => Err(StoreError::new(
            StoreErrorKind::NotFound,
            "get",
            key,
            "gone again",
        )),
    }
}

fn differs(key: &Key, detail: String) -> DecideError {
    DecideError::Differs(StoreError::new(
        StoreErrorKind::Rejected,
        "put",
        key,
        detail,
    ))
}
