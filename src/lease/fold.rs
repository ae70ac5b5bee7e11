//! The fold: which entries take effect, and what they change.
//!
//! | Entry | takes effect iff |
//! |---|---|
//! | `genesis` | nothing was folded before |
//! | `prepared(txn, artifact)` | the transaction is unknown, and the artifact lives |
//! | `committed(txn)` | it is Prepared |
//! | `aborted(txn, why)` | it is Prepared; `timeout` only of an owner that publishes after its commit |
//! | `extended(txn, until)` | it is Committed, and `until` is later than its end (`null` is later than every time) |
//! | `released(txn, removed or operator)` | it is Committed |
//! | `released(txn, expired, date)` | it is Committed, and its end + 15 min is not after `date` (two fields, no clock) |
//! | `condemned(artifact)` | it lives, and no lease on it is Prepared or Committed |
//! | `deleted(artifact)` | it is condemned |
//! | `touched(artifact)` | it lives |
//! | `cleared(seq)` | `seq` is below its own record's number |
//! | `noop` | always |
//!
//! A record is written only after its entries were evaluated on the exact state before it, so an entry
//! without effect is a defect somewhere: it changes nothing, and the record's number stays in the state
//! (and in every checkpoint) until an operator clears it. A lease past its end still protects. Nothing
//! leads from condemned back to live.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::ids::ArtifactId;
use crate::lease::entry::{AbortReason, Condemned, DeleteOutcome, Entry, Prepared, ReleaseReason};
use crate::lease::names::TransactionId;
use crate::lease::record::Record;
use crate::lease::state::{ArtifactRecord, ArtifactStatus, Lease, Phase, Reference, State};
use crate::limits::EXPIRY_MARGIN;

/// Why an entry has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ineffective {
    /// A second beginning.
    #[error("the journal has begun already")]
    AlreadyBegun,
    /// `prepared` of a transaction that was there before.
    #[error("the transaction is known already")]
    TransactionKnown,
    /// A lease that was never prepared.
    #[error("no such transaction")]
    TransactionUnknown,
    /// The lease is in another phase than the entry needs.
    #[error("the lease is in another phase")]
    WrongPhase,
    /// `aborted(timeout)` of an owner that publishes before its commit.
    #[error("only an owner that publishes after its commit times out")]
    NotCommitFirst,
    /// The new end is not later.
    #[error("the new end is not later than the old one")]
    NotLater,
    /// `released(expired)` before the end and its margin, or of a lease without end.
    #[error("the lease has not expired by that date")]
    NotExpired,
    /// The artifact is condemned or deleted.
    #[error("the artifact does not live")]
    NotLive,
    /// A lease protects the artifact.
    #[error("a lease protects the artifact")]
    Protected,
    /// `deleted` of what is not condemned.
    #[error("the artifact is not condemned")]
    NotCondemned,
    /// `cleared` of a record that is not earlier.
    #[error("only earlier records can be cleared")]
    NotEarlier,
}

/// Returns whether a lease that ends at `retain_until` has expired by the store's date `server_date`.
pub fn has_expired(retain_until: Option<Timestamp>, server_date: Timestamp) -> bool {
    let margin = SignedDuration::try_from(EXPIRY_MARGIN).expect("a quarter of an hour");
    // An end that the calendar cannot add a margin to never comes.
    retain_until
        .and_then(|end| end.checked_add(margin).ok())
        .is_some_and(|end| end <= server_date)
}

impl State {
    /// Folds a record.
    pub fn fold(&mut self, record: &Record) {
        self.as_of = self.as_of.max(record.as_of);
        for entry in &record.entries {
            if self.apply(record.seq, record.as_of, entry).is_err() {
                self.ineffective.insert(record.seq);
            }
        }
    }

    /// Applies one entry of record `seq`.
    ///
    /// # Errors
    /// The entry has no effect; nothing was changed.
    pub fn apply(
        &mut self,
        seq: u64,
        as_of: Option<Timestamp>,
        entry: &Entry,
    ) -> Result<(), Ineffective> {
        self.check(seq, entry)?;
        match entry {
            Entry::Genesis { features } => self.features.clone_from(features),
            Entry::Prepared(prepared) => self.prepare(prepared, Reference { seq, as_of }),
            Entry::Committed {
                transaction_id,
                owner_generation,
            } => self.change(transaction_id, Reference { seq, as_of }, |lease| {
                lease.phase = Phase::Committed;
                lease.owner_generation.clone_from(owner_generation);
            }),
            Entry::Aborted {
                transaction_id,
                why,
            } => self.change(transaction_id, Reference { seq, as_of }, |lease| {
                lease.phase = Phase::Aborted(*why);
            }),
            Entry::Extended {
                transaction_id,
                retain_until,
            } => self.change(transaction_id, Reference { seq, as_of }, |lease| {
                lease.retain_until = *retain_until;
            }),
            Entry::Released {
                transaction_id,
                why,
            } => self.change(transaction_id, Reference { seq, as_of }, |lease| {
                lease.phase = Phase::Released(*why);
            }),
            Entry::Condemned(condemned) => self.condemn(condemned, seq),
            Entry::Deleted {
                artifact_id,
                outcome,
            } => self.delete(*artifact_id, *outcome, seq),
            Entry::Touched { artifact_id } => {
                self.refer(*artifact_id, Reference { seq, as_of });
            }
            Entry::Cleared { seq: through, .. } => {
                self.ineffective.retain(|ineffective| ineffective > through);
            }
            Entry::Noop => {}
        }
        Ok(())
    }

    /// Checks whether an entry of record `seq` takes effect: the table above.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check(&self, seq: u64, entry: &Entry) -> Result<(), Ineffective> {
        match entry {
            Entry::Genesis { .. } => demand(
                seq == 0 && *self == Self::begun_at(self.as_of),
                Ineffective::AlreadyBegun,
            ),
            Entry::Prepared(prepared) => {
                let is_unknown = self.lease(&prepared.transaction_id).is_none();
                demand(is_unknown, Ineffective::TransactionKnown)?;
                demand(self.is_live(prepared.artifact_id), Ineffective::NotLive)
            }
            Entry::Committed { transaction_id, .. } => {
                self.in_phase(transaction_id, Phase::Prepared).map(drop)
            }
            Entry::Aborted {
                transaction_id,
                why,
            } => {
                let lease = self.in_phase(transaction_id, Phase::Prepared)?;
                let may_time_out = lease.is_commit_first();
                demand(
                    *why != AbortReason::Timeout || may_time_out,
                    Ineffective::NotCommitFirst,
                )
            }
            Entry::Extended {
                transaction_id,
                retain_until,
            } => {
                let lease = self.in_phase(transaction_id, Phase::Committed)?;
                demand(lease.is_later(*retain_until), Ineffective::NotLater)
            }
            Entry::Released {
                transaction_id,
                why,
            } => {
                let lease = self.in_phase(transaction_id, Phase::Committed)?;
                match why {
                    ReleaseReason::Removed | ReleaseReason::Operator => Ok(()),
                    ReleaseReason::Expired { server_date } => demand(
                        has_expired(lease.retain_until, *server_date),
                        Ineffective::NotExpired,
                    ),
                }
            }
            Entry::Condemned(condemned) => {
                demand(self.is_live(condemned.artifact_id), Ineffective::NotLive)?;
                let is_protected = self.is_protected(condemned.artifact_id);
                demand(!is_protected, Ineffective::Protected)
            }
            Entry::Deleted { artifact_id, .. } => {
                let record = self.artifact(*artifact_id);
                let is_condemned = record
                    .is_some_and(|record| matches!(record.status, ArtifactStatus::Condemned(_)));
                demand(is_condemned, Ineffective::NotCondemned)
            }
            Entry::Touched { artifact_id } => {
                demand(self.is_live(*artifact_id), Ineffective::NotLive)
            }
            Entry::Cleared { seq: through, .. } => demand(*through < seq, Ineffective::NotEarlier),
            Entry::Noop => Ok(()),
        }
    }

    /// Nothing but the date of the record that is being folded.
    fn begun_at(as_of: Option<Timestamp>) -> Self {
        Self {
            as_of,
            ..Self::default()
        }
    }

    fn in_phase(&self, name: &TransactionId, phase: Phase) -> Result<&Lease, Ineffective> {
        let lease = self.lease(name).ok_or(Ineffective::TransactionUnknown)?;
        demand(lease.phase == phase, Ineffective::WrongPhase)?;
        Ok(lease)
    }

    fn prepare(&mut self, prepared: &Prepared, at: Reference) {
        let lease = Lease {
            intent: prepared.clone(),
            phase: Phase::Prepared,
            retain_until: prepared.retain_until,
            owner_generation: None,
            prepared_seq: at.seq,
            prepared_as_of: at.as_of,
            changed_seq: at.seq,
        };
        let name = prepared.transaction_id.clone();
        self.leases.insert(name.clone(), Arc::new(lease));
        let artifact = self.refer(prepared.artifact_id, at);
        artifact.protectors.insert(name);
    }

    fn change(&mut self, name: &TransactionId, at: Reference, change: impl FnOnce(&mut Lease)) {
        let lease = self.leases.get_mut(name);
        let lease = Arc::make_mut(lease.expect("`check` has found the lease"));
        change(lease);
        lease.changed_seq = at.seq;
        let (artifact_id, protects) = (lease.intent.artifact_id, lease.phase.protects());
        let artifact = self.refer(artifact_id, at);
        if !protects {
            artifact.protectors.remove(name);
        }
    }

    fn condemn(&mut self, condemned: &Condemned, seq: u64) {
        let artifact = self.entry(condemned.artifact_id, seq);
        artifact.status = ArtifactStatus::Condemned(Box::new(condemned.clone()));
    }

    fn delete(&mut self, artifact_id: ArtifactId, outcome: DeleteOutcome, seq: u64) {
        self.entry(artifact_id, seq).status = ArtifactStatus::Deleted(outcome);
    }

    fn refer(&mut self, artifact_id: ArtifactId, at: Reference) -> &mut ArtifactRecord {
        let artifact = self.entry(artifact_id, at.seq);
        artifact.last_reference = Some(at);
        artifact
    }

    fn entry(&mut self, artifact_id: ArtifactId, seq: u64) -> &mut ArtifactRecord {
        let artifact = self.artifacts.entry(artifact_id).or_insert_with(|| {
            Arc::new(ArtifactRecord {
                status: ArtifactStatus::Live,
                last_seq: seq,
                last_reference: None,
                protectors: std::collections::BTreeSet::new(),
            })
        });
        let artifact = Arc::make_mut(artifact);
        artifact.last_seq = seq;
        artifact
    }
}

fn demand(holds: bool, otherwise: Ineffective) -> Result<(), Ineffective> {
    if holds { Ok(()) } else { Err(otherwise) }
}

#[cfg(test)]
mod tests;
