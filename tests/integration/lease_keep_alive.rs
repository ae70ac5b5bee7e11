//! A receipt is not a lease: what using an old artifact does to its journal.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::request::SaveError;
use spillbox::artifact::save::Saved;
use spillbox::clock::{ManualClock, SharedClock};
use spillbox::ids::{ArtifactId, SessionKey, SystemIds, Tenant};
use spillbox::lease::entry::{CondemnReason, Condemned};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journals::Journals;
use spillbox::store::keys::KeySpace;
use spillbox::store::memory::MemoryStore;
use spillbox::store::{PutMode, SharedStore};

use crate::support::leases::session;
use crate::support::library::{body, log, read_all, request};

struct World {
    clock: Arc<ManualClock>,
    store: SharedStore,
}

impl World {
    fn new() -> Self {
        let start: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(start));
        let shared = Arc::clone(&clock) as SharedClock;
        let store: SharedStore = Arc::new(MemoryStore::new(shared));
        Self { clock, store }
    }

    fn pass(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    fn journals(&self) -> Journals {
        let clock = Arc::clone(&self.clock) as SharedClock;
        let keys = KeySpace::new("").unwrap();
        Journals::new(Arc::clone(&self.store), keys, clock, SystemIds::shared())
    }

    /// A replica of the service: 24 hours of TTL.
    fn replica(&self, options: LibraryOptions) -> Library {
        let format = StoreFormat {
            v: 1,
            orphan_ttl_seconds: 86_400,
        };
        let clock = Arc::clone(&self.clock) as SharedClock;
        let (store, keys) = (Arc::clone(&self.store), KeySpace::new("").unwrap());
        let library = Library::new(store, keys, format, clock, SystemIds::shared(), options);
        library.with_keep_alive(Arc::new(self.journals()))
    }

    /// Entries that refer to an artifact: none, or the record of the last one.
    async fn last_reference(&self, artifact_id: ArtifactId) -> Option<u64> {
        let read = self
            .journals()
            .submit(&Tenant::default(), &session(), Operation::Read)
            .await
            .unwrap();
        let artifact = read.state.artifact(artifact_id)?;
        artifact.last_reference.map(|reference| reference.seq)
    }

    async fn condemn(&self, artifact_id: ArtifactId, why: CondemnReason) {
        let condemned = Condemned {
            artifact_id,
            decision_id: None,
            sha256: None,
            size_bytes: None,
            etag: None,
            version_id: None,
            store_checksum: None,
            manifest_version_id: None,
            why,
            server_date: "2026-11-30T00:00:00Z".parse().unwrap(),
            plan_id: None,
        };
        let operation = Operation::Condemn(Box::new(condemned));
        let (tenant, session) = (Tenant::default(), session());
        let journals = self.journals();
        journals.submit(&tenant, &session, operation).await.unwrap();
    }
}

async fn save(library: &Library) -> Result<Saved, SaveError> {
    library
        .save(request("s", Some("call")), body(&log(500)))
        .await
}

fn aid(saved: &Saved) -> ArtifactId {
    saved.manifest.head.artifact_id
}

#[tokio::test]
async fn a_replay_of_an_old_save_refers_to_it_and_promises_time_again() {
    let world = World::new();
    let library = world.replica(LibraryOptions::default());
    let first = save(&library).await.unwrap();
    world.pass(12);
    let young = save(&library).await.unwrap();
    assert_eq!(world.last_reference(aid(&first)).await, None);
    let left = |saved: &Saved| library.receipt(&saved.manifest).orphan_ttl_seconds;
    assert_eq!(left(&young), 12 * 3600);
    world.pass(1);
    let old = save(&library).await.unwrap();
    assert_eq!((aid(&old), old.is_new), (aid(&first), false));
    assert_eq!(world.last_reference(aid(&first)).await, Some(0));
    assert_eq!(left(&old), 24 * 3600);
    // Another replica, which has to read the record first, does the same.
    let other = save(&world.replica(LibraryOptions::default()))
        .await
        .unwrap();
    assert_eq!(left(&other), 24 * 3600);
    assert_eq!(world.last_reference(aid(&first)).await, Some(1));
}

#[tokio::test]
async fn a_condemned_artifact_is_not_promised_again() {
    let world = World::new();
    let library = world.replica(LibraryOptions::default());
    let first = save(&library).await.unwrap();
    world.pass(20);
    world.condemn(aid(&first), CondemnReason::Expired).await;
    // Its manifest still stands; the reference is refused, and the next incarnation is taken.
    let second = save(&library).await.unwrap();
    assert!(second.is_new && aid(&second) != aid(&first));
    assert_eq!(read_all(&library, &second).await.unwrap(), log(500));
    world.pass(20);
    world.condemn(aid(&second), CondemnReason::Erased).await;
    assert!(matches!(save(&library).await, Err(SaveError::Erased(_))));
}

#[tokio::test]
async fn a_broken_journal_stops_no_replay() {
    let world = World::new();
    let library = world.replica(LibraryOptions::default());
    let first = save(&library).await.unwrap();
    world.pass(20);
    let session_key = SessionKey::derive(&Tenant::default(), &session());
    let keys = KeySpace::new("").unwrap();
    let key = keys.journal_record(&Tenant::default(), &session_key, 0);
    let damaged = bytes::Bytes::from_static(b"{}");
    let put = world
        .store
        .put(&key, damaged.into(), PutMode::CreateIfAbsent);
    put.await.unwrap();
    let again = save(&library).await.unwrap();
    assert_eq!(aid(&again), aid(&first));
    let left = library.receipt(&again.manifest).orphan_ttl_seconds;
    assert_eq!(left, 4 * 3600, "nothing was promised again");
}

#[tokio::test]
async fn reads_of_an_old_artifact_keep_it_once_in_half_a_ttl() {
    let world = World::new();
    let library = world.replica(LibraryOptions::default());
    let saved = save(&library).await.unwrap();
    let read = || async {
        read_all(&library, &saved).await.unwrap();
        library.drain().await;
        world.last_reference(aid(&saved)).await
    };
    assert_eq!(read().await, None, "young");
    world.pass(13);
    assert_eq!(read().await, Some(0));
    assert_eq!(read().await, Some(0), "this replica knows");
    let other = world.replica(LibraryOptions::default());
    read_all(&other, &saved).await.unwrap();
    other.drain().await;
    assert_eq!(
        world.last_reference(aid(&saved)).await,
        Some(0),
        "the journal says so"
    );
    world.pass(13);
    let later = world.replica(LibraryOptions::default());
    read_all(&later, &saved).await.unwrap();
    later.drain().await;
    assert_eq!(world.last_reference(aid(&saved)).await, Some(1));
}

#[tokio::test]
async fn reads_refer_to_nothing_where_that_is_switched_off_or_read_only() {
    let world = World::new();
    let saved = save(&world.replica(LibraryOptions::default()))
        .await
        .unwrap();
    world.pass(20);
    let off = LibraryOptions {
        touch_on_read: false,
        ..LibraryOptions::default()
    };
    let read_only = LibraryOptions {
        is_read_only: true,
        ..LibraryOptions::default()
    };
    for options in [off, read_only] {
        let library = world.replica(options);
        read_all(&library, &saved).await.unwrap();
        library.drain().await;
        assert_eq!(world.last_reference(aid(&saved)).await, None);
    }
    // A condemned artifact is served until its tombstone stands, and not referred to.
    world.condemn(aid(&saved), CondemnReason::Expired).await;
    let library = world.replica(LibraryOptions::default());
    read_all(&library, &saved).await.unwrap();
    library.drain().await;
    assert_eq!(world.last_reference(aid(&saved)).await, None);
}
