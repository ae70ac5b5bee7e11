//! A batch: the operations that go into one record, each evaluated on the state that the earlier ones
//! leave.
//!
//! An answer rests on landed records only. Where it depends on an entry of the same batch, it waits for
//! that record and is evaluated again if the slot is lost.

use std::sync::Arc;

use jiff::Timestamp;

use crate::lease::entry::Entry;
use crate::lease::evaluate::{Operation, Refusal, Verdict, evaluate};
use crate::lease::fold::Ineffective;
use crate::lease::state::State;
use crate::limits::{MAX_RECORD_BYTES, MAX_RECORD_ENTRIES};

/// What a record has around its entries at most: a session id whose every byte needs an escape takes
/// 3 KiB, the fixed members a few hundred bytes.
const ENVELOPE_BYTES: usize = 4 << 10;

/// The record for one slot, while it is being filled.
#[derive(Debug)]
pub struct Batch {
    seq: u64,
    as_of: Option<Timestamp>,
    base: Arc<State>,
    state: State,
    entries: Vec<Entry>,
    entry_bytes: usize,
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// Its entries are in the batch; it is done when the record has landed.
    Appended,
    /// Nothing to append: it is so already.
    Settled {
        /// Whether that is so only through an entry of this batch.
        rests_on_batch: bool,
    },
    /// It cannot be.
    Refused {
        /// Why.
        refusal: Refusal,
        /// Whether that is so only through an entry of this batch.
        rests_on_batch: bool,
    },
    /// Its entries do not fit any more: they belong into the next record.
    Full,
}

impl Batch {
    /// Begins the record for slot `seq`, whose records before it fold to `state`.
    pub fn new(seq: u64, as_of: Option<Timestamp>, state: &Arc<State>) -> Self {
        Self {
            seq,
            as_of,
            base: Arc::clone(state),
            state: State::clone(state),
            entries: Vec::new(),
            entry_bytes: 0,
        }
    }

    /// Adds an operation.
    pub fn add(&mut self, operation: &Operation) -> Added {
        let verdict = evaluate(&self.state, self.seq, operation);
        match verdict {
            Verdict::Append(entries) => self.append(entries),
            Verdict::Settled => Added::Settled {
                rests_on_batch: self.rests_on_batch(operation, &Verdict::Settled),
            },
            Verdict::Refused(refusal) => {
                let verdict = Verdict::Refused(refusal.clone());
                Added::Refused {
                    refusal,
                    rests_on_batch: self.rests_on_batch(operation, &verdict),
                }
            }
        }
    }

    /// Returns the entries so far, in order; none where no operation appends.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entries in order.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn rests_on_batch(&self, operation: &Operation, verdict: &Verdict) -> bool {
        !self.entries.is_empty() && evaluate(&self.base, self.seq, operation) != *verdict
    }

    fn append(&mut self, mut entries: Vec<Entry>) -> Added {
        if self.seq == 0 && self.entries.is_empty() {
            entries.insert(0, Entry::Genesis { features: vec![] });
        }
        let bytes: usize = entries.iter().map(encoded_bytes).sum();
        let fits = self.entries.len() + entries.len() <= MAX_RECORD_ENTRIES
            && self.entry_bytes + bytes <= MAX_RECORD_BYTES - ENVELOPE_BYTES;
        if !fits && !self.entries.is_empty() {
            return Added::Full;
        }
        if !fits {
            let refusal = Refusal::TooLarge;
            return Added::Refused {
                refusal,
                rests_on_batch: false,
            };
        }
        if let Err(reason) = self.apply(&entries) {
            return Added::Refused {
                refusal: Refusal::Defect(reason),
                rests_on_batch: false,
            };
        }
        self.entry_bytes += bytes;
        self.entries.append(&mut entries);
        Added::Appended
    }

    fn apply(&mut self, entries: &[Entry]) -> Result<(), Ineffective> {
        if let [only] = entries {
            return self.state.apply(self.seq, self.as_of, only);
        }
        // On a copy, so that entries that fail half-way leave nothing behind.
        let mut state = self.state.clone();
        for entry in entries {
            state.apply(self.seq, self.as_of, entry)?;
        }
        self.state = state;
        Ok(())
    }
}

/// The entry's share of a record, comma included.
fn encoded_bytes(entry: &Entry) -> usize {
    let encoded = serde_json::to_vec(entry).expect("text and numbers always serialise");
    encoded.len() + 1
}

#[cfg(test)]
mod tests;
