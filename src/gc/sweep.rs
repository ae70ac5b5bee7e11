//! Finishing what is condemned: tombstone, older versions of the manifest, body, `deleted`.
//!
//! Roll-forward only, every step idempotent, by any number of collectors: a condemnation cannot be
//! undone, its tombstone's bytes are a function of it, and the keys are never used again. An error leaves
//! things as they are for the next run.

use crate::artifact::manifest::{MANIFEST_VERSION, ManifestEntry, Tombstone, TombstoneReason};
use crate::gc::collector::{Collector, Stands};
use crate::gc::remove::{remove, remove_older_versions};
use crate::ids::{ArtifactRef, SessionId, Tenant};
use crate::lease::entry::{CondemnReason, Condemned, DeleteOutcome};
use crate::lease::evaluate::Operation;
use crate::lease::journal::JournalError;
use crate::store::register::Attempts;
use crate::store::{PutMode, StoreError, StoreErrorKind};

/// A condemned artifact is not finished yet.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SweepError {
    /// The store failed, or does not allow it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `deleted` was not appended; the bytes are gone.
    #[error("the bytes are gone, but the journal does not say so yet: {0}")]
    Journal(#[from] JournalError),
    /// What was just written is not what stands there.
    #[error("the tombstone was written, but is not what the store shows")]
    TombstoneNotSeen,
}

impl SweepError {
    /// Returns whether a permission is missing.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Store(error) if error.is(StoreErrorKind::Denied))
    }
}

/// A finished artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// What was met.
    pub outcome: DeleteOutcome,
    /// What was found other than condemned; it went all the same.
    pub difference: Option<String>,
}

/// Returns the tombstone that a condemnation leaves: whoever writes it writes the same bytes.
pub fn tombstone_of(condemned: &Condemned) -> Tombstone {
    Tombstone {
        v: MANIFEST_VERSION,
        artifact_id: condemned.artifact_id,
        tombstone: match condemned.why {
            CondemnReason::Expired => TombstoneReason::Expired,
            CondemnReason::Erased => TombstoneReason::Erased,
        },
        decision_id: condemned.decision_id,
        sha256: condemned.sha256,
        size_bytes: condemned.size_bytes,
        deleted_at: Some(condemned.server_date.to_string()),
    }
}

impl Collector {
    /// Finishes an artifact that its journal says is condemned.
    ///
    /// # Errors
    /// See [`SweepError`]; the next run goes on.
    pub(in crate::gc) async fn sweep_condemned(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        artifact: &ArtifactRef,
        condemned: &Condemned,
    ) -> Result<Swept, SweepError> {
        let swept = self.bury(tenant, artifact, condemned).await?;
        let outcome = swept.outcome;
        let artifact_id = artifact.artifact_id;
        let deleted = Operation::Delete {
            artifact_id,
            outcome,
        };
        self.journals.submit(tenant, session, deleted).await?;
        Ok(swept)
    }

    /// Puts the tombstone there and removes what stands beside it, without a word to the journal.
    ///
    /// # Errors
    /// See [`SweepError`].
    pub(in crate::gc) async fn bury(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        condemned: &Condemned,
    ) -> Result<Swept, SweepError> {
        self.entomb(tenant, artifact, condemned).await?;
        let difference = self.difference(tenant, artifact, condemned).await;
        let outcome = self.remove_beside_tombstone(tenant, artifact).await?;
        Ok(Swept {
            outcome,
            difference,
        })
    }

    /// Removes what stands beside a tombstone: older versions of the manifest, and the body.
    pub(in crate::gc) async fn remove_beside_tombstone(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<DeleteOutcome, SweepError> {
        let store = &*self.store;
        remove_older_versions(store, &self.keys.manifest(tenant, artifact)).await?;
        let body = self.keys.body(tenant, artifact);
        Ok(remove(store, &body, self.fence).await?)
    }

    /// Overwrites the manifest by its tombstone, and sees it there.
    async fn entomb(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        condemned: &Condemned,
    ) -> Result<(), SweepError> {
        if self.is_entombed(tenant, artifact, condemned).await? {
            return Ok(());
        }
        let key = self.keys.manifest(tenant, artifact);
        let bytes: bytes::Bytes = tombstone_of(condemned).encode().into();
        let mut attempts = Attempts::new();
        while let Err(error) = self
            .store
            .put(&key, bytes.clone().into(), PutMode::Overwrite)
            .await
        {
            // The same bytes to the same key: they may land as often and as late as they like.
            if !(error.kind.is_transient() && attempts.pause().await) {
                return Err(error.into());
            }
        }
        if self.is_entombed(tenant, artifact, condemned).await? {
            Ok(())
        } else {
            Err(SweepError::TombstoneNotSeen)
        }
    }

    /// Returns whether a tombstone stands that says at least what the condemnation says: an erasure is
    /// final for later saves, and no other tombstone may stand in its place.
    async fn is_entombed(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        condemned: &Condemned,
    ) -> Result<bool, StoreError> {
        let Stands::Entry(entry, _) = self.read_manifest(tenant, artifact).await? else {
            return Ok(false);
        };
        Ok(match *entry {
            ManifestEntry::Live(_) => false,
            ManifestEntry::Tombstone(found) => {
                found.tombstone == TombstoneReason::Erased
                    || condemned.why == CondemnReason::Expired
            }
        })
    }

    /// Tells what stands at the body's key other than what was condemned. It goes all the same: the
    /// identity was checked before the condemnation, and the key is nobody else's.
    async fn difference(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        condemned: &Condemned,
    ) -> Option<String> {
        let head = self.store.head(&self.keys.body(tenant, artifact)).await;
        let meta = head.ok()?.meta;
        let is_same_size = condemned
            .size_bytes
            .is_none_or(|size| size == meta.size_bytes);
        let is_same_etag = condemned
            .etag
            .as_ref()
            .is_none_or(|etag| *etag == meta.etag.0);
        if is_same_size && is_same_etag {
            return None;
        }
        let (found, size) = (&meta.etag.0, meta.size_bytes);
        let note = format!("the body at the key was another than condemned: {size} bytes, {found}");
        tracing::error!(artifact = %artifact, "{note}");
        Some(note)
    }
}
