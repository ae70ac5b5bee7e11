//! A store that lies as much as the journal's protocol allows: writes fail before, after and instead of
//! taking effect, arrive late, are refused without a reason; reads and listings show older states. One
//! seed, one history. What it never does: let two creates of one key succeed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use spillbox::store::keys::Key;
use spillbox::store::metered::StoreOperation;
use spillbox::store::{ListPage, Payload, PutMode, SharedStore, StoreError, StoreErrorKind};

use super::hooked::{Ask, Hook, hooked};

#[derive(Debug)]
pub(crate) struct Chaotic {
    store: SharedStore,
    random: Mutex<u64>,
    late: Mutex<Vec<(Key, Payload)>>,
    is_calm: AtomicBool,
}

impl Chaotic {
    /// A lying store over another one, and the hand on it.
    pub(crate) fn over(store: &SharedStore, seed: u64) -> (SharedStore, Arc<Self>) {
        let chaos = Arc::new(Self {
            store: Arc::clone(store),
            random: Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            late: Mutex::default(),
            is_calm: AtomicBool::new(false),
        });
        (hooked(store, &chaos), chaos)
    }

    /// From now on everything works at once.
    pub(crate) fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    /// A number below `bound` (xorshift).
    pub(crate) fn below(&self, bound: u64) -> u64 {
        let mut x = self.random.lock().unwrap();
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        *x % bound
    }

    fn chance(&self, percent: u64) -> bool {
        !self.is_calm.load(Ordering::Relaxed) && self.below(100) < percent
    }

    /// Applies one write that was held back, perhaps.
    async fn something_late_arrives(&self) {
        if self.below(4) == 0 {
            let late = self.late.lock().unwrap().pop();
            if let Some((key, payload)) = late {
                let _ = self.store.put(&key, payload, PutMode::CreateIfAbsent).await;
            }
        }
    }

    /// Applies everything that was held back.
    pub(crate) async fn apply_late(&self) {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        for (key, payload) in late {
            let _ = self.store.put(&key, payload, PutMode::CreateIfAbsent).await;
        }
    }

    /// Every way in which a write fails; all of them are creations here.
    async fn before_put(
        &self,
        store: &SharedStore,
        ask: &Ask<'_>,
        (key, payload): (&Key, &Payload),
    ) -> Result<(), StoreError> {
        self.something_late_arrives().await;
        self.pause().await;
        if !self.chance(25) {
            return Ok(());
        }
        let kind = match self.below(7) {
            0 => StoreErrorKind::Unavailable,
            1 => StoreErrorKind::Conflict,
            2 => StoreErrorKind::Throttled,
            3 => StoreErrorKind::Ambiguous,
            4 => StoreErrorKind::Denied,
            5 => {
                let late = (key.clone(), payload.clone());
                self.late.lock().unwrap().push(late);
                StoreErrorKind::Ambiguous
            }
            _ => {
                let landed = store.put(key, payload.clone(), PutMode::CreateIfAbsent);
                let _ = landed.await;
                StoreErrorKind::Ambiguous
            }
        };
        ask.fail(kind, "chaos")
    }

    async fn pause(&self) {
        let millis = self.below(30);
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }
}

#[async_trait]
impl Hook for Chaotic {
    async fn before(&self, store: &SharedStore, ask: &Ask<'_>) -> Result<usize, StoreError> {
        match (ask.operation, ask.put) {
            (StoreOperation::Put, Some(put)) => self.before_put(store, ask, put).await?,
            (StoreOperation::Get, _) => {
                self.pause().await;
                if self.chance(10) {
                    // Unreachable, or an older state in which the key was not there.
                    let kinds = [StoreErrorKind::Unavailable, StoreErrorKind::NotFound];
                    let kind = kinds[usize::try_from(self.below(2)).unwrap()];
                    return ask.fail(kind, "chaos");
                }
            }
            (StoreOperation::List, _) => {
                self.pause().await;
                if self.chance(5) {
                    return ask.fail(StoreErrorKind::Unavailable, "chaos");
                }
            }
            _ => {}
        }
        Ok(0)
    }

    async fn after(&self, ask: &Ask<'_>, _: usize) -> Result<(), StoreError> {
        if ask.operation == StoreOperation::Put {
            self.pause().await;
        }
        Ok(())
    }

    fn shown(&self, mut page: ListPage) -> ListPage {
        if self.chance(25) {
            let kept = self.below(page.objects.len() as u64 + 1);
            page.objects.truncate(usize::try_from(kept).unwrap());
        }
        page
    }
}
