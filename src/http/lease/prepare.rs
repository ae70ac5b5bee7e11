//! `POST /v1/sessions/{session}/leases`: an owner claims an artifact.

use axum::extract::Request;
use axum::response::Response;
use serde::Deserialize;

use crate::error::ErrorCode;
use crate::http::caller::Caller;
use crate::http::json_body;
use crate::http::lease::fields::{Digest, End};
use crate::http::lease::reply;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::session_path::SessionPath;
use crate::lease::entry::OwnerMode;
use crate::lease::leases::PrepareRequest;
use crate::lease::names::{OwnerName, TransactionId};
use crate::limits::MAX_LEASE_REQUEST_BYTES;

/// The claim as it is stated. Every field that has no default has to be there, `retain_until` too: an end
/// that was left out by mistake would keep an artifact for ever.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    transaction_id: TransactionId,
    source_id: String,
    content_sha256: Digest,
    reference_count: u64,
    retain_until: End,
    owner: Option<OwnerName>,
    mode: Option<OwnerMode>,
}

/// Prepares a lease; 201, or 200 for the same claim again while it stands.
pub(crate) async fn prepare(
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let most = MAX_LEASE_REQUEST_BYTES;
    let claim: Claim = json_body::read(&parts.headers, body, most, ErrorCode::InvalidLease).await?;
    let transaction_id = claim.transaction_id.clone();
    let request = PrepareRequest {
        transaction_id: claim.transaction_id,
        source_id: claim.source_id,
        content_sha256: claim.content_sha256.0,
        reference_count: claim.reference_count,
        retain_until: claim.retain_until.0,
        owner: claim.owner,
        mode: claim.mode,
    };
    let answer = caller
        .leases
        .prepare(&caller.tenant, &session, request)
        .await
        .map_err(|error| reply::prepare_problem(error, Some(&transaction_id)))?;
    let reply = reply::lease(&answer, answer.is_new);
    let artifact_id = answer.lease.artifact_id;
    Ok(reply::audited(reply, &caller.tenant, &session, artifact_id))
}
