//! Where the chain of records of one call ends, in one session.

use super::state::{Manifest, RECORDS, Record, State, Why};
use super::{Rule, SaveModel};

/// The end of a chain, as one walk over its records sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainEnd {
    /// A live artifact.
    Live(u8),
    /// Erased; final.
    Erased,
    /// A record whose manifest is not there.
    Unfinished { record: u8, artifact: u8 },
    /// No record decides: never saved, or all collected.
    Free { record: u8 },
}

impl SaveModel {
    pub(super) fn chain_end(&self, state: &State, chain: usize) -> ChainEnd {
        let records = &state.records[self.records_of(chain)];
        for (at, record) in records.iter().enumerate() {
            let at = at as u8;
            match *record {
                Record::Empty => return ChainEnd::Free { record: at },
                Record::Erased => return ChainEnd::Erased,
                Record::Saved(artifact) => match state.manifests[usize::from(artifact)] {
                    Manifest::Live(_) => return ChainEnd::Live(artifact),
                    Manifest::Absent => {
                        return ChainEnd::Unfinished {
                            record: at,
                            artifact,
                        };
                    }
                    Manifest::Tombstone(Why::Erased) if !self.lacks(Rule::ErasedIsFinal) => {
                        return ChainEnd::Erased;
                    }
                    Manifest::Tombstone(_) => {}
                },
            }
        }
        ChainEnd::Free {
            record: RECORDS as u8,
        }
    }
}
