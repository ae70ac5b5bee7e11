//! The journal of a one-host ancestor: a file with one JSON record per line, checked line by line.
//!
//! Whoever moves from there can show, before and after, that the file is whole. Nothing is imported and
//! nothing is written. The rules are that system's own:
//!
//! * a line ends at LF and nowhere else; bytes after the last LF are a write that was cut off, and are
//!   passed over; every other line that is no whole record is damage;
//! * a record's hash is SHA-256 of its JSON with sorted keys, no spaces, text raw, without `event_sha256`;
//!   members that nobody knows pass if the hash covers them;
//! * sequence numbers are the line numbers, from 1; the first record follows 64 zeros;
//! * `prepared`, then `committed` or `aborted`; `committed`, then `released`.

mod canonical;
mod claim;
mod line;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::digest::Sha256Digest;
use crate::lease::finding::{Finding, FindingKind};
use crate::lease::jsonl::line::{LineError, Phase};
use crate::lease::verify::Status;
use crate::limits::{MAX_FINDINGS, MAX_JOURNAL_LINE_BYTES};

pub use self::claim::{Claim, InvalidClaimError};
pub use self::line::{Line, event_sha256, intent_sha256};

/// What the first record follows.
const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What was found in a file. Places are line numbers, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JsonlReport {
    /// `ok`, or the name of the worst finding.
    pub status: Status,
    /// In the order of the file.
    pub findings: Vec<Finding>,
    /// How many there were.
    pub findings_total: u64,
    /// Whole lines.
    pub records: u64,
    /// Whose journal it is.
    pub session: Option<String>,
    /// Hash of the last record.
    pub head: Option<String>,
    /// Transactions that are prepared and nothing else.
    pub pending: Vec<String>,
    /// Transactions in each state.
    pub leases: BTreeMap<&'static str, u64>,
    /// Bytes after the last LF.
    pub cut_off_bytes: u64,
}

/// Checks one file; lines come in as they are read.
#[derive(Debug, Default)]
pub struct JsonlChecker {
    records: u64,
    session: Option<String>,
    /// Hash and sequence number of the record before.
    previous: Option<(String, u64)>,
    /// Phase and intent of each transaction.
    leases: BTreeMap<String, (Phase, String)>,
    findings: Vec<Finding>,
    findings_total: u64,
}

impl JsonlChecker {
    /// Takes the next whole line, without its LF.
    pub fn line(&mut self, bytes: &[u8]) {
        self.records += 1;
        let number = self.records;
        if bytes.len() > MAX_JOURNAL_LINE_BYTES {
            let detail = format!("a line of {} bytes", bytes.len());
            self.find(FindingKind::Unreadable, number, detail);
            self.previous = None;
            return;
        }
        match Line::parse(bytes) {
            Ok(line) => self.record(number, &line),
            Err(error) => {
                let kind = match error {
                    LineError::UnknownSchema(_) => FindingKind::UnknownSchema,
                    LineError::Unreadable(_) => FindingKind::Unreadable,
                };
                self.find(kind, number, error.to_string());
                // What follows it cannot be compared.
                self.previous = None;
            }
        }
    }

    /// Ends the file; `cut_off_bytes` came after the last LF.
    pub fn finish(self, cut_off_bytes: u64) -> JsonlReport {
        let mut counts = BTreeMap::new();
        for (phase, _) in self.leases.values() {
            *counts.entry(phase.as_str()).or_default() += 1;
        }
        let pending = self.leases.iter();
        let pending = pending.filter(|(_, (phase, _))| *phase == Phase::Prepared);
        JsonlReport {
            status: Status::of(&self.findings),
            findings_total: self.findings_total,
            records: self.records,
            session: self.session.clone(),
            head: self.previous.as_ref().map(|(hash, _)| hash.clone()),
            pending: pending.map(|(name, _)| name.clone()).collect(),
            leases: counts,
            cut_off_bytes,
            findings: self.findings,
        }
    }

    fn find(&mut self, name: FindingKind, line: u64, detail: impl Into<String>) {
        self.findings_total += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding::at(name, line, detail));
        }
    }

    fn record(&mut self, number: u64, line: &Line) {
        let session = self.session.get_or_insert_with(|| line.session_id.clone());
        if *session != line.session_id {
            let detail = format!("a record of session `{}`", line.session_id.escape_debug());
            self.find(FindingKind::ForeignSession, number, detail);
        }
        if line.computed_sha256 != line.event_sha256 {
            let detail = format!("hashes to {}", line.computed_sha256);
            self.find(FindingKind::BadHash, number, detail);
        }
        self.place(number, line);
        self.transition(number, line);
        self.previous = Some((line.event_sha256.clone(), line.sequence));
    }

    /// Compares sequence number and link with the record before.
    fn place(&mut self, number: u64, line: &Line) {
        let (before, last) = match &self.previous {
            Some((hash, sequence)) => (Some(hash.as_str()), *sequence),
            None if number == 1 => (Some(NOTHING), 0),
            None => (None, number - 1),
        };
        let follows = &line.previous_sha256;
        let is_linked = before.is_none_or(|before| before == follows);
        let is_copy = before == Some(line.event_sha256.as_str());
        if line.sequence > last + 1 {
            let (first, end) = (last + 1, line.sequence - 1);
            let detail = format!("records {first} to {end} are missing before line {number}");
            self.findings_total += 1;
            self.findings.push(Finding::gap(first, end, detail));
        } else if is_copy {
            self.find(FindingKind::Duplicate, number, "the line before once more");
        } else if line.sequence <= last {
            let detail = format!("a second record {}", line.sequence);
            self.find(FindingKind::Fork, number, detail);
        } else if !is_linked {
            let detail = format!("follows {follows}, which the record before is not");
            self.find(FindingKind::BadLink, number, detail);
        }
    }

    fn transition(&mut self, number: u64, line: &Line) {
        let known = self.leases.get(&line.transaction_id);
        let is_legal = match (known.map(|(phase, _)| *phase), line.phase) {
            (None, Phase::Prepared)
            | (Some(Phase::Prepared), Phase::Committed | Phase::Aborted)
            | (Some(Phase::Committed), Phase::Released) => true,
            (
                None | Some(_),
                Phase::Prepared | Phase::Committed | Phase::Aborted | Phase::Released,
            ) => false,
        };
        if known.is_some_and(|(_, intent)| *intent != line.intent_sha256) {
            let detail = "names another intent than the one that was prepared";
            self.find(FindingKind::BadHash, number, detail);
        } else if !is_legal {
            let from = known.map_or("nothing", |(phase, _)| phase.as_str());
            let detail = format!("`{}` after {from}", line.phase.as_str());
            self.find(FindingKind::Suspect, number, detail);
            return;
        }
        let state = (line.phase, line.intent_sha256.clone());
        self.leases.insert(line.transaction_id.clone(), state);
    }
}

/// Checks a whole file in memory.
pub fn check(bytes: &[u8]) -> JsonlReport {
    let mut checker = JsonlChecker::default();
    let mut rest = bytes;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        checker.line(&rest[..end]);
        rest = &rest[end + 1..];
    }
    checker.finish(rest.len() as u64)
}

/// Returns the lower-case digits that this system writes digests with.
fn digits(digest: &Sha256Digest) -> String {
    digest.to_hex()
}

#[cfg(test)]
mod tests;
