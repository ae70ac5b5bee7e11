//! The table once more, as slowly and plainly as possible: no state but the list of entries that took
//! effect, every question answered by reading it from the beginning.

use std::collections::BTreeSet;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::ids::ArtifactId;
use crate::lease::entry::{AbortReason, Entry, OwnerMode, ReleaseReason};
use crate::lease::names::TransactionId;
use crate::lease::state::{ArtifactStatus, State};

#[derive(Debug, Default)]
pub(super) struct Journal {
    effective: Vec<(u64, Entry)>,
    ineffective: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Unknown,
    Prepared,
    Committed,
    Aborted,
    Released,
}

impl Journal {
    pub(super) fn fold(&mut self, seq: u64, entries: &[Entry]) {
        for entry in entries {
            if self.takes_effect(seq, entry) {
                if let Entry::Cleared { seq: through, .. } = entry {
                    self.ineffective = self
                        .ineffective
                        .iter()
                        .copied()
                        .filter(|n| n > through)
                        .collect();
                }
                self.effective.push((seq, entry.clone()));
            } else {
                self.ineffective.insert(seq);
            }
        }
    }

    fn takes_effect(&self, seq: u64, entry: &Entry) -> bool {
        match entry {
            Entry::Genesis { .. } => false,
            Entry::Prepared(p) => {
                self.word(&p.transaction_id) == Word::Unknown && !self.is_condemned(p.artifact_id)
            }
            Entry::Committed { transaction_id, .. } => self.word(transaction_id) == Word::Prepared,
            Entry::Aborted {
                transaction_id,
                why,
            } => {
                self.word(transaction_id) == Word::Prepared
                    && (*why != AbortReason::Timeout || self.is_commit_first(transaction_id))
            }
            Entry::Extended {
                transaction_id,
                retain_until,
            } => {
                // A time later than all times stands for "no end".
                let far = |end: Option<Timestamp>| end.map_or(i128::MAX, |t| t.as_nanosecond());
                self.word(transaction_id) == Word::Committed
                    && far(*retain_until) > far(self.end(transaction_id))
            }
            Entry::Released {
                transaction_id,
                why,
            } => {
                let is_over = match why {
                    ReleaseReason::Removed | ReleaseReason::Operator => true,
                    ReleaseReason::Expired { server_date } => match self.end(transaction_id) {
                        None => false,
                        Some(end) => {
                            end.as_nanosecond() + 900_000_000_000 <= server_date.as_nanosecond()
                        }
                    },
                };
                self.word(transaction_id) == Word::Committed && is_over
            }
            Entry::Condemned(c) => {
                !self.is_condemned(c.artifact_id) && self.protectors(c.artifact_id).is_empty()
            }
            Entry::Deleted { artifact_id, .. } => {
                self.is_condemned(*artifact_id) && !self.is_deleted(*artifact_id)
            }
            Entry::Touched { artifact_id } => !self.is_condemned(*artifact_id),
            Entry::Cleared { seq: through, .. } => *through < seq,
            Entry::Noop => true,
        }
    }

    fn about<'a>(&'a self, name: &'a TransactionId) -> impl Iterator<Item = &'a Entry> {
        let entries = self.effective.iter().map(|(_, entry)| entry);
        entries.filter(move |entry| entry.transaction_id() == Some(name))
    }

    fn word(&self, name: &TransactionId) -> Word {
        let mut word = Word::Unknown;
        for entry in self.about(name) {
            word = match entry.op() {
                "prepared" => Word::Prepared,
                "committed" => Word::Committed,
                "aborted" => Word::Aborted,
                "released" => Word::Released,
                _ => word,
            };
        }
        word
    }

    fn end(&self, name: &TransactionId) -> Option<Timestamp> {
        let mut end = None;
        for entry in self.about(name) {
            if let Entry::Prepared(p) = entry {
                end = p.retain_until;
            } else if let Entry::Extended { retain_until, .. } = entry {
                end = *retain_until;
            }
        }
        end
    }

    fn is_commit_first(&self, name: &TransactionId) -> bool {
        self.about(name)
            .any(|entry| matches!(entry, Entry::Prepared(p) if p.mode == OwnerMode::CommitFirst))
    }

    fn artifact_of(&self, name: &TransactionId) -> Option<ArtifactId> {
        self.about(name).find_map(Entry::artifact_id)
    }

    fn is_condemned(&self, artifact: ArtifactId) -> bool {
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Condemned(c) if c.artifact_id == artifact);
        self.effective.iter().any(|(_, entry)| is_it(entry))
    }

    fn is_deleted(&self, artifact: ArtifactId) -> bool {
        let is_it = |entry: &Entry| matches!(entry, Entry::Deleted { artifact_id, .. } if *artifact_id == artifact);
        self.effective.iter().any(|(_, entry)| is_it(entry))
    }

    fn names(&self) -> BTreeSet<&TransactionId> {
        self.effective
            .iter()
            .filter_map(|(_, entry)| entry.transaction_id())
            .collect()
    }

    fn protectors(&self, artifact: ArtifactId) -> BTreeSet<&TransactionId> {
        let mut names = self.names();
        names.retain(|name| {
            self.artifact_of(name) == Some(artifact)
                && matches!(self.word(name), Word::Prepared | Word::Committed)
        });
        names
    }

    fn last_seq(&self, artifact: ArtifactId) -> Option<u64> {
        let is_about = |entry: &Entry| {
            let by_lease = entry
                .transaction_id()
                .and_then(|name| self.artifact_of(name));
            entry.artifact_id().or(by_lease) == Some(artifact)
        };
        let last = self.effective.iter().rfind(|(_, entry)| is_about(entry));
        last.map(|(seq, _)| *seq)
    }

    pub(super) fn agrees_with(&self, state: &State) -> Result<(), TestCaseError> {
        let suspects: Vec<u64> = self.ineffective.iter().copied().collect();
        prop_assert_eq!(state.ineffective().collect::<Vec<_>>(), suspects);
        prop_assert_eq!(state.leases().count(), self.names().len());
        for name in self.names() {
            let lease = state
                .lease(name)
                .expect("a lease that took effect is known");
            let word = match lease.phase.as_str() {
                "prepared" => Word::Prepared,
                "committed" => Word::Committed,
                "aborted" => Word::Aborted,
                "released" => Word::Released,
                other => panic!("{other}"),
            };
            prop_assert_eq!(word, self.word(name));
            prop_assert_eq!(lease.retain_until, self.end(name));
        }
        for artifact in (0..3).map(crate::lease::sample::aid) {
            prop_assert_eq!(state.is_live(artifact), !self.is_condemned(artifact));
            let is_deleted = state
                .artifact(artifact)
                .is_some_and(|record| matches!(record.status, ArtifactStatus::Deleted(_)));
            prop_assert_eq!(is_deleted, self.is_deleted(artifact));
            let protectors: BTreeSet<_> = state
                .protectors(artifact)
                .map(|lease| &lease.intent.transaction_id)
                .collect();
            prop_assert_eq!(protectors, self.protectors(artifact));
            let last_seq = state.artifact(artifact).map(|record| record.last_seq);
            prop_assert_eq!(last_seq, self.last_seq(artifact));
        }
        Ok(())
    }
}
