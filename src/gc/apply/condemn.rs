//! The first half of an application: what may still go is condemned.

use std::sync::Arc;

use jiff::Timestamp;

use super::Run;
use crate::artifact::manifest::{
    MANIFEST_VERSION, Manifest, ManifestEntry, Tombstone, TombstoneReason,
};
use crate::gc::classify::{Cutoff, Folded, JournalView, Judged, ManifestState, judge};
use crate::gc::collector::{Stands, why_unusable};
use crate::gc::erase::condemned_of;
use crate::gc::identity::{self, Identity};
use crate::gc::inventory::{Pair, Seen};
use crate::gc::plan::{Candidate, PlanSession};
use crate::gc::report::ReportLine;
use crate::gc::status::{Reason, Status};
use crate::gc::sweep::SweepError;
use crate::gc::unfinished::unfinished_verdict;
use crate::ids::{ArtifactRef, SessionId, SessionKey};
use crate::lease::entry::{CondemnReason, Condemned, DeleteOutcome, ReleaseReason};
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::fold::has_expired;
use crate::lease::journal::JournalError;
use crate::lease::state::{ArtifactStatus, Phase, State};
use crate::store::register::{Decision, Register, decide};
use crate::store::{ETag, ObjectMeta, StoreError, StoreErrorKind};

/// What the first half says of a candidate.
enum Fate {
    /// It is decided.
    Line(Status, Reason),
    /// The same, with a note.
    Noted(Status, Reason, String),
    /// It is condemned: the second half finishes it.
    Condemned,
}

/// The journal and place of the candidates.
struct Place<'a> {
    session: &'a PlanSession,
    name: &'a SessionId,
    folded: &'a Folded,
    cutoff: Cutoff,
}

impl Run<'_> {
    pub(super) async fn condemn_session(&mut self, session: &PlanSession, now: Timestamp) {
        if session.candidates.is_empty() && !session.has_expired_leases {
            return;
        }
        let tenant = &session.tenant;
        let name = session.session.as_ref();
        let is_its_name =
            |name: &&SessionId| SessionKey::derive(tenant, name) == session.session_key;
        let Some(name) = name.filter(is_its_name) else {
            return self.keep_all(session, Status::RetainedUnknown, Reason::SessionUnknown);
        };
        let opened = self
            .collector
            .journals
            .open_double_rooted(tenant, name)
            .await;
        let opened = match opened.map_err(why_unusable) {
            Ok(opened) => opened,
            Err(Ok((status, reason))) => return self.keep_all(session, status, reason),
            Err(Err(error)) => return self.fail(session, &error),
        };
        if opened.is_suspect {
            return self.keep_all(session, Status::RetainedCorrupt, Reason::JournalSuspect);
        }
        let state = opened.opened.chain.state();
        self.release_expired(session, name, state, now).await;
        let written = self.collector.written(tenant, &session.session_key, state);
        let written = match written.await {
            Ok(written) => written,
            Err(error) => return self.fail(session, &error),
        };
        let folded = Folded::new(Arc::clone(state), false).with_written(written);
        let place = Place {
            session,
            name,
            folded: &folded,
            cutoff: Cutoff {
                now,
                orphan_ttl: self.plan.policy.orphan_ttl(),
            },
        };
        for candidate in &session.candidates {
            let fate = match self.fate(&place, candidate).await {
                Ok(fate) => fate,
                Err(error) if error.is(StoreErrorKind::Denied) => {
                    let (status, reason) = (Status::Denied, Reason::ArtifactReadDenied);
                    Fate::Noted(status, reason, error.to_string())
                }
                Err(error) => {
                    self.report.is_complete = false;
                    let (status, reason) =
                        (Status::RetainedUnknown, Reason::ArtifactSnapshotFailed);
                    Fate::Noted(status, reason, error.to_string())
                }
            };
            let (status, reason, note) = match fate {
                Fate::Line(status, reason) => (status, reason, None),
                Fate::Noted(status, reason, note) => (status, reason, Some(note)),
                Fate::Condemned => continue,
            };
            self.line(session, candidate, (status, reason), note);
        }
    }

    fn line(
        &mut self,
        session: &PlanSession,
        candidate: &Candidate,
        verdict: (Status, Reason),
        note: Option<String>,
    ) {
        let artifact = ArtifactRef {
            session_key: session.session_key,
            artifact_id: candidate.artifact_id,
        };
        let bytes = candidate.body.size_bytes;
        let line = ReportLine::new(&session.tenant, artifact, verdict, bytes);
        self.decide(ReportLine { note, ..line }, candidate.artifact_id);
    }

    fn keep_all(&mut self, session: &PlanSession, status: Status, reason: Reason) {
        for candidate in &session.candidates {
            self.line(session, candidate, (status, reason), None);
        }
    }

    /// Ends committed leases whose end has passed by the store's date. The grace runs from that entry.
    async fn release_expired(
        &mut self,
        session: &PlanSession,
        name: &SessionId,
        state: &State,
        now: Timestamp,
    ) {
        let is_over = |lease: &&crate::lease::state::Lease| {
            lease.phase == Phase::Committed && has_expired(lease.retain_until, now)
        };
        let over: Vec<_> = state.leases().filter(is_over).collect();
        for lease in over {
            let release = Operation::Release {
                transaction_id: lease.intent.transaction_id.clone(),
                why: ReleaseReason::Expired { server_date: now },
            };
            let journals = &self.collector.journals;
            match journals.submit(&session.tenant, name, release).await {
                // Extended or released meanwhile: the journal has decided.
                Ok(_) | Err(JournalError::Refused(_)) => {}
                Err(error) => self.fail(session, &error),
            }
        }
    }

    async fn fate(&self, place: &Place<'_>, candidate: &Candidate) -> Result<Fate, StoreError> {
        let pair = Pair {
            artifact: ArtifactRef {
                session_key: place.session.session_key,
                artifact_id: candidate.artifact_id,
            },
            manifest: candidate.manifest.clone(),
            body: Some(candidate.body.clone()),
        };
        if let Some(fate) = by_journal(place, &pair) {
            return Ok(fate);
        }
        match &candidate.manifest {
            None => self.abandoned_upload(place, &pair, &candidate.body).await,
            Some(manifest) => self.artifact(place, &pair, manifest, &candidate.body).await,
        }
    }

    /// A body without a manifest: its manifest key is closed by a tombstone that creates or loses.
    async fn abandoned_upload(
        &self,
        place: &Place<'_>,
        pair: &Pair,
        planned: &Seen,
    ) -> Result<Fate, StoreError> {
        let tenant = &place.session.tenant;
        match self.body_now(place, pair, planned).await? {
            Body::Missing => {
                return Ok(Fate::Line(Status::AlreadyMissing, Reason::AbandonedUpload));
            }
            Body::Changed => return Ok(changed()),
            Body::AsPlanned(_) => {}
        }
        let tombstone = Tombstone {
            v: MANIFEST_VERSION,
            artifact_id: pair.artifact.artifact_id,
            tombstone: TombstoneReason::UploadAbandoned,
            decision_id: None,
            sha256: None,
            size_bytes: Some(planned.size_bytes),
            deleted_at: Some(place.cutoff.now.to_string()),
        };
        let key = self.collector.keys.manifest(tenant, &pair.artifact);
        let decided = decide(&*self.collector.store, &key, &tombstone.encode().into()).await;
        let is_tombstone = match decided.map_err(|error| error.into_store_error())? {
            Decision::Won(_) => true,
            Decision::Lost(found) => matches!(
                ManifestEntry::decode(&found.bytes, &pair.artifact),
                Ok(ManifestEntry::Tombstone(_))
            ),
        };
        if !is_tombstone {
            // It was no orphan: the manifest came, or the listing had left it out.
            return Ok(changed());
        }
        self.beside_tombstone(place, pair, Reason::AbandonedUpload)
            .await
    }

    async fn beside_tombstone(
        &self,
        place: &Place<'_>,
        pair: &Pair,
        reason: Reason,
    ) -> Result<Fate, StoreError> {
        let tenant = &place.session.tenant;
        let removed = self
            .collector
            .remove_beside_tombstone(tenant, &pair.artifact)
            .await;
        Ok(match removed {
            Ok(DeleteOutcome::Deleted) => Fate::Line(Status::Deleted, reason),
            Ok(DeleteOutcome::AlreadyMissing) => Fate::Line(Status::AlreadyMissing, reason),
            Err(error) => unfinished(&error),
        })
    }

    async fn artifact(
        &self,
        place: &Place<'_>,
        pair: &Pair,
        planned: &Seen,
        planned_body: &Seen,
    ) -> Result<Fate, StoreError> {
        let tenant = &place.session.tenant;
        let (manifest, found) = match self.collector.read_manifest(tenant, &pair.artifact).await? {
            Stands::Nothing => {
                return Ok(Fate::Line(Status::RetainedCorrupt, Reason::ManifestMissing));
            }
            Stands::Unreadable(error) => {
                let (status, reason) = (Status::RetainedUnknown, Reason::ManifestUnreadable);
                return Ok(Fate::Noted(status, reason, error.to_string()));
            }
            Stands::Entry(entry, found) => match *entry {
                ManifestEntry::Live(manifest) => (manifest, found),
                ManifestEntry::Tombstone(_) => {
                    let reason = Reason::BodyBesideTombstone;
                    return self.beside_tombstone(place, pair, reason).await;
                }
            },
        };
        if !is_as_planned(&found.meta, planned) {
            return Ok(changed());
        }
        match self.body_now(place, pair, planned_body).await? {
            Body::Changed => return Ok(changed()),
            // Nothing to compare, and nothing to lose.
            Body::Missing => {}
            Body::AsPlanned(meta) => {
                let key = self.collector.keys.body(tenant, &pair.artifact);
                let described = &manifest.head.body;
                let store = &*self.collector.store;
                if let Identity::Differs(what) =
                    identity::check(store, &key, described, &meta).await?
                {
                    tracing::error!(artifact = %pair.artifact, what, "a body is not what its manifest describes; it is kept");
                    let (status, reason) =
                        (Status::RetainedCorrupt, Reason::BodyDiffersFromManifest);
                    return Ok(Fate::Noted(status, reason, format!("another {what}")));
                }
            }
        }
        self.condemn(place, &manifest, &found).await
    }

    async fn condemn(
        &self,
        place: &Place<'_>,
        manifest: &Manifest,
        found: &Register,
    ) -> Result<Fate, StoreError> {
        let condemned = Condemned {
            plan_id: Some(self.plan.plan_id.to_string()),
            ..condemned_of(manifest, found, CondemnReason::Expired, place.cutoff.now)
        };
        let operation = Operation::CondemnUnreferred {
            condemned: Box::new(condemned),
            as_of_seq: place.session.as_of_seq,
        };
        let (tenant, name) = (&place.session.tenant, place.name);
        Ok(
            match self
                .collector
                .journals
                .submit(tenant, name, operation)
                .await
            {
                Ok(_) => Fate::Condemned,
                Err(JournalError::Refused(Refusal::Suspect)) => {
                    Fate::Line(Status::RetainedCorrupt, Reason::JournalSuspect)
                }
                Err(JournalError::Refused(refusal)) => {
                    let (status, reason) = (
                        Status::RaceDetected,
                        Reason::ActiveClaimAddedAfterCleanupPlan,
                    );
                    Fate::Noted(status, reason, refusal.to_string())
                }
                Err(error) => {
                    let (status, reason) =
                        (Status::RetainedUnknown, Reason::ArtifactSnapshotFailed);
                    Fate::Noted(status, reason, error.to_string())
                }
            },
        )
    }

    async fn body_now(
        &self,
        place: &Place<'_>,
        pair: &Pair,
        planned: &Seen,
    ) -> Result<Body, StoreError> {
        let key = self
            .collector
            .keys
            .body(&place.session.tenant, &pair.artifact);
        match self.collector.store.head(&key).await {
            Ok(head) if is_as_planned(&head.meta, planned) => Ok(Body::AsPlanned(head.meta)),
            Ok(_) => Ok(Body::Changed),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok(Body::Missing),
            Err(error) => Err(error),
        }
    }
}

enum Body {
    AsPlanned(ObjectMeta),
    Changed,
    Missing,
}

fn changed() -> Fate {
    Fate::Line(
        Status::RaceDetected,
        Reason::ArtifactChangedAfterCleanupPlan,
    )
}

fn unfinished(error: &SweepError) -> Fate {
    let (status, reason) = unfinished_verdict(error);
    Fate::Noted(status, reason, error.to_string())
}

/// Judges a candidate once more on the journal's tail and at this run's date; `None` where it may go.
fn by_journal(place: &Place<'_>, pair: &Pair) -> Option<Fate> {
    let record = place.folded.state.artifact(pair.artifact.artifact_id);
    match record.map(|record| (&record.status, record.last_seq)) {
        Some((ArtifactStatus::Condemned(_), _)) => return Some(Fate::Condemned),
        // The second half looks for a body that came back.
        Some((ArtifactStatus::Deleted(_), _)) => return Some(Fate::Condemned),
        Some((ArtifactStatus::Live, seq)) if seq >= place.session.as_of_seq => {
            let (status, reason) = (
                Status::RaceDetected,
                Reason::ActiveClaimAddedAfterCleanupPlan,
            );
            return Some(Fate::Line(status, reason));
        }
        Some((ArtifactStatus::Live, _)) | None => {}
    }
    let journal = JournalView::Folded(place.folded.clone());
    // The manifest is read afterwards, whatever the order of the two times.
    let judged = judge(
        pair,
        &place.cutoff,
        Some(&journal),
        Some(ManifestState::Live),
    );
    match judged {
        Judged::Is(Status::PlannedDelete, _) => None,
        Judged::Is(status, reason) => Some(Fate::Line(status, reason)),
        Judged::Finished | Judged::NeedsJournal | Judged::NeedsManifest => Some(Fate::Line(
            Status::RetainedUnknown,
            Reason::ArtifactSnapshotFailed,
        )),
    }
}

/// Compares what a store says of an object now with what the plan's listing said. Listings cut times to
/// seconds where heads may not.
fn is_as_planned(meta: &ObjectMeta, planned: &Seen) -> bool {
    meta.size_bytes == planned.size_bytes
        && meta.etag == ETag(planned.etag.clone())
        && meta.last_modified.as_second() == planned.last_modified.as_second()
}
