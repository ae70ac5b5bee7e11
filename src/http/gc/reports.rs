//! `/v1/gc/reports/{id}`: what the last application of a plan did.

use axum::http::{StatusCode, Uri};
use axum::response::Response;
use uuid::Uuid;

use super::jobs::Work;
use super::problem::of_store;
use super::{PlanPath, Running, is_of};
use crate::error::ErrorCode;
use crate::gc::document;
use crate::http::caller::Caller;
use crate::http::lease::reply::fresh;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::limits::MAX_REPORTED;

/// Artifacts of a report that one reply lists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    offset: usize,
    limit: usize,
}

/// What a caller gets who does not say.
pub(super) const FIRST_PAGE: Page = Page {
    offset: 0,
    limit: 100,
};

/// Shows the newest report of a plan.
pub(crate) async fn show(
    caller: Caller,
    PlanPath(plan_id): PlanPath,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::parse(uri.query(), &["offset", "limit"])?;
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = Page {
        offset: query.number("offset", 0..=u64::MAX)?.map_or(0, number),
        limit: query
            .number("limit", 1..=MAX_REPORTED)?
            .map_or(FIRST_PAGE.limit, number),
    };
    let job = caller
        .jobs
        .find(&caller.tenant, plan_id, Work::Apply(plan_id));
    let ended = job.as_ref().map(|job| (job.run_id(), job.ended()));
    if let Some((Some(run_id), None)) = ended {
        return Ok(Running::application(plan_id, run_id));
    }
    match newest(&caller, plan_id, page).await {
        Err(problem) if problem.code() == ErrorCode::GcReportNotFound => match ended {
            Some((_, Some(Err(failed)))) => Err(failed),
            Some(_) | None => Err(problem),
        },
        other => other,
    }
}

/// Answers a page of the newest report of a plan.
pub(super) async fn newest(
    caller: &Caller,
    plan_id: Uuid,
    page: Page,
) -> Result<Response, Problem> {
    let none = || {
        let detail = "the plan was not applied, or is none of this tenant";
        Problem::new(ErrorCode::GcReportNotFound, detail)
    };
    let report = caller.collector.newest_report(plan_id).await;
    let report = report.map_err(of_store)?;
    let report = report.filter(|report| is_of(&report.scope, &caller.tenant));
    let mut report = report.ok_or_else(none)?;
    let total = report.artifacts.len();
    let artifacts = std::mem::take(&mut report.artifacts);
    let artifacts = artifacts.into_iter().skip(page.offset).take(page.limit);
    report.artifacts = artifacts.collect();
    let next = page.offset.saturating_add(report.artifacts.len());
    let mut document = document::of_report(&report);
    document["artifacts_total"] = total.into();
    if next < total {
        document["next_offset"] = next.into();
    }
    Ok(fresh(StatusCode::OK, &document))
}
