//! When a writer of a contended slot tries again. Pure: measured times and chance come in.
//!
//! The loser of a slot must not back off exponentially: the winner knows the new tail first, so a
//! loser that waits longer and longer starves (with 8 writers the slowest percent waited 23 seconds
//! instead of one). Losers wait a short flat time; a winner that sees other writers lets them have
//! their turn. Only a store that does not answer is waited for exponentially.
//!
//! The times go by how long the store takes for a write, up to what a store in another region takes.

use std::collections::VecDeque;
use std::time::Duration;

use uuid::Uuid;

/// A loser waits up to this long.
const LOSER_PAUSE: Duration = Duration::from_millis(30);

/// A winner leaves this much time to each writer that it has seen.
const LINGER_PER_WRITER: Duration = Duration::from_millis(40);

/// The first pause before an undecided write is sent again, at most; it doubles each time.
const FIRST_UNDECIDED_PAUSE: Duration = Duration::from_millis(50);

/// The longest such pause.
const LAST_UNDECIDED_PAUSE: Duration = Duration::from_secs(2);

/// Records whose writers count as present.
const WINDOW: usize = 16;

/// What a writer knows of the others and of the store.
#[derive(Debug, Default)]
pub struct Pace {
    writers: VecDeque<Uuid>,
    write_time: Option<Duration>,
}

impl Pace {
    /// Notes the writer of the newest record.
    pub fn saw(&mut self, writer: Uuid) {
        if self.writers.len() == WINDOW {
            self.writers.pop_front();
        }
        self.writers.push_back(writer);
    }

    /// Notes how long a write took: a moving mean over about four of them.
    pub fn wrote_in(&mut self, time: Duration) {
        self.write_time = Some(match self.write_time {
            None => time,
            Some(mean) => (mean * 3 + time) / 4,
        });
    }

    /// Returns how many writers wrote the last records.
    pub fn writers(&self) -> usize {
        let mut writers: Vec<_> = self.writers.iter().collect();
        writers.sort_unstable();
        writers.dedup();
        writers.len()
    }

    /// Returns how long a loser waits, `chance` between 0 and 1.
    pub fn loser_pause(&self, chance: f64) -> Duration {
        self.at_most(LOSER_PAUSE).mul_f64(chance)
    }

    /// Returns how long a winner lets the others have their turn: nothing where it is alone.
    pub fn linger(&self, chance: f64) -> Duration {
        match u32::try_from(self.writers()) {
            Ok(writers @ 2..) => self.at_most(LINGER_PER_WRITER).mul_f64(0.5 + chance) * writers,
            Ok(_) | Err(_) => Duration::ZERO,
        }
    }

    fn at_most(&self, longest: Duration) -> Duration {
        self.write_time.map_or(longest, |time| time.min(longest))
    }
}

/// Returns the pause before an undecided write is sent for the `attempt`th time again (from 0).
pub fn undecided_pause(attempt: u32, chance: f64) -> Duration {
    let longest =
        FIRST_UNDECIDED_PAUSE.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
    longest.min(LAST_UNDECIDED_PAUSE).mul_f64(chance)
}

/// Returns a number between 0 and 1 that goes by the bits of a fresh identifier.
pub fn chance(id: Uuid) -> f64 {
    let digest = crate::digest::Sha256Digest::of(id.as_bytes());
    let bytes = digest.as_bytes();
    f64::from(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_is_alone_does_not_linger() {
        let mut pace = Pace::default();
        assert_eq!(pace.linger(1.0), Duration::ZERO);
        for _ in 0..20 {
            pace.saw(Uuid::from_u128(1));
        }
        assert_eq!(pace.linger(1.0), Duration::ZERO);
        pace.saw(Uuid::from_u128(2));
        assert_eq!(pace.linger(0.5), LINGER_PER_WRITER * 2);
        assert_eq!(pace.linger(0.0), LINGER_PER_WRITER);
        // The other one has gone: sixteen records later it counts no more.
        for _ in 0..16 {
            pace.saw(Uuid::from_u128(1));
        }
        assert_eq!(pace.linger(1.0), Duration::ZERO);
    }

    #[test]
    fn losers_wait_flat_and_a_fast_store_makes_everything_shorter() {
        let mut pace = Pace::default();
        assert_eq!(pace.loser_pause(1.0), LOSER_PAUSE);
        assert_eq!(pace.loser_pause(0.0), Duration::ZERO);
        pace.wrote_in(Duration::from_millis(4));
        assert_eq!(pace.loser_pause(1.0), Duration::from_millis(4));
        pace.wrote_in(Duration::from_millis(8));
        assert_eq!(pace.loser_pause(1.0), Duration::from_millis(5));
        for _ in 0..50 {
            pace.wrote_in(Duration::from_secs(3));
        }
        assert_eq!(pace.loser_pause(1.0), LOSER_PAUSE);
    }

    #[test]
    fn an_undecided_write_waits_longer_each_time_up_to_two_seconds() {
        let pauses: Vec<_> = (0..9)
            .map(|n| undecided_pause(n, 1.0).as_millis())
            .collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]);
        assert_eq!(undecided_pause(u32::MAX, 1.0), LAST_UNDECIDED_PAUSE);
        assert_eq!(undecided_pause(3, 0.0), Duration::ZERO);
    }

    #[test]
    fn chance_is_spread_between_0_and_1() {
        let chances: Vec<_> = (0..200).map(|n| chance(Uuid::from_u128(n))).collect();
        assert!(chances.iter().all(|c| (0.0..=1.0).contains(c)));
        let mean = chances.iter().sum::<f64>() / 200.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }
}
