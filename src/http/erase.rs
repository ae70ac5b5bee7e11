//! `DELETE /a/{locator}`: erases an artifact now, and for good, whether its caller waits for it or not.

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;

use crate::auth::Scope;
use crate::error::{Deletion, ErrorCode};
use crate::gc::erase::{EraseError, Force};
use crate::gc::sweep::SweepError;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::gate::require;
use crate::http::lease::reply::{fresh, journal_problem};
use crate::http::problem::Problem;
use crate::http::query::Query;
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
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::parse(uri.query(), &["force"])?;
    let force = if query.flag("force")? == Some(true) {
        require(&caller.principal, Scope::Admin)?;
        Force::WithoutBrokenJournal
    } else {
        Force::Refuse
    };
    if caller.library.options().is_read_only {
        let detail = "the service does not write to its store";
        return Err(Problem::new(ErrorCode::ReadOnly, detail));
    }
    let (collector, tenant) = (caller.collector.clone(), caller.tenant.clone());
    let erasure = async move {
        let erased = Box::pin(collector.erase_with(&tenant, &artifact, force)).await;
        erased.map_err(Problem::from)
    };
    let deletion = caller.jobs.erase(erasure).await?;
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
