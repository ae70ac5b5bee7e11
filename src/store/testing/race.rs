//! What must hold when many write at once. These cases find what no sequence of requests shows.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{Trial, collect, expect, payload};
use crate::store::keys::Key;
use crate::store::{
    DeleteFence, GetOptions, GetReply, ListRequest, PutMode, SharedStore, StoreError,
    StoreErrorKind, paging,
};

/// Rounds of the short races.
const ROUNDS: usize = 8;
/// Rounds that one undecided request may take; more is a store that never decides.
const MAX_TRIES: usize = 1_000;

/// Runs `count` tasks that begin together; gives their results in the order of their numbers.
async fn together<T, F>(count: usize, task: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (barrier, task) = (Arc::clone(&barrier), task(number));
        tasks.spawn(async move {
            barrier.wait().await;
            (number, task.await)
        });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Contenders of the races that need no crowd.
fn few(trial: &Trial) -> usize {
    trial.capabilities.contenders.clamp(2, 4)
}

/// A creation sent until it is decided. A 412 is compared before it is believed: it may answer the
/// repetition of a request that did its work.
async fn create_decided(store: &SharedStore, key: &Key, content: &str) -> bool {
    let mut is_repeated = false;
    for _ in 0..MAX_TRIES {
        let put = store.put(key, payload(content), PutMode::CreateIfAbsent);
        match put.await {
            Ok(_) => return true,
            Err(error) if error.is(StoreErrorKind::AlreadyExists) => {
                return is_repeated && read(store, key).await.as_deref() == Some(content);
            }
            Err(error) if error.kind.is_undecided() => is_repeated = true,
            Err(error) => panic!("creating in a race failed: {error}"),
        }
    }
    panic!("creating `{key}` stays undecided");
}

/// Reads a small object, `None` where it is absent.
async fn read(store: &SharedStore, key: &Key) -> Option<String> {
    match store.get(key, GetOptions::default()).await {
        Ok(GetReply::Found(object)) => {
            let size_bytes = object.meta.size_bytes;
            let bytes = collect(object.body).await;
            assert_eq!(bytes.len() as u64, size_bytes, "a torn read of `{key}`");
            Some(String::from_utf8(bytes).expect("cases write text"))
        }
        Ok(GetReply::NotModified { .. }) => panic!("304 without a condition"),
        Err(error) if error.is(StoreErrorKind::NotFound) => None,
        Err(error) => panic!("reading in a race failed: {error}"),
    }
}

pub(super) async fn creators_of_one_key_have_exactly_one_winner(trial: &Trial) {
    for round in 0..ROUNDS {
        let key = trial.key(&format!("fresh-{round}/k"));
        let results = together(trial.capabilities.contenders, |number| {
            let (store, key) = (SharedStore::clone(&trial.store), key.clone());
            async move { create_decided(&store, &key, &format!("from {number}")).await }
        })
        .await;
        let won = |(number, is_won): (usize, &bool)| is_won.then_some(number);
        let winners: Vec<_> = results.iter().enumerate().filter_map(won).collect();
        assert_eq!(
            winners.len(),
            1,
            "round {round}: the winners are {winners:?}"
        );
        let content = trial.read(&key).await;
        assert_eq!(
            content,
            format!("from {}", winners[0]),
            "the winner's bytes stay"
        );
    }
}

pub(super) async fn compare_and_swap_loses_no_update(trial: &Trial) {
    const STEPS: usize = 10;
    let workers = trial.capabilities.contenders.clamp(2, 5);
    let key = trial.key("count");
    trial.create(&key, "0:start").await;
    together(workers, |number| {
        let (store, key) = (SharedStore::clone(&trial.store), key.clone());
        async move {
            for step in 0..STEPS {
                add_one(&store, &key, &format!("{number}-{step}")).await;
            }
        }
    })
    .await;
    let content = trial.read(&key).await;
    let count = content.split(':').next().expect("a count");
    assert_eq!(count, (workers * STEPS).to_string(), "in `{content}`");
}

/// Counts up by one; `nonce` keeps the bytes, and so the ETag, of every state apart.
async fn add_one(store: &SharedStore, key: &Key, nonce: &str) {
    for _ in 0..MAX_TRIES {
        let reply = expect(
            store.get(key, GetOptions::default()).await,
            "reading the count",
        );
        let GetReply::Found(object) = reply else {
            panic!("304 without a condition");
        };
        let etag = object.meta.etag;
        let text = String::from_utf8(collect(object.body).await).expect("cases write text");
        let (count, last) = text.split_once(':').expect("a count and a nonce");
        if last == nonce {
            return; // An undecided request of ours took effect after all.
        }
        let next: usize = count.parse::<usize>().expect("a number") + 1;
        let mode = PutMode::ReplaceIfMatch(etag);
        match store
            .put(key, payload(&format!("{next}:{nonce}")), mode)
            .await
        {
            Ok(_) => return,
            Err(error) if error.is(StoreErrorKind::PreconditionFailed) => {}
            Err(error) if error.kind.is_undecided() => {}
            Err(error) => panic!("compare and swap failed: {error}"),
        }
    }
    panic!("compare and swap of `{key}` never succeeds");
}

pub(super) async fn a_stale_delete_keeps_the_object(trial: &Trial) {
    let key = trial.key("k");
    let stale = trial.create(&key, "old").await.etag;
    trial.overwrite(&key, "new").await;
    let results = together(trial.capabilities.contenders, |_| {
        let (store, key, stale) = (SharedStore::clone(&trial.store), key.clone(), stale.clone());
        async move { store.delete(&key, DeleteFence::IfMatch(stale)).await }
    })
    .await;
    for result in results {
        assert!(result.is_err(), "a delete by a stale ETag succeeded");
    }
    assert_eq!(trial.read(&key).await, "new");
}

pub(super) async fn a_stale_delete_never_takes_a_racing_overwrite(trial: &Trial) {
    for round in 0..ROUNDS * 4 {
        let key = trial.key(&format!("k{round}"));
        let stale = trial.create(&key, "old").await.etag;
        together(few(trial), |number| {
            let (store, key) = (SharedStore::clone(&trial.store), key.clone());
            let fence = DeleteFence::IfMatch(stale.clone());
            async move {
                if number == 0 {
                    // Acknowledged: whatever the deletes meet, this stays.
                    expect(
                        overwrite(&store, &key, "new").await,
                        "overwriting in a race",
                    );
                } else if let Err(error) = store.delete(&key, fence).await {
                    let kind = error.kind;
                    let is_due = kind == StoreErrorKind::PreconditionFailed || kind.is_undecided();
                    assert!(is_due, "a fenced delete in a race: {error}");
                }
            }
        })
        .await;
        let left = read(&trial.store, &key).await;
        assert_eq!(
            left.as_deref(),
            Some("new"),
            "round {round}: the overwrite is lost"
        );
    }
}

async fn overwrite(store: &SharedStore, key: &Key, content: &str) -> Result<(), StoreError> {
    let mut last = None;
    for _ in 0..MAX_TRIES {
        match store.put(key, payload(content), PutMode::Overwrite).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind.is_undecided() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.expect("at least one try"))
}

/// Creators and deleters of a few keys that share directories: nothing fails that should not, and
/// what was created last is there.
pub(super) async fn creates_and_deletes_do_not_disturb_their_neighbours(trial: &Trial) {
    let contenders = trial.capabilities.contenders.min(8);
    together(contenders, |number| {
        let store = SharedStore::clone(&trial.store);
        // Two keys a directory, so that a store made of directories empties and fills them.
        let key = trial.key(&format!("shared/{}/{number}", number / 2));
        async move {
            for round in 0..ROUNDS {
                let content = format!("{number} {round}");
                assert!(
                    create_decided(&store, &key, &content).await,
                    "nobody else writes `{key}`"
                );
                assert_eq!(read(&store, &key).await, Some(content), "read after write");
                expect(
                    store.delete(&key, DeleteFence::None).await,
                    "deleting in a race",
                );
                assert_eq!(read(&store, &key).await, None, "read after delete");
            }
            assert!(create_decided(&store, &key, "last").await);
        }
    })
    .await;
    let expected: Vec<_> = (0..contenders)
        .map(|n| format!("shared/{}/{n}", n / 2))
        .collect();
    assert_eq!(trial.list_all().await, expected);
}

pub(super) async fn readers_see_whole_objects_while_they_are_overwritten(trial: &Trial) {
    const REPEAT: usize = 40_000;
    let key = trial.key("k");
    let content = |letter: usize| ["a", "b", "c", "d"][letter % 4].repeat(REPEAT + letter);
    trial.create(&key, &content(0)).await;
    together(few(trial), |number| {
        let (store, key) = (SharedStore::clone(&trial.store), key.clone());
        async move {
            for round in 0..ROUNDS {
                if number == 0 {
                    expect(
                        overwrite(&store, &key, &content(round)).await,
                        "overwriting",
                    );
                    continue;
                }
                let text = read(&store, &key)
                    .await
                    .expect("an overwritten key is never absent");
                let is_whole = (0..ROUNDS).any(|letter| text == content(letter));
                assert!(is_whole, "a mixture of two objects was read");
            }
        }
    })
    .await;
}

pub(super) async fn listings_are_exact_while_others_write(trial: &Trial) {
    let steady: Vec<String> = (0..40).map(|n| format!("s/{n:02}")).collect();
    for rest in &steady {
        trial.create(&trial.key(rest), "steady").await;
    }
    together(few(trial), |number| {
        let store = SharedStore::clone(&trial.store);
        let (prefix, steady) = (trial.prefix.clone(), steady.clone());
        // As long as the others: see the case of keys that begin one another.
        let passing = trial.key(&format!("s/{number}x"));
        let rewritten = trial.key("s/20");
        async move {
            for round in 0..ROUNDS {
                if number > 0 {
                    create_decided(&store, &passing, "passing").await;
                    expect(overwrite(&store, &rewritten, "again").await, "overwriting");
                    expect(store.delete(&passing, DeleteFence::None).await, "deleting");
                    continue;
                }
                let request = ListRequest {
                    prefix: format!("{prefix}s/"),
                    max_keys: Some(7),
                    ..ListRequest::default()
                };
                let mut keys = Vec::new();
                let mut pages = paging::list(&*store, request);
                while let Some(page) = expect(pages.next_page().await, "listing in a race") {
                    keys.extend(page.objects.into_iter().map(|listed| listed.key));
                }
                assert!(
                    keys.is_sorted_by(|a, b| a < b),
                    "round {round}: order, no key twice: {keys:?}"
                );
                keys.retain(|key| !key.ends_with('x'));
                let expected: Vec<_> = steady
                    .iter()
                    .map(|rest| format!("{prefix}{rest}"))
                    .collect();
                assert_eq!(
                    keys, expected,
                    "round {round}: what was there throughout is listed"
                );
            }
        }
    })
    .await;
}
