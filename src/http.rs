//! The HTTP edge: parses requests, calls one domain operation, writes the answer.
//!
//! What must hold for every reply, whoever made it: an error is an RFC 9457 problem with a code of
//! the closed list ([`problem`]), and it carries a request id ([`request_id`]). [`finish`] wraps a
//! router so that both hold for unknown paths, wrong methods, extractor rejections and panics too.

use std::any::Any;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::error;

use crate::error::ErrorCode;
use crate::http::problem::Problem;
use crate::http::request_id::RequestIds;

mod accept;
pub mod access_log;
pub mod admin;
pub mod api_path;
pub mod app;
mod artifact_path;
pub mod audit;
mod budget;
mod bytes;
mod caller;
pub mod condition;
mod disposition;
mod erase;
pub mod failed_access;
mod failure;
mod gate;
mod gc;
mod grep;
mod health;
pub mod host_policy;
mod journal;
mod json_body;
mod lease;
mod lines;
mod list;
mod mcp;
mod measure;
mod method;
pub mod metrics;
pub mod operation;
mod outline;
pub mod problem;
pub mod query;
pub mod range;
pub mod rate_limit;
mod read_back;
pub mod readiness;
mod refused_body;
mod reply;
pub mod request_id;
mod results;
pub mod route;
mod save;
pub mod session_path;
mod stat;
mod turns;
mod upload_headers;
mod uri_length;

/// Answers unknown paths and wrong methods as problems.
pub fn with_fallbacks(routes: Router) -> Router {
    routes
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
}

/// Wraps the routes: panic catcher, access log and request ids, in that order from the inside, so that
/// a caught panic is logged and answered with the request's id.
pub fn finish(routes: Router, request_ids: RequestIds) -> Router {
    routes
        .layer(CatchPanicLayer::custom(panic_to_problem))
        .layer(axum::middleware::from_fn(uri_length::refuse_long))
        .layer(axum::middleware::from_fn(access_log::log_request))
        .layer(from_fn_with_state(request_ids, request_id::attach))
}

/// Does not repeat the path: people paste tokens into the wrong place of a URL, and replies are logged.
async fn no_such_route() -> Problem {
    Problem::new(ErrorCode::RouteNotFound, "no such path")
}

/// The router adds the `Allow` header itself.
async fn no_such_method(method: Method) -> Problem {
    let detail = format!("{} is not allowed here", problem::excerpt(method.as_str()));
    Problem::new(ErrorCode::MethodNotAllowed, detail)
}

/// The panic's text goes to the operator only: it may hold anything.
fn panic_to_problem(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown panic payload");
    error!(panic = text, "a request handler panicked");
    Problem::new(
        ErrorCode::Internal,
        "the request met a defect of the service",
    )
    .into_response()
}

#[cfg(test)]
mod tests;
