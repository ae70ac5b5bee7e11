//! What a turn freezes: which results of one turn stay inline, and which are spilled.
//!
//! A turn's decisions are records under numbered keys, each created once. A call brings some results,
//! walks the records, decides what none of them names, and appends its decisions at the first free
//! number; where it loses that number, it reads what won and decides the rest again. A fork's call asks
//! the parent's records for what its own do not name. Several calls of one turn run at once: replays,
//! retries, and results that came later. Saving what is spilled is the other model's business.

mod call;
mod property;
pub mod rule;
pub mod scenario;
pub mod table;

use stateright::{Model, Property};

pub use rule::Rule;

/// How many results a turn has.
pub const RESULTS: usize = 2;
/// How many records a turn has room for: one for each call.
pub const RECORDS: usize = 3;

/// What stands for a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Its text.
    Inline,
    /// A replacement.
    Spilled,
}

/// Decisions, by result; `None` where a record does not name it.
pub type Decisions = [Option<Action>; RESULTS];

/// One call of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// It is a call of the fork; else of the parent.
    pub is_fork: bool,
    /// What it brings, and would decide as long as nothing is spilled yet: its budget is met by one.
    pub wishes: Decisions,
}

/// One record of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who sent it: what makes its bytes unlike any other's.
    pub by: u8,
    /// What it names.
    pub decisions: Decisions,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It has not begun.
    Idle,
    /// It reads its own session's record of this number.
    Own(u8),
    /// It reads the parent's record `at`; `free` is the first number that its own session has free.
    Parent {
        /// The parent's record.
        at: u8,
        /// The own session's first free number.
        free: u8,
    },
    /// Its record is on the wire.
    Sent {
        /// To this number.
        at: u8,
        /// With these decisions.
        decisions: Decisions,
    },
    /// It has answered.
    Answered,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Where it stands.
    pub step: Step,
    /// What it knows to be decided.
    pub known: Decisions,
    /// For the checker: what was decided when it began.
    pub frozen: Decisions,
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The records of the session, and of its fork.
    pub records: [[Option<Record>; RECORDS]; 2],
    /// The calls.
    pub calls: Vec<Call>,
}

/// One thing that happens; the number is the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It begins.
    Start(u8),
    /// It reads one record, or finds none.
    Read(u8),
    /// Its record lands.
    Lands(u8),
    /// It learns what stands at its record's number.
    Seen(u8),
}

/// The world of one scenario.
#[derive(Clone, Debug)]
pub struct TurnModel {
    /// The calls.
    pub parts: Vec<Part>,
    /// Results that `/results` has decided before: a spilled one is no candidate of the turn.
    pub results: Decisions,
    /// The rule that is taken away.
    pub without: Option<Rule>,
}

impl Model for TurnModel {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        let call = Call {
            step: Step::Idle,
            known: [None; RESULTS],
            frozen: [None; RESULTS],
        };
        vec![State {
            records: [[None; RECORDS]; 2],
            calls: vec![call; self.parts.len()],
        }]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        for (i, call) in state.calls.iter().enumerate() {
            let k = i as u8;
            match call.step {
                Step::Idle => events.push(Event::Start(k)),
                Step::Own(_) | Step::Parent { .. } => events.push(Event::Read(k)),
                Step::Sent { at, .. } => match self.records(state, i)[usize::from(at)] {
                    None => events.push(Event::Lands(k)),
                    Some(_) => events.push(Event::Seen(k)),
                },
                Step::Answered => {}
            }
        }
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        self.after(last, event)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}
