//! The object store as this product needs it: one trait, one error type, three backends.
//!
//! The trait is S3's own shape and no wider: conditional puts, fenced deletes, listings by page,
//! multipart uploads. It hides nothing that safety rests on: a `409` ([`StoreErrorKind::Conflict`])
//! is not a `412` ([`StoreErrorKind::PreconditionFailed`], [`StoreErrorKind::AlreadyExists`]), and a
//! lost reply is neither ([`StoreErrorKind::Ambiguous`]). Every reply carries the store's own date,
//! so that ages are compared on one clock.
//!
//! Why not a file-system interface or an existing portable crate: those hide per-key conditional
//! deletes, the listing cursor and the difference between "lost" and "undecided" (ADR 2).

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use jiff::Timestamp;

use crate::store::keys::Key;
use crate::store::probe::{BucketFacts, ProbePut};

pub mod attest;
pub mod checksum;
mod error;
pub mod keys;
mod listing;
pub mod local;
pub mod memory;
pub mod metered;
pub mod paging;
mod payload;
pub mod probe;
pub mod register;
pub mod s3;
pub mod testing;

pub use self::error::{StoreError, StoreErrorKind};
pub use self::payload::Payload;

/// A shared store handle.
pub type SharedStore = Arc<dyn ObjectStore>;

/// Body bytes as they arrive from the store.
pub type ByteStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// The store's validator of one version of an object, quotes included as S3 sends them. Equal bytes
/// may have equal ETags: it is not a generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

/// The ETag listed for something that stands in an object's place and is none, as a symbolic link in a
/// directory: no object has it. Such a key is listed, so that a collector meets and reports it; reading
/// it is denied.
pub const UNREADABLE_ETAG: &str = "\"denied\"";

/// The identity that a versioned store gave one version of an object. A missing id and the id `null`
/// are the same generation ([`VersionId::generation`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionId(pub String);

impl VersionId {
    /// Returns the generation that an optional version id stands for: `None` for both "no id" and
    /// S3's `null` version.
    pub fn generation(id: Option<&Self>) -> Option<&str> {
        id.map(|id| id.0.as_str()).filter(|id| *id != "null")
    }
}

/// Under which condition a put takes effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutMode {
    /// Only where the key is absent (`If-None-Match: *`). A delete marker counts as absent.
    CreateIfAbsent,
    /// Only where the current object has this ETag (`If-Match`).
    ReplaceIfMatch(ETag),
    /// Always. Only for bytes that are the same whoever writes them (tombstones), or whose last
    /// writer may win (attestations, probes).
    Overwrite,
}

/// What a write answered.
#[derive(Debug, Clone)]
pub struct PutReceipt {
    /// The new object's ETag.
    pub etag: ETag,
    /// The new object's version, where the bucket has or had versioning.
    pub version_id: Option<VersionId>,
    /// The checksum that the store says it kept, as `algorithm:value` (`crc32:…`), where it says so.
    pub checksum: Option<String>,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// What is to be read, and under which condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// A half-open byte range; the end may lie past the object's end, the start may not.
    pub range: Option<Range<u64>>,
    /// Answer [`StoreErrorKind::PreconditionFailed`] unless the ETag is this one.
    pub if_match: Option<ETag>,
    /// Answer [`GetReply::NotModified`] when the ETag is this one.
    pub if_none_match: Option<ETag>,
}

/// What a store says of an object.
#[derive(Debug, Clone)]
pub struct ObjectMeta {
    /// Size of the whole object.
    pub size_bytes: u64,
    /// Its ETag.
    pub etag: ETag,
    /// Its version, where the store has versions.
    pub version_id: Option<VersionId>,
    /// When it was written, by the store's clock; whole seconds on most stores.
    pub last_modified: Timestamp,
    /// The checksum that the store kept, as `algorithm:value`.
    pub checksum: Option<String>,
}

/// The answer of a head request.
#[derive(Debug, Clone)]
pub struct Head {
    /// The object.
    pub meta: ObjectMeta,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// An object that is being read.
pub struct Object {
    /// The object.
    pub meta: ObjectMeta,
    /// The bytes that `body` brings, half-open.
    pub range: Range<u64>,
    /// The bytes.
    pub body: ByteStream,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

impl Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("meta", &self.meta)
            .field("range", &self.range)
            .finish()
    }
}

/// The answer of a conditional read.
#[derive(Debug)]
pub enum GetReply {
    /// The object, or the part of it that was asked for.
    Found(Object),
    /// It still has the ETag of `if_none_match` (304).
    NotModified {
        /// The store's own date of this reply.
        date: Option<Timestamp>,
    },
}

/// Which page of a listing is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Only keys that begin with this.
    pub prefix: String,
    /// Only keys after this one.
    pub start_after: Option<String>,
    /// Roll up everything between the prefix and the next delimiter.
    pub delimiter: Option<char>,
    /// At most this many keys and common prefixes; 1 to 1,000.
    pub max_keys: Option<u16>,
    /// The previous page's `next`.
    pub continuation: Option<String>,
}

/// One key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The key as the store gave it; it need not be one of ours.
    pub key: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its ETag.
    pub etag: ETag,
    /// When it was written, by the store's clock.
    pub last_modified: Timestamp,
}

/// A page of a listing, in key order.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The keys.
    pub objects: Vec<Listed>,
    /// Rolled-up prefixes, where a delimiter was given.
    pub common_prefixes: Vec<String>,
    /// Whether the store says that more follows.
    pub is_truncated: bool,
    /// The token of the next page.
    pub next: Option<String>,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// Whether the bucket keeps old versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioning {
    /// Never was enabled: `?versionId=` must not be used (several servers then delete the current
    /// object).
    NeverEnabled,
    /// Every write makes a version.
    Enabled,
    /// Was enabled once: old versions are still there, new writes replace the version `null`.
    Suspended,
}

/// One version of a key, or a delete marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVersion {
    /// The key.
    pub key: String,
    /// The version; `null` is one too.
    pub version_id: VersionId,
    /// Whether a plain read sees this version.
    pub is_latest: bool,
    /// Whether it is a delete marker (no bytes).
    pub is_delete_marker: bool,
    /// Its size; 0 for a marker.
    pub size_bytes: u64,
    /// Its ETag; none for a marker.
    pub etag: Option<ETag>,
    /// When it was written, by the store's clock.
    pub last_modified: Timestamp,
}

/// A page of versions, in key order, newest version first.
#[derive(Debug, Clone, Default)]
pub struct VersionPage {
    /// The versions and markers.
    pub versions: Vec<ListedVersion>,
    /// Whether the store says that more follows.
    pub is_truncated: bool,
    /// The marker pair of the next page, opaque to callers.
    pub next: Option<String>,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// On which condition a delete takes effect. Which fences a store really honours is found by
/// attestation, never assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteFence {
    /// Unconditionally; deleting an absent key succeeds.
    None,
    /// Only while the current object has this ETag.
    IfMatch(ETag),
    /// Exactly this version; a newer one stays.
    Version(VersionId),
}

/// What a delete answered.
#[derive(Debug, Clone)]
pub struct DeleteReceipt {
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// A multipart upload in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The key that it will become.
    pub key: Key,
    /// The store's name of it.
    pub upload_id: String,
}

/// One part that the store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// 1 to 10,000, in body order.
    pub number: u32,
    /// What the store answered for it.
    pub etag: ETag,
    /// CRC-32 of the part.
    pub crc32: u32,
    /// Size of the part.
    pub size_bytes: u64,
}

/// One unfinished multipart upload of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedUpload {
    /// The key as the store gave it.
    pub key: String,
    /// The store's name of the upload.
    pub upload_id: String,
    /// When it was begun, by the store's clock.
    pub initiated: Option<Timestamp>,
}

/// A page of unfinished uploads.
#[derive(Debug, Clone, Default)]
pub struct UploadPage {
    /// The uploads.
    pub uploads: Vec<ListedUpload>,
    /// Whether the store says that more follows.
    pub is_truncated: bool,
    /// The marker pair of the next page, opaque to callers.
    pub next: Option<String>,
    /// The store's own date of this reply.
    pub date: Option<Timestamp>,
}

/// An S3-shaped object store. `store/testing.rs` is the contract in executable form; a backend is
/// finished when that suite passes, races included.
#[async_trait]
pub trait ObjectStore: Send + Sync + Debug {
    /// Writes one object in one request.
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError>;

    /// Reads an object or a part of it.
    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError>;

    /// Reads what the store says of an object.
    async fn head(&self, key: &Key) -> Result<Head, StoreError>;

    /// Reads one page of a listing. Follow pages with the helper in `store/paging.rs`, which checks the tokens.
    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError>;

    /// Deletes an object, or one version of it.
    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError>;

    /// Begins a multipart upload.
    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError>;

    /// Sends one part; the same number again replaces it.
    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError>;

    /// Makes the parts, in order, the object. Unconditional: a condition on this call is never
    /// relied on (several servers ignore it), bodies have random keys and need none.
    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError>;

    /// Gives an upload up and frees its parts; an absent upload is success.
    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError>;

    /// Reads one page of all unfinished uploads of the bucket, ours or not.
    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError>;

    /// Reads whether the bucket keeps versions; it may change while data is there, so destructive
    /// operations ask again each time.
    async fn versioning(&self) -> Result<Versioning, StoreError>;

    /// Reads one page of the versions of all keys that begin with `prefix`.
    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError>;

    /// Writes one object in one request that pauses, or claims a wrong checksum, as `probe` says.
    /// Only attestation asks for it; a store that cannot is attested without.
    async fn put_probe(
        &self,
        key: &Key,
        _probe: ProbePut,
        _mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        Err(StoreError::new(
            StoreErrorKind::NotImplemented,
            "put",
            key,
            "this backend has no probing put",
        ))
    }

    /// Reads what the bucket says of itself; whatever cannot be read is unknown, never an error.
    async fn bucket_facts(&self) -> BucketFacts {
        BucketFacts::default()
    }
}
