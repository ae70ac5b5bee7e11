//! `/v1/sessions/{session}/journal`: where a journal ends, whether its word is good, and what an operator
//! does about it.

use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::caller::Caller;
use crate::http::json_body;
use crate::http::lease::reply::fresh;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::session_path::SessionPath;
use crate::lease::failure::LeaseError;
use crate::lease::journal::Receipt;
use crate::lease::names::Reason;
use crate::lease::report::{JournalReport, JournalStatus};
use crate::lease::show::{self, ShownRecord};
use crate::lease::verify::{Head, walk};
use crate::limits::{MAX_LEASE_REQUEST_BYTES, MAX_RECEIPTS, MAX_RECEIPTS_BYTES, MAX_SHOWN_RECORDS};

#[derive(Serialize)]
struct JournalReply {
    head: Option<Head>,
    status: JournalStatus,
    /// Records with entries without effect that were not cleared.
    ineffective: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Vec<ShownRecord>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_seq: Option<u64>,
}

impl From<JournalReport> for JournalReply {
    fn from(report: JournalReport) -> Self {
        let JournalReport {
            receipt,
            status,
            ineffective,
            detail,
        } = report;
        Self {
            head: receipt.map(|Receipt { seq, sha256, .. }| Head { seq, sha256 }),
            status,
            ineffective,
            detail,
            records: None,
            next_seq: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verify {
    #[serde(default)]
    receipts: Vec<Receipt>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clear {
    seq: u64,
    reason: Reason,
}

/// Answers head and status; with `limit`, records from `from_seq` on as well.
pub(crate) async fn head(
    caller: Caller,
    SessionPath(session): SessionPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::parse(uri.query(), &["from_seq", "limit"])?;
    let first = query.number("from_seq", 0..=u64::MAX)?.unwrap_or(0);
    let limit = query.number("limit", 1..=MAX_SHOWN_RECORDS as u64)?;
    let report = caller.leases.journal(&caller.tenant, &session).await?;
    let mut reply = JournalReply::from(report);
    if let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) {
        let site = caller.leases.journals().site(&caller.tenant, &session);
        let page = show::page(&site, first, limit).await;
        let page = page.map_err(LeaseError::from)?;
        reply.records = Some(page.records);
        reply.next_seq = page.next_seq;
    }
    Ok(fresh(StatusCode::OK, &reply))
}

/// Walks the whole journal.
pub(crate) async fn verify(
    State(state): State<AppState>,
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let Ok(_walk) = state.walks().try_acquire() else {
        let detail = "too many verifications are running";
        return Err(Problem::new(ErrorCode::Saturated, detail));
    };
    let (most, malformed) = (MAX_RECEIPTS_BYTES, ErrorCode::InvalidLease);
    let Verify { receipts } = json_body::read(&parts.headers, body, most, malformed).await?;
    if receipts.len() > MAX_RECEIPTS {
        let detail = format!("at most {MAX_RECEIPTS} receipts in one verification");
        return Err(Problem::new(malformed, detail));
    }
    let site = caller.leases.journals().site(&caller.tenant, &session);
    let report = walk::verify(&site, &receipts).await;
    Ok(fresh(StatusCode::OK, &report.map_err(LeaseError::from)?))
}

/// Ends `suspect` for the records that an operator has looked at.
pub(crate) async fn clear(
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let most = MAX_LEASE_REQUEST_BYTES;
    let Clear { seq, reason } =
        json_body::read(&parts.headers, body, most, ErrorCode::InvalidLease).await?;
    let leases = &caller.leases;
    let report = leases
        .clear(&caller.tenant, &session, seq, Some(reason))
        .await?;
    Ok(fresh(StatusCode::OK, &JournalReply::from(report)))
}
