//! `POST /v1/sessions/{session}/leases/{txn}/…`: what becomes of a lease.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::auth::Scope;
use crate::error::ErrorCode;
use crate::http::caller::Caller;
use crate::http::gate::require;
use crate::http::json_body;
use crate::http::lease::fields::{Digest, End};
use crate::http::lease::reply::{audited, fresh, lease, lease_problem};
use crate::http::lease::transaction_path::TransactionPath;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::session_path::SessionPath;
use crate::ids::SessionId;
use crate::lease::entry::{AbortReason, ReleaseReason};
use crate::lease::failure::LeaseError;
use crate::lease::journal::Receipt;
use crate::lease::leases::LeaseAnswer;
use crate::lease::names::{OwnerGeneration, TransactionId};
use crate::lease::report::LeaseReport;
use crate::limits::MAX_LEASE_REQUEST_BYTES;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    owner_generation: Option<OwnerGeneration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Abort {
    reason: Option<StatedAbort>,
    /// Without asking the owner to seal its absence; for operators.
    force: Option<bool>,
}

/// Why a caller may say that a reference never came: the others are found out, not stated.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatedAbort {
    Rejected,
    Operator,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    reason: Option<StatedRelease>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatedRelease {
    Removed,
    Operator,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extend {
    retain_until: End,
}

/// What a 202 said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolve {
    seq: u64,
    sha256: Digest,
}

#[derive(Serialize)]
struct Resolution<'a> {
    landed: bool,
    lease: &'a Option<LeaseReport>,
    receipt: &'a Option<Receipt>,
}

/// Says that the owner holds its references.
pub(crate) async fn commit(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Commit { owner_generation } = stated(request).await?;
    let leases = &caller.leases;
    let answer = leases.commit(&caller.tenant, &session, &name, owner_generation);
    changed(answer.await, &caller, &session, &name)
}

/// Says that the owner refused the reference, with nothing in flight; or ends the lease of an owner that
/// is no more.
pub(crate) async fn abort(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Abort { reason, force } = stated(request).await?;
    let (leases, tenant) = (&caller.leases, &caller.tenant);
    let answer = match reason {
        None | Some(StatedAbort::Rejected) if force.is_some() => {
            let detail = "`force` goes with `reason`: `operator`";
            return Err(Problem::new(ErrorCode::InvalidLease, detail));
        }
        None | Some(StatedAbort::Rejected) => {
            let why = AbortReason::Rejected;
            leases.abort(tenant, &session, &name, why).await
        }
        Some(StatedAbort::Operator) => {
            require(&caller.principal, Scope::Admin)?;
            let is_forced = force.unwrap_or_default();
            let ending = leases.abort_by_operator(tenant, &session, &name, is_forced);
            Box::pin(ending).await
        }
    };
    changed(answer, &caller, &session, &name)
}

/// Says that the owner has removed its references.
pub(crate) async fn release(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Release { reason } = stated(request).await?;
    let why = match reason {
        None | Some(StatedRelease::Removed) => ReleaseReason::Removed,
        Some(StatedRelease::Operator) => {
            require(&caller.principal, Scope::Admin)?;
            ReleaseReason::Operator
        }
    };
    let answer = caller.leases.release(&caller.tenant, &session, &name, why);
    changed(answer.await, &caller, &session, &name)
}

/// Moves a committed lease's end.
pub(crate) async fn extend(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Extend { retain_until } = stated(request).await?;
    let leases = &caller.leases;
    let answer = leases.extend(&caller.tenant, &session, &name, retain_until.0);
    changed(answer.await, &caller, &session, &name)
}

/// Makes an unknown outcome final.
pub(crate) async fn resolve(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    request: Request,
) -> Result<Response, Problem> {
    let Resolve { seq, sha256 } = stated(request).await?;
    let leases = &caller.leases;
    let resolved = leases
        .resolve(&caller.tenant, &session, &name, seq, sha256.0)
        .await
        .map_err(|error| lease_problem(error, &name))?;
    let resolution = Resolution {
        landed: resolved.has_landed,
        lease: &resolved.lease,
        receipt: &resolved.receipt,
    };
    Ok(fresh(StatusCode::OK, &resolution))
}

pub(super) async fn stated<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let most = MAX_LEASE_REQUEST_BYTES;
    json_body::read(&parts.headers, body, most, ErrorCode::InvalidLease).await
}

fn changed(
    answer: Result<LeaseAnswer, LeaseError>,
    caller: &Caller,
    session: &SessionId,
    name: &TransactionId,
) -> Result<Response, Problem> {
    let answer = answer.map_err(|error| lease_problem(error, name))?;
    let artifact_id = answer.lease.artifact_id;
    let reply = lease(&answer, false);
    Ok(audited(reply, &caller.tenant, session, artifact_id))
}
