//! The two tables: what holds, and what each rule prevents.

use super::scenario::by_name;
use super::{Rule, TurnModel};
use crate::scenario::{self, Removal, RemovalRow, Scenario, ScenarioRow};

#[rustfmt::skip] // a line for each
const SCENARIOS: &[ScenarioRow] = &[
    ("race", 35, true, &["all calls answered", "took another's decision"]),
    ("grown", 375, true, &["a later record", "all calls answered", "took another's decision"]),
    ("spilled", 191, true, &["all calls answered", "took another's decision"]),
    ("forked", 606, true, &["a fork took its parent's decision", "a later record", "all calls answered", "note: two answers in a fork", "took another's decision"]),
    ("forked_late", 9_103, true, &["a fork took its parent's decision", "a later record", "all calls answered", "note: two answers in a fork", "took another's decision"]),
];

#[rustfmt::skip] // a line for each
const REMOVALS: &[RemovalRow<Rule>] = &[
    (Rule::EarlierRecordsDecide, "grown", 7, &["T2 a session names a result once"]),
    (Rule::LostRecordsAreRead, "race", 6, &["T1 a turn is answered as recorded"]),
    (Rule::LostRecordsAreDecidedAgain, "grown", 7, &["T2 a session names a result once"]),
    (Rule::FirstFreeNumber, "grown", 3, &["T5 records leave no gap"]),
    (Rule::SpilledIsNoCandidate, "spilled", 4, &["T3 what was spilled stays spilled"]),
    (Rule::OwnSessionFirst, "forked", 13, &["T4 a frozen decision stays"]),
    (Rule::ParentsAreRead, "forked", 7, &["T4 a frozen decision stays"]),
    (Rule::ParentInlineIsTaken, "forked", 9, &["T4 a frozen decision stays"]),
];

/// Returns the worlds in which every invariant holds.
pub fn scenarios() -> Vec<Scenario<TurnModel>> {
    scenario::scenarios(SCENARIOS, by_name)
}

/// Returns a world for each rule, without it.
pub fn removals() -> Vec<Removal<TurnModel>> {
    scenario::removals(REMOVALS, without)
}

/// Returns a world by its name, without a rule.
fn without(name: &str, rule: Rule) -> Option<TurnModel> {
    let without = Some(rule);
    by_name(name).map(|model| TurnModel { without, ..model })
}
