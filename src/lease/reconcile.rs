//! Reconciliation: finding out what became of a lease whose owner did not say so.
//!
//! The order is the protocol. The owner is looked at; what it decided is written down; what it has not
//! decided is **sealed by the owner first and aborted only then**. Aborting first, or believing an
//! unsealed "absent", loses a reference that is still in flight. Both sides decide once, so any number of
//! reconcilers may run at the same time, and a run that is cut short is repeated.
//!
//! No journal is held while an owner is asked: the state is read again where the entry is appended.

use jiff::Timestamp;
use serde::Serialize;

use crate::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::entry::{AbortReason, OwnerMode, ReleaseReason};
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::failure::LeaseError;
use crate::lease::journal::{Answer, JournalError, Receipt};
use crate::lease::leases::{LeaseAnswer, Leases, is_stuck, lease_answer};
use crate::lease::missing::{MissingPart, missing_parts};
use crate::lease::names::TransactionId;
use crate::lease::owner::{
    Finding, Publication, Question, Sealing, Status, Verdict, Why, judge, judge_ended, judge_seal,
};
use crate::lease::report::LeaseReport;
use crate::lease::state::{Lease, Phase};
use crate::limits::COMMIT_TIMEOUT;

pub mod run;
pub mod summary;

/// What a reconciliation found and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// What became of the lease, and how that is known.
    #[serde(flatten)]
    pub finding: Finding,
    /// What it protects and is not there: an alarm.
    pub missing_referenced: Vec<MissingPart>,
    /// The lease as it stands now.
    pub lease: LeaseReport,
    /// The record that proves it.
    pub receipt: Option<Receipt>,
}

impl Reconciled {
    /// Returns whether a person has to look at it.
    pub fn is_alarm(&self) -> bool {
        self.finding.status.is_alarm() || !self.missing_referenced.is_empty()
    }
}

/// What a lease calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing can be found out.
    Tell(Finding),
    /// Its commit is too late.
    TimeOut,
    /// Ask the owner what it holds.
    Ask,
    /// Ask the owner whether it still shows what an operator has ended.
    Watch(Status),
}

/// Decides what a lease calls for. `is_reachable`: there is a URL to ask its owner at.
///
/// An owner that publishes after its commit is never asked: the journal alone decides between
/// `committed` and `aborted`, so a late commit is refused and nothing dangles. The time that it has is
/// courtesy, not safety; a clock that is wrong costs a publication, never a reference.
pub fn plan(lease: &Lease, is_reachable: bool, now: Timestamp) -> Plan {
    if lease.intent.owner.is_hold() {
        return Plan::Tell(Finding::new(Status::Skipped, Why::HoldHasNoOwner));
    }
    let tell = |status, why| Plan::Tell(Finding::new(status, why));
    match (lease.phase, lease.intent.mode) {
        (Phase::Prepared, OwnerMode::CommitFirst) => {
            let is_dated = lease.prepared_as_of.is_some();
            if is_dated && is_stuck(lease, COMMIT_TIMEOUT, now) {
                Plan::TimeOut
            } else {
                tell(Status::PendingUnknown, Why::CommitAwaited)
            }
        }
        (Phase::Prepared, OwnerMode::OwnerFenced) if is_reachable => Plan::Ask,
        (Phase::Prepared, OwnerMode::OwnerFenced) => {
            tell(Status::PendingUnknown, Why::OwnerNotConfigured)
        }
        (Phase::Committed, OwnerMode::OwnerFenced) if is_reachable => Plan::Ask,
        (Phase::Committed, _) => tell(Status::AlreadyCommitted, Why::OwnerConfirmedReference),
        (Phase::Aborted(AbortReason::Operator), _) if is_reachable => {
            Plan::Watch(Status::AlreadyAborted)
        }
        (Phase::Released(ReleaseReason::Operator), _) if is_reachable => {
            Plan::Watch(Status::AlreadyReleased)
        }
        (Phase::Aborted(_) | Phase::Released(_), _) => Plan::Tell(as_it_stands(lease.phase)),
    }
}

/// What a lease's phase says by itself.
fn as_it_stands(phase: Phase) -> Finding {
    let (status, why) = match phase {
        Phase::Prepared => (Status::PendingUnknown, Why::OwnerResultUnknown),
        Phase::Committed => (Status::AlreadyCommitted, Why::OwnerConfirmedReference),
        Phase::Aborted(AbortReason::Sealed) => (Status::AlreadyAborted, Why::OwnerSealedAbsence),
        Phase::Aborted(AbortReason::Timeout) => (Status::AlreadyAborted, Why::CommitTimedOut),
        Phase::Aborted(AbortReason::Rejected | AbortReason::Operator) => {
            (Status::AlreadyAborted, Why::LeaseEnded)
        }
        Phase::Released(ReleaseReason::Removed) => {
            (Status::AlreadyReleased, Why::OwnerRemovedReference)
        }
        Phase::Released(ReleaseReason::Expired { .. } | ReleaseReason::Operator) => {
            (Status::AlreadyReleased, Why::LeaseEnded)
        }
    };
    Finding::new(status, why)
}

/// What an owner is asked about a lease.
fn question(lease: &Lease, session: &SessionId) -> Question {
    let report = LeaseReport::of(lease, session);
    Question {
        transaction_id: report.transaction_id,
        source_id: report.source_id,
        sha256: lease.intent.sha256,
    }
}

impl Leases {
    /// Finds out what became of a lease, and writes it down.
    ///
    /// # Errors
    /// See [`LeaseError`]. What an owner did not answer, or answered wrongly, is a finding and no error.
    pub async fn reconcile(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: &TransactionId,
    ) -> Result<Reconciled, LeaseError> {
        self.demand_writable()?;
        let read = self.read(tenant, session).await?;
        let lease = read.state.lease(name);
        let unknown = || JournalError::Refused(Refusal::TransactionUnknown);
        let lease = lease.cloned().ok_or_else(unknown)?;
        let missing_referenced = if lease.phase.protects() {
            let artifact = ArtifactRef {
                session_key: SessionKey::derive(tenant, session),
                artifact_id: lease.intent.artifact_id,
            };
            missing_parts(&self.library, tenant, &artifact).await?
        } else {
            Vec::new()
        };
        let link = &self.options.owners.link;
        let owner = &lease.intent.owner;
        let (finding, answer) = match plan(&lease, link.knows(owner), self.library.clock().now()) {
            Plan::Tell(finding) => (finding, read),
            Plan::Watch(ended) => {
                let question = question(&lease, session);
                let reply = link.observe(owner, &question).await;
                let seen = reply.observation(&question.transaction_id);
                (judge_ended(ended, seen), read)
            }
            Plan::TimeOut => {
                let done = Finding::new(Status::Aborted, Why::CommitTimedOut);
                let operation = abort(name, AbortReason::Timeout);
                self.write(tenant, session, name, operation, done).await?
            }
            Plan::Ask => match self.ask(&lease, session).await {
                Verdict::Stay(finding) => (finding, read),
                Verdict::Seal(_) => {
                    let why = Why::OwnerAbsenceNotSealed;
                    (Finding::new(Status::PendingUnknown, why), read)
                }
                Verdict::Commit(generation) => {
                    let done = Finding::new(Status::Committed, Why::OwnerConfirmedReference);
                    let operation = Operation::Commit {
                        transaction_id: name.clone(),
                        owner_generation: Some(generation),
                    };
                    self.write(tenant, session, name, operation, done).await?
                }
                Verdict::Abort(why) => {
                    let done = Finding::new(Status::Aborted, why);
                    let operation = abort(name, AbortReason::Sealed);
                    self.write(tenant, session, name, operation, done).await?
                }
                Verdict::Release => {
                    let done = Finding::new(Status::Released, Why::OwnerRemovedReference);
                    let operation = Operation::Release {
                        transaction_id: name.clone(),
                        why: ReleaseReason::Removed,
                    };
                    self.write(tenant, session, name, operation, done).await?
                }
            },
        };
        let LeaseAnswer { lease, receipt, .. } = lease_answer(answer, session, name)?;
        Ok(Reconciled {
            finding,
            missing_referenced,
            lease,
            receipt,
        })
    }

    /// Ends a prepared lease on an operator's word. Where its owner publishes before it commits and can be
    /// asked, it seals its absence first; `force` goes without, and a publication that is in flight is then
    /// a reference that nothing protects.
    ///
    /// # Errors
    /// See [`LeaseError`]; [`LeaseError::OwnerUnsealed`] leaves the lease as it is.
    pub async fn abort_by_operator(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: &TransactionId,
        force: bool,
    ) -> Result<LeaseAnswer, LeaseError> {
        self.demand_writable()?;
        if !force {
            let read = self.read(tenant, session).await?;
            let lease = read.state.lease(name);
            let is_fenced = |lease: &&Lease| {
                let is_reachable = self.options.owners.link.knows(&lease.intent.owner);
                lease.phase == Phase::Prepared && !lease.is_commit_first() && is_reachable
            };
            if let Some(lease) = lease.filter(is_fenced) {
                self.demand_sealed(lease, session).await?;
            }
        }
        self.abort(tenant, session, name, AbortReason::Operator)
            .await
    }

    async fn demand_sealed(&self, lease: &Lease, session: &SessionId) -> Result<(), LeaseError> {
        let finding = match self.ask(lease, session).await {
            Verdict::Abort(_) => return Ok(()),
            Verdict::Stay(finding) => finding,
            Verdict::Commit(_) | Verdict::Release => {
                Finding::new(Status::PendingConflict, Why::OwnerConfirmedReference)
            }
            Verdict::Seal(_) => Finding::new(Status::PendingUnknown, Why::OwnerAbsenceNotSealed),
        };
        Err(LeaseError::OwnerUnsealed(Box::new(finding)))
    }

    /// Asks a lease's owner until it has decided or does not decide: a look, where it shows nothing a seal,
    /// and where that did not tell, one more look.
    async fn ask(&self, lease: &Lease, session: &SessionId) -> Verdict {
        let (link, owner) = (&self.options.owners.link, &lease.intent.owner);
        let question = question(lease, session);
        let name = &question.transaction_id;
        let claim = Publication {
            source_id: question.source_id.clone(),
            sha256: question.sha256,
        };
        let is_committed = lease.phase == Phase::Committed;
        let first = link.observe(owner, &question).await.observation(name);
        let generation = match judge(&claim, is_committed, first) {
            Verdict::Seal(generation) => generation,
            decided @ (Verdict::Commit(_)
            | Verdict::Abort(_)
            | Verdict::Release
            | Verdict::Stay(_)) => return decided,
        };
        let sealed = link.seal(owner, &question, &generation).await.sealing(name);
        let conflict = |why| Finding::new(Status::PendingConflict, why);
        let not_advanced = || {
            let finding = conflict(Why::OwnerAbsenceNotSealed);
            Verdict::Stay(finding.because("sealing must advance the generation"))
        };
        let stays = match judge_seal(&generation, sealed) {
            Sealing::Sealed => return Verdict::Abort(Why::OwnerSealedAbsence),
            Sealing::NotAdvanced => return not_advanced(),
            Sealing::OtherTransaction => {
                return Verdict::Stay(conflict(Why::OwnerTransactionMismatch));
            }
            Sealing::Moved => Finding::new(Status::PendingStale, Why::OwnerGenerationChanged),
            Sealing::Unclear(detail) => {
                Finding::new(Status::PendingUnknown, Why::OwnerAbsenceNotSealed).because(detail)
            }
        };
        let second = link.observe(owner, &question).await.observation(name);
        let is_same = second
            .as_ref()
            .is_ok_and(|second| second.generation == generation);
        match judge(&claim, is_committed, second) {
            Verdict::Abort(_) if is_same => not_advanced(),
            Verdict::Seal(_) => Verdict::Stay(stays),
            // The seal was answered; the look was not. What the seal said is what is known.
            Verdict::Stay(finding) if finding.status == Status::PendingUnknown => {
                Verdict::Stay(stays)
            }
            decided @ (Verdict::Commit(_)
            | Verdict::Abort(_)
            | Verdict::Release
            | Verdict::Stay(_)) => decided,
        }
    }

    pub(in crate::lease) async fn read(
        &self,
        tenant: &Tenant,
        session: &SessionId,
    ) -> Result<Answer, JournalError> {
        let read = Operation::Read;
        self.journals.submit(tenant, session, read).await
    }

    /// Writes down what was found out, unless somebody did so, or something else, meanwhile.
    async fn write(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: &TransactionId,
        operation: Operation,
        done: Finding,
    ) -> Result<(Finding, Answer), LeaseError> {
        let answer = match self.journals.submit(tenant, session, operation).await {
            Ok(answer) if answer.is_new => return Ok((done, answer)),
            Ok(answer) => answer,
            Err(JournalError::Refused(
                Refusal::TransactionEnded(_) | Refusal::IllegalTransition(_),
            )) => self.read(tenant, session).await?,
            Err(error) => return Err(error.into()),
        };
        let lease = answer.state.lease(name);
        let phase = lease.map_or(Phase::Prepared, |lease| lease.phase);
        Ok((as_it_stands(phase), answer))
    }
}

fn abort(name: &TransactionId, why: AbortReason) -> Operation {
    Operation::Abort {
        transaction_id: name.clone(),
        why,
    }
}

#[cfg(test)]
mod tests;
