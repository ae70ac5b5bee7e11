//! What must hold in every state, and the good ends that must be reachable.

use stateright::Property;

use super::call::named;
use super::{Action, RESULTS, Record, State, Step, TurnModel};

/// What a call has answered: results that it did not bring are not its own.
fn answer(m: &TurnModel, s: &State, i: usize, result: usize) -> Option<Action> {
    let is_answered = s.calls[i].step == Step::Answered;
    let is_brought = m.parts[i].wishes[result].is_some();
    s.calls[i].known[result].filter(|_| is_answered && is_brought)
}

fn pairs(m: &TurnModel) -> impl Iterator<Item = (usize, usize)> + use<> {
    let calls = 0..m.parts.len();
    calls.flat_map(|i| (0..RESULTS).map(move |result| (i, result)))
}

fn as_recorded(m: &TurnModel, s: &State) -> bool {
    let sessions = s.records.map(|records| named(&records));
    pairs(m).all(|(i, result)| {
        let said = answer(m, s, i, result);
        let own = sessions[usize::from(m.parts[i].is_fork)][result];
        let parent = sessions[0][result].filter(|_| m.parts[i].is_fork);
        let is_before = said.is_some() && m.results[result] == Some(Action::Spilled);
        said.is_none() || said == own || said == parent || is_before
    })
}

fn named_once(_: &TurnModel, s: &State) -> bool {
    s.records.iter().all(|records| {
        (0..RESULTS).all(|result| {
            let names = |record: &&Record| record.decisions[result].is_some();
            records.iter().flatten().filter(names).count() <= 1
        })
    })
}

fn spilled_stays(m: &TurnModel, s: &State) -> bool {
    pairs(m).all(|(i, result)| {
        let was_spilled = m.results[result] == Some(Action::Spilled);
        !was_spilled || answer(m, s, i, result) != Some(Action::Inline)
    })
}

fn frozen_stays(m: &TurnModel, s: &State) -> bool {
    pairs(m).all(
        |(i, result)| match (s.calls[i].frozen[result], answer(m, s, i, result)) {
            (Some(frozen), Some(said)) => frozen == said,
            _ => true,
        },
    )
}

fn no_gap(_: &TurnModel, s: &State) -> bool {
    let is_whole = |pair: &[Option<Record>]| pair[0].is_some() || pair[1].is_none();
    s.records
        .iter()
        .all(|records| records.windows(2).all(is_whole))
}

fn all_answered(m: &TurnModel, s: &State) -> bool {
    (0..m.parts.len()).all(|i| s.calls[i].step == Step::Answered)
}

fn later_record(_: &TurnModel, s: &State) -> bool {
    s.records.iter().any(|records| records[1].is_some())
}

fn took_anothers(m: &TurnModel, s: &State) -> bool {
    pairs(m).any(|(i, result)| {
        let said = answer(m, s, i, result);
        said.is_some() && said != m.parts[i].wishes[result]
    })
}

fn fork_took_parents(m: &TurnModel, s: &State) -> bool {
    let own = named(&s.records[1]);
    pairs(m).any(|(i, result)| {
        m.parts[i].is_fork && answer(m, s, i, result).is_some() && own[result].is_none()
    })
}

fn two_answers_in_fork(m: &TurnModel, s: &State) -> bool {
    (0..RESULTS).any(|result| {
        let says = |action| {
            (0..m.parts.len())
                .any(|i| m.parts[i].is_fork && answer(m, s, i, result) == Some(action))
        };
        says(Action::Inline) && says(Action::Spilled)
    })
}

/// The invariants and the reachable ends, by name.
pub(super) fn all() -> Vec<Property<TurnModel>> {
    vec![
        Property::always("T1 a turn is answered as recorded", as_recorded),
        Property::always("T2 a session names a result once", named_once),
        Property::always("T3 what was spilled stays spilled", spilled_stays),
        Property::always("T4 a frozen decision stays", frozen_stays),
        Property::always("T5 records leave no gap", no_gap),
        Property::sometimes("all calls answered", all_answered),
        Property::sometimes("a later record", later_record),
        Property::sometimes("took another's decision", took_anothers),
        Property::sometimes("a fork took its parent's decision", fork_took_parents),
        Property::sometimes("note: two answers in a fork", two_answers_in_fork),
    ]
}
