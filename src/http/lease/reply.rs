//! Replies about leases, and what their errors are answered with.

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::Serialize;

use crate::artifact::escape::escape_field;
use crate::http::problem::{Problem, UnknownOutcome, excerpt};
use crate::http::reply;
use crate::ids::{ArtifactId, SessionKey, Tenant};
use crate::lease::failure::{LeaseError, PrepareError};
use crate::lease::journal::{JournalError, Receipt};
use crate::lease::leases::LeaseAnswer;
use crate::lease::names::TransactionId;
use crate::lease::open::OpenError;
use crate::lease::report::LeaseReport;

/// A mismatch of two digests is shorter.
const MISMATCH_BYTES: usize = 120;

/// A lease, and the record that proves it.
#[derive(Serialize)]
struct LeaseReply<'a> {
    #[serde(flatten)]
    lease: &'a LeaseReport,
    receipt: &'a Option<Receipt>,
}

/// Returns a reply that is true of this moment only.
pub(crate) fn fresh<T: Serialize>(status: StatusCode, document: &T) -> Response {
    let mut reply = reply::json(status, document);
    let no_store = HeaderValue::from_static("no-store");
    reply.headers_mut().insert(CACHE_CONTROL, no_store);
    reply
}

/// Returns the reply about one lease: 201 where `is_created`, else 200.
pub(super) fn lease(answer: &LeaseAnswer, is_created: bool) -> Response {
    let status = if is_created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let document = LeaseReply {
        lease: &answer.lease,
        receipt: &answer.receipt,
    };
    fresh(status, &document)
}

/// Names the artifact of a lease in the audit stream.
pub(super) fn audited(
    mut reply: Response,
    tenant: &Tenant,
    session: &crate::ids::SessionId,
    artifact_id: ArtifactId,
) -> Response {
    let artifact = crate::ids::ArtifactRef {
        session_key: SessionKey::derive(tenant, session),
        artifact_id,
    };
    let subject = crate::http::audit::AuditSubject(artifact);
    reply.extensions_mut().insert(subject);
    reply
}

/// Turns a failed preparation into its problem; `transaction_id` is what an unknown outcome is of.
pub(super) fn prepare_problem(
    error: PrepareError,
    transaction_id: Option<&TransactionId>,
) -> Problem {
    let code = error.code();
    match error {
        PrepareError::Journal(error) => journal_problem(error, transaction_id),
        PrepareError::Artifact(error) => error.into(),
        PrepareError::Invalid { .. } | PrepareError::OwnerMode(_) | PrepareError::ReadOnly => {
            Problem::new(code, error.to_string())
        }
        // It names a digest, which is shown whole, or a session, which is up to 512 bytes of anything.
        PrepareError::SourceMismatch(detail) if detail.len() <= MISMATCH_BYTES => {
            Problem::new(code, escape_field(&detail))
        }
        PrepareError::SourceMismatch(detail) => Problem::new(code, excerpt(&detail)),
    }
}

/// Turns a failed change or read into its problem.
pub(super) fn lease_problem(error: LeaseError, transaction_id: &TransactionId) -> Problem {
    match error {
        LeaseError::ReadOnly | LeaseError::OwnerUnsealed(_) => {
            Problem::new(error.code(), error.to_string())
        }
        LeaseError::Journal(error) => journal_problem(error, Some(transaction_id)),
    }
}

impl From<LeaseError> for Problem {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::ReadOnly | LeaseError::OwnerUnsealed(_) => {
                Self::new(error.code(), error.to_string())
            }
            LeaseError::Journal(error) => journal_problem(error, None),
        }
    }
}

/// What a caller is told of a journal's failure; keys and what the store said are for the log.
pub(crate) fn journal_problem(
    error: JournalError,
    transaction_id: Option<&TransactionId>,
) -> Problem {
    let code = error.code();
    match error {
        JournalError::OutcomeUnknown { receipt, cause } => {
            let seq = receipt.seq;
            let detail = format!("journal record {seq} may stand, or may still come to stand");
            let unknown = UnknownOutcome {
                transaction_id: transaction_id.map(|name| name.as_str().to_owned()),
                session: receipt.session.as_str().to_owned(),
                seq,
                sha256: receipt.sha256,
            };
            Problem::new(code, detail)
                .with_unknown_outcome(unknown)
                .caused_by(cause)
        }
        JournalError::Refused(refusal) => {
            let problem = Problem::new(code, refusal.to_string());
            match JournalError::Refused(refusal).condemned() {
                Some(condemned) => problem.with_deletion(condemned.deletion()),
                None => problem,
            }
        }
        JournalError::Unreadable(error) => {
            let detail = match &error {
                OpenError::Gap { seq, .. } => format!("journal record {seq} is missing"),
                OpenError::Broken { seq, .. } => {
                    format!("journal record {seq} is not the one that has to stand there")
                }
                OpenError::Store(_) => "the journal cannot be read".to_owned(),
            };
            Problem::new(code, detail).caused_by(error)
        }
        JournalError::Store(error) => {
            let detail = format!("a request to the store failed ({})", error.operation);
            Problem::new(code, detail).caused_by(error)
        }
        JournalError::Contended | JournalError::Saturated | JournalError::Closed => {
            Problem::new(code, error.to_string())
        }
    }
}
