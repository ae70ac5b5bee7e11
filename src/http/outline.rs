//! `GET /a/{locator}/outline`: what an agent asks first of a long output.

use axum::response::Response;
use serde::Serialize;

use crate::artifact::locator::Locator;
use crate::artifact::outline::Outline;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::http::reply::artifact_json;

#[derive(Serialize)]
struct OutlineReply<'a> {
    locator: &'a str,
    summary: &'a str,
    size_bytes: u64,
    line_count: u64,
    binary: bool,
    #[serde(flatten)]
    outline: &'a Outline,
}

/// Serves the outline that was taken when the body was saved.
pub(crate) async fn outline(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    let manifest = caller.library.stat(&caller.tenant, &artifact).await?;
    Ok(artifact_json(&OutlineReply {
        locator: Locator::of(&manifest).as_str(),
        summary: &manifest.head.summary,
        size_bytes: manifest.head.body.size_bytes,
        line_count: manifest.head.line_count,
        binary: manifest.head.binary,
        outline: &manifest.head.outline,
    }))
}
