//! The erase of one call: it walks the call's records from the first one.

use super::state::{Journal, Manifest, Record, State, Why};
use super::{Rule, SaveModel};

/// What an erase does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It writes `erased` here.
    Record(usize),
    /// This artifact must go as well.
    Artifact(usize),
    /// Every tombstone and body delete is confirmed: 200.
    Done,
    /// It waits for one of them.
    Wait,
}

impl SaveModel {
    pub(super) fn erase_next(&self, s: &State, target: usize) -> Next {
        let records = &s.records[self.records_of(self.parts[target].chain)];
        let named = Record::Saved(target as u8);
        let Some(own) = records.iter().position(|record| *record == named) else {
            return Next::Done;
        };
        let skips_earlier = self.lacks(Rule::EraseGoesOn)
            || self.lacks(Rule::EraseTakesLaterRecords)
            || self.lacks(Rule::EraseConfirmsEarlier);
        let mut is_confirmed = true;
        let end = |is_confirmed| if is_confirmed { Next::Done } else { Next::Wait };
        for (at, record) in records.iter().enumerate() {
            if at < own && skips_earlier {
                continue;
            }
            let artifact = match *record {
                Record::Empty if self.lacks(Rule::EraseEndsTheRecords) => return end(is_confirmed),
                Record::Empty => return Next::Record(at),
                Record::Erased => return end(is_confirmed),
                Record::Saved(artifact) => usize::from(artifact),
            };
            if at > own && self.lacks(Rule::EraseGoesOn) {
                return end(is_confirmed);
            }
            if at > own && self.lacks(Rule::EraseTakesLaterRecords) {
                continue;
            }
            let is_gone =
                s.bodies[artifact] == 0 && !s.has_old_version[artifact] && s.is_tombstone(artifact);
            is_confirmed &= is_gone || self.lacks(Rule::EraseConfirms);
            match (s.manifests[artifact], s.journal[artifact]) {
                // An erase was here: the records behind are its business, and confirmed by it.
                (Manifest::Tombstone(Why::Erased), _)
                | (Manifest::Live(_), Journal::Condemned(Why::Erased)) => return end(is_confirmed),
                // Decided already: only to be confirmed.
                (Manifest::Tombstone(_), _) | (_, Journal::Condemned(_) | Journal::Deleted(_)) => {}
                _ => return Next::Artifact(artifact),
            }
        }
        end(is_confirmed)
    }
}
