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

/// Requests are welcome: the store is open and answered lately, and no shutdown has begun. Nobody is
/// asked for it.
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Response, Problem> {
    match state.not_ready() {
        None => Ok((NO_STORE, "ready\n").into_response()),
        Some(reason) => {
            let problem = Problem::new(ErrorCode::StoreUnavailable, reason.detail());
            Err(problem.with_reason(reason.as_str()))
        }
    }
}

/// The OpenAPI document.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/yaml")], CONTRACT).into_response()
}
