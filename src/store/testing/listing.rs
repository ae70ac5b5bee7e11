//! Listings: exact, in order, the same whatever the pages.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};

use super::{IN_FLIGHT, Trial, expect};
use crate::store::ListRequest;

pub(super) async fn a_listing_of_2501_keys_is_exact(trial: &Trial) {
    let rests: Vec<String> = (0..2_501)
        .map(|n| format!("{:02}/{n:04}", n / 100))
        .collect();
    let fill = |rest: String| async move { trial.create(&trial.key(&rest), &rest).await };
    let puts: Vec<_> = rests.iter().cloned().map(fill).collect();
    let receipts: Vec<_> = stream::iter(puts)
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
    assert_eq!(receipts.len(), rests.len());

    assert_eq!(trial.list_all().await, rests, "all keys, in order");
    let first = ListRequest {
        prefix: trial.prefix.clone(),
        ..ListRequest::default()
    };
    let first = expect(trial.store.list(&first).await, "listing");
    assert_eq!(first.objects.len(), 1_000, "a page has 1,000 keys");
    assert!(first.is_truncated && first.next.is_some());
    assert_eq!(first.objects[7].size_bytes, 7, "sizes are listed");
    let head = expect(trial.store.head(&trial.key(&rests[7])).await, "head");
    assert_eq!(first.objects[7].etag, head.meta.etag, "ETags are listed");
    assert_eq!(
        first.objects[7].last_modified.as_second(),
        head.meta.last_modified.as_second(),
        "times are listed"
    );

    let paged = ListRequest {
        max_keys: Some(333),
        ..ListRequest::default()
    };
    assert_eq!(trial.list(paged).await, rests, "in pages of 333");
    let after = ListRequest {
        start_after: Some("19/1999".to_owned()),
        ..ListRequest::default()
    };
    assert_eq!(trial.list(after).await, rests[2_000..], "after a key");
    let below = ListRequest {
        prefix: "07/070".to_owned(),
        ..ListRequest::default()
    };
    assert_eq!(trial.list(below).await, rests[700..710], "below a prefix");
    let rolled = ListRequest {
        delimiter: Some('/'),
        ..ListRequest::default()
    };
    let groups: Vec<String> = (0..26).map(|n| format!("{n:02}/")).collect();
    assert_eq!(trial.list(rolled.clone()).await, groups, "rolled up");
    let rolled = ListRequest {
        max_keys: Some(5),
        ..rolled
    };
    assert_eq!(trial.list(rolled).await, groups, "rolled up in pages of 5");
}

/// Names whose order as bytes is not the order of their path components.
const AWKWARD: [&str; 14] = [
    "d", "d-", "d-/x", "d-x", "d.", "d.x/y", "d/e", "d/e-f", "d/e.g", "d/e/f", "d/e0", "d0", "d_",
    "e/d",
];

pub(super) async fn pages_of_every_size_give_the_same_keys(trial: &Trial) {
    let mut rests = AWKWARD.map(str::to_owned).to_vec();
    rests.sort_unstable();
    for rest in rests.iter().rev() {
        trial.create(&trial.key(rest), rest).await;
    }
    let prefixes = ["", "d", "d-", "d/", "d/e", "d/e/", "d.x", "e/d", "x/"];
    let starts = [
        "", "d", "d-", "d-z", "d/", "d/e", "d/e/", "d/e/f", "d0", "z",
    ];
    for prefix in prefixes {
        for start in starts {
            let below = |rest: &&String| rest.starts_with(prefix) && rest.as_str() > start;
            let expected: Vec<_> = rests.iter().filter(below).cloned().collect();
            for max_keys in [1, 2, 5, 1_000] {
                let request = ListRequest {
                    prefix: prefix.to_owned(),
                    start_after: Some(start.to_owned()).filter(|start| !start.is_empty()),
                    max_keys: Some(max_keys),
                    ..ListRequest::default()
                };
                let what = format!("{request:?}");
                assert_eq!(trial.list(request).await, expected, "{what}");
            }
        }
        // Rolled up: what lies between the prefix and the next slash, once.
        let roll = |rest: &String| match rest[prefix.len()..].find('/') {
            Some(at) => rest[..=prefix.len() + at].to_owned(),
            None => rest.clone(),
        };
        let below = rests.iter().filter(|rest| rest.starts_with(prefix));
        let expected: BTreeSet<String> = below.map(roll).collect();
        for max_keys in [1, 3, 1_000] {
            let request = ListRequest {
                prefix: prefix.to_owned(),
                delimiter: Some('/'),
                max_keys: Some(max_keys),
                ..ListRequest::default()
            };
            let what = format!("{request:?}");
            let found = trial.list(request).await;
            assert!(found.iter().eq(expected.iter()), "{what}: {found:?}");
        }
    }
}

pub(super) async fn keys_that_begin_one_another_list_in_byte_order(trial: &Trial) {
    let rests = ["d", "d-", "d-x", "d.", "d.x", "d0", "d_", "da"];
    for rest in rests.iter().rev() {
        trial.create(&trial.key(rest), rest).await;
    }
    for max_keys in [1, 3, 1_000] {
        let request = ListRequest {
            max_keys: Some(max_keys),
            ..ListRequest::default()
        };
        assert_eq!(trial.list(request).await, rests, "in pages of {max_keys}");
    }
    for (at, start) in rests.iter().enumerate() {
        let request = ListRequest {
            start_after: Some((*start).to_owned()),
            ..ListRequest::default()
        };
        assert_eq!(trial.list(request).await, rests[at + 1..], "after {start}");
    }
}

pub(super) async fn a_prefix_without_keys_lists_empty(trial: &Trial) {
    assert!(trial.list_all().await.is_empty());
    trial.create(&trial.key("a/b"), "x").await;
    for prefix in ["a/b/", "a/c", "b", "A/"] {
        assert!(list_below(trial, prefix).await.is_empty(), "{prefix}");
    }
}

pub(super) async fn a_prefix_with_an_empty_segment_lists_empty(trial: &Trial) {
    trial.create(&trial.key("a/b"), "x").await;
    for prefix in ["a//", "/a/", "a//b"] {
        assert!(list_below(trial, prefix).await.is_empty(), "{prefix}");
    }
}

async fn list_below(trial: &Trial, prefix: &str) -> Vec<String> {
    let request = ListRequest {
        prefix: prefix.to_owned(),
        ..ListRequest::default()
    };
    trial.list(request).await
}
