//! What is known of an artifact without its bytes: `stat`, `reference` and `replacement`.

use axum::response::Response;
use serde::Serialize;

use crate::artifact::locator::Locator;
use crate::artifact::manifest::ManifestHead;
use crate::artifact::receipt::Reference;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::http::reply::{artifact_json, artifact_text};

/// The manifest without its chunk table, and the two names that are built from it.
#[derive(Serialize)]
struct Stat<'a> {
    locator: &'a str,
    source_id: String,
    #[serde(flatten)]
    head: &'a ManifestHead,
}

/// `GET /a/{locator}/stat`.
pub(crate) async fn stat(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    let manifest = caller.library.stat(&caller.tenant, &artifact).await?;
    Ok(artifact_json(&Stat {
        locator: Locator::of(&manifest).as_str(),
        source_id: manifest.head.source_id(),
        head: &manifest.head,
    }))
}

/// `GET /a/{locator}/reference`: what a memory may keep.
pub(crate) async fn reference(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    let manifest = caller.library.stat(&caller.tenant, &artifact).await?;
    Ok(artifact_json(&Reference::of(&manifest)))
}

/// `GET /a/{locator}/replacement`: the text that stands in the prompt, frozen at the save.
pub(crate) async fn replacement(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    let manifest = caller.library.stat(&caller.tenant, &artifact).await?;
    caller.library.note_read(&manifest);
    Ok(artifact_text(manifest.head.replacement.text.clone()))
}
