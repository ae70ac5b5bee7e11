//! What each operation means when nobody else is there.

use jiff::SignedDuration;

use super::{Trial, expect, expect_kind, no_etag, payload};
use crate::store::keys::Key;
use crate::store::{DeleteFence, GetOptions, ListRequest, PutMode, StoreErrorKind, VersionId};

pub(super) async fn a_created_object_reads_back_as_written(trial: &Trial) {
    let key = trial.key("k");
    let receipt = trial.create(&key, "some bytes").await;
    assert_eq!(trial.read(&key).await, "some bytes");
    let head = expect(trial.store.head(&key).await, "head");
    let object = trial.open(&key, GetOptions::default()).await;
    assert_eq!(head.meta.size_bytes, 10, "size in head");
    for (etag, what) in [(&head.meta.etag, "head"), (&object.meta.etag, "get")] {
        assert_eq!(*etag, receipt.etag, "the ETag of {what} is the put's");
    }
    let is_quoted = receipt.etag.0.len() > 2 && receipt.etag.0.starts_with('"');
    assert!(is_quoted, "an ETag has its quotes: {:?}", receipt.etag);
    assert_eq!(
        VersionId::generation(head.meta.version_id.as_ref()),
        VersionId::generation(receipt.version_id.as_ref()),
        "head names the version that the put made"
    );
}

pub(super) async fn creating_on_a_taken_key_leaves_its_bytes(trial: &Trial) {
    let key = trial.key("k");
    let first = trial.create(&key, "first").await;
    for content in ["second", "first"] {
        let put = trial
            .store
            .put(&key, payload(content), PutMode::CreateIfAbsent);
        expect_kind(put.await, StoreErrorKind::AlreadyExists, "creating again");
    }
    assert_eq!(trial.read(&key).await, "first");
    let head = expect(trial.store.head(&key).await, "head");
    assert_eq!(head.meta.etag, first.etag, "the object is the first one");
}

pub(super) async fn replace_if_match_replaces_only_what_it_names(trial: &Trial) {
    let key = trial.key("k");
    let replace = |etag, content| {
        let mode = PutMode::ReplaceIfMatch(etag);
        trial.store.put(&key, payload(content), mode)
    };
    let failed = StoreErrorKind::PreconditionFailed;
    expect_kind(
        replace(no_etag(), "x").await,
        failed,
        "replacing an absent key",
    );
    assert!(
        !trial.exists(&key).await,
        "a failed replace creates nothing"
    );

    let first = trial.create(&key, "first").await;
    expect_kind(
        replace(no_etag(), "x").await,
        failed,
        "replacing by a wrong ETag",
    );
    assert_eq!(trial.read(&key).await, "first");

    let second = expect(replace(first.etag.clone(), "second").await, "replacing");
    assert_eq!(trial.read(&key).await, "second");
    assert_ne!(first.etag, second.etag, "other bytes, another ETag");
    expect_kind(
        replace(first.etag, "third").await,
        failed,
        "replacing by an old ETag",
    );
    assert_eq!(trial.read(&key).await, "second");
}

pub(super) async fn overwrite_always_takes_effect(trial: &Trial) {
    let key = trial.key("k");
    for content in ["first", "second, and longer", "3"] {
        let receipt = trial.overwrite(&key, content).await;
        assert_eq!(trial.read(&key).await, content);
        let head = expect(trial.store.head(&key).await, "head");
        assert_eq!(head.meta.etag, receipt.etag);
    }
}

pub(super) async fn an_absent_key_is_not_found(trial: &Trial) {
    trial.create(&trial.key("there/k"), "x").await;
    for rest in ["k", "there/l", "there/none/k", "elsewhere/k"] {
        let key = trial.key(rest);
        let absent = StoreErrorKind::NotFound;
        expect_kind(trial.store.head(&key).await, absent, rest);
        let get = trial.store.get(&key, GetOptions::default()).await;
        expect_kind(get, absent, rest);
    }
}

pub(super) async fn zero_bytes_are_an_object(trial: &Trial) {
    let key = trial.key("empty");
    trial.create(&key, "").await;
    assert_eq!(trial.read(&key).await, "");
    assert_eq!(trial.list_all().await, ["empty"]);
    let again = trial.store.put(&key, payload("x"), PutMode::CreateIfAbsent);
    expect_kind(
        again.await,
        StoreErrorKind::AlreadyExists,
        "an empty object is there",
    );
}

pub(super) async fn a_delete_without_fence_succeeds_twice(trial: &Trial) {
    let (key, neighbour) = (trial.key("a/k"), trial.key("a/l"));
    trial.create(&key, "x").await;
    trial.create(&neighbour, "y").await;
    for what in ["deleting", "deleting an absent key"] {
        expect(trial.delete(&key, DeleteFence::None).await, what);
        assert!(!trial.exists(&key).await, "{what}");
    }
    let never = trial.key("never/was/there");
    expect(
        trial.delete(&never, DeleteFence::None).await,
        "deleting nothing",
    );
    assert_eq!(trial.list_all().await, ["a/l"]);
    trial.create(&key, "again").await;
    assert_eq!(trial.read(&key).await, "again");
}

pub(super) async fn delete_if_match_takes_only_what_it_names(trial: &Trial) {
    let key = trial.key("k");
    let failed = StoreErrorKind::PreconditionFailed;
    let fence = |etag| DeleteFence::IfMatch(etag);
    expect_kind(
        trial.delete(&key, fence(no_etag())).await,
        failed,
        "an absent key",
    );
    let first = trial.create(&key, "first").await;
    expect_kind(
        trial.delete(&key, fence(no_etag())).await,
        failed,
        "a wrong ETag",
    );
    let second = trial.overwrite(&key, "second").await;
    expect_kind(
        trial.delete(&key, fence(first.etag)).await,
        failed,
        "an old ETag",
    );
    assert_eq!(trial.read(&key).await, "second");
    expect(
        trial.delete(&key, fence(second.etag.clone())).await,
        "the right ETag",
    );
    assert!(!trial.exists(&key).await, "it is gone");
    expect_kind(
        trial.delete(&key, fence(second.etag)).await,
        failed,
        "gone already",
    );
}

pub(super) async fn a_version_fence_is_refused_without_versions(trial: &Trial) {
    let key = trial.key("k");
    trial.create(&key, "x").await;
    for id in ["null", "some-version"] {
        let fence = DeleteFence::Version(VersionId(id.to_owned()));
        expect_kind(
            trial.delete(&key, fence).await,
            StoreErrorKind::Rejected,
            id,
        );
    }
    assert_eq!(trial.read(&key).await, "x");
}

pub(super) async fn versioning_is_reported(trial: &Trial) {
    let versioning = expect(trial.store.versioning().await, "asking for versioning");
    assert_eq!(versioning, trial.capabilities.versioning);
}

pub(super) async fn dates_are_present_and_last_modified_is_sane(trial: &Trial) {
    let key = trial.key("k");
    let put = trial.create(&key, "x").await;
    let head = expect(trial.store.head(&key).await, "head");
    let object = trial.open(&key, GetOptions::default()).await;
    let list = ListRequest {
        prefix: trial.prefix.clone(),
        ..ListRequest::default()
    };
    let list = expect(trial.store.list(&list).await, "list");
    let absent = trial.key("absent");
    let delete = trial.store.delete(&absent, DeleteFence::None);
    let delete = expect(delete.await, "delete");
    let dates = [
        ("put", put.date),
        ("head", head.date),
        ("get", object.date),
        ("list", list.date),
        ("delete", delete.date),
    ];
    for (what, date) in dates {
        assert!(date.is_some(), "the reply of {what} has no date");
    }
    // One clock: the object's time lies at the put, give or take the two roundings to seconds.
    let (Some(put_at), Some(head_at)) = (put.date, head.date) else {
        return;
    };
    let written = head.meta.last_modified;
    let slack = SignedDuration::from_secs(2);
    assert!(
        written >= put_at - slack - SignedDuration::from_secs(30),
        "{written} < {put_at}"
    );
    assert!(written <= head_at + slack, "{written} lies after {head_at}");
    assert_eq!(object.meta.last_modified, written, "head and get agree");
}

pub(super) async fn every_character_of_our_keys_survives(trial: &Trial) {
    let mut rests = vec![
        "abcdefghijklmnopqrstuvwxyz0123456789._-".to_owned(),
        "x".repeat(199),
        format!("{}/{}", "y".repeat(120), "z".repeat(120)),
        "...".to_owned(),
    ];
    for c in ('a'..='z').chain('0'..='9').chain(['.', '_', '-']) {
        rests.push(format!("first/{c}x"));
        rests.push(format!("last/x{c}"));
        rests.push(format!("outer/{c}x/k"));
        rests.push(format!("inner/x{c}/k"));
    }
    for rest in &rests {
        trial.create(&trial.key(rest), rest).await;
    }
    for rest in &rests {
        assert_eq!(trial.read(&trial.key(rest)).await, *rest);
    }
    rests.sort_unstable();
    assert_eq!(trial.list_all().await, rests);
}

pub(super) async fn a_key_and_keys_below_it_coexist(trial: &Trial) {
    let rests = ["d", "d-x", "d/e", "d/e/f", "d0"];
    let keys: Vec<Key> = rests.iter().map(|rest| trial.key(rest)).collect();
    for (key, rest) in keys.iter().zip(rests) {
        trial.create(key, rest).await;
    }
    assert_eq!(trial.list_all().await, rests);
    expect(
        trial.delete(&keys[2], DeleteFence::None).await,
        "deleting `d/e`",
    );
    assert_eq!(trial.list_all().await, ["d", "d-x", "d/e/f", "d0"]);
    expect(
        trial.delete(&keys[0], DeleteFence::None).await,
        "deleting `d`",
    );
    assert_eq!(trial.read(&keys[3]).await, "d/e/f");
    trial.create(&keys[0], "again").await;
    assert_eq!(trial.read(&keys[0]).await, "again");
}
