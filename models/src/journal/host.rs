//! The hosts: what each wants, and how far it has come.

use super::entry::{End, Entry, LeaseId};

/// What a host does all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// An owner and its replica: prepares the lease, publishes, commits; later may remove and release.
    Publisher(LeaseId),
    /// Prolongs a committed lease.
    Extender(LeaseId, End),
    /// Gives a receipt again: appends `touched` before it says so.
    Toucher,
    /// Ends prepared leases by what their owner shows.
    Reconciler,
    /// Answers `resolve` for an append that another host left undecided.
    Resolver,
    /// Writes the plan.
    Planner,
    /// Applies the plan (or, where a scenario has none, what it sees itself), sweeps, ends leases.
    Collector,
    /// Takes a `condemned` back; only for [`Rule::CondemnedIsForever`](super::Rule::CondemnedIsForever).
    Undoer,
    /// Writes the body again; only for [`Rule::KeysAreUsedOnce`](super::Rule::KeysAreUsedOnce).
    Recreator,
}

/// An entry that is being appended to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Append {
    /// What is appended.
    pub entry: Entry,
    /// Where.
    pub slot: u8,
}

/// Where a host stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It will look at the journal next.
    Idle,
    /// It has decided, on the prefix before the slot.
    Ready(Append),
    /// The conditional PUT is on the wire.
    Sent(Append),
    /// The PUT's outcome is not known.
    Unknown(Append),
    /// The slot is decided, and ours.
    Won(Append),
    /// Its caller was answered 202 and asks for a resolve.
    Told202,
    /// It may publish.
    Publish,
    /// The publication is on the wire.
    AwaitPublish,
    /// The owner shows nothing for the lease: it must seal, then abort at the slot.
    Seal(LeaseId, u8),
    /// It seals after it has aborted; only without
    /// [`Rule::SealBeforeAborted`](super::Rule::SealBeforeAborted).
    SealLate(LeaseId),
    /// It may delete the body.
    Delete,
    /// The DELETE is on the wire.
    AwaitDelete,
    /// Its reference is committed and visible; it may remove it.
    MayRemove,
    /// It does nothing more.
    Done,
}

impl Step {
    /// Returns whether the host acts on a view of the journal.
    pub(super) fn holds_view(self) -> bool {
        matches!(
            self,
            Self::Ready(_) | Self::Sent(_) | Self::Unknown(_) | Self::Won(_)
        )
    }
}

/// One host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// What it does.
    pub role: Role,
    /// Where it stands.
    pub step: Step,
    /// How often it may still look at the journal.
    pub reads: u8,
    /// How often it may still send a record of new bytes.
    pub sends: u8,
    /// How often it may still die.
    pub crashes: u8,
    /// It stalled while it held a view.
    pub is_stale: bool,
    /// The tail that it last saw.
    pub tail: u8,
}

impl Host {
    /// The step of a host that has nothing more to do with what it saw.
    pub(super) fn rest(&self) -> Step {
        if self.reads > 0 {
            Step::Idle
        } else {
            Step::Done
        }
    }

    /// A host that does nothing more has no past either: fewer states that differ in nothing.
    pub(super) fn forget_if_done(&mut self) {
        if self.step == Step::Done || (self.step == Step::Idle && self.reads == 0) {
            let (reads, sends, crashes, tail, is_stale) = (0, 0, 0, 0, false);
            let (role, step) = (self.role, Step::Done);
            *self = Self {
                role,
                step,
                reads,
                sends,
                crashes,
                is_stale,
                tail,
            };
        }
    }

    /// The nonce of its latest record; `sends` was already lowered for it.
    pub(super) fn latest_nonce(&self, host: u8) -> u8 {
        host * 16 + self.sends + 1
    }
}
