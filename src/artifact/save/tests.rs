use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use super::*;
use crate::artifact::format::StoreFormat;
use crate::artifact::library::LibraryOptions;
use crate::artifact::list::ListQuery;
use crate::artifact::read::ReadError;
use crate::artifact::receipt::Receipt;
use crate::clock::ManualClock;
use crate::digest::Sha256Digest;
use crate::ids::{SeededIds, Tenant};
use crate::limits::{CHUNK_BYTES, PART_BYTES};
use crate::store::local::LocalStore;
use crate::store::memory::MemoryStore;
use crate::store::{DeleteFence, ListRequest, Payload, PutMode, SharedStore, paging};

struct Bed {
    _directory: Option<tempfile::TempDir>,
    library: Library,
    store: SharedStore,
    clock: Arc<ManualClock>,
}

impl Bed {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ));
        let store: SharedStore = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
        Self {
            _directory: None,
            library: Self::replica(&store, &clock, 1),
            store,
            clock,
        }
    }

    /// Over a directory, which keeps no checksums.
    fn on_directory() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Self::new().clock;
        let ids = Arc::new(SeededIds::new(99));
        let opened = LocalStore::open(directory.path(), Arc::clone(&clock) as _, ids).unwrap();
        let store: SharedStore = Arc::new(opened);
        Self {
            _directory: Some(directory),
            library: Self::replica(&store, &clock, 1),
            store,
            clock,
        }
    }

    fn replica(store: &SharedStore, clock: &Arc<ManualClock>, seed: u16) -> Library {
        let format = StoreFormat {
            v: 1,
            orphan_ttl_seconds: 86_400,
        };
        let options = LibraryOptions::default();
        let (clock, ids) = (Arc::clone(clock), Arc::new(SeededIds::new(seed)));
        let keys = crate::store::keys::KeySpace::new("").unwrap();
        Library::new(Arc::clone(store), keys, format, clock, ids, options)
    }

    async fn keys(&self) -> Vec<String> {
        let mut pages = paging::list(&*self.store, ListRequest::default());
        let mut keys = Vec::new();
        while let Some(page) = pages.next_page().await.unwrap() {
            keys.extend(page.objects.into_iter().map(|listed| listed.key));
        }
        keys
    }

    async fn count(&self, class: &str) -> usize {
        let needle = format!("/{class}/");
        self.keys()
            .await
            .iter()
            .filter(|key| key.contains(&needle))
            .count()
    }
}

fn request(session: &str, call: Option<&str>) -> SaveRequest {
    let mut request = SaveRequest::new(Tenant::default(), session.parse().unwrap());
    request.call_id = call.map(|call| call.parse().unwrap());
    request
}

/// The body in pieces of uneven size, as a socket brings it.
fn body(bytes: &[u8]) -> BodyStream {
    let pieces: Vec<_> = bytes
        .chunks(100_003)
        .map(Bytes::copy_from_slice)
        .map(Ok)
        .collect();
    stream::iter(pieces).boxed()
}

fn log(size: usize) -> Vec<u8> {
    (0..)
        .flat_map(|n| format!("line {n} of a log\n").into_bytes())
        .take(size)
        .collect()
}

async fn read_all(library: &Library, saved: &Saved) -> Result<Vec<u8>, ReadError> {
    let artifact = saved.manifest.head.artifact_ref();
    let read = library
        .open(&Tenant::default(), &artifact, |manifest| {
            0..manifest.head.body.size_bytes
        })
        .await?;
    let pieces: Vec<Bytes> = read.into_stream().try_collect().await?;
    Ok(pieces.concat())
}

#[tokio::test]
async fn what_was_saved_comes_back_at_every_size_around_the_borders() {
    let bed = Bed::new();
    let sizes = [
        0,
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        PART_BYTES,
        PART_BYTES + 1,
        3 * PART_BYTES + 7,
    ];
    for size in sizes {
        for call in [None, Some("c")] {
            let bytes = log(size);
            let saved = bed
                .library
                .save(request("s", call), body(&bytes))
                .await
                .unwrap();
            assert!(saved.is_new);
            assert_eq!(saved.manifest.head.body.sha256, Sha256Digest::of(&bytes));
            assert_eq!(
                read_all(&bed.library, &saved).await.unwrap(),
                bytes,
                "{size}"
            );
        }
    }
    assert_eq!(bed.count("b").await, 16);
    assert_eq!(bed.count("a").await, 16);
    assert_eq!(bed.count("c").await, 8);
    assert!(
        bed.store
            .list_uploads(None)
            .await
            .unwrap()
            .uploads
            .is_empty()
    );
}

#[tokio::test]
async fn the_same_save_again_gives_the_same_receipt_on_every_replica() {
    for size in [5_000, PART_BYTES + 9] {
        let bed = Bed::new();
        let bytes = log(size);
        let first = bed
            .library
            .save(request("s", Some("c")), body(&bytes))
            .await
            .unwrap();
        let other = Bed::replica(&bed.store, &bed.clock, 2);
        for library in [&bed.library, &other, &other] {
            let again = library
                .save(request("s", Some("c")), body(&bytes))
                .await
                .unwrap();
            assert!(!again.is_new);
            let ttl = library.orphan_ttl();
            let now = Timestamp::from_second(1_800_000_000).unwrap();
            assert_eq!(
                Receipt::of(&again.manifest, ttl, now),
                Receipt::of(&first.manifest, ttl, now)
            );
        }
        assert_eq!(
            (
                bed.count("a").await,
                bed.count("b").await,
                bed.count("c").await
            ),
            (1, 1, 1)
        );
    }
}

#[tokio::test]
async fn five_savers_at_once_agree_and_leave_one_manifest_and_one_body() {
    for size in [5_000, PART_BYTES + 9] {
        let bed = Bed::new();
        let bytes = log(size);
        let savers = (0..5).map(|seed| {
            let library = Bed::replica(&bed.store, &bed.clock, seed + 10);
            let bytes = bytes.clone();
            async move {
                library
                    .save(request("s", Some("c")), body(&bytes))
                    .await
                    .unwrap()
            }
        });
        let saved = futures_util::future::join_all(savers).await;
        let ids: std::collections::HashSet<_> = saved
            .iter()
            .map(|saved| saved.manifest.head.artifact_id)
            .collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(saved.iter().filter(|saved| saved.is_new).count(), 1);
        assert_eq!(
            (
                bed.count("a").await,
                bed.count("b").await,
                bed.count("c").await
            ),
            (1, 1, 1)
        );
    }
}

#[tokio::test]
async fn the_same_call_with_other_bytes_is_another_artifact() {
    let bed = Bed::new();
    let first = bed
        .library
        .save(request("s", Some("call_0")), body(b"AAAA"))
        .await
        .unwrap();
    let second = bed
        .library
        .save(request("s", Some("call_0")), body(b"BBBB"))
        .await
        .unwrap();
    assert_ne!(
        first.manifest.head.artifact_id,
        second.manifest.head.artifact_id
    );
    assert_eq!(read_all(&bed.library, &first).await.unwrap(), b"AAAA");
    assert_eq!(read_all(&bed.library, &second).await.unwrap(), b"BBBB");
}

#[tokio::test]
async fn a_body_that_is_not_as_stated_leaves_nothing() {
    for size in [100, PART_BYTES + 100] {
        let bed = Bed::new();
        let bytes = log(size);
        let mut wrong_digest = request("s", Some("c"));
        wrong_digest.expected_digest = Some(Sha256Digest::of(b"other"));
        let error = bed
            .library
            .save(wrong_digest, body(&bytes))
            .await
            .unwrap_err();
        assert!(matches!(error, SaveError::DigestMismatch { .. }), "{error}");

        let mut short = request("s", Some("c"));
        short.expected_bytes = Some(size as u64 + 1);
        let error = bed.library.save(short, body(&bytes)).await.unwrap_err();
        assert!(
            matches!(error, SaveError::Body(BodyError::Incomplete(_))),
            "{error}"
        );

        let broken = body(&bytes).chain(stream::iter([Err(BodyError::Incomplete("cut".into()))]));
        let error = bed
            .library
            .save(request("s", None), broken.boxed())
            .await
            .unwrap_err();
        assert!(
            matches!(error, SaveError::Body(BodyError::Incomplete(_))),
            "{error}"
        );

        bed.library.drain().await;
        assert_eq!(bed.keys().await, Vec::<String>::new());
        assert!(
            bed.store
                .list_uploads(None)
                .await
                .unwrap()
                .uploads
                .is_empty()
        );
    }
}

#[tokio::test]
async fn the_cap_holds_while_streaming_and_before() {
    let bed = Bed::new();
    let mut library = bed.library.clone();
    library.options = Arc::new(LibraryOptions {
        max_body_bytes: PART_BYTES as u64 + 10,
        ..LibraryOptions::default()
    });
    let at_cap = log(PART_BYTES + 10);
    library
        .save(request("s", None), body(&at_cap))
        .await
        .unwrap();
    let keys = bed.keys().await;
    let over = log(PART_BYTES + 11);
    let mut stated = request("s", None);
    stated.expected_bytes = Some(over.len() as u64);
    for request in [request("s", None), stated] {
        let error = library.save(request, body(&over)).await.unwrap_err();
        assert_eq!(error.code(), crate::error::ErrorCode::BodyTooLarge);
    }
    library.drain().await;
    assert_eq!(bed.keys().await, keys);
}

#[tokio::test]
async fn a_crashed_save_is_finished_by_the_next_one() {
    let bed = Bed::new();
    let bytes = log(5_000);
    let saved = bed
        .library
        .save(request("s", Some("c")), body(&bytes))
        .await
        .unwrap();
    let artifact = saved.manifest.head.artifact_ref();
    // As after a crash between record and manifest: the manifest is not there, then the body neither.
    for also_body in [false, true] {
        let manifest_key = bed.library.keys.manifest(&Tenant::default(), &artifact);
        bed.store
            .delete(&manifest_key, DeleteFence::None)
            .await
            .unwrap();
        if also_body {
            let body_key = bed.library.keys.body(&Tenant::default(), &artifact);
            bed.store
                .delete(&body_key, DeleteFence::None)
                .await
                .unwrap();
        }
        let other = Bed::replica(&bed.store, &bed.clock, 20 + u16::from(also_body));
        let again = other
            .save(request("s", Some("c")), body(&bytes))
            .await
            .unwrap();
        assert_eq!(again.manifest.head.artifact_ref(), artifact);
        assert_eq!(read_all(&other, &again).await.unwrap(), bytes);
        assert_eq!((bed.count("a").await, bed.count("b").await), (1, 1));
    }
}

async fn entomb(bed: &Bed, saved: &Saved, reason: TombstoneReason) {
    let head = &saved.manifest.head;
    let tombstone = Tombstone {
        v: 1,
        artifact_id: head.artifact_id,
        tombstone: reason,
        decision_id: head.decision_id,
        sha256: Some(head.body.sha256),
        size_bytes: Some(head.body.size_bytes),
        deleted_at: Some("2026-11-30T00:00:00Z".into()),
    };
    let artifact = head.artifact_ref();
    let key = bed.library.keys.manifest(&Tenant::default(), &artifact);
    bed.store
        .put(&key, Payload::from(tombstone.encode()), PutMode::Overwrite)
        .await
        .unwrap();
    let body_key = bed.library.keys.body(&Tenant::default(), &artifact);
    bed.store
        .delete(&body_key, DeleteFence::None)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_collected_output_is_saved_anew_and_an_erased_one_is_gone() {
    let bed = Bed::new();
    let bytes = log(5_000);
    let first = bed
        .library
        .save(request("s", Some("c")), body(&bytes))
        .await
        .unwrap();
    entomb(&bed, &first, TombstoneReason::Expired).await;
    assert!(
        matches!(read_all(&bed.library, &first).await, Err(ReadError::Deleted(d)) if d.reason == "expired")
    );
    let second = bed
        .library
        .save(request("s", Some("c")), body(&bytes))
        .await
        .unwrap();
    assert!(second.is_new && second.manifest.head.artifact_id != first.manifest.head.artifact_id);
    assert_eq!((bed.count("b").await, bed.count("c").await), (1, 2));
    entomb(&bed, &second, TombstoneReason::Erased).await;
    let error = bed
        .library
        .save(request("s", Some("c")), body(&bytes))
        .await
        .unwrap_err();
    assert!(matches!(error, SaveError::Erased(_)), "{error}");
    assert_eq!(
        bed.count("b").await,
        0,
        "the refused save took its body back"
    );
}

#[tokio::test]
async fn a_fork_replays_its_parents_decision_and_saves_new_output_in_its_own_session() {
    let bed = Bed::new();
    let bytes = log(5_000);
    let parents = bed
        .library
        .save(request("parent", Some("c")), body(&bytes))
        .await
        .unwrap();
    let mut fork = request("child", Some("c"));
    fork.parent = Some("parent".parse().unwrap());
    let replayed = bed.library.save(fork.clone(), body(&bytes)).await.unwrap();
    assert_eq!(
        replayed.manifest.head.artifact_ref(),
        parents.manifest.head.artifact_ref()
    );
    assert_eq!((bed.count("a").await, bed.count("b").await), (1, 1));
    let own = bed.library.save(fork.clone(), body(b"new")).await.unwrap();
    assert_eq!(
        own.manifest.head.parent_session.as_ref().unwrap().as_str(),
        "parent"
    );
    assert_eq!(own.manifest.head.session.as_str(), "child");

    fork.parent = Some("other".parse().unwrap());
    let error = bed
        .library
        .save(fork.clone(), body(b"x"))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        SaveError::Session(crate::artifact::session::SessionError::ParentConflict { .. })
    ));
    let mut orphan = request("grandchild", None);
    orphan.parent = Some("never".parse().unwrap());
    let error = bed.library.save(orphan, body(b"x")).await.unwrap_err();
    assert_eq!(error.code(), crate::error::ErrorCode::ParentNotFound);
    let mut late = request("parent", None);
    late.parent = Some("child".parse().unwrap());
    assert_eq!(
        bed.library.save(late, body(b"x")).await.unwrap_err().code(),
        crate::error::ErrorCode::ParentConflict
    );
}

#[tokio::test]
async fn a_body_changed_behind_the_service_is_an_error_whole_and_by_range() {
    let bed = Bed::new();
    let bytes = log(3 * CHUNK_BYTES);
    let saved = bed
        .library
        .save(request("s", None), body(&bytes))
        .await
        .unwrap();
    let artifact = saved.manifest.head.artifact_ref();
    let key = bed.library.keys.body(&Tenant::default(), &artifact);
    let mut changed = bytes.clone();
    changed[2 * CHUNK_BYTES + 5] ^= 1;
    bed.store
        .put(&key, Payload::from(changed), PutMode::Overwrite)
        .await
        .unwrap();
    assert!(matches!(
        read_all(&bed.library, &saved).await,
        Err(ReadError::Corrupt(_))
    ));
    let open = |range: std::ops::Range<u64>| {
        bed.library
            .open(&saved.manifest.head.tenant, &artifact, move |_| {
                range.clone()
            })
    };
    let mut good = open(10..20).await.unwrap();
    assert_eq!(good.next().await.unwrap().unwrap(), &bytes[10..20]);
    let in_third = 2 * CHUNK_BYTES as u64 + 100;
    assert!(matches!(
        open(in_third..in_third + 1).await,
        Err(ReadError::Corrupt(_))
    ));

    bed.store
        .put(&key, Payload::from(&b"short"[..]), PutMode::Overwrite)
        .await
        .unwrap();
    assert!(matches!(open(0..1).await, Err(ReadError::Corrupt(_))));
    bed.store.delete(&key, DeleteFence::None).await.unwrap();
    assert!(matches!(open(0..1).await, Err(ReadError::Corrupt(_))));
}

#[tokio::test]
async fn a_list_recovers_every_locator_newest_first() {
    let bed = Bed::new();
    let mut ids = Vec::new();
    for n in 0..64 {
        let mut save = request("s", Some(&format!("call_{n}")));
        save.tool = Some(if n % 2 == 0 { "bash" } else { "grep" }.into());
        let saved = bed
            .library
            .save(save, body(format!("output {n}").as_bytes()))
            .await
            .unwrap();
        ids.insert(0, saved.manifest.head.artifact_id);
    }
    let mut query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    let mut listed = Vec::new();
    loop {
        let page = bed
            .library
            .list(&Tenant::default(), &"s".parse().unwrap(), &query)
            .await
            .unwrap();
        assert!(page.heads.len() <= 10);
        listed.extend(page.heads.iter().map(|head| head.artifact_id));
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    assert_eq!(listed, ids);
    let only_grep = ListQuery {
        limit: 100,
        tool: Some("grep".into()),
        ..ListQuery::default()
    };
    let page = bed
        .library
        .list(&Tenant::default(), &"s".parse().unwrap(), &only_grep)
        .await
        .unwrap();
    assert_eq!(page.heads.len(), 32);
    let none = bed
        .library
        .list(&Tenant::default(), &"unused".parse().unwrap(), &query)
        .await
        .unwrap();
    assert!(none.heads.is_empty() && none.next.is_none());
}

/// The store after a crash: the record is there, the manifest is not.
async fn forget_manifest(bed: &Bed, saved: &Saved) {
    let artifact = saved.manifest.head.artifact_ref();
    let key = bed.library.keys.manifest(&Tenant::default(), &artifact);
    bed.store.delete(&key, DeleteFence::None).await.unwrap();
}

#[tokio::test]
async fn a_save_is_never_finished_over_a_body_that_was_changed() {
    for (size, has_checksums) in [(5_000, true), (5_000, false), (PART_BYTES + 9, true)] {
        let bed = if has_checksums {
            Bed::new()
        } else {
            Bed::on_directory()
        };
        let bytes = log(size);
        let save = request("s", Some("c"));
        let saved = bed.library.save(save.clone(), body(&bytes)).await.unwrap();
        forget_manifest(&bed, &saved).await;
        let artifact = saved.manifest.head.artifact_ref();
        let key = bed.library.keys.body(&Tenant::default(), &artifact);
        let mut changed = bytes.clone();
        changed[17] ^= 1;
        bed.store
            .put(&key, Payload::from(changed), PutMode::Overwrite)
            .await
            .unwrap();
        let other = Bed::replica(&bed.store, &bed.clock, 40);
        let error = other.save(save, body(&bytes)).await.unwrap_err();
        assert_eq!(
            error.code(),
            crate::error::ErrorCode::BodyCorrupt,
            "{error}"
        );
        assert_eq!(bed.count("a").await, 0, "no manifest over other bytes");
    }
}

#[tokio::test]
async fn a_streamed_body_that_was_lost_is_saved_anew() {
    let bed = Bed::new();
    let bytes = log(PART_BYTES + 9);
    let save = request("s", Some("c"));
    let first = bed.library.save(save.clone(), body(&bytes)).await.unwrap();
    forget_manifest(&bed, &first).await;
    let artifact = first.manifest.head.artifact_ref();
    let key = bed.library.keys.body(&Tenant::default(), &artifact);
    bed.store.delete(&key, DeleteFence::None).await.unwrap();
    let other = Bed::replica(&bed.store, &bed.clock, 41);
    let second = other.save(save.clone(), body(&bytes)).await.unwrap();
    assert_ne!(second.manifest.head.artifact_ref(), artifact);
    assert_eq!(read_all(&other, &second).await.unwrap(), bytes);
    let again = Bed::replica(&bed.store, &bed.clock, 42)
        .save(save, body(&bytes))
        .await
        .unwrap();
    assert_eq!(
        again.manifest.head.artifact_ref(),
        second.manifest.head.artifact_ref()
    );
    assert_eq!((bed.count("b").await, bed.count("c").await), (1, 2));
}
