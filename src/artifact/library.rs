//! The artifacts of one store: what the edges call to save and to read.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::format::StoreFormat;
use crate::artifact::locator::LocatorBase;
use crate::artifact::manifest_access::Manifests;
use crate::artifact::receipt::Receipt;
use crate::artifact::session::Sessions;
use crate::clock::SharedClock;
use crate::ids::{ArtifactId, DecisionId, SharedIds, Tenant};
use crate::limits::{
    DEFAULT_INLINE_BYTES, DEFAULT_MAX_BODY_BYTES, DEFAULT_REPLACEMENT_BYTES,
    MAX_CONCURRENT_UPLOADS, SEARCH_DEADLINE,
};
use crate::store::SharedStore;
use crate::store::keys::KeySpace;

/// Call records kept in memory: which artifact a call's output became.
const CACHED_RECORDS: u64 = 200_000;

/// What an operator or a profile decides about saving.
#[derive(Debug, Clone)]
pub struct LibraryOptions {
    /// What stands before `{skey}.{aid}` in locators.
    pub locator_base: LocatorBase,
    /// Cap of one body, bytes.
    pub max_body_bytes: u64,
    /// Whether nothing is ever written: for a store whose writes cannot be trusted.
    pub is_read_only: bool,
    /// Uploads at once.
    pub max_concurrent_uploads: usize,
    /// Searches at once; each keeps a thread busy.
    pub max_concurrent_searches: usize,
    /// Wall time of one page of a search.
    pub search_deadline: Duration,
    /// Tool results up to this many bytes stay in the prompt.
    pub inline_bytes: u64,
    /// Cap of a replacement, bytes.
    pub replacement_bytes: usize,
    /// Arguments that a printed `spillbox` command needs to find this store.
    pub cli_args: Vec<String>,
}

/// All cores but one: the other requests stay fast whatever is searched for.
fn max_concurrent_searches() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).max(1)
}

impl Default for LibraryOptions {
    fn default() -> Self {
        Self {
            locator_base: LocatorBase::Store,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            is_read_only: false,
            max_concurrent_uploads: MAX_CONCURRENT_UPLOADS,
            max_concurrent_searches: max_concurrent_searches(),
            search_deadline: SEARCH_DEADLINE,
            inline_bytes: DEFAULT_INLINE_BYTES,
            replacement_bytes: DEFAULT_REPLACEMENT_BYTES,
            cli_args: Vec::new(),
        }
    }
}

/// The artifacts of one store. Cheap to clone; clones share caches and limits.
#[derive(Debug, Clone)]
pub struct Library {
    pub(in crate::artifact) store: SharedStore,
    pub(in crate::artifact) keys: KeySpace,
    pub(in crate::artifact) clock: SharedClock,
    pub(in crate::artifact) ids: SharedIds,
    pub(in crate::artifact) format: StoreFormat,
    pub(in crate::artifact) options: Arc<LibraryOptions>,
    pub(in crate::artifact) sessions: Sessions,
    pub(in crate::artifact) manifests: Manifests,
    /// Call records that this replica has seen decided: which artifact a call's output became. They
    /// never change; what they name may have been collected since.
    pub(in crate::artifact) records: Cache<(Tenant, DecisionId), ArtifactId>,
    pub(in crate::artifact) uploads: Arc<Semaphore>,
    pub(in crate::artifact) searches: Arc<Semaphore>,
    pub(in crate::artifact) tracker: TaskTracker,
}

impl Library {
    /// Works on `store` under `keys`; the format marker was read before.
    pub fn new(
        store: SharedStore,
        keys: KeySpace,
        format: StoreFormat,
        clock: SharedClock,
        ids: SharedIds,
        options: LibraryOptions,
    ) -> Self {
        Self {
            sessions: Sessions::new(Arc::clone(&store), keys.clone()),
            manifests: Manifests::new(Arc::clone(&store), keys.clone()),
            records: Cache::new(CACHED_RECORDS),
            uploads: Arc::new(Semaphore::new(options.max_concurrent_uploads)),
            searches: Arc::new(Semaphore::new(options.max_concurrent_searches.max(1))),
            tracker: TaskTracker::new(),
            options: Arc::new(options),
            store,
            keys,
            clock,
            ids,
            format,
        }
    }

    /// Returns the orphan TTL that receipts of this store promise.
    pub fn orphan_ttl(&self) -> Duration {
        self.format.orphan_ttl()
    }

    /// Returns the store, for what else lives in it.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Returns where in the store everything is.
    pub fn keys(&self) -> &KeySpace {
        &self.keys
    }

    /// Returns the clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Returns where new identifiers come from.
    pub fn ids(&self) -> &SharedIds {
        &self.ids
    }

    /// Returns the options in force.
    pub fn options(&self) -> &LibraryOptions {
        &self.options
    }

    /// Builds the receipt of an artifact as of now.
    pub fn receipt(&self, manifest: &ConfirmedManifest) -> Receipt {
        Receipt::of(manifest, self.orphan_ttl(), self.clock.now())
    }

    /// Waits until every save and every abort that has begun is over. New ones may still begin.
    pub async fn drain(&self) {
        self.tracker.close();
        self.tracker.wait().await;
        self.tracker.reopen();
    }
}
