//! `POST` and `PUT /v1/sessions/{session}/artifacts`: the raw body becomes an artifact.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, TryStreamExt};

use crate::artifact::completeness::parse_with_loss;
use crate::artifact::request::{BodyError, BodyStream, SaveRequest};
use crate::http::audit::AuditSubject;
use crate::http::budget;
use crate::http::caller::Caller;
use crate::http::condition::EntityTag;
use crate::http::confine::demand_readable;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, Query};
use crate::http::reply;
use crate::http::session_path::SessionPath;
use crate::http::upload_headers::{
    media_type, refuse_encoded_or_partial, stated_digest, stated_length,
};
use crate::ids::SessionId;
use crate::limits::{MAX_DESCRIPTION_BYTES, MAX_SUMMARY_INPUT_BYTES};
use crate::policy::profile::Profile;

const PARAMETERS: &[&str] = &[
    "tool",
    "call_id",
    "label",
    "name",
    "title",
    "summary",
    "completeness",
    "profile",
    "parent",
    "means",
];

/// Saves the body; 201, or 200 for the same save again.
pub(crate) async fn save(
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query(), PARAMETERS)?;
    let described = describe(&caller, session, &query, &parts.headers)?;
    demand_readable(&caller, described.parent.as_ref()).await?;
    let saved = caller.library.save(described, stream_of(body)).await?;
    let receipt = caller.library.receipt(&saved.manifest);
    caller.metrics.saved(receipt.size_bytes, saved.is_new);
    let status = if saved.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut reply = reply::json(status, &receipt);
    let headers = reply.headers_mut();
    headers.insert(ETAG, EntityTag::of(&receipt.digest).to_header());
    let artifact = saved.manifest.head.artifact_ref();
    if let Ok(location) = HeaderValue::try_from(&receipt.locator) {
        headers.insert(LOCATION, location);
    }
    reply.extensions_mut().insert(AuditSubject(artifact));
    Ok(reply)
}

fn describe(
    caller: &Caller,
    session: SessionId,
    query: &Query,
    headers: &HeaderMap,
) -> Result<SaveRequest, Problem> {
    let mut described = described_by_headers(caller, session, headers)?;
    described.parent = query.parsed("parent")?;
    described.call_id = query.parsed("call_id")?;
    let description = |name| text(query, name, MAX_DESCRIPTION_BYTES);
    described.tool = description("tool")?;
    described.label = description("label")?;
    described.name = description("name")?;
    described.title = description("title")?;
    described.summary = text(query, "summary", MAX_SUMMARY_INPUT_BYTES)?;
    let profile = budget::profile(caller, query.text("profile"))?;
    if let Some(stated) = text(query, "completeness", MAX_DESCRIPTION_BYTES)? {
        let (completeness, lost) = parse_with_loss(&stated)
            .map_err(|rule| InvalidParameterError::new("completeness", rule.to_string()))?;
        described.completeness = completeness;
        described.upstream_loss = lost.map(str::to_owned);
    }
    described.means = budget::means(caller, &profile, query.text("means"))?;
    described.render = profile;
    Ok(described)
}

/// Describes a result: what of an artifact's description a tool call has.
pub(crate) fn describe_result(
    caller: &Caller,
    session: SessionId,
    query: &Query,
    headers: &HeaderMap,
    profile: &Arc<Profile>,
) -> Result<SaveRequest, Problem> {
    let mut described = described_by_headers(caller, session, headers)?;
    described.parent = query.parsed("parent")?;
    described.call_id = query.parsed("call_id")?;
    described.tool = text(query, "tool", MAX_DESCRIPTION_BYTES)?;
    described.means = budget::means(caller, profile, query.text("means"))?;
    described.render = Arc::<Profile>::clone(profile);
    Ok(described)
}

fn described_by_headers(
    caller: &Caller,
    session: SessionId,
    headers: &HeaderMap,
) -> Result<SaveRequest, Problem> {
    refuse_encoded_or_partial(headers)?;
    let mut described = SaveRequest::new(caller.tenant.clone(), session);
    described.media_type = media_type(headers)?;
    described.expected_bytes = stated_length(headers)?;
    described.expected_digest = stated_digest(headers)?;
    Ok(described)
}

/// Returns a bounded text; an empty one says as little as none.
fn text(
    query: &Query,
    name: &str,
    most_bytes: usize,
) -> Result<Option<String>, InvalidParameterError> {
    match query.text(name) {
        None | Some("") => Ok(None),
        Some(text) if text.len() <= most_bytes => Ok(Some(text.to_owned())),
        Some(_) => {
            let rule = format!("at most {most_bytes} bytes of UTF-8");
            Err(InvalidParameterError::new(name, rule))
        }
    }
}

/// A connection that breaks ends the stream with an error, never as if the body were whole: a chunked
/// body has no length to be compared with.
pub(crate) fn stream_of(body: Body) -> BodyStream {
    body.into_data_stream()
        .map_err(|error| BodyError::Incomplete(error.to_string()))
        .boxed()
}
