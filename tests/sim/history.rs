//! What callers asked of the journals, when, and what they were told; and whether one order of all that
//! explains it: the order of the journal's records.
//!
//! An operation that appended takes effect at its record. One that appended nothing was answered from a
//! prefix: after the last record that it names, before the next. Real time must agree with that order, and
//! each answer must be what the real evaluation says at its place.

use spillbox::ids::{SessionId, SessionKey};
use spillbox::lease::evaluate::{Operation, Refusal, Verdict, evaluate};
use spillbox::lease::journal::Receipt;
use spillbox::lease::names::TransactionId;
use spillbox::lease::report::LeaseReport;

use crate::oracle::Oracle;

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: SessionKey,
    pub(crate) name: SessionId,
    pub(crate) operation: Option<Operation>,
    /// When it began and when it was answered, in the order of all such events.
    pub(crate) span: (u64, u64),
    /// Records that stood at either time.
    pub(crate) records: (u64, u64),
    pub(crate) answer: Told,
}

/// What its caller was told.
#[derive(Debug)]
pub(crate) enum Told {
    /// It stands.
    Stands {
        is_new: bool,
        receipt: Option<Receipt>,
        lease: Option<Box<LeaseReport>>,
    },
    /// It cannot be.
    Refused(Refusal),
    /// Its outcome is open.
    Unknown(Receipt),
    /// Nothing was written, or nobody answered.
    Failed,
}

/// Where in the order of a journal's records an answered call stands: records at even numbers, what was
/// answered between two of them at odd ones.
fn place(call: &Call) -> Option<i128> {
    let Told::Stands {
        is_new, receipt, ..
    } = &call.answer
    else {
        return None;
    };
    let last = receipt
        .as_ref()
        .map_or(-1, |receipt| i128::from(receipt.seq));
    Some(if *is_new { 2 * last } else { 2 * last + 1 })
}

/// Everything that no order explains.
pub(crate) fn contradictions(calls: &[Call], oracle: &Oracle) -> Vec<String> {
    let mut found = Vec::new();
    for session in oracle.sessions() {
        let calls: Vec<_> = calls
            .iter()
            .filter(|call| call.session == session)
            .collect();
        found.extend(against_real_time(&calls, oracle.reads_records()));
        for call in calls {
            found.extend(against_the_fold(call, oracle));
        }
    }
    found
}

fn against_real_time(calls: &[&Call], reads_records: bool) -> Vec<String> {
    let mut found = Vec::new();
    for later in calls {
        for earlier in calls {
            let (Some(first), Some(second)) = (place(earlier), place(later)) else {
                continue;
            };
            if earlier.span.1 >= later.span.0 {
                continue;
            }
            // A store that shows older records is asked for certainty by an append, not by a look.
            let is_append = second % 2 == 0;
            let is_broken = if is_append {
                second <= first
            } else {
                second < first && reads_records
            };
            if is_broken {
                found.push(format!(
                    "linearizability: a call at {second} began after one at {first} was answered: {later:?} after {earlier:?}"
                ));
            }
        }
    }
    found
}

fn against_the_fold(call: &Call, oracle: &Oracle) -> Option<String> {
    match &call.answer {
        Told::Stands {
            is_new,
            receipt,
            lease,
        } => {
            let told = lease.as_deref()?;
            let known = receipt.as_ref().map_or(0, |receipt| receipt.seq + 1);
            // What was appended is answered with everything that is known to have landed since.
            let until = if *is_new {
                call.records.1.max(known)
            } else {
                known
            };
            let explains = |records| {
                let state = oracle.state_of(&call.session, records)?;
                let lease = state.lease(&told.transaction_id)?;
                (LeaseReport::of(lease, &call.name) == *told).then_some(())
            };
            let is_explained = (known..=until).any(|records| explains(records).is_some());
            (!is_explained).then(|| format!("linearizability: no fold gives {told:?} to {call:?}"))
        }
        Told::Refused(refusal) => {
            let operation = call.operation.as_ref()?;
            if !oracle.reads_records() {
                return None;
            }
            let is_explained = (call.records.0..=call.records.1).any(|records| {
                let state = oracle.state_of(&call.session, records);
                state.is_some_and(|state| {
                    evaluate(&state, records, operation) == Verdict::Refused(refusal.clone())
                })
            });
            (!is_explained).then(|| format!("linearizability: no fold refuses so: {call:?}"))
        }
        Told::Unknown(_) | Told::Failed => None,
    }
}

/// The transaction that an operation names.
pub(crate) fn transaction_of(operation: &Operation) -> Option<&TransactionId> {
    match operation {
        Operation::Prepare(intent) | Operation::Hold(intent) => Some(&intent.transaction_id),
        Operation::Commit { transaction_id, .. }
        | Operation::Abort { transaction_id, .. }
        | Operation::Release { transaction_id, .. }
        | Operation::Extend { transaction_id, .. } => Some(transaction_id),
        Operation::Lift { .. }
        | Operation::Touch { .. }
        | Operation::Condemn(_)
        | Operation::CondemnUnreferred { .. }
        | Operation::Delete { .. }
        | Operation::Clear { .. }
        | Operation::Occupy { .. }
        | Operation::Read => None,
    }
}
