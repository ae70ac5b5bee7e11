//! The fold: what the entries so far add up to. Pure, and without a clock.

use super::Rule;
use super::entry::{End, Entry, LEASES, LeaseId};

/// The state of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// No entry names it.
    Unknown,
    /// Claimed; the owner may or may not have published.
    Prepared(End),
    /// The owner has published.
    Committed(Term),
    /// The owner never will.
    Aborted,
    /// The owner took the reference away.
    Removed,
    /// Its end has passed on this date of the store.
    Expired(u8),
}

/// The end of a committed lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// As it was prepared.
    pub first: End,
    /// As it stands now.
    pub end: End,
}

/// The state of the artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Artifact {
    /// It can be read and leased.
    Live,
    /// It will be deleted.
    Condemned,
    /// It was deleted.
    Deleted,
}

/// The folded state of a journal's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    /// Every lease.
    pub leases: [Lease; LEASES],
    /// The artifact.
    pub artifact: Artifact,
    /// An entry was not effective at its place. It is ignored, and everything destructive stops.
    pub is_suspect: bool,
}

impl Fold {
    /// The fold of no entry.
    pub fn new() -> Self {
        Self {
            leases: [Lease::Unknown; LEASES],
            artifact: Artifact::Live,
            is_suspect: false,
        }
    }

    /// Folds entries in order.
    pub fn of(entries: impl IntoIterator<Item = Entry>, without: Option<Rule>) -> Self {
        let mut fold = Self::new();
        for entry in entries {
            fold.apply(entry, without);
        }
        fold
    }

    /// Returns one lease.
    pub fn lease(&self, lease: LeaseId) -> Lease {
        self.leases[usize::from(lease)]
    }

    /// Returns whether a lease keeps the artifact. A prepared one does, whatever its end.
    pub fn is_protected(&self) -> bool {
        let protects = |lease: &Lease| matches!(lease, Lease::Prepared(_) | Lease::Committed(_));
        self.leases.iter().any(protects)
    }

    /// Returns whether `entry` would be effective here. `without` is the rule that this model lacks.
    pub fn is_effective(&self, entry: Entry, without: Option<Rule>) -> bool {
        let lacks = |rule| without == Some(rule);
        match entry {
            Entry::Prepared(lease, _) => {
                self.lease(lease) == Lease::Unknown && self.artifact == Artifact::Live
            }
            Entry::Committed(lease) | Entry::Aborted(lease) => {
                matches!(self.lease(lease), Lease::Prepared(_))
            }
            Entry::Extended(lease, end) => match self.lease(lease) {
                Lease::Committed(term) if term.end == End::Never => {
                    lacks(Rule::EndlessStaysEndless)
                }
                Lease::Committed(term) => end > term.end,
                _ => false,
            },
            Entry::ReleasedRemoved(lease) => matches!(self.lease(lease), Lease::Committed(_)),
            Entry::ReleasedExpired(lease, date) => match self.lease(lease) {
                Lease::Committed(term) if lacks(Rule::ExpiryReadsExtensions) => {
                    term.first <= End::At(date)
                }
                Lease::Committed(term) => term.end <= End::At(date),
                _ => false,
            },
            Entry::Touched => self.artifact == Artifact::Live,
            Entry::Condemned { .. } => {
                let is_free = !self.is_protected() || lacks(Rule::LeasesBlockCondemned);
                self.artifact == Artifact::Live && is_free
            }
            Entry::Deleted | Entry::Rescinded => self.artifact == Artifact::Condemned,
            Entry::Recreated => self.artifact == Artifact::Deleted,
            Entry::Noop => true,
        }
    }

    /// Takes one more entry.
    pub fn apply(&mut self, entry: Entry, without: Option<Rule>) {
        if !self.is_effective(entry, without) {
            self.is_suspect = true;
            return;
        }
        match entry {
            Entry::Prepared(lease, end) => self.set(lease, Lease::Prepared(end)),
            Entry::Committed(lease) => {
                if let Lease::Prepared(end) = self.lease(lease) {
                    self.set(lease, Lease::Committed(Term { first: end, end }));
                }
            }
            Entry::Aborted(lease) => self.set(lease, Lease::Aborted),
            Entry::Extended(lease, end) => {
                if let Lease::Committed(term) = self.lease(lease) {
                    self.set(lease, Lease::Committed(Term { end, ..term }));
                }
            }
            Entry::ReleasedRemoved(lease) => self.set(lease, Lease::Removed),
            Entry::ReleasedExpired(lease, date) => self.set(lease, Lease::Expired(date)),
            Entry::Condemned { .. } => self.artifact = Artifact::Condemned,
            Entry::Deleted => self.artifact = Artifact::Deleted,
            Entry::Rescinded | Entry::Recreated => self.artifact = Artifact::Live,
            Entry::Touched | Entry::Noop => {}
        }
    }

    fn set(&mut self, lease: LeaseId, state: Lease) {
        self.leases[usize::from(lease)] = state;
    }
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}
