//! Buckets that keep versions.

use super::{Trial, expect, expect_kind, expect_version, payload};
use crate::store::keys::Key;
use crate::store::{DeleteFence, ListedVersion, PutMode, StoreErrorKind, VersionId, paging};

/// Every version of every key of the trial.
async fn versions(trial: &Trial) -> Vec<ListedVersion> {
    let mut found = Vec::new();
    let mut pages = paging::list_versions(&*trial.store, &trial.prefix);
    while let Some(page) = expect(pages.next_page().await, "listing versions") {
        found.extend(page.versions);
    }
    found
}

async fn delete_version(trial: &Trial, key: &Key, id: &VersionId) {
    let fence = DeleteFence::Version(id.clone());
    expect(trial.delete(key, fence).await, "deleting a version");
}

pub(super) async fn create_only_is_refused_over_a_current_version(trial: &Trial) {
    let key = trial.key("k");
    trial.create(&key, "first").await;
    let again = trial
        .store
        .put(&key, payload("second"), PutMode::CreateIfAbsent);
    expect_kind(
        again.await,
        StoreErrorKind::AlreadyExists,
        "creating over a version",
    );
    assert_eq!(
        versions(trial).await.len(),
        1,
        "a refused put makes no version"
    );
    assert_eq!(trial.read(&key).await, "first");
}

pub(super) async fn create_only_succeeds_over_a_delete_marker(trial: &Trial) {
    let key = trial.key("k");
    let first = expect_version(&trial.create(&key, "first").await);
    expect(trial.delete(&key, DeleteFence::None).await, "deleting");
    assert!(!trial.exists(&key).await, "a marker hides the object");
    assert!(trial.list_all().await.is_empty(), "a marker hides the key");
    let second = expect_version(&trial.create(&key, "second").await);
    assert_ne!(first, second, "a new generation");
    assert_eq!(trial.read(&key).await, "second");
}

pub(super) async fn deleting_an_old_version_keeps_the_newer(trial: &Trial) {
    let key = trial.key("k");
    let old = expect_version(&trial.create(&key, "old").await);
    let new = expect_version(&trial.overwrite(&key, "new").await);
    delete_version(trial, &key, &old).await;
    assert_eq!(trial.read(&key).await, "new");
    delete_version(trial, &key, &old).await; // Gone already: still success.
    let left: Vec<_> = versions(trial)
        .await
        .into_iter()
        .map(|v| v.version_id)
        .collect();
    assert_eq!(left, std::slice::from_ref(&new));
    delete_version(trial, &key, &new).await;
    assert!(versions(trial).await.is_empty(), "nothing is left");
    assert!(!trial.exists(&key).await);
}

pub(super) async fn versions_list_newest_first(trial: &Trial) {
    let (key, other) = (trial.key("k"), trial.key("l"));
    let one = expect_version(&trial.create(&key, "1").await);
    let two = expect_version(&trial.overwrite(&key, "22").await);
    trial.create(&other, "x").await;
    expect(trial.delete(&key, DeleteFence::None).await, "deleting");
    let listed = versions(trial).await;
    let shape: Vec<_> = listed
        .iter()
        .map(|v| {
            (
                v.key == key.as_str(),
                v.is_latest,
                v.is_delete_marker,
                v.size_bytes,
            )
        })
        .collect();
    let expected = [
        (true, true, true, 0),
        (true, false, false, 2),
        (true, false, false, 1),
        (false, true, false, 1),
    ];
    assert_eq!(shape, expected, "{listed:?}");
    assert_eq!((&listed[1].version_id, &listed[2].version_id), (&two, &one));
    assert!(listed[0].etag.is_none() && listed[1].etag.is_some());
}

pub(super) async fn deleting_a_delete_marker_brings_the_object_back(trial: &Trial) {
    let key = trial.key("k");
    trial.create(&key, "x").await;
    expect(trial.delete(&key, DeleteFence::None).await, "deleting");
    let marker = versions(trial)
        .await
        .into_iter()
        .find(|v| v.is_delete_marker);
    let marker = marker.expect("a delete makes a marker").version_id;
    delete_version(trial, &key, &marker).await;
    assert_eq!(trial.read(&key).await, "x");
}

pub(super) async fn suspended_writes_replace_the_null_version(trial: &Trial) {
    let key = trial.key("k");
    for content in ["one", "two"] {
        let receipt = trial.overwrite(&key, content).await;
        let generation = VersionId::generation(receipt.version_id.as_ref());
        assert_eq!(
            generation, None,
            "a suspended bucket writes the version `null`"
        );
        let listed = versions(trial).await;
        let ids: Vec<_> = listed.iter().map(|v| v.version_id.0.as_str()).collect();
        assert_eq!(ids, ["null"], "one version, replaced in place");
    }
    assert_eq!(trial.read(&key).await, "two");
    let again = trial.store.put(&key, payload("x"), PutMode::CreateIfAbsent);
    expect_kind(
        again.await,
        StoreErrorKind::AlreadyExists,
        "creating over `null`",
    );
    expect(trial.delete(&key, DeleteFence::None).await, "deleting");
    assert!(!trial.exists(&key).await);
    delete_version(trial, &key, &VersionId("null".to_owned())).await;
    assert!(versions(trial).await.is_empty(), "nothing is left");
}
