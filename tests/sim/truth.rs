//! The store's true state, read past everything that lies.

use bytes::Bytes;
use futures_util::{FutureExt, TryStreamExt};
use spillbox::artifact::manifest::{Manifest, ManifestEntry, Tombstone};
use spillbox::ids::{ArtifactRef, SessionKey, Tenant};
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::memory::MemoryStore;
use spillbox::store::{
    GetOptions, GetReply, ListedUpload, ListedVersion, ObjectMeta, ObjectStore, Versioning,
};

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) memory: MemoryStore,
    pub(crate) keys: KeySpace,
    pub(crate) tenant: Tenant,
}

/// What stands at a manifest's key.
pub(crate) enum Stands {
    Nothing,
    Live(Box<Manifest>),
    Tombstone(Tombstone),
    Garbage(String),
}

impl Truth {
    pub(crate) fn new(memory: MemoryStore, keys: KeySpace) -> Self {
        let tenant = Tenant::default();
        Self {
            memory,
            keys,
            tenant,
        }
    }

    /// The current bytes of a key.
    pub(crate) fn read(&self, key: &str) -> Option<(Bytes, ObjectMeta)> {
        let key = Key::parse(key).ok()?;
        let reply = self.memory.get(&key, GetOptions::default());
        let GetReply::Found(object) = reply.now_or_never()?.ok()? else {
            return None;
        };
        let pieces: Vec<Bytes> = object.body.try_collect().now_or_never()?.ok()?;
        let bytes = match pieces.as_slice() {
            [one] => one.clone(),
            many => many.concat().into(),
        };
        Some((bytes, object.meta))
    }

    /// What the store says of the current version of a key.
    pub(crate) fn head(&self, key: &Key) -> Option<ObjectMeta> {
        Some(self.memory.head(key).now_or_never()?.ok()?.meta)
    }

    pub(crate) fn manifest(&self, artifact: &ArtifactRef) -> Stands {
        let key = self.keys.manifest(&self.tenant, artifact);
        let Some((bytes, _)) = self.read(key.as_str()) else {
            return Stands::Nothing;
        };
        match ManifestEntry::decode(&bytes, artifact) {
            Ok(ManifestEntry::Live(manifest)) => Stands::Live(manifest),
            Ok(ManifestEntry::Tombstone(tombstone)) => Stands::Tombstone(tombstone),
            Err(error) => Stands::Garbage(error.to_string()),
        }
    }

    pub(crate) fn body(&self, artifact: &ArtifactRef) -> Option<ObjectMeta> {
        self.head(&self.keys.body(&self.tenant, artifact))
    }

    /// The bytes of record `seq`.
    pub(crate) fn record(&self, session: &SessionKey, seq: u64) -> Option<Bytes> {
        let key = self.keys.journal_record(&self.tenant, session, seq);
        self.read(key.as_str()).map(|(bytes, _)| bytes)
    }

    /// Whether a key is a journal's record.
    pub(crate) fn is_record(&self, key: &Key) -> bool {
        key.as_str()
            .starts_with(&format!("v1/t/{}/j/", self.tenant))
    }

    /// Whether a key is a journal's record or checkpoint.
    pub(crate) fn is_of_journal(&self, key: &Key) -> bool {
        self.is_record(key)
            || key
                .as_str()
                .starts_with(&format!("v1/t/{}/k/", self.tenant))
    }

    /// Every version of the keys that begin with `prefix`.
    pub(crate) fn versions(&self, prefix: &str) -> Vec<ListedVersion> {
        let (mut versions, mut next) = (Vec::new(), None::<String>);
        loop {
            let page = self.memory.list_versions(prefix, next.as_deref());
            let page = page.now_or_never().expect("memory never waits").unwrap();
            versions.extend(page.versions);
            next = page.next.filter(|_| page.is_truncated);
            if next.is_none() {
                return versions;
            }
        }
    }

    /// Unfinished uploads.
    pub(crate) fn uploads(&self) -> Vec<ListedUpload> {
        let page = self.memory.list_uploads(None).now_or_never();
        page.expect("memory never waits").unwrap().uploads
    }

    pub(crate) fn is_versioned(&self) -> bool {
        let versioning = self.memory.versioning().now_or_never();
        versioning.expect("memory never waits").unwrap() != Versioning::NeverEnabled
    }

    /// The artifact that a body's or manifest's key belongs to.
    pub(crate) fn artifact_of(&self, key: &str) -> Option<(ArtifactRef, bool)> {
        if let Some((_, artifact)) = self.keys.artifact_of_body(key) {
            return Some((artifact, true));
        }
        let rest = key.strip_prefix(&self.keys.all_manifests(&self.tenant))?;
        let (session_key, artifact_id) = rest.split_once('/')?;
        let (session_key, artifact_id) = (session_key.parse().ok()?, artifact_id.parse().ok()?);
        Some((
            ArtifactRef {
                session_key,
                artifact_id,
            },
            false,
        ))
    }
}
