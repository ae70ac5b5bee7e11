use std::time::Duration;

use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::*;

const MIB: u64 = 1 << 20;
const WHOLE: u64 = STREAMED_UPLOAD_BYTES;

/// Lets a future run until it waits.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    timeout(Duration::ZERO, future).await.ok()
}

#[test]
fn small_bodies_take_little() {
    assert_eq!(need_bytes(0), UPLOAD_MEMORY_UNIT_BYTES);
    assert!(need_bytes(100_000) < 300_000);
    let part = PART_BYTES as u64;
    assert!(need_bytes(part) >= part && need_bytes(part) < 9 * MIB);
    assert_eq!(need_bytes(part + 1), 24 * MIB);
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_waits_until_enough_is_given_back() {
    let memory = UploadMemory::new(2 * WHOLE);
    let mut first = memory.reserve(Some(u64::MAX)).await;
    let _second = memory.reserve(Some(WHOLE)).await;
    assert_eq!(memory.reserved_bytes(), 2 * WHOLE);
    let wait = Duration::from_secs(5);
    assert!(timeout(wait, memory.reserve(Some(0))).await.is_err());
    // A body that turned out to be small gives back the rest while it is still being saved.
    first.settle_at(10);
    let third = timeout(wait, memory.reserve(Some(10))).await;
    assert!(third.is_ok());
    drop(first);
    let two = 2 * UPLOAD_MEMORY_UNIT_BYTES;
    assert_eq!(memory.reserved_bytes(), WHOLE + two);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_size_begins_with_little_and_grows_once() {
    let memory = UploadMemory::new(100 * MIB);
    let mut share = memory.reserve(None).await;
    assert!(memory.reserved_bytes() < 3 * MIB);
    share.grow().await;
    assert_eq!(memory.reserved_bytes(), WHOLE);
    share.grow().await;
    assert_eq!(memory.reserved_bytes(), WHOLE);
    share.release();
    assert_eq!(memory.reserved_bytes(), 0);
    // A stated size never grows.
    let mut stated = memory.reserve(Some(1)).await;
    stated.grow().await;
    assert_eq!(memory.reserved_bytes(), 2 * UPLOAD_MEMORY_UNIT_BYTES);
}

#[tokio::test(start_paused = true)]
async fn growing_that_is_given_up_leaves_the_share_as_it_was() {
    let memory = UploadMemory::new(2 * WHOLE - UPLOAD_MEMORY_UNIT_BYTES);
    let mut waiting = memory.reserve(None).await;
    let before = memory.reserved_bytes();
    let large = memory.reserve(Some(WHOLE)).await;
    assert!(at_once(waiting.grow()).await.is_none());
    assert_eq!(memory.reserved_bytes(), before + WHOLE);
    drop(large);
    waiting.grow().await;
    assert_eq!(memory.reserved_bytes(), WHOLE);
}

#[tokio::test(start_paused = true)]
async fn a_large_upload_is_not_overtaken_for_ever_by_small_ones() {
    let memory = UploadMemory::new(WHOLE);
    let small = memory.reserve(Some(1)).await;
    let mut large = std::pin::pin!(memory.reserve(Some(WHOLE)));
    assert!(at_once(large.as_mut()).await.is_none());
    let mut later = std::pin::pin!(memory.reserve(Some(1)));
    assert!(at_once(later.as_mut()).await.is_none());
    drop(small);
    let large = large.await;
    assert!(at_once(later.as_mut()).await.is_none());
    drop(large);
    later.await;
}

#[tokio::test]
async fn a_budget_of_one_upload_serves_one_after_the_other() {
    let memory = UploadMemory::new(WHOLE);
    for stated in [None, Some(u64::MAX), Some(0), None] {
        let mut share = memory.reserve(stated).await;
        share.grow().await;
        assert!(memory.reserved_bytes() <= memory.total_bytes());
    }
    assert_eq!(memory.reserved_bytes(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(Option<u64>),
    Grow(usize),
    Settle(usize, u64),
    Release(usize),
}

fn size() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(0..40 * MIB)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => size().prop_map(Step::Reserve),
        2 => any::<usize>().prop_map(Step::Grow),
        1 => (any::<usize>(), 0..40 * MIB).prop_map(|(which, to)| Step::Settle(which, to)),
        2 => any::<usize>().prop_map(Step::Release),
    ]
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

proptest! {
    /// Counted beside the semaphore: what holders may use never passes the budget, and nothing is lost.
    #[test]
    fn the_sum_of_all_shares_never_passes_the_budget(
        budget in WHOLE..200 * MIB,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        paused().block_on(async {
            let memory = UploadMemory::new(budget);
            let first = need_bytes(SMALL_BODY_BYTES as u64);
            let mut held: Vec<(Reserved, u64)> = Vec::new();
            for step in steps {
                let at = |which: usize| which.checked_rem(held.len());
                match step {
                    Step::Reserve(stated) => {
                        if let Some(share) = at_once(memory.reserve(stated)).await {
                            held.push((share, stated.map_or(first, need_bytes)));
                        }
                    }
                    Step::Grow(which) => {
                        if let Some(at) = at(which)
                            && held[at].0.growable.is_some()
                            && at_once(held[at].0.grow()).await.is_some()
                        {
                            held[at].1 = WHOLE;
                        }
                    }
                    Step::Settle(which, to) => {
                        if let Some(at) = at(which) {
                            held[at].0.settle_at(to);
                            held[at].1 = held[at].1.min(need_bytes(to));
                        }
                    }
                    Step::Release(which) => {
                        if let Some(at) = at(which) {
                            held.swap_remove(at);
                        }
                    }
                }
                let sum: u64 = held.iter().map(|(_, bytes)| bytes).sum();
                assert!(sum <= memory.reserved_bytes(), "{sum}");
                assert!(memory.reserved_bytes() <= budget);
            }
            held.clear();
            assert_eq!(memory.reserved_bytes(), 0);
            assert_eq!(memory.growable.available_permits() as u64 * UPLOAD_MEMORY_UNIT_BYTES,
                memory.total_bytes() - WHOLE);
        });
    }

    /// Whatever comes at once in whatever order, and whoever grows: all are served, and nobody had to give
    /// up for it.
    #[test]
    fn no_mix_of_uploads_waits_for_itself(
        budget in WHOLE..60 * MIB,
        uploads in prop::collection::vec((size(), 0..4_usize, 0..4_usize), 1..40),
    ) {
        paused().block_on(async {
            let memory = UploadMemory::new(budget);
            let began = Instant::now();
            let mut tasks = JoinSet::new();
            for (stated, before, after) in uploads {
                let memory = memory.clone();
                tasks.spawn(async move {
                    let mut share = memory.reserve(stated).await;
                    for _ in 0..before {
                        tokio::task::yield_now().await;
                    }
                    share.grow().await;
                    for _ in 0..after {
                        tokio::task::yield_now().await;
                    }
                });
            }
            let all = async { while tasks.join_next().await.is_some() {} };
            let served = timeout(Duration::from_secs(1), all).await;
            assert!(served.is_ok(), "they wait for each other");
            assert_eq!(began.elapsed(), Duration::ZERO);
            assert_eq!(memory.reserved_bytes(), 0);
        });
    }
}
