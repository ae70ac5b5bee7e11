//! The receipt: what a save answers. The same save again gives the same receipt, byte for byte, but
//! for the retention fields.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::artifact::completeness::Completeness;
use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::locator::Locator;
use crate::digest::Sha256Digest;
use crate::ids::ArtifactId;

/// What a save answers. A receipt is not a lease: without one the artifact is kept for the orphan
/// TTL of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// Its short name, to be read by.
    pub locator: String,
    /// How a memory refers to it.
    pub source_id: String,
    /// SHA-256 of the stored bytes.
    pub digest: Sha256Digest,
    /// Size of the stored bytes.
    pub size_bytes: u64,
    /// Lines; bytes after the last LF count as one.
    pub line_count: u64,
    /// Whether the sender had the whole output, as it declared.
    pub completeness: Completeness,
    /// Whether the replacement shows less than the body; always present.
    pub truncated: bool,
    /// Body bytes that the replacement shows.
    pub preview_bytes: u64,
    /// Body bytes that it leaves out, exactly.
    pub omitted_bytes: u64,
    /// The head shown is the body's bytes `0..head_end`.
    pub head_end: u64,
    /// The tail shown is the body's bytes from here to the end.
    pub tail_start: u64,
    /// `none`: nothing but the orphan TTL protects the artifact.
    pub lease: &'static str,
    /// Seconds until the collector may take it, if nothing refers to it by then.
    pub orphan_ttl_seconds: u64,
    /// The same as a date.
    pub retained_until: Timestamp,
    /// How to read on, from the means that the caller declared.
    pub retrieval_hint: Option<String>,
    /// The text for the prompt.
    pub replacement: String,
    /// Where to read.
    pub links: Links,
}

/// The reading addresses of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Links {
    /// The bytes.
    pub bytes: String,
    /// Pages of lines.
    pub lines: String,
    /// Search.
    pub grep: String,
}

impl Receipt {
    /// Builds the receipt of a confirmed artifact as of `now`.
    pub fn of(
        manifest: &ConfirmedManifest,
        orphan_ttl: std::time::Duration,
        now: Timestamp,
    ) -> Self {
        let head = &manifest.head;
        let locator = Locator::of(manifest).as_str().to_owned();
        let ttl = SignedDuration::try_from(orphan_ttl).unwrap_or(SignedDuration::MAX);
        let retained_until = manifest
            .last_use()
            .saturating_add(ttl)
            .unwrap_or(Timestamp::MAX);
        let left = retained_until.duration_since(now);
        // Rounded up: a fresh receipt states the whole TTL.
        let left_seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
        Self {
            artifact_id: head.artifact_id,
            source_id: head.source_id(),
            digest: head.body.sha256,
            size_bytes: head.body.size_bytes,
            line_count: head.line_count,
            completeness: head.completeness,
            truncated: head.replacement.truncated,
            preview_bytes: head.replacement.preview_bytes,
            omitted_bytes: head.replacement.omitted_bytes,
            head_end: head.replacement.head_end,
            tail_start: head.replacement.tail_start,
            lease: "none",
            orphan_ttl_seconds: u64::try_from(left_seconds)
                .unwrap_or(0)
                .min(orphan_ttl.as_secs()),
            retained_until,
            retrieval_hint: head.replacement.retrieval_hint.clone(),
            replacement: head.replacement.text.clone(),
            links: Links {
                bytes: locator.clone(),
                lines: format!("{locator}/lines"),
                grep: format!("{locator}/grep"),
            },
            locator,
        }
    }
}

/// What a memory may keep of an artifact: never a byte of the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// One line.
    pub summary: String,
    /// The locator.
    pub locator: String,
    /// 64 lower-case hex digits.
    pub content_sha256: String,
    /// The tool that printed it.
    pub source_tool: Option<String>,
    /// Where it came from.
    pub source: ReferenceSource,
}

/// The source part of a [`Reference`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReferenceSource {
    /// `artifact:{session}:{aid}:{12 hex}`.
    pub source_id: String,
    /// `tool_artifact`.
    pub source_type: &'static str,
    /// The title, else the summary.
    pub title: String,
    /// When it was stored, by the store's clock.
    pub captured_at: Timestamp,
}

impl Reference {
    /// Builds the reference of a confirmed artifact.
    pub fn of(manifest: &ConfirmedManifest) -> Self {
        let head = &manifest.head;
        Self {
            summary: head.summary.clone(),
            locator: Locator::of(manifest).as_str().to_owned(),
            content_sha256: head.body.sha256.to_hex(),
            source_tool: head.provenance.tool.clone(),
            source: ReferenceSource {
                source_id: head.source_id(),
                source_type: "tool_artifact",
                title: head
                    .provenance
                    .title
                    .clone()
                    .unwrap_or_else(|| head.summary.clone()),
                captured_at: head.provenance.captured_at,
            },
        }
    }
}
