//! A store whose every write takes its time, and that counts them; for budgets under contention, on
//! the paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use spillbox::store::metered::StoreOperation;
use spillbox::store::{SharedStore, StoreError};

use super::hooked::{Ask, Hook, hooked};

/// Delays each PUT, half of it before it takes effect.
#[derive(Debug)]
pub(crate) struct Slow {
    put_time: Duration,
    get_time: Duration,
    puts: AtomicUsize,
}

impl Slow {
    /// A slow store over another one, and the count of what it was asked.
    pub(crate) fn over(
        store: &SharedStore,
        put_time: Duration,
        get_time: Duration,
    ) -> (SharedStore, Arc<Self>) {
        let slow = Arc::new(Self {
            put_time,
            get_time,
            puts: AtomicUsize::new(0),
        });
        (hooked(store, &slow), slow)
    }

    pub(crate) fn puts(&self) -> usize {
        self.puts.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Hook for Slow {
    async fn before(&self, _: &SharedStore, ask: &Ask<'_>) -> Result<usize, StoreError> {
        if ask.operation == StoreOperation::Put {
            self.puts.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.put_time / 2).await;
        } else if ask.operation == StoreOperation::Get {
            tokio::time::sleep(self.get_time).await;
        }
        Ok(0)
    }

    async fn after(&self, ask: &Ask<'_>, _: usize) -> Result<(), StoreError> {
        if ask.operation == StoreOperation::Put {
            tokio::time::sleep(self.put_time / 2).await;
        }
        Ok(())
    }
}
