//! Brings the body to a search: verified, in order, a bounded way ahead.

use std::ops::Range;

use bytes::Bytes;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::SearchError;
use super::cursor::Place;
use super::engine::Start;
use crate::artifact::chunk_table::chunk_containing;
use crate::artifact::library::Library;
use crate::artifact::manifest::Manifest;
use crate::artifact::read::{BodyRead, ReadError};
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::{CHUNK_BYTES, SEARCH_AHEAD_BYTES, SEARCH_PART_BYTES};

/// Pieces on their way to the search, each about a chunk: 4 MiB.
pub(super) const PIECES_AHEAD: usize = 16;

/// What a search is given.
#[derive(Debug)]
pub(super) enum Fed {
    /// The next bytes of the body.
    Pieces(Vec<Bytes>),
    /// Nothing more in time: the search ends where it is.
    Late,
}

/// The body from one place to its end.
#[derive(Debug)]
pub(super) struct Feed {
    library: Library,
    tenant: Tenant,
    artifact: ArtifactRef,
    part: BodyRead,
}

impl Feed {
    /// Opens the body at `offset`; the manifest is confirmed and the first chunk verified.
    pub(super) async fn open(
        library: &Library,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        offset: u64,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            part: library.open(tenant, artifact, part_from(offset)).await?,
            library: library.clone(),
            tenant: tenant.clone(),
            artifact: *artifact,
        })
    }

    /// Returns what the engine must know of the body to begin at `place`.
    pub(super) fn start(&self, place: Place) -> Start {
        let manifest = &self.part.manifest;
        let input_offset = self.part.range.start;
        let chunk = manifest.chunks.get(chunk_containing(input_offset));
        Start {
            place,
            input_offset,
            input_line_index: chunk.map_or(0, |chunk| chunk.first_line_index),
            size_bytes: manifest.head.body.size_bytes,
        }
    }

    /// Sends the whole of it, as far as `to` takes it.
    pub(super) async fn send(mut self, to: &Sender<Fed>) -> Result<(), SearchError> {
        let size_bytes = self.part.manifest.head.body.size_bytes;
        loop {
            let next = self.part.range.end;
            if next >= size_bytes {
                self.send_part(to, u64::MAX).await?;
                return Ok(());
            }
            let ahead = next.saturating_sub(SEARCH_AHEAD_BYTES);
            if !self.send_part(to, ahead).await? {
                return Ok(());
            }
            // Ends with this future: a search that is over leaves no request behind.
            let mut opening = JoinSet::new();
            let (library, tenant, artifact) =
                (self.library.clone(), self.tenant.clone(), self.artifact);
            opening.spawn(async move { library.open(&tenant, &artifact, part_from(next)).await });
            if !self.send_part(to, u64::MAX).await? {
                return Ok(());
            }
            if let Some(opened) = opening.join_next().await {
                self.part = opened??;
            }
        }
    }

    /// Sends of this part what lies before `until`, about; returns whether more is wanted.
    async fn send_part(&mut self, to: &Sender<Fed>, until: u64) -> Result<bool, ReadError> {
        let mut pieces = Vec::new();
        let mut held_bytes = 0;
        let mut offset = self.part.range.start;
        while offset < until {
            let piece = self.part.next().await?;
            let is_end = piece.is_none();
            if let Some(piece) = piece {
                offset += piece.len() as u64;
                held_bytes += piece.len();
                pieces.push(piece);
            }
            if (is_end || held_bytes >= CHUNK_BYTES) && !pieces.is_empty() {
                held_bytes = 0;
                if to
                    .send(Fed::Pieces(std::mem::take(&mut pieces)))
                    .await
                    .is_err()
                {
                    return Ok(false);
                }
            }
            if is_end {
                break;
            }
        }
        Ok(pieces.is_empty() || to.send(Fed::Pieces(pieces)).await.is_ok())
    }
}

fn part_from(offset: u64) -> impl Fn(&Manifest) -> Range<u64> {
    move |manifest| {
        let size_bytes = manifest.head.body.size_bytes;
        offset.min(size_bytes)..(offset + SEARCH_PART_BYTES).min(size_bytes)
    }
}
