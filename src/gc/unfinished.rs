//! Finishing what any earlier run left condemned, whether a plan covers it or not.
//!
//! What is condemned and not swept still has its body: a tombstone without one is finished work. So only
//! sessions that have both a journal and a body are opened, which are those that are in use.

use futures_util::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::gc::classify::JournalView;
use crate::gc::collector::Collector;
use crate::gc::plan::Scope;
use crate::gc::report::{ReportLine, SessionFailure};
use crate::gc::session_keys::{SessionKeys, next_in_both};
use crate::gc::status::{Counts, Reason, Status};
use crate::gc::store_clock::ClockError;
use crate::gc::sweep::SweepError;
use crate::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::entry::{CondemnReason, Condemned, DeleteOutcome};
use crate::lease::state::ArtifactStatus;
use crate::limits::{GC_PARALLEL_SESSIONS, GC_PLAN_CANDIDATES, GC_SESSION_BATCH};
use crate::store::StoreError;

/// When a condemnation may be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// The store's date.
    pub now: Timestamp,
    /// Time between a collector's condemnation and the first delete.
    pub settle_seconds: u64,
}

impl Settling {
    /// Returns whether a condemnation is old enough: a broken chain is found and a person can stop the
    /// collector before anything is gone. An erasure was asked for and waits for nothing.
    pub fn is_over(self, condemned: &Condemned) -> bool {
        let settle = self.settle_seconds.try_into().unwrap_or(i64::MAX);
        let age = self.now.duration_since(condemned.server_date);
        match condemned.why {
            CondemnReason::Erased => true,
            CondemnReason::Expired => age >= SignedDuration::from_secs(settle),
        }
    }
}

/// A sweep was not begun, or its listings could not be read to their end.
#[derive(Debug, thiserror::Error)]
pub enum UnfinishedError {
    /// The store's date cannot be told or believed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A listing failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UnfinishedError {
    /// Returns whether a safety check refused, rather than something failing.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::Clock(ClockError::Differs { .. }))
    }
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finished {
    /// By status and reason.
    pub counts: Counts,
    /// Whether everything that was met is finished.
    pub is_complete: bool,
    /// Sessions whose journal was opened.
    pub sessions: u64,
    /// What became of each artifact, the first hundred thousand of them.
    pub artifacts: Vec<ReportLine>,
    /// Sessions that could not be worked on, with what was said.
    pub failures: Vec<SessionFailure>,
}

impl Default for Finished {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            is_complete: true,
            sessions: 0,
            artifacts: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl Finished {
    fn add(&mut self, line: ReportLine) {
        self.is_complete &= !matches!(line.status, Status::PendingDelete | Status::Denied);
        self.counts.add(line.status, line.reason, line.bytes);
        if self.artifacts.len() < GC_PLAN_CANDIDATES {
            self.artifacts.push(line);
        }
    }

    fn fail(&mut self, tenant: &Tenant, session_key: SessionKey, detail: &dyn std::fmt::Display) {
        self.is_complete = false;
        tracing::warn!(%session_key, "a session is left for the next run: {detail}");
        self.failures.push(SessionFailure {
            tenant: tenant.clone(),
            session_key: session_key.to_string(),
            detail: detail.to_string(),
        });
    }
}

/// What one session came to.
type OfSession = (SessionKey, Result<Vec<ReportLine>, String>);

impl Collector {
    /// Finishes whatever the journals of `scope` say is condemned.
    ///
    /// # Errors
    /// See [`UnfinishedError`]. What failed in one session stands in what is returned instead.
    pub async fn finish(
        &self,
        scope: &Scope,
        settle_seconds: u64,
    ) -> Result<Finished, UnfinishedError> {
        let now = self.store_date().await?;
        let settling = Settling {
            now,
            settle_seconds,
        };
        let mut finished = Finished::default();
        match scope {
            Scope::All => {
                for tenant in self.tenants().await? {
                    self.finish_tenant(&tenant, settling, &mut finished).await?;
                }
            }
            Scope::Tenant(tenant) => self.finish_tenant(tenant, settling, &mut finished).await?,
            Scope::Session { tenant, session } => {
                let sessions = vec![SessionKey::derive(tenant, session)];
                self.finish_sessions(tenant, sessions, settling, &mut finished)
                    .await;
            }
        }
        Ok(finished)
    }

    async fn finish_tenant(
        &self,
        tenant: &Tenant,
        settling: Settling,
        finished: &mut Finished,
    ) -> Result<(), UnfinishedError> {
        let mut journals = SessionKeys::below(&*self.store, self.keys.all_journals(tenant));
        let mut bodies = SessionKeys::below(&*self.store, self.keys.all_bodies(tenant));
        loop {
            let mut batch = Vec::new();
            while batch.len() < GC_SESSION_BATCH {
                match next_in_both(&mut journals, &mut bodies).await? {
                    Some(session_key) => batch.push(session_key),
                    None => break,
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            self.finish_sessions(tenant, batch, settling, finished)
                .await;
        }
    }

    async fn finish_sessions(
        &self,
        tenant: &Tenant,
        sessions: Vec<SessionKey>,
        settling: Settling,
        finished: &mut Finished,
    ) {
        finished.sessions += sessions.len() as u64;
        let works = sessions.into_iter().map(|session_key| async move {
            let worked = self.finish_session(tenant, session_key, settling).await;
            (session_key, worked)
        });
        let works = stream::iter(works).buffer_unordered(GC_PARALLEL_SESSIONS);
        let worked: Vec<OfSession> = works.collect().await;
        for (session_key, lines) in worked {
            match lines {
                Ok(lines) => lines.into_iter().for_each(|line| finished.add(line)),
                Err(detail) => finished.fail(tenant, session_key, &detail),
            }
        }
    }

    /// A look at the newest checkpoint tells whether there is anything to do; what destroys folds anew
    /// from two roots.
    async fn finish_session(
        &self,
        tenant: &Tenant,
        session_key: SessionKey,
        settling: Settling,
    ) -> Result<Vec<ReportLine>, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let looked = self.open_session(tenant, &session_key).await;
        let looked = looked.map_err(|error| said(&error))?;
        // What cannot be folded, or is in doubt, is kept; plans report it.
        let (JournalView::Folded(folded), Some(name)) = (looked.view, looked.session) else {
            return Ok(Vec::new());
        };
        let is_condemned = |status: &ArtifactStatus| matches!(status, ArtifactStatus::Condemned(_));
        let mut records = folded.state.artifacts();
        if folded.is_suspect || !records.any(|(_, record)| is_condemned(&record.status)) {
            return Ok(Vec::new());
        }
        let opened = self.journals.open_double_rooted(tenant, &name).await;
        let opened = opened.map_err(|error| said(&error))?;
        if opened.is_suspect {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for (_, record) in opened.opened.chain.state().artifacts() {
            if let ArtifactStatus::Condemned(condemned) = &record.status {
                let line = self.finish_condemned(tenant, &name, condemned, settling);
                lines.push(line.await);
            }
        }
        Ok(lines)
    }

    /// Finishes one artifact that its journal says is condemned, and says what became of it.
    pub(in crate::gc) async fn finish_condemned(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        condemned: &Condemned,
        settling: Settling,
    ) -> ReportLine {
        let artifact = ArtifactRef {
            session_key: SessionKey::derive(tenant, session),
            artifact_id: condemned.artifact_id,
        };
        let bytes = condemned.size_bytes.unwrap_or(0);
        let line = |verdict| ReportLine::new(tenant, artifact, verdict, bytes);
        if !settling.is_over(condemned) {
            return line((Status::PendingDelete, Reason::SettleNotReached));
        }
        let swept = self
            .sweep_condemned(tenant, session, &artifact, condemned)
            .await;
        match swept {
            Ok(swept) => {
                let status = match swept.outcome {
                    DeleteOutcome::Deleted => Status::Deleted,
                    DeleteOutcome::AlreadyMissing => Status::AlreadyMissing,
                };
                ReportLine {
                    note: swept.difference,
                    ..line((status, Reason::CondemnedEarlier))
                }
            }
            Err(error) => ReportLine {
                note: Some(error.to_string()),
                ..line(unfinished_verdict(&error))
            },
        }
    }
}

/// Returns what to say of an artifact whose sweep did not come to its end.
pub(in crate::gc) fn unfinished_verdict(error: &SweepError) -> (Status, Reason) {
    if error.is_denied() {
        (Status::Denied, Reason::ArtifactDeleteDenied)
    } else {
        (Status::PendingDelete, Reason::CondemnedEarlier)
    }
}
