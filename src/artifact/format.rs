//! The store's format marker: that the bucket is ours, which version wrote it, and the orphan TTL
//! that every receipt of this store promises.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::store::keys::KeySpace;
use crate::store::register::{DecideError, Decision, decide, read_register};
use crate::store::{ObjectStore, StoreError};

/// The version of the layout; a store of another version is not served.
pub const FORMAT_VERSION: u32 = 1;

/// What `v1/format.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFormat {
    /// [`FORMAT_VERSION`].
    pub v: u32,
    /// How long an artifact without a lease is kept at least, in seconds. Set when the store is first
    /// used and the store's from then on: it is what receipts have promised.
    pub orphan_ttl_seconds: u64,
}

/// The format marker could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The marker is not ours, or of a version that this one does not read.
    #[error("`v1/format.json` is not readable by this version: {0}")]
    Unsupported(String),
}

impl StoreFormat {
    /// Returns the orphan TTL.
    pub fn orphan_ttl(&self) -> Duration {
        Duration::from_secs(self.orphan_ttl_seconds)
    }

    /// Returns the format of a store that is used for the first time.
    pub fn new(orphan_ttl: Duration) -> Self {
        Self {
            v: FORMAT_VERSION,
            orphan_ttl_seconds: orphan_ttl.as_secs(),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let format: Self = serde_json::from_slice(bytes)
            .map_err(|error| FormatError::Unsupported(error.to_string()))?;
        if format.v != FORMAT_VERSION {
            return Err(FormatError::Unsupported(format!("version {}", format.v)));
        }
        Ok(format)
    }

    /// Reads the store's format; `None` where the store was never used.
    ///
    /// # Errors
    /// See [`FormatError`].
    pub async fn read(
        store: &dyn ObjectStore,
        keys: &KeySpace,
    ) -> Result<Option<Self>, FormatError> {
        match read_register(store, &keys.format()).await? {
            Some(found) => Self::decode(&found.bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the store's format; a store without one gets it with `orphan_ttl`.
    ///
    /// # Errors
    /// See [`FormatError`].
    pub async fn open(
        store: &dyn ObjectStore,
        keys: &KeySpace,
        orphan_ttl: Duration,
    ) -> Result<Self, FormatError> {
        if let Some(found) = Self::read(store, keys).await? {
            return Ok(found);
        }
        let ours = Self::new(orphan_ttl);
        let bytes = serde_json::to_vec(&ours)
            .expect("two numbers always serialise")
            .into();
        match decide(store, &keys.format(), &bytes).await {
            Ok(Decision::Won(_)) => Ok(ours),
            Ok(Decision::Lost(found)) => Self::decode(&found.bytes),
            Err(
                DecideError::Failed(error)
                | DecideError::Undecided(error)
                | DecideError::Differs(error),
            ) => Err(error.into()),
        }
    }
}
