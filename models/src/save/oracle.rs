//! What would follow if everybody died now: the collector alone, and one more save alone.

use super::chain::ChainEnd;
use super::state::{Journal, Manifest, Mode, Record, State, Why};
use super::{Rule, SaveModel};

/// How one more save ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With a receipt.
    Receipt,
    /// With 410.
    Gone,
    /// It never ends well, however often it is tried.
    Stuck,
}

impl SaveModel {
    /// The collector alone, to its end, on what is in the bucket; what is on the wire is lost.
    pub(super) fn swept(&self, state: &State) -> State {
        let mut s = state.clone();
        for x in self.artifacts() {
            if let (Journal::Condemned(why), Manifest::Live(_)) = (s.journal[x], s.manifests[x]) {
                s.manifests[x] = Manifest::Tombstone(why);
            }
            if s.bodies[x] != 0 && s.manifests[x] == Manifest::Absent {
                s.manifests[x] = Manifest::Tombstone(Why::Abandoned);
            }
            let is_closed =
                matches!(s.journal[x], Journal::Deleted(_)) && self.lacks(Rule::LateBodiesGo);
            if s.is_tombstone(x) && !is_closed {
                s.bodies[x] = 0;
            }
        }
        s
    }

    /// One more save of this chain, without fault or company.
    pub(super) fn solo(&self, s: &State, mode: Mode, chain: usize) -> Outcome {
        if mode == Mode::Bare {
            return Outcome::Receipt;
        }
        match self.chain_end(s, chain) {
            ChainEnd::Live(_) | ChainEnd::Unfinished { .. } => Outcome::Receipt,
            ChainEnd::Erased => Outcome::Gone,
            ChainEnd::Free { .. } if self.meets_abandoned(s, chain) => Outcome::Stuck,
            ChainEnd::Free { .. } => match self.parent_of(chain) {
                Some(parent) => self.solo_in_fork(s, parent),
                None => Outcome::Receipt,
            },
        }
    }

    /// A fork's save whose own session decides nothing.
    fn solo_in_fork(&self, s: &State, parent: usize) -> Outcome {
        match self.chain_end(s, parent) {
            ChainEnd::Erased if !self.lacks(Rule::ParentErasedIsFinal) => Outcome::Gone,
            ChainEnd::Unfinished { .. } if self.lacks(Rule::ParentUnfinishedIsPassed) => {
                Outcome::Stuck
            }
            ChainEnd::Free { record }
                if record > 0 && self.lacks(Rule::ParentCollectedIsPassed) =>
            {
                Outcome::Stuck
            }
            _ => Outcome::Receipt,
        }
    }

    fn meets_abandoned(&self, s: &State, chain: usize) -> bool {
        let abandoned = Manifest::Tombstone(Why::Abandoned);
        let mut records = s.records[self.records_of(chain)].iter();
        self.lacks(Rule::AbandonedMovesOn)
            && records.any(|record| match record {
                Record::Saved(artifact) => s.manifests[usize::from(*artifact)] == abandoned,
                Record::Empty | Record::Erased => false,
            })
    }
}
