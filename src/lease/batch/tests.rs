use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::lease::entry::{AbortReason, Prepared, ReleaseReason};
use crate::lease::names::TransactionId;
use crate::lease::sample::{aid, condemnation, condemned, hold_intent, intent, prepared, txn};

fn prepare(name: &str, artifact: u64) -> Operation {
    Operation::Prepare(Box::new(intent(name, artifact)))
}

fn commit(name: &str) -> Operation {
    Operation::Commit {
        transaction_id: txn(name),
        owner_generation: None,
    }
}

fn condemn(artifact: u64) -> Operation {
    Operation::Condemn(Box::new(condemnation(artifact)))
}

fn batch(before: &[Entry]) -> Batch {
    let mut state = State::default();
    for entry in before {
        state.apply(1, None, entry).unwrap();
    }
    Batch::new(5, None, &Arc::new(state))
}

#[test]
fn each_operation_sees_what_the_earlier_ones_leave() {
    let mut batch = batch(&[]);
    assert_eq!(
        batch.add(&commit("t")),
        refused(Refusal::TransactionUnknown, false)
    );
    assert_eq!(batch.add(&prepare("t", 1)), Added::Appended);
    assert_eq!(batch.add(&commit("t")), Added::Appended);
    let settled = Added::Settled {
        rests_on_batch: true,
    };
    assert_eq!(batch.add(&commit("t")), settled);
    assert_eq!(batch.add(&prepare("t", 1)), settled);
    assert_eq!(
        batch.add(&condemn(1)),
        refused(Refusal::Leased { leases: 1 }, true)
    );
    assert_eq!(batch.add(&condemn(2)), Added::Appended);
    let condemned = Refusal::ArtifactCondemned(Box::new(condemnation(2)));
    assert_eq!(batch.add(&prepare("u", 2)), refused(condemned, true));
    let ops: Vec<_> = batch.entries().iter().map(Entry::op).collect();
    assert_eq!(ops, ["prepared", "committed", "condemned"]);
}

fn refused(refusal: Refusal, rests_on_batch: bool) -> Added {
    Added::Refused {
        refusal,
        rests_on_batch,
    }
}

#[test]
fn an_answer_that_was_true_before_does_not_rest_on_the_batch() {
    let mut batch = batch(&[prepared("t", 1), condemned(2)]);
    let settled = Added::Settled {
        rests_on_batch: false,
    };
    assert_eq!(batch.add(&prepare("x", 9)), Added::Appended);
    assert_eq!(batch.add(&prepare("t", 1)), settled);
    assert_eq!(batch.add(&Operation::Read), settled);
    let condemned = Refusal::ArtifactCondemned(Box::new(condemnation(2)));
    assert_eq!(batch.add(&prepare("u", 2)), refused(condemned, false));
}

/// The two entries of a hold go into one record or none.
#[test]
fn a_hold_is_never_torn() {
    let mut batch = batch(&[]);
    for n in 0..255 {
        assert_eq!(batch.add(&prepare(&format!("t{n}"), 1)), Added::Appended);
    }
    let hold = Operation::Hold(Box::new(hold_intent("h", 1)));
    assert_eq!(batch.add(&hold), Added::Full);
    assert_eq!(batch.entries().len(), 255);
    assert_eq!(batch.add(&prepare("last", 1)), Added::Appended);
    assert_eq!(batch.add(&prepare("over", 1)), Added::Full);
    // Answers that append nothing fit always.
    assert!(matches!(batch.add(&Operation::Read), Added::Settled { .. }));
    let mut next = self::batch(&[]);
    assert_eq!(next.add(&hold), Added::Appended);
    assert_eq!(next.into_entries().len(), 2);
}

#[test]
fn the_first_record_begins_the_journal() {
    let mut batch = Batch::new(0, None, &Arc::default());
    assert_eq!(
        batch.add(&commit("t")),
        refused(Refusal::TransactionUnknown, false)
    );
    assert!(batch.entries().is_empty(), "a refusal writes nothing");
    assert_eq!(batch.add(&prepare("t", 1)), Added::Appended);
    assert_eq!(batch.add(&prepare("u", 1)), Added::Appended);
    let ops: Vec<_> = batch.entries().iter().map(Entry::op).collect();
    assert_eq!(ops, ["genesis", "prepared", "prepared"]);
}

#[test]
fn a_record_never_outgrows_its_bytes() {
    let long = |n: usize| {
        Operation::Prepare(Box::new(Prepared {
            etag: "\u{1}".repeat(400),
            ..intent(&format!("t{n}"), 1)
        }))
    };
    let mut batch = batch(&[]);
    let count = (0..256)
        .take_while(|n| batch.add(&long(*n)) == Added::Appended)
        .count();
    assert!((50..256).contains(&count), "{count}");
    let record = crate::lease::record::Record {
        tenant: "a".repeat(32).parse().unwrap(),
        session: "\u{1}".repeat(512).parse().unwrap(),
        seq: crate::lease::canonical::MAX_INTEGER,
        prev: crate::digest::Sha256Digest::of(b""),
        writer: uuid::Uuid::max(),
        nonce: uuid::Uuid::max(),
        as_of: Some(jiff::Timestamp::MAX),
        entries: batch.into_entries(),
    };
    assert!(record.encode().is_ok());
    let mut empty = self::batch(&[]);
    let Operation::Prepare(mut huge) = long(0) else {
        unreachable!("`long` prepares")
    };
    huge.etag = "e".repeat(300_000);
    assert_eq!(
        empty.add(&Operation::Prepare(huge)),
        refused(Refusal::TooLarge, false)
    );
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let name = prop::sample::select(vec!["a", "b", "c", "d"]);
    (0..9_usize, name, 0..3_u64, 0..12_u64).prop_map(|(pick, name, artifact, seq)| {
        let transaction_id: TransactionId = txn(name);
        match pick {
            0 => prepare(name, artifact),
            1 => commit(name),
            2 => Operation::Abort {
                transaction_id,
                why: AbortReason::Rejected,
            },
            3 => Operation::Release {
                transaction_id,
                why: ReleaseReason::Removed,
            },
            4 => Operation::Extend {
                transaction_id,
                retain_until: None,
            },
            5 => condemn(artifact),
            6 => Operation::Hold(Box::new(hold_intent(name, artifact))),
            7 => Operation::Lift {
                artifact_id: aid(artifact),
                name: None,
                why: ReleaseReason::Removed,
            },
            _ => Operation::Occupy { seq },
        }
    })
}

proptest! {
    /// Whatever is asked in whatever order: every entry of the record takes effect, and a batch leaves
    /// the same state as one record per operation.
    #[test]
    fn a_batch_has_only_effective_entries(
        operations in prop::collection::vec(any_operation(), 0..40),
    ) {
        let start = Arc::new(State::default());
        let mut batch = Batch::new(5, None, &start);
        let mut single = Arc::clone(&start);
        for operation in &operations {
            let added = batch.add(operation);
            let mut alone = Batch::new(5, None, &single);
            let is_appended = alone.add(operation) == Added::Appended;
            prop_assert_eq!(added == Added::Appended, is_appended);
            for entry in alone.into_entries() {
                prop_assert!(Arc::make_mut(&mut single).apply(5, None, &entry).is_ok());
            }
        }
        let mut folded = State::default();
        for entry in batch.entries() {
            prop_assert!(folded.apply(5, None, entry).is_ok());
        }
        prop_assert_eq!(&folded, &*single);
    }
}
