use std::time::Duration;

use proptest::prelude::*;
use tokio::time::timeout;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn small_bodies_take_little_and_unknown_ones_all_that_an_upload_can_need() {
    assert_eq!(need_bytes(Some(0)), UPLOAD_MEMORY_UNIT_BYTES);
    assert!(need_bytes(Some(100_000)) < 300_000);
    assert!(need_bytes(Some(PART_BYTES as u64)) >= PART_BYTES as u64);
    assert!(need_bytes(Some(PART_BYTES as u64)) < 9 * MIB);
    assert_eq!(need_bytes(Some(PART_BYTES as u64 + 1)), 24 * MIB);
    assert_eq!(need_bytes(None), 24 * MIB);
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_waits_until_enough_is_given_back() {
    let memory = UploadMemory::new(48 * MIB);
    let mut first = memory.reserve(need_bytes(None)).await;
    let _second = memory.reserve(need_bytes(None)).await;
    assert_eq!(memory.reserved_bytes(), 48 * MIB);
    let wait = Duration::from_secs(5);
    assert!(timeout(wait, memory.reserve(1)).await.is_err());
    // A body that turned out to be small gives back the rest while it is still being saved.
    first.shrink_to(need_bytes(Some(10)));
    let third = timeout(wait, memory.reserve(need_bytes(Some(10)))).await;
    assert!(third.is_ok());
    drop(first);
    assert_eq!(
        memory.reserved_bytes(),
        24 * MIB + 2 * UPLOAD_MEMORY_UNIT_BYTES
    );
}

#[tokio::test(start_paused = true)]
async fn a_large_upload_is_not_overtaken_for_ever_by_small_ones() {
    let memory = UploadMemory::new(24 * MIB);
    let small = memory.reserve(1).await;
    let mut large = std::pin::pin!(memory.reserve(24 * MIB));
    assert!(timeout(Duration::ZERO, large.as_mut()).await.is_err());
    let mut later = std::pin::pin!(memory.reserve(1));
    assert!(timeout(Duration::ZERO, later.as_mut()).await.is_err());
    drop(small);
    let large = large.await;
    assert!(timeout(Duration::ZERO, later.as_mut()).await.is_err());
    drop(large);
    later.await;
}

#[tokio::test]
async fn more_than_the_budget_waits_for_all_of_it_instead_of_for_ever() {
    let memory = UploadMemory::new(MIB);
    let all = memory.reserve(u64::MAX).await;
    assert_eq!(memory.reserved_bytes(), memory.total_bytes());
    drop(all);
    assert_eq!(memory.reserved_bytes(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Reserve(Option<u64>),
    Shrink(usize, u64),
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => proptest::option::of(0..40 * MIB).prop_map(Step::Reserve),
        1 => (any::<usize>(), 0..40 * MIB).prop_map(|(which, to)| Step::Shrink(which, to)),
        2 => any::<usize>().prop_map(Step::Release),
    ]
}

proptest! {
    /// Counted beside the semaphore: what holders may use never passes the budget, and nothing is lost.
    #[test]
    fn the_sum_of_all_shares_never_passes_the_budget(
        budget in 24 * MIB..200 * MIB,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let memory = UploadMemory::new(budget);
            let mut held: Vec<(Reserved, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Reserve(stated) => {
                        let need = need_bytes(stated);
                        if let Ok(share) = timeout(Duration::ZERO, memory.reserve(need)).await {
                            held.push((share, need));
                        }
                    }
                    Step::Shrink(which, to) if !held.is_empty() => {
                        let at = which % held.len();
                        held[at].0.shrink_to(to);
                        held[at].1 = held[at].1.min(to);
                    }
                    Step::Release(which) if !held.is_empty() => {
                        held.swap_remove(which % held.len());
                    }
                    Step::Shrink(..) | Step::Release(_) => {}
                }
                let sum: u64 = held.iter().map(|(_, bytes)| bytes).sum();
                assert!(sum <= memory.reserved_bytes(), "{sum}");
                assert!(memory.reserved_bytes() <= budget);
            }
            held.clear();
            assert_eq!(memory.reserved_bytes(), 0);
        });
    }
}
