//! Making a plan: one look at the listings, one cold open per session that has something old.
//!
//! Nothing is kept in memory but the page at hand, the journal and the artifact ids of the current
//! session, and the candidates that the plan will hold. Nothing is written but the plan itself, its
//! root last.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::gc::classify::{Cutoff, JournalView, Judged, judge, judge_unseen};
use crate::gc::collector::{Collector, SessionJournal};
use crate::gc::inventory::Pair;
use crate::gc::plan::{Candidate, Placed, Plan, PlanSession, Scope, StaleUpload};
use crate::gc::planner::session::Current;
use crate::gc::planner::write::session_of;
use crate::gc::policy::GcPolicy;
use crate::gc::report::ReportLine;
use crate::gc::selection::Selection;
use crate::gc::shard::Shard;
use crate::gc::status::{Counts, Reason, Status};
use crate::gc::store_clock::ClockError;
use crate::gc::usage::UsageTally;
use crate::gc::walk::{Found, Walk, WalkError};
use crate::ids::{ArtifactRef, SessionKey, Tenant};
use crate::lease::fold::has_expired;
use crate::lease::state::{Lease, Phase};
use crate::limits::{GC_EXAMPLES, GC_PLAN_CANDIDATES, GC_SHORT_TIMES_ARTIFACTS};
use crate::store::StoreError;
use crate::store::register::DecideError;

mod session;
mod uploads;
pub(in crate::gc) mod write;

/// Alarms that a plan's maker is shown one by one; all of them are counted.
const SHOWN_ALARMS: usize = 100;

/// No plan was made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The store's date cannot be told or believed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A listing could not be read to its end.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan could not be written.
    #[error("the plan was not written: {0}")]
    Write(#[from] DecideError),
    /// The plan's name is taken by something else.
    #[error("another object stands at the plan's key")]
    NameTaken,
    /// Short times are for demonstrations.
    #[error(
        "gc.allow_short_times is for tests and demos: {live} artifacts are more than {GC_SHORT_TIMES_ARTIFACTS}"
    )]
    ShortTimes {
        /// What was met.
        live: u64,
    },
}

impl PlanError {
    /// Returns whether a safety check refused, rather than something failing.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Clock(ClockError::Differs { .. }) | Self::ShortTimes { .. } => true,
            Self::Clock(ClockError::Store(_))
            | Self::Walk(_)
            | Self::Store(_)
            | Self::Write(_)
            | Self::NameTaken => false,
        }
    }
}

/// The first few artifacts of each status and reason.
pub type Examples = BTreeMap<(Status, Reason), Vec<ReportLine>>;

/// A plan that was made.
#[derive(Debug)]
pub struct Planned {
    /// Its root.
    pub plan: Plan,
    /// The SHA-256 of the root: whoever applies the plan gives it.
    pub sha256: Sha256Digest,
    /// Some of what is kept, by status and reason.
    pub examples: Examples,
    /// The candidates, by name.
    pub candidates: Vec<Placed>,
}

impl Collector {
    /// Makes a plan. It deletes nothing.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub async fn plan(&self, scope: &Scope, policy: &GcPolicy) -> Result<Planned, PlanError> {
        self.plan_as(self.fresh_id(), scope, policy).await
    }

    /// Makes a plan of this name, which nothing else has.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub async fn plan_as(
        &self,
        plan_id: Uuid,
        scope: &Scope,
        policy: &GcPolicy,
    ) -> Result<Planned, PlanError> {
        self.plan_part(plan_id, (scope, None), policy).await
    }

    /// Makes a plan of a part of the sessions. The limits of the policy are those of the part.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub async fn plan_shard(
        &self,
        scope: &Scope,
        shard: Option<Shard>,
        policy: &GcPolicy,
    ) -> Result<Planned, PlanError> {
        self.plan_part(self.fresh_id(), (scope, shard), policy)
            .await
    }

    async fn plan_part(
        &self,
        plan_id: Uuid,
        (scope, shard): (&Scope, Option<Shard>),
        policy: &GcPolicy,
    ) -> Result<Planned, PlanError> {
        let now = self.store_date().await?;
        let mut planning = Planning::new(self, policy, plan_id, now);
        planning.shard = shard;
        // Of a part of the store it would say nothing of the rest.
        let is_whole = *scope == Scope::All && shard.is_none();
        planning.usage = is_whole.then(UsageTally::default);
        let beginnings = shard.map_or_else(|| vec![String::new()], Shard::beginnings);
        match scope {
            Scope::All => {
                for tenant in planning.tenants().await? {
                    planning.tenant(&tenant, &beginnings).await?;
                }
            }
            Scope::Tenant(tenant) => planning.tenant(tenant, &beginnings).await?,
            Scope::Session { tenant, session } => {
                let session_key = SessionKey::derive(tenant, session);
                if shard.is_none_or(|shard| shard.contains(&session_key)) {
                    let beginning = format!("{session_key}/");
                    planning.tenant(tenant, &[beginning]).await?;
                }
            }
        }
        planning.uploads(scope).await?;
        if policy.allow_short_times && planning.live > GC_SHORT_TIMES_ARTIFACTS {
            let live = planning.live;
            return Err(PlanError::ShortTimes { live });
        }
        planning.write(scope).await
    }
}

struct Planning<'a> {
    collector: &'a Collector,
    policy: &'a GcPolicy,
    cutoff: Cutoff,
    shard: Option<Shard>,
    counts: Counts,
    live: u64,
    tombstones: u64,
    selection: Selection<Placed>,
    /// Sessions with something to finish.
    unfinished: Vec<PlanSession>,
    pending: usize,
    is_partial: bool,
    uploads: Vec<StaleUpload>,
    alarms: Vec<ReportLine>,
    examples: Examples,
    plan_id: Uuid,
    /// What counts for quotas; none where the plan is not of everything.
    usage: Option<UsageTally>,
}

impl<'a> Planning<'a> {
    fn new(collector: &'a Collector, policy: &'a GcPolicy, plan_id: Uuid, now: Timestamp) -> Self {
        Self {
            collector,
            policy,
            cutoff: Cutoff {
                now,
                orphan_ttl: policy.orphan_ttl(),
            },
            shard: None,
            counts: Counts::default(),
            live: 0,
            tombstones: 0,
            selection: Selection::new(policy),
            unfinished: Vec::new(),
            pending: 0,
            is_partial: false,
            uploads: Vec::new(),
            alarms: Vec::new(),
            examples: Examples::new(),
            plan_id,
            usage: None,
        }
    }

    /// Lists the tenants; what stands among them and is none is counted and left alone.
    async fn tenants(&mut self) -> Result<Vec<Tenant>, PlanError> {
        let (tenants, others) = self.collector.tenants_and_others().await?;
        let counts_others = self.shard.is_none_or(Shard::is_first);
        for size_bytes in others.into_iter().filter(|_| counts_others) {
            let (status, reason) = (Status::RetainedUnknown, Reason::KeyNotOwned);
            self.counts.add(status, reason, size_bytes);
        }
        Ok(tenants)
    }

    /// Walks the sessions whose keys begin with one of `beginnings`.
    async fn tenant(&mut self, tenant: &Tenant, beginnings: &[String]) -> Result<(), PlanError> {
        for beginning in beginnings {
            self.walk(tenant, beginning).await?;
        }
        Ok(())
    }

    async fn walk(&mut self, tenant: &Tenant, within: &str) -> Result<(), PlanError> {
        let keys = &self.collector.keys;
        let mut walk = Walk::new(
            &*self.collector.store,
            &keys.all_manifests(tenant),
            &keys.all_bodies(tenant),
            within,
        );
        let mut current: Option<Current> = None;
        while let Some(found) = walk.next().await? {
            let pair = match found {
                Found::Pair(pair) => pair,
                Found::Foreign { size_bytes, key } => {
                    tracing::debug!(
                        key = key.as_str(),
                        "a key that is none of ours is left alone"
                    );
                    let (status, reason) = (Status::RetainedUnknown, Reason::KeyNotOwned);
                    self.counts.add(status, reason, size_bytes);
                    continue;
                }
            };
            let session_key = pair.artifact.session_key;
            let is_same = |current: &Current| current.session_key == session_key;
            let mut session = match current.take() {
                Some(current) if is_same(&current) => current,
                other => {
                    self.end_session(other).await?;
                    Current::new(tenant, session_key)
                }
            };
            self.pair(&mut session, pair).await?;
            current = Some(session);
        }
        self.end_session(current).await
    }

    async fn pair(&mut self, session: &mut Current, pair: Pair) -> Result<(), PlanError> {
        session.seen.push(pair.artifact.artifact_id);
        let mut manifest = None;
        let judged = loop {
            let journal = session.journal.as_ref().map(|journal| &journal.view);
            match judge(&pair, &self.cutoff, journal, manifest) {
                Judged::NeedsJournal => {
                    let collector = self.collector;
                    let opened = collector.open_session(&session.tenant, &session.session_key);
                    session.journal = Some(opened.await?);
                }
                Judged::NeedsManifest => {
                    manifest = Some(
                        self.collector
                            .manifest_state(&session.tenant, &pair.artifact)
                            .await?,
                    );
                }
                Judged::Finished => {
                    self.tombstones += 1;
                    return Ok(());
                }
                Judged::Is(status, reason) => break (status, reason),
            }
        };
        let (status, reason) = judged;
        let is_whole = pair.manifest.is_some() && pair.body.is_some();
        if is_whole && status != Status::PendingDelete {
            self.live += 1;
            if let Some(usage) = &mut self.usage {
                usage.add(&session.tenant, session.session_key, pair.body_bytes());
            }
        }
        match (status, pair.body.clone()) {
            (Status::PlannedDelete, Some(body)) => self.selection.add(Placed {
                anchor: session.anchor(),
                candidate: Candidate {
                    artifact_id: pair.artifact.artifact_id,
                    reason,
                    manifest: pair.manifest.clone(),
                    body,
                },
            }),
            _ => self.count(session, &pair, status, reason),
        }
        Ok(())
    }

    /// Counts what is no candidate; candidates are counted when the limits are known.
    fn count(&mut self, session: &mut Current, pair: &Pair, status: Status, reason: Reason) {
        let bytes = pair.body_bytes();
        self.counts.add(status, reason, bytes);
        if status == Status::PendingDelete {
            session.pending.push(pair.artifact.artifact_id);
        }
        let verdict = (status, reason);
        let line = || ReportLine::new(&session.tenant, pair.artifact, verdict, bytes);
        if status.is_alarm() && self.alarms.len() < SHOWN_ALARMS {
            self.alarms.push(line());
        }
        let examples = self.examples.entry(verdict).or_default();
        if examples.len() < GC_EXAMPLES {
            examples.push(line());
        }
    }

    /// Reports what the journal knows of artifacts that the listings did not show, and keeps what has to
    /// be finished.
    async fn end_session(&mut self, session: Option<Current>) -> Result<(), PlanError> {
        let Some(mut session) = session else {
            return Ok(());
        };
        if let Some(usage) = &mut self.usage {
            usage.write_full_part(self.collector, self.plan_id).await?;
        }
        let mut has_expired_leases = false;
        if let Some(SessionJournal {
            view: JournalView::Folded(folded),
            ..
        }) = &session.journal
        {
            let now = self.cutoff.now;
            let is_over = |lease: &Lease| {
                lease.phase == Phase::Committed && has_expired(lease.retain_until, now)
            };
            has_expired_leases = !folded.is_suspect && folded.state.leases().any(is_over);
            let unseen: Vec<_> = judge_unseen(folded, &session.seen).collect();
            for (artifact_id, status, reason) in unseen {
                let pair = Pair {
                    artifact: ArtifactRef {
                        session_key: session.session_key,
                        artifact_id,
                    },
                    manifest: None,
                    body: None,
                };
                self.count(&mut session, &pair, status, reason);
            }
        }
        let room = GC_PLAN_CANDIDATES - self.pending;
        if session.pending.len() > room {
            session.pending.truncate(room);
            self.is_partial = true;
        }
        self.pending += session.pending.len();
        if !session.pending.is_empty() || has_expired_leases {
            let anchor = session.anchor();
            self.unfinished.push(PlanSession {
                pending: session.pending,
                has_expired_leases,
                ..session_of(&anchor)
            });
        }
        Ok(())
    }
}
