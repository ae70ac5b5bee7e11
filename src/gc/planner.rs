//! Making a plan: one look at the listings, one cold open per session that has something old.
//!
//! Nothing is kept in memory but the page at hand, the journal and the artifact ids of the current
//! session, and the candidates that the plan will hold. Nothing is written but the plan itself, its
//! root last.

use std::sync::Arc;

use jiff::Timestamp;

use crate::artifact::manifest::ManifestEntry;
use crate::digest::Sha256Digest;
use crate::gc::classify::{Cutoff, JournalView, Judged, ManifestState, judge, judge_unseen};
use crate::gc::collector::{Collector, SessionJournal, Stands};
use crate::gc::inventory::Pair;
use crate::gc::plan::{
    Anchor, Candidate, PLAN_VERSION, PartRef, Placed, Plan, PlanPart, PlanSession, Scope,
    StaleUpload, cut_into_parts,
};
use crate::gc::policy::GcPolicy;
use crate::gc::report::ReportLine;
use crate::gc::selection::{Selected, Selection};
use crate::gc::status::{Counts, Reason, Status, Tally};
use crate::gc::store_clock::ClockError;
use crate::gc::usage::UsageTally;
use crate::gc::walk::{Found, Walk, WalkError};
use crate::ids::{ArtifactId, ArtifactRef, SessionKey, Tenant};
use crate::lease::fold::has_expired;
use crate::lease::state::Phase;
use crate::limits::{
    GC_ABANDONED_UPLOAD, GC_PLAN_CANDIDATES, GC_PLAN_UPLOADS, GC_SHORT_TIMES_ARTIFACTS,
};
use crate::store::register::{DecideError, Decision, decide};
use crate::store::{ListRequest, StoreError, StoreErrorKind, paging};

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

/// A plan that was made.
#[derive(Debug)]
pub struct Planned {
    /// Its root.
    pub plan: Plan,
    /// The SHA-256 of the root: whoever applies the plan gives it.
    pub sha256: Sha256Digest,
    /// What somebody should look at, the first hundred of it.
    pub alarms: Vec<ReportLine>,
    /// The candidates, by name.
    pub candidates: Vec<Placed>,
}

impl Collector {
    /// Makes a plan. It deletes nothing.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub async fn plan(&self, scope: &Scope, policy: &GcPolicy) -> Result<Planned, PlanError> {
        let now = self.store_date().await?;
        let mut planning = Planning::new(self, policy, now);
        // Of a part of the store it would say nothing of the rest.
        planning.usage = (*scope == Scope::All).then(UsageTally::default);
        match scope {
            Scope::All => {
                for tenant in planning.tenants().await? {
                    planning.tenant(&tenant, None).await?;
                }
            }
            Scope::Tenant(tenant) => planning.tenant(tenant, None).await?,
            Scope::Session { tenant, session } => {
                let session_key = SessionKey::derive(tenant, session);
                planning.tenant(tenant, Some(session_key)).await?;
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
    plan_id: uuid::Uuid,
    /// What counts for quotas; none where the plan is not of everything.
    usage: Option<UsageTally>,
}

/// The session that the walk is in.
struct Current {
    tenant: Tenant,
    session_key: SessionKey,
    journal: Option<SessionJournal>,
    anchor: Option<Arc<Anchor>>,
    seen: Vec<ArtifactId>,
    pending: Vec<ArtifactId>,
}

impl Current {
    fn new(tenant: &Tenant, session_key: SessionKey) -> Self {
        Self {
            tenant: tenant.clone(),
            session_key,
            journal: None,
            anchor: None,
            seen: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the session as candidates keep it, the same for all of them.
    fn anchor(&mut self) -> Arc<Anchor> {
        let journal = self.journal.as_ref();
        let anchor = self.anchor.get_or_insert_with(|| {
            Arc::new(Anchor {
                tenant: self.tenant.clone(),
                session_key: self.session_key,
                session: journal.and_then(|journal| journal.session.clone()),
                as_of_seq: journal.map_or(0, |journal| journal.as_of_seq),
            })
        });
        Arc::clone(anchor)
    }
}

impl<'a> Planning<'a> {
    fn new(collector: &'a Collector, policy: &'a GcPolicy, now: Timestamp) -> Self {
        Self {
            collector,
            policy,
            cutoff: Cutoff {
                now,
                orphan_ttl: policy.orphan_ttl(),
            },
            counts: Counts::default(),
            live: 0,
            tombstones: 0,
            selection: Selection::new(policy),
            unfinished: Vec::new(),
            pending: 0,
            is_partial: false,
            uploads: Vec::new(),
            alarms: Vec::new(),
            plan_id: collector.fresh_id(),
            usage: None,
        }
    }

    /// Lists the tenants; what stands among them and is none is counted and left alone.
    async fn tenants(&mut self) -> Result<Vec<Tenant>, PlanError> {
        let prefix = self.collector.keys.tenants();
        let request = ListRequest {
            prefix: prefix.clone(),
            delimiter: Some('/'),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.collector.store, request);
        let mut tenants = Vec::new();
        while let Some(page) = pages.next_page().await? {
            for listed in page.objects {
                let (status, reason) = (Status::RetainedUnknown, Reason::KeyNotOwned);
                self.counts.add(status, reason, listed.size_bytes);
            }
            for common in page.common_prefixes {
                let name = common.strip_prefix(&prefix);
                let name = name.and_then(|name| name.strip_suffix('/'));
                match name.and_then(|name| name.parse().ok()) {
                    Some(tenant) => tenants.push(tenant),
                    None => self
                        .counts
                        .add(Status::RetainedUnknown, Reason::KeyNotOwned, 0),
                }
            }
        }
        Ok(tenants)
    }

    async fn tenant(&mut self, tenant: &Tenant, only: Option<SessionKey>) -> Result<(), PlanError> {
        let keys = &self.collector.keys;
        let within = only.map(|session_key| format!("{session_key}/"));
        let mut walk = Walk::new(
            &*self.collector.store,
            &keys.all_manifests(tenant),
            &keys.all_bodies(tenant),
            within.as_deref().unwrap_or_default(),
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
                    manifest = Some(self.manifest_state(&session.tenant, &pair.artifact).await?);
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
        if status.is_alarm() && self.alarms.len() < SHOWN_ALARMS {
            let verdict = (status, reason);
            let line = ReportLine::new(&session.tenant, pair.artifact, verdict, bytes);
            self.alarms.push(line);
        }
    }

    async fn manifest_state(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<ManifestState, PlanError> {
        Ok(match self.collector.read_manifest(tenant, artifact).await {
            Ok(Stands::Nothing) => ManifestState::Absent,
            Ok(Stands::Entry(entry, _)) => match *entry {
                ManifestEntry::Live(_) => ManifestState::Live,
                ManifestEntry::Tombstone(_) => ManifestState::Tombstone,
            },
            Ok(Stands::Unreadable(_)) => ManifestState::Unreadable,
            // Of one key: it is kept and reported, as what this version cannot read.
            Err(error) if error.is(StoreErrorKind::Denied) => ManifestState::Unreadable,
            Err(error) => return Err(error.into()),
        })
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
            let is_over = |lease: &crate::lease::state::Lease| {
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

    /// Finds multipart uploads that nobody will finish: listed for the whole bucket and filtered here,
    /// since several servers filter wrongly.
    async fn uploads(&mut self, scope: &Scope) -> Result<(), PlanError> {
        let mut pages = paging::list_uploads(&*self.collector.store);
        loop {
            let page = match pages.next_page().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(error) if error.is(StoreErrorKind::NotImplemented) => return Ok(()),
                Err(error) if error.is(StoreErrorKind::Denied) => {
                    self.counts.add(Status::Denied, Reason::StaleUpload, 0);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            for upload in page.uploads {
                let Some((tenant, artifact)) = self.collector.keys.artifact_of_body(&upload.key)
                else {
                    continue;
                };
                let is_in_scope = match scope {
                    Scope::All => true,
                    Scope::Tenant(only) => tenant == *only,
                    Scope::Session {
                        tenant: only,
                        session,
                    } => {
                        tenant == *only && artifact.session_key == SessionKey::derive(only, session)
                    }
                };
                let margin = std::time::Duration::from_secs(1);
                let is_stale = upload.initiated.filter(|initiated| {
                    self.cutoff
                        .is_older(*initiated, margin, GC_ABANDONED_UPLOAD)
                });
                match is_stale {
                    Some(initiated) if is_in_scope => {
                        if self.uploads.len() == GC_PLAN_UPLOADS {
                            self.is_partial = true;
                            return Ok(());
                        }
                        self.counts
                            .add(Status::PlannedDelete, Reason::StaleUpload, 0);
                        self.uploads.push(StaleUpload {
                            key: upload.key,
                            upload_id: upload.upload_id,
                            initiated,
                        });
                    }
                    Some(_) | None => {}
                }
            }
        }
    }

    async fn write(mut self, scope: &Scope) -> Result<Planned, PlanError> {
        let selected = self.selection.finish(self.policy, self.live);
        let is_partial = self.is_partial || selected.is_partial();
        for (reason, left) in selected.left() {
            self.counts.add_all(Status::RetainedLimit, reason, left);
        }
        let Selected { taken, .. } = selected;
        for placed in &taken {
            let tally = Tally {
                count: 1,
                bytes: placed.candidate.body.size_bytes,
            };
            let reason = placed.candidate.reason;
            self.counts.add_all(Status::PlannedDelete, reason, tally);
        }
        let sessions = gather(&taken, self.unfinished);
        let plan_id = self.plan_id;
        if let Some(usage) = self.usage.take() {
            usage
                .finish(self.collector, plan_id, self.cutoff.now)
                .await?;
        }
        let mut parts = Vec::new();
        for (part, sessions) in (0..).zip(cut_into_parts(sessions)) {
            let candidates = sessions
                .iter()
                .map(|session| session.candidates.len() as u64);
            let candidates = candidates.sum();
            let part_object = PlanPart {
                v: PLAN_VERSION,
                plan_id,
                part,
                sessions,
            };
            let key = self.collector.keys.gc_plan_part(&plan_id, part);
            let sha256 = create(self.collector, &key, part_object.encode()).await?;
            parts.push(PartRef { sha256, candidates });
        }
        let plan = Plan {
            v: PLAN_VERSION,
            plan_id,
            root: self.collector.keys.root(),
            scope: scope.clone(),
            server_date: self.cutoff.now,
            policy: *self.policy,
            counts: self.counts,
            live: self.live,
            tombstones: self.tombstones,
            is_partial,
            uploads: self.uploads,
            parts,
        };
        let key = self.collector.keys.gc_plan(&plan_id);
        let sha256 = create(self.collector, &key, plan.encode()).await?;
        Ok(Planned {
            plan,
            sha256,
            alarms: self.alarms,
            candidates: taken,
        })
    }
}

pub(in crate::gc) async fn create(
    collector: &Collector,
    key: &crate::store::keys::Key,
    bytes: Vec<u8>,
) -> Result<Sha256Digest, PlanError> {
    let sha256 = Sha256Digest::of(&bytes);
    match decide(&*collector.store, key, &bytes.into()).await? {
        Decision::Won(_) => Ok(sha256),
        Decision::Lost(_) => Err(PlanError::NameTaken),
    }
}

fn session_of(anchor: &Anchor) -> PlanSession {
    PlanSession {
        tenant: anchor.tenant.clone(),
        session_key: anchor.session_key,
        session: anchor.session.clone(),
        as_of_seq: anchor.as_of_seq,
        candidates: Vec::new(),
        pending: Vec::new(),
        has_expired_leases: false,
    }
}

/// Puts the candidates, in order, and what has to be finished, in order, together by session.
fn gather(taken: &[Placed], unfinished: Vec<PlanSession>) -> Vec<PlanSession> {
    let of_candidates = taken.iter().map(|placed| PlanSession {
        candidates: vec![placed.candidate.clone()],
        ..session_of(&placed.anchor)
    });
    let mut sessions: Vec<PlanSession> = of_candidates.chain(unfinished).collect();
    let name = |session: &PlanSession| (session.tenant.clone(), session.session_key);
    sessions.sort_by_key(name);
    sessions.dedup_by(|next, first| {
        let is_same = name(next) == name(first);
        if is_same {
            first.candidates.append(&mut next.candidates);
            first.pending.append(&mut next.pending);
            first.has_expired_leases |= next.has_expired_leases;
        }
        is_same
    });
    sessions
}
