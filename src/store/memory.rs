//! An object store in memory: the reference semantics that the other backends are measured by.
//!
//! It answers as AWS does, with one exception that makes it stricter to build on: there is no
//! eventual anything, one mutex orders all requests. Versioning can be switched while data is there,
//! as in S3, and as there it never goes back to [`Versioning::NeverEnabled`].

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use jiff::Timestamp;

use crate::clock::SharedClock;
use crate::digest::{Sha256Digest, tagged_hash};
use crate::store::keys::Key;
use crate::store::listing::{self, Marker, SortedKeys};
use crate::store::probe::ProbePut;
use crate::store::{
    DeleteFence, DeleteReceipt, ETag, GetOptions, GetReply, Head, ListPage, ListRequest, Listed,
    ListedUpload, ListedVersion, Object, ObjectMeta, ObjectStore, Part, Payload, PutMode,
    PutReceipt, StoreError, StoreErrorKind, Upload, UploadPage, VersionId, VersionPage, Versioning,
};

/// The id of the version that a bucket without versioning, or with versioning suspended, writes.
const NULL_VERSION: &str = "null";

/// Reads hand out pieces of this size, so that readers meet boundaries as they do on a network.
const PIECE_BYTES: usize = 256 << 10;

/// An object store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    versioning: Versioning,
    /// Versions of each key, oldest first; never an empty list.
    objects: BTreeMap<String, Vec<Version>>,
    uploads: BTreeMap<String, PendingUpload>,
    /// Numbers versions and uploads in the order of their making.
    counter: u64,
}

#[derive(Debug, Clone)]
struct Version {
    sequence: u64,
    id: String,
    written: Timestamp,
    /// `None` is a delete marker.
    content: Option<Content>,
}

#[derive(Debug, Clone)]
struct Content {
    bytes: Bytes,
    etag: ETag,
    checksum: String,
}

#[derive(Debug)]
struct PendingUpload {
    key: Key,
    initiated: Timestamp,
    parts: BTreeMap<u32, (Part, Bytes)>,
}

impl MemoryStore {
    /// Creates an empty store that never had versioning.
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                versioning: Versioning::NeverEnabled,
                objects: BTreeMap::new(),
                uploads: BTreeMap::new(),
                counter: 0,
            }),
        }
    }

    /// From now on every write makes a version.
    pub fn enable_versioning(&self) {
        self.state().versioning = Versioning::Enabled;
    }

    /// From now on writes replace the version `null`; older versions stay.
    pub fn suspend_versioning(&self) {
        self.state().versioning = Versioning::Suspended;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the state is half changed, so a poisoned lock guards sound data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's clock shows whole seconds, as HTTP dates and S3's listings do.
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp::from_second(now.as_second()).unwrap_or(now)
    }
}

impl State {
    fn current(&self, key: &str) -> Option<(&Version, &Content)> {
        let version = self.objects.get(key)?.last()?;
        Some((version, version.content.as_ref()?))
    }

    fn next_sequence(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Makes `content` the current version; returns its id where the bucket has or had versions.
    fn write(&mut self, key: &str, content: Option<Content>, now: Timestamp) -> Option<VersionId> {
        let sequence = self.next_sequence();
        let versioning = self.versioning;
        let versions = self.objects.entry(key.to_owned()).or_default();
        let id = match versioning {
            Versioning::Enabled => format!("v{sequence:016x}"),
            Versioning::NeverEnabled | Versioning::Suspended => {
                versions.retain(|version| version.id != NULL_VERSION);
                NULL_VERSION.to_owned()
            }
        };
        versions.push(Version {
            sequence,
            id: id.clone(),
            written: now,
            content,
        });
        (versioning != Versioning::NeverEnabled).then_some(VersionId(id))
    }

    fn meta(&self, version: &Version, content: &Content) -> ObjectMeta {
        let has_versions = self.versioning != Versioning::NeverEnabled;
        ObjectMeta {
            size_bytes: content.bytes.len() as u64,
            etag: content.etag.clone(),
            version_id: has_versions.then(|| VersionId(version.id.clone())),
            last_modified: version.written,
            checksum: Some(content.checksum.clone()),
        }
    }

    fn pending(
        &mut self,
        operation: &'static str,
        upload: &Upload,
    ) -> Result<&mut PendingUpload, StoreError> {
        self.uploads
            .get_mut(&upload.upload_id)
            .filter(|pending| pending.key == upload.key)
            .ok_or_else(|| {
                let detail = format!("no upload `{}`", upload.upload_id);
                StoreError::new(StoreErrorKind::NotFound, operation, &upload.key, detail)
            })
    }
}

impl SortedKeys for &State {
    fn next(&mut self, lower: &Bound<String>) -> Result<Option<String>, StoreError> {
        let mut rest = self.objects.range((lower.clone(), Bound::Unbounded));
        Ok(rest
            .find(|(_, versions)| versions.last().is_some_and(|v| v.content.is_some()))
            .map(|(key, _)| key.clone()))
    }

    fn describe(&mut self, key: &str) -> Result<Option<Listed>, StoreError> {
        Ok(self.current(key).map(|(version, content)| Listed {
            key: key.to_owned(),
            size_bytes: content.bytes.len() as u64,
            etag: content.etag.clone(),
            last_modified: version.written,
        }))
    }
}

fn etag_of(bytes: &[u8]) -> ETag {
    let digest = Sha256Digest::of(bytes).to_hex();
    ETag(format!("\"{}\"", &digest[..32]))
}

/// S3's form of a multipart object's ETag: it depends on how the bytes were cut.
fn composite_etag(parts: &[Part]) -> ETag {
    let tags: Vec<&[u8]> = parts.iter().map(|part| part.etag.0.as_bytes()).collect();
    let digest = tagged_hash("multipart", &tags).to_hex();
    ETag(format!("\"{}-{}\"", &digest[..32], parts.len()))
}

fn crc32_text(crc32: u32) -> String {
    format!("crc32:{}", STANDARD.encode(crc32.to_be_bytes()))
}

fn composite_checksum(parts: &[Part]) -> String {
    let joined: Vec<u8> = parts.iter().flat_map(|p| p.crc32.to_be_bytes()).collect();
    let crc32 = Payload::from(joined).crc32();
    format!("{}-{}", crc32_text(crc32), parts.len())
}

#[async_trait]
impl ObjectStore for MemoryStore {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let bytes = payload.to_bytes();
        let content = Content {
            etag: etag_of(&bytes),
            checksum: crc32_text(payload.crc32()),
            bytes,
        };
        let now = self.now();
        let mut state = self.state();
        let current = state
            .current(key.as_str())
            .map(|(_, content)| &content.etag);
        let refuse = |kind, detail| Err(StoreError::new(kind, "put", key, detail));
        match (&mode, current) {
            (PutMode::CreateIfAbsent, Some(_)) => {
                return refuse(StoreErrorKind::AlreadyExists, "the key is taken");
            }
            (PutMode::ReplaceIfMatch(_), None) => {
                return refuse(StoreErrorKind::PreconditionFailed, "the key is absent");
            }
            (PutMode::ReplaceIfMatch(expected), Some(current)) if expected != current => {
                return refuse(StoreErrorKind::PreconditionFailed, "the ETag is another");
            }
            (
                PutMode::CreateIfAbsent | PutMode::ReplaceIfMatch(_) | PutMode::Overwrite,
                Some(_) | None,
            ) => {}
        }
        let (etag, checksum) = (content.etag.clone(), content.checksum.clone());
        let version_id = state.write(key.as_str(), Some(content), now);
        Ok(PutReceipt {
            etag,
            version_id,
            checksum: Some(checksum),
            date: Some(now),
        })
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        let date = Some(self.now());
        let state = self.state();
        let (version, content) = state
            .current(key.as_str())
            .ok_or_else(|| StoreError::new(StoreErrorKind::NotFound, "get", key, "no such key"))?;
        let meta = state.meta(version, content);
        let Some(range) = options.evaluate(key, &meta.etag, meta.size_bytes)? else {
            return Ok(GetReply::NotModified { date });
        };
        // Both ends are at most the length of a slice.
        let bytes = content
            .bytes
            .slice(range.start as usize..range.end as usize);
        let pieces: Vec<_> = (0..bytes.len())
            .step_by(PIECE_BYTES)
            .map(|at| Ok(bytes.slice(at..bytes.len().min(at + PIECE_BYTES))))
            .collect();
        Ok(GetReply::Found(Object {
            meta,
            range,
            body: futures_util::stream::iter(pieces).boxed(),
            date,
        }))
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        let date = Some(self.now());
        let state = self.state();
        let (version, content) = state
            .current(key.as_str())
            .ok_or_else(|| StoreError::new(StoreErrorKind::NotFound, "head", key, "no such key"))?;
        Ok(Head {
            meta: state.meta(version, content),
            date,
        })
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        let date = Some(self.now());
        let state = self.state();
        let page = listing::assemble(request, |_| Ok(&*state))?;
        Ok(ListPage { date, ..page })
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        let now = self.now();
        let mut state = self.state();
        match fence {
            DeleteFence::None => {}
            DeleteFence::IfMatch(expected) => {
                let current = state.current(key.as_str());
                if current.is_none_or(|(_, content)| content.etag != expected) {
                    return Err(StoreError::new(
                        StoreErrorKind::PreconditionFailed,
                        "delete",
                        key,
                        "the key is absent or its ETag is another",
                    ));
                }
            }
            DeleteFence::Version(id) => {
                if state.versioning == Versioning::NeverEnabled {
                    return Err(StoreError::new(
                        StoreErrorKind::Rejected,
                        "delete",
                        key,
                        "a version cannot be deleted where versioning was never enabled",
                    ));
                }
                if let Some(versions) = state.objects.get_mut(key.as_str()) {
                    versions.retain(|version| version.id != id.0);
                    if versions.is_empty() {
                        state.objects.remove(key.as_str());
                    }
                }
                return Ok(DeleteReceipt { date: Some(now) });
            }
        }
        if state.versioning == Versioning::NeverEnabled {
            state.objects.remove(key.as_str());
        } else {
            state.write(key.as_str(), None, now);
        }
        Ok(DeleteReceipt { date: Some(now) })
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        let initiated = self.now();
        let mut state = self.state();
        let upload_id = format!("u{:016x}", state.next_sequence());
        let pending = PendingUpload {
            key: key.clone(),
            initiated,
            parts: BTreeMap::new(),
        };
        state.uploads.insert(upload_id.clone(), pending);
        Ok(Upload {
            key: key.clone(),
            upload_id,
        })
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        listing::check_part_number(upload, number)?;
        let bytes = payload.to_bytes();
        let part = Part {
            number,
            etag: etag_of(&bytes),
            crc32: payload.crc32(),
            size_bytes: payload.size_bytes(),
        };
        let mut state = self.state();
        let pending = state.pending("put part", upload)?;
        pending.parts.insert(number, (part.clone(), bytes));
        Ok(part)
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        listing::check_part_order(upload, parts)?;
        let now = self.now();
        let mut state = self.state();
        let pending = state.pending("complete upload", upload)?;
        let mut bytes = Vec::new();
        for part in parts {
            match pending.parts.get(&part.number) {
                Some((kept, content)) if kept == part => bytes.extend_from_slice(content),
                Some(_) | None => return Err(listing::wrong_part(upload, part.number)),
            }
        }
        state.uploads.remove(&upload.upload_id);
        let content = Content {
            bytes: bytes.into(),
            etag: composite_etag(parts),
            checksum: composite_checksum(parts),
        };
        let (etag, checksum) = (content.etag.clone(), content.checksum.clone());
        let version_id = state.write(upload.key.as_str(), Some(content), now);
        Ok(PutReceipt {
            etag,
            version_id,
            checksum: Some(checksum),
            date: Some(now),
        })
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.pending("abort upload", upload).is_ok() {
            state.uploads.remove(&upload.upload_id);
        }
        Ok(())
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        let date = Some(self.now());
        let state = self.state();
        let uploads = state.uploads.iter().map(|(upload_id, pending)| {
            let initiated = Some(pending.initiated);
            ListedUpload {
                key: pending.key.to_string(),
                upload_id: upload_id.clone(),
                initiated,
            }
        });
        let page = listing::assemble_uploads(uploads.collect(), continuation)?;
        Ok(UploadPage { date, ..page })
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        Ok(self.state().versioning)
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        let after = continuation
            .map(|token| Marker::parse("list versions", prefix, token))
            .transpose()?;
        let from = after.as_ref().map_or(prefix, |marker| marker.key.as_str());
        let mut page = VersionPage {
            date: Some(self.now()),
            ..VersionPage::default()
        };
        let state = self.state();
        let keys = state
            .objects
            .range::<str, _>((Bound::Included(from.max(prefix)), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix));
        let mut last = None;
        for (key, versions) in keys {
            let latest = versions.last().map(|version| version.sequence);
            for version in versions.iter().rev() {
                // A sequence, not a version id: the version that ended the last page may be gone.
                let sequence = format!("{:016x}", version.sequence);
                let is_done = after
                    .as_ref()
                    .is_some_and(|marker| marker.key == *key && sequence >= marker.item);
                if is_done {
                    continue;
                }
                if page.versions.len() == listing::MAX_KEYS {
                    page.is_truncated = true;
                    page.next = last;
                    return Ok(page);
                }
                last = Some(Marker::encode(key, &sequence));
                page.versions.push(ListedVersion {
                    key: key.clone(),
                    version_id: VersionId(version.id.clone()),
                    is_latest: latest == Some(version.sequence),
                    is_delete_marker: version.content.is_none(),
                    size_bytes: version.content.as_ref().map_or(0, |c| c.bytes.len() as u64),
                    etag: version.content.as_ref().map(|content| content.etag.clone()),
                    last_modified: version.written,
                });
            }
        }
        Ok(page)
    }

    async fn put_probe(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.put(key, probe.verified(key).await?, mode).await
    }
}

#[cfg(test)]
mod tests;
