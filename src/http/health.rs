//! For those who watch the service, and those who write clients: `/livez`, `/readyz`, `/openapi.yaml`.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::problem::Problem;

/// The contract, as it was when this binary was built.
const CONTRACT: &str = include_str!("../../openapi.yaml");

const NO_STORE: [(axum::http::HeaderName, &str); 1] = [(CACHE_CONTROL, "no-store")];

/// The process runs and answers; nothing else is looked at.
pub(crate) async fn livez() -> Response {
    (NO_STORE, "ok\n").into_response()
}

/// Requests are welcome: the store is open, and no shutdown has begun.
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Response, Problem> {
    let detail = if state.is_draining() {
        "the service is shutting down"
    } else if state.library().is_none() {
        "the service has not opened its store yet"
    } else {
        return Ok((NO_STORE, "ready\n").into_response());
    };
    Err(Problem::new(ErrorCode::StoreUnavailable, detail))
}

/// The OpenAPI document.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/yaml")], CONTRACT).into_response()
}
