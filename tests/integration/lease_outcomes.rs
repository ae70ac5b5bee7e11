//! What becomes of an operation whose slot was lost, or stayed undecided, or whose caller went away.

use std::sync::Arc;
use std::time::Duration;

use spillbox::clock::SystemClock;
use spillbox::error::ErrorCode;
use spillbox::ids::{ArtifactId, Tenant};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::failure::PrepareError;
use spillbox::lease::journal::Receipt;
use spillbox::lease::journals::Journals;
use spillbox::lease::leases::Leases;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::memory::MemoryStore;

use crate::support::leases::{claim, is_on_the_journal, journals, replica, session, txn};
use crate::support::library::{body, log, replica as library, request};
use crate::support::s3_server::{Action, Fault, Op, S3Server};
use crate::support::slow::Slow;

struct World {
    server: S3Server,
    store: SharedStore,
    saved: spillbox::artifact::save::Saved,
}

impl World {
    async fn new() -> Self {
        let server = S3Server::start();
        let store: SharedStore = Arc::new(server.store());
        let library = library(&store);
        let saved = library.save(request("s", None), body(&log(100))).await;
        Self {
            server,
            store,
            saved: saved.unwrap(),
        }
    }

    async fn prepare(&self, leases: &Leases, name: &str) -> Result<Receipt, PrepareError> {
        let claim = claim(name, &self.saved);
        let prepared = leases.prepare(&Tenant::default(), &session(), claim).await;
        prepared.map(|answer| answer.receipt.unwrap())
    }

    /// Asks for a lease while no write of a record is answered.
    async fn prepare_into_silence(&self, leases: &Leases, action: Action) -> Receipt {
        let silence = Fault::on(Op::Put, action).of_class("j").always();
        self.server.fault(silence);
        let error = self.prepare(leases, "t").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutcomeUnknown, "{error}");
        self.server.clear_faults();
        let PrepareError::Journal(error) = error else {
            panic!("{error}")
        };
        error.unknown_record().unwrap().clone()
    }

    async fn has_lease(&self, name: &str) -> bool {
        let leases = replica(&self.store);
        let lease = leases.get(&Tenant::default(), &session(), &txn(name)).await;
        match lease {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::TransactionUnknown, "{error}");
                false
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecided_slot_is_sent_the_same_bytes_before_anything_else() {
    let world = World::new().await;
    let leases = replica(&world.store);
    let unknown = world
        .prepare_into_silence(&leases, Action::LoseRequest)
        .await;
    assert_eq!(unknown.seq, 0);
    assert!(!world.has_lease("t").await);
    // The next operation of this replica finds slot 0 still its own to decide.
    let next = world.prepare(&leases, "u").await.unwrap();
    assert_eq!(next.seq, 1);
    assert!(is_on_the_journal(&leases, &unknown).await);
    assert!(world.has_lease("t").await);
}

#[tokio::test(start_paused = true)]
async fn who_was_told_that_the_outcome_is_unknown_enters_no_further_slot() {
    let world = World::new().await;
    let leases = replica(&world.store);
    let unknown = world
        .prepare_into_silence(&leases, Action::LoseRequest)
        .await;
    // Another replica takes the slot.
    let other = world
        .prepare(&replica(&world.store), "other")
        .await
        .unwrap();
    assert_eq!(other.seq, unknown.seq);
    let next = world.prepare(&leases, "u").await.unwrap();
    assert_eq!(next.seq, 1);
    assert!(!is_on_the_journal(&leases, &unknown).await);
    assert!(!world.has_lease("t").await);
}

#[tokio::test(start_paused = true)]
async fn a_resolve_by_another_host_makes_never_of_what_has_not_landed() {
    let world = World::new().await;
    let leases = replica(&world.store);
    let unknown = world.prepare_into_silence(&leases, Action::ApplyLate).await;
    let other = replica(&world.store);
    let (tenant, session, name) = (Tenant::default(), session(), txn("t"));
    let resolve = |seq| other.resolve(&tenant, &session, &name, seq, unknown.sha256);
    let beyond = resolve(unknown.seq + 1).await.unwrap_err();
    assert_eq!(beyond.code(), ErrorCode::InvalidParameter);
    let resolved = resolve(unknown.seq).await.unwrap();
    assert!(!resolved.has_landed && resolved.lease.is_none());
    assert!(world.server.apply_late().await > 0);
    assert!(
        !world.has_lease("t").await,
        "it arrived, and could not land"
    );
    // And again, and for what did land.
    assert!(!resolve(unknown.seq).await.unwrap().has_landed);
    let landed = world.prepare(&other, "u").await.unwrap();
    let resolved = other
        .resolve(&tenant, &session, &txn("u"), landed.seq, landed.sha256)
        .await
        .unwrap();
    assert!(resolved.has_landed && resolved.lease.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_no_loss() {
    let world = World::new().await;
    let leases = replica(&world.store);
    let lost = Fault::on(Op::Put, Action::LoseReply).of_class("j");
    world.server.fault(lost);
    let receipt = world.prepare(&leases, "t").await.unwrap();
    assert_eq!(receipt.seq, 0);
    let counts = world.server.log().counts();
    assert_eq!((counts["put:j"], counts["get:j"]), (2, 1));
    assert!(is_on_the_journal(&leases, &receipt).await);
}

fn touch(n: u64) -> Operation {
    Operation::Touch {
        artifact_id: ArtifactId::new(n, [1; 10]),
    }
}

async fn ask(journals: &Journals, operation: Operation) -> Option<Receipt> {
    let (tenant, session) = (Tenant::default(), session());
    let answer = journals.submit(&tenant, &session, operation).await;
    answer.unwrap().receipt
}

/// Two replicas aim at one slot; the second loses it. Whether its caller still waits then decides
/// whether its entry is aimed at the next one.
async fn lose_a_slot(patience: Duration) -> (Journals, Option<Receipt>) {
    let memory: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let (put, get) = (Duration::from_secs(1), Duration::from_millis(1));
    let (store, _) = Slow::over(&memory, put, get);
    let keys = KeySpace::new("").unwrap();
    let (first, second) = (journals(&store, &keys), journals(&store, &keys));
    for warm in [&first, &second] {
        assert_eq!(ask(warm, Operation::Read).await, None);
    }
    let losing = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let asked = tokio::time::timeout(patience, ask(&second, touch(2)));
        asked.await.ok().flatten()
    };
    let (won, late) = tokio::join!(ask(&first, touch(1)), losing);
    assert_eq!(won.unwrap().seq, 0);
    second.drain().await;
    (first, late)
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_went_away_enters_no_further_slot() {
    let (journals, answer) = lose_a_slot(Duration::from_millis(100)).await;
    assert_eq!(answer, None);
    let last = ask(&journals, Operation::Read).await.unwrap();
    assert_eq!(last.seq, 0, "nothing was written for nobody");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_gets_the_next_slot() {
    let (journals, answer) = lose_a_slot(Duration::from_secs(10)).await;
    assert_eq!(answer.unwrap().seq, 1);
    assert_eq!(ask(&journals, Operation::Read).await.unwrap().seq, 1);
}

/// The slot that a caller's entry was sent to is decided, whatever becomes of the caller.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_tears_nothing() {
    let memory: SharedStore = Arc::new(MemoryStore::new(SystemClock::shared()));
    let (put, get) = (Duration::from_secs(1), Duration::from_millis(1));
    let (store, _) = Slow::over(&memory, put, get);
    let journals = journals(&store, &KeySpace::new("").unwrap());
    let asked = ask(&journals, touch(1));
    assert!(
        tokio::time::timeout(Duration::from_millis(100), asked)
            .await
            .is_err()
    );
    journals.drain().await;
    assert_eq!(ask(&journals, Operation::Read).await.unwrap().seq, 0);
    assert_eq!(ask(&journals, touch(2)).await.unwrap().seq, 1);
}
