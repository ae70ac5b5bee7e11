//! A manifest that is known to stand in the store: read from it, or created in it and acknowledged.

use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;

use crate::artifact::manifest::Manifest;
use crate::store::ETag;
use crate::store::register::Stored;

/// A live manifest that the store has confirmed. Only [`crate::artifact::manifest_access`] makes one.
#[derive(Debug, Clone)]
pub struct ConfirmedManifest {
    manifest: Arc<Manifest>,
    etag: ETag,
    referred_at: Option<Timestamp>,
}

impl ConfirmedManifest {
    pub(in crate::artifact) fn new(manifest: Arc<Manifest>, stored: &Stored) -> Self {
        Self {
            manifest,
            etag: stored.etag.clone(),
            referred_at: None,
        }
    }

    /// Says that a reference of this date stands in the journal.
    pub(in crate::artifact) fn referred_at(mut self, date: Option<Timestamp>) -> Self {
        self.referred_at = date;
        self
    }

    /// Returns from when on the orphan TTL counts: the capture, or a later reference that is known.
    pub fn last_use(&self) -> Timestamp {
        let captured_at = self.manifest.head.provenance.captured_at;
        self.referred_at
            .map_or(captured_at, |date| date.max(captured_at))
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
