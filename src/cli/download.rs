//! Reading a body whole, checked against the size and the digest that the reply states.

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, ETAG};
use http::{HeaderMap, Request};

use crate::cli::failure::Failure;
use crate::cli::progress::Progress;
use crate::cli::transport::Transport;
use crate::digest::{Sha256Digest, Sha256Hasher, parse_digest_field};
use crate::http::api_path::ApiPath;
use crate::ids::ArtifactRef;

/// A body that is arriving.
#[derive(Debug)]
pub struct Download {
    /// Its size.
    pub size_bytes: u64,
    /// Its digest.
    pub digest: Sha256Digest,
    stream: BodyDataStream,
    hasher: Sha256Hasher,
    arrived_bytes: u64,
    progress: Progress,
}

impl Download {
    /// Asks for the artifact's bytes.
    ///
    /// # Errors
    /// The reply is no success, or does not say what it brings.
    pub async fn open(transport: &Transport, artifact: &ArtifactRef) -> Result<Self, Failure> {
        let request = get(&ApiPath::artifact(artifact, ""))?;
        let response = transport.ask(request).await?;
        let headers = response.headers();
        let (Some(size_bytes), Some(digest)) = (size_of(headers), digest_of(headers)) else {
            return Err(
                Failure::new("the reply states no size and digest to check the bytes by")
                    .with_hint("check that --url or SPILLBOX_URL names a Spillbox service"),
            );
        };
        Ok(Self {
            size_bytes,
            digest,
            stream: response.into_body().into_data_stream(),
            hasher: Sha256Hasher::default(),
            arrived_bytes: 0,
            progress: Progress::new(Some(size_bytes)),
        })
    }

    /// Hides the progress, where the bytes themselves go to the terminal.
    pub fn hide_progress(&mut self) {
        self.progress.finish();
        self.progress = Progress::none();
    }

    /// Returns the next bytes; `None` only after all of them were checked.
    ///
    /// # Errors
    /// The transfer broke, or brought other bytes than were stored.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.stream.next().await {
            Some(Ok(piece)) => {
                self.hasher.update(&piece);
                self.arrived_bytes += piece.len() as u64;
                self.progress.add(piece.len());
                Ok(Some(piece))
            }
            Some(Err(error)) => Err(self.broken(&error.to_string())),
            None => {
                self.progress.finish();
                self.check()?;
                Ok(None)
            }
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        if self.arrived_bytes != self.size_bytes {
            return Err(self.broken("it ended early"));
        }
        let actual = std::mem::take(&mut self.hasher).finish();
        if actual != self.digest {
            return Err(Failure::new(format!(
                "the bytes that arrived have {actual}, stored were {}",
                self.digest
            ))
            .with_hint("do not use them; try again"));
        }
        Ok(())
    }

    fn broken(&self, reason: &str) -> Failure {
        self.progress.finish();
        Failure::new(format!(
            "the transfer stopped after {} of {} bytes: {reason}",
            self.arrived_bytes, self.size_bytes
        ))
        .with_hint("try again")
    }
}

fn size_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The digest of the whole body, from `Repr-Digest` or from our ETag.
fn digest_of(headers: &HeaderMap) -> Option<Sha256Digest> {
    let field = headers.get("repr-digest").and_then(|v| v.to_str().ok());
    if let Some(digest) = field.and_then(|field| parse_digest_field(field).ok().flatten()) {
        return Some(digest);
    }
    let etag = headers.get(ETAG)?.to_str().ok()?;
    let hex = etag.strip_prefix("\"sha256:")?.strip_suffix('"')?;
    Sha256Digest::from_hex(hex).ok()
}

/// Builds a GET.
///
/// # Errors
/// The path is no URI, which happens only when it is too long.
pub fn get(path: &ApiPath) -> Result<Request<Body>, Failure> {
    Request::get(path.as_str())
        .body(Body::empty())
        .map_err(|error| Failure::usage(format!("the request is too long: {error}")))
}
