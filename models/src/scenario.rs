//! The two tables that every model has: worlds that hold, and rules that are missed.

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
    /// The world, without it.
    pub model: M,
    /// The scenario that the rule is taken from.
    pub scenario: &'static str,
    /// The invariants that a shortest path violates.
    pub violated: &'static [&'static str],
    /// The steps of a shortest path.
    pub steps: usize,
}
