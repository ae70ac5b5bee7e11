//! RFC 9457 problem details: the one form of every error reply.
//!
//! A handler returns a [`Problem`] without knowing the request's id. It travels in the response's
//! extensions beside an already complete body, and the outermost layer (`request_id`) writes the body
//! once more with the id in it.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::digest::Sha256Digest;
use crate::error::{Deletion, ErrorCode};

/// The media type of every error reply.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Caller text in a `detail` is cut here, so that an error never grows with the request.
const EXCERPT_CHARS: usize = 80;

/// One error reply: a code of the closed list, what happened this time, and the facts some codes add.
///
/// Boxed, so that a handler's `Result` stays small.
#[derive(Debug, Clone)]
pub struct Problem(Box<Facts>);

#[derive(Debug, Clone)]
struct Facts {
    code: ErrorCode,
    detail: String,
    deletion: Option<Deletion>,
    unknown: Option<UnknownOutcome>,
    request_id: Option<String>,
    cause: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The wire form; optional members are absent, never null, except a deletion's unknown facts.
#[derive(Serialize)]
struct Members<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: ErrorCode,
    retryable: bool,
    no_side_effects: bool,
    hint: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(flatten)]
    deletion: Option<&'a Deletion>,
    #[serde(flatten)]
    unknown: Option<&'a UnknownOutcome>,
}

/// What an unknown outcome is of: the record that may stand. Whoever resolves it gives these back.
#[derive(Debug, Clone, Serialize)]
pub struct UnknownOutcome {
    /// The lease that the request was about, where it was about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
    /// The journal's session.
    pub session: String,
    /// The record's place.
    pub seq: u64,
    /// SHA-256 of its bytes.
    pub sha256: Sha256Digest,
}

impl Problem {
    /// Creates a problem; `detail` says what happened this time, for people.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            code,
            detail: detail.into(),
            deletion: None,
            unknown: None,
            request_id: None,
            cause: None,
            headers: Vec::new(),
        }))
    }

    /// Creates the 410 of a deleted artifact: `reason`, `deleted_at`, `digest`, `size_bytes`.
    pub fn deleted(deletion: Deletion) -> Self {
        let mut detail = format!("the artifact was deleted ({})", deletion.reason);
        if let Some(at) = &deletion.deleted_at {
            detail.push_str(" at ");
            detail.push_str(at);
        }
        let mut problem = Self::new(ErrorCode::ArtifactDeleted, detail);
        problem.0.deletion = Some(deletion);
        problem
    }

    /// Creates the 416 of a range outside a body of `size_bytes`, with its `Content-Range`.
    pub fn range_not_satisfiable(size_bytes: u64) -> Self {
        let value = HeaderValue::try_from(format!("bytes */{size_bytes}"))
            .expect("digits and fixed ASCII are a header value");
        let detail = format!("the range lies outside the body of {size_bytes} bytes");
        Self::new(ErrorCode::RangeNotSatisfiable, detail).with_header(CONTENT_RANGE, value)
    }

    /// Adds the facts of a deletion that is decided.
    #[must_use]
    pub fn with_deletion(mut self, deletion: Deletion) -> Self {
        self.0.deletion = Some(deletion);
        self
    }

    /// Adds the record whose outcome is unknown.
    #[must_use]
    pub fn with_unknown_outcome(mut self, unknown: UnknownOutcome) -> Self {
        self.0.unknown = Some(unknown);
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Names the request that failed.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// Adds what led to it, for the log only: it may name keys, endpoints and what a store said.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// Returns what led to it.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// Creates the problem for an error reply that none of our code made (an extractor's rejection).
    pub fn for_status(status: StatusCode) -> Self {
        let code = match status {
            StatusCode::NOT_FOUND => ErrorCode::RouteNotFound,
            StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
            StatusCode::REQUEST_TIMEOUT => ErrorCode::RequestTimeout,
            StatusCode::PRECONDITION_FAILED => ErrorCode::PreconditionFailed,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::BodyTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::InvalidHeader,
            other if other.is_client_error() => ErrorCode::InvalidParameter,
            _ => ErrorCode::Internal,
        };
        Self::new(
            code,
            "the request was refused before it reached an operation",
        )
    }

    /// Returns the code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the JSON document.
    pub fn to_json(&self) -> Vec<u8> {
        let members = Members {
            r#type: format!("/problems/{}", self.0.code),
            title: self.0.code.title(),
            status: self.0.code.status().as_u16(),
            detail: &self.0.detail,
            code: self.0.code,
            retryable: self.0.code.is_retryable(),
            no_side_effects: self.0.code.has_no_side_effects(),
            hint: self.0.code.hint(),
            request_id: self.0.request_id.as_deref(),
            deletion: self.0.deletion.as_ref(),
            unknown: self.0.unknown.as_ref(),
        };
        serde_json::to_vec(&members).expect("strings, numbers and booleans are always JSON")
    }

    /// Rewrites an error reply as this problem, keeping headers that others added (`Allow`).
    ///
    /// The reply to a HEAD states the length of the body that it does not have.
    pub(crate) fn write_over(self, response: Response, method: &Method) -> Response {
        let (mut parts, _) = response.into_parts();
        let json = self.to_json();
        parts.status = self.0.code.status();
        parts.headers.remove(axum::http::header::TRANSFER_ENCODING);
        parts
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        parts.headers.insert(CONTENT_LENGTH, json.len().into());
        // A cached 404 would hide what is saved later, and a 410 or 503 speaks of this moment.
        let no_store = HeaderValue::from_static("no-store");
        parts.headers.insert(CACHE_CONTROL, no_store);
        for (name, value) in &self.0.headers {
            parts.headers.insert(name, value.clone());
        }
        if let Some(seconds) = self.0.code.retry_after_seconds() {
            parts.headers.insert(RETRY_AFTER, seconds.into());
        }
        parts.extensions.insert(self);
        let is_head = method == Method::HEAD;
        let body = if is_head {
            Body::empty()
        } else {
            Body::from(json)
        };
        Response::from_parts(parts, body)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.write_over(Response::new(Body::empty()), &Method::GET)
    }
}

/// Returns the first characters of caller text, control characters escaped, for a `detail`.
pub fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let mut excerpt = String::new();
    for c in chars.by_ref().take(EXCERPT_CHARS) {
        if c.is_control() {
            excerpt.extend(c.escape_default());
        } else {
            excerpt.push(c);
        }
    }
    if chars.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(problem: &Problem) -> serde_json::Value {
        serde_json::from_slice(&problem.to_json()).unwrap()
    }

    #[test]
    fn every_code_has_all_members_and_its_headers() {
        for code in ErrorCode::ALL {
            let problem = Problem::new(*code, "it \"broke\"\n").with_request_id("r-1");
            let members = json(&problem);
            assert_eq!(members["type"], format!("/problems/{code}"));
            assert_eq!(members["code"], code.as_str());
            assert_eq!(members["title"], code.title());
            assert_eq!(members["detail"], "it \"broke\"\n");
            assert_eq!(members["hint"], code.hint());
            assert_eq!(members["retryable"], code.is_retryable());
            assert_eq!(members["no_side_effects"], code.has_no_side_effects());
            assert_eq!(members["request_id"], "r-1");
            let response = problem.into_response();
            assert_eq!(members["status"], response.status().as_u16());
            assert_eq!(response.status(), code.status());
            assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
            assert_eq!(
                response.headers().contains_key(RETRY_AFTER),
                code.retry_after_seconds().is_some()
            );
        }
    }

    #[test]
    fn a_410_says_why_when_and_what() {
        let problem = Problem::deleted(Deletion {
            reason: "erased".to_owned(),
            deleted_at: Some("2026-11-30T00:00:00Z".to_owned()),
            digest: Some("sha256:00".to_owned()),
            size_bytes: None,
        });
        let members = json(&problem);
        assert_eq!(members["reason"], "erased");
        assert_eq!(members["deleted_at"], "2026-11-30T00:00:00Z");
        assert_eq!(members["digest"], "sha256:00");
        assert_eq!(members["size_bytes"], serde_json::Value::Null);
        assert!(members.get("request_id").is_none());
    }

    #[test]
    fn the_cause_is_for_the_log_alone() {
        let problem = Problem::new(ErrorCode::StoreDenied, "d").caused_by("put `v1/t/x`: 403");
        assert_eq!(problem.cause(), Some("put `v1/t/x`: 403"));
        assert!(!json(&problem).to_string().contains("v1/t/x"));
    }

    #[test]
    fn a_416_states_the_size() {
        let response = Problem::range_not_satisfiable(17).into_response();
        assert_eq!(response.headers()[CONTENT_RANGE], "bytes */17");
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_characters() {
        assert_eq!(excerpt("a\nb\u{1b}é"), "a\\nb\\u{1b}é");
        assert_eq!(
            excerpt(&"é".repeat(5_000)).chars().count(),
            EXCERPT_CHARS + 1
        );
    }

    #[test]
    fn a_foreign_error_reply_gets_a_code_of_its_class() {
        for status in 400..600 {
            let status = StatusCode::from_u16(status).unwrap();
            let code = Problem::for_status(status).code();
            assert_eq!(code.status().is_client_error(), status.is_client_error());
        }
    }
}
