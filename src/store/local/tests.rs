use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use futures_util::TryStreamExt;
use jiff::SignedDuration;

use super::*;
use crate::clock::{Clock, ManualClock, SystemClock};
use crate::ids::{SeededIds, SystemIds};
use crate::limits::LOCAL_ETAG_END_BYTES;
use crate::store::ETag;

struct Fixture {
    store: LocalStore,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("store");
        let store = LocalStore::open(&root, SystemClock::shared(), SystemIds::shared()).unwrap();
        Self { store, directory }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    /// A file outside the store that nothing may touch.
    fn outside(&self) -> PathBuf {
        let path = self.directory.path().join("outside");
        put_file(&path, "secret");
        path
    }

    async fn create(&self, rest: &str, content: &str) -> PutReceipt {
        let mode = PutMode::CreateIfAbsent;
        self.store
            .put(&key(rest), content.to_owned().into(), mode)
            .await
            .unwrap()
    }

    /// Everything in the store's directory, directories with a slash.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let rest = path
                    .strip_prefix(self.root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                if path.is_dir() {
                    found.push(format!("{rest}/"));
                    open.push(path);
                } else {
                    found.push(rest);
                }
            }
        }
        found.sort();
        found.retain(|name| !name.starts_with("locks/@"));
        found
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests play the part of other programs"
)]
fn put_file(path: &Path, content: impl AsRef<[u8]>) {
    fs::write(path, content).unwrap();
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn all(prefix: &str) -> ListRequest {
    ListRequest {
        prefix: prefix.to_owned(),
        ..ListRequest::default()
    }
}

async fn read(store: &LocalStore, key: &Key) -> Vec<u8> {
    let GetReply::Found(object) = store.get(key, GetOptions::default()).await.unwrap() else {
        panic!("304 without a condition");
    };
    let pieces: Vec<_> = object.body.try_collect().await.unwrap();
    pieces.concat()
}

#[tokio::test]
async fn a_file_holds_the_bytes_and_nothing_else_stays() {
    let fixture = Fixture::new();
    fixture.create("v1/d", "of d").await;
    fixture.create("v1/d/e", "of e").await;
    let expected = [
        "locks/", "tmp/", "uploads/", "v1/", "v1/d/", "v1/d/e@", "v1/d@",
    ];
    assert_eq!(fixture.files(), expected);
    let path = fixture.store.object_path(&key("v1/d"));
    assert_eq!(path, fixture.root().join("v1/d@"));
    assert_eq!(fs::read(path).unwrap(), b"of d");

    // Refused and removed objects leave no file and no empty directory.
    let again = fixture
        .store
        .put(&key("v1/d"), "x".into(), PutMode::CreateIfAbsent)
        .await;
    assert!(again.unwrap_err().is(StoreErrorKind::AlreadyExists));
    for rest in ["v1/d", "v1/d/e"] {
        fixture
            .store
            .delete(&key(rest), DeleteFence::None)
            .await
            .unwrap();
    }
    assert_eq!(fixture.files(), ["locks/", "tmp/", "uploads/"]);
}

#[tokio::test]
async fn only_the_owner_may_read_files_and_directories() {
    let fixture = Fixture::new();
    fixture.create("v1/t/k", "x").await;
    let upload = fixture.store.create_upload(&key("v1/u")).await.unwrap();
    fixture
        .store
        .put_part(&upload, 1, "part".into())
        .await
        .unwrap();
    let names = fixture.files();
    assert!(names.iter().any(|name| name.contains("part-")), "{names:?}");
    for name in names.iter().map(String::as_str).chain([""]) {
        let path = fixture.root().join(name);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "`{name}`: {mode:o}");
    }
}

#[tokio::test]
async fn a_planted_link_to_a_file_is_denied_and_its_target_untouched() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    fixture.create("v1/neighbour", "x").await;
    let planted = key("v1/k");
    symlink(&outside, fixture.store.object_path(&planted)).unwrap();
    let store = &fixture.store;
    let etag = || ETag("\"x\"".into());
    let modes = [
        PutMode::CreateIfAbsent,
        PutMode::Overwrite,
        PutMode::ReplaceIfMatch(etag()),
    ];
    for mode in modes {
        let error = store
            .put(&planted, "evil".into(), mode.clone())
            .await
            .unwrap_err();
        assert!(error.is(StoreErrorKind::Denied), "{mode:?}: {error}");
    }
    for fence in [DeleteFence::None, DeleteFence::IfMatch(etag())] {
        let error = store.delete(&planted, fence).await.unwrap_err();
        assert!(error.is(StoreErrorKind::Denied), "{error}");
    }
    let upload = store.create_upload(&planted).await.unwrap();
    let part = store.put_part(&upload, 1, "evil".into()).await.unwrap();
    let error = store.complete_upload(&upload, &[part]).await.unwrap_err();
    assert!(error.is(StoreErrorKind::Denied), "{error}");
    for error in [
        store
            .get(&planted, GetOptions::default())
            .await
            .unwrap_err(),
        store.head(&planted).await.unwrap_err(),
    ] {
        assert!(error.is(StoreErrorKind::Denied), "{error}");
    }
    assert_eq!(fs::read(&outside).unwrap(), b"secret");
    assert!(
        fs::symlink_metadata(store.object_path(&planted))
            .unwrap()
            .is_symlink()
    );

    // Listed, so that it is met and reported; as nothing that anybody could have stored.
    let page = store.list(&all("v1/")).await.unwrap();
    let seen: Vec<_> = page
        .objects
        .iter()
        .map(|o| (o.key.as_str(), o.size_bytes))
        .collect();
    assert_eq!(seen, [("v1/k", 0), ("v1/neighbour", 1)]);
    assert_eq!(page.objects[0].etag.0, "\"denied\"");
}

#[tokio::test]
async fn a_planted_link_to_a_directory_is_denied_and_never_an_empty_listing() {
    let fixture = Fixture::new();
    let outside = fixture.directory.path().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    put_file(&outside.join("k@"), "secret");
    fixture.create("v1/t", "x").await;
    symlink(&outside, fixture.root().join("v1/s")).unwrap();
    let (store, planted) = (&fixture.store, key("v1/s/k"));
    let results = [
        store.get(&planted, GetOptions::default()).await.map(drop),
        store
            .put(&key("v1/s/new"), "x".into(), PutMode::CreateIfAbsent)
            .await
            .map(drop),
        store
            .put(&planted, "x".into(), PutMode::Overwrite)
            .await
            .map(drop),
        store.delete(&planted, DeleteFence::None).await.map(drop),
        store.list(&all("v1/")).await.map(drop),
        store.list(&all("v1/s/")).await.map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(error.is(StoreErrorKind::Denied), "{error}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("k@")).unwrap(), b"secret");
    let page = store.list(&all("v1/t")).await.unwrap();
    assert_eq!(
        page.objects.len(),
        1,
        "a listing that it does not concern goes on"
    );
}

#[tokio::test]
async fn foreign_files_are_not_listed() {
    let fixture = Fixture::new();
    fixture.create("v1/k", "x").await;
    for name in [
        "README",
        "v1/k",
        "v1/Upper@",
        "v1/é@",
        "v1/k@@",
        "v1/@",
        "v1/k.tmp~",
        "tmp/@x",
    ] {
        put_file(&fixture.root().join(name), "foreign");
    }
    fs::create_dir(fixture.root().join("lost+found")).unwrap();
    fs::create_dir(fixture.root().join("v1/x@")).unwrap();
    let page = fixture.store.list(&all("")).await.unwrap();
    let keys: Vec<_> = page.objects.iter().map(|o| o.key.as_str()).collect();
    assert_eq!(keys, ["v1/k"]);
}

#[tokio::test]
async fn the_etag_is_of_the_bytes_alone() {
    let fixture = Fixture::new();
    let edge = 2 * LOCAL_ETAG_END_BYTES;
    for size in [0, 1, edge - 1, edge, edge + 1, 5 * edge] {
        let content: Vec<u8> = (0..size).map(|n| (n / 251) as u8).collect();
        let key = key(&format!("v1/k{size}"));
        let mode = PutMode::CreateIfAbsent;
        let etag = fixture
            .store
            .put(&key, content.into(), mode)
            .await
            .unwrap()
            .etag;
        let path = fixture.store.object_path(&key);
        let copy = path.with_extension("copy");
        fs::copy(&path, &copy).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        fs::rename(&copy, &path).unwrap();
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
        fs::File::open(&path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        let head = fixture.store.head(&key).await.unwrap();
        assert_eq!(head.meta.etag, etag, "size {size}");
        assert_eq!(head.meta.last_modified.as_second(), 1_000);
    }
}

#[tokio::test]
async fn changed_bytes_change_the_etag() {
    let fixture = Fixture::new();
    let end = LOCAL_ETAG_END_BYTES;
    // Of a large file its ends and its size; the rest is the digests' to find.
    let cases = [
        (3, 0),
        (2 * end, end),
        (4 * end, 10),
        (4 * end, 4 * end - 1),
    ];
    for (size, at) in cases {
        let key = key(&format!("v1/k{size}-{at}"));
        let mode = PutMode::CreateIfAbsent;
        let etag = fixture
            .store
            .put(&key, vec![7; size].into(), mode)
            .await
            .unwrap()
            .etag;
        let mut content = vec![7; size];
        content[at] = 8;
        put_file(&fixture.store.object_path(&key), &content);
        assert_ne!(
            fixture.store.head(&key).await.unwrap().meta.etag,
            etag,
            "{size} {at}"
        );
        content[at] = 7;
        content.push(7);
        put_file(&fixture.store.object_path(&key), &content);
        assert_ne!(
            fixture.store.head(&key).await.unwrap().meta.etag,
            etag,
            "{size} longer"
        );
    }
}

#[tokio::test]
async fn a_reader_keeps_the_object_that_it_opened() {
    let fixture = Fixture::new();
    let key = key("v1/k");
    let put = |byte, mode| fixture.store.put(&key, vec![byte; 1 << 20].into(), mode);
    put(b'a', PutMode::CreateIfAbsent).await.unwrap();
    let reply = fixture
        .store
        .get(&key, GetOptions::default())
        .await
        .unwrap();
    let GetReply::Found(mut object) = reply else {
        panic!("304 without a condition");
    };
    let first = object.body.try_next().await.unwrap().unwrap();
    put(b'b', PutMode::Overwrite).await.unwrap();
    let rest: Vec<_> = object.body.try_collect().await.unwrap();
    let old = [first.to_vec(), rest.concat()].concat();
    assert!(old == vec![b'a'; 1 << 20]);
    assert!(read(&fixture.store, &key).await == vec![b'b'; 1 << 20]);
    fixture.store.delete(&key, DeleteFence::None).await.unwrap();
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_read_is_an_error_not_an_end() {
    let fixture = Fixture::new();
    let key = key("v1/k");
    let mode = PutMode::CreateIfAbsent;
    fixture
        .store
        .put(&key, vec![1; 1 << 20].into(), mode)
        .await
        .unwrap();
    let reply = fixture
        .store
        .get(&key, GetOptions::default())
        .await
        .unwrap();
    let GetReply::Found(object) = reply else {
        panic!("304 without a condition");
    };
    let file = fs::File::options()
        .write(true)
        .open(fixture.store.object_path(&key))
        .unwrap();
    file.set_len(300_000).unwrap();
    let result: Result<Vec<_>, _> = object.body.try_collect().await;
    assert!(result.unwrap_err().is(StoreErrorKind::Rejected));
}

/// Two handles share nothing but the directory, as two processes do: locks belong to the open file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_on_one_directory_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    // The same seed: even temporary names collide.
    let open = || {
        let ids = Arc::new(SeededIds::new(1));
        LocalStore::open(directory.path(), SystemClock::shared(), ids).unwrap()
    };
    let stores = [open(), open()];
    let count = key("v1/count");
    stores[0]
        .put(&count, "0".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in stores.iter().cycle().take(6).cloned().enumerate() {
        let count = count.clone();
        tasks.spawn(async move {
            let mut won = 0;
            for round in 0..10 {
                let fresh = key(&format!("v1/fresh/{round}"));
                let put = store.put(&fresh, number.to_string().into(), PutMode::CreateIfAbsent);
                match put.await {
                    Ok(_) => won += 1,
                    Err(error) => assert!(error.is(StoreErrorKind::AlreadyExists), "{error}"),
                }
                loop {
                    let head = store.get(&count, GetOptions::default()).await.unwrap();
                    let GetReply::Found(object) = head else {
                        panic!("304 without a condition");
                    };
                    let bytes: Vec<_> = object.body.try_collect().await.unwrap();
                    let text = String::from_utf8(bytes.concat()).unwrap();
                    let next = (text.parse::<u32>().unwrap() + 1).to_string();
                    let mode = PutMode::ReplaceIfMatch(object.meta.etag);
                    match store.put(&count, next.into(), mode).await {
                        Ok(_) => break,
                        Err(error) => assert!(error.is(StoreErrorKind::PreconditionFailed)),
                    }
                }
            }
            won
        });
    }
    let won: u32 = tasks.join_all().await.into_iter().sum();
    assert_eq!(won, 10, "each key was created once");
    assert_eq!(read(&stores[1], &count).await, b"60");
}

/// The last delete takes the directory away, the next create makes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_directory_that_empties_and_fills_fails_nobody() {
    let fixture = Fixture::new();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let store = fixture.store.clone();
        tasks.spawn(async move {
            let key = key(&format!("v1/a/b/c/{number}"));
            for _ in 0..40 {
                store
                    .put(&key, "x".into(), PutMode::CreateIfAbsent)
                    .await
                    .unwrap();
                store
                    .put(&key, "y".into(), PutMode::Overwrite)
                    .await
                    .unwrap();
                store.list(&all("v1/")).await.unwrap();
                store.delete(&key, DeleteFence::None).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(fixture.files(), ["locks/", "tmp/", "uploads/"]);
}

#[tokio::test]
async fn what_crashed_writers_left_is_swept_after_a_day() {
    let fixture = Fixture::new();
    let (temporary, uploads) = (fixture.root().join("tmp"), fixture.root().join("uploads"));
    let upload = fixture.store.create_upload(&key("v1/u")).await.unwrap();
    fixture
        .create("tmp/k", "an object whose key begins with tmp")
        .await;
    put_file(&temporary.join("@left"), "half");
    fs::create_dir(temporary.join("@upload")).unwrap();
    put_file(&temporary.join("@upload/key"), "v1/k");

    let open_at = |hours: i64| {
        let clock = ManualClock::new(SystemClock.now() + SignedDuration::from_hours(hours));
        LocalStore::open(&fixture.root(), Arc::new(clock), SystemIds::shared()).unwrap()
    };
    let store = open_at(23);
    assert_eq!(store.sweep_temporary().await.unwrap(), 0);
    assert!(temporary.join("@left").exists() && temporary.join("@upload").exists());
    open_at(25);
    assert!(!temporary.join("@left").exists() && !temporary.join("@upload").exists());
    assert_eq!(
        read(&store, &key("tmp/k")).await,
        b"an object whose key begins with tmp"
    );
    assert!(
        uploads.join(format!("@{}", upload.upload_id)).exists(),
        "uploads are not swept"
    );
    put_file(&temporary.join("@left"), "half");
    let late = ManualClock::new(SystemClock.now() + SignedDuration::from_hours(25));
    let mut store = store;
    store.inner = Arc::new(Inner {
        tree: Tree::open(&fixture.root()).unwrap(),
        clock: Arc::new(late),
        ids: SystemIds::shared(),
    });
    assert_eq!(store.sweep_temporary().await.unwrap(), 1);
    assert!(!temporary.join("@left").exists());
}

#[tokio::test]
async fn dates_and_times_are_of_the_clock_given() {
    let directory = tempfile::tempdir().unwrap();
    let start: Timestamp = "2031-05-06T07:08:09Z".parse().unwrap();
    let clock = Arc::new(ManualClock::new(start));
    let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
    let store = LocalStore::open(directory.path(), shared, SystemIds::shared()).unwrap();
    let put = store
        .put(&key("v1/k"), "x".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    assert_eq!(put.date, Some(start));
    let upload = store.create_upload(&key("v1/u")).await.unwrap();
    clock.advance(SignedDuration::from_hours(1));
    store.put_part(&upload, 1, "x".into()).await.unwrap();
    let head = store.head(&key("v1/k")).await.unwrap();
    assert_eq!(head.meta.last_modified, start);
    assert_eq!(head.date, Some(start + SignedDuration::from_hours(1)));
    let uploads = store.list_uploads(None).await.unwrap().uploads;
    assert_eq!(
        uploads[0].initiated,
        Some(start),
        "a part does not make an upload younger"
    );
}

#[tokio::test]
async fn an_upload_id_is_never_a_path() {
    let fixture = Fixture::new();
    let upload = fixture.store.create_upload(&key("v1/u")).await.unwrap();
    let id = &upload.upload_id;
    let foreign = [
        "",
        ".",
        "..",
        "../v1",
        "/etc",
        "x/../@y",
        &id.to_uppercase(),
        &format!("{id}/"),
    ];
    for id in foreign {
        let upload = Upload {
            upload_id: id.to_owned(),
            ..upload.clone()
        };
        let error = fixture
            .store
            .put_part(&upload, 1, "x".into())
            .await
            .unwrap_err();
        assert!(error.is(StoreErrorKind::NotFound), "{id}: {error}");
        fixture.store.abort_upload(&upload).await.unwrap();
    }
    let other = Upload {
        key: key("v1/other"),
        ..upload.clone()
    };
    let error = fixture
        .store
        .put_part(&other, 1, "x".into())
        .await
        .unwrap_err();
    assert!(
        error.is(StoreErrorKind::NotFound),
        "another key's upload: {error}"
    );
    assert_eq!(
        fixture
            .store
            .list_uploads(None)
            .await
            .unwrap()
            .uploads
            .len(),
        1
    );
}

#[tokio::test]
async fn a_part_changed_on_the_disk_is_not_completed() {
    let fixture = Fixture::new();
    let upload = fixture.store.create_upload(&key("v1/u")).await.unwrap();
    let size = 4 * LOCAL_ETAG_END_BYTES;
    let part = fixture
        .store
        .put_part(&upload, 1, vec![7; size].into())
        .await
        .unwrap();
    // In the middle, which the ETag does not cover.
    let mut content = vec![7; size];
    content[size / 2] = 8;
    let path = fixture
        .root()
        .join(format!("uploads/@{}/part-00001", upload.upload_id));
    put_file(&path, &content);
    let error = fixture
        .store
        .complete_upload(&upload, &[part])
        .await
        .unwrap_err();
    assert!(error.is(StoreErrorKind::Rejected), "{error}");
    assert!(
        fixture
            .store
            .head(&key("v1/u"))
            .await
            .unwrap_err()
            .is(StoreErrorKind::NotFound)
    );
    assert_eq!(fs::read_dir(fixture.root().join("tmp")).unwrap().count(), 0);
}
