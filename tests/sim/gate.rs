//! Whether a host runs: it is stopped at each of its store requests, before it is sent or before its
//! answer is seen, for a while or for ever.

use std::sync::{Mutex, PoisonError};

use futures_util::future::{Either, pending, select};
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    Runs,
    Paused,
    Dead,
}

/// No watch channel: that one wakes its receivers in an order of its own chance.
#[derive(Debug)]
pub(crate) struct Gate {
    pulse: Mutex<Pulse>,
    changed: Notify,
}

impl Gate {
    pub(crate) fn open() -> Self {
        let (pulse, changed) = (Mutex::new(Pulse::Runs), Notify::new());
        Self { pulse, changed }
    }

    pub(crate) fn pulse(&self) -> Pulse {
        *self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, pulse: Pulse) {
        *self.pulse.lock().unwrap_or_else(PoisonError::into_inner) = pulse;
        self.changed.notify_waiters();
    }

    async fn until(&self, wanted: impl Fn(Pulse) -> bool) -> Pulse {
        loop {
            let changed = self.changed.notified();
            let pulse = self.pulse();
            if wanted(pulse) {
                return pulse;
            }
            changed.await;
        }
    }

    /// Waits while the host is paused; a dead one waits for ever.
    pub(crate) async fn pass(&self) {
        if self.until(|pulse| pulse != Pulse::Paused).await == Pulse::Dead {
            pending::<()>().await;
        }
    }

    /// Waits for an answer of the host; `None` when it died first.
    pub(crate) async fn unless_dead<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let death = self.until(|pulse| pulse == Pulse::Dead);
        let (answer, death) = (std::pin::pin!(answer), std::pin::pin!(death));
        match select(answer, death).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }
}
