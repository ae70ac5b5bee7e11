//! Whether what a lease protects is still there.
//!
//! A protected artifact is never deleted by us, so an absence is an alarm: somebody else deleted, or the
//! store lost. Whoever holds the reference cannot read it any more, and must be told.

use serde::Serialize;

use crate::artifact::library::Library;
use crate::artifact::read::ReadError;
use crate::ids::{ArtifactRef, Tenant};
use crate::store::{StoreError, StoreErrorKind};

/// A part of an artifact that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingPart {
    /// No live manifest stands at its key: nothing, or a tombstone.
    Manifest,
    /// Its bytes.
    Body,
}

impl MissingPart {
    /// Returns the word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Body => "body",
        }
    }
}

/// Looks for an artifact's manifest and body, and names what is absent. What is there and cannot be
/// understood is not absent: reads and verifications say so.
///
/// # Errors
/// The store's: nothing is known then.
pub async fn missing_parts(
    library: &Library,
    tenant: &Tenant,
    artifact: &ArtifactRef,
) -> Result<Vec<MissingPart>, StoreError> {
    let body_key = library.keys().body(tenant, artifact);
    let (manifest, body) = tokio::join!(
        library.stat(tenant, artifact),
        library.store().head(&body_key)
    );
    let mut missing = Vec::new();
    match manifest {
        Ok(_) | Err(ReadError::Corrupt(_) | ReadError::Format(_)) => {}
        Err(ReadError::NotFound | ReadError::Deleted(_)) => missing.push(MissingPart::Manifest),
        Err(ReadError::Store(error)) => return Err(error),
    }
    match body {
        Ok(_) => {}
        Err(error) if error.is(StoreErrorKind::NotFound) => missing.push(MissingPart::Body),
        Err(error) => return Err(error),
    }
    Ok(missing)
}
