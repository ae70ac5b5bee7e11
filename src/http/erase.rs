//! `DELETE /a/{locator}`: erases an artifact now, and for good.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use crate::error::{Deletion, ErrorCode};
use crate::gc::erase::EraseError;
use crate::gc::sweep::SweepError;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::lease::reply::{fresh, journal_problem};
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::ids::ArtifactId;

#[derive(Serialize)]
struct Erased {
    artifact_id: ArtifactId,
    #[serde(flatten)]
    deletion: Deletion,
}

/// Erases; 200 only when tombstone and deletes are confirmed, 409 while a lease protects it.
pub(crate) async fn erase(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    if caller.library.options().is_read_only {
        let detail = "the service does not write to its store";
        return Err(Problem::new(ErrorCode::ReadOnly, detail));
    }
    let deletion = caller.collector.erase(&caller.tenant, &artifact).await?;
    let document = Erased {
        artifact_id: artifact.artifact_id,
        deletion,
    };
    Ok(fresh(StatusCode::OK, &document))
}

impl From<EraseError> for Problem {
    fn from(error: EraseError) -> Self {
        let code = error.code();
        match error {
            EraseError::Journal(error) | EraseError::Sweep(SweepError::Journal(error)) => {
                journal_problem(error, None)
            }
            EraseError::NotFound | EraseError::SessionUnknown => Self::new(code, error.to_string()),
            // What a store said and its keys are for the log.
            EraseError::Unreadable(_)
            | EraseError::Clock(_)
            | EraseError::Open(_)
            | EraseError::Sweep(_)
            | EraseError::Store(_) => {
                let detail = "not erased to the end; the same request again goes on";
                Self::new(code, detail).caused_by(error)
            }
        }
    }
}
