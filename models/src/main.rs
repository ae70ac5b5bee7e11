//! Runs one scenario by hand, and prints the way to a violation step by step.
//!
//! ```sh
//! cargo run -p spillbox-models -- journal base_small
//! cargo run -p spillbox-models -- save kk_gc_erase EraseGoesOn
//! cargo run -p spillbox-models -- turn            # lists the scenarios and the rules
//! ```

use std::fmt::Debug;
use std::hash::Hash;
use std::io::{self, Write};
use std::process::ExitCode;

use spillbox_models::scenario::{Removal, Scenario};
use spillbox_models::{check, journal, save, turn};
use stateright::Model;

const USAGE: &str = "usage: spillbox-models journal|save|turn [SCENARIO [RULE]]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["journal"] => list(&journal::table::scenarios(), &journal::table::removals()),
        ["save"] => list(&save::table::scenarios(), &save::table::removals()),
        ["turn"] => list(&turn::table::scenarios(), &turn::table::removals()),
        ["journal", scenario, rule @ ..] => run(journal_model(scenario, rule)),
        ["save", scenario, rule @ ..] => run(save_model(scenario, rule)),
        ["turn", scenario, rule @ ..] => run(turn_model(scenario, rule)),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Returns the rule that the words name, if they name one; `None` where there is no such rule.
fn rule<R: Debug + Copy>(rules: &[R], words: &[&str]) -> Option<Option<R>> {
    match words {
        [] => Some(None),
        [name] => rules
            .iter()
            .find(|rule| format!("{rule:?}") == *name)
            .map(|rule| Some(*rule)),
        _ => None,
    }
}

fn journal_model(name: &str, words: &[&str]) -> Option<journal::JournalModel> {
    let without = rule(&journal::Rule::ALL, words)?;
    let model = journal::scenario::by_name(name)?;
    Some(journal::JournalModel { without, ..model })
}

fn save_model(name: &str, words: &[&str]) -> Option<save::SaveModel> {
    let without = rule(&save::Rule::ALL, words)?;
    let model = save::scenario::by_name(name)?;
    Some(save::SaveModel { without, ..model })
}

fn turn_model(name: &str, words: &[&str]) -> Option<turn::TurnModel> {
    let without = rule(&turn::Rule::ALL, words)?;
    let model = turn::scenario::by_name(name)?;
    Some(turn::TurnModel { without, ..model })
}

fn list<M>(scenarios: &[Scenario<M>], removals: &[Removal<M>]) -> ExitCode {
    let scenarios = scenarios.iter().map(|scenario| {
        let size = if scenario.is_small { "small" } else { "big" };
        format!(
            "{:36} {:>10} states  {size}\n",
            scenario.name, scenario.states
        )
    });
    let removals = removals
        .iter()
        .map(|removal| format!("{:36} without {}\n", removal.scenario, removal.rule));
    print(
        &scenarios.chain(removals).collect::<String>(),
        ExitCode::SUCCESS,
    )
}

/// Explores a model; exit status 1 where it is violated.
fn run<M>(model: Option<M>) -> ExitCode
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let Some(model) = model else {
        return usage();
    };
    let report = check::explore(model.clone());
    let mut text = format!("{report}\n");
    if report.violated.is_empty() {
        return print(&text, ExitCode::SUCCESS);
    }
    if let Some(found) = check::shortest_violation(model) {
        text += &format!("violated in {} steps: {:?}\n", found.steps, found.violated);
        for (at, action) in found.trace.iter().enumerate() {
            text += &format!("{:4}  {action}\n", at + 1);
        }
        text += &found.last_state;
        text.push('\n');
    }
    print(&text, ExitCode::FAILURE)
}

/// Prints; a reader that has seen enough is no failure of ours.
fn print(text: &str, code: ExitCode) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => code,
    }
}
