//! Request ids: the word by which a caller and an operator speak of one request.
//!
//! A caller's `x-request-id` is taken over only when it is short and safe to log; otherwise a UUIDv7
//! is made. The id stands in the reply's header and in every problem.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::clock::SharedClock;
use crate::http::problem::Problem;
use crate::ids::SharedIds;

/// The header that carries the id, in both directions.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A UUID has 36 characters; trace ids of other systems are at most twice that.
const MAX_CALLER_ID_BYTES: usize = 64;

/// Marks an error reply that has the form of another protocol, and keeps it; in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WellFormedError;

/// The id of the request that is being answered; in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// Takes over the caller's id, if there is exactly one of 1 to 64 characters of `[A-Za-z0-9._-]`.
    pub fn from_caller(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(X_REQUEST_ID).iter();
        let text = values.next()?.to_str().ok()?;
        let is_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_usable = (1..=MAX_CALLER_ID_BYTES).contains(&text.len())
            && text.bytes().all(is_safe)
            && values.next().is_none();
        is_usable.then(|| Self(text.to_owned()))
    }

    /// Returns the id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where ids of requests without a usable one come from.
#[derive(Debug, Clone)]
pub struct RequestIds {
    clock: SharedClock,
    ids: SharedIds,
}

impl RequestIds {
    /// Creates a source from the clock and the id source of the service.
    pub fn new(clock: SharedClock, ids: SharedIds) -> Self {
        Self { clock, ids }
    }

    fn of(&self, headers: &HeaderMap) -> RequestId {
        RequestId::from_caller(headers)
            .unwrap_or_else(|| RequestId(self.ids.uuid(self.clock.now()).to_string()))
    }
}

/// The outermost layer: names the request, and makes every error reply a problem that says the name.
pub async fn attach(
    State(source): State<RequestIds>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = source.of(request.headers());
    let method = request.method().clone();
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && response.extensions().get::<WellFormedError>().is_none() {
        let problem = response
            .extensions_mut()
            .remove::<Problem>()
            .unwrap_or_else(|| Problem::for_status(status));
        response = problem
            .with_request_id(id.as_str())
            .write_over(response, &method);
    }
    let value = HeaderValue::from_str(id.as_str()).expect("ids are of a safe ASCII alphabet");
    response.headers_mut().insert(X_REQUEST_ID, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_values(values: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
        }
        RequestId::from_caller(&headers).map(|id| id.0)
    }

    #[test]
    fn only_one_short_and_safe_id_is_taken_over() {
        assert_eq!(from_values(&[b"a.B_9-z"]).as_deref(), Some("a.B_9-z"));
        assert_eq!(from_values(&[&[b'x'; 64]]), Some("x".repeat(64)));
        let refused: [&[&[u8]]; 7] = [
            &[],
            &[b""],
            &[&[b'x'; 65]],
            &[b"a b"],
            &[b"\xff"],
            &[b"a\"b"],
            &[b"a", b"a"],
        ];
        for values in refused {
            assert_eq!(from_values(values), None, "{values:?}");
        }
    }
}
