//! `POST` and `DELETE /a/{locator}/hold`: a person keeps an artifact, without end, until they lift it.

use axum::extract::Request;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::error::ErrorCode;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::json_body;
use crate::http::lease::reply;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, Query};
use crate::lease::journal::Receipt;
use crate::lease::names::{HoldName, Reason};
use crate::limits::MAX_LEASE_REQUEST_BYTES;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hold {
    name: HoldName,
    reason: Reason,
}

#[derive(Serialize)]
struct Lifted<'a> {
    name: &'a HoldName,
    /// Whether there was a hold of that name.
    lifted: bool,
    receipt: &'a Option<Receipt>,
}

/// Holds an artifact; 201, or 200 where a hold of that name is there.
pub(crate) async fn hold(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let most = MAX_LEASE_REQUEST_BYTES;
    let Hold { name, reason } =
        json_body::read(&parts.headers, body, most, ErrorCode::InvalidLease).await?;
    let leases = &caller.leases;
    let fresh = name.transaction_id(&leases.journals().fresh_id());
    let answer = leases
        .hold(&caller.tenant, &artifact, fresh.clone(), Some(reason))
        .await
        .map_err(|error| reply::prepare_problem(error, Some(&fresh)))?;
    Ok(reply::lease(&answer, answer.is_new))
}

/// Lifts every hold of a name.
pub(crate) async fn lift(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::parse(uri.query(), &["name"])?;
    let name: Option<HoldName> = query.parsed("name")?;
    let missing = || InvalidParameterError::new("name", "required: the name of the hold");
    let name = name.ok_or_else(missing)?;
    let leases = &caller.leases;
    let lifted = leases
        .lift(&caller.tenant, &artifact, name.clone())
        .await
        // A lift is of no single transaction; who meets an unknown outcome lifts again.
        .map_err(|error| reply::prepare_problem(error, None))?;
    let document = Lifted {
        name: &name,
        lifted: lifted.is_new,
        receipt: &lifted.receipt,
    };
    Ok(reply::fresh(StatusCode::OK, &document))
}
