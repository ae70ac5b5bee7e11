//! What an operation asks of a journal, and what it means on a given state: an entry to append, nothing
//! to do, or a refusal. Pure: the same state and operation give the same verdict everywhere.

use jiff::Timestamp;

use crate::ids::ArtifactId;
use crate::lease::entry::{AbortReason, Condemned, DeleteOutcome, Entry, Prepared, ReleaseReason};
use crate::lease::fold::{Ineffective, has_expired};
use crate::lease::names::{HoldName, OwnerGeneration, Reason, TransactionId};
use crate::lease::state::{ArtifactStatus, Lease, Phase, State};

/// What is asked of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Claim a lease.
    Prepare(Box<Prepared>),
    /// Hold an artifact without end, under this fresh transaction, unless a hold of that name
    /// ([`HoldName::of`]) is there already.
    Hold(Box<Prepared>),
    /// Release every hold of a name on an artifact.
    Lift {
        /// The artifact.
        artifact_id: ArtifactId,
        /// The name; `None` stands for holds whose transaction id has none.
        name: Option<HoldName>,
        /// Whether by its holder or by an operator.
        why: ReleaseReason,
    },
    /// The reference is held.
    Commit {
        /// The lease.
        transaction_id: TransactionId,
        /// The owner's name of the state in which it holds the reference.
        owner_generation: Option<OwnerGeneration>,
    },
    /// The reference will never come.
    Abort {
        /// The lease.
        transaction_id: TransactionId,
        /// How that is known.
        why: AbortReason,
    },
    /// The reference is gone.
    Release {
        /// The lease.
        transaction_id: TransactionId,
        /// How that is known.
        why: ReleaseReason,
    },
    /// Move a lease's end into the future.
    Extend {
        /// The lease.
        transaction_id: TransactionId,
        /// The new end; `None` is later than every time.
        retain_until: Option<Timestamp>,
    },
    /// An artifact was used.
    Touch {
        /// The artifact.
        artifact_id: ArtifactId,
    },
    /// Decide that an artifact will be deleted.
    Condemn(Box<Condemned>),
    /// The same, unless any entry about it stands in record `as_of_seq` or a later one: for whoever
    /// decided on the records before.
    CondemnUnreferred {
        /// The decision.
        condemned: Box<Condemned>,
        /// Records that were folded when it was taken.
        as_of_seq: u64,
    },
    /// A condemned artifact's bytes are gone.
    Delete {
        /// The artifact.
        artifact_id: ArtifactId,
        /// What the collector met.
        outcome: DeleteOutcome,
    },
    /// End `suspect` for the records up to `seq`.
    Clear {
        /// The last record that was looked at.
        seq: u64,
        /// The operator's words.
        reason: Option<Reason>,
    },
    /// Make sure that slot `seq` is decided: occupy it if it is the first free one.
    Occupy {
        /// The slot.
        seq: u64,
    },
    /// Nothing: a fresh look at the state.
    Read,
}

impl Operation {
    /// Returns whether bytes go because of it: refused where a journal's word is in doubt.
    pub const fn is_destructive(&self) -> bool {
        matches!(self, Self::Condemn(_) | Self::CondemnUnreferred { .. })
    }
}

/// What an operation means on a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// These entries, in one record.
    Append(Vec<Entry>),
    /// It is so already.
    Settled,
    /// It cannot be.
    Refused(Refusal),
}

/// Why an operation is refused. Nothing is written then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The transaction is known with another intent.
    #[error("the transaction was prepared with another intent")]
    TransactionConflict,
    /// The lease has ended.
    #[error("the lease is {}", .0.as_str())]
    TransactionEnded(Phase),
    /// No such lease.
    #[error("no lease of that transaction")]
    TransactionUnknown,
    /// The lease is in a phase that this operation does not lead out of.
    #[error("the lease is {}, which this operation does not end", .0.as_str())]
    IllegalTransition(Phase),
    /// Only an owner that publishes after its commit may time out.
    #[error("the owner publishes before it commits: its lease does not time out")]
    NotCommitFirst,
    /// The new end is not later than the old one.
    #[error("the lease ends {} already", .0.map_or("never".to_owned(), |end| format!("at {end}")))]
    EndNotLater(Option<Timestamp>),
    /// The lease has not expired by the date given.
    #[error("the lease has not expired")]
    NotExpired,
    /// The artifact is condemned.
    #[error("the artifact is condemned")]
    ArtifactCondemned(Box<Condemned>),
    /// The artifact is deleted.
    #[error("the artifact is deleted")]
    ArtifactDeleted,
    /// Leases protect the artifact.
    #[error("{leases} leases protect the artifact")]
    Leased {
        /// How many.
        leases: usize,
    },
    /// Somebody referred to the artifact after the decision to delete it was taken.
    #[error("record {seq} holds an entry about the artifact that the plan has not seen")]
    ReferredSince {
        /// The record.
        seq: u64,
    },
    /// The artifact was never condemned.
    #[error("the artifact is not condemned")]
    NotCondemned,
    /// Nothing is destroyed on the word of a journal with ineffective entries.
    #[error("the journal holds entries without effect: an operator has to look at it")]
    Suspect,
    /// There is no record of that number yet.
    #[error("the journal has {next_seq} records")]
    NoSuchRecord {
        /// The first free slot.
        next_seq: u64,
    },
    /// The entries do not fit into a record.
    #[error("the entry is too large")]
    TooLarge,
    /// The entries would have no effect: a defect of the evaluation, found before anything is written.
    #[error("defect: {0}")]
    Defect(Ineffective),
}

/// Evaluates an operation on the state before slot `next_seq`.
pub fn evaluate(state: &State, next_seq: u64, operation: &Operation) -> Verdict {
    match decide(state, next_seq, operation) {
        Ok(entries) if entries.is_empty() => Verdict::Settled,
        Ok(entries) => Verdict::Append(entries),
        Err(refusal) => Verdict::Refused(refusal),
    }
}

fn decide(state: &State, next_seq: u64, operation: &Operation) -> Result<Vec<Entry>, Refusal> {
    match operation {
        Operation::Prepare(intent) => prepare(state, intent),
        Operation::Hold(intent) => hold(state, intent),
        Operation::Lift {
            artifact_id,
            name,
            why,
        } => Ok(holds(state, *artifact_id, name.as_ref())
            .map(|lease| released(&lease.intent.transaction_id, *why))
            .collect()),
        Operation::Commit {
            transaction_id,
            owner_generation,
        } => {
            let lease = find(state, transaction_id)?;
            match lease.phase {
                Phase::Prepared => Ok(vec![Entry::Committed {
                    transaction_id: transaction_id.clone(),
                    owner_generation: owner_generation.clone(),
                }]),
                Phase::Committed => Ok(vec![]),
                Phase::Aborted(_) | Phase::Released(_) => Err(ended(lease)),
            }
        }
        Operation::Abort {
            transaction_id,
            why,
        } => abort(find(state, transaction_id)?, *why),
        Operation::Release {
            transaction_id,
            why,
        } => release(find(state, transaction_id)?, *why),
        Operation::Extend {
            transaction_id,
            retain_until,
        } => extend(find(state, transaction_id)?, *retain_until),
        Operation::Touch { artifact_id } => {
            demand_live(state, *artifact_id)?;
            let artifact_id = *artifact_id;
            Ok(vec![Entry::Touched { artifact_id }])
        }
        Operation::Condemn(condemned) => condemn(state, condemned),
        Operation::CondemnUnreferred {
            condemned,
            as_of_seq,
        } => {
            let record = state.artifact(condemned.artifact_id);
            let is_live = state.is_live(condemned.artifact_id);
            match record.map(|record| record.last_seq) {
                Some(seq) if is_live && seq >= *as_of_seq => Err(Refusal::ReferredSince { seq }),
                Some(_) | None => condemn(state, condemned),
            }
        }
        Operation::Delete {
            artifact_id,
            outcome,
        } => delete(state, *artifact_id, *outcome),
        Operation::Clear { seq, reason } => {
            if *seq >= next_seq {
                return Err(Refusal::NoSuchRecord { next_seq });
            }
            let has_any = state.ineffective().any(|ineffective| ineffective <= *seq);
            let cleared = Entry::Cleared {
                seq: *seq,
                reason: reason.clone(),
            };
            Ok(has_any.then_some(cleared).into_iter().collect())
        }
        Operation::Occupy { seq } if *seq > next_seq => Err(Refusal::NoSuchRecord { next_seq }),
        Operation::Occupy { seq } if *seq == next_seq => Ok(vec![Entry::Noop]),
        Operation::Occupy { .. } | Operation::Read => Ok(vec![]),
    }
}

/// Returns whether two claims of one transaction are the same claim. What the store calls the body is
/// no part of it.
fn is_same_intent(a: &Prepared, b: &Prepared) -> bool {
    let intent = |prepared: &Prepared| {
        (
            prepared.artifact_id,
            prepared.sha256,
            prepared.reference_count,
            prepared.retain_until,
            prepared.mode,
        )
    };
    intent(a) == intent(b) && a.owner == b.owner && a.reason == b.reason
}

fn prepare(state: &State, intent: &Prepared) -> Result<Vec<Entry>, Refusal> {
    if let Some(lease) = state.lease(&intent.transaction_id) {
        return if !is_same_intent(&lease.intent, intent) {
            Err(Refusal::TransactionConflict)
        } else if lease.phase.protects() {
            Ok(vec![])
        } else {
            Err(ended(lease))
        };
    }
    demand_live(state, intent.artifact_id)?;
    Ok(vec![Entry::Prepared(Box::new(intent.clone()))])
}

/// Returns the holds of a name on an artifact.
pub(in crate::lease) fn holds<'a>(
    state: &'a State,
    artifact_id: ArtifactId,
    name: Option<&'a HoldName>,
) -> impl Iterator<Item = &'a Lease> {
    state.protectors(artifact_id).filter(move |lease| {
        lease.intent.owner.is_hold()
            && lease.phase == Phase::Committed
            && HoldName::of(&lease.intent.transaction_id).as_ref() == name
    })
}

fn hold(state: &State, intent: &Prepared) -> Result<Vec<Entry>, Refusal> {
    let name = HoldName::of(&intent.transaction_id);
    if holds(state, intent.artifact_id, name.as_ref())
        .next()
        .is_some()
    {
        return Ok(vec![]);
    }
    if state.lease(&intent.transaction_id).is_some() {
        return Err(Refusal::TransactionConflict);
    }
    demand_live(state, intent.artifact_id)?;
    Ok(vec![
        Entry::Prepared(Box::new(intent.clone())),
        Entry::Committed {
            transaction_id: intent.transaction_id.clone(),
            owner_generation: None,
        },
    ])
}

fn abort(lease: &Lease, why: AbortReason) -> Result<Vec<Entry>, Refusal> {
    match lease.phase {
        Phase::Prepared if why == AbortReason::Timeout && !lease.is_commit_first() => {
            Err(Refusal::NotCommitFirst)
        }
        Phase::Prepared => Ok(vec![Entry::Aborted {
            transaction_id: lease.intent.transaction_id.clone(),
            why,
        }]),
        Phase::Committed => Err(Refusal::IllegalTransition(lease.phase)),
        Phase::Aborted(_) => Ok(vec![]),
        Phase::Released(_) => Err(ended(lease)),
    }
}

fn release(lease: &Lease, why: ReleaseReason) -> Result<Vec<Entry>, Refusal> {
    match lease.phase {
        Phase::Prepared => Err(Refusal::IllegalTransition(lease.phase)),
        Phase::Committed => match why {
            ReleaseReason::Expired { server_date }
                if !has_expired(lease.retain_until, server_date) =>
            {
                Err(Refusal::NotExpired)
            }
            ReleaseReason::Expired { .. } | ReleaseReason::Removed | ReleaseReason::Operator => {
                Ok(vec![released(&lease.intent.transaction_id, why)])
            }
        },
        Phase::Aborted(_) => Err(ended(lease)),
        Phase::Released(_) => Ok(vec![]),
    }
}

fn released(transaction_id: &TransactionId, why: ReleaseReason) -> Entry {
    Entry::Released {
        transaction_id: transaction_id.clone(),
        why,
    }
}

fn extend(lease: &Lease, retain_until: Option<Timestamp>) -> Result<Vec<Entry>, Refusal> {
    match lease.phase {
        Phase::Prepared => Err(Refusal::IllegalTransition(lease.phase)),
        Phase::Committed if lease.is_later(retain_until) => Ok(vec![Entry::Extended {
            transaction_id: lease.intent.transaction_id.clone(),
            retain_until,
        }]),
        Phase::Committed if lease.retain_until == retain_until => Ok(vec![]),
        Phase::Committed => Err(Refusal::EndNotLater(lease.retain_until)),
        Phase::Aborted(_) | Phase::Released(_) => Err(ended(lease)),
    }
}

fn condemn(state: &State, condemned: &Condemned) -> Result<Vec<Entry>, Refusal> {
    let artifact_id = condemned.artifact_id;
    if !state.is_live(artifact_id) {
        return Ok(vec![]);
    }
    if state.is_suspect() {
        return Err(Refusal::Suspect);
    }
    let leases = state.protectors(artifact_id).count();
    if leases > 0 {
        return Err(Refusal::Leased { leases });
    }
    Ok(vec![Entry::Condemned(Box::new(condemned.clone()))])
}

fn delete(
    state: &State,
    artifact_id: ArtifactId,
    outcome: DeleteOutcome,
) -> Result<Vec<Entry>, Refusal> {
    match state.artifact(artifact_id).map(|record| &record.status) {
        None | Some(ArtifactStatus::Live) => Err(Refusal::NotCondemned),
        Some(ArtifactStatus::Condemned(_)) => Ok(vec![Entry::Deleted {
            artifact_id,
            outcome,
        }]),
        Some(ArtifactStatus::Deleted(_)) => Ok(vec![]),
    }
}

fn find<'a>(state: &'a State, transaction_id: &TransactionId) -> Result<&'a Lease, Refusal> {
    let lease = state.lease(transaction_id);
    lease.ok_or(Refusal::TransactionUnknown)
}

fn ended(lease: &Lease) -> Refusal {
    Refusal::TransactionEnded(lease.phase)
}

fn demand_live(state: &State, artifact_id: ArtifactId) -> Result<(), Refusal> {
    match state.artifact(artifact_id).map(|record| &record.status) {
        None | Some(ArtifactStatus::Live) => Ok(()),
        Some(ArtifactStatus::Condemned(condemned)) => {
            Err(Refusal::ArtifactCondemned(condemned.clone()))
        }
        Some(ArtifactStatus::Deleted(_)) => Err(Refusal::ArtifactDeleted),
    }
}

#[cfg(test)]
mod tests;
