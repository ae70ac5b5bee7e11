//! Reading a page of lines: one range of at most a few verified chunks, cut by [`line_page`].
//!
//! [`line_page`]: crate::artifact::line_page

use crate::artifact::chunk_table::bytes_of_chunks;
use crate::artifact::library::Library;
use crate::artifact::line_page::{BodyShape, LinePage, PageRequest};
use crate::artifact::manifest::Manifest;
use crate::artifact::read::ReadError;
use crate::ids::{ArtifactRef, Tenant};

fn shape_of(manifest: &Manifest) -> BodyShape<'_> {
    BodyShape {
        size_bytes: manifest.head.body.size_bytes,
        line_count: manifest.head.line_count,
        chunks: &manifest.chunks,
    }
}

impl Library {
    /// Reads a page of lines. A page that begins past the end is an answer, not an error.
    ///
    /// With the manifest cached that is one range GET and, beside it, the conditional GET that
    /// confirms it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn lines(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        request: &PageRequest,
    ) -> Result<LinePage, ReadError> {
        let chunks_of = |manifest: &Manifest| request.chunks(&shape_of(manifest));
        let mut read = self
            .open(tenant, artifact, |manifest| {
                bytes_of_chunks(&chunks_of(manifest), manifest.head.body.size_bytes)
            })
            .await?;
        // Bounded by the request: at most its reply's bytes and two chunks.
        let mut window = Vec::new();
        while let Some(piece) = read.next().await? {
            window.extend_from_slice(&piece);
        }
        let manifest = &read.manifest;
        Ok(request.cut(&shape_of(manifest), &chunks_of(manifest), &window))
    }
}
