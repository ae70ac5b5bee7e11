//! `docs/MODELS.md` says what the tables say.

use spillbox_models::scenario::{Removal, Scenario};
use spillbox_models::{journal, save, turn};

const DOCUMENT: &str = include_str!("../../../docs/MODELS.md");

/// 1234567 as 1,234,567.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn is_told<M>(scenarios: &[Scenario<M>], removals: &[Removal<M>]) -> Vec<String> {
    let rows = scenarios
        .iter()
        .map(|scenario| format!("| `{}` | {} |", scenario.name, grouped(scenario.states)));
    let rules = removals.iter().map(|removal| {
        let violated = removal
            .violated
            .iter()
            .map(|name| name.split(' ').next().unwrap_or(name));
        let violated = violated.collect::<Vec<_>>().join(", ");
        format!(
            "| `{}` | `{}` | {violated} | {} |",
            removal.rule, removal.scenario, removal.steps
        )
    });
    rows.chain(rules)
        .filter(|row| !DOCUMENT.contains(row.as_str()))
        .collect()
}

#[test]
fn the_document_tells_every_scenario_and_every_rule() {
    let mut untold = is_told(&journal::table::scenarios(), &journal::table::removals());
    untold.extend(is_told(&save::table::scenarios(), &save::table::removals()));
    untold.extend(is_told(&turn::table::scenarios(), &turn::table::removals()));
    assert!(
        untold.is_empty(),
        "not in docs/MODELS.md:\n{}",
        untold.join("\n")
    );
}
