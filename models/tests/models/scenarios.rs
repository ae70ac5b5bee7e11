//! What holds.

use std::collections::BTreeSet;
use std::hash::Hash;

use spillbox_models::check::explore;
use spillbox_models::scenario::Scenario;
use spillbox_models::selection::Selection;
use spillbox_models::{journal, save, turn};
use stateright::Model;

/// Explores the chosen scenarios, and fails with all that went wrong.
fn all_hold<M>(scenarios: Vec<Scenario<M>>)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + PartialEq,
{
    let selection = Selection::from_env();
    let mut failures = Vec::new();
    for scenario in scenarios {
        if !selection.takes(&scenario) {
            continue;
        }
        let report = explore(scenario.model);
        let seconds = report.elapsed.as_secs_f64();
        let (name, states, depth) = (scenario.name, report.unique_states, report.depth);
        println!("{name} | {states} states | {depth} steps deep | {seconds:.1} s");
        let reaches: BTreeSet<&str> = scenario.reaches.iter().copied().collect();
        let holds = report.violated.is_empty();
        if !holds || report.reached != reaches || states != scenario.states {
            failures.push(format!(
                "{name}, {} states in the table: {report}",
                scenario.states
            ));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_journal_holds() {
    all_hold(journal::table::scenarios());
}

#[test]
fn saving_holds() {
    all_hold(save::table::scenarios());
}

#[test]
fn turns_hold() {
    all_hold(turn::table::scenarios());
}

#[test]
fn every_good_end_is_reached_by_a_scenario_of_every_run() {
    fn assert_reached<M: Model>(scenarios: &[Scenario<M>]) {
        let small = scenarios.iter().filter(|scenario| scenario.is_small);
        let reached: BTreeSet<&str> = small.flat_map(|s| s.reaches.iter().copied()).collect();
        let wanted = |property: &stateright::Property<M>| {
            property.expectation == stateright::Expectation::Sometimes
        };
        let mut properties = scenarios[0].model.properties();
        properties.retain(wanted);
        let wanted: BTreeSet<&str> = properties.iter().map(|property| property.name).collect();
        assert_eq!(reached, wanted);
    }
    assert_reached(&journal::table::scenarios());
    assert_reached(&save::table::scenarios());
    assert_reached(&turn::table::scenarios());
}

#[test]
fn scenarios_are_chosen_by_name() {
    let scenarios = journal::table::scenarios();
    let chosen = |text: Option<&str>| {
        let selection = Selection::parse(text);
        let takes = scenarios
            .iter()
            .filter(|scenario| selection.takes(scenario));
        takes.map(|scenario| scenario.name).collect::<Vec<_>>()
    };
    let small: Vec<&str> = scenarios
        .iter()
        .filter(|s| s.is_small)
        .map(|s| s.name)
        .collect();
    assert_eq!(chosen(None), small);
    assert_eq!(chosen(Some("")), small);
    assert_eq!(chosen(Some("all")).len(), scenarios.len());
    assert_eq!(chosen(Some("touch, base")), ["touch", "base"]);
    assert!(chosen(Some("no such world")).is_empty());
}
