//! What the failures of a collection are answered with. What a store said and its keys are for the log.

use crate::error::ErrorCode;
use crate::gc::apply::ApplyError;
use crate::gc::failure::{CollectionStoreError, code_of_failure};
use crate::gc::plan::PlanRefusal;
use crate::gc::planner::PlanError;
use crate::gc::store_clock::ClockError;
use crate::gc::walk::WalkError;
use crate::http::problem::Problem;

const UNFINISHED: &str = "the collection did not come to its end; the same request again goes on";

/// What a store's failure means for a collection: it uses credentials of its own.
pub(super) fn of_store(error: CollectionStoreError) -> Problem {
    Problem::new(code_of_failure(&error), UNFINISHED).caused_by(error)
}

fn of_clock(error: ClockError) -> Problem {
    match error {
        ClockError::Differs { .. } => Problem::new(ErrorCode::GcRefused, error.to_string()),
        ClockError::Store(error) => of_store(error),
    }
}

impl From<PlanError> for Problem {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Clock(error) => of_clock(error),
            PlanError::Walk(WalkError::Store(error)) | PlanError::Store(error) => of_store(error),
            PlanError::Walk(WalkError::Inventory(error)) => {
                Self::new(ErrorCode::StoreUnavailable, UNFINISHED).caused_by(error)
            }
            PlanError::Write(error) => of_store(error.into_store_error()),
            PlanError::NameTaken => {
                Self::new(ErrorCode::Internal, UNFINISHED).caused_by(PlanError::NameTaken)
            }
            PlanError::ShortTimes { .. } => Self::new(ErrorCode::GcRefused, error.to_string()),
        }
    }
}

impl From<ApplyError> for Problem {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::NotFound(_) => Self::new(ErrorCode::GcPlanNotFound, "no such plan"),
            ApplyError::Refused(refusal) => refusal.into(),
            ApplyError::Clock(error) => of_clock(error),
            ApplyError::ShortTimes { .. } => Self::new(ErrorCode::GcRefused, error.to_string()),
            ApplyError::Store(error) => of_store(error),
        }
    }
}

impl From<PlanRefusal> for Problem {
    fn from(refusal: PlanRefusal) -> Self {
        match &refusal {
            PlanRefusal::TooYoung { .. } => {
                Self::new(ErrorCode::GcPlanTooYoung, refusal.to_string())
            }
            PlanRefusal::Altered { .. }
            | PlanRefusal::Expired { .. }
            | PlanRefusal::BelowStoreTtl { .. } => {
                Self::new(ErrorCode::GcRefused, refusal.to_string())
            }
            PlanRefusal::Unreadable(_) | PlanRefusal::Foreign(_) => {
                let detail = "not a plan of this store that this version reads";
                Self::new(ErrorCode::GcRefused, detail).caused_by(refusal)
            }
        }
    }
}
