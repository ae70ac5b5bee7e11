use std::sync::Arc;

use jiff::SignedDuration;
use uuid::Uuid;

use super::*;
use crate::clock::{Clock, ManualClock, SharedClock, SystemClock};
use crate::ids::{SeededIds, Tenant};
use crate::lease::journals::Journals;
use crate::lease::sample::{next_record, touched};
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;
use crate::store::{DeleteFence, Payload, PutMode, SharedStore};

/// A journal of one session over a store whose clock stands still.
struct Ground {
    clock: Arc<ManualClock>,
    site: Site,
}

impl Ground {
    fn new() -> Self {
        let start = "2026-11-30T00:00:00Z".parse().unwrap();
        let clock = Arc::new(ManualClock::new(start));
        let store: SharedStore = Arc::new(MemoryStore::new(Arc::clone(&clock) as SharedClock));
        let journals = Journals::new(
            store,
            KeySpace::new("").unwrap(),
            SystemClock::shared(),
            Arc::new(SeededIds::new(1)),
        );
        let site = journals.site(&Tenant::default(), &"s".parse().unwrap());
        Self { clock, site }
    }

    /// Puts a record behind everybody's back.
    async fn put(&self, seq: u64, bytes: &[u8]) {
        let (store, key) = (&self.site.around().store, self.site.record_key(seq));
        let payload = Payload::from(bytes::Bytes::copy_from_slice(bytes));
        store.put(&key, payload, PutMode::Overwrite).await.unwrap();
    }

    /// Appends so many records to `chain` and the store; answers the bytes of each.
    async fn grow(&self, chain: &mut Chain, records: u64) -> Vec<Vec<u8>> {
        let mut grown = Vec::new();
        for _ in 0..records {
            let seq = chain.next_seq();
            let nonce = u128::from(seq) + 1;
            let bytes = next_record(chain, nonce, None, vec![touched(seq)]);
            chain.push(&bytes).unwrap();
            self.put(seq, &bytes).await;
            grown.push(bytes);
        }
        grown
    }

    async fn open_with(&self, seq: u64, own: &[u8]) -> Option<View> {
        let view = View::open_with(&self.site, seq, own, &mut Pace::default()).await;
        view.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_prefix_is_trusted_for_as_long_as_its_proof_is_young() {
    let ground = Ground::new();
    let mut chain = ground.site.genesis();
    ground.grow(&mut chain, 1).await;
    let mut pace = Pace::default();
    let mut view = View::open(&ground.site, &mut pace).await.unwrap();
    let start = ground.clock.now();
    let after = |seconds: i64| start.checked_add(SignedDuration::from_secs(seconds)).ok();
    let age = i64::try_from(JOURNAL_PROOF_AGE.as_secs()).unwrap();
    // By the store's date, whatever our stopwatch says.
    assert_eq!(view.as_of(), Some(start));
    assert!(!view.is_unproven_at(after(age - 1)));
    assert!(view.is_unproven_at(after(age)));
    assert!(
        !view.is_unproven_at(after(-age)),
        "the store's clock went back"
    );
    // By our stopwatch, where a reply bears no date.
    assert!(!view.is_stale() && !view.is_unproven_at(None));
    tokio::time::advance(JOURNAL_PROOF_AGE).await;
    assert!(view.is_stale() && view.is_unproven_at(None));
    assert_eq!(view.as_of(), None, "a date that old goes into no record");
    // An absent slot proves the prefix anew, at the date that the time since makes.
    assert!(view.prove(&ground.site, &mut pace).await.unwrap());
    assert!(!view.is_stale() && !view.is_unproven_at(after(2 * age - 1)));
    assert!(view.is_unproven_at(after(2 * age)));
}

#[tokio::test]
async fn our_record_is_proven_as_the_end_of_the_journal_or_by_the_record_after_it() {
    let ground = Ground::new();
    let mut chain = ground.site.genesis();
    let records = ground.grow(&mut chain, 3).await;
    let view = ground.open_with(2, &records[2]).await.unwrap();
    assert_eq!((view.next_seq(), view.chain().head()), (3, chain.head()));
    assert!(ground.open_with(1, &records[1]).await.is_some());
    assert!(ground.open_with(0, &records[0]).await.is_some());
    // Somebody else's record stands there, or none.
    let other = next_record(&ground.site.genesis(), 99, None, vec![touched(9)]);
    assert!(ground.open_with(0, &other).await.is_none());
    assert!(ground.open_with(2, &records[1]).await.is_none());
    assert!(ground.open_with(3, &records[2]).await.is_none());
}

#[tokio::test]
async fn a_record_in_a_slot_that_was_emptied_behind_us_is_not_on_the_journal() {
    let ground = Ground::new();
    let mut chain = ground.site.genesis();
    ground.grow(&mut chain, 1).await;
    let stalled = chain.clone();
    ground.grow(&mut chain, 70).await;
    open::write_checkpoint(&ground.site, &chain).await;
    let last = ground.grow(&mut chain, 1).await.pop().unwrap();
    // The records before the checkpoint are gone, and a writer that slept through all of it writes its
    // own into the first empty slot.
    let store = &ground.site.around().store;
    for seq in 0..71 {
        let key = ground.site.record_key(seq);
        store.delete(&key, DeleteFence::None).await.unwrap();
    }
    let own = next_record(&stalled, Uuid::max().as_u128(), None, vec![touched(1)]);
    ground.put(1, &own).await;
    assert!(ground.open_with(1, &own).await.is_none());
    // Also where the slot after it holds what followed another record.
    ground.put(2, &last).await;
    assert!(ground.open_with(1, &own).await.is_none());
    // The journal itself goes on.
    assert!(ground.open_with(71, &last).await.is_some());
}
