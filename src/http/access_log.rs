//! One log event per request, with the route's template and never the path, the query or content:
//! locators and call ids are the caller's data, and queries may carry capabilities.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use tracing::{info, warn};

use crate::http::method::known_method;
use crate::http::problem::Problem;
use crate::http::request_id::RequestId;

/// Logs the request when its reply's head is ready; a body may still be streaming then.
pub async fn log_request(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = known_method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let id = request.extensions().get::<RequestId>().cloned();
    let response = next.run(request).await;
    let problem = response.extensions().get::<Problem>();
    let code = problem.map(Problem::code);
    if let Some(cause) = problem.and_then(Problem::cause) {
        warn!(
            error.type = code.map(|code| code.as_str()),
            error.cause = cause,
            request_id = id.as_ref().map_or("", RequestId::as_str),
            "a request failed",
        );
    }
    info!(
        http.request.method = method,
        http.route = route.as_ref().map_or("", MatchedPath::as_str),
        http.response.status_code = response.status().as_u16(),
        error.type = code.map(|code| code.as_str()),
        request_id = id.as_ref().map_or("", RequestId::as_str),
        duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "answered a request",
    );
    response
}
