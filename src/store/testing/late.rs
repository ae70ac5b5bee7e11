//! Races whose bodies are slow to arrive: a store that checks a condition before it has the body and
//! writes afterwards passes every other case and fails these.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Trial;
use crate::store::keys::Key;
use crate::store::probe::{Hold, ProbePut};
use crate::store::{PutMode, SharedStore, StoreError, StoreErrorKind};

/// Small enough that the held part fits every socket's buffer, so that no writer waits for another.
const BODY_BYTES: usize = 16 << 10;
const ROUNDS: usize = 3;
/// How long the fast writer may take beside the slow one. A server that holds the key's lock while a
/// body arrives answers it only after that.
const HEAD_START: Duration = Duration::from_millis(500);

/// A creation that is under way and waits for its last bytes.
struct Late {
    content: String,
    reached: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
}

fn begin(
    tasks: &mut JoinSet<(String, Result<(), StoreError>)>,
    store: &SharedStore,
    key: &Key,
    writer: usize,
    after_bytes: usize,
) -> Late {
    let content = format!("{writer:>BODY_BYTES$}");
    let (reached, on_reached) = oneshot::channel();
    let (release, on_release) = oneshot::channel();
    let probe = ProbePut {
        payload: content.clone().into(),
        hold: Some(Hold {
            after_bytes,
            reached,
            release: on_release,
        }),
        claimed_crc32: None,
    };
    let (store, key, written) = (SharedStore::clone(store), key.clone(), content.clone());
    tasks.spawn(async move {
        let outcome = store.put_probe(&key, probe, PutMode::CreateIfAbsent).await;
        (written, outcome.map(drop))
    });
    Late {
        content,
        reached: on_reached,
        release,
    }
}

/// Exactly one writer was told that it created the key, and its bytes are there. A writer whose outcome
/// is undecided may be that one.
async fn has_one_winner(trial: &Trial, key: &Key, results: Vec<(String, Result<(), StoreError>)>) {
    let content = trial.read(key).await;
    let mut told = Vec::new();
    for (written, outcome) in results {
        let is_there = written == content;
        match outcome {
            Ok(()) => told.push(is_there),
            Err(error) if error.is(StoreErrorKind::AlreadyExists) => {
                assert!(!is_there, "the bytes of a refused writer are there");
            }
            Err(error) if error.kind.is_undecided() => {
                if is_there {
                    told.push(true);
                }
            }
            Err(error) => panic!("creating with a late body failed: {error}"),
        }
    }
    assert_eq!(
        told,
        [true],
        "one writer is told that it won, and its bytes are there"
    );
}

pub(super) async fn creators_whose_last_byte_comes_late_have_exactly_one_winner(trial: &Trial) {
    for round in 0..ROUNDS {
        let key = trial.key(&format!("late-{round}"));
        let mut tasks = JoinSet::new();
        let writers: Vec<_> = (0..trial.capabilities.contenders)
            .map(|writer| begin(&mut tasks, &trial.store, &key, writer, BODY_BYTES - 1))
            .collect();
        let (reached, releases): (Vec<_>, Vec<_>) = writers
            .into_iter()
            .map(|late| (late.reached, late.release))
            .unzip();
        // A server that holds the key's lock lets one of them get that far; see HEAD_START.
        let _ = tokio::time::timeout(HEAD_START, join_all(reached)).await;
        for release in releases {
            let _ = release.send(());
        }
        has_one_winner(trial, &key, tasks.join_all().await).await;
    }
}

pub(super) async fn a_slow_and_a_fast_writer_have_one_winner(trial: &Trial) {
    let key = trial.key("slow");
    let mut tasks = JoinSet::new();
    let slow = begin(&mut tasks, &trial.store, &key, 1, BODY_BYTES / 2);
    let _ = slow.reached.await;
    let mut results = Vec::new();
    let mut fast_tasks = JoinSet::new();
    let fast = begin(&mut fast_tasks, &trial.store, &key, 2, 0);
    let _ = fast.release.send(());
    // Beside the slow one, never before it: see HEAD_START.
    let early = tokio::time::timeout(HEAD_START, fast_tasks.join_next()).await;
    let _ = slow.release.send(());
    if let Ok(Some(Ok(result))) = early {
        results.push(result);
    }
    results.extend(fast_tasks.join_all().await);
    results.extend(tasks.join_all().await);
    assert_eq!(results.len(), 2, "both writers ended");
    assert_ne!(slow.content, fast.content);
    has_one_winner(trial, &key, results).await;
}
