//! Reading and creating manifests. A cache saves bytes, never truth: every use of a cached manifest
//! is confirmed by a conditional GET, so that a read never serves what another replica has erased.

use std::sync::Arc;

use moka::future::Cache;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::manifest::{Manifest, ManifestEntry, ManifestFormatError, Tombstone};
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::MANIFEST_CACHE_BYTES;
use crate::store::keys::KeySpace;
use crate::store::register::{DecideError, Decision, Stored, collect, decide};
use crate::store::{GetOptions, GetReply, SharedStore, StoreError, StoreErrorKind};

/// What stands at a manifest's key now.
#[derive(Debug)]
pub enum Lookup {
    /// A live artifact.
    Live(ConfirmedManifest),
    /// A deleted one.
    Tombstone(Tombstone),
    /// Nothing.
    Absent,
}

/// A manifest could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored cannot be read.
    #[error(transparent)]
    Format(#[from] ManifestFormatError),
}

/// A manifest could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateManifestError {
    /// The store refused, or left it open.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// What another finisher stored cannot be read.
    #[error(transparent)]
    Format(#[from] ManifestFormatError),
}

/// The manifests of a store.
#[derive(Debug, Clone)]
pub struct Manifests {
    store: SharedStore,
    keys: KeySpace,
    cache: Cache<(Tenant, ArtifactRef), ConfirmedManifest>,
}

impl Manifests {
    /// Works on `store` with a cache of [`MANIFEST_CACHE_BYTES`].
    pub fn new(store: SharedStore, keys: KeySpace) -> Self {
        let cache = Cache::builder()
            .max_capacity(MANIFEST_CACHE_BYTES)
            .weigher(|_, confirmed: &ConfirmedManifest| weight(confirmed))
            .build();
        Self { store, keys, cache }
    }

    /// Returns the cached manifest, unconfirmed: good for choosing which bytes to ask for, nothing
    /// of which may be served before [`Manifests::read`] has confirmed it.
    pub async fn guess(&self, tenant: &Tenant, artifact: &ArtifactRef) -> Option<Arc<Manifest>> {
        let cached = self.cache.get(&(tenant.clone(), *artifact)).await?;
        Some(cached.shared())
    }

    /// Reads what stands at the artifact's manifest key at this moment.
    ///
    /// # Errors
    /// See [`LookupError`]; an error is never an absence.
    pub async fn read(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<Lookup, LookupError> {
        let cache_key = (tenant.clone(), *artifact);
        let cached = self.cache.get(&cache_key).await;
        let options = GetOptions {
            if_none_match: cached.as_ref().map(|cached| cached.etag().clone()),
            ..GetOptions::default()
        };
        let reply = self
            .store
            .get(&self.keys.manifest(tenant, artifact), options)
            .await;
        let object = match (reply, cached) {
            (Ok(GetReply::NotModified { .. }), Some(cached)) => return Ok(Lookup::Live(cached)),
            (Ok(GetReply::NotModified { .. }), None) => {
                let detail = "304 to an unconditional request";
                return Err(
                    StoreError::new(StoreErrorKind::Rejected, "get", artifact, detail).into(),
                );
            }
            (Ok(GetReply::Found(object)), _) => object,
            (Err(error), _) => {
                if !error.is(StoreErrorKind::NotFound) {
                    return Err(error.into());
                }
                self.cache.invalidate(&cache_key).await;
                return Ok(Lookup::Absent);
            }
        };
        let stored: Stored = object.meta.into();
        let bytes = collect(object.body).await?;
        self.confirm(cache_key, &bytes, &stored)
            .await
            .map_err(LookupError::from)
    }

    /// Creates `manifest`, or returns what stands at its key already.
    ///
    /// # Errors
    /// See [`CreateManifestError`].
    pub async fn create(&self, manifest: Manifest) -> Result<Lookup, CreateManifestError> {
        let artifact = manifest.head.artifact_ref();
        let tenant = manifest.head.tenant.clone();
        let bytes = manifest.encode().into();
        match decide(
            &*self.store,
            &self.keys.manifest(&tenant, &artifact),
            &bytes,
        )
        .await?
        {
            Decision::Won(stored) => {
                let confirmed = ConfirmedManifest::new(Arc::new(manifest), &stored);
                self.cache
                    .insert((tenant, artifact), confirmed.clone())
                    .await;
                Ok(Lookup::Live(confirmed))
            }
            Decision::Lost(found) => {
                let stored = found.meta.into();
                Ok(self
                    .confirm((tenant, artifact), &found.bytes, &stored)
                    .await?)
            }
        }
    }

    /// Closes an artifact's manifest key with `tombstone` where nothing stands, and returns what stands
    /// there then.
    ///
    /// # Errors
    /// See [`CreateManifestError`].
    pub async fn bury(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        tombstone: &Tombstone,
    ) -> Result<Lookup, CreateManifestError> {
        let bytes = tombstone.encode().into();
        match decide(&*self.store, &self.keys.manifest(tenant, artifact), &bytes).await? {
            Decision::Won(_) => Ok(Lookup::Tombstone(tombstone.clone())),
            Decision::Lost(found) => {
                let stored = found.meta.into();
                let cache_key = (tenant.clone(), *artifact);
                Ok(self.confirm(cache_key, &found.bytes, &stored).await?)
            }
        }
    }

    async fn confirm(
        &self,
        cache_key: (Tenant, ArtifactRef),
        bytes: &[u8],
        stored: &Stored,
    ) -> Result<Lookup, ManifestFormatError> {
        match ManifestEntry::decode(bytes, &cache_key.1)? {
            ManifestEntry::Live(manifest) => {
                if manifest.head.tenant != cache_key.0 {
                    return Err(ManifestFormatError::Inconsistent("names another tenant"));
                }
                let confirmed = ConfirmedManifest::new(Arc::from(manifest), stored);
                self.cache.insert(cache_key, confirmed.clone()).await;
                Ok(Lookup::Live(confirmed))
            }
            ManifestEntry::Tombstone(tombstone) => {
                self.cache.invalidate(&cache_key).await;
                Ok(Lookup::Tombstone(tombstone))
            }
        }
    }
}

/// Approximate resident bytes of a cached manifest: 40 for a chunk entry, and the texts.
fn weight(confirmed: &ConfirmedManifest) -> u32 {
    let bytes = 4_096 + confirmed.head.replacement.text.len() + confirmed.chunks.len() * 40;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
