//! The second half of an application: on a fresh fold, everything condemned is finished.

use jiff::Timestamp;

use super::Run;
use crate::artifact::manifest::ManifestEntry;
use crate::gc::collector::Stands;
use crate::gc::plan::PlanSession;
use crate::gc::report::ReportLine;
use crate::gc::status::{Reason, Status};
use crate::gc::sweep::SweepError;
use crate::gc::unfinished::{Settling, unfinished_verdict};
use crate::ids::{ArtifactId, ArtifactRef, SessionId, SessionKey};
use crate::lease::entry::{Condemned, DeleteOutcome};
use crate::lease::state::{ArtifactStatus, State};

impl Run<'_> {
    pub(super) async fn finish_session(&mut self, session: &PlanSession, now: Timestamp) {
        let name = session.session.clone();
        let is_its_name =
            |name: &SessionId| SessionKey::derive(&session.tenant, name) == session.session_key;
        let mut is_known = std::collections::HashSet::new();
        if let Some(name) = name.filter(is_its_name) {
            let journals = &self.collector.journals;
            match journals.open_double_rooted(&session.tenant, &name).await {
                // What is condemned before a doubt arose stays condemned; but nothing is destroyed in doubt.
                Ok(opened) if opened.is_suspect => {}
                Ok(opened) => {
                    let state = opened.opened.chain.state();
                    is_known = self.finish_condemned(session, &name, state, now).await;
                }
                Err(error) => self.fail(session, &error),
            }
        }
        // Bodies beside a tombstone go whatever the journal says.
        let candidates = session
            .candidates
            .iter()
            .map(|candidate| candidate.artifact_id);
        let rest: Vec<_> = session.pending.iter().copied().chain(candidates).collect();
        for artifact_id in rest {
            let is_decided = self
                .decided
                .contains(&(session.tenant.clone(), artifact_id));
            if !is_decided && !is_known.contains(&artifact_id) {
                self.finish_late_body(session, artifact_id).await;
            }
        }
    }

    /// Sweeps everything that the journal says is condemned, and returns what that was.
    async fn finish_condemned(
        &mut self,
        session: &PlanSession,
        name: &SessionId,
        state: &State,
        now: Timestamp,
    ) -> std::collections::HashSet<ArtifactId> {
        let mut known = std::collections::HashSet::new();
        for (artifact_id, record) in state.artifacts() {
            let ArtifactStatus::Condemned(condemned) = &record.status else {
                continue;
            };
            known.insert(artifact_id);
            if self
                .decided
                .contains(&(session.tenant.clone(), artifact_id))
            {
                continue;
            }
            let line = self.finish_one(session, name, condemned, now).await;
            self.decide(line, artifact_id);
        }
        known
    }

    async fn finish_one(
        &self,
        session: &PlanSession,
        name: &SessionId,
        condemned: &Condemned,
        now: Timestamp,
    ) -> ReportLine {
        let settling = Settling {
            now,
            settle_seconds: self.plan.policy.settle_seconds,
        };
        let finishing = self
            .collector
            .finish_condemned(&session.tenant, name, condemned, settling);
        let mut line = finishing.await;
        if matches!(line.status, Status::Deleted | Status::AlreadyMissing) {
            line.reason = self.planned_reason(session, condemned.artifact_id);
        }
        line
    }

    fn planned_reason(&self, session: &PlanSession, artifact_id: ArtifactId) -> Reason {
        let mut candidates = session.candidates.iter();
        let planned = candidates.find(|candidate| candidate.artifact_id == artifact_id);
        planned.map_or(Reason::CondemnedEarlier, |candidate| candidate.reason)
    }

    /// Looks at an artifact that is finished as far as its journal says: a body beside its tombstone goes.
    async fn finish_late_body(&mut self, session: &PlanSession, artifact_id: ArtifactId) {
        let artifact = ArtifactRef {
            session_key: session.session_key,
            artifact_id,
        };
        let line = |verdict| ReportLine::new(&session.tenant, artifact, verdict, 0);
        let noted = |verdict, note: String| ReportLine {
            note: Some(note),
            ..line(verdict)
        };
        let collector = self.collector;
        let stands = collector.read_manifest(&session.tenant, &artifact).await;
        let finished = match stands {
            Ok(Stands::Entry(entry, _)) if matches!(*entry, ManifestEntry::Tombstone(_)) => {
                match collector
                    .remove_beside_tombstone(&session.tenant, &artifact)
                    .await
                {
                    Ok(DeleteOutcome::Deleted) => {
                        line((Status::Deleted, Reason::BodyBesideTombstone))
                    }
                    Ok(DeleteOutcome::AlreadyMissing) => {
                        line((Status::AlreadyMissing, Reason::BodyBesideTombstone))
                    }
                    Err(error) => noted(unfinished_verdict(&error), error.to_string()),
                }
            }
            Ok(Stands::Entry(..)) => line((Status::PendingDelete, Reason::CondemnedEarlier)),
            Ok(Stands::Nothing) => line((Status::RetainedCorrupt, Reason::ManifestMissing)),
            Ok(Stands::Unreadable(error)) => noted(
                (Status::RetainedUnknown, Reason::ManifestUnreadable),
                error.to_string(),
            ),
            Err(error) => {
                let error = SweepError::from(error);
                noted(unfinished_verdict(&error), error.to_string())
            }
        };
        self.decide(finished, artifact_id);
    }
}
