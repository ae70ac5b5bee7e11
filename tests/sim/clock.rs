//! Clocks that run on the runtime's paused time, each as wrong as it was told to be.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillbox::clock::Clock;
use tokio::time::Instant;

/// The store's clock: simulated time since the start, and the leaps that it made.
#[derive(Debug)]
pub(crate) struct StoreClock {
    start: Timestamp,
    epoch: Instant,
    leap: Mutex<SignedDuration>,
}

impl StoreClock {
    /// Starts at a fixed date.
    pub(crate) fn new() -> Self {
        Self {
            start: "2026-11-01T00:00:00Z".parse().unwrap(),
            epoch: Instant::now(),
            leap: Mutex::default(),
        }
    }

    /// Simulated time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Leaps, forward or back.
    pub(crate) fn leap(&self, by: SignedDuration) {
        *self.leap.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap();
        let leap = *self.leap.lock().unwrap_or_else(PoisonError::into_inner);
        self.start
            .checked_add(elapsed)
            .and_then(|now| now.checked_add(leap))
            .unwrap()
    }
}

/// A host's clock: the store's, and some way off.
#[derive(Debug)]
pub(crate) struct HostClock {
    pub(crate) store: Arc<StoreClock>,
    pub(crate) skew: SignedDuration,
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        self.store.now().checked_add(self.skew).unwrap()
    }
}
