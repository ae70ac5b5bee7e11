//! The `{txn}` segment of a path: a transaction id, percent-encoded as one segment.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::error::ErrorCode;
use crate::http::problem::{Problem, excerpt};
use crate::http::query::decode_percent;
use crate::ids::InvalidIdError;
use crate::lease::names::TransactionId;

/// Where the segment stands: `/v1/sessions/{session}/leases/{txn}`.
const PLACE: usize = 5;

/// Extracts the transaction id of a route under `/v1/sessions/{session}/leases/{txn}`.
#[derive(Debug, Clone)]
pub(crate) struct TransactionPath(pub(crate) TransactionId);

impl<S: Send + Sync> FromRequestParts<S> for TransactionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let segment = parts.uri.path().split('/').nth(PLACE).unwrap_or_default();
        let refuse = |rule: String| {
            let detail = format!("transaction_id `{}`: {rule}", excerpt(segment));
            Problem::new(ErrorCode::InvalidLease, detail)
        };
        let text = decode_percent(segment).map_err(|rule| refuse(rule.to_owned()))?;
        let parsed = text.parse();
        parsed
            .map(Self)
            .map_err(|error: InvalidIdError| refuse(error.to_string()))
    }
}
