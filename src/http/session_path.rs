//! The `{session}` segment of a path: any UTF-8, percent-encoded as one segment.
//!
//! The router matches the raw path, so that `%2F` stays inside its segment. Its own extractor would
//! pass a broken escape through (`%zz` and `%25zz` would name one session); this one reads the raw path.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::error::ErrorCode;
use crate::http::problem::{Problem, excerpt};
use crate::http::query::decode_percent;
use crate::ids::SessionId;

const SESSIONS_PREFIX: &str = "/v1/sessions/";

/// Extracts the session id of a route under `/v1/sessions/{session}`. Such a route must not be nested:
/// a nested router sees a shortened path.
#[derive(Debug, Clone)]
pub struct SessionPath(pub SessionId);

impl<S: Send + Sync> FromRequestParts<S> for SessionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        session_of_path(parts.uri.path()).map(Self)
    }
}

pub(crate) fn session_of_path(path: &str) -> Result<SessionId, Problem> {
    let after_prefix = path.strip_prefix(SESSIONS_PREFIX).unwrap_or_default();
    let segment = after_prefix.split('/').next().unwrap_or_default();
    let refuse = |rule: String| {
        let detail = format!("session `{}`: {rule}", excerpt(segment));
        Problem::new(ErrorCode::InvalidSession, detail)
    };
    let text = decode_percent(segment).map_err(|rule| refuse(rule.to_owned()))?;
    text.parse()
        .map_err(|error: crate::ids::InvalidIdError| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn ask(segment: &str) -> (StatusCode, String) {
        let echo = |SessionPath(session): SessionPath| async move { session.as_str().to_owned() };
        let app = Router::new().route("/v1/sessions/{session}/artifacts", get(echo));
        let uri = format!("/v1/sessions/{segment}/artifacts");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn any_text_arrives_as_one_segment() {
        for (segment, session) in [
            ("s-42", "s-42"),
            ("a%2Fb%2F..%2Fc", "a/b/../c"),
            ("%00", "\0"),
            ("a+b", "a+b"),
            ("%25zz", "%zz"),
            ("%F0%9F%8E%89", "🎉"),
            ("...", "..."),
        ] {
            let (status, body) = ask(segment).await;
            assert_eq!(
                (status, body.as_str()),
                (StatusCode::OK, session),
                "{segment}"
            );
        }
    }

    #[tokio::test]
    async fn what_is_no_session_id_is_refused() {
        let long = "x".repeat(513);
        for segment in [
            ".",
            "..",
            "%2e",
            "%2E.",
            "%FF",
            "%zz",
            "%",
            "%4",
            long.as_str(),
        ] {
            let (status, body) = ask(segment).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{segment}");
            assert!(body.contains("invalid_session"), "{body}");
        }
    }
}
