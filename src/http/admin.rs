//! What only those who run the service ask: `/metrics`, on a listener of its own.
//!
//! Nothing here is secret (no name, id or content is ever a label), but it tells how much a service is
//! used, which is nobody's business who merely stores outputs: hence not on the API's address. Any address
//! may be chosen, since a scraper is seldom on the same host.

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::http::app::{AppState, path};
use crate::http::request_id::RequestIds;
use crate::http::{finish, health};

/// The path of the metrics.
pub const METRICS: &str = "/metrics";

/// The text format that Prometheus and its kin read.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Builds the admin listener's service.
pub fn router(state: AppState, request_ids: RequestIds) -> Router {
    let routes = Router::new()
        .route(METRICS, get(metrics))
        .route(path::LIVEZ, get(health::livez))
        .route(path::HEALTHZ, get(health::livez))
        .route(path::READYZ, get(health::readyz))
        .with_state(state);
    finish(routes, request_ids)
}

async fn metrics(State(state): State<AppState>) -> Response {
    let load = state.library().map(|library| {
        let memory_limit = library.options().upload_memory_bytes;
        (library.load(), memory_limit)
    });
    let text = state.metrics().render(state.not_ready().is_none(), load);
    let headers = [(CONTENT_TYPE, EXPOSITION), (CACHE_CONTROL, "no-store")];
    (headers, text).into_response()
}
