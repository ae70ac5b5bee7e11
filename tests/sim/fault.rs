//! How a store fails and lies in one simulation: drawn once from the seed, then for every request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spillbox::store::StoreErrorKind;

use crate::random::Dice;

/// What one simulation allows.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Writes that fail, come late, or lose their reply; of a thousand.
    pub(crate) write_faults: u64,
    /// Reads that fail.
    pub(crate) read_faults: u64,
    /// GETs and HEADs that show an older state.
    pub(crate) older_reads: u64,
    /// LISTs that leave keys out or show deleted ones.
    pub(crate) lying_lists: u64,
    /// Replies that come after deadlines have passed.
    pub(crate) slow_replies: u64,
    /// Whether reads outside the journal may be old as well: erasing needs a store that shows what was
    /// written, so such simulations erase nothing.
    pub(crate) is_stale_everywhere: bool,
    /// Whether journal records may be read as absent although they are there.
    pub(crate) is_stale_in_journals: bool,
    /// A store that deletes whatever the condition says.
    pub(crate) ignores_delete_conditions: bool,
    is_calm: AtomicBool,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is applied and answered.
    Applied,
    /// It is answered so, and never applied.
    Refused(StoreErrorKind),
    /// It is answered so, and applied after that time.
    Late(StoreErrorKind, Duration),
    /// It is applied, and its reply is lost.
    ReplyLost,
    /// It is applied and answered, and applied once more after that time.
    Twice(Duration),
}

/// What becomes of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    True,
    Failed(StoreErrorKind),
    Older,
}

impl Profile {
    pub(crate) fn draw(dice: &Dice) -> Self {
        let levels = [0, 20, 80, 250];
        let is_stale_everywhere = dice.chance(300);
        let is_stale_in_journals = is_stale_everywhere || dice.chance(400);
        Self {
            write_faults: *dice.pick(&levels),
            read_faults: *dice.pick(&[0, 10, 60]),
            older_reads: *dice.pick(&[20, 100, 250]),
            lying_lists: *dice.pick(&[0, 50, 300]),
            slow_replies: *dice.pick(&[0, 10, 40]),
            is_stale_everywhere,
            is_stale_in_journals,
            ignores_delete_conditions: dice.chance(200),
            is_calm: AtomicBool::new(false),
        }
    }

    /// From now on everything works at once, and nothing lies.
    pub(crate) fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// How long a request that nobody waits for any more is on its way.
    fn lateness(dice: &Dice) -> Duration {
        match dice.below(10) {
            0..=4 => dice.millis(1, 2_000),
            5..=7 => dice.millis(2_000, 600_000),
            _ => dice.millis(600_000, 4 * 86_400_000),
        }
    }

    pub(crate) fn fate(&self, dice: &Dice) -> Fate {
        if self.is_calm() || !dice.chance(self.write_faults) {
            return Fate::Applied;
        }
        let late = || Self::lateness(dice);
        match dice.below(10) {
            0 => Fate::Refused(StoreErrorKind::Unavailable),
            1 if dice.chance(700) => Fate::Refused(StoreErrorKind::Conflict),
            1 => Fate::Late(StoreErrorKind::Conflict, late()),
            2 if dice.chance(700) => Fate::Refused(StoreErrorKind::Throttled),
            2 => Fate::Late(StoreErrorKind::Throttled, late()),
            3 => Fate::Refused(StoreErrorKind::Denied),
            4 => Fate::Refused(StoreErrorKind::Ambiguous),
            5 | 6 => Fate::Late(StoreErrorKind::Ambiguous, late()),
            7 => Fate::Twice(late()),
            _ => Fate::ReplyLost,
        }
    }

    pub(crate) fn sight(&self, dice: &Dice, is_of_journal: bool) -> Sight {
        if self.is_calm() {
            return Sight::True;
        }
        if dice.chance(self.read_faults) {
            let kinds = [StoreErrorKind::Unavailable, StoreErrorKind::Throttled];
            return Sight::Failed(*dice.pick(&kinds));
        }
        let may_be_old = self.is_stale_everywhere || (is_of_journal && self.is_stale_in_journals);
        if may_be_old && dice.chance(self.older_reads) {
            return Sight::Older;
        }
        Sight::True
    }

    pub(crate) fn list_lies(&self, dice: &Dice) -> bool {
        !self.is_calm() && dice.chance(self.lying_lists)
    }

    /// How long a request takes to the store.
    pub(crate) fn way_there(&self, dice: &Dice) -> Duration {
        dice.millis(1, 25)
    }

    /// How long its reply takes back.
    pub(crate) fn way_back(&self, dice: &Dice) -> Duration {
        if !self.is_calm() && dice.chance(self.slow_replies) {
            return match dice.below(8) {
                0..=5 => dice.millis(3_000, 20_000),
                6 => dice.millis(60_000, 1_200_000),
                _ => dice.millis(3_600_000, 3 * 86_400_000),
            };
        }
        dice.millis(1, 25)
    }
}
