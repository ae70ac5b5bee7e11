//! The `{locator}` segment of a path.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::artifact::read::ReadError;
use crate::http::problem::Problem;
use crate::http::query::decode_percent;
use crate::ids::ArtifactRef;

const ARTIFACTS_PREFIX: &str = "/a/";

/// Extracts the artifact of a route under `/a/{locator}`. A malformed locator is answered exactly as
/// an unknown one, so that nobody learns what names exist by the form of the refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArtifactPath(pub(crate) ArtifactRef);

impl<S: Send + Sync> FromRequestParts<S> for ArtifactPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let artifact = artifact_of_path(parts.uri.path());
        artifact.map(Self).ok_or_else(|| ReadError::NotFound.into())
    }
}

pub(crate) fn artifact_of_path(path: &str) -> Option<ArtifactRef> {
    let segment = path.strip_prefix(ARTIFACTS_PREFIX)?.split('/').next()?;
    decode_percent(segment).ok()?.parse().ok()
}
