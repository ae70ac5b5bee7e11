//! Request budgets of the journal, counted exactly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rstest::rstest;
use spillbox::clock::SystemClock;
use spillbox::ids::{ArtifactId, Tenant};
use spillbox::lease::chain::Chain;
use spillbox::lease::entry::Entry;
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journals::Journals;
use spillbox::lease::record::Record;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::memory::MemoryStore;

use crate::support::leases::{claim, journals, replica, session, txn};
use crate::support::library::{body, log, replica as library, request};
use crate::support::s3_server::{Quirks, S3Server};
use crate::support::slow::Slow;

fn keys() -> KeySpace {
    KeySpace::new("").unwrap()
}

fn touch(n: u64) -> Operation {
    Operation::Touch {
        artifact_id: ArtifactId::new(n, [1; 10]),
    }
}

async fn ask(journals: &Journals, operation: Operation) -> u64 {
    let answer = journals
        .submit(&Tenant::default(), &session(), operation)
        .await
        .unwrap();
    answer.receipt.unwrap().seq
}

fn expected(labels: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let owned = labels.iter().map(|(label, n)| ((*label).to_owned(), *n));
    owned.collect()
}

#[rstest]
#[tokio::test]
async fn a_warm_append_is_one_put(#[values(Quirks::AWS, Quirks::MINIO)] quirks: Quirks) {
    let server = S3Server::builder().quirks(quirks).start();
    let store: SharedStore = Arc::new(server.store());
    let saved = library(&store)
        .save(request("s", None), body(&log(100)))
        .await
        .unwrap();
    let leases = replica(&store);
    let (tenant, session) = (Tenant::default(), session());
    server.log().clear();
    // Cold, on an empty journal: two listings, the manifest, the record.
    let lease = claim("a", &saved);
    leases.prepare(&tenant, &session, lease).await.unwrap();
    let first = [("list:k", 1), ("list:j", 1), ("get:a", 1), ("put:j", 1)];
    assert_eq!(server.log().counts(), expected(&first));
    server.log().clear();
    // Warm: the manifest is looked at again, the record is the only write.
    let lease = claim("b", &saved);
    leases.prepare(&tenant, &session, lease).await.unwrap();
    assert_eq!(
        server.log().counts(),
        expected(&[("get:a", 1), ("put:j", 1)])
    );
    server.log().clear();
    leases
        .commit(&tenant, &session, &txn("a"), None)
        .await
        .unwrap();
    assert_eq!(server.log().counts(), expected(&[("put:j", 1)]));
    server.log().clear();
    // An answer that appends nothing is one look at the first free slot.
    leases
        .commit(&tenant, &session, &txn("a"), None)
        .await
        .unwrap();
    leases.get(&tenant, &session, &txn("b")).await.unwrap();
    assert_eq!(server.log().counts(), expected(&[("get:j", 2)]));
}

/// A journal of so many records, put there without requests.
fn plant(server: &S3Server, records: u64) {
    let mut chain = Chain::genesis(Tenant::default(), session());
    let session_key = spillbox::ids::SessionKey::derive(&Tenant::default(), &session());
    for n in 0..records {
        let mut entries = vec![Entry::Touched {
            artifact_id: ArtifactId::new(n, [1; 10]),
        }];
        if n == 0 {
            entries.insert(0, Entry::Genesis { features: vec![] });
        }
        let record = Record {
            tenant: Tenant::default(),
            session: session(),
            seq: n,
            prev: chain.head(),
            writer: uuid::Uuid::nil(),
            nonce: uuid::Uuid::from_u128(n.into()),
            as_of: None,
            entries,
        };
        let bytes = record.encode().unwrap();
        chain.push(&bytes).unwrap();
        let key = keys().journal_record(&Tenant::default(), &session_key, n);
        server.plant(key.as_str(), bytes);
    }
}

#[tokio::test]
async fn a_journal_of_10_000_records_opens_with_few_requests() {
    let server = S3Server::start();
    let store: SharedStore = Arc::new(server.store());
    plant(&server, 10_000);
    let first = journals(&store, &keys());
    // Nobody has written a checkpoint: everything is read, once, and the next one has it better.
    assert_eq!(ask(&first, Operation::Read).await, 9_999);
    first.drain().await;
    let counts = server.log().counts();
    assert_eq!(counts["put:k"], 1);
    assert_eq!(counts["get:j"], 10_001);
    server.log().clear();
    let second = journals(&store, &keys());
    assert_eq!(ask(&second, Operation::Read).await, 9_999);
    second.drain().await;
    let opened = [("list:k", 1), ("list:j", 1), ("get:k", 1), ("get:j", 1)];
    assert_eq!(server.log().counts(), expected(&opened));
    // 64 records later the tail is read, and one more look says that it is the tail.
    for n in 0..64 {
        ask(&second, touch(n)).await;
    }
    second.drain().await;
    server.log().clear();
    let third = journals(&store, &keys());
    assert_eq!(ask(&third, touch(0)).await, 10_064);
    third.drain().await;
    let counts = server.log().counts();
    assert_eq!(
        (counts["list:k"], counts["list:j"], counts["get:k"]),
        (1, 1, 1)
    );
    assert_eq!(counts["put:j"], 1);
    assert!(
        counts.get("get:j").is_none_or(|gets| *gets <= 64),
        "{counts:?}"
    );
}

#[tokio::test]
async fn a_destructive_open_reads_one_interval_more() {
    let server = S3Server::start();
    let store: SharedStore = Arc::new(server.store());
    let writer = journals(&store, &keys());
    for n in 0..200 {
        ask(&writer, touch(n)).await;
    }
    writer.drain().await;
    let checkpoints = server
        .keys()
        .iter()
        .filter(|key| key.contains("/k/"))
        .count();
    assert_eq!(checkpoints, 3, "at 64, 128 and 192 records");
    server.log().clear();
    let opened = writer
        .open_double_rooted(&Tenant::default(), &session())
        .await
        .unwrap();
    assert_eq!(opened.opened.chain.next_seq(), 200);
    assert!(!opened.is_suspect);
    let counts = [("list:k", 1), ("list:j", 1), ("get:k", 2), ("get:j", 72)];
    assert_eq!(server.log().counts(), expected(&counts));
}

/// Several replicas, each with one caller that asks again as soon as it was answered.
#[tokio::test(start_paused = true)]
async fn four_contending_writers_need_at_most_two_puts_an_append() {
    let memory: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let (put, get) = (Duration::from_millis(20), Duration::from_millis(10));
    let (store, slow) = Slow::over(&memory, put, get);
    let appends = 100;
    let writers = (0..4_u64).map(|writer| {
        let journals = journals(&store, &keys());
        async move {
            for n in 0..appends {
                ask(&journals, touch(writer * appends + n)).await;
            }
        }
    });
    join_all(writers).await;
    let per_append = slow.puts() as f64 / (4 * appends) as f64;
    println!("4 writers: {per_append:.2} PUTs an append");
    assert!((1.0..=2.0).contains(&per_append), "{per_append}");
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_of_one_replica_share_their_puts() {
    let memory: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let (put, get) = (Duration::from_millis(20), Duration::from_millis(10));
    let (store, slow) = Slow::over(&memory, put, get);
    let journals = journals(&store, &keys());
    let callers = (0..50_u64).map(|caller| {
        let journals = journals.clone();
        async move {
            for n in 0..20 {
                ask(&journals, touch(caller * 20 + n)).await;
            }
        }
    });
    join_all(callers).await;
    let per_put = 1_000.0 / slow.puts() as f64;
    println!("50 callers: {per_put:.1} entries a PUT");
    assert!(per_put > 5.0, "{per_put}");
}
