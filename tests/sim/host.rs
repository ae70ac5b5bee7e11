//! One life of one host: a replica with a collector, built from the real objects.

use std::sync::Arc;

use jiff::SignedDuration;
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::keep_alive::SharedKeepAlive;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::clock::SharedClock;
use spillbox::gc::collector::Collector;
use spillbox::ids::{SeededIds, SharedIds};
use spillbox::lease::entry::OwnerMode;
use spillbox::lease::journals::Journals;
use spillbox::lease::leases::{LeaseOptions, Leases, Owners};
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::store::SharedStore;
use spillbox::store::attest::Fence;
use spillbox::store::keys::KeySpace;

use crate::clock::HostClock;
use crate::gate::Gate;
use crate::store::SimStore;

/// Bodies above this are streamed.
pub(crate) const PART_BYTES: usize = 1_000;

/// The owner that publishes after its commit.
pub(crate) const COMMIT_FIRST: &str = "files";

/// The owner that publishes before it.
pub(crate) const FENCED: &str = "memory";

#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) gate: Arc<Gate>,
    pub(crate) library: Library,
    pub(crate) leases: Leases,
    pub(crate) collector: Collector,
}

impl Host {
    /// Starts a host with empty caches.
    pub(crate) fn start(
        sim: &Arc<SimStore>,
        (index, life): (u16, u16),
        skew: SignedDuration,
        fence: Fence,
    ) -> Self {
        let name = format!("h{index}.{life}");
        let gate = Arc::new(Gate::open());
        let store: SharedStore = sim.seen_from(name.clone(), Arc::clone(&gate));
        let clock: SharedClock = Arc::new(HostClock {
            store: Arc::clone(&sim.clock),
            skew,
        });
        let ids: SharedIds = Arc::new(SeededIds::new(index * 1_000 + life));
        let keys = KeySpace::new("").unwrap();
        let options = LibraryOptions::default();
        let format = StoreFormat::new(DEFAULT_ORPHAN_TTL);
        let journals = Journals::new(
            Arc::clone(&store),
            keys.clone(),
            Arc::clone(&clock),
            Arc::clone(&ids),
        );
        let keep_alive: SharedKeepAlive = Arc::new(journals.clone());
        let library = Library::new(store, keys, format, clock, ids, options)
            .with_part_bytes(PART_BYTES)
            .with_keep_alive(keep_alive);
        let owners = [
            (COMMIT_FIRST, OwnerMode::CommitFirst),
            (FENCED, OwnerMode::OwnerFenced),
        ];
        let options = LeaseOptions {
            is_read_only: false,
            owners: Owners {
                modes: owners
                    .map(|(name, mode)| (name.parse().unwrap(), mode))
                    .into(),
                ..Owners::default()
            },
        };
        Self {
            collector: Collector::of(&library, journals.clone(), fence),
            leases: Leases::new(library.clone(), journals, options),
            name,
            gate,
            library,
        }
    }
}
