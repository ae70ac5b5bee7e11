//! Replicas that append to one journal on a store that fails and lies in every way it may: whatever was
//! acknowledged is on the journal for ever, whatever was refused never comes, and an unknown outcome can
//! be made final. One seed, one history.

use std::sync::Arc;

use futures_util::future::join_all;
use spillbox::clock::SystemClock;
use spillbox::digest::Sha256Digest;
use spillbox::ids::{ArtifactId, SeededIds, Tenant};
use spillbox::lease::chain::Chain;
use spillbox::lease::entry::{CondemnReason, Condemned, OwnerMode, Prepared, ReleaseReason};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journal::{JournalError, Receipt};
use spillbox::lease::journals::Journals;
use spillbox::lease::record::Record;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::memory::MemoryStore;
use spillbox::store::register::read_register;

use crate::support::chaotic::Chaotic;
use crate::support::leases::{session, txn};

const REPLICAS: u16 = 3;
const STEPS: usize = 12;

fn artifact(n: u64) -> ArtifactId {
    ArtifactId::new(n, [9; 10])
}

/// Few artifacts and few names, so that operations meet.
fn any_operation(chaos: &Chaotic) -> Operation {
    let (name, n) = (chaos.below(4), chaos.below(2));
    // A name belongs to one artifact.
    let transaction_id = txn(&format!("t{name}"));
    match chaos.below(7) {
        0 | 1 => Operation::Prepare(Box::new(Prepared {
            transaction_id,
            owner: "memory".parse().unwrap(),
            mode: OwnerMode::OwnerFenced,
            artifact_id: artifact(name % 2),
            sha256: Sha256Digest::of(b"x"),
            size_bytes: 1,
            etag: "e".to_owned(),
            version_id: None,
            reference_count: 1,
            retain_until: None,
            reason: None,
        })),
        2 => Operation::Commit {
            transaction_id,
            owner_generation: None,
        },
        3 => Operation::Release {
            transaction_id,
            why: ReleaseReason::Removed,
        },
        4 => Operation::Condemn(Box::new(Condemned {
            artifact_id: artifact(n),
            decision_id: None,
            sha256: None,
            size_bytes: None,
            etag: None,
            version_id: None,
            store_checksum: None,
            manifest_version_id: None,
            why: CondemnReason::Expired,
            server_date: "2026-11-30T00:00:00Z".parse().unwrap(),
            plan_id: None,
        })),
        5 => Operation::Touch {
            artifact_id: artifact(n),
        },
        _ => Operation::Read,
    }
}

fn replica(store: &SharedStore, seed: u16) -> Journals {
    Journals::new(
        Arc::clone(store),
        KeySpace::new("").unwrap(),
        SystemClock::shared(),
        Arc::new(SeededIds::new(seed)),
    )
}

/// What the callers were told.
#[derive(Debug, Default)]
struct Told {
    stands: Vec<Receipt>,
    unknown: Vec<Receipt>,
    refused: usize,
    failed: usize,
}

async fn run(seed: u64) -> Told {
    let memory: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let (store, chaos) = Chaotic::over(&memory, seed);
    let (tenant, session) = (Tenant::default(), session());
    let replicas = (0..REPLICAS).map(|n| {
        let (journals, chaos) = (replica(&store, n), Arc::clone(&chaos));
        let (tenant, session) = (&tenant, &session);
        async move {
            let mut told = Told::default();
            for _ in 0..STEPS {
                let operations = (0..=chaos.below(3)).map(|_| any_operation(&chaos));
                let asked = operations.map(|operation| {
                    let journals = &journals;
                    async move { journals.submit(tenant, session, operation).await }
                });
                for answer in join_all(asked).await {
                    match answer {
                        Ok(answer) => told.stands.extend(answer.receipt),
                        Err(JournalError::OutcomeUnknown { receipt, .. }) => {
                            told.unknown.push(*receipt);
                        }
                        Err(JournalError::Refused(_)) => told.refused += 1,
                        Err(_) => told.failed += 1,
                    }
                }
            }
            told
        }
    });
    let mut told = Told::default();
    for one in join_all(replicas).await {
        told.stands.extend(one.stands);
        told.unknown.extend(one.unknown);
        told.refused += one.refused;
        told.failed += one.failed;
    }
    // Everything unknown is made final, by a replica that has seen none of it; then the late arrive.
    chaos.calm();
    let judge = replica(&store, 99);
    let mut resolved = Vec::new();
    for receipt in &told.unknown {
        let operation = Operation::Occupy { seq: receipt.seq };
        judge.submit(&tenant, &session, operation).await.unwrap();
        let stored = judge.hash_of(&tenant, &session, receipt.seq).await.unwrap();
        resolved.push((receipt, stored == Some(receipt.sha256)));
    }
    chaos.apply_late().await;
    let records = fold_from_the_beginning(&memory, seed).await;
    for receipt in &told.stands {
        let on_journal = records.get(usize::try_from(receipt.seq).unwrap());
        assert_eq!(
            on_journal,
            Some(&receipt.sha256),
            "seed {seed}: lost {receipt:?}"
        );
    }
    for (receipt, has_landed) in resolved {
        let on_journal = records.get(usize::try_from(receipt.seq).unwrap());
        assert_eq!(
            on_journal == Some(&receipt.sha256),
            has_landed,
            "seed {seed}: resolved, and not final: {receipt:?}"
        );
    }
    told
}

/// Reads the journal record by record; answers the hashes.
async fn fold_from_the_beginning(store: &SharedStore, seed: u64) -> Vec<Sha256Digest> {
    let site = replica(store, 100).site(&Tenant::default(), &session());
    let mut chain: Chain = site.genesis();
    let mut hashes = Vec::new();
    loop {
        let key = site.record_key(chain.next_seq());
        let Some(found) = read_register(&**store, &key).await.unwrap() else {
            break;
        };
        let _: Record = chain
            .push(&found.bytes)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        hashes.push(chain.head());
    }
    // No entry without effect: each was decided on exactly the records before it, so nothing leased was
    // condemned and nothing condemned was leased.
    assert!(!chain.state().is_suspect(), "seed {seed}");
    hashes
}

#[tokio::test(start_paused = true)]
async fn whatever_was_told_stays_true_on_a_store_that_fails_and_lies() {
    let mut total = Told::default();
    for seed in 0..150 {
        let told = run(seed).await;
        total.stands.extend(told.stands);
        total.unknown.extend(told.unknown);
        total.refused += told.refused;
        total.failed += told.failed;
    }
    // The histories are not empty ones.
    println!(
        "{} stand, {} unknown, {} refused, {} failed",
        total.stands.len(),
        total.unknown.len(),
        total.refused,
        total.failed
    );
    assert!(total.stands.len() > 3_000 && total.refused > 1_000);
    assert!(!total.unknown.is_empty());
}
