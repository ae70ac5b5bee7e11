//! One state of the whole world: bucket, wire, owner, hosts, and what the checker remembers.

use super::Rule;
use super::entry::{End, Entry, LEASES, LeaseId, Record};
use super::fold::Fold;
use super::host::Host;

/// A slot of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// No object was ever created there.
    Empty,
    /// A record.
    Record(Record),
    /// Its record was truncated.
    Hole,
}

/// What an owner shows for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Nothing.
    Absent,
    /// The reference.
    Published,
    /// The reference was taken away; it never comes back.
    Removed,
    /// There will never be one.
    Sealed,
}

/// A conditional PUT on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Put {
    /// Names the attempt.
    pub nonce: u8,
    /// Who sent it.
    pub host: u8,
    /// Where it goes.
    pub slot: u8,
    /// What it says.
    pub entry: Entry,
}

/// A 202: the slot and the identity of an append whose outcome was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Whose append it was.
    pub host: u8,
    /// What it says.
    pub entry: Entry,
    /// The `seq` of the 202.
    pub slot: u8,
    /// The `sha256` of the 202: nonces stand for digests.
    pub nonce: u8,
    /// What a resolve has answered.
    pub answer: Answer,
}

/// The answer to a resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// None yet.
    Open,
    /// The record stands in its slot.
    Landed,
    /// It never will.
    Never,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The journal's keys.
    pub slots: Vec<Slot>,
    /// For the checker: the first object ever created under each key. This is *the log*.
    pub first: Vec<Option<Record>>,
    /// Slots below were truncated.
    pub floor: u8,
    /// The body exists.
    pub has_body: bool,
    /// What the owners show.
    pub references: [Reference; LEASES],
    /// Publications on the wire, per lease.
    pub publishes: [u8; LEASES],
    /// DELETEs of the body on the wire. None of them expires.
    pub deletes: u8,
    /// Conditional PUTs on the wire, by nonce.
    pub puts: Vec<Put>,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The tail that the plan in the bucket had seen.
    pub plan: Option<u8>,
    /// The 202 that a resolve is asked for.
    pub ticket: Option<Ticket>,
    /// The store's date.
    pub date: u8,
    /// For the checker: the prepare was acknowledged.
    pub is_acknowledged: [bool; LEASES],
    /// For the checker: a `touched` was acknowledged.
    pub is_touched: bool,
    /// For the checker: the latest end that an owner was told.
    pub promised: [Option<End>; LEASES],
}

impl State {
    /// The journal as a cold open reads it: its tail and its fold.
    pub fn cold(&self, without: Option<Rule>) -> (u8, Fold) {
        let floor = usize::from(self.floor);
        let checkpoint = self.first[..floor].iter().flatten();
        let mut fold = Fold::of(checkpoint.map(|record| record.entry), without);
        let mut tail = self.floor;
        for slot in &self.slots[floor..] {
            let Slot::Record(record) = slot else { break };
            fold.apply(record.entry, without);
            tail += 1;
        }
        (tail, fold)
    }

    /// The journal as a lying LIST shows it: the first `tail` records only.
    pub(super) fn prefix(&self, tail: u8, without: Option<Rule>) -> Fold {
        let shown = self.first[..usize::from(tail)].iter().flatten();
        Fold::of(shown.map(|record| record.entry), without)
    }

    /// The entries of the log, up to its first gap.
    pub fn log(&self) -> impl Iterator<Item = Entry> + '_ {
        let records = self.first.iter().map_while(|record| record.as_ref());
        records.map(|record| record.entry)
    }

    /// The fold of the log: the truth, whatever any host has seen.
    pub fn truth(&self, without: Option<Rule>) -> Fold {
        Fold::of(self.log(), without)
    }

    pub(super) fn reference(&self, lease: LeaseId) -> Reference {
        self.references[usize::from(lease)]
    }

    pub(super) fn put(&mut self, put: Put) {
        let at = self.puts.partition_point(|other| other.nonce < put.nonce);
        self.puts.insert(at, put);
    }

    pub(super) fn has_put(&self, nonce: u8) -> bool {
        self.puts.iter().any(|put| put.nonce == nonce)
    }

    pub(super) fn take_put(&mut self, nonce: u8) -> Option<Put> {
        let at = self.puts.iter().position(|put| put.nonce == nonce)?;
        Some(self.puts.remove(at))
    }
}
