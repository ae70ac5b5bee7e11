//! One scheduled collection: finish what earlier runs left, apply the newest plan that is old enough,
//! remove what collections left about themselves, then make a new plan.
//!
//! An artifact is so seen by two runs before it goes.

use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::gc::apply::ApplyError;
use crate::gc::collector::Collector;
use crate::gc::expiry::Expired;
use crate::gc::plan::{Plan, PlanRefusal, Scope};
use crate::gc::planner::{PlanError, Planned};
use crate::gc::policy::GcPolicy;
use crate::gc::report::Report;
use crate::gc::unfinished::{Finished, UnfinishedError};
use crate::store::register::read_register;
use crate::store::{ListRequest, StoreError, paging};

/// A run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What earlier runs left was not looked at, or old plans and reports were not.
    #[error(transparent)]
    Unfinished(#[from] UnfinishedError),
    /// The plan of an earlier run was not applied.
    #[error("the plan of an earlier run: {0}")]
    Apply(#[from] ApplyError),
    /// No new plan was made.
    #[error("the new plan: {0}")]
    Plan(#[from] PlanError),
    /// The plans could not be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunError {
    /// Returns whether a safety check refused, rather than something failing.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Unfinished(error) => error.is_refusal(),
            Self::Apply(error) => error.is_refusal(),
            Self::Plan(error) => error.is_refusal(),
            Self::Store(_) => false,
        }
    }
}

/// What a run did.
#[derive(Debug)]
pub struct Ran {
    /// What was left by any earlier run.
    pub finished: Finished,
    /// The application of an earlier run's plan, where one was old enough.
    pub report: Option<Report>,
    /// Old plans, reports and probes that went.
    pub expired: Expired,
    /// The new plan.
    pub planned: Planned,
}

impl Collector {
    /// Finishes what earlier runs left, applies the newest plan that may be applied, unless it was, and
    /// makes a new one.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(&self, scope: &Scope, policy: &GcPolicy) -> Result<Ran, RunError> {
        let finished = self.finish(scope, policy.settle_seconds).await?;
        let mut report = None;
        for plan_id in self.plan_ids().await?.into_iter().rev() {
            let Some(sha256) = self.own_plan(plan_id, scope).await? else {
                continue;
            };
            if self.has_report(plan_id).await? {
                break;
            }
            match self.apply(plan_id, &sha256).await {
                Ok(applied) => {
                    report = Some(applied);
                    break;
                }
                // An older one may be old enough; a newer one of this run will be the next time.
                Err(ApplyError::Refused(PlanRefusal::TooYoung { .. })) => {}
                Err(ApplyError::Refused(refusal)) => {
                    tracing::info!(%plan_id, "a plan is passed over: {refusal}");
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let expired = self.expire().await?;
        let planned = self.plan(scope, policy).await?;
        Ok(Ran {
            finished,
            report,
            expired,
            planned,
        })
    }

    /// Returns the names of all plans, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn plan_ids(&self) -> Result<Vec<Uuid>, StoreError> {
        let prefix = self.keys.gc_plans();
        let request = ListRequest {
            prefix: prefix.clone(),
            delimiter: Some('/'),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        let mut ids = Vec::new();
        while let Some(page) = pages.next_page().await? {
            let names = page.common_prefixes.iter();
            let names = names.filter_map(|common| common.strip_prefix(&prefix));
            ids.extend(names.filter_map(|name| name.trim_end_matches('/').parse::<Uuid>().ok()));
        }
        Ok(ids)
    }

    /// Returns a plan as it stands, with its digest; `None` where its root is not there, or is none that
    /// this version reads. For those who show a plan, and for a job that applies its own earlier plans:
    /// nobody kept the digest for it.
    ///
    /// # Errors
    /// The store's.
    pub async fn stored_plan(
        &self,
        plan_id: Uuid,
    ) -> Result<Option<(Plan, Sha256Digest)>, StoreError> {
        let Some(found) = read_register(&*self.store, &self.keys.gc_plan(&plan_id)).await? else {
            return Ok(None);
        };
        let sha256 = Sha256Digest::of(&found.bytes);
        let plan = Plan::decode(&found.bytes, &sha256, plan_id, &self.keys.root());
        Ok(plan.ok().map(|plan| (plan, sha256)))
    }

    async fn own_plan(
        &self,
        plan_id: Uuid,
        scope: &Scope,
    ) -> Result<Option<Sha256Digest>, StoreError> {
        let stored = self.stored_plan(plan_id).await?;
        let own = stored.filter(|(plan, _)| plan.scope == *scope && plan.shard.is_none());
        Ok(own.map(|(_, sha256)| sha256))
    }

    async fn has_report(&self, plan_id: Uuid) -> Result<bool, StoreError> {
        Ok(!self.reports(plan_id).await?.is_empty())
    }

    /// Returns the keys of a plan's reports, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn reports(&self, plan_id: Uuid) -> Result<Vec<String>, StoreError> {
        let request = ListRequest {
            prefix: self.keys.gc_reports(&plan_id),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        let mut keys = Vec::new();
        while let Some(page) = pages.next_page().await? {
            keys.extend(page.objects.into_iter().map(|listed| listed.key));
        }
        Ok(keys)
    }

    /// Reads the newest report of a plan; `None` where it was not applied.
    ///
    /// # Errors
    /// The store's, or bytes that are no report of this version.
    pub async fn newest_report(&self, plan_id: Uuid) -> Result<Option<Report>, StoreError> {
        let Some(key) = self.reports(plan_id).await?.pop() else {
            return Ok(None);
        };
        let unreadable = |detail: String| {
            let kind = crate::store::StoreErrorKind::Rejected;
            StoreError::new(kind, "get", &key, detail)
        };
        let key = crate::store::keys::Key::parse(key.as_str());
        let key = key.map_err(|error| unreadable(error.to_string()))?;
        let Some(found) = read_register(&*self.store, &key).await? else {
            return Ok(None);
        };
        let report = serde_json::from_slice(&found.bytes);
        report
            .map(Some)
            .map_err(|error| unreadable(error.to_string()))
    }
}
