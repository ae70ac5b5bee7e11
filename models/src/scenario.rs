//! The two tables that every model has: worlds that hold, and rules that are missed.

use std::fmt::Debug;

/// A world in which every invariant holds.
#[derive(Clone, Debug)]
pub struct Scenario<M> {
    /// Its name, as `SPILLBOX_MODEL_SCENARIOS` takes it.
    pub name: &'static str,
    /// The world.
    pub model: M,
    /// How many different states it has. Another number after a change of the model is a question: what
    /// became possible, or impossible?
    pub states: usize,
    /// The good ends that it reaches, and no others: a protocol that never does anything is safe too.
    pub reaches: &'static [&'static str],
    /// It is explored on every run; else only when it is asked for.
    pub is_small: bool,
}

/// A world that lacks one rule, and what goes wrong there.
#[derive(Clone, Debug)]
pub struct Removal<M> {
    /// The rule's name.
    pub rule: String,
    /// The scenario that the rule is taken from.
    pub scenario: &'static str,
    /// The world, without it.
    pub model: M,
    /// The invariants that shortest paths violate, in alphabetical order.
    pub violated: &'static [&'static str],
    /// The steps of a shortest path.
    pub steps: usize,
}

/// A line of the first table: name, states, whether it is small, what it reaches.
pub(crate) type ScenarioRow = (&'static str, usize, bool, &'static [&'static str]);

/// A line of the second table: rule, scenario, steps, what is violated.
pub(crate) type RemovalRow<R> = (R, &'static str, usize, &'static [&'static str]);

pub(crate) fn scenarios<M>(
    rows: &'static [ScenarioRow],
    by_name: impl Fn(&str) -> Option<M>,
) -> Vec<Scenario<M>> {
    let scenario = |&(name, states, is_small, reaches): &ScenarioRow| Scenario {
        name,
        model: by_name(name).expect("every row of the table names a world"),
        states,
        reaches,
        is_small,
    };
    rows.iter().map(scenario).collect()
}

pub(crate) fn removals<M, R: Copy + Debug>(
    rows: &'static [RemovalRow<R>],
    without: impl Fn(&str, R) -> Option<M>,
) -> Vec<Removal<M>> {
    let removal = |&(rule, scenario, steps, violated): &RemovalRow<R>| Removal {
        rule: format!("{rule:?}"),
        scenario,
        model: without(scenario, rule).expect("every row of the table names a world"),
        violated,
        steps,
    };
    rows.iter().map(removal).collect()
}
