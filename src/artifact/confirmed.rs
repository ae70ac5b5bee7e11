//! A manifest that is known to stand in the store: read from it, or created in it and acknowledged.

use std::ops::Deref;
use std::sync::Arc;

use crate::artifact::manifest::Manifest;
use crate::store::ETag;
use crate::store::register::Stored;

/// A live manifest that the store has confirmed. Only [`crate::artifact::manifest_access`] makes one.
#[derive(Debug, Clone)]
pub struct ConfirmedManifest {
    manifest: Arc<Manifest>,
    etag: ETag,
}

impl ConfirmedManifest {
    pub(in crate::artifact) fn new(manifest: Arc<Manifest>, stored: &Stored) -> Self {
        Self {
            manifest,
            etag: stored.etag.clone(),
        }
    }

    pub(in crate::artifact) fn shared(&self) -> Arc<Manifest> {
        Arc::clone(&self.manifest)
    }

    /// Returns the ETag of the manifest object, with which its next use is revalidated.
    pub fn etag(&self) -> &ETag {
        &self.etag
    }
}

impl Deref for ConfirmedManifest {
    type Target = Manifest;

    fn deref(&self) -> &Manifest {
        &self.manifest
    }
}
