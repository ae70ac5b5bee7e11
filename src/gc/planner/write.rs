//! Writing a plan down: parts first, the root last.

use crate::digest::Sha256Digest;
use crate::gc::collector::Collector;
use crate::gc::plan::{
    Anchor, PLAN_VERSION, PartRef, Placed, Plan, PlanPart, PlanSession, Scope, cut_into_parts,
};
use crate::gc::planner::{PlanError, Planned, Planning};
use crate::gc::selection::Selected;
use crate::gc::status::{Status, Tally};
use crate::store::keys::Key;
use crate::store::register::{Decision, decide};

impl Planning<'_> {
    pub(super) async fn write(mut self, scope: &Scope) -> Result<Planned, PlanError> {
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
            let began = self.cutoff.now;
            usage.finish(self.collector, plan_id, began).await?;
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
            shard: self.shard,
            server_date: self.cutoff.now,
            policy: *self.policy,
            counts: self.counts,
            live: self.live,
            tombstones: self.tombstones,
            is_partial,
            uploads: self.uploads,
            alarms: self.alarms,
            parts,
        };
        let key = self.collector.keys.gc_plan(&plan_id);
        let sha256 = create(self.collector, &key, plan.encode()).await?;
        Ok(Planned {
            plan,
            sha256,
            examples: self.examples,
            candidates: taken,
        })
    }
}

/// Creates an object of a plan.
///
/// # Errors
/// It is not written, or another one stands there.
pub(in crate::gc) async fn create(
    collector: &Collector,
    key: &Key,
    bytes: Vec<u8>,
) -> Result<Sha256Digest, PlanError> {
    let sha256 = Sha256Digest::of(&bytes);
    match decide(&*collector.store, key, &bytes.into()).await? {
        Decision::Won(_) => Ok(sha256),
        Decision::Lost(_) => Err(PlanError::NameTaken),
    }
}

pub(super) fn session_of(anchor: &Anchor) -> PlanSession {
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
