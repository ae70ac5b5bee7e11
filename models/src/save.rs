//! Saving one call's output: call records, bodies, manifests, tombstones, crashed uploads, leases,
//! collection and erase; forks, several digests under one call id, and result records.
//!
//! Up to three savers, any number of collectors, one eraser. Create-if-absent is atomic. A request may
//! land at any time after it was sent, with or without its reply, also after its sender died.
//! Undecided means the same bytes to the same key again. Age is left to chance: every body and manifest
//! may be old enough. A client's retry is one more saver. Two *chains* of records exist where a world
//! has forks (the second chain's session is a child of the first one's) or digests (the same call id
//! with other bytes).

pub mod action;
mod chain;
mod erase;
mod next;
mod oracle;
mod possible;
mod property;
pub mod rule;
mod saver;
pub mod scenario;
pub mod state;
pub mod table;

use stateright::{Model, Property};

use self::action::Event;
use self::state::{Action, Mode, State};
pub use rule::Rule;

/// One saver of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it sends.
    pub mode: Mode,
    /// Its chain of records, 0 or 1.
    pub chain: usize,
    /// It came to `/results`, and would decide so; else it came to `/artifacts`.
    pub result: Option<Action>,
}

/// What the two chains of records are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// There is one.
    One,
    /// Two digests of one call id.
    Digests,
    /// A session, and its child.
    Fork,
}

/// The world of one scenario.
#[derive(Clone, Debug)]
pub struct SaveModel {
    /// The savers.
    pub parts: Vec<Part>,
    /// The two chains.
    pub relation: Relation,
    /// Artifacts may be leased and released.
    pub leases: bool,
    /// Collectors may condemn.
    pub condemns: bool,
    /// Somebody may erase.
    pub erases: bool,
    /// A replay may have to append `touched`.
    pub touches: bool,
    /// The bucket keeps versions.
    pub is_versioned: bool,
    /// Collectors append `deleted`.
    pub appends_deleted: bool,
    /// A saver's GET of a manifest may answer any earlier state.
    pub is_stale: bool,
    /// The last saver begins only when another one is dead or was answered 503.
    pub retries: bool,
    /// The rule that is taken away.
    pub without: Option<Rule>,
}

impl SaveModel {
    pub(crate) fn lacks(&self, rule: Rule) -> bool {
        self.without == Some(rule)
    }

    /// The artifacts: saver `i` picks artifact `i`.
    fn artifacts(&self) -> std::ops::Range<usize> {
        0..self.parts.len()
    }

    /// The artifacts that belong to one chain of records.
    fn of_chain(&self, chain: usize) -> impl Iterator<Item = usize> + '_ {
        let belongs = move |artifact: &usize| {
            let part = self.parts[*artifact];
            part.chain == chain && part.mode != Mode::Bare
        };
        self.artifacts().filter(belongs)
    }

    /// The chains that some saver of this world uses.
    fn chains(&self) -> std::ops::Range<usize> {
        match self.relation {
            Relation::One => 0..1,
            Relation::Digests | Relation::Fork => 0..2,
        }
    }

    /// Where the records of a saver of this chain stand.
    fn records_of(&self, chain: usize) -> usize {
        if self.lacks(Rule::DigestsHaveOwnRecords) {
            0
        } else {
            chain
        }
    }

    fn parent_of(&self, chain: usize) -> Option<usize> {
        (self.relation == Relation::Fork && chain == 1).then_some(0)
    }
}

impl Model for SaveModel {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State::new()]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        self.possible(state, events);
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        self.after(last, event)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}
