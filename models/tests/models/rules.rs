//! What each rule prevents: without it, the checker finds the shortest way to the harm.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use spillbox_models::check::shortest_violation;
use spillbox_models::scenario::Removal;
use spillbox_models::{journal, save, turn};
use stateright::Model;

/// Takes each rule away, and fails with all that was not caught as the table says.
fn all_are_missed<M>(removals: Vec<Removal<M>>)
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let mut failures = Vec::new();
    for removal in removals {
        let Removal { rule, scenario, .. } = removal;
        let Some(found) = shortest_violation(removal.model) else {
            failures.push(format!("{rule} is not missed in {scenario}"));
            continue;
        };
        let violated: Vec<&str> = found.violated.iter().copied().collect();
        println!("{rule} | {} | {}", violated.join(", "), found.steps);
        if violated != removal.violated || found.steps != removal.steps {
            let trace = found.trace.join("\n");
            failures.push(format!(
                "{rule}: {violated:?} in {} steps:\n{trace}",
                found.steps
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_journal_misses_every_rule() {
    all_are_missed(journal::table::removals());
}

#[test]
fn saving_misses_every_rule() {
    all_are_missed(save::table::removals());
}

#[test]
fn turns_miss_every_rule() {
    all_are_missed(turn::table::removals());
}

#[test]
fn every_rule_is_in_the_table() {
    fn assert_complete<M, R: Debug>(removals: &[Removal<M>], rules: &[R]) {
        let tabled: BTreeSet<String> = removals
            .iter()
            .map(|removal| removal.rule.clone())
            .collect();
        let named: BTreeSet<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
        assert_eq!(tabled, named);
    }
    assert_complete(&journal::table::removals(), &journal::Rule::ALL);
    assert_complete(&save::table::removals(), &save::Rule::ALL);
    assert_complete(&turn::table::removals(), &turn::Rule::ALL);
}
