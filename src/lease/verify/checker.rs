//! The deciding part: stored records come in by place, findings come out. No I/O, no clock.
//!
//! Memory does not grow with the journal: one folded state, the last few thousand hashes, and what the
//! caller hands in as witnesses.

use std::collections::{BTreeMap, VecDeque};

use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::ids::{SessionId, Tenant};
use crate::lease::chain::Chain;
use crate::lease::checkpoint::state_sha256;
use crate::lease::finding::{Finding, FindingKind};
use crate::lease::record::{DecodeError, Expected, Record, genesis_hash};
use crate::lease::verify::{Head, Report, Status};
use crate::limits::MAX_FINDINGS;

/// Hashes that are remembered to tell "follows an older record" from "follows an unknown one".
const REMEMBERED_HASHES: usize = 4_096;

/// What was met at a place.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// These bytes.
    Stored(&'a [u8]),
    /// Nothing, although something comes after it.
    Missing,
    /// An object that the store cannot hand out as it was written.
    Damaged(&'a str),
}

/// Somebody who says what a record's hash is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// Who it is, for people: `a receipt`, `the checkpoint`.
    pub who: &'static str,
    /// The record's hash.
    pub sha256: Sha256Digest,
    /// The hash of the state through it; checkpoints only.
    pub state_sha256: Option<Sha256Digest>,
}

/// The place that was looked at last.
#[derive(Debug)]
struct Place {
    seq: u64,
    sha256: Sha256Digest,
    writer: Option<Uuid>,
    /// A witness says that these are the right bytes.
    is_confirmed: bool,
    /// A witness says that they are not.
    denied_by: Option<&'static str>,
    /// Something was found here already; what follows from it is no finding of its own.
    is_reported: bool,
}

/// A record that follows other bytes than the ones before it.
#[derive(Debug)]
struct Mismatch {
    /// The record that does.
    seq: u64,
    /// What it follows.
    follows: Sha256Digest,
    follows_older: bool,
    is_predecessor_confirmed: bool,
    is_same_writer: bool,
}

/// Verifies one journal.
#[derive(Debug)]
pub struct Checker {
    chain: Chain,
    /// Whether `chain` is the whole journal so far; nothing is folded after a break.
    is_whole: bool,
    next_seq: u64,
    records: u64,
    previous: Option<Place>,
    mismatch: Option<Mismatch>,
    gap_from: Option<u64>,
    hashes: VecDeque<Sha256Digest>,
    witnesses: BTreeMap<u64, Vec<Witness>>,
    findings: Vec<Finding>,
    findings_total: u64,
    head: Option<Head>,
}

impl Checker {
    /// Starts at record 0.
    pub fn new(tenant: Tenant, session: SessionId) -> Self {
        let genesis = genesis_hash(&tenant, &session);
        Self {
            chain: Chain::genesis(tenant, session),
            is_whole: true,
            next_seq: 0,
            records: 0,
            previous: None,
            mismatch: None,
            gap_from: None,
            hashes: VecDeque::from([genesis]),
            witnesses: BTreeMap::new(),
            findings: Vec::new(),
            findings_total: 0,
            head: None,
        }
    }

    /// Adds what somebody says of record `seq`; to be called before that record is pushed.
    pub fn witness(&mut self, seq: u64, witness: Witness) {
        let witnesses = self.witnesses.entry(seq).or_default();
        if !witnesses.contains(&witness) {
            witnesses.push(witness);
        }
    }

    /// Adds a finding that was made outside of the records (a checkpoint that cannot be read).
    pub fn note(&mut self, finding: Finding) {
        self.findings_total += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Takes what stands at the next place.
    pub fn push(&mut self, seen: Seen<'_>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        match seen {
            Seen::Stored(bytes) => self.stored(seq, bytes),
            Seen::Missing => {
                self.settle(None);
                self.previous = None;
                self.is_whole = false;
                self.gap_from.get_or_insert(seq);
            }
            Seen::Damaged(detail) => {
                self.settle(None);
                self.end_gap(seq);
                self.previous = None;
                self.is_whole = false;
                self.records += 1;
                self.note(Finding::at(FindingKind::Unreadable, seq, detail));
            }
        }
    }

    /// Ends the journal: what was seen is all there is.
    pub fn finish(mut self) -> Report {
        self.settle(None);
        self.end_gap(self.next_seq);
        // Whoever has a receipt for a record beyond the end knows that there was one.
        if let Some((last, witnesses)) = self.witnesses.last_key_value()
            && *last >= self.next_seq
        {
            let who = witnesses.first().map_or("a witness", |witness| witness.who);
            let (first, last) = (self.next_seq, *last);
            let detail =
                format!("the journal ends before record {first}, but {who} names record {last}");
            self.note(Finding::gap(first, last, detail));
        }
        let ineffective: Vec<u64> = self.chain.state().ineffective().collect();
        for seq in ineffective {
            let detail = "holds an entry without effect, which no correct writer appends; nothing is deleted in this session until it was looked at and cleared";
            self.note(Finding::at(FindingKind::Suspect, seq, detail));
        }
        self.findings.sort_by_key(|finding| finding.first_seq);
        Report {
            status: Status::of(&self.findings),
            findings: self.findings,
            findings_total: self.findings_total,
            records: self.records,
            head: self.head,
            checkpoints: 0,
            receipts: 0,
            receipts_of_other_sessions: 0,
        }
    }

    fn stored(&mut self, seq: u64, bytes: &[u8]) {
        self.end_gap(seq);
        self.records += 1;
        let sha256 = Sha256Digest::of(bytes);
        self.head = Some(Head { seq, sha256 });
        let read = self.read(seq, bytes);
        let followed = read.as_ref().ok().map(|record| record.prev);
        self.settle(followed);
        let mut place = Place {
            seq,
            sha256,
            writer: None,
            is_confirmed: false,
            denied_by: None,
            is_reported: false,
        };
        match read {
            Ok(record) => {
                place.writer = Some(record.writer);
                self.link(seq, &record);
            }
            Err(error) => {
                place.is_reported = !error.is_unsupported();
                self.is_whole = false;
                let finding = self.name(seq, sha256, error);
                self.note(finding);
            }
        }
        self.compare(&mut place);
        if self.hashes.len() == REMEMBERED_HASHES {
            self.hashes.pop_front();
        }
        self.hashes.push_back(sha256);
        self.previous = Some(place);
    }

    /// Reads a record whatever it follows; folds it where it follows the whole journal before it.
    fn read(&mut self, seq: u64, bytes: &[u8]) -> Result<Record, DecodeError> {
        let first_try = if self.is_whole {
            self.chain.push(bytes)
        } else {
            let prev = self.previous.as_ref().map(|place| place.sha256);
            self.decode(seq, bytes, prev.unwrap_or(self.chain.head()))
        };
        match first_try {
            Err(DecodeError::BadLink { actual, .. }) => self.decode(seq, bytes, actual),
            other => other,
        }
    }

    fn decode(&self, seq: u64, bytes: &[u8], prev: Sha256Digest) -> Result<Record, DecodeError> {
        let expected = Expected {
            tenant: self.chain.tenant(),
            session: self.chain.session(),
            seq,
            prev,
            sha256: None,
        };
        Record::decode(bytes, &expected)
    }

    /// Compares what a record follows with what stands before it.
    fn link(&mut self, seq: u64, record: &Record) {
        let follows = record.prev;
        if seq == 0 {
            if self.hashes.front() != Some(&follows) {
                self.is_whole = false;
                let detail = format!("record 0 follows {follows}, not this journal's beginning");
                self.note(Finding::at(FindingKind::BadLink, 0, detail));
            }
            return;
        }
        // After a gap or damage nobody knows what it should follow.
        let Some(previous) = &self.previous else {
            return;
        };
        if previous.is_reported || follows == previous.sha256 {
            return;
        }
        self.is_whole = false;
        self.mismatch = Some(Mismatch {
            seq,
            follows,
            follows_older: self.hashes.contains(&follows),
            is_predecessor_confirmed: previous.is_confirmed,
            is_same_writer: previous.writer.is_none_or(|writer| writer == record.writer),
        });
    }

    /// Asks the witnesses of a record.
    fn compare(&mut self, place: &mut Place) {
        let Some(witnesses) = self.witnesses.remove(&place.seq) else {
            return;
        };
        for witness in witnesses {
            if witness.sha256 != place.sha256 {
                place.denied_by = Some(witness.who);
                continue;
            }
            place.is_confirmed = true;
            let differs = witness
                .state_sha256
                .is_some_and(|said| self.is_whole && state_sha256(self.chain.state()) != said);
            if differs {
                let detail = "its checkpoint says something else than the records up to here: two versions fold differently, or the checkpoint was changed";
                self.note(Finding::at(FindingKind::Suspect, place.seq, detail));
            }
        }
    }

    /// Names what the last place left open, now that the next record is known to follow `followed`
    /// (`None`: nothing readable follows).
    fn settle(&mut self, followed: Option<Sha256Digest>) {
        let Some(previous) = &mut self.previous else {
            return;
        };
        let seq = previous.seq;
        let is_followed = followed.map(|followed| followed == previous.sha256);
        if let Some(mismatch) = self.mismatch.take() {
            let is_changed = is_followed == Some(false);
            previous.is_reported |= is_changed;
            let finding = mismatch.name(is_changed);
            self.note(finding);
        } else if let Some(who) = previous.denied_by.filter(|_| !previous.is_reported) {
            let finding = match is_followed {
                Some(true) => {
                    let detail = format!(
                        "{who} names another record than the one that the journal goes on from"
                    );
                    Some(Finding::at(FindingKind::Fork, seq, detail))
                }
                None => {
                    let detail = format!("the stored bytes are not the ones that {who} names");
                    Some(Finding::at(FindingKind::BadHash, seq, detail))
                }
                // The next record denies them too, and that is named there.
                Some(false) => None,
            };
            if let Some(finding) = finding {
                self.note(finding);
            }
        }
    }

    fn end_gap(&mut self, seq: u64) {
        if let Some(first) = self.gap_from.take() {
            let last = seq.saturating_sub(1);
            let detail = if first == last {
                format!("record {first} is missing")
            } else {
                format!("records {first} to {last} are missing")
            };
            self.note(Finding::gap(first, last, detail));
        }
    }

    fn name(&self, seq: u64, sha256: Sha256Digest, error: DecodeError) -> Finding {
        let kind = match &error {
            DecodeError::ForeignSession { .. } => FindingKind::ForeignSession,
            DecodeError::Unsupported(_) => FindingKind::UnknownSchema,
            DecodeError::WrongSequence { actual, .. } if *actual < seq => {
                let is_copy = self.hashes.contains(&sha256);
                let detail = if is_copy {
                    format!("a copy of record {actual}")
                } else {
                    format!("a second record {actual}")
                };
                return Finding::at(FindingKind::Duplicate, seq, detail);
            }
            DecodeError::WrongSequence { .. } | DecodeError::BadLink { .. } => FindingKind::BadLink,
            DecodeError::BadHash { .. } => FindingKind::BadHash,
            DecodeError::Unreadable(_) => FindingKind::Unreadable,
        };
        Finding::at(kind, seq, error.to_string())
    }
}

impl Mismatch {
    /// Names it; the module's table.
    fn name(&self, is_changed: bool) -> Finding {
        let Self { seq, follows, .. } = self;
        let before = seq - 1;
        if self.follows_older {
            let detail = format!("follows an older record than record {before}");
            return Finding::at(FindingKind::BadLink, *seq, detail);
        }
        if self.is_predecessor_confirmed {
            let detail = format!(
                "the stored record is the confirmed one, but record {seq} follows another ({follows})"
            );
            return Finding::at(FindingKind::Fork, before, detail);
        }
        if is_changed {
            let detail = format!(
                "follows {follows}, which record {before} is not, and the next record does not follow it: it was changed"
            );
            return Finding::at(FindingKind::BadLink, *seq, detail);
        }
        if self.is_same_writer {
            let detail = format!(
                "the stored bytes are not the ones that record {seq} follows ({follows}): they were changed"
            );
            return Finding::at(FindingKind::BadHash, before, detail);
        }
        let detail = format!(
            "record {seq}, of another writer, follows another record ({follows}): two writers were told that this place is theirs, or its bytes were changed"
        );
        Finding::at(FindingKind::Fork, before, detail)
    }
}
