//! The worlds that are explored.

use super::JournalModel;
use super::entry::End;
use super::host::Role::{
    self, Collector, Extender, Planner, Publisher, Reconciler, Recreator, Resolver, Toucher, Undoer,
};

/// Hosts that look twice and send twice, over a store that lies about what is new.
fn world<const N: usize>(hosts: [Role; N]) -> JournalModel {
    JournalModel {
        hosts: hosts.to_vec(),
        slots: 6,
        reads: 2,
        sends: 2,
        crashes: 0,
        commit_first: false,
        removes: false,
        lies: true,
        stalls: false,
        truncates: false,
        plans: false,
        forges: false,
        first_end: End::Never,
        last_date: 0,
        without: None,
    }
}

impl JournalModel {
    fn crashing(self) -> Self {
        Self { crashes: 1, ..self }
    }

    fn removing(self) -> Self {
        Self {
            removes: true,
            ..self
        }
    }

    fn commit_first(self) -> Self {
        Self {
            commit_first: true,
            reads: 3,
            ..self
        }
    }

    fn truncating(self) -> Self {
        Self {
            truncates: true,
            stalls: true,
            ..self
        }
    }

    fn planned(self) -> Self {
        Self {
            plans: true,
            ..self
        }
    }

    fn ending(self) -> Self {
        Self {
            first_end: End::At(1),
            last_date: 2,
            ..self
        }
    }

    fn forging(self) -> Self {
        Self {
            forges: true,
            ..self
        }
    }

    fn honest(self) -> Self {
        Self {
            lies: false,
            ..self
        }
    }

    fn patient(self) -> Self {
        Self {
            reads: 3,
            sends: 3,
            ..self
        }
    }
}

const LATER: End = End::At(2);

/// Returns a world by its name.
pub fn by_name(name: &str) -> Option<JournalModel> {
    let world = match name {
        "base" => world([Publisher(0), Collector, Reconciler]).crashing(),
        "base_small" => world([Publisher(0), Collector, Reconciler]),
        "two_collectors" => world([Publisher(0), Collector, Collector]).crashing(),
        "two_publishers" => world([Publisher(0), Publisher(1), Collector]),
        "removal" => world([Publisher(0), Collector])
            .removing()
            .patient()
            .crashing(),
        "removal_small" => world([Publisher(0), Collector]).removing().patient(),
        "two_collectors_removal" => {
            world([Publisher(0), Collector, Collector, Reconciler]).removing()
        }
        "two_publishers_reconciler" => {
            world([Publisher(0), Publisher(1), Collector, Reconciler]).honest()
        }
        "commit_first" => world([Publisher(0), Collector, Reconciler])
            .commit_first()
            .crashing(),
        "commit_first_small" => world([Publisher(0), Collector, Reconciler])
            .commit_first()
            .honest(),
        "truncate" => world([Publisher(0), Publisher(1), Collector]).truncating(),
        "truncate_small" => world([Publisher(0), Collector])
            .removing()
            .patient()
            .truncating(),
        "truncate_reconciler" => world([Publisher(0), Collector, Reconciler]).truncating(),
        "touch" => world([Toucher, Publisher(0), Collector]),
        "plan" => world([Publisher(0), Planner, Collector, Toucher]).planned(),
        "plan_small" => world([Planner, Collector, Toucher]).planned().crashing(),
        "plan_two_collectors" => world([Toucher, Planner, Collector, Collector])
            .planned()
            .crashing(),
        "extend" => world([Publisher(0), Extender(0, LATER), Collector]).ending(),
        "extend_small" => world([Publisher(0), Extender(0, LATER), Collector])
            .ending()
            .honest()
            .patient(),
        "extend_twice" => world([
            Publisher(0),
            Extender(0, End::Never),
            Extender(0, LATER),
            Collector,
        ])
        .ending()
        .honest(),
        "extend_plan" => world([Publisher(0), Extender(0, LATER), Planner, Collector])
            .ending()
            .planned()
            .honest()
            .patient(),
        "resolve" => world([Publisher(0), Resolver, Collector]).crashing(),
        "resolve_reconciler" => world([Publisher(0), Resolver, Reconciler])
            .crashing()
            .removing(),
        "resolve_two" => world([Publisher(0), Resolver, Resolver, Collector]),
        "resolve_all" => world([Publisher(0), Resolver, Collector, Reconciler]),
        "resolve_forged" => world([Publisher(0), Resolver, Collector]).forging(),
        "resolve_commit_first" => world([Publisher(0), Resolver, Reconciler])
            .commit_first()
            .crashing(),
        "undo" => world([Publisher(0), Collector, Undoer]),
        "reuse" => world([Publisher(0), Collector, Collector, Recreator]).honest(),
        _ => return None,
    };
    Some(world)
}
