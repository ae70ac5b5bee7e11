use super::*;
use crate::lease::entry::{Entry, Prepared};
use crate::lease::sample::{aborted, committed, hour, intent, txn};
use crate::lease::state::State;

/// A lease that was prepared at hour 0 and went through these entries.
fn lease(intent: Prepared, entries: &[Entry]) -> Lease {
    let name = intent.transaction_id.clone();
    let mut state = State::default();
    let prepared = Entry::Prepared(Box::new(intent));
    state.apply(0, Some(hour(0)), &prepared).unwrap();
    for entry in entries {
        state.apply(1, Some(hour(0)), entry).unwrap();
    }
    state.lease(&name).unwrap().clone()
}

fn commit_first() -> Prepared {
    Prepared {
        mode: OwnerMode::CommitFirst,
        ..intent("t", 1)
    }
}

fn released(why: ReleaseReason) -> [Entry; 2] {
    let transaction_id = txn("t");
    [
        committed("t"),
        Entry::Released {
            transaction_id,
            why,
        },
    ]
}

#[test]
fn an_owner_is_asked_where_it_alone_can_tell() {
    let fenced = || intent("t", 1);
    let tell = |status, why| Plan::Tell(Finding::new(status, why));
    let operator = AbortReason::Operator;
    for (lease, is_reachable, expected) in [
        (lease(fenced(), &[]), true, Plan::Ask),
        (
            lease(fenced(), &[]),
            false,
            tell(Status::PendingUnknown, Why::OwnerNotConfigured),
        ),
        (lease(fenced(), &[committed("t")]), true, Plan::Ask),
        (
            lease(fenced(), &[committed("t")]),
            false,
            tell(Status::AlreadyCommitted, Why::OwnerConfirmedReference),
        ),
        (
            lease(fenced(), &[aborted("t", operator)]),
            true,
            Plan::Watch(Status::AlreadyAborted),
        ),
        (
            lease(fenced(), &[aborted("t", operator)]),
            false,
            tell(Status::AlreadyAborted, Why::LeaseEnded),
        ),
        (
            lease(fenced(), &[aborted("t", AbortReason::Sealed)]),
            true,
            tell(Status::AlreadyAborted, Why::OwnerSealedAbsence),
        ),
        (
            lease(fenced(), &released(ReleaseReason::Operator)),
            true,
            Plan::Watch(Status::AlreadyReleased),
        ),
        (
            lease(fenced(), &released(ReleaseReason::Removed)),
            true,
            tell(Status::AlreadyReleased, Why::OwnerRemovedReference),
        ),
    ] {
        assert_eq!(plan(&lease, is_reachable, hour(9)), expected, "{lease:?}");
    }
}

#[test]
fn an_owner_that_commits_first_has_an_hour() {
    let lease = lease(commit_first(), &[]);
    let awaited = Plan::Tell(Finding::new(Status::PendingUnknown, Why::CommitAwaited));
    assert_eq!(plan(&lease, true, hour(0)), awaited);
    assert_eq!(plan(&lease, true, hour(-5)), awaited);
    assert_eq!(plan(&lease, true, hour(1)), Plan::TimeOut);
    // Where nobody wrote down when, nobody says that it is late.
    let undated = Lease {
        prepared_as_of: None,
        ..lease
    };
    assert_eq!(plan(&undated, true, hour(99)), awaited);
}

#[test]
fn a_hold_has_nobody_to_ask() {
    let hold = crate::lease::sample::hold_intent("hold:n:x", 1);
    let skipped = Plan::Tell(Finding::new(Status::Skipped, Why::HoldHasNoOwner));
    assert_eq!(plan(&lease(hold, &[]), true, hour(9)), skipped);
}
