//! The artifacts of one store: what the edges call to save and to read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
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
use crate::limits::{DEFAULT_MAX_BODY_BYTES, MAX_CONCURRENT_UPLOADS, SEARCH_DEADLINE};
use crate::store::SharedStore;
use crate::store::keys::{Key, KeySpace};

/// Call records kept in memory: which artifact a call's output became.
const CACHED_RECORDS: u64 = 200_000;

/// Weight of the cache of decisions' records, each some hundred bytes.
const DECISION_CACHE_BYTES: u64 = 32 << 20;

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
    /// Records of decisions that this replica has seen decided. They never change.
    pub(in crate::artifact) decisions: Cache<Key, Bytes>,
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
            decisions: Cache::builder()
                .max_capacity(DECISION_CACHE_BYTES)
                .weigher(|key: &Key, bytes: &Bytes| {
                    let weight = key.as_str().len() + bytes.len() + 200;
                    u32::try_from(weight).unwrap_or(u32::MAX)
                })
                .build(),
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

    /// Writes nothing from now on.
    #[cfg(test)]
    pub(crate) fn make_read_only(&mut self) {
        let options = LibraryOptions {
            is_read_only: true,
            ..(*self.options).clone()
        };
        self.options = Arc::new(options);
    }

    /// Returns the options in force.
    pub fn options(&self) -> &LibraryOptions {
        &self.options
    }

    /// Builds the receipt of an artifact as of now.
    pub fn receipt(&self, manifest: &ConfirmedManifest) -> Receipt {
        Receipt::of(manifest, self.orphan_ttl(), self.clock.now())
    }

    /// Runs a piece of work on a task of its own, so that a caller that goes away tears nothing; `None`
    /// when a defect ended it.
    pub async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.tracker.spawn(work).await.ok()
    }

    /// Waits until every save and every abort that has begun is over. New ones may still begin.
    pub async fn drain(&self) {
        self.tracker.close();
        self.tracker.wait().await;
        self.tracker.reopen();
    }
}
