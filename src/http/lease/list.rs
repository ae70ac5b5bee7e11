//! `GET /v1/sessions/{session}/leases` and `…/leases/{txn}`.

use std::time::Duration;

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use humantime_serde::re::humantime;
use serde::Serialize;

use crate::http::caller::Caller;
use crate::http::lease::reply::{audited, fresh, lease, lease_problem};
use crate::http::lease::transaction_path::TransactionPath;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, NoQuery, Query};
use crate::http::session_path::SessionPath;
use crate::lease::leases::LeaseFilter;
use crate::lease::names::TransactionId;
use crate::lease::report::LeaseReport;
use crate::limits::{DEFAULT_LEASE_LIMIT, MAX_LEASE_LIMIT};

const PARAMETERS: &[&str] = &["owner", "state", "stuck_for", "limit", "cursor"];

const STATES: &[(&str, &str)] = &[
    ("prepared", "prepared"),
    ("committed", "committed"),
    ("aborted", "aborted"),
    ("released", "released"),
];

#[derive(Serialize)]
struct Page<'a> {
    leases: &'a [LeaseReport],
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists a session's leases, ended ones included, by transaction id.
pub(crate) async fn list(
    caller: Caller,
    SessionPath(session): SessionPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let filter = filter(uri.query())?;
    let page = caller
        .leases
        .list(&caller.tenant, &session, &filter)
        .await?;
    let last = page.leases.last().filter(|_| page.has_more);
    let document = Page {
        leases: &page.leases,
        next_cursor: last.map(|lease| encode_cursor(&lease.transaction_id)),
    };
    Ok(fresh(StatusCode::OK, &document))
}

/// Shows one lease.
pub(crate) async fn get(
    caller: Caller,
    SessionPath(session): SessionPath,
    TransactionPath(name): TransactionPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    let answer = caller.leases.get(&caller.tenant, &session, &name).await;
    let answer = answer.map_err(|error| lease_problem(error, &name))?;
    let artifact_id = answer.lease.artifact_id;
    let reply = lease(&answer, false);
    Ok(audited(reply, &caller.tenant, &session, artifact_id))
}

fn filter(raw: Option<&str>) -> Result<LeaseFilter, InvalidParameterError> {
    let query = Query::parse(raw, PARAMETERS)?;
    let limit = query.number("limit", 1..=MAX_LEASE_LIMIT as u64)?;
    let after = match query.text("cursor") {
        None => None,
        Some(cursor) => Some(decode_cursor(cursor).ok_or_else(|| {
            InvalidParameterError::new("cursor", "the next_cursor of an earlier page")
        })?),
    };
    Ok(LeaseFilter {
        owner: query.parsed("owner")?,
        state: query.one_of("state", STATES)?.map(str::to_owned),
        stuck_for: query.text("stuck_for").map(duration).transpose()?,
        after,
        limit: limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(DEFAULT_LEASE_LIMIT),
    })
}

/// Reads a time as `15m` or `24h`, or as whole seconds.
fn duration(text: &str) -> Result<Duration, InvalidParameterError> {
    let seconds = text.parse().map(Duration::from_secs);
    seconds
        .or_else(|_| humantime::parse_duration(text))
        .map_err(|_| InvalidParameterError::new("stuck_for", "a time as `15m`, or whole seconds"))
}

fn encode_cursor(name: &TransactionId) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(name.as_str())
}

fn decode_cursor(cursor: &str) -> Option<TransactionId> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_of_seconds_or_has_a_unit() {
        for (text, seconds) in [("0", 0), ("90", 90), ("15m", 900), ("1h 30m", 5_400)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds));
        }
        for bad in ["", "-1", "1.5", "soon", "15 m inutes"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_cursor_is_a_word_that_comes_back() {
        for name in ["t", "Überweisung 7/ä", &"x".repeat(200)] {
            let name: TransactionId = name.parse().unwrap();
            let cursor = encode_cursor(&name);
            assert!(
                cursor
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
            );
            assert_eq!(decode_cursor(&cursor), Some(name));
        }
        for bad in ["", "*", "Lg", "AA", "_w"] {
            assert_eq!(decode_cursor(bad), None, "{bad}");
        }
    }
}
