//! The only source of chance in a simulation: one seed, one history.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Numbers from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(Mutex<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// An index of a list that is not empty.
    pub(crate) fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    /// `true` so many times in a thousand.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// A time between the two, milliseconds.
    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// One of a list that is not empty.
    pub(crate) fn pick<'a, T>(&self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }
}
