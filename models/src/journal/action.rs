//! What can happen next.
//!
//! Nothing is ever made to happen: a request that never lands is one whose landing is not chosen, a
//! lost reply is a timeout before the landing, and a host that takes no further step is dead. So there
//! is no action for a loss; [`Action::Crash`] is the host that comes back.

use super::JournalModel;
use super::Rule;
use super::entry::LEASES;
use super::host::{Role, Step};
use super::state::{Answer, Reference, State};

/// One thing that happens. `host` is an index into the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The host opens the journal cold and decides.
    Look(u8),
    /// The same, but LIST and GET show only the first records.
    LookOld {
        /// The host.
        host: u8,
        /// How many.
        tail: u8,
    },
    /// The host is asked to resolve a `seq` beyond the first free slot.
    LookForged(u8),
    /// The host sends its record.
    Send(u8),
    /// A record arrives at the store, by its nonce; a sender that still waits gets the answer.
    PutLands(u8),
    /// The host gives up waiting for the answer.
    Timeout(u8),
    /// The host GETs the slot of an undecided record; while it is empty, the same bytes go again.
    Recheck(u8),
    /// The same, but the GET answers 404 although the slot is taken.
    RecheckOld(u8),
    /// The host answers 202; its caller asks for a resolve.
    Answer202(u8),
    /// The host acts on having won a slot.
    Finish(u8),
    /// The owner sends its publication.
    Publish(u8),
    /// A publication of the lease arrives.
    PublicationLands(u8),
    /// The host asks the owner to seal.
    Seal(u8),
    /// The host sends a DELETE.
    Delete(u8),
    /// A DELETE arrives: now, or days later.
    DeleteLands,
    /// The owner removes its reference.
    Remove(u8),
    /// The owner keeps its reference.
    Keep(u8),
    /// The host dies and starts anew, remembering nothing.
    Crash(u8),
    /// The host stands still while it holds a view.
    Stall(u8),
    /// Old records are deleted.
    Truncate,
    /// The store's date goes on.
    Tick,
}

impl JournalModel {
    pub(super) fn possible(&self, state: &State, out: &mut Vec<Action>) {
        for host in 0..self.hosts.len() as u8 {
            self.possible_of_host(state, host, out);
        }
        for put in &state.puts {
            out.push(Action::PutLands(put.nonce));
        }
        for lease in 0..LEASES as u8 {
            if state.publishes[usize::from(lease)] > 0 {
                out.push(Action::PublicationLands(lease));
            }
        }
        if state.deletes > 0 {
            out.push(Action::DeleteLands);
        }
        if self.truncates && self.can_truncate(state) {
            out.push(Action::Truncate);
        }
        if state.date < self.last_date {
            out.push(Action::Tick);
        }
    }

    fn possible_of_host(&self, state: &State, host: u8, out: &mut Vec<Action>) {
        let h = &state.hosts[usize::from(host)];
        match h.step {
            Step::Idle if h.reads > 0 && self.has_cause(state, h.role) => {
                out.push(Action::Look(host));
                if self.lies {
                    let tail = state.cold(self.without).0;
                    out.extend((state.floor..tail).map(|tail| Action::LookOld { host, tail }));
                }
                if self.forges && h.role == Role::Resolver {
                    out.push(Action::LookForged(host));
                }
            }
            Step::Ready(append) if h.sends > 0 && append.slot < self.slots => {
                out.push(Action::Send(host));
            }
            Step::Sent(_) => out.push(Action::Timeout(host)),
            Step::Unknown(_) => {
                out.push(Action::Recheck(host));
                if self.lies {
                    out.push(Action::RecheckOld(host));
                }
                let is_caller = matches!(h.role, Role::Publisher(_));
                if self.has(Role::Resolver) && is_caller && state.ticket.is_none() {
                    out.push(Action::Answer202(host));
                }
            }
            Step::Won(_) => out.push(Action::Finish(host)),
            Step::Publish => out.push(Action::Publish(host)),
            Step::Seal(..) | Step::SealLate(_) => out.push(Action::Seal(host)),
            Step::Delete => out.push(Action::Delete(host)),
            Step::MayRemove => {
                out.push(Action::Remove(host));
                out.push(Action::Keep(host));
            }
            Step::Idle
            | Step::Ready(_)
            | Step::Told202
            | Step::AwaitPublish
            | Step::AwaitDelete
            | Step::Done => {}
        }
        if h.crashes > 0 && !matches!(h.step, Step::Idle | Step::Done) {
            out.push(Action::Crash(host));
        }
        if self.stalls && !h.is_stale && h.step.holds_view() {
            out.push(Action::Stall(host));
        }
    }

    /// Some roles have nothing to look for yet.
    fn has_cause(&self, state: &State, role: Role) -> bool {
        match role {
            Role::Resolver => {
                let is_open = |ticket: &super::state::Ticket| ticket.answer == Answer::Open;
                state.ticket.as_ref().is_some_and(is_open)
            }
            Role::Planner => state.plan.is_none(),
            _ => true,
        }
    }

    /// Records go only when they are older than any view that is still fresh: whoever acts on one has
    /// stalled.
    fn can_truncate(&self, state: &State) -> bool {
        let is_settled = state
            .hosts
            .iter()
            .all(|host| host.is_stale || !host.step.holds_view());
        is_settled && state.floor + 1 < state.cold(self.without).0
    }

    pub(super) fn has(&self, role: Role) -> bool {
        self.hosts.contains(&role)
    }

    pub(super) fn lacks(&self, rule: Rule) -> bool {
        self.without == Some(rule)
    }

    /// The owner shows its reference.
    pub(super) fn is_published(state: &State, lease: u8) -> bool {
        state.reference(lease) == Reference::Published
    }
}
