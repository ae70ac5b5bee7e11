//! Forms that several replies share.

use axum::Json;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Returns a JSON document.
pub(crate) fn json<T: Serialize>(status: StatusCode, document: &T) -> Response {
    (status, Json(document)).into_response()
}

/// Returns a JSON document about one artifact.
pub(crate) fn artifact_json<T: Serialize>(document: &T) -> Response {
    let mut reply = json(StatusCode::OK, document);
    mark_as_artifact(reply.headers_mut());
    reply
}

/// Returns text out of one artifact.
pub(crate) fn artifact_text(text: impl Into<Body>) -> Response {
    let mut reply = Response::new(text.into());
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = reply.headers_mut();
    headers.insert(axum::http::header::CONTENT_TYPE, plain);
    mark_as_artifact(headers);
    reply
}

/// Marks a reply that holds what a tool printed: data, whatever it looks like, and never good without
/// asking again.
///
/// `no-cache` lets the caller's own cache keep a copy, but forbids its use without a request to us,
/// which answers 304 while the artifact is live and 410 from the moment that it is erased. A shared
/// cache keeps nothing: the reply was for a caller who may read it.
pub(crate) fn mark_as_artifact(headers: &mut HeaderMap) {
    let fields = [
        (CACHE_CONTROL, "private, no-cache"),
        (CONTENT_SECURITY_POLICY, "sandbox"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
