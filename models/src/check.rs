//! Runs a model to its end, and finds the shortest way to a violation.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// What a full exploration saw.
#[derive(Debug)]
pub struct Report {
    /// Different states.
    pub unique_states: usize,
    /// Steps of the longest of the shortest paths.
    pub depth: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// Names of the invariants that some state violates.
    pub violated: BTreeSet<&'static str>,
    /// Names of the wanted ends that some state shows.
    pub reached: BTreeSet<&'static str>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            unique_states,
            depth,
            elapsed,
            violated,
            reached,
        } = self;
        write!(
            f,
            "{unique_states} states, {depth} steps deep, {:.1} s",
            elapsed.as_secs_f64()
        )?;
        write!(f, "; violated {violated:?}; reached {reached:?}")
    }
}

/// The shortest way to a violation.
#[derive(Debug)]
pub struct Counterexample {
    /// Its steps.
    pub steps: usize,
    /// Every invariant that a path of that length can violate.
    pub violated: BTreeSet<&'static str>,
    /// The actions to the first of them, one a line.
    pub trace: Vec<String>,
    /// The state that they lead to.
    pub last_state: String,
}

/// Explores every state of `model`, or stops soon after the first violation.
pub fn explore<M>(model: M) -> Report
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + PartialEq,
{
    let started = Instant::now();
    let wanted = names(&model, |expectation| expectation == Expectation::Sometimes);
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let found: BTreeSet<&'static str> = checker.discoveries().into_keys().collect();
    let (reached, violated) = found.into_iter().partition(|name| wanted.contains(name));
    Report {
        unique_states: checker.unique_state_count(),
        depth: checker.max_depth().saturating_sub(1),
        elapsed: started.elapsed(),
        violated,
        reached,
    }
}

/// Returns the shortest way to a violation, or `None` where there is none.
///
/// The checker looks at states in blocks and reports the last violation of a block, which need not be
/// the shortest. So the search is repeated below the length found, until it finds nothing.
pub fn shortest_violation<M>(model: M) -> Option<Counterexample>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + fmt::Debug + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + fmt::Debug + PartialEq,
{
    let mut steps = violations(&model, None, HasDiscoveries::AnyFailures)?.steps;
    while steps > 0 {
        match violations(&model, Some(steps - 1), HasDiscoveries::AnyFailures) {
            Some(shorter) => steps = shorter.steps,
            None => break,
        }
    }
    violations(&model, Some(steps), HasDiscoveries::AllFailures)
}

/// Searches paths of up to `max_steps` steps for violations.
fn violations<M>(
    model: &M,
    max_steps: Option<usize>,
    until: HasDiscoveries,
) -> Option<Counterexample>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + fmt::Debug + std::hash::Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + fmt::Debug + PartialEq,
{
    let invariants = names(model, |expectation| expectation == Expectation::Always);
    let mut search = model.clone().checker().finish_when(until);
    if let Some(steps) = max_steps {
        // The checker counts states, the first one included, and leaves the last ones unread.
        search = search.target_max_depth(steps + 2);
    }
    let mut found = search.spawn_bfs().join().discoveries();
    found.retain(|name, _| invariants.contains(name));
    let violated = found.keys().copied().collect();
    let (_, path) = found
        .into_iter()
        .min_by_key(|(name, path)| (path.clone().into_actions().len(), *name))?;
    let last_state = format!("{:#?}", path.last_state());
    let trace: Vec<String> = path
        .into_actions()
        .iter()
        .map(|action| format!("{action:?}"))
        .collect();
    Some(Counterexample {
        steps: trace.len(),
        violated,
        trace,
        last_state,
    })
}

fn names<M: Model>(model: &M, is_wanted: impl Fn(Expectation) -> bool) -> BTreeSet<&'static str> {
    let mut properties = model.properties();
    properties.retain(|property| is_wanted(property.expectation.clone()));
    properties
        .into_iter()
        .map(|property| property.name)
        .collect()
}
