use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::lease::sample::{
    aborted, aid, cleared, committed, condemned, deleted, extended, hour, prepared, prepared_until,
    released, time, touched, txn,
};
use AbortReason::{Operator as ByOperator, Rejected, Sealed, Timeout};
use Ineffective::*;
use ReleaseReason::{Operator as OperatorRelease, Removed};

mod reference;

fn expired(at: Timestamp) -> ReleaseReason {
    ReleaseReason::Expired { server_date: at }
}

/// A commit-first lease of transaction `t` on artifact 1.
fn commit_first() -> Entry {
    let Entry::Prepared(prepared) = prepared("t", 1) else {
        unreachable!("`prepared` prepares")
    };
    Entry::Prepared(Box::new(Prepared {
        mode: crate::lease::entry::OwnerMode::CommitFirst,
        ..*prepared
    }))
}

/// Folds entries that all take effect, one record each, from record 1 on.
fn state_after(entries: &[Entry]) -> State {
    let mut state = State::default();
    for (seq, entry) in (1..).zip(entries) {
        state.apply(seq, None, entry).unwrap();
    }
    state
}

/// The whole table: what stands before, the entry, and why it has no effect (or none: it has).
#[rstest]
#[case::an_unknown_transaction_can_be_prepared(&[], prepared("t", 1), None)]
#[case::a_second_lease_on_one_artifact(&[prepared("s", 1)], prepared("t", 1), None)]
#[case::a_known_transaction_is_not_prepared_again(&[prepared("t", 1)], prepared("t", 1), Some(TransactionKnown))]
#[case::nor_on_another_artifact(&[prepared("t", 1)], prepared("t", 2), Some(TransactionKnown))]
#[case::nor_after_its_end(&[prepared("t", 1), aborted("t", Rejected)], prepared("t", 1), Some(TransactionKnown))]
#[case::a_condemned_artifact_is_not_leased(&[condemned(1)], prepared("t", 1), Some(NotLive))]
#[case::nor_a_deleted_one(&[condemned(1), deleted(1)], prepared("t", 1), Some(NotLive))]
#[case::another_artifact_is(&[condemned(1)], prepared("t", 2), None)]
#[case::prepared_to_committed(&[prepared("t", 1)], committed("t"), None)]
#[case::nothing_to_commit(&[], committed("t"), Some(TransactionUnknown))]
#[case::committed_twice(&[prepared("t", 1), committed("t")], committed("t"), Some(WrongPhase))]
#[case::aborted_is_not_committed(&[prepared("t", 1), aborted("t", Sealed)], committed("t"), Some(WrongPhase))]
#[case::released_is_not_committed(&[prepared("t", 1), committed("t"), released("t", Removed)], committed("t"), Some(WrongPhase))]
#[case::rejected(&[prepared("t", 1)], aborted("t", Rejected), None)]
#[case::sealed(&[prepared("t", 1)], aborted("t", Sealed), None)]
#[case::by_an_operator(&[prepared("t", 1)], aborted("t", ByOperator), None)]
#[case::a_fenced_owner_does_not_time_out(&[prepared("t", 1)], aborted("t", Timeout), Some(NotCommitFirst))]
#[case::a_commit_first_owner_does(&[commit_first()], aborted("t", Timeout), None)]
#[case::committed_is_not_aborted(&[prepared("t", 1), committed("t")], aborted("t", Rejected), Some(WrongPhase))]
#[case::not_even_by_an_operator(&[prepared("t", 1), committed("t")], aborted("t", ByOperator), Some(WrongPhase))]
#[case::aborted_twice(&[prepared("t", 1), aborted("t", Sealed)], aborted("t", Sealed), Some(WrongPhase))]
#[case::nothing_to_abort(&[], aborted("t", Rejected), Some(TransactionUnknown))]
#[case::a_later_end(&[prepared_until("t", 1, hour(1)), committed("t")], extended("t", Some(hour(2))), None)]
#[case::the_same_end(&[prepared_until("t", 1, hour(1)), committed("t")], extended("t", Some(hour(1))), Some(NotLater))]
#[case::an_earlier_end(&[prepared_until("t", 1, hour(2)), committed("t")], extended("t", Some(hour(1))), Some(NotLater))]
#[case::no_end_is_later_than_any(&[prepared_until("t", 1, hour(1)), committed("t")], extended("t", None), None)]
#[case::an_endless_lease_gets_no_end(&[prepared("t", 1), committed("t")], extended("t", Some(hour(9))), Some(NotLater))]
#[case::nor_no_end_again(&[prepared("t", 1), committed("t")], extended("t", None), Some(NotLater))]
#[case::nor_after_its_end_was_ended(&[prepared_until("t", 1, hour(1)), committed("t"), extended("t", None)], extended("t", Some(hour(9))), Some(NotLater))]
#[case::a_pending_lease_is_not_extended(&[prepared_until("t", 1, hour(1))], extended("t", Some(hour(2))), Some(WrongPhase))]
#[case::a_released_one_neither(&[prepared_until("t", 1, hour(1)), committed("t"), released("t", Removed)], extended("t", Some(hour(2))), Some(WrongPhase))]
#[case::removed(&[prepared("t", 1), committed("t")], released("t", Removed), None)]
#[case::released_by_an_operator(&[prepared("t", 1), committed("t")], released("t", OperatorRelease), None)]
#[case::a_pending_lease_is_not_released(&[prepared("t", 1)], released("t", Removed), Some(WrongPhase))]
#[case::not_even_past_its_end(&[prepared_until("t", 1, hour(1))], released("t", expired(hour(99))), Some(WrongPhase))]
#[case::released_twice(&[prepared("t", 1), committed("t"), released("t", Removed)], released("t", Removed), Some(WrongPhase))]
#[case::expired_with_its_margin(&[prepared_until("t", 1, time("2026-12-01T00:00:00Z")), committed("t")], released("t", expired(time("2026-12-01T00:15:00Z"))), None)]
#[case::not_a_nanosecond_earlier(&[prepared_until("t", 1, time("2026-12-01T00:00:00Z")), committed("t")], released("t", expired(time("2026-12-01T00:14:59.999999999Z"))), Some(NotExpired))]
#[case::an_endless_lease_never_expires(&[prepared("t", 1), committed("t")], released("t", expired(Timestamp::MAX)), Some(NotExpired))]
#[case::nor_one_at_the_end_of_time(&[prepared_until("t", 1, Timestamp::MAX), committed("t")], released("t", expired(Timestamp::MAX)), Some(NotExpired))]
#[case::an_extension_beats_the_expiry(&[prepared_until("t", 1, hour(1)), committed("t"), extended("t", Some(hour(5)))], released("t", expired(hour(2))), Some(NotExpired))]
#[case::an_unknown_artifact_lives(&[], condemned(1), None)]
#[case::a_touched_one_too(&[touched(1)], condemned(1), None)]
#[case::a_pending_lease_protects(&[prepared("t", 1)], condemned(1), Some(Protected))]
#[case::past_its_end_too(&[prepared_until("t", 1, hour(-99))], condemned(1), Some(Protected))]
#[case::a_committed_lease_protects(&[prepared("t", 1), committed("t")], condemned(1), Some(Protected))]
#[case::past_its_end_until_an_entry_says_so(&[prepared_until("t", 1, hour(-99)), committed("t")], condemned(1), Some(Protected))]
#[case::an_aborted_lease_does_not(&[prepared("t", 1), aborted("t", Sealed)], condemned(1), None)]
#[case::a_released_lease_does_not(&[prepared("t", 1), committed("t"), released("t", Removed)], condemned(1), None)]
#[case::one_of_two_leases_is_enough(&[prepared("s", 1), prepared("t", 1), aborted("t", Sealed)], condemned(1), Some(Protected))]
#[case::a_lease_on_another_artifact_is_not(&[prepared("t", 2)], condemned(1), None)]
#[case::condemned_twice(&[condemned(1)], condemned(1), Some(NotLive))]
#[case::deleted_is_not_condemned_again(&[condemned(1), deleted(1)], condemned(1), Some(NotLive))]
#[case::condemned_to_deleted(&[condemned(1)], deleted(1), None)]
#[case::a_live_one_is_not_deleted(&[touched(1)], deleted(1), Some(NotCondemned))]
#[case::nor_an_unknown_one(&[], deleted(1), Some(NotCondemned))]
#[case::deleted_twice(&[condemned(1), deleted(1)], deleted(1), Some(NotCondemned))]
#[case::a_live_artifact_is_touched(&[], touched(1), None)]
#[case::a_condemned_one_is_not(&[condemned(1)], touched(1), Some(NotLive))]
#[case::nor_a_deleted_one_touched(&[condemned(1), deleted(1)], touched(1), Some(NotLive))]
#[case::an_earlier_record_is_cleared(&[], cleared(0), None)]
#[case::its_own_record_is_not(&[], cleared(1), Some(NotEarlier))]
#[case::nor_a_later_one(&[], cleared(99), Some(NotEarlier))]
#[case::a_noop_always(&[condemned(1)], Entry::Noop, None)]
#[case::a_journal_begins_once(&[], Entry::Genesis { features: vec![] }, Some(AlreadyBegun))]
fn an_entry_takes_effect_iff(
    #[case] before: &[Entry],
    #[case] entry: Entry,
    #[case] reason: Option<Ineffective>,
) {
    let mut state = state_after(before);
    let unchanged = state.clone();
    let seq = before.len() as u64 + 1;
    assert_eq!(state.apply(seq, None, &entry).err(), reason);
    assert_eq!(
        state == unchanged,
        reason.is_some() || matches!(entry, Entry::Noop | Entry::Cleared { .. })
    );
}

#[test]
fn an_ineffective_entry_makes_the_journal_suspect_until_it_is_cleared() {
    let mut state = State::default();
    let fold = |state: &mut State, seq, entries| state.fold(&record(seq, None, entries));
    fold(&mut state, 1, vec![prepared("t", 1), committed("u")]);
    assert!(state.is_suspect());
    // The rest of the record has taken effect.
    assert!(state.is_protected(aid(1)));
    fold(&mut state, 2, vec![touched(1)]);
    fold(&mut state, 3, vec![deleted(9), deleted(8)]);
    assert_eq!(state.ineffective().collect::<Vec<_>>(), [1, 3]);
    // Clearing itself in advance has no effect, and says so.
    fold(&mut state, 4, vec![cleared(4)]);
    assert_eq!(state.ineffective().collect::<Vec<_>>(), [1, 3, 4]);
    fold(&mut state, 5, vec![cleared(2)]);
    assert_eq!(state.ineffective().collect::<Vec<_>>(), [3, 4]);
    assert!(state.is_suspect());
    fold(&mut state, 6, vec![cleared(5)]);
    assert!(!state.is_suspect());
    // In one record, only what stands before it is cleared.
    fold(&mut state, 7, vec![deleted(9), cleared(6)]);
    assert_eq!(state.ineffective().collect::<Vec<_>>(), [7]);
}

/// S13-J15, and the end rules of the aggregate: counts add up; no end if any has none or is pending.
#[test]
fn leases_on_one_artifact_add_up() {
    let now = time("2026-10-10T00:00:00Z");
    let lease = |name: &str, count, end: Option<&str>| {
        let Entry::Prepared(lease) = prepared(name, 1) else {
            unreachable!("`prepared` prepares")
        };
        let retain_until = end.map(time);
        Entry::Prepared(Box::new(Prepared {
            reference_count: count,
            retain_until,
            ..*lease
        }))
    };
    let mut state = state_after(&[
        lease("a", 1, Some("2026-11-01T00:00:00Z")),
        lease("b", 2, Some("2026-12-01T00:00:00Z")),
        committed("a"),
        committed("b"),
    ]);
    let claim = |state: &State| state.claim(aid(1), now).unwrap();
    assert_eq!(claim(&state).reference_count, 3);
    assert_eq!(
        claim(&state).retain_until,
        Some(time("2026-12-01T00:00:00Z"))
    );
    // Strictly after: an end that is now counts no more, though the lease still protects.
    let later = time("2026-11-01T00:00:00Z");
    assert_eq!(state.claim(aid(1), later).unwrap().reference_count, 2);
    state
        .apply(9, None, &lease("c", 4, Some("2026-01-01T00:00:00Z")))
        .unwrap();
    assert_eq!(claim(&state).reference_count, 7);
    assert_eq!(
        claim(&state).retain_until,
        None,
        "a pending lease has no end"
    );
    state.apply(10, None, &committed("c")).unwrap();
    assert_eq!(claim(&state).reference_count, 3, "past its end");
    assert!(state.is_protected(aid(1)));
    state.apply(11, None, &extended("a", None)).unwrap();
    assert_eq!(claim(&state).retain_until, None);
    assert_eq!(state.claim(aid(2), now), None);
}

/// What the grace after the last reference and the collector's re-check go by.
#[test]
fn the_last_reference_and_the_last_entry_are_kept() {
    let mut state = State::default();
    let mut fold = |seq, as_of, entries| {
        state.fold(&record(seq, as_of, entries));
        let artifact = state.artifact(aid(1)).unwrap();
        let reference = artifact.last_reference.map(|r| (r.seq, r.as_of));
        (artifact.last_seq, reference)
    };
    let (one, two) = (Some(hour(1)), Some(hour(2)));
    assert_eq!(fold(1, one, vec![touched(1)]), (1, Some((1, one))));
    assert_eq!(fold(2, two, vec![prepared("t", 1)]), (2, Some((2, two))));
    assert_eq!(fold(3, None, vec![prepared("u", 2)]), (2, Some((2, two))));
    assert_eq!(fold(4, two, vec![committed("t")]), (4, Some((4, two))));
    let release = released("t", Removed);
    assert_eq!(fold(5, two, vec![release]), (5, Some((5, two))));
    assert_eq!(fold(6, one, vec![condemned(1)]), (6, Some((5, two))));
    assert_eq!(
        fold(7, one, vec![touched(1)]),
        (6, Some((5, two))),
        "no effect"
    );
    assert_eq!(fold(8, one, vec![deleted(1)]), (8, Some((5, two))));
    assert_eq!(state.as_of(), two, "the latest of all, not the last");
}

/// S13-J11: a publisher that failed in any unclear way leaves a lease that protects without end.
#[test]
fn a_pending_lease_protects_without_end() {
    let state = state_after(&[prepared_until("t", 1, hour(-9_999))]);
    assert!(state.is_protected(aid(1)));
    assert_eq!(state.claim(aid(1), hour(0)).unwrap().retain_until, None);
    assert_eq!(state.lease(&txn("t")).unwrap().phase, Phase::Prepared);
}

fn record(seq: u64, as_of: Option<Timestamp>, entries: Vec<Entry>) -> Record {
    Record {
        tenant: crate::ids::Tenant::default(),
        session: "s".parse().unwrap(),
        seq,
        prev: crate::digest::Sha256Digest::of(b""),
        writer: uuid::Uuid::nil(),
        nonce: uuid::Uuid::nil(),
        as_of,
        entries,
    }
}

/// Few names, so that histories meet themselves.
fn any_entry() -> impl Strategy<Value = Entry> {
    let name = prop::sample::select(vec!["a", "b", "c"]);
    let end = prop::option::of((0_i64..4).prop_map(hour));
    let abort = prop::sample::select(vec![Rejected, Sealed, Timeout, ByOperator]);
    (
        0..11_usize,
        name,
        0..3_u64,
        end,
        abort,
        0..30_u64,
        any::<bool>(),
    )
        .prop_map(|(pick, name, artifact, end, abort, seq, flag)| match pick {
            0 | 1 => {
                let Entry::Prepared(lease) = prepared(name, artifact) else {
                    unreachable!("`prepared` prepares")
                };
                let mode = if flag {
                    crate::lease::entry::OwnerMode::CommitFirst
                } else {
                    lease.mode
                };
                Entry::Prepared(Box::new(Prepared {
                    retain_until: end,
                    mode,
                    ..*lease
                }))
            }
            2 | 3 => committed(name),
            4 => aborted(name, abort),
            5 => extended(name, end),
            6 => released(name, Removed),
            7 => released(name, end.map_or(OperatorRelease, expired)),
            8 => condemned(artifact),
            9 if flag => deleted(artifact),
            9 => cleared(seq),
            _ => touched(artifact),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_fold_agrees_with_a_naive_reading_of_the_table(
        records in prop::collection::vec(prop::collection::vec(any_entry(), 1..5), 0..30),
    ) {
        let mut state = State::default();
        let mut naive = reference::Journal::default();
        for (seq, entries) in (1..).zip(records) {
            state.fold(&record(seq, None, entries.clone()));
            naive.fold(seq, &entries);
            naive.agrees_with(&state)?;
        }
    }

    /// Nothing leads back: not from condemned, and not from an ended lease.
    #[test]
    fn condemned_and_ended_are_irrevocable(
        entries in prop::collection::vec(any_entry(), 0..60),
    ) {
        let mut state = State::default();
        for (seq, entry) in (1..).zip(entries) {
            let before = state.clone();
            let _ = state.apply(seq, None, &entry);
            for (artifact_id, _) in before.artifacts() {
                prop_assert!(before.is_live(artifact_id) || !state.is_live(artifact_id));
                prop_assert!(state.is_live(artifact_id) || !state.is_protected(artifact_id));
            }
            for lease in before.leases().filter(|lease| !lease.phase.protects()) {
                prop_assert_eq!(state.lease(&lease.intent.transaction_id), Some(lease));
            }
        }
    }
}
