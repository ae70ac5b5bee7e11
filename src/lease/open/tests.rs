use std::sync::Arc;

use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::ids::{SeededIds, Tenant};
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::journal::{Answer, JournalError};
use crate::lease::journals::Journals;
use crate::lease::sample::{aid, condemnation, intent, next_record, touched};
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;
use crate::store::{Payload, PutMode, SharedStore};

const PREPARED_AT: u64 = 3;

fn replica(store: &SharedStore, seed: u16) -> Journals {
    let start = "2026-11-30T00:00:00Z".parse().unwrap();
    Journals::new(
        Arc::clone(store),
        KeySpace::new("").unwrap(),
        Arc::new(ManualClock::new(start)),
        Arc::new(SeededIds::new(seed)),
    )
}

fn site(journals: &Journals) -> Site {
    journals.site(&Tenant::default(), &"s".parse().unwrap())
}

async fn ask(journals: &Journals, operation: Operation) -> Result<Answer, JournalError> {
    let session = "s".parse().unwrap();
    journals
        .submit(&Tenant::default(), &session, operation)
        .await
}

async fn open_to_destroy(journals: &Journals) -> Result<(bool, Chain), OpenError> {
    let session = "s".parse().unwrap();
    let opened = journals
        .open_double_rooted(&Tenant::default(), &session)
        .await?;
    Ok((opened.is_suspect, opened.opened.chain))
}

fn condemn() -> Operation {
    Operation::Condemn(Box::new(condemnation(1)))
}

async fn put(site: &Site, key: &crate::store::keys::Key, bytes: Vec<u8>) {
    let payload = Payload::from(bytes::Bytes::from(bytes));
    let store = &site.around().store;
    store.put(key, payload, PutMode::Overwrite).await.unwrap();
}

/// What a checkpoint says of the records through one of them.
fn lie(chain: &Chain) -> Vec<u8> {
    // Everything fits but the state, in which artifact 1 is not leased.
    let lying = Chain::resume(
        chain.tenant().clone(),
        chain.session().clone(),
        chain.next_seq(),
        chain.head(),
        Arc::default(),
    );
    Checkpoint::encode(&lying).unwrap()
}

/// A journal of so many records in which artifact 1 is leased, with these checkpoints; `lies` names the
/// places whose checkpoint hides the lease.
async fn journal(records: u64, checkpoints: &[u64], lies: &[u64]) -> SharedStore {
    let store: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let site = site(&replica(&store, 1));
    let mut chain = site.genesis();
    for seq in 0..records {
        let entry = if seq == PREPARED_AT {
            crate::lease::entry::Entry::Prepared(Box::new(intent("t", 1)))
        } else {
            touched(seq + 100)
        };
        let bytes = next_record(&chain, u128::from(seq) + 1, None, vec![entry]);
        chain.push(&bytes).unwrap();
        put(&site, &site.record_key(seq), bytes).await;
        if checkpoints.contains(&seq) {
            let truth = Checkpoint::encode(&chain).unwrap();
            let said = if lies.contains(&seq) {
                lie(&chain)
            } else {
                truth
            };
            put(&site, &site.checkpoint_key(seq), said).await;
        }
    }
    store
}

#[tokio::test]
async fn true_checkpoints_let_a_collector_work_and_the_lease_protects() {
    let store = journal(140, &[63, 127], &[]).await;
    let journals = replica(&store, 2);
    let (is_suspect, chain) = open_to_destroy(&journals).await.unwrap();
    assert!(!is_suspect && chain.state().is_protected(aid(1)));
    assert!(matches!(
        ask(&journals, condemn()).await,
        Err(JournalError::Refused(Refusal::Leased { leases: 1 }))
    ));
}

/// Whichever of the checkpoints that a destructive open reads hides the lease: it finds out, and nothing
/// is destroyed on that replica any more.
#[tokio::test]
async fn a_checkpoint_that_hides_a_lease_destroys_nothing() {
    for (checkpoints, lies) in [
        (&[63][..], &[63][..]),
        (&[63, 127], &[127]),
        (&[63, 127], &[63]),
        (&[63, 127, 191], &[127]),
    ] {
        let store = journal(200, checkpoints, lies).await;
        let journals = replica(&store, 2);
        let (is_suspect, _) = open_to_destroy(&journals).await.unwrap();
        assert!(is_suspect, "{checkpoints:?} {lies:?}");
        for _ in 0..2 {
            let refused = ask(&journals, condemn()).await;
            let is_refused = matches!(refused, Err(JournalError::Refused(Refusal::Suspect)));
            assert!(is_refused, "{checkpoints:?} {lies:?}: {refused:?}");
        }
        // Nobody appended anything; everything else goes on.
        let read = ask(&journals, Operation::Read).await.unwrap();
        assert_eq!(read.receipt.unwrap().seq, 199);
        assert!(read.has_conflict);
        let touch = Operation::Touch {
            artifact_id: aid(7),
        };
        assert!(ask(&journals, touch).await.unwrap().is_new);
    }
}

#[tokio::test]
async fn a_checkpoint_whose_records_are_gone_is_a_gap_and_no_journal() {
    let store = journal(128, &[63, 127], &[]).await;
    let journals = replica(&store, 2);
    let site = site(&journals);
    for seq in 100..128 {
        let fence = crate::store::DeleteFence::None;
        let key = site.record_key(seq);
        site.around().store.delete(&key, fence).await.unwrap();
    }
    let opened = open_to_destroy(&journals).await;
    assert!(
        matches!(opened, Err(OpenError::Gap { seq: 100, .. })),
        "{opened:?}"
    );
}

/// A wrong hash of the last record is met by the record after it: an open goes on without the checkpoint.
#[tokio::test]
async fn a_checkpoint_of_another_history_is_passed_over() {
    let store = journal(80, &[], &[]).await;
    let journals = replica(&store, 2);
    let site = site(&journals);
    let mut other = site.genesis();
    for seq in 0..64_u64 {
        let bytes = next_record(&other, u128::from(seq) + 9_000, None, vec![touched(1)]);
        other.push(&bytes).unwrap();
    }
    let key = site.checkpoint_key(63);
    put(&site, &key, Checkpoint::encode(&other).unwrap()).await;
    let opened = open(&site).await.unwrap();
    assert_eq!(opened.chain.next_seq(), 80);
    assert!(opened.chain.state().is_protected(aid(1)));
    let (is_suspect, chain) = open_to_destroy(&journals).await.unwrap();
    assert!(is_suspect && chain.state().is_protected(aid(1)));
}
