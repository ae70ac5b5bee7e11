//! What must hold in every state, and the good ends that must be reachable.

use stateright::Property;

use super::oracle::Outcome;
use super::state::{Action, Lease, Manifest, Record, State, Step, Verdict};
use super::{Relation, Rule, SaveModel};

fn leased(m: &SaveModel, s: &State) -> bool {
    let is_whole = |x: usize| s.is_live(x) && s.bodies[x] != 0;
    m.artifacts()
        .all(|x| s.leases[x] != Lease::Leased || is_whole(x))
}

fn receipt(m: &SaveModel, s: &State) -> bool {
    let is_whole = |x: usize| s.is_live(x) && s.bodies[x] != 0;
    m.artifacts()
        .all(|x| !s.is_acknowledged[x] || s.is_condemned(x) || is_whole(x))
}

fn one_artifact(m: &SaveModel, s: &State) -> bool {
    m.chains().all(|chain| {
        let kept = || m.of_chain(chain).filter(|x| !s.is_condemned(*x));
        kept().filter(|x| s.is_acknowledged[*x]).count() <= 1
            && kept().filter(|x| s.is_live(*x)).count() <= 1
    })
}

/// The chain that an acknowledged erase covers.
fn erased_chain(m: &SaveModel, s: &State) -> Option<usize> {
    let target = s.erase.filter(|_| s.is_erased)?;
    Some(m.parts[usize::from(target)].chain)
}

fn nothing_live(m: &SaveModel, s: &State) -> bool {
    let Some(chain) = erased_chain(m, s) else {
        return true;
    };
    m.of_chain(chain)
        .all(|x| !s.is_live(x) && !s.has_old_version[x])
}

fn no_later_receipt(m: &SaveModel, s: &State) -> bool {
    let Some(chain) = erased_chain(m, s) else {
        return true;
    };
    let is_empty = |chain: usize| s.records[chain][0] == Record::Empty;
    let heirs = m
        .chains()
        .filter(|child| m.parent_of(*child) == Some(chain) && is_empty(*child));
    let mut covered = std::iter::once(chain).chain(heirs);
    let modes = || m.parts.iter().filter(|part| part.mode != super::Mode::Bare);
    !s.is_erase_broken
        && covered.all(|chain| modes().all(|part| m.solo(s, part.mode, chain) == Outcome::Gone))
}

fn nothing_served(m: &SaveModel, s: &State) -> bool {
    let Some(chain) = erased_chain(m, s) else {
        return true;
    };
    let is_served = |x: usize| {
        s.bodies[x] != 0 && (s.is_live(x) || m.lacks(Rule::ReadsRevalidate) && s.is_acknowledged[x])
    };
    !m.of_chain(chain).any(is_served)
}

fn body_of_manifest(m: &SaveModel, s: &State) -> bool {
    m.artifacts().all(|x| match s.manifests[x] {
        Manifest::Live(generation) => s.bodies[x] == generation,
        Manifest::Absent | Manifest::Tombstone(_) => true,
    })
}

fn own_bytes(m: &SaveModel, s: &State) -> bool {
    m.artifacts().all(|i| {
        let v = &s.savers[i];
        let own = m.parts[i].chain;
        let of = m.parts[usize::from(v.artifact)].chain;
        v.step != Step::Acknowledged || of == own || m.parent_of(own) == Some(of)
    })
}

fn fork_replays(m: &SaveModel, s: &State) -> bool {
    m.artifacts().all(|i| {
        let v = &s.savers[i];
        let is_new = v.step == Step::Acknowledged && usize::from(v.artifact) == i;
        !is_new || v.inherits.is_none_or(|x| s.is_condemned(usize::from(x)))
    })
}

/// What a saver of `/results` has answered.
fn answer(s: &State, i: usize) -> Option<Action> {
    let v = &s.savers[i];
    match (v.verdict, v.step) {
        (Verdict::Known(Action::Inline), _) => Some(Action::Inline),
        (Verdict::None, _) => None,
        (_, Step::Acknowledged) => Some(Action::Spilled),
        _ => None,
    }
}

fn result_as_recorded(m: &SaveModel, s: &State) -> bool {
    m.artifacts().all(|i| {
        let own = m.parts[i].chain;
        let recorded = [Some(own), m.parent_of(own)]
            .into_iter()
            .flatten()
            .map(|chain| s.results[chain]);
        let said = answer(s, i);
        said.is_none() || recorded.into_iter().any(|result| result == said)
    })
}

fn result_frozen(m: &SaveModel, s: &State) -> bool {
    m.artifacts()
        .all(|i| match (s.savers[i].frozen, answer(s, i)) {
            (Some(frozen), Some(said)) => frozen == said,
            _ => true,
        })
}

fn swept(m: &SaveModel, s: &State) -> bool {
    let after = m.swept(s);
    let is_tidy = |x: usize| after.bodies[x] == 0 || after.is_live(x);
    m.artifacts().all(is_tidy)
        && m.chains()
            .all(|chain| m.of_chain(chain).filter(|x| after.is_live(*x)).count() <= 1)
}

fn one_more_save(m: &SaveModel, s: &State) -> bool {
    let after = m.swept(s);
    m.parts.iter().all(|part| {
        [s, &after]
            .iter()
            .all(|s| m.solo(s, part.mode, part.chain) != Outcome::Stuck)
    })
}

fn same_receipt(m: &SaveModel, s: &State) -> bool {
    let first = s.savers[0].artifact;
    let has_it = |i: usize| s.savers[i].step == Step::Acknowledged && s.savers[i].artifact == first;
    m.artifacts().all(has_it)
}

fn finished_by_another(m: &SaveModel, s: &State) -> bool {
    let is_away = |x: usize| s.savers[x].step != Step::Acknowledged;
    m.artifacts()
        .any(|x| s.is_live(x) && s.is_acknowledged[x] && is_away(x))
}

fn second_incarnation(m: &SaveModel, s: &State) -> bool {
    let is_second = |x: usize| {
        s.records
            .iter()
            .any(|chain| chain[1] == Record::Saved(x as u8))
    };
    m.artifacts().any(|x| s.is_acknowledged[x] && is_second(x))
}

fn bare_receipt(m: &SaveModel, s: &State) -> bool {
    m.artifacts()
        .any(|x| s.is_acknowledged[x] && m.parts[x].mode == super::Mode::Bare)
}

fn erased(_: &SaveModel, s: &State) -> bool {
    s.is_erased
}

fn two_digests(m: &SaveModel, s: &State) -> bool {
    let has_receipt = |chain: usize| m.of_chain(chain).any(|x| s.is_acknowledged[x]);
    m.relation == Relation::Digests && m.chains().all(has_receipt)
}

fn in_fork(
    m: &SaveModel,
    s: &State,
    is_wanted: impl Fn(usize, &super::state::Saver) -> bool,
) -> bool {
    m.artifacts()
        .any(|i| m.parent_of(m.parts[i].chain).is_some() && is_wanted(i, &s.savers[i]))
}

fn fork_has_parents(m: &SaveModel, s: &State) -> bool {
    in_fork(m, s, |_, v| {
        v.step == Step::Acknowledged && m.parts[usize::from(v.artifact)].chain == 0
    })
}

fn fork_passes_over(m: &SaveModel, s: &State) -> bool {
    let is_decided = s.records[0][0] != Record::Empty;
    is_decided
        && in_fork(m, s, |i, v| {
            v.step == Step::Acknowledged && usize::from(v.artifact) == i
        })
}

fn fork_gone(m: &SaveModel, s: &State) -> bool {
    in_fork(m, s, |_, v| v.step == Step::Gone)
}

fn answered_inline(m: &SaveModel, s: &State) -> bool {
    m.artifacts().any(|i| answer(s, i) == Some(Action::Inline))
}

fn answered_spilled(m: &SaveModel, s: &State) -> bool {
    m.artifacts().any(|i| answer(s, i) == Some(Action::Spilled))
}

fn took_anothers_result(m: &SaveModel, s: &State) -> bool {
    m.artifacts()
        .any(|i| answer(s, i).is_some() && answer(s, i) != m.parts[i].result)
}

fn two_answers_in_fork(m: &SaveModel, s: &State) -> bool {
    let answers = |wanted: Action| in_fork(m, s, |i, _| answer(s, i) == Some(wanted));
    answers(Action::Inline) && answers(Action::Spilled)
}

fn two_receipts_in_fork(m: &SaveModel, s: &State) -> bool {
    let has = |is_own: bool| {
        in_fork(m, s, |_, v| {
            let x = usize::from(v.artifact);
            let is_kept = v.step == Step::Acknowledged && !s.is_condemned(x);
            is_kept && (m.parts[x].chain == 1) == is_own
        })
    };
    has(true) && has(false)
}

fn bytes_beside_tombstone(m: &SaveModel, s: &State) -> bool {
    erased_chain(m, s).is_some_and(|chain| m.of_chain(chain).any(|x| s.bodies[x] != 0))
}

/// The invariants and the reachable ends, by name.
pub(super) fn all() -> Vec<Property<SaveModel>> {
    vec![
        Property::always("P1 leased: live manifest and body", leased),
        Property::always("P2 receipt: live manifest and body, or condemned", receipt),
        Property::always("P3 one artifact per call and digest", one_artifact),
        Property::always("P4a erased: nothing of the call is live", nothing_live),
        Property::always("P4b erased: no later save gets a receipt", no_later_receipt),
        Property::always("P4c erased: no reader is served", nothing_served),
        Property::always("P5 a live manifest has its body", body_of_manifest),
        Property::always("P6 a receipt is of the own bytes", own_bytes),
        Property::always("P7 a fork replays its parent", fork_replays),
        Property::always("R1 a result is answered as recorded", result_as_recorded),
        Property::always("R2 a frozen result stays", result_frozen),
        Property::always("E1 swept: one live at most, no orphan body", swept),
        Property::always("E2 one more save ends", one_more_save),
        Property::sometimes("all savers hold the same receipt", same_receipt),
        Property::sometimes("finished by another", finished_by_another),
        Property::sometimes("a second incarnation", second_incarnation),
        Property::sometimes("a receipt without a call id", bare_receipt),
        Property::sometimes("erased", erased),
        Property::sometimes("both digests have a receipt", two_digests),
        Property::sometimes("a fork has its parent's artifact", fork_has_parents),
        Property::sometimes("a fork passes over its parent's record", fork_passes_over),
        Property::sometimes("a fork is told 410", fork_gone),
        Property::sometimes("answered inline", answered_inline),
        Property::sometimes("answered spilled", answered_spilled),
        Property::sometimes("took another's result", took_anothers_result),
        Property::sometimes("note: two answers in a fork", two_answers_in_fork),
        Property::sometimes("note: two receipts in a fork", two_receipts_in_fork),
        Property::sometimes(
            "note: bytes beside a tombstone after the erase",
            bytes_beside_tombstone,
        ),
    ]
}
