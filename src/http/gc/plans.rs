//! `/v1/gc/plans`: makes a plan, shows one, applies one.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use super::jobs::Work;
use super::problem::of_store;
use super::{PlanPath, Running, is_of, no_plan, stated, writes};
use crate::digest::Sha256Digest;
use crate::error::ErrorCode;
use crate::gc::document;
use crate::gc::plan::{Plan, Scope};
use crate::gc::policy::{GcPolicy, PolicyError, PolicyRequest, Share};
use crate::http::caller::Caller;
use crate::http::gc::reports;
use crate::http::lease::reply::fresh;
use crate::http::problem::{Problem, excerpt};
use crate::http::query::NoQuery;
use crate::ids::SessionId;

/// What a plan may be about, and how much may go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanRequest {
    session: Option<SessionId>,
    orphan_ttl_seconds: Option<u64>,
    max_deletions: Option<u64>,
    max_share: Option<Share>,
}

/// Which plan is meant, byte for byte.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyRequest {
    sha256: String,
}

/// Makes a plan; deletes nothing.
pub(crate) async fn make(caller: Caller, request: Request) -> Result<Response, Problem> {
    let (wait, asked) = stated::<PlanRequest>(request).await?;
    writes(&caller)?;
    let policy = policy_of(&caller, &asked)?;
    let tenant = caller.tenant.clone();
    let scope = match asked.session {
        Some(session) => Scope::Session { tenant, session },
        None => Scope::Tenant(tenant),
    };
    let plan_id = caller.collector.fresh_id();
    let collector = caller.collector.clone();
    let work = async move {
        let planned = Box::pin(collector.plan_as(plan_id, &scope, &policy)).await;
        planned.map(|_| ()).map_err(Problem::from)
    };
    let mut job = caller
        .jobs
        .begin(&caller.tenant, plan_id, Work::Plan, work)?;
    match job.wait(wait).await {
        None => Ok(Running::plan(plan_id)),
        Some(ended) => {
            ended?;
            let (plan, sha256) = stored(&caller, plan_id).await?;
            let document = document::of_plan(&plan, &sha256);
            Ok(fresh(StatusCode::CREATED, &document))
        }
    }
}

/// Shows a plan.
pub(crate) async fn show(
    caller: Caller,
    PlanPath(plan_id): PlanPath,
    NoQuery: NoQuery,
) -> Result<Response, Problem> {
    match stored(&caller, plan_id).await {
        Ok((plan, sha256)) => {
            let document = document::of_plan(&plan, &sha256);
            Ok(fresh(StatusCode::OK, &document))
        }
        // Not there yet, perhaps, or never: this replica knows of those that it was asked for.
        Err(problem) if problem.code() == ErrorCode::GcPlanNotFound => {
            let job = caller.jobs.find(&caller.tenant, plan_id, Work::Plan);
            match job.map(|job| job.ended()) {
                Some(None) => Ok(Running::plan(plan_id)),
                Some(Some(Err(failed))) => Err(failed),
                Some(Some(Ok(()))) | None => Err(problem),
            }
        }
        Err(problem) => Err(problem),
    }
}

/// Applies a plan.
pub(crate) async fn apply(
    caller: Caller,
    PlanPath(plan_id): PlanPath,
    request: Request,
) -> Result<Response, Problem> {
    let (wait, asked) = stated::<ApplyRequest>(request).await?;
    writes(&caller)?;
    let sha256 = asked.sha256;
    let hex = sha256.strip_prefix("sha256:").unwrap_or(&sha256);
    let sha256 = Sha256Digest::from_hex(hex).map_err(|error| {
        let detail = format!("sha256: {}", excerpt(&error.to_string()));
        Problem::new(ErrorCode::InvalidBody, detail)
    })?;
    // Another tenant's plan is not found, whatever is said of it.
    stored(&caller, plan_id).await?;
    let ready = caller.collector.check_plan(plan_id, &sha256).await?;
    let (collector, metrics) = (caller.collector.clone(), caller.metrics.clone());
    let run_id = ready.run_id();
    let work = async move {
        let report = Box::pin(collector.apply_checked(&ready)).await?;
        metrics.collected(&report.counts);
        Ok(())
    };
    let work_of = Work::Apply(run_id);
    let mut job = caller.jobs.begin(&caller.tenant, plan_id, work_of, work)?;
    match job.wait(wait).await {
        None => {
            let run_id = job.run_id().unwrap_or(run_id);
            Ok(Running::application(plan_id, run_id))
        }
        Some(ended) => {
            ended?;
            reports::newest(&caller, plan_id, reports::FIRST_PAGE).await
        }
    }
}

/// Reads a plan of the caller's tenant as it is stored.
pub(super) async fn stored(
    caller: &Caller,
    plan_id: uuid::Uuid,
) -> Result<(Plan, Sha256Digest), Problem> {
    let stored = caller.collector.stored_plan(plan_id).await;
    let stored = stored.map_err(of_store)?;
    let own = stored.filter(|(plan, _)| is_of(&plan.scope, &caller.tenant));
    own.ok_or_else(no_plan)
}

fn policy_of(caller: &Caller, asked: &PlanRequest) -> Result<GcPolicy, Problem> {
    let request = PolicyRequest {
        orphan_ttl_seconds: asked.orphan_ttl_seconds,
        max_deletions: asked.max_deletions,
        max_share: asked.max_share,
        ..PolicyRequest::default()
    };
    let policy = GcPolicy::new(&request, &caller.gc_settings, caller.collector.store_ttl());
    policy.map_err(|error| {
        let code = match error {
            PolicyError::BelowStoreTtl { .. } => ErrorCode::GcRefused,
            PolicyError::OutOfBounds { .. } => ErrorCode::InvalidBody,
        };
        Problem::new(code, error.to_string())
    })
}
