//! Collections over HTTP: parse, one job of [`jobs`], the reply.
//!
//! A job outlives its request. A request waits a little for its job and is answered with the result, or with
//! 202 and where to ask; who asks later finds plans and reports in the store, on every replica. A token
//! sees and collects its own tenant only.

use axum::extract::{FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use uuid::Uuid;

use crate::error::ErrorCode;
use crate::gc::plan::Scope;
use crate::http::caller::Caller;
use crate::http::json_body;
use crate::http::lease::reply::fresh;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::ids::Tenant;
use crate::limits::{GC_JOB_WAIT, MAX_GC_JOB_WAIT, MAX_GC_REQUEST_BYTES};

pub(crate) mod jobs;
pub(crate) mod plans;
mod problem;
pub(crate) mod reports;

/// Where the name of a plan stands: `/v1/gc/plans/{id}`.
const PLACE: usize = 4;

/// Extracts the plan of a route; what is no name of a plan is answered as one that is unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanPath(Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PlanPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let segment = parts.uri.path().split('/').nth(PLACE);
        let plan_id = segment.and_then(|segment| segment.parse().ok());
        plan_id.map(Self).ok_or_else(no_plan)
    }
}

fn no_plan() -> Problem {
    Problem::new(ErrorCode::GcPlanNotFound, "no such plan")
}

/// A job that goes on.
#[derive(Serialize)]
struct Running {
    state: &'static str,
    plan_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<Uuid>,
    /// Where to ask for the result.
    ask: String,
}

impl Running {
    fn plan(plan_id: Uuid) -> Response {
        let ask = format!("/v1/gc/plans/{plan_id}");
        Self::reply(plan_id, None, ask)
    }

    fn application(plan_id: Uuid, run_id: Uuid) -> Response {
        let ask = format!("/v1/gc/reports/{plan_id}");
        Self::reply(plan_id, Some(run_id), ask)
    }

    fn reply(plan_id: Uuid, run_id: Option<Uuid>, ask: String) -> Response {
        let state = "running";
        let running = Self {
            state,
            plan_id,
            run_id,
            ask,
        };
        fresh(StatusCode::ACCEPTED, &running)
    }
}

fn is_of(scope: &Scope, caller: &Tenant) -> bool {
    match scope {
        Scope::All => false,
        Scope::Tenant(tenant) | Scope::Session { tenant, .. } => tenant == caller,
    }
}

fn writes(caller: &Caller) -> Result<(), Problem> {
    if caller.library.options().is_read_only {
        let detail = "the service does not write to its store";
        return Err(Problem::new(ErrorCode::ReadOnly, detail));
    }
    Ok(())
}

/// Reads a request of this kind: how long its caller waits, and what it says.
async fn stated<T: DeserializeOwned>(request: Request) -> Result<(Duration, T), Problem> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query(), &["wait_seconds"])?;
    let most = MAX_GC_JOB_WAIT.as_secs();
    let wait = query.number("wait_seconds", 0..=most)?;
    let wait = wait.map_or(GC_JOB_WAIT, Duration::from_secs);
    let (most, malformed) = (MAX_GC_REQUEST_BYTES, ErrorCode::InvalidBody);
    let said = json_body::read(&parts.headers, body, most, malformed).await?;
    Ok((wait, said))
}
