//! Which candidates a plan takes: the oldest ones, within its limits, in bounded memory.
//!
//! How many may go is known only when everything was listed (the share is one of all live artifacts), so
//! the oldest [`GC_PLAN_CANDIDATES`] are kept while the listing streams by, and cut at its end. What
//! does not fit is counted as kept by the limit; the next plan meets it again.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use jiff::Timestamp;

use crate::gc::policy::GcPolicy;
use crate::gc::status::{Reason, Tally};
use crate::limits::{GC_PLAN_CANDIDATES, GC_SHARE_FROM};

/// Something that has an age, a total order, and bytes.
pub trait Aged: Ord {
    /// When it was last written, by the store's clock.
    fn last_modified(&self) -> Timestamp;
    /// Bytes of its body.
    fn body_bytes(&self) -> u64;
}

#[derive(Debug, PartialEq, Eq)]
struct YoungestFirst<T>(T);

impl<T: Aged> Ord for YoungestFirst<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_age = self.0.last_modified().cmp(&other.0.last_modified());
        by_age.then_with(|| self.0.cmp(&other.0))
    }
}

impl<T: Aged> PartialOrd for YoungestFirst<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The candidates that a plan takes, and why others stay.
#[derive(Debug)]
pub struct Selected<T> {
    /// The oldest, in their own order.
    pub taken: Vec<T>,
    /// What the number of deletions leaves.
    pub over_number: Tally,
    /// What the share leaves.
    pub over_share: Tally,
}

/// Collects candidates while a listing streams by.
#[derive(Debug)]
pub struct Selection<T> {
    kept: BinaryHeap<YoungestFirst<T>>,
    capacity: usize,
    over_number: Tally,
}

impl<T: Aged> Selection<T> {
    /// Keeps what `policy` allows, and never more than a plan may hold.
    pub fn new(policy: &GcPolicy) -> Self {
        let allowed = policy.max_deletions.map(usize::try_from);
        let allowed = allowed.map_or(GC_PLAN_CANDIDATES, |number| number.unwrap_or(usize::MAX));
        Self {
            kept: BinaryHeap::new(),
            capacity: allowed.min(GC_PLAN_CANDIDATES),
            over_number: Tally::default(),
        }
    }

    /// Takes a candidate; the youngest goes where there are too many.
    pub fn add(&mut self, candidate: T) {
        self.kept.push(YoungestFirst(candidate));
        if self.kept.len() > self.capacity
            && let Some(YoungestFirst(youngest)) = self.kept.pop()
        {
            let bytes = youngest.body_bytes();
            self.over_number.add(Tally { count: 1, bytes });
        }
    }

    /// Cuts to the share of `live` artifacts that `policy` allows.
    pub fn finish(self, policy: &GcPolicy, live: u64) -> Selected<T> {
        let allowed = if live < GC_SHARE_FROM {
            u64::MAX
        } else {
            policy.max_share.of(live)
        };
        let allowed = usize::try_from(allowed).unwrap_or(usize::MAX);
        let mut taken = self.kept.into_sorted_vec();
        let mut over_share = Tally::default();
        for YoungestFirst(young) in taken.drain(allowed.min(taken.len())..) {
            let bytes = young.body_bytes();
            over_share.add(Tally { count: 1, bytes });
        }
        let mut taken: Vec<T> = taken.into_iter().map(|YoungestFirst(item)| item).collect();
        taken.sort_unstable();
        Selected {
            taken,
            over_number: self.over_number,
            over_share,
        }
    }
}

impl<T> Selected<T> {
    /// Returns whether a limit left something for a later plan.
    pub const fn is_partial(&self) -> bool {
        self.over_number.count > 0 || self.over_share.count > 0
    }

    /// Returns what stays, with the reason.
    pub const fn left(&self) -> [(Reason, Tally); 2] {
        [
            (Reason::CleanupDeletionLimitReached, self.over_number),
            (Reason::ShareLimitReached, self.over_share),
        ]
    }
}

#[cfg(test)]
mod tests;
