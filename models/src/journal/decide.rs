//! What a host does with what it saw. Pure: a role, a view, a decision.

use super::JournalModel;
use super::Rule;
use super::entry::{Entry, LEASES};
use super::fold::{Artifact, Fold, Lease};
use super::host::{Append, Host, Role, Step};
use super::state::{Answer, Reference, State};

/// A host's view of the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// The first slot that it takes for free.
    pub(super) tail: u8,
    /// The fold of the slots before.
    pub(super) fold: Fold,
}

/// What follows from a view.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    /// A step of the host alone.
    Step(Step),
    /// The plan is written.
    Plan,
    /// The resolve is answered.
    Resolve(Answer),
    /// Nothing.
    Rest,
}

impl JournalModel {
    pub(super) fn decide(&self, state: &State, host: &Host, view: View) -> Decision {
        let View { tail, fold } = view;
        if host.role == Role::Resolver {
            return self.decide_resolve(state, tail);
        }
        if host.role == Role::Planner {
            let is_candidate = fold.artifact == Artifact::Live && !fold.is_protected();
            return if is_candidate && state.has_body {
                Decision::Plan
            } else {
                Decision::Rest
            };
        }
        if host.role == Role::Collector && fold.artifact == Artifact::Condemned && state.has_body {
            return Decision::Step(Step::Delete); // whoever condemned it
        }
        if let Role::Publisher(lease) = host.role {
            let is_committed = matches!(fold.lease(lease), Lease::Committed(_));
            let is_hidden = state.reference(lease) == Reference::Absent;
            if self.commit_first && is_committed && is_hidden {
                return Decision::Step(Step::Publish);
            }
        }
        match self.entry_of(state, host.role, view) {
            Some(Entry::Condemned { .. }) if self.lacks(Rule::CondemnBeforeDelete) => {
                Decision::Step(Step::Delete)
            }
            Some(Entry::Aborted(lease)) if self.must_seal(lease, state) => {
                Decision::Step(Step::Seal(lease, tail))
            }
            Some(entry) => Decision::Step(Step::Ready(Append { entry, slot: tail })),
            None => Decision::Rest,
        }
    }

    fn must_seal(&self, lease: u8, state: &State) -> bool {
        let is_needless = state.reference(lease) == Reference::Sealed;
        let is_late =
            self.lacks(Rule::SealMakesAbsenceFinal) || self.lacks(Rule::SealBeforeAborted);
        !self.commit_first && !is_needless && !is_late
    }

    /// The entry that a role would append to this view.
    fn entry_of(&self, state: &State, role: Role, view: View) -> Option<Entry> {
        let fold = view.fold;
        if fold.is_suspect {
            return None;
        }
        let is_live = fold.artifact == Artifact::Live;
        match role {
            Role::Publisher(lease) => match fold.lease(lease) {
                Lease::Unknown
                    if is_live && (state.has_body || self.lacks(Rule::KeysAreUsedOnce)) =>
                {
                    Some(Entry::Prepared(lease, self.first_end))
                }
                Lease::Prepared(_) if self.commit_first => Some(Entry::Committed(lease)),
                Lease::Committed(_) if state.reference(lease) == Reference::Removed => {
                    Some(Entry::ReleasedRemoved(lease))
                }
                _ => None,
            },
            Role::Extender(lease, end) => {
                let entry = Entry::Extended(lease, end);
                fold.is_effective(entry, self.without).then_some(entry)
            }
            Role::Toucher => (is_live && state.has_body).then_some(Entry::Touched),
            Role::Collector => self.entry_of_collector(state, view),
            Role::Reconciler => {
                let pending = |lease: &u8| matches!(fold.lease(*lease), Lease::Prepared(_));
                let lease = (0..LEASES as u8).find(pending)?;
                let is_published = !self.commit_first && Self::is_published(state, lease);
                Some(if is_published {
                    Entry::Committed(lease)
                } else {
                    Entry::Aborted(lease)
                })
            }
            Role::Undoer => (fold.artifact == Artifact::Condemned).then_some(Entry::Rescinded),
            Role::Recreator => {
                (fold.artifact == Artifact::Deleted && !state.has_body).then_some(Entry::Recreated)
            }
            Role::Planner | Role::Resolver => None,
        }
    }

    fn entry_of_collector(&self, state: &State, view: View) -> Option<Entry> {
        let fold = view.fold;
        if fold.artifact == Artifact::Condemned && !state.has_body {
            return Some(Entry::Deleted);
        }
        let ahead = if self.lacks(Rule::DatesAreTheStores) {
            2
        } else {
            0
        };
        let expired = (0..LEASES as u8)
            .map(|lease| Entry::ReleasedExpired(lease, state.date + ahead))
            .find(|entry| fold.is_effective(*entry, self.without));
        if expired.is_some() {
            return expired;
        }
        let as_of = if self.plans { state.plan? } else { view.tail };
        let condemned = Entry::Condemned { as_of };
        let is_kept = self.is_named_since(state, as_of, view.tail);
        let may = fold.is_effective(condemned, self.without) && state.has_body && !is_kept;
        may.then_some(condemned)
    }

    /// Whether the view shows an entry on the artifact that the plan has not seen.
    fn is_named_since(&self, state: &State, as_of: u8, tail: u8) -> bool {
        if self.lacks(Rule::PlansYieldToEntries) {
            return false;
        }
        let range = usize::from(as_of)..usize::from(tail.max(as_of));
        let mut since = state.first[range].iter().flatten();
        since.any(|record| record.entry != Entry::Noop)
    }

    fn decide_resolve(&self, state: &State, tail: u8) -> Decision {
        let Some(ticket) = state.ticket else {
            return Decision::Rest;
        };
        if ticket.slot > tail {
            return Decision::Rest; // 400, or an older view: the caller asks again
        }
        if ticket.slot == tail {
            return if self.lacks(Rule::ResolveOccupies) {
                Decision::Resolve(Answer::Never)
            } else {
                let entry = Entry::Noop;
                Decision::Step(Step::Ready(Append { entry, slot: tail }))
            };
        }
        let standing = state.first[usize::from(ticket.slot)];
        let is_ours = standing.is_some_and(|record| record.nonce == ticket.nonce);
        if is_ours || self.lacks(Rule::ResolveCompares) {
            Decision::Resolve(Answer::Landed)
        } else {
            Decision::Resolve(Answer::Never)
        }
    }
}
