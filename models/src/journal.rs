//! The lease journal and its collectors: one session's journal, one artifact, two leases.
//!
//! Records are created under numbered keys by conditional PUTs that land late, twice, never, or
//! without a reply. Every host opens the journal cold, decides on what it saw, which may be any older
//! prefix, and may die at every step. A plan may be applied any time later by any host, a DELETE never
//! expires, and age is left to chance: whatever is not leased is old enough. So no host's clock can
//! make things worse than they are here.

pub mod action;
mod decide;
pub mod entry;
pub mod fold;
pub mod host;
mod next;
mod owner;
mod property;
mod resolve;
pub mod rule;
pub mod scenario;
pub mod state;
pub mod table;

use stateright::{Model, Property};

use self::action::Action;
use self::entry::{End, LEASES};
use self::host::{Host, Role, Step};
use self::state::{Reference, Slot, State};
pub use rule::Rule;

/// The world of one scenario.
#[derive(Clone, Debug)]
pub struct JournalModel {
    /// Who takes part.
    pub hosts: Vec<Role>,
    /// How many slots the journal has.
    pub slots: u8,
    /// How often each host looks at the journal.
    pub reads: u8,
    /// How many different records each host sends.
    pub sends: u8,
    /// How often each host dies.
    pub crashes: u8,
    /// Owners show a reference only after `committed`; else they publish between `prepared` and
    /// `committed`, and can seal.
    pub commit_first: bool,
    /// Owners may remove their references again.
    pub removes: bool,
    /// LIST and GET may show any older state.
    pub lies: bool,
    /// Hosts stand still while they hold a view.
    pub stalls: bool,
    /// Old records are deleted while the journal lives.
    pub truncates: bool,
    /// Collectors apply a plan of a [`Role::Planner`]; else each decides on its own view.
    pub plans: bool,
    /// Resolves may name a `seq` that was never given out.
    pub forges: bool,
    /// When every lease ends, as it is prepared.
    pub first_end: End,
    /// How far the store's date goes; it starts at 0.
    pub last_date: u8,
    /// The rule that is taken away.
    pub without: Option<Rule>,
}

impl Model for JournalModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let host = |role: &Role| Host {
            role: *role,
            step: Step::Idle,
            reads: self.reads,
            sends: self.sends,
            crashes: self.crashes,
            is_stale: false,
            tail: 0,
        };
        vec![State {
            slots: vec![Slot::Empty; usize::from(self.slots)],
            first: vec![None; usize::from(self.slots)],
            floor: 0,
            has_body: true,
            references: [Reference::Absent; LEASES],
            publishes: [0; LEASES],
            deletes: 0,
            puts: Vec::new(),
            hosts: self.hosts.iter().map(host).collect(),
            plan: None,
            ticket: None,
            date: 0,
            is_acknowledged: [false; LEASES],
            is_touched: false,
            promised: [None; LEASES],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        self.after(last, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}
