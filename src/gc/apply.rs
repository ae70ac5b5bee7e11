//! Applying a plan: on any host, later, as a list of candidates that are decided anew.
//!
//! First every journal is folded to its tail from the checkpoint before the newest one, and what may
//! still go is condemned, each artifact by an entry that is refused if anything about it landed after
//! the plan. Then, after the settle time and on a fresh fold, what the journals say is condemned is
//! swept, this plan's and whatever an earlier run left.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::gc::collector::Collector;
use crate::gc::plan::{Plan, PlanPart, PlanRefusal, PlanSession};
use crate::gc::report::{REPORT_VERSION, Report, ReportLine, SessionFailure};
use crate::gc::status::{Counts, Reason, Status};
use crate::gc::store_clock::ClockError;
use crate::ids::{ArtifactId, Tenant};
use crate::limits::GC_SHORT_TIMES_ARTIFACTS;
use crate::store::keys::Key;
use crate::store::register::read_register;
use crate::store::{PutMode, StoreError, StoreErrorKind, Upload};

mod condemn;
mod finish;

/// A plan was not applied, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// There is no such plan.
    #[error("no plan {0}")]
    NotFound(Uuid),
    /// The plan is refused; nothing was done.
    #[error(transparent)]
    Refused(#[from] PlanRefusal),
    /// The store's date cannot be told or believed; nothing was done.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Short times are for demonstrations; nothing was done.
    #[error("gc.allow_short_times is for tests and demos: the plan met {live} artifacts")]
    ShortTimes {
        /// What it met.
        live: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApplyError {
    /// Returns whether a safety check refused, rather than something failing.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Clock(ClockError::Differs { .. })
            | Self::ShortTimes { .. } => true,
            Self::NotFound(_) | Self::Clock(ClockError::Store(_)) | Self::Store(_) => false,
        }
    }
}

/// A plan that may be applied now.
#[derive(Debug)]
pub struct CheckedPlan {
    plan: Plan,
    sha256: Sha256Digest,
    now: Timestamp,
    run_id: Uuid,
}

impl CheckedPlan {
    /// Returns the plan's root.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the name of the application: its report is stored under it.
    pub const fn run_id(&self) -> Uuid {
        self.run_id
    }
}

/// One application of a plan, under way.
struct Run<'a> {
    collector: &'a Collector,
    plan: &'a Plan,
    report: Report,
    /// Candidates that have their line.
    decided: HashSet<(Tenant, ArtifactId)>,
}

impl Collector {
    /// Applies a plan whose root has this SHA-256.
    ///
    /// # Errors
    /// See [`ApplyError`]. What could not be decided in one session stands in the report instead.
    pub async fn apply(&self, plan_id: Uuid, sha256: &Sha256Digest) -> Result<Report, ApplyError> {
        let ready = self.check_plan(plan_id, sha256).await?;
        self.apply_checked(&ready).await
    }

    /// Reads a plan and decides whether it may be applied now. Nothing is done.
    ///
    /// # Errors
    /// See [`ApplyError`].
    pub async fn check_plan(
        &self,
        plan_id: Uuid,
        sha256: &Sha256Digest,
    ) -> Result<CheckedPlan, ApplyError> {
        let plan = self.read_plan(plan_id, sha256).await?;
        let now = self.store_date().await?;
        plan.check_time(now, self.store_ttl)?;
        if plan.policy.allow_short_times && plan.live > GC_SHORT_TIMES_ARTIFACTS {
            return Err(ApplyError::ShortTimes { live: plan.live });
        }
        Ok(CheckedPlan {
            plan,
            sha256: *sha256,
            now,
            run_id: self.fresh_id(),
        })
    }

    /// Applies a plan that was checked a moment ago.
    ///
    /// # Errors
    /// See [`ApplyError`]. What could not be decided in one session stands in the report instead.
    pub async fn apply_checked(&self, ready: &CheckedPlan) -> Result<Report, ApplyError> {
        let (plan, now) = (&ready.plan, ready.now);
        let mut run = Run::new(self, ready);
        run.abort_uploads().await;
        for part in 0..plan.parts.len() {
            for session in run.read_part(part).await?.sessions {
                run.condemn_session(&session, now).await;
            }
        }
        let settle = Duration::from_secs(plan.policy.settle_seconds);
        if !settle.is_zero() {
            tokio::time::sleep(settle).await;
        }
        let now = self.store_date().await?;
        for part in 0..plan.parts.len() {
            for session in run.read_part(part).await?.sessions {
                run.finish_session(&session, now).await;
            }
        }
        Ok(run.end().await)
    }

    /// Reads a plan's root.
    ///
    /// # Errors
    /// See [`ApplyError`].
    pub async fn read_plan(
        &self,
        plan_id: Uuid,
        sha256: &Sha256Digest,
    ) -> Result<Plan, ApplyError> {
        let key = self.keys.gc_plan(&plan_id);
        let found = read_register(&*self.store, &key).await?;
        let found = found.ok_or(ApplyError::NotFound(plan_id))?;
        Ok(Plan::decode(
            &found.bytes,
            sha256,
            plan_id,
            &self.keys.root(),
        )?)
    }
}

impl<'a> Run<'a> {
    fn new(collector: &'a Collector, ready: &'a CheckedPlan) -> Self {
        let plan = &ready.plan;
        Self {
            collector,
            plan,
            decided: HashSet::new(),
            report: Report {
                v: REPORT_VERSION,
                plan_id: plan.plan_id,
                plan_sha256: ready.sha256,
                run_id: ready.run_id,
                server_date: ready.now,
                scope: plan.scope.clone(),
                policy: plan.policy,
                counts: Counts::default(),
                is_complete: true,
                artifacts: Vec::new(),
                failures: Vec::new(),
            },
        }
    }

    async fn read_part(&self, part: usize) -> Result<PlanPart, ApplyError> {
        let number = part as u64;
        let (plan_id, of_root) = (self.plan.plan_id, &self.plan.parts[part]);
        let key = self.collector.keys.gc_plan_part(&plan_id, number);
        let found = read_register(&*self.collector.store, &key).await?;
        let found = found.ok_or_else(|| {
            let detail = "a part of the plan is missing";
            StoreError::new(StoreErrorKind::Rejected, "get", &key, detail)
        })?;
        Ok(PlanPart::decode(
            &found.bytes,
            &of_root.sha256,
            plan_id,
            number,
        )?)
    }

    /// Gives the plan's multipart uploads up; of one that was finished meanwhile nothing is left to abort.
    async fn abort_uploads(&mut self) {
        for stale in &self.plan.uploads {
            let is_ours = self.collector.keys.artifact_of_body(&stale.key).is_some();
            let Some(key) = Key::parse(stale.key.as_str()).ok().filter(|_| is_ours) else {
                self.report
                    .counts
                    .add(Status::RetainedUnknown, Reason::KeyNotOwned, 0);
                continue;
            };
            let upload = Upload {
                key,
                upload_id: stale.upload_id.clone(),
            };
            let status = match self.collector.store.abort_upload(&upload).await {
                Ok(()) => Status::Deleted,
                Err(error) => {
                    self.report.is_complete = false;
                    tracing::warn!("a stale upload stays: {error}");
                    if error.is(StoreErrorKind::Denied) {
                        Status::Denied
                    } else {
                        Status::PendingDelete
                    }
                }
            };
            self.report.counts.add(status, Reason::StaleUpload, 0);
        }
    }

    fn decide(&mut self, line: ReportLine, artifact_id: ArtifactId) {
        let name = (line.tenant.clone(), artifact_id);
        if self.decided.insert(name) {
            if matches!(line.status, Status::PendingDelete | Status::Denied) {
                self.report.is_complete = false;
            }
            self.report.add(line);
        }
    }

    fn fail(&mut self, session: &PlanSession, detail: &dyn std::fmt::Display) {
        self.report.is_complete = false;
        tracing::warn!(session_key = %session.session_key, "a session is left for the next run: {detail}");
        self.report.failures.push(SessionFailure {
            tenant: session.tenant.clone(),
            session_key: session.session_key.to_string(),
            detail: detail.to_string(),
        });
    }

    /// Writes the report; a run whose report cannot be written has done its work all the same.
    async fn end(self) -> Report {
        let key = self
            .collector
            .keys
            .gc_report(&self.plan.plan_id, &self.report.run_id);
        let bytes = self.report.encode();
        let put = self
            .collector
            .store
            .put(&key, bytes.into(), PutMode::CreateIfAbsent);
        if let Err(error) = put.await {
            tracing::warn!("the report was not written: {error}");
        }
        self.report
    }
}
