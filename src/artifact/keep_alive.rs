//! Keeping artifacts alive by using them.
//!
//! **A receipt is not a lease**: without one an artifact is kept for the store's orphan TTL after its
//! last reference. So a replay of an old save, whose receipt promises time again, first appends a
//! reference to the journal of the artifact's session; and reads of an old artifact append one in the
//! background, at most once per artifact and half TTL on each replica. What a journal is is none of
//! this layer's business: it knows this trait.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use tracing::debug;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::library::Library;
use crate::artifact::manifest::{MANIFEST_VERSION, Tombstone, TombstoneReason};
use crate::artifact::manifest_access::Lookup;
use crate::artifact::request::{SaturatedError, SaveError};
use crate::ids::{ArtifactId, ArtifactRef, SessionId, Tenant};
use crate::limits::JOURNAL_QUEUE;
use crate::store::StoreError;

/// What became of a reference to a live artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptAlive {
    /// A reference stands that is as young as this date of the store says, or younger.
    Until {
        /// The store's date at the reference, at most ten minutes early; `None` where the store tells
        /// none.
        referred_at: Option<Timestamp>,
    },
    /// The artifact is condemned: as good as a tombstone.
    Condemned {
        /// Whether it was erased, which is final.
        is_erased: bool,
    },
    /// Its journal cannot be written to, and nothing is collected there.
    NotCollected,
}

/// A reference may or may not stand.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeepAliveError {
    /// The store failed, or left it open.
    #[error(transparent)]
    Store(StoreError),
    /// Too much waits for the journal.
    #[error("the session's journal is busy")]
    Busy,
}

/// Who appends references to artifacts.
#[async_trait]
pub trait KeepAlive: Send + Sync + Debug {
    /// Makes sure that a reference to a live artifact stands in the journal of its session: a new one,
    /// or where `unless_since` is given, one that is not older than that.
    ///
    /// # Errors
    /// See [`KeepAliveError`].
    async fn keep_alive(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        artifact_id: ArtifactId,
        unless_since: Option<Timestamp>,
    ) -> Result<KeptAlive, KeepAliveError>;
}

/// A shared handle.
pub type SharedKeepAlive = Arc<dyn KeepAlive>;

/// Returns whether an artifact of this age has used up half of what its receipt promised.
pub fn is_old(captured_at: Timestamp, orphan_ttl: std::time::Duration, now: Timestamp) -> bool {
    let half = SignedDuration::try_from(orphan_ttl / 2).unwrap_or(SignedDuration::MAX);
    now.duration_since(captured_at) > half
}

impl Library {
    /// Reads what a replay would answer from. An old artifact is referred to first: refused, it counts
    /// as its tombstone.
    pub(in crate::artifact) async fn lookup_to_replay(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<Lookup, SaveError> {
        let manifest = match self.manifests.read(tenant, artifact).await? {
            Lookup::Live(manifest) => manifest,
            gone @ (Lookup::Tombstone(_) | Lookup::Absent) => return Ok(gone),
        };
        let Some(keep_alive) = self.keep_alive.as_ref().filter(|_| self.is_old(&manifest)) else {
            return Ok(Lookup::Live(manifest));
        };
        let session = &manifest.head.session;
        let kept = keep_alive.keep_alive(tenant, session, artifact.artifact_id, None);
        match kept.await {
            Ok(KeptAlive::Until { referred_at }) => {
                Ok(Lookup::Live(manifest.referred_at(referred_at)))
            }
            Ok(KeptAlive::NotCollected) => Ok(Lookup::Live(manifest)),
            Ok(KeptAlive::Condemned { is_erased }) => {
                Ok(Lookup::Tombstone(tombstone_to_be(&manifest, is_erased)))
            }
            Err(KeepAliveError::Store(error)) => Err(SaveError::Store(error)),
            Err(KeepAliveError::Busy) => Err(SaturatedError::Journal(JOURNAL_QUEUE).into()),
        }
    }

    /// Notes that an artifact's bytes or text were read. The read goes on at once; where the artifact is
    /// old and nothing younger refers to it, a reference is appended in the background. Best effort: a
    /// lease is the promise.
    pub fn note_read(&self, manifest: &ConfirmedManifest) {
        let options = &self.options;
        if options.is_read_only || !options.touch_on_read || !self.is_old(manifest) {
            return;
        }
        let Some(keep_alive) = self.keep_alive.clone() else {
            return;
        };
        let name = (manifest.head.tenant.clone(), manifest.head.artifact_ref());
        let session = manifest.head.session.clone();
        let half = SignedDuration::try_from(self.orphan_ttl() / 2).unwrap_or(SignedDuration::MAX);
        let since = self.clock.now().saturating_sub(half).ok();
        let touched = self.touched.clone();
        // This replica is the caller: it waits for the reference itself, whatever becomes of the read.
        self.tracker.spawn(async move {
            // One at a time for each artifact; only what landed is remembered.
            let append = async {
                let (tenant, artifact) = &name;
                let artifact_id = artifact.artifact_id;
                keep_alive
                    .keep_alive(tenant, &session, artifact_id, since)
                    .await
                    .map(drop)
            };
            if let Err(error) = touched.try_get_with(name.clone(), append).await {
                debug!(artifact = %name.1, "a read did not keep its artifact alive: {error}");
            }
        });
    }

    fn is_old(&self, manifest: &ConfirmedManifest) -> bool {
        let captured_at = manifest.head.provenance.captured_at;
        is_old(captured_at, self.orphan_ttl(), self.clock.now())
    }
}

/// What will stand at the manifest's key.
fn tombstone_to_be(manifest: &ConfirmedManifest, is_erased: bool) -> Tombstone {
    Tombstone {
        v: MANIFEST_VERSION,
        artifact_id: manifest.head.artifact_id,
        tombstone: if is_erased {
            TombstoneReason::Erased
        } else {
            TombstoneReason::Expired
        },
        decision_id: manifest.head.decision_id,
        sha256: Some(manifest.head.body.sha256),
        size_bytes: Some(manifest.head.body.size_bytes),
        deleted_at: None,
    }
}
