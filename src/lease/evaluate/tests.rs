use rstest::rstest;

use super::*;
use crate::lease::entry::OwnerMode;
use crate::lease::sample::{
    aborted, aid, committed, condemnation, condemned, deleted, hold_intent, hour, intent, prepared,
    prepared_until, released, txn,
};
use AbortReason::{Operator as AbortedByOperator, Rejected, Sealed, Timeout};
use ReleaseReason::Removed;

/// What a test names of a verdict.
#[derive(Debug, PartialEq, Eq)]
enum Short {
    Appends(Vec<&'static str>),
    Settled,
    Refused(&'static str),
}
use Short::{Appends, Refused, Settled};

fn one(op: &'static str) -> Short {
    Appends(vec![op])
}

fn short(verdict: Verdict) -> Short {
    match verdict {
        Verdict::Append(entries) => Appends(entries.iter().map(Entry::op).collect()),
        Verdict::Settled => Settled,
        Verdict::Refused(refusal) => Refused(match refusal {
            Refusal::TransactionConflict => "conflict",
            Refusal::TransactionEnded(_) => "ended",
            Refusal::TransactionUnknown => "unknown",
            Refusal::IllegalTransition(_) => "illegal",
            Refusal::NotCommitFirst => "not commit first",
            Refusal::EndNotLater(_) => "not later",
            Refusal::NotExpired => "not expired",
            Refusal::ArtifactCondemned(_) => "condemned",
            Refusal::ArtifactDeleted => "deleted",
            Refusal::Leased { .. } => "leased",
            Refusal::ReferredSince { .. } => "referred since",
            Refusal::NotCondemned => "not condemned",
            Refusal::Suspect => "suspect",
            Refusal::NoSuchRecord { .. } => "no such record",
            Refusal::TooLarge => "too large",
            Refusal::Defect(_) => "defect",
        }),
    }
}

fn prepare(change: impl FnOnce(&mut Prepared)) -> Operation {
    let mut intent = intent("t", 1);
    change(&mut intent);
    Operation::Prepare(Box::new(intent))
}

fn hold() -> Operation {
    Operation::Hold(Box::new(hold_intent("h", 1)))
}

fn commit() -> Operation {
    Operation::Commit {
        transaction_id: txn("t"),
        owner_generation: None,
    }
}

fn abort(why: AbortReason) -> Operation {
    Operation::Abort {
        transaction_id: txn("t"),
        why,
    }
}

fn release(why: ReleaseReason) -> Operation {
    Operation::Release {
        transaction_id: txn("t"),
        why,
    }
}

fn extend(end: Option<i64>) -> Operation {
    Operation::Extend {
        transaction_id: txn("t"),
        retain_until: end.map(hour),
    }
}

fn touch() -> Operation {
    Operation::Touch {
        artifact_id: aid(1),
    }
}

fn condemn() -> Operation {
    Operation::Condemn(Box::new(condemnation(1)))
}

fn delete() -> Operation {
    Operation::Delete {
        artifact_id: aid(1),
        outcome: DeleteOutcome::Deleted,
    }
}

fn lift() -> Operation {
    Operation::Lift {
        artifact_id: aid(1),
        name: None,
        why: Removed,
    }
}

fn clear(seq: u64) -> Operation {
    Operation::Clear { seq, reason: None }
}

fn held() -> Vec<Entry> {
    let lease = Entry::Prepared(Box::new(hold_intent("g", 1)));
    vec![lease, committed("g")]
}

fn commit_first() -> Entry {
    Entry::Prepared(Box::new(Prepared {
        mode: OwnerMode::CommitFirst,
        ..intent("t", 1)
    }))
}

/// Every phase a lease can be in, every operation on it.
#[rstest]
#[case::prepare(&[], prepare(|_| {}), one("prepared"))]
#[case::prepare_again(&[prepared("t", 1)], prepare(|_| {}), Settled)]
#[case::prepare_after_commit(&[prepared("t", 1), committed("t")], prepare(|_| {}), Settled)]
#[case::what_the_store_calls_the_body_is_no_intent(&[prepared("t", 1)], prepare(|p| p.etag = "other".into()), Settled)]
#[case::another_artifact(&[prepared("t", 1)], prepare(|p| p.artifact_id = aid(2)), Refused("conflict"))]
#[case::another_count(&[prepared("t", 1)], prepare(|p| p.reference_count = 2), Refused("conflict"))]
#[case::another_end(&[prepared("t", 1)], prepare(|p| p.retain_until = Some(hour(1))), Refused("conflict"))]
#[case::another_owner(&[prepared("t", 1)], prepare(|p| p.owner = "other".parse().unwrap()), Refused("conflict"))]
#[case::another_mode(&[commit_first()], prepare(|_| {}), Refused("conflict"))]
#[case::prepare_after_abort(&[prepared("t", 1), aborted("t", Sealed)], prepare(|_| {}), Refused("ended"))]
#[case::prepare_after_release(&[prepared("t", 1), committed("t"), released("t", Removed)], prepare(|_| {}), Refused("ended"))]
#[case::the_first_intent_counts_after_an_extension(&[prepared_until("t", 1, hour(1)), committed("t"), Entry::Extended { transaction_id: txn("t"), retain_until: Some(hour(2)) }], prepare(|p| p.retain_until = Some(hour(1))), Settled)]
#[case::prepare_a_condemned_artifact(&[condemned(1)], prepare(|_| {}), Refused("condemned"))]
#[case::prepare_a_deleted_artifact(&[condemned(1), deleted(1)], prepare(|_| {}), Refused("deleted"))]
#[case::commit(&[prepared("t", 1)], commit(), one("committed"))]
#[case::commit_again(&[prepared("t", 1), committed("t")], commit(), Settled)]
#[case::commit_nothing(&[], commit(), Refused("unknown"))]
#[case::commit_after_abort(&[prepared("t", 1), aborted("t", Rejected)], commit(), Refused("ended"))]
#[case::commit_after_release(&[prepared("t", 1), committed("t"), released("t", Removed)], commit(), Refused("ended"))]
#[case::abort(&[prepared("t", 1)], abort(Rejected), one("aborted"))]
#[case::abort_again(&[prepared("t", 1), aborted("t", Rejected)], abort(Sealed), Settled)]
#[case::abort_by_operator(&[prepared("t", 1)], abort(AbortedByOperator), one("aborted"))]
#[case::abort_after_commit(&[prepared("t", 1), committed("t")], abort(Rejected), Refused("illegal"))]
#[case::operator_aborts_after_commit(&[prepared("t", 1), committed("t")], abort(AbortedByOperator), Refused("illegal"))]
#[case::abort_after_release(&[prepared("t", 1), committed("t"), released("t", Removed)], abort(Rejected), Refused("ended"))]
#[case::abort_nothing(&[], abort(Rejected), Refused("unknown"))]
#[case::time_out_a_fenced_owner(&[prepared("t", 1)], abort(Timeout), Refused("not commit first"))]
#[case::time_out(&[commit_first()], abort(Timeout), one("aborted"))]
#[case::release(&[prepared("t", 1), committed("t")], release(Removed), one("released"))]
#[case::release_again(&[prepared("t", 1), committed("t"), released("t", Removed)], release(Removed), Settled)]
#[case::release_before_commit(&[prepared("t", 1)], release(Removed), Refused("illegal"))]
#[case::operator_releases_before_commit(&[prepared("t", 1)], release(ReleaseReason::Operator), Refused("illegal"))]
#[case::release_after_abort(&[prepared("t", 1), aborted("t", Sealed)], release(Removed), Refused("ended"))]
#[case::release_nothing(&[], release(Removed), Refused("unknown"))]
#[case::expire_too_early(&[prepared_until("t", 1, hour(1)), committed("t")], release(ReleaseReason::Expired { server_date: hour(1) }), Refused("not expired"))]
#[case::expire(&[prepared_until("t", 1, hour(1)), committed("t")], release(ReleaseReason::Expired { server_date: hour(2) }), one("released"))]
#[case::extend(&[prepared_until("t", 1, hour(1)), committed("t")], extend(Some(2)), one("extended"))]
#[case::extend_without_end(&[prepared_until("t", 1, hour(1)), committed("t")], extend(None), one("extended"))]
#[case::extend_again(&[prepared_until("t", 1, hour(1)), committed("t")], extend(Some(1)), Settled)]
#[case::extend_backwards(&[prepared_until("t", 1, hour(1)), committed("t")], extend(Some(0)), Refused("not later"))]
#[case::end_an_endless_lease(&[prepared("t", 1), committed("t")], extend(Some(9)), Refused("not later"))]
#[case::endless_again(&[prepared("t", 1), committed("t")], extend(None), Settled)]
#[case::extend_before_commit(&[prepared("t", 1)], extend(None), Refused("illegal"))]
#[case::extend_after_release(&[prepared("t", 1), committed("t"), released("t", Removed)], extend(None), Refused("ended"))]
#[case::extend_nothing(&[], extend(None), Refused("unknown"))]
#[case::a_hold_is_two_entries(&[], hold(), Appends(vec!["prepared", "committed"]))]
#[case::held_already(&held(), hold(), Settled)]
#[case::beside_another_lease(&[prepared("t", 1)], hold(), Appends(vec!["prepared", "committed"]))]
#[case::hold_a_condemned_artifact(&[condemned(1)], hold(), Refused("condemned"))]
#[case::lift(&held(), lift(), one("released"))]
#[case::lift_nothing(&[prepared("t", 1), committed("t")], lift(), Settled)]
#[case::touch(&[], touch(), one("touched"))]
#[case::touch_a_condemned_artifact(&[condemned(1)], touch(), Refused("condemned"))]
#[case::touch_a_deleted_artifact(&[condemned(1), deleted(1)], touch(), Refused("deleted"))]
#[case::condemn(&[], condemn(), one("condemned"))]
#[case::condemn_again(&[condemned(1)], condemn(), Settled)]
#[case::condemn_a_deleted_artifact(&[condemned(1), deleted(1)], condemn(), Settled)]
#[case::condemn_a_pending_one(&[prepared("t", 1)], condemn(), Refused("leased"))]
#[case::condemn_a_leased_one(&[prepared("t", 1), committed("t")], condemn(), Refused("leased"))]
#[case::condemn_a_held_one(&held(), condemn(), Refused("leased"))]
#[case::condemn_after_release(&[prepared("t", 1), committed("t"), released("t", Removed)], condemn(), one("condemned"))]
#[case::delete(&[condemned(1)], delete(), one("deleted"))]
#[case::delete_again(&[condemned(1), deleted(1)], delete(), Settled)]
#[case::delete_a_live_one(&[], delete(), Refused("not condemned"))]
#[case::nothing_to_clear(&[], clear(0), Settled)]
#[case::clear_the_future(&[], clear(9), Refused("no such record"))]
#[case::occupy_the_first_free_slot(&[], Operation::Occupy { seq: 1 }, one("noop"))]
#[case::occupy_a_decided_slot(&[], Operation::Occupy { seq: 0 }, Settled)]
#[case::occupy_beyond(&[], Operation::Occupy { seq: 2 }, Refused("no such record"))]
#[case::read(&[condemned(1)], Operation::Read, Settled)]
fn an_operation_means(
    #[case] before: &[Entry],
    #[case] operation: Operation,
    #[case] expected: Short,
) {
    let mut state = State::default();
    for (seq, entry) in (1..).zip(before) {
        state.apply(seq, None, entry).unwrap();
    }
    let next_seq = before.len() as u64 + 1;
    let verdict = evaluate(&state, next_seq, &operation);
    // What is appended takes effect, always.
    if let Verdict::Append(entries) = &verdict {
        for entry in entries {
            state.apply(next_seq, None, entry).unwrap();
        }
        assert_ne!(
            evaluate(&state, next_seq + 1, &operation),
            verdict_of(&operation, entries)
        );
    }
    assert_eq!(short(verdict), expected);
}

/// A landed operation is not appended a second time; only touching and occupying may repeat.
fn verdict_of(operation: &Operation, entries: &[Entry]) -> Verdict {
    if matches!(operation, Operation::Touch { .. }) {
        return Verdict::Settled;
    }
    Verdict::Append(entries.to_vec())
}

#[test]
fn nothing_is_condemned_in_a_suspect_journal_and_the_rest_goes_on() {
    let mut state = State::default();
    assert!(state.apply(1, None, &deleted(1)).is_err());
    state.ineffective.insert(1);
    let meaning = |operation: &Operation| short(evaluate(&state, 2, operation));
    assert_eq!(meaning(&condemn()), Refused("suspect"));
    assert_eq!(meaning(&prepare(|_| {})), one("prepared"));
    assert_eq!(meaning(&touch()), one("touched"));
    assert_eq!(meaning(&clear(0)), Settled);
    assert_eq!(meaning(&clear(1)), one("cleared"));
    assert_eq!(meaning(&clear(2)), Refused("no such record"));
}
