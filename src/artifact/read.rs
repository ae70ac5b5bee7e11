//! Reading bodies: nothing is served before its manifest is confirmed live and its chunk is verified.
//!
//! A cached manifest chooses the bytes to ask for, and its conditional GET goes out beside the body's
//! GET, so that confirming costs no round trip. Each chunk's SHA-256 is checked before any byte of it
//! leaves, so a body that was changed behind the service is an error, never served as good, by range
//! as well as whole.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

use crate::artifact::chunk_table::{bytes_of_chunks, chunks_for_bytes};
use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::library::Library;
use crate::artifact::manifest::{Manifest, ManifestFormatError};
use crate::artifact::manifest_access::{Lookup, LookupError};
use crate::artifact::request::code_of_store_error;
use crate::digest::Sha256Hasher;
use crate::error::{Deletion, ErrorCode};
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::CHUNK_BYTES;
use crate::store::{ByteStream, GetOptions, GetReply, StoreError, StoreErrorKind};

/// A read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such artifact.
    #[error("no such artifact")]
    NotFound,
    /// It was deleted.
    #[error("the artifact was deleted ({})", .0.reason)]
    Deleted(Deletion),
    /// The stored bytes are not those that were saved.
    #[error("the stored body does not match its manifest: {0}")]
    Corrupt(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored cannot be read.
    #[error(transparent)]
    Format(#[from] ManifestFormatError),
}

impl From<LookupError> for ReadError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Store(error) => Self::Store(error),
            LookupError::Format(error) => Self::Format(error),
        }
    }
}

impl ReadError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound => ErrorCode::ArtifactNotFound,
            Self::Deleted(_) => ErrorCode::ArtifactDeleted,
            Self::Corrupt(_) => ErrorCode::BodyCorrupt,
            // A read changes nothing, so a lost reply is only an unavailable store.
            Self::Store(error)
                if error.kind.is_undecided() && error.kind != StoreErrorKind::Throttled =>
            {
                ErrorCode::StoreUnavailable
            }
            Self::Store(error) => code_of_store_error(error.kind),
            Self::Format(ManifestFormatError::UnknownVersion(_)) => {
                ErrorCode::StoreFormatUnsupported
            }
            Self::Format(
                ManifestFormatError::Malformed(_) | ManifestFormatError::Inconsistent(_),
            ) => ErrorCode::BodyCorrupt,
        }
    }

    /// Returns the 410 facts of a deleted artifact.
    pub fn deletion(&self) -> Option<&Deletion> {
        match self {
            Self::Deleted(deletion) => Some(deletion),
            Self::NotFound | Self::Corrupt(_) | Self::Store(_) | Self::Format(_) => None,
        }
    }
}

/// A part of a body that is being read, its manifest confirmed and its first chunk verified.
#[derive(Debug)]
pub struct BodyRead {
    /// The artifact.
    pub manifest: ConfirmedManifest,
    /// The bytes that the stream brings, half-open.
    pub range: Range<u64>,
    chunks: VerifiedChunks,
}

impl BodyRead {
    /// Returns the bytes of [`BodyRead::range`], each verified before it comes.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, ReadError>> + Send + 'static {
        stream::unfold(Some(self.chunks), |chunks| async move {
            let mut chunks = chunks?;
            match chunks.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(chunks))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// Returns the next verified piece; `None` at the end of the range.
    ///
    /// # Errors
    /// The store fails, or the body is not what was saved.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        self.chunks.next().await
    }
}

impl Library {
    /// Returns the artifact's manifest, confirmed live now.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn stat(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<ConfirmedManifest, ReadError> {
        live(self.manifests.read(tenant, artifact).await?)
    }

    /// Opens the bytes that `want` chooses from the manifest, half-open; an empty range reads none.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn open(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        want: impl Fn(&Manifest) -> Range<u64>,
    ) -> Result<BodyRead, ReadError> {
        let guess = self.manifests.guess(tenant, artifact).await;
        let (lookup, early) = match &guess {
            Some(manifest) => {
                let get = self.get_chunks(tenant, artifact, manifest, want(manifest));
                let (lookup, early) = tokio::join!(self.manifests.read(tenant, artifact), get);
                (lookup?, Some(early))
            }
            None => (self.manifests.read(tenant, artifact).await?, None),
        };
        let manifest = live(lookup)?;
        self.note_read(&manifest);
        let range = want(&manifest);
        // A manifest is overwritten once, by its tombstone: live and cached are the same bytes.
        let opened = match early {
            Some(opened) => opened,
            None => {
                self.get_chunks(tenant, artifact, &manifest, range.clone())
                    .await
            }
        };
        let mut chunks = match opened {
            Err(error) if error.is(StoreErrorKind::NotFound) => {
                return Err(self.body_is_missing(tenant, artifact).await);
            }
            Err(error) if error.is(StoreErrorKind::InvalidRange) => {
                return Err(ReadError::Corrupt(error.detail));
            }
            opened => opened?,
        };
        chunks.verify_first().await?;
        Ok(BodyRead {
            manifest,
            range,
            chunks,
        })
    }

    /// The body of a live manifest is gone: erased between the two requests, or lost.
    async fn body_is_missing(&self, tenant: &Tenant, artifact: &ArtifactRef) -> ReadError {
        match self.stat(tenant, artifact).await {
            Ok(_) => ReadError::Corrupt("the body is missing".to_owned()),
            Err(error) => error,
        }
    }

    async fn get_chunks(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        manifest: &Manifest,
        wanted: Range<u64>,
    ) -> Result<VerifiedChunks, StoreError> {
        let size_bytes = manifest.head.body.size_bytes;
        let chunks = chunks_for_bytes(&wanted);
        let aligned = bytes_of_chunks(&chunks, size_bytes);
        let digests = manifest.chunks.get(chunks.clone()).unwrap_or_default();
        let digests = digests.iter().map(|chunk| chunk.sha256).collect();
        let body: ByteStream = if wanted.is_empty() {
            stream::empty().boxed()
        } else {
            let is_whole = aligned == (0..size_bytes);
            let options = GetOptions {
                range: (!is_whole).then(|| aligned.clone()),
                ..GetOptions::default()
            };
            match self
                .store
                .get(&self.keys.body(tenant, artifact), options)
                .await?
            {
                GetReply::Found(object) if object.meta.size_bytes == size_bytes => object.body,
                GetReply::Found(object) => {
                    let detail = format!(
                        "the stored body has {} bytes instead of {size_bytes}",
                        object.meta.size_bytes
                    );
                    return Err(StoreError::new(
                        StoreErrorKind::InvalidRange,
                        "get",
                        artifact,
                        detail,
                    ));
                }
                GetReply::NotModified { .. } => {
                    let detail = "304 to an unconditional request";
                    return Err(StoreError::new(
                        StoreErrorKind::Rejected,
                        "get",
                        artifact,
                        detail,
                    ));
                }
            }
        };
        Ok(VerifiedChunks {
            body,
            leftover: Bytes::new(),
            digests,
            offset: aligned.start,
            end: aligned.end,
            wanted,
            verified: VecDeque::new(),
        })
    }
}

fn live(lookup: Lookup) -> Result<ConfirmedManifest, ReadError> {
    match lookup {
        Lookup::Live(manifest) => Ok(manifest),
        Lookup::Tombstone(tombstone) => Err(ReadError::Deleted(tombstone.deletion())),
        Lookup::Absent => Err(ReadError::NotFound),
    }
}

/// Whole chunks as they come from the store; their bytes are held back until the chunk's digest is
/// known to be right, at most one chunk at a time.
struct VerifiedChunks {
    body: ByteStream,
    /// The part of the last frame that belongs to the next chunk.
    leftover: Bytes,
    /// Digests of the chunks still to come.
    digests: VecDeque<crate::digest::Sha256Digest>,
    /// Body offset of the next unverified byte.
    offset: u64,
    /// Body offset at which the last chunk ends.
    end: u64,
    wanted: Range<u64>,
    verified: VecDeque<Bytes>,
}

impl std::fmt::Debug for VerifiedChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerifiedChunks")
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl VerifiedChunks {
    async fn verify_first(&mut self) -> Result<(), ReadError> {
        while self.verified.is_empty() && self.offset < self.end {
            self.verify_chunk().await?;
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        self.verify_first().await?;
        Ok(self.verified.pop_front())
    }

    async fn verify_chunk(&mut self) -> Result<(), ReadError> {
        let start = self.offset;
        let chunk_end = (start + CHUNK_BYTES as u64).min(self.end);
        let expected = self.digests.pop_front();
        let mut hasher = Sha256Hasher::default();
        while self.offset < chunk_end {
            let frame = self.next_frame().await?;
            self.take(frame, chunk_end, &mut hasher);
        }
        if Some(hasher.finish()) != expected {
            self.verified.clear();
            return Err(ReadError::Corrupt(format!(
                "bytes {start}-{} have another digest than was saved",
                chunk_end - 1
            )));
        }
        Ok(())
    }

    async fn next_frame(&mut self) -> Result<Bytes, ReadError> {
        if !self.leftover.is_empty() {
            return Ok(std::mem::take(&mut self.leftover));
        }
        match self.body.next().await.transpose()? {
            Some(frame) => Ok(frame),
            None => {
                let detail = format!("the store sent the body only up to byte {}", self.offset);
                Err(StoreError::new(StoreErrorKind::Unavailable, "get", "body", detail).into())
            }
        }
    }

    /// Hashes the part of `frame` that belongs to the open chunk, keeps what of it is wanted, and
    /// leaves the rest for the next chunk.
    fn take(&mut self, mut frame: Bytes, chunk_end: u64, hasher: &mut Sha256Hasher) {
        let room = usize::try_from(chunk_end - self.offset).unwrap_or(usize::MAX);
        let mut piece = frame.split_to(room.min(frame.len()));
        self.leftover = frame;
        hasher.update(&piece);
        let from = self.offset;
        self.offset += piece.len() as u64;
        let keep_end = self.wanted.end.clamp(from, self.offset) - from;
        let keep_start = self.wanted.start.clamp(from, self.offset) - from;
        let as_index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        piece.truncate(as_index(keep_end));
        let piece = piece.split_off(as_index(keep_start.min(keep_end)));
        if !piece.is_empty() {
            self.verified.push_back(piece);
        }
    }
}
