use std::sync::Arc;

use futures_util::future::join_all;

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::ids::{SeededIds, Tenant};
use crate::lease::evaluate::Operation;
use crate::lease::journals::Journals;
use crate::lease::names::TransactionId;
use crate::lease::sample::{aid, condemnation, hold_intent, intent, txn};
use crate::store::SharedStore;
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;

fn store() -> SharedStore {
    Arc::new(MemoryStore::new(SystemClock::shared()))
}

fn replica(store: &SharedStore, seed: u16) -> Journals {
    let start = "2026-11-30T00:00:00Z".parse().unwrap();
    Journals::new(
        Arc::clone(store),
        KeySpace::new("").unwrap(),
        Arc::new(ManualClock::new(start)),
        Arc::new(SeededIds::new(seed)),
    )
}

fn prepare(name: &str, artifact: u64) -> Operation {
    Operation::Prepare(Box::new(intent(name, artifact)))
}

fn commit(name: &str) -> Operation {
    Operation::Commit {
        transaction_id: txn(name),
        owner_generation: None,
    }
}

async fn ask(journals: &Journals, operation: Operation) -> Result<Answer, JournalError> {
    let session = "s".parse().unwrap();
    journals
        .submit(&Tenant::default(), &session, operation)
        .await
}

#[tokio::test]
async fn a_lease_goes_through_its_life() {
    let store = store();
    let journals = replica(&store, 1);
    let prepared = ask(&journals, prepare("t", 1)).await.unwrap();
    assert!(prepared.is_new);
    assert_eq!(prepared.receipt.unwrap().seq, 0);
    let again = ask(&journals, prepare("t", 1)).await.unwrap();
    assert!(!again.is_new);
    assert_eq!(again.receipt.unwrap().seq, 0);
    ask(&journals, commit("t")).await.unwrap();
    let refused = ask(&journals, Operation::Condemn(Box::new(condemnation(1)))).await;
    assert!(matches!(
        refused,
        Err(JournalError::Refused(Refusal::Leased { leases: 1 }))
    ));
    // Another replica sees all of it, and goes on from there.
    let other = replica(&store, 2);
    let read = ask(&other, Operation::Read).await.unwrap();
    assert!(read.state.is_protected(aid(1)));
    let released = Operation::Release {
        transaction_id: txn("t"),
        why: crate::lease::entry::ReleaseReason::Removed,
    };
    assert_eq!(ask(&other, released).await.unwrap().receipt.unwrap().seq, 2);
    // The first one did not know; its answer is fresh all the same.
    let late = ask(&journals, commit("t")).await;
    assert!(matches!(
        late,
        Err(JournalError::Refused(Refusal::TransactionEnded(_)))
    ));
}

#[tokio::test]
async fn callers_that_meet_share_records() {
    let store = store();
    let journals = replica(&store, 1);
    let asked = (0..100).map(|n| {
        let journals = journals.clone();
        async move { ask(&journals, prepare(&format!("t{n}"), 1)).await }
    });
    let answers = join_all(asked).await;
    let last = answers
        .into_iter()
        .map(|answer| answer.unwrap().receipt.unwrap().seq)
        .max();
    assert!(last < Some(5), "{last:?}");
    let read = ask(&journals, Operation::Read).await.unwrap();
    assert_eq!(read.state.leases().count(), 100);
}

#[tokio::test]
async fn prepare_and_condemn_exclude_each_other_whoever_is_first() {
    for round in 0..20 {
        let store = store();
        let (owner, collector) = (replica(&store, 1), replica(&store, 2));
        // Both views are warm and equal.
        for journals in [&owner, &collector] {
            ask(journals, Operation::Read).await.unwrap();
        }
        let name: TransactionId = txn("t");
        let (leased, condemned) = tokio::join!(
            ask(&owner, prepare(name.as_str(), 1)),
            ask(&collector, Operation::Condemn(Box::new(condemnation(1)))),
        );
        assert_ne!(leased.is_ok(), condemned.is_ok(), "round {round}");
        let read = ask(&owner, Operation::Read).await.unwrap();
        assert_eq!(read.state.is_live(aid(1)), leased.is_ok());
        assert!(!read.state.is_suspect());
    }
}

#[tokio::test]
async fn a_hold_is_held_once_and_lifted_whole() {
    let store = store();
    let journals = replica(&store, 1);
    let hold = |name: &str| Operation::Hold(Box::new(hold_intent(name, 1)));
    assert!(ask(&journals, hold("h1")).await.unwrap().is_new);
    assert!(!ask(&journals, hold("h2")).await.unwrap().is_new);
    let lift = || Operation::Lift {
        artifact_id: aid(1),
        name: None,
        why: crate::lease::entry::ReleaseReason::Removed,
    };
    let lifted = ask(&journals, lift()).await.unwrap();
    assert!(lifted.is_new && !lifted.state.is_protected(aid(1)));
    assert!(!ask(&journals, lift()).await.unwrap().is_new);
    assert!(ask(&journals, hold("h3")).await.unwrap().is_new);
}

#[tokio::test]
async fn a_drained_replica_has_answered_everything() {
    let store = store();
    let journals = replica(&store, 1);
    let asked: Vec<_> = (0..50)
        .map(|n| {
            let journals = journals.clone();
            let name = format!("t{n}");
            async move { ask(&journals, prepare(&name, 1)).await }
        })
        .collect();
    let (answers, ()) = tokio::join!(join_all(asked), journals.drain());
    assert!(answers.iter().all(Result::is_ok));
    journals.drain().await;
    assert!(ask(&journals, commit("t1")).await.unwrap().is_new);
}

/// An absent slot brings no date. Who only looks for longer than a date is good for must not append a
/// reference without one: what was referred to at no time is never old, and never collected.
#[tokio::test(start_paused = true)]
async fn a_reference_has_a_date_however_long_the_journal_was_only_looked_at() {
    let journals = replica(&store(), 1);
    ask(&journals, prepare("t", 1)).await.unwrap();
    for _ in 0..4 {
        tokio::time::sleep(std::time::Duration::from_secs(5 * 60)).await;
        ask(&journals, Operation::Read).await.unwrap();
    }
    let artifact_id = aid(2);
    let touched = ask(&journals, Operation::Touch { artifact_id })
        .await
        .unwrap();
    let record = touched.state.artifact(artifact_id).unwrap();
    assert!(record.last_reference.unwrap().as_of.is_some());
}
