//! Saves and reads over a real endpoint: the fault-free part of what `save_faults` tries in process.

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use spillbox::artifact::library::Library;
use spillbox::artifact::list::ListQuery;
use spillbox::artifact::read::ReadError;
use spillbox::artifact::request::SaveRequest;
use spillbox::artifact::save::Saved;
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;
use spillbox::ids::Tenant;
use spillbox::limits::{CHUNK_BYTES, PART_BYTES};
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::testing::remove_all;
use spillbox::store::{DeleteFence, ListRequest, PutMode, SharedStore, Versioning, paging};

use super::endpoint::{Ground, Mode};
use super::suite::Suite;
use crate::support::crash::refusing;
use crate::support::library::{body, log, read_all, receipt, replica_under, request};

const SMALL: usize = 5_000;
const STREAMED: usize = PART_BYTES + 5_000;

/// One case's own corner of the bucket.
struct Corner<'a> {
    store: &'a SharedStore,
    keys: KeySpace,
    prefix: String,
    savers: usize,
}

impl Corner<'_> {
    fn replica(&self) -> Library {
        replica_under(self.store, &self.keys)
    }

    /// Saves through a replica that dies before it puts a key of this class.
    async fn crash_before(&self, class: &'static str, save: SaveRequest, bytes: &Bytes) {
        let store = refusing(self.store, class);
        let died = replica_under(&store, &self.keys);
        died.save(save, body(bytes)).await.unwrap_err();
        died.drain().await;
    }

    /// Keys of a class, once for every version and marker of each where the bucket has versions.
    async fn kept(&self, class: &str) -> Vec<String> {
        let mut keys = Vec::new();
        if self.store.versioning().await.unwrap() == Versioning::NeverEnabled {
            let request = ListRequest {
                prefix: self.prefix.clone(),
                ..ListRequest::default()
            };
            let mut pages = paging::list(&**self.store, request);
            while let Some(page) = pages.next_page().await.unwrap() {
                keys.extend(page.objects.into_iter().map(|listed| listed.key));
            }
        } else {
            let mut pages = paging::list_versions(&**self.store, &self.prefix);
            while let Some(page) = pages.next_page().await.unwrap() {
                keys.extend(page.versions.into_iter().map(|version| version.key));
            }
        }
        keys.retain(|key| key.contains(class));
        keys
    }

    async fn open_uploads(&self) -> usize {
        let mut pages = paging::list_uploads(&**self.store);
        let mut count = 0;
        while let Some(page) = pages.next_page().await.unwrap() {
            let ours = page.uploads.iter();
            count += ours.filter(|u| u.key.starts_with(&self.prefix)).count();
        }
        count
    }

    /// The key of the only body.
    async fn body_key(&self) -> Key {
        let bodies = self.kept("/b/").await;
        assert_eq!(bodies.len(), 1, "{bodies:?}");
        Key::parse(bodies[0].clone()).unwrap()
    }

    async fn save(&self, library: &Library, call: Option<&str>, bytes: &Bytes) -> Saved {
        library.save(request("s", call), body(bytes)).await.unwrap()
    }
}

async fn read_range(
    library: &Library,
    saved: &Saved,
    range: std::ops::Range<u64>,
) -> Result<Bytes, ReadError> {
    let artifact = saved.manifest.head.artifact_ref();
    let read = library
        .open(&Tenant::default(), &artifact, |_| range.clone())
        .await?;
    let pieces: Vec<Bytes> = read.into_stream().try_collect().await?;
    Ok(pieces.concat().into())
}

async fn reads_back(corner: &Corner<'_>, size: usize) {
    let bytes = log(size);
    for call in [None, Some("c")] {
        let saved = corner.save(&corner.replica(), call, &bytes).await;
        assert!(saved.is_new);
        assert_eq!(saved.manifest.head.body.size_bytes, size as u64);
        assert_eq!(saved.manifest.head.body.sha256, Sha256Digest::of(&bytes));
        let fresh = corner.replica();
        for _ in ["cold", "cached"] {
            let read = read_all(&fresh, &saved).await.unwrap();
            assert!(read == bytes, "{call:?}: other bytes came back");
        }
    }
    assert_eq!(corner.open_uploads().await, 0);
}

async fn ranges(corner: &Corner<'_>, size: usize) {
    let bytes = log(size);
    let library = corner.replica();
    let saved = corner.save(&library, None, &bytes).await;
    let (chunk, size) = (CHUNK_BYTES as u64, size as u64);
    let mut ranges = vec![0..1, 0..size, size - 1..size, size / 2..size / 2];
    for border in [chunk, 2 * chunk, PART_BYTES as u64] {
        if border + 2 <= size {
            ranges.extend([
                border - 1..border,
                border..border + 1,
                border - 2..border + 2,
            ]);
        }
    }
    for range in ranges {
        let read = read_range(&library, &saved, range.clone()).await.unwrap();
        let at = |offset: u64| usize::try_from(offset).unwrap();
        let expected = bytes.slice(at(range.start)..at(range.end));
        assert!(read == expected, "{range:?}");
    }
}

/// The same save again, here and on another replica, which takes the body that it had sent back.
async fn repeats(corner: &Corner<'_>, size: usize) {
    let bytes = log(size);
    let library = corner.replica();
    let first = corner.save(&library, Some("c"), &bytes).await;
    for again in [&library, &corner.replica(), &corner.replica()] {
        let saved = corner.save(again, Some("c"), &bytes).await;
        assert!(!saved.is_new);
        assert_eq!(receipt(again, &saved), receipt(&library, &first));
    }
    assert_eq!(corner.kept("/b/").await.len(), 1, "one body, no marker");
    assert_eq!(corner.kept("/a/").await.len(), 1, "one manifest");
    assert_eq!(corner.kept("/c/").await.len(), 1, "one record");
    let other = corner.save(&library, Some("c"), &log(size + 1)).await;
    assert!(other.is_new, "other bytes are another output");
}

async fn savers_agree(corner: &Corner<'_>, size: usize) {
    let bytes = log(size);
    for round in 0..3 {
        let call = format!("c{round}");
        let saves = (0..corner.savers).map(|_| async {
            let library = corner.replica();
            // An undecided write ends a save; its caller then repeats it, as the code says.
            for _ in 0..8 {
                match library.save(request("s", Some(&call)), body(&bytes)).await {
                    Ok(saved) => return receipt(&library, &saved),
                    Err(error) => assert!(error.code().is_retryable(), "{error}"),
                }
            }
            panic!("eight tries failed");
        });
        let receipts = join_all(saves).await;
        assert!(
            receipts.iter().all(|other| *other == receipts[0]),
            "round {round}"
        );
        assert_eq!(
            corner.kept("/a/").await.len(),
            round + 1,
            "one manifest a round"
        );
        assert_eq!(
            corner.kept("/c/").await.len(),
            round + 1,
            "one record a round"
        );
        assert_eq!(
            corner.kept("/b/").await.len(),
            round + 1,
            "losers took theirs back"
        );
    }
    assert_eq!(corner.open_uploads().await, 0);
    let library = corner.replica();
    let saved = corner.save(&library, Some("c0"), &bytes).await;
    assert!(!saved.is_new);
    assert!(read_all(&library, &saved).await.unwrap() == bytes);
}

async fn a_changed_body_is_an_error(corner: &Corner<'_>) {
    let bytes = log(3 * CHUNK_BYTES);
    let library = corner.replica();
    let saved = corner.save(&library, None, &bytes).await;
    let key = corner.body_key().await;
    let mut changed = bytes.to_vec();
    changed[CHUNK_BYTES + 7] ^= 1;
    let put = corner.store.put(&key, changed.into(), PutMode::Overwrite);
    put.await.unwrap();
    let second = CHUNK_BYTES as u64..CHUNK_BYTES as u64 + 1;
    for library in [&library, &corner.replica()] {
        let first = read_range(library, &saved, 0..10).await.unwrap();
        assert_eq!(first, bytes.slice(..10), "an untouched chunk is served");
        let error = read_range(library, &saved, second.clone())
            .await
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::BodyCorrupt, "{error}");
        let error = read_all(library, &saved).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BodyCorrupt, "{error}");
    }
}

async fn a_shorter_or_missing_body_is_an_error(corner: &Corner<'_>) {
    let library = corner.replica();
    let saved = corner.save(&library, None, &log(3 * CHUNK_BYTES)).await;
    let key = corner.body_key().await;
    let put = corner
        .store
        .put(&key, log(CHUNK_BYTES).into(), PutMode::Overwrite);
    put.await.unwrap();
    for range in [0..10, 2 * CHUNK_BYTES as u64..2 * CHUNK_BYTES as u64 + 1] {
        let error = read_range(&library, &saved, range).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BodyCorrupt, "{error}");
    }
    corner.store.delete(&key, DeleteFence::None).await.unwrap();
    let error = read_all(&library, &saved).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BodyCorrupt, "{error}");
}

async fn a_list_has_the_newest_first(corner: &Corner<'_>) {
    let library = corner.replica();
    let mut saved = Vec::new();
    for n in 0..5 {
        let saved_now = corner.save(&library, None, &log(100 + n)).await;
        saved.push(saved_now.manifest.head.artifact_id);
    }
    saved.reverse();
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let query = ListQuery {
            limit: 2,
            after,
            ..ListQuery::default()
        };
        let session = "s".parse().unwrap();
        let page = library
            .list(&Tenant::default(), &session, &query)
            .await
            .unwrap();
        listed.extend(page.heads.into_iter().map(|head| head.artifact_id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, saved);
}

/// A save that died before it put a key of `class` is finished by the next one of that call.
async fn a_crashed_save_is_finished(corner: &Corner<'_>, class: &'static str, size: usize) {
    let bytes = log(size);
    corner
        .crash_before(class, request("s", Some("c")), &bytes)
        .await;
    assert_eq!(corner.kept("/a/").await.len(), 0, "nothing is visible");
    let library = corner.replica();
    let saved = corner.save(&library, Some("c"), &bytes).await;
    assert!(read_all(&corner.replica(), &saved).await.unwrap() == bytes);
    let again = corner.save(&corner.replica(), Some("c"), &bytes).await;
    assert_eq!(receipt(&library, &saved), receipt(&library, &again));
    assert_eq!(corner.kept("/a/").await.len(), 1);
    assert_eq!(corner.kept("/c/").await.len(), 1);
    assert_eq!(corner.open_uploads().await, 0);
}

async fn a_fork_answers_from_its_parent(corner: &Corner<'_>) {
    let library = corner.replica();
    let bytes = log(SMALL);
    let parent = corner.save(&library, Some("c"), &bytes).await;
    let mut fork = request("fork", Some("c"));
    fork.parent = Some("s".parse().unwrap());
    let fresh = corner.replica();
    let saved = fresh.save(fork, body(&bytes)).await.unwrap();
    assert!(!saved.is_new);
    assert_eq!(receipt(&fresh, &saved), receipt(&library, &parent));
    assert_eq!(corner.kept("/b/").await.len(), 1);
}

async fn a_refused_body_leaves_nothing(corner: &Corner<'_>) {
    for size in [SMALL, STREAMED] {
        let library = corner.replica();
        let mut save = request("s", Some("c"));
        save.expected_digest = Some(Sha256Digest::of(b"other"));
        let error = library.save(save, body(&log(size))).await.unwrap_err();
        library.drain().await;
        assert_eq!(error.code(), ErrorCode::DigestMismatch, "{error}");
        for class in ["/a/", "/b/", "/c/"] {
            assert_eq!(corner.kept(class).await, Vec::<String>::new());
        }
        assert_eq!(corner.open_uploads().await, 0);
    }
}

/// Around the borders of a chunk, of what is known in full, and of parts.
const SIZES: [usize; 12] = [
    0,
    1,
    30_001,
    CHUNK_BYTES - 1,
    CHUNK_BYTES,
    CHUNK_BYTES + 1,
    PART_BYTES - 1,
    PART_BYTES,
    PART_BYTES + 1,
    2 * PART_BYTES,
    2 * PART_BYTES + 1,
    3 * PART_BYTES + 12_345,
];

async fn saves(mode: Mode) {
    let Some(ground) = Ground::open(mode).await else {
        return;
    };
    let mut suite = Suite::begin(format!("{} saves", ground.name));
    macro_rules! case {
        ($name:expr, $run:expr) => {
            let prefix = ground.fresh_prefix();
            let corner = Corner {
                store: &ground.store,
                keys: KeySpace::new(&prefix).unwrap(),
                savers: ground.capabilities.contenders.clamp(2, 5),
                prefix,
            };
            suite.case($name, $run(&corner)).await;
            remove_all(&*ground.store, &corner.prefix).await.unwrap();
        };
    }
    for size in SIZES {
        let name = format!("a_body_of_{size}_bytes_reads_back_as_saved");
        case!(&name, async |corner| reads_back(corner, size).await);
    }
    for (kind, size) in [("small", SMALL), ("streamed", STREAMED)] {
        let whole = size.max(3 * CHUNK_BYTES);
        let name = |what: &str| format!("{what} ({kind})");
        case!(&name("ranges_are_exact"), async |corner| ranges(
            corner, whole
        )
        .await);
        case!(&name("a_repeat_gives_the_same_receipt"), async |corner| {
            repeats(corner, size).await;
        });
        case!(&name("savers_of_one_call_agree"), async |corner| {
            savers_agree(corner, size).await;
        });
        case!(
            &name("a_save_that_died_before_its_manifest_is_finished"),
            async |corner| {
                a_crashed_save_is_finished(corner, "/a/", size).await;
            }
        );
    }
    case!(
        "a_save_that_died_before_its_body_is_finished",
        async |corner| {
            a_crashed_save_is_finished(corner, "/b/", SMALL).await;
        }
    );
    case!(
        "a_save_that_died_before_its_record_is_finished",
        async |corner| {
            a_crashed_save_is_finished(corner, "/c/", STREAMED).await;
        }
    );
    case!("a_changed_body_is_an_error", a_changed_body_is_an_error);
    case!(
        "a_shorter_or_missing_body_is_an_error",
        a_shorter_or_missing_body_is_an_error
    );
    case!("a_list_has_the_newest_first", a_list_has_the_newest_first);
    case!(
        "a_fork_answers_from_its_parent",
        a_fork_answers_from_its_parent
    );
    case!(
        "a_refused_body_leaves_nothing",
        a_refused_body_leaves_nothing
    );
    suite.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_plain_bucket_keeps_what_is_saved() {
    saves(Mode::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_versioned_bucket_keeps_what_is_saved() {
    saves(Mode::Versioned).await;
}
