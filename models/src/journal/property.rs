//! What must hold in every state, and the good ends that must be reachable.

use stateright::Property;

use super::JournalModel;
use super::Rule;
use super::entry::{End, Entry, LEASES};
use super::fold::{Artifact, Fold, Lease};
use super::host::{Role, Step};
use super::state::{Answer, Reference, Slot, State};

fn leases() -> std::ops::Range<u8> {
    0..LEASES as u8
}

fn truth(model: &JournalModel, state: &State) -> Fold {
    state.truth(model.without)
}

fn safety(model: &JournalModel, state: &State) -> bool {
    if state.has_body {
        return true;
    }
    let fold = truth(model, state);
    // A lease that has run out promises nothing any more, whatever its owner still shows.
    let is_owed = |lease: &u8| !matches!(fold.lease(*lease), Lease::Expired(_));
    !leases()
        .filter(is_owed)
        .any(|lease| JournalModel::is_published(state, lease))
}

fn ack_durable(model: &JournalModel, state: &State) -> bool {
    let fold = truth(model, state);
    let is_known = |lease: u8| fold.lease(lease) != Lease::Unknown;
    let is_extended = |lease: u8| match state.promised[usize::from(lease)] {
        Some(end) if end != model.first_end => state
            .log()
            .any(|entry| entry == Entry::Extended(lease, end)),
        _ => true,
    };
    let is_touched = !state.is_touched || state.log().any(|entry| entry == Entry::Touched);
    let is_kept = |lease: u8| !state.is_acknowledged[usize::from(lease)] || is_known(lease);
    is_touched && leases().all(|lease| is_kept(lease) && is_extended(lease))
}

fn prefix_valid(model: &JournalModel, state: &State) -> bool {
    !truth(model, state).is_suspect
}

fn slot_once(model: &JournalModel, state: &State) -> bool {
    if model.lacks(Rule::OneWinnerPerSlot) {
        return true; // broken by definition; what follows from it is the question
    }
    let above = usize::from(state.floor)..state.slots.len();
    above.into_iter().all(|slot| match state.slots[slot] {
        Slot::Record(record) => state.first[slot] == Some(record),
        Slot::Empty | Slot::Hole => true,
    })
}

fn aborted_hidden(model: &JournalModel, state: &State) -> bool {
    let fold = truth(model, state);
    let is_aborted = |lease: &u8| fold.lease(*lease) == Lease::Aborted;
    !leases()
        .filter(is_aborted)
        .any(|lease| JournalModel::is_published(state, lease))
}

fn condemn_first(model: &JournalModel, state: &State) -> bool {
    // Where keys are used again, the body of an earlier life is gone and the artifact lives.
    let is_new_life = state.log().any(|entry| entry == Entry::Recreated);
    state.has_body || is_new_life || truth(model, state).artifact != Artifact::Live
}

fn remove_first(model: &JournalModel, state: &State) -> bool {
    let fold = truth(model, state);
    let is_removed = |lease: &u8| fold.lease(*lease) == Lease::Removed;
    !leases()
        .filter(is_removed)
        .any(|lease| JournalModel::is_published(state, lease))
}

fn plan_order(_: &JournalModel, state: &State) -> bool {
    let log: Vec<Entry> = state.log().collect();
    log.iter().enumerate().all(|(slot, entry)| match entry {
        Entry::Condemned { as_of } => {
            let since = usize::from(*as_of).min(slot)..slot;
            log[since].iter().all(|entry| *entry == Entry::Noop)
        }
        _ => true,
    })
}

fn end_kept(model: &JournalModel, state: &State) -> bool {
    let fold = truth(model, state);
    leases().all(|lease| match fold.lease(lease) {
        Lease::Expired(date) => {
            let is_over = state.promised[usize::from(lease)].is_none_or(|end| end <= End::At(date));
            is_over && date <= state.date
        }
        _ => true,
    })
}

fn resolve_final(_: &JournalModel, state: &State) -> bool {
    let Some(ticket) = state.ticket else {
        return true;
    };
    let mut records = state.first.iter().flatten();
    match ticket.answer {
        Answer::Open => true,
        Answer::Landed => records.any(|record| record.nonce == ticket.nonce),
        // Neither those bytes nor the same request in other bytes. A host's nonces count down, so a
        // greater one is an earlier request, of a life before a crash.
        Answer::Never => !records.any(|record| {
            let is_of_host = record.nonce / 16 == ticket.host && record.nonce <= ticket.nonce;
            is_of_host && record.entry == ticket.entry
        }),
    }
}

fn no_gap(_: &JournalModel, state: &State) -> bool {
    state
        .first
        .windows(2)
        .all(|pair| pair[0].is_some() || pair[1].is_none())
}

fn is_done(state: &State, is_role: impl Fn(Role) -> bool) -> bool {
    let mut hosts = state.hosts.iter().filter(|host| is_role(host.role));
    hosts.any(|host| host.step == Step::Done)
}

fn committed_and_published(model: &JournalModel, state: &State) -> bool {
    let fold = truth(model, state);
    let is_committed = |lease: &u8| matches!(fold.lease(*lease), Lease::Committed(_));
    leases()
        .filter(is_committed)
        .any(|lease| JournalModel::is_published(state, lease))
}

fn deleted(model: &JournalModel, state: &State) -> bool {
    !state.has_body && truth(model, state).artifact == Artifact::Deleted
}

fn publisher_refused(model: &JournalModel, state: &State) -> bool {
    let is_refused = |role| match role {
        Role::Publisher(lease) => !state.is_acknowledged[usize::from(lease)],
        _ => false,
    };
    is_done(state, is_refused) && truth(model, state).artifact != Artifact::Live
}

fn removed_and_released(model: &JournalModel, state: &State) -> bool {
    truth(model, state).leases.contains(&Lease::Removed)
}

fn sealed_and_aborted(model: &JournalModel, state: &State) -> bool {
    truth(model, state).leases.contains(&Lease::Aborted)
        && state.references.contains(&Reference::Sealed)
}

fn touched_after_plan(model: &JournalModel, state: &State) -> bool {
    let Some(as_of) = state.plan else {
        return false;
    };
    let is_live = truth(model, state).artifact == Artifact::Live;
    let mut since = state.log().skip(usize::from(as_of));
    let is_kept = is_live && since.any(|entry| entry == Entry::Touched);
    is_kept && is_done(state, |role| role == Role::Collector)
}

fn extended_then_expired(model: &JournalModel, state: &State) -> bool {
    let is_extended = state
        .log()
        .any(|entry| matches!(entry, Entry::Extended(..)));
    let is_expired = |lease: &Lease| matches!(lease, Lease::Expired(_));
    is_extended && truth(model, state).leases.iter().any(is_expired)
}

fn extension_refused(model: &JournalModel, state: &State) -> bool {
    let has_expired = |lease| matches!(truth(model, state).lease(lease), Lease::Expired(_));
    let is_extended = state
        .log()
        .any(|entry| matches!(entry, Entry::Extended(..)));
    let is_loser = |role| matches!(role, Role::Extender(lease, _) if has_expired(lease));
    !is_extended && is_done(state, is_loser)
}

fn answered(state: &State, answer: Answer) -> bool {
    state.ticket.is_some_and(|ticket| ticket.answer == answer)
}

fn resolved_and_published(_: &JournalModel, state: &State) -> bool {
    answered(state, Answer::Landed) && state.references.contains(&Reference::Published)
}

fn resolved_as_never(_: &JournalModel, state: &State) -> bool {
    answered(state, Answer::Never)
}

/// The invariants and the reachable ends, by name.
pub(super) fn all() -> Vec<Property<JournalModel>> {
    vec![
        Property::always("I1 Safety", safety),
        Property::always("I2 AckDurable", ack_durable),
        Property::always("I3 PrefixValid", prefix_valid),
        Property::always("I4 SlotOnce", slot_once),
        Property::always("I5 AbortedHidden", aborted_hidden),
        Property::always("I6 CondemnFirst", condemn_first),
        Property::always("I7 RemoveFirst", remove_first),
        Property::always("I11 PlanOrder", plan_order),
        Property::always("I12 EndKept", end_kept),
        Property::always("I13 ResolveFinal", resolve_final),
        Property::always("I14 NoGap", no_gap),
        Property::sometimes("committed and published", committed_and_published),
        Property::sometimes("deleted", deleted),
        Property::sometimes("publisher refused", publisher_refused),
        Property::sometimes("removed and released", removed_and_released),
        Property::sometimes("sealed and aborted", sealed_and_aborted),
        Property::sometimes("touched after the plan, and kept", touched_after_plan),
        Property::sometimes("extended, then expired", extended_then_expired),
        Property::sometimes("extension refused", extension_refused),
        Property::sometimes("resolved as landed, and published", resolved_and_published),
        Property::sometimes("resolved as never", resolved_as_never),
    ]
}
