//! The manifest: the JSON description of one artifact, and the tombstone that replaces it.
//!
//! Both stand at the same key. A manifest is created once and says everything that a read needs to
//! know without the body; its tombstone says what was there and why it went. The chunk table is the
//! last member, so that a list reads only the head of each manifest ([`ManifestHead::decode`]).

use serde::{Deserialize, Serialize};

use crate::artifact::chunk_table::ChunkEntry;
use crate::artifact::completeness::Completeness;
use crate::artifact::outline::Outline;
use crate::digest::Sha256Digest;
use crate::error::Deletion;
use crate::ids::{ArtifactId, ArtifactRef, CallId, DecisionId, SessionId, SessionKey, Tenant};
use crate::limits::CHUNK_BYTES;

/// The version of the encoding; another one is not read.
pub const MANIFEST_VERSION: u32 = 1;

/// The stored body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyIdentity {
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the bytes stored.
    pub sha256: Sha256Digest,
    /// ETag that the store gave the body.
    pub etag: String,
    /// Version that the store gave the body, where it has versions.
    pub version_id: Option<String>,
    /// The checksum that the store says it kept, as `algorithm:value`.
    pub store_checksum: Option<String>,
}

/// Where an output came from; data of the caller, except the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The tool that printed it.
    pub tool: Option<String>,
    /// The tool call, as the provider named it.
    pub call_id: Option<CallId>,
    /// A label.
    pub label: Option<String>,
    /// A suggested file name.
    pub name: Option<String>,
    /// A title.
    pub title: Option<String>,
    /// When the body was stored, by the store's clock, RFC 3339.
    pub captured_at: jiff::Timestamp,
}

/// The rendering that stands in the prompt, frozen at the save.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The template that rendered it.
    pub template_version: u32,
    /// The profile that it was rendered under.
    pub profile: String,
    /// The locator as it stands in the text.
    pub locator: String,
    /// How to read on, in one line; absent when the caller declared no means.
    pub retrieval_hint: Option<String>,
    /// The text.
    pub text: String,
    /// Whether the text shows less than the body.
    pub truncated: bool,
    /// Body bytes that the text shows.
    pub preview_bytes: u64,
    /// Body bytes that it leaves out.
    pub omitted_bytes: u64,
    /// The head shown is the body's bytes `0..head_end`.
    pub head_end: u64,
    /// The tail shown is the body's bytes from here to the end.
    pub tail_start: u64,
}

/// Everything of a manifest but its chunk table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestHead {
    /// [`MANIFEST_VERSION`].
    pub v: u32,
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// Its tenant.
    pub tenant: Tenant,
    /// Its session as the caller named it.
    pub session: SessionId,
    /// Its session's key form.
    pub session_key: SessionKey,
    /// The session's parent, where it has one.
    pub parent_session: Option<SessionId>,
    /// The call record that led here; absent without a call id.
    pub decision_id: Option<DecisionId>,
    /// The body.
    pub body: BodyIdentity,
    /// Media type as the sender declared it.
    pub media_type: String,
    /// Whether the body is not valid UTF-8 (an empty body is text).
    pub binary: bool,
    /// Offset of the first byte that is not valid UTF-8.
    pub first_invalid_utf8: Option<u64>,
    /// Lines; bytes after the last LF count as one.
    pub line_count: u64,
    /// Where it came from.
    pub provenance: Provenance,
    /// Whether the sender had the whole output.
    pub completeness: Completeness,
    /// What the sender knows to be lost, in its own words.
    pub upstream_loss: Option<String>,
    /// Which redaction rules ran before storing.
    pub redaction: String,
    /// One line that says what this is, at most 240 characters.
    pub summary: String,
    /// The rendering that stands in the prompt.
    pub replacement: Replacement,
    /// What an agent asks first of the body.
    #[serde(default)]
    pub outline: Outline,
    /// Bytes per chunk; the last may be shorter.
    pub chunk_bytes: u64,
}

/// The description of one live artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Everything but the chunk table.
    #[serde(flatten)]
    pub head: ManifestHead,
    /// One entry for every [`ManifestHead::chunk_bytes`] of body. The last member of the encoding.
    pub chunks: Vec<ChunkEntry>,
}

/// What stays at a manifest's key after its artifact was deleted. No content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// [`MANIFEST_VERSION`].
    pub v: u32,
    /// The artifact that was here.
    pub artifact_id: ArtifactId,
    /// Why it went.
    pub tombstone: TombstoneReason,
    /// The call record that led to it.
    pub decision_id: Option<DecisionId>,
    /// Digest of the bytes, where known.
    pub sha256: Option<Sha256Digest>,
    /// Size of the bytes, where known.
    pub size_bytes: Option<u64>,
    /// When it was condemned, by the store's clock, RFC 3339.
    pub deleted_at: Option<String>,
}

/// Why an artifact was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TombstoneReason {
    /// Collected: nothing referred to it for longer than the orphan TTL.
    Expired,
    /// Erased on request; final, also for later saves of the same output.
    Erased,
    /// A body whose save never finished.
    UploadAbandoned,
}

impl TombstoneReason {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Erased => "erased",
            Self::UploadAbandoned => "upload_abandoned",
        }
    }
}

impl Tombstone {
    /// Returns the facts that a 410 states.
    pub fn deletion(&self) -> Deletion {
        Deletion {
            reason: self.tombstone.as_str().to_owned(),
            deleted_at: self.deleted_at.clone(),
            digest: self.sha256.map(|digest| digest.to_string()),
            size_bytes: self.size_bytes,
        }
    }
}

/// What stands at a manifest's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestEntry {
    /// A live artifact.
    Live(Box<Manifest>),
    /// A deleted one.
    Tombstone(Tombstone),
}

/// The bytes at a manifest's key cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestFormatError {
    /// They are not JSON of the expected shape.
    #[error("not a manifest: {0}")]
    Malformed(#[from] serde_json::Error),
    /// They were written by another version of the product.
    #[error("manifest version {0} is not readable by this version")]
    UnknownVersion(u64),
    /// They describe another artifact than the key names, or contradict themselves.
    #[error("inconsistent manifest: {0}")]
    Inconsistent(&'static str),
}

#[derive(Deserialize)]
struct Envelope {
    v: u64,
    tombstone: Option<serde::de::IgnoredAny>,
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("a struct of strings and numbers always serialises")
}

impl Tombstone {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

impl Manifest {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

impl ManifestEntry {
    /// Reads what stands at the manifest key of `expected`.
    ///
    /// # Errors
    /// See [`ManifestFormatError`]; a manifest that names another artifact is refused, so that a
    /// copied object never answers for another key.
    pub fn decode(bytes: &[u8], expected: &ArtifactRef) -> Result<Self, ManifestFormatError> {
        let envelope: Envelope = serde_json::from_slice(bytes)?;
        if envelope.v != u64::from(MANIFEST_VERSION) {
            return Err(ManifestFormatError::UnknownVersion(envelope.v));
        }
        if envelope.tombstone.is_some() {
            let tombstone: Tombstone = serde_json::from_slice(bytes)?;
            if tombstone.artifact_id != expected.artifact_id {
                return Err(ManifestFormatError::Inconsistent("names another artifact"));
            }
            return Ok(Self::Tombstone(tombstone));
        }
        let manifest: Manifest = serde_json::from_slice(bytes)?;
        manifest.head.check(expected)?;
        let chunk_count = manifest.head.body.size_bytes.div_ceil(CHUNK_BYTES as u64);
        if manifest.chunks.len() as u64 != chunk_count {
            return Err(ManifestFormatError::Inconsistent(
                "chunk table of another size",
            ));
        }
        if !manifest
            .chunks
            .is_sorted_by_key(|chunk| chunk.first_line_index)
        {
            return Err(ManifestFormatError::Inconsistent(
                "chunk table out of order",
            ));
        }
        Ok(Self::Live(Box::new(manifest)))
    }
}

/// What the head of a listed manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedEntry {
    /// A live artifact.
    Live(Box<ManifestHead>),
    /// A deleted one.
    Tombstone,
    /// The bytes given end before the chunk table begins: read more.
    NeedsMore,
}

/// Begins the last member; cannot occur inside a JSON string, where a quote is escaped.
const CHUNKS_MEMBER: &[u8] = br#","chunks":["#;

impl ManifestHead {
    /// Reads the first bytes of what stands at a manifest key, without the chunk table.
    ///
    /// `is_whole` says whether `bytes` are the whole object.
    ///
    /// # Errors
    /// See [`ManifestFormatError`].
    pub fn decode(
        bytes: &[u8],
        is_whole: bool,
        expected: &ArtifactRef,
    ) -> Result<ListedEntry, ManifestFormatError> {
        let Some(end) = memchr::memmem::find(bytes, CHUNKS_MEMBER) else {
            if !is_whole {
                return Ok(ListedEntry::NeedsMore);
            }
            return match ManifestEntry::decode(bytes, expected)? {
                ManifestEntry::Live(manifest) => Ok(ListedEntry::Live(Box::new(manifest.head))),
                ManifestEntry::Tombstone(_) => Ok(ListedEntry::Tombstone),
            };
        };
        let object = [&bytes[..end], b"}"].concat();
        let envelope: Envelope = serde_json::from_slice(&object)?;
        if envelope.v != u64::from(MANIFEST_VERSION) {
            return Err(ManifestFormatError::UnknownVersion(envelope.v));
        }
        let head: Self = serde_json::from_slice(&object)?;
        head.check(expected)?;
        Ok(ListedEntry::Live(Box::new(head)))
    }

    /// Returns the words that name this artifact in a locator.
    pub fn artifact_ref(&self) -> ArtifactRef {
        ArtifactRef {
            session_key: self.session_key,
            artifact_id: self.artifact_id,
        }
    }

    /// Returns the id under which a memory refers to this output:
    /// `artifact:{session}:{aid}:{first 12 hex of sha256}`, parsed from the right.
    pub fn source_id(&self) -> String {
        source_id(&self.session, &self.artifact_id, &self.body.sha256)
    }

    fn check(&self, expected: &ArtifactRef) -> Result<(), ManifestFormatError> {
        if self.artifact_ref() != *expected {
            return Err(ManifestFormatError::Inconsistent("names another artifact"));
        }
        if self.chunk_bytes != CHUNK_BYTES as u64 {
            return Err(ManifestFormatError::Inconsistent("chunks of another size"));
        }
        Ok(())
    }
}

/// Builds a source id; see [`ManifestHead::source_id`].
pub fn source_id(session: &SessionId, artifact: &ArtifactId, sha256: &Sha256Digest) -> String {
    format!("artifact:{session}:{artifact}:{}", &sha256.to_hex()[..12])
}
