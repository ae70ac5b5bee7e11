//! `POST /v1/sessions/{session}/leases/{txn}/reconcile`: what became of a lease whose owner did not say so.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::http::caller::Caller;
use crate::http::lease::change::stated;
use crate::http::lease::reply::{audited, fresh, lease_problem};
use crate::http::lease::transaction_path::TransactionPath;
use crate::http::problem::Problem;
use crate::http::session_path::SessionPath;

/// Nothing can be said: where an owner is asked stands in the configuration alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Asks the owner, seals where it shows nothing, and writes down what it decided.
pub(crate) async fn reconcile(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Nothing {} = stated(request).await?;
    let reconciling = caller.leases.reconcile(&caller.tenant, &session, &name);
    let done = Box::pin(reconciling).await;
    let done = done.map_err(|error| lease_problem(error, &name))?;
    caller.metrics.reconciled(&done);
    let reply = fresh(StatusCode::OK, &done);
    let artifact_id = done.lease.artifact_id;
    Ok(audited(reply, &caller.tenant, &session, artifact_id))
}
