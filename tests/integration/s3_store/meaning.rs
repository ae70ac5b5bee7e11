//! What each operation of the trait means, through the real client.

use futures_util::TryStreamExt;
use spillbox::store::keys::Key;
use spillbox::store::{
    DeleteFence, ETag, GetOptions, GetReply, ListRequest, ObjectStore, Payload, PutMode,
    StoreError, StoreErrorKind, VersionId, Versioning,
};

use crate::support::s3_server::{Action, BucketVersioning, Fault, Op, Quirks, S3Server};

pub(super) fn key(text: &str) -> Key {
    Key::parse(text).expect("a test names keys of ours")
}

pub(super) async fn read(
    store: &impl ObjectStore,
    at: &str,
    options: GetOptions,
) -> Result<Vec<u8>, StoreError> {
    match store.get(&key(at), options).await? {
        GetReply::Found(object) => {
            let size = object.range.end - object.range.start;
            let frames: Vec<bytes::Bytes> = object.body.try_collect().await?;
            let bytes = frames.concat();
            assert_eq!(bytes.len() as u64, size);
            Ok(bytes)
        }
        GetReply::NotModified { .. } => panic!("not modified"),
    }
}

pub(super) fn kind_of<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> StoreErrorKind {
    outcome.expect_err("the request fails").kind
}

fn range(range: std::ops::Range<u64>) -> GetOptions {
    GetOptions {
        range: Some(range),
        ..GetOptions::default()
    }
}

#[tokio::test]
async fn put_modes_mean_what_they_say() {
    let server = S3Server::start();
    let store = server.store();
    let at = key("v1/x");
    let first = store
        .put(&at, "one".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    assert!(first.date.is_some());
    assert_eq!(first.checksum.as_deref(), Some("crc32:emyG8Q=="));
    let again = store.put(&at, "two".into(), PutMode::CreateIfAbsent).await;
    assert_eq!(kind_of(again), StoreErrorKind::AlreadyExists);
    let stale = ETag("\"nonsense\"".into());
    let replace = store
        .put(&at, "two".into(), PutMode::ReplaceIfMatch(stale.clone()))
        .await;
    assert_eq!(kind_of(replace), StoreErrorKind::PreconditionFailed);
    let missing = store
        .put(&key("v1/y"), "y".into(), PutMode::ReplaceIfMatch(stale))
        .await;
    assert_eq!(kind_of(missing), StoreErrorKind::PreconditionFailed);
    store
        .put(&at, "two".into(), PutMode::ReplaceIfMatch(first.etag))
        .await
        .unwrap();
    assert_eq!(server.bytes("v1/x").unwrap(), "two");
    store
        .put(&at, "three".into(), PutMode::Overwrite)
        .await
        .unwrap();
    assert_eq!(server.bytes("v1/x").unwrap(), "three");
}

#[tokio::test]
async fn reads_give_ranges_conditions_and_the_whole_size() {
    let server = S3Server::start();
    let store = server.store();
    let receipt = store
        .put(&key("k"), "0123456789".into(), PutMode::Overwrite)
        .await
        .unwrap();
    assert_eq!(
        read(&store, "k", GetOptions::default()).await.unwrap(),
        b"0123456789"
    );
    assert_eq!(read(&store, "k", range(2..5)).await.unwrap(), b"234");
    assert_eq!(read(&store, "k", range(8..99)).await.unwrap(), b"89");
    for empty in [10..12, 3..3] {
        let error = store.get(&key("k"), range(empty)).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::InvalidRange);
    }
    let GetReply::Found(part) = store.get(&key("k"), range(2..5)).await.unwrap() else {
        panic!("not found");
    };
    assert_eq!((part.meta.size_bytes, part.range), (10, 2..5));
    assert!(part.date.is_some());

    let known = GetOptions {
        if_none_match: Some(receipt.etag.clone()),
        ..GetOptions::default()
    };
    match store.get(&key("k"), known).await.unwrap() {
        GetReply::NotModified { date } => assert!(date.is_some()),
        GetReply::Found(_) => panic!("a known version was sent again"),
    }
    let other = GetOptions {
        if_match: Some(ETag("\"other\"".into())),
        ..GetOptions::default()
    };
    let error = store.get(&key("k"), other).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::PreconditionFailed);

    let head = store.head(&key("k")).await.unwrap();
    assert_eq!((head.meta.size_bytes, &head.meta.etag), (10, &receipt.etag));
    assert_eq!(head.meta.checksum, receipt.checksum);
    assert!(head.date.is_some());
    assert_eq!(
        kind_of(store.head(&key("none")).await),
        StoreErrorKind::NotFound
    );
    let absent = store.get(&key("none"), GetOptions::default()).await;
    assert_eq!(kind_of(absent), StoreErrorKind::NotFound);
}

#[tokio::test]
async fn empty_objects_are_objects() {
    let server = S3Server::start();
    let store = server.store();
    store
        .put(&key("k"), Payload::default(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    assert_eq!(read(&store, "k", GetOptions::default()).await.unwrap(), b"");
    assert_eq!(store.head(&key("k")).await.unwrap().meta.size_bytes, 0);
}

#[tokio::test]
async fn a_server_that_ignores_ranges_is_cut_to_the_range() {
    let server = S3Server::builder().quirks(Quirks::RCLONE).start();
    let store = server.store();
    server.plant("k", "0123456789");
    assert_eq!(read(&store, "k", range(2..5)).await.unwrap(), b"234");
    assert_eq!(read(&store, "k", range(8..99)).await.unwrap(), b"89");
    let beyond = store.get(&key("k"), range(10..12)).await;
    assert_eq!(kind_of(beyond), StoreErrorKind::InvalidRange);
}

#[tokio::test]
async fn listings_page_through_every_key_once() {
    let server = S3Server::builder().page_keys(7).start();
    let store = server.store();
    for n in 0..25 {
        server.plant(&format!("p/{n:02}"), "x");
    }
    server.plant("q", "x");
    let mut request = ListRequest {
        prefix: "p/".into(),
        ..ListRequest::default()
    };
    let mut keys = Vec::new();
    loop {
        let page = store.list(&request).await.unwrap();
        assert!(page.date.is_some());
        keys.extend(page.objects.into_iter().map(|object| object.key));
        assert_eq!(page.is_truncated, page.next.is_some());
        request.continuation = page.next;
        if request.continuation.is_none() {
            break;
        }
    }
    let want: Vec<String> = (0..25).map(|n| format!("p/{n:02}")).collect();
    assert_eq!(keys, want);
    let request = ListRequest {
        prefix: "p/".into(),
        start_after: Some("p/20".into()),
        max_keys: Some(2),
        ..ListRequest::default()
    };
    let page = store.list(&request).await.unwrap();
    let keys: Vec<_> = page.objects.iter().map(|o| o.key.as_str()).collect();
    assert_eq!(keys, ["p/21", "p/22"]);
    assert!(page.is_truncated);
    let request = ListRequest {
        delimiter: Some('/'),
        ..ListRequest::default()
    };
    let page = store.list(&request).await.unwrap();
    assert_eq!(page.common_prefixes, ["p/"]);
    assert_eq!(page.objects.len(), 1);
}

#[tokio::test]
async fn deletes_keep_to_their_fence() {
    let server = S3Server::start();
    let store = server.store();
    let old = store
        .put(&key("k"), "1".into(), PutMode::Overwrite)
        .await
        .unwrap();
    store
        .put(&key("k"), "2".into(), PutMode::Overwrite)
        .await
        .unwrap();
    let stale = store
        .delete(&key("k"), DeleteFence::IfMatch(old.etag.clone()))
        .await;
    assert_eq!(kind_of(stale), StoreErrorKind::PreconditionFailed);
    assert_eq!(server.bytes("k").unwrap(), "2");
    let receipt = store.delete(&key("k"), DeleteFence::None).await.unwrap();
    assert!(receipt.date.is_some());
    assert_eq!(server.bytes("k"), None);
    store.delete(&key("k"), DeleteFence::None).await.unwrap();
    let gone = store
        .delete(&key("k"), DeleteFence::IfMatch(old.etag))
        .await;
    assert_eq!(kind_of(gone), StoreErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn versions_are_listed_and_deleted_one_by_one() {
    let server = S3Server::builder()
        .versioning(BucketVersioning::Enabled)
        .page_keys(2)
        .start();
    let store = server.store();
    assert_eq!(store.versioning().await.unwrap(), Versioning::Enabled);
    let mut ids = Vec::new();
    for text in ["1", "2", "3"] {
        let receipt = store
            .put(&key("p/k"), text.into(), PutMode::Overwrite)
            .await
            .unwrap();
        ids.push(receipt.version_id.unwrap());
    }
    store.delete(&key("p/k"), DeleteFence::None).await.unwrap();
    assert_eq!(
        kind_of(store.head(&key("p/k")).await),
        StoreErrorKind::NotFound
    );
    let (mut listed, mut token) = (Vec::new(), None);
    loop {
        let page = store.list_versions("p/", token.as_deref()).await.unwrap();
        listed.extend(page.versions);
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(listed.len(), 4);
    assert!(listed[0].is_delete_marker && listed[0].is_latest);
    assert_eq!(listed.iter().filter(|version| version.is_latest).count(), 1);
    // The marker does not stand in the way of a new object.
    store
        .put(&key("p/k"), "4".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let again = store
        .put(&key("p/k"), "5".into(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(again), StoreErrorKind::AlreadyExists);
    for id in ids {
        store
            .delete(&key("p/k"), DeleteFence::Version(id))
            .await
            .unwrap();
    }
    assert_eq!(server.bytes("p/k").unwrap(), "4");
    assert_eq!(server.version_count("p/k"), 2);
}

#[tokio::test]
async fn versioning_is_told_in_each_mode_and_never_guessed() {
    let server = S3Server::start();
    let store = server.store();
    assert_eq!(store.versioning().await.unwrap(), Versioning::NeverEnabled);
    server.set_versioning(BucketVersioning::Suspended);
    assert_eq!(store.versioning().await.unwrap(), Versioning::Suspended);
    let receipt = store
        .put(&key("k"), "1".into(), PutMode::Overwrite)
        .await
        .unwrap();
    assert_eq!(VersionId::generation(receipt.version_id.as_ref()), None);

    let unaware = S3Server::builder().quirks(Quirks::RCLONE).start();
    assert_eq!(
        unaware.store().versioning().await.unwrap(),
        Versioning::NeverEnabled
    );

    // A store that showed a version id and then does not know the question is not trusted.
    let server = S3Server::builder()
        .versioning(BucketVersioning::Enabled)
        .start();
    let store = server.store();
    store
        .put(&key("k"), "1".into(), PutMode::Overwrite)
        .await
        .unwrap();
    let action = Action::Refuse {
        status: 501,
        code: "NotImplemented",
    };
    server.fault(Fault::on(Op::Versioning, action));
    assert_eq!(
        kind_of(store.versioning().await),
        StoreErrorKind::NotImplemented
    );
}

#[tokio::test]
async fn multipart_uploads_complete_abort_and_are_listed() {
    let server = S3Server::builder().page_keys(2).start();
    let store = server.store();
    let upload = store.create_upload(&key("v1/t/d/b/s/a")).await.unwrap();
    let big = vec![7_u8; 5 << 20];
    let one = store
        .put_part(&upload, 1, big.clone().into())
        .await
        .unwrap();
    let two = store.put_part(&upload, 2, "tail".into()).await.unwrap();
    let wrong = store
        .complete_upload(&upload, &[two.clone(), one.clone()])
        .await;
    assert_eq!(kind_of(wrong), StoreErrorKind::Rejected);
    let receipt = store.complete_upload(&upload, &[one, two]).await.unwrap();
    assert!(receipt.checksum.unwrap().ends_with("-2"));
    assert_eq!(server.bytes("v1/t/d/b/s/a").unwrap().len(), big.len() + 4);
    let gone = store.put_part(&upload, 3, "x".into()).await;
    assert_eq!(kind_of(gone), StoreErrorKind::NotFound);

    let mut uploads = Vec::new();
    for n in 0..5 {
        uploads.push(store.create_upload(&key(&format!("u/{n}"))).await.unwrap());
    }
    let (mut listed, mut token) = (0, None);
    loop {
        let page = store.list_uploads(token.as_deref()).await.unwrap();
        listed += page.uploads.len();
        assert!(page.uploads.iter().all(|upload| upload.initiated.is_some()));
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(listed, 5);
    for upload in &uploads {
        store.abort_upload(upload).await.unwrap();
        store.abort_upload(upload).await.unwrap();
    }
    assert_eq!(server.open_uploads(), 0);
}
