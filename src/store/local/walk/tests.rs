use std::sync::Arc;

use proptest::prelude::*;

use crate::clock::SystemClock;
use crate::ids::SystemIds;
use crate::store::keys::Key;
use crate::store::local::LocalStore;
use crate::store::memory::MemoryStore;
use crate::store::{ListPage, ListRequest, ObjectStore, PutMode};

fn key() -> impl Strategy<Value = String> {
    // Few names, of the characters that sort around the slash, so that they collide.
    let segment = prop::sample::select(vec!["a", "a-", "a.", "a0", "a_", "b", "b-a", "-"]);
    prop::collection::vec(segment, 1..5).prop_map(|segments| segments.join("/"))
}

fn request() -> impl Strategy<Value = ListRequest> {
    let cut = |text: String, at: usize| text[..at.min(text.len())].to_owned();
    let prefix = (key(), 0..4_usize).prop_map(move |(text, at)| cut(text, at));
    let start = prop_oneof![
        key(),
        key().prop_map(|key| format!("{key}/")),
        Just("a/~".into())
    ];
    let delimiter = prop::option::of(prop_oneof![4 => Just('/'), 1 => Just('-')]);
    (prefix, prop::option::of(start), delimiter, 1..4_u16).prop_map(
        |(prefix, start_after, delimiter, max_keys)| ListRequest {
            prefix,
            start_after,
            delimiter,
            max_keys: Some(max_keys),
            continuation: None,
        },
    )
}

type Shape = (Vec<String>, Vec<String>, Option<String>);

fn shape(page: ListPage) -> Shape {
    assert_eq!(page.is_truncated, page.next.is_some());
    let keys = page.objects.into_iter().map(|listed| listed.key).collect();
    (keys, page.common_prefixes, page.next)
}

async fn pages(store: &dyn ObjectStore, mut request: ListRequest) -> Vec<Shape> {
    let mut pages = Vec::new();
    loop {
        let page = shape(store.list(&request).await.unwrap());
        request.continuation.clone_from(&page.2);
        pages.push(page);
        if request.continuation.is_none() {
            return pages;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// The walk over directories gives what a sorted map gives, page by page.
    #[test]
    fn a_directory_lists_as_a_sorted_map_does(
        keys in prop::collection::btree_set(key(), 0..16),
        requests in prop::collection::vec(request(), 24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let clock = SystemClock::shared();
            let memory = MemoryStore::new(Arc::clone(&clock));
            let local = LocalStore::open(directory.path(), clock, SystemIds::shared()).unwrap();
            for key in &keys {
                let key = Key::parse(key.as_str()).unwrap();
                memory.put(&key, "x".into(), PutMode::CreateIfAbsent).await.unwrap();
                local.put(&key, "x".into(), PutMode::CreateIfAbsent).await.unwrap();
            }
            for request in requests {
                let expected = pages(&memory, request.clone()).await;
                let found = pages(&local, request.clone()).await;
                assert_eq!(found, expected, "{request:?} of {keys:?}");
            }
        });
    }
}
