//! `GET /v1/sessions/{session}/artifacts`: a session's artifacts, newest first.

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;

use crate::artifact::completeness::Completeness;
use crate::artifact::list::{ListQuery, decode_cursor, encode_cursor};
use crate::artifact::manifest::ManifestHead;
use crate::digest::Sha256Digest;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, Query};
use crate::http::reply;
use crate::http::session_path::SessionPath;
use crate::ids::{ArtifactId, CallId, SessionKey};
use crate::limits::{DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT};

const PARAMETERS: &[&str] = &["limit", "cursor", "tool", "since", "until"];

#[derive(Serialize)]
struct Page<'a> {
    artifacts: Vec<Listed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Listed<'a> {
    artifact_id: ArtifactId,
    locator: &'a str,
    source_id: String,
    tool: Option<&'a str>,
    call_id: Option<&'a CallId>,
    label: Option<&'a str>,
    name: Option<&'a str>,
    title: Option<&'a str>,
    digest: Sha256Digest,
    size_bytes: u64,
    line_count: u64,
    summary: &'a str,
    media_type: &'a str,
    binary: bool,
    completeness: Completeness,
    captured_at: Timestamp,
}

impl<'a> Listed<'a> {
    fn of(head: &'a ManifestHead) -> Self {
        let from = &head.provenance;
        Self {
            artifact_id: head.artifact_id,
            locator: &head.replacement.locator,
            source_id: head.source_id(),
            tool: from.tool.as_deref(),
            call_id: from.call_id.as_ref(),
            label: from.label.as_deref(),
            name: from.name.as_deref(),
            title: from.title.as_deref(),
            digest: head.body.sha256,
            size_bytes: head.body.size_bytes,
            line_count: head.line_count,
            summary: &head.summary,
            media_type: &head.media_type,
            binary: head.binary,
            completeness: head.completeness,
            captured_at: from.captured_at,
        }
    }
}

/// Lists a session. A page may be short, or empty, while more follows.
pub(crate) async fn list(
    caller: Caller,
    SessionPath(session): SessionPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let session_key = SessionKey::derive(&caller.tenant, &session);
    let query = list_query(uri.query(), &session_key)?;
    let found = caller
        .library
        .list(&caller.tenant, &session, &query)
        .await?;
    let next = found.next.as_ref();
    let page = Page {
        artifacts: found.heads.iter().map(Listed::of).collect(),
        next_cursor: next.map(|after| encode_cursor(&session_key, after)),
    };
    let mut reply = reply::json(StatusCode::OK, &page);
    let no_store = HeaderValue::from_static("no-store");
    reply.headers_mut().insert(CACHE_CONTROL, no_store);
    Ok(reply)
}

fn list_query(raw: Option<&str>, session: &SessionKey) -> Result<ListQuery, InvalidParameterError> {
    let query = Query::parse(raw, PARAMETERS)?;
    let limit = query.number("limit", 1..=MAX_LIST_LIMIT as u64)?;
    let after = match query.text("cursor") {
        None => None,
        Some(cursor) => Some(decode_cursor(session, cursor).ok_or_else(|| {
            InvalidParameterError::new("cursor", "the next_cursor of a page of this session")
        })?),
    };
    Ok(ListQuery {
        limit: limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(DEFAULT_LIST_LIMIT),
        after,
        tool: query.text("tool").map(str::to_owned),
        since: instant(&query, "since")?,
        until: instant(&query, "until")?,
    })
}

fn instant(query: &Query, name: &str) -> Result<Option<Timestamp>, InvalidParameterError> {
    let rule = "an RFC 3339 date with its offset, as in 2026-11-30T12:00:00Z";
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| InvalidParameterError::new(name, rule))
    };
    query.text(name).map(parse).transpose()
}
