use std::sync::Arc;

use jiff::SignedDuration;

use super::*;
use crate::clock::ManualClock;

fn store() -> (MemoryStore, Arc<ManualClock>) {
    let start: Timestamp = "2026-11-30T12:00:00.75Z".parse().unwrap();
    let clock = Arc::new(ManualClock::new(start));
    let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
    (MemoryStore::new(shared), clock)
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

#[tokio::test]
async fn dates_are_whole_seconds_of_the_clock() {
    let (store, clock) = store();
    let k = key("k");
    let put = |text: &'static str| store.put(&k, text.into(), PutMode::Overwrite);
    put("a").await.unwrap();
    clock.advance(SignedDuration::from_millis(300));
    let head = store.head(&key("k")).await.unwrap();
    let written: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    assert_eq!(head.meta.last_modified, written);
    assert_eq!(head.date, Some(written + SignedDuration::from_secs(1)));
}

#[tokio::test]
async fn suspending_keeps_old_versions_and_replaces_the_null_one() {
    let (store, _) = store();
    let k = key("k");
    let put = |text: &'static str| store.put(&k, text.into(), PutMode::Overwrite);
    assert_eq!(put("before").await.unwrap().version_id, None);
    store.enable_versioning();
    let kept = put("versioned").await.unwrap().version_id.unwrap();
    store.suspend_versioning();
    for text in ["one", "two"] {
        let id = put(text).await.unwrap().version_id.unwrap();
        assert_eq!(VersionId::generation(Some(&id)), None);
    }
    let page = store.list_versions("", None).await.unwrap();
    let seen: Vec<_> = page
        .versions
        .iter()
        .map(|v| (v.version_id.0.as_str(), v.is_latest, v.size_bytes))
        .collect();
    assert_eq!(seen, [("null", true, 3), (kept.0.as_str(), false, 9)]);
}

#[tokio::test]
async fn the_next_page_of_versions_goes_on_where_the_last_version_is_gone() {
    let (store, _) = store();
    store.enable_versioning();
    for _ in 0..1_005 {
        store
            .put(&key("k"), "x".into(), PutMode::Overwrite)
            .await
            .unwrap();
    }
    store
        .put(&key("l"), "x".into(), PutMode::Overwrite)
        .await
        .unwrap();
    let first = store.list_versions("", None).await.unwrap();
    assert!(first.is_truncated);
    assert_eq!(first.versions.len(), 1_000);
    for version in &first.versions {
        let fence = DeleteFence::Version(version.version_id.clone());
        store.delete(&key("k"), fence).await.unwrap();
    }
    let second = store
        .list_versions("", first.next.as_deref())
        .await
        .unwrap();
    assert!(!second.is_truncated);
    assert_eq!(second.versions.len(), 6);
}

#[tokio::test]
async fn equal_bytes_have_equal_etags_unless_cut_into_parts() {
    let (store, _) = store();
    let one = store
        .put(&key("a"), "same".into(), PutMode::Overwrite)
        .await
        .unwrap();
    let two = store
        .put(&key("b"), "same".into(), PutMode::Overwrite)
        .await
        .unwrap();
    assert_eq!(one.etag, two.etag);
    let upload = store.create_upload(&key("c")).await.unwrap();
    let part = store.put_part(&upload, 1, "same".into()).await.unwrap();
    let three = store.complete_upload(&upload, &[part]).await.unwrap();
    assert!(three.etag.0.ends_with("-1\""), "{:?}", three.etag);
}
