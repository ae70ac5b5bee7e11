//! The artifacts of one store: what the edges call to save and to read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::format::StoreFormat;
use crate::artifact::keep_alive::SharedKeepAlive;
use crate::artifact::locator::LocatorBase;
use crate::artifact::manifest_access::Manifests;
use crate::artifact::quota::Quotas;
use crate::artifact::receipt::Receipt;
use crate::artifact::session::Sessions;
use crate::artifact::upload_memory::UploadMemory;
use crate::artifact::usage::{UsageBaseline, UsageLedger};
use crate::clock::SharedClock;
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SharedIds, Tenant};
use crate::limits::{
    DEFAULT_INLINE_BYTES, DEFAULT_MAX_BODY_BYTES, DEFAULT_REPLACEMENT_BYTES,
    DEFAULT_UPLOAD_MEMORY_BYTES, MAX_CONCURRENT_UPLOADS, PART_BYTES, SEARCH_DEADLINE,
};
use crate::store::keys::{Key, KeySpace};
use crate::store::{SharedStore, StoreError, StoreErrorKind};

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
    /// Whether reads of old artifacts keep them alive.
    pub touch_on_read: bool,
    /// Uploads at once.
    pub max_concurrent_uploads: usize,
    /// Memory that the bodies of all uploads may take, bytes.
    pub upload_memory_bytes: u64,
    /// What sessions and tenants may have stored.
    pub quotas: Quotas,
    /// Searches at once; each keeps a thread busy.
    pub max_concurrent_searches: usize,
    /// Wall time of one page of a search.
    pub search_deadline: Duration,
    /// Tool results up to this many bytes stay in the prompt.
    pub inline_bytes: u64,
    /// Cap of a replacement, bytes.
    pub replacement_bytes: usize,
    /// The environment variable that printed requests take their bearer token from, where the service
    /// wants one. Its name stands in prompts; the token never does.
    pub token_variable: Option<&'static str>,
    /// Arguments that a printed `spillbox` command needs to find this store.
    pub cli_args: Vec<String>,
}

/// All cores but one: the other requests stay fast whatever is searched for.
pub fn max_concurrent_searches() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).max(1)
}

impl Default for LibraryOptions {
    fn default() -> Self {
        Self {
            locator_base: LocatorBase::Store,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            is_read_only: false,
            touch_on_read: true,
            max_concurrent_uploads: MAX_CONCURRENT_UPLOADS,
            upload_memory_bytes: DEFAULT_UPLOAD_MEMORY_BYTES,
            quotas: Quotas::default(),
            max_concurrent_searches: max_concurrent_searches(),
            search_deadline: SEARCH_DEADLINE,
            inline_bytes: DEFAULT_INLINE_BYTES,
            replacement_bytes: DEFAULT_REPLACEMENT_BYTES,
            token_variable: None,
            cli_args: Vec::new(),
        }
    }
}

/// What of a replica's bounded things is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LibraryLoad {
    /// Uploads that have a place.
    pub uploads: usize,
    /// Memory reserved for their bodies.
    pub upload_memory_bytes: u64,
    /// Searches that have a place.
    pub searches: usize,
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
    /// What is known in full, and the size of a part above that.
    pub(in crate::artifact) part_bytes: usize,
    pub(in crate::artifact) sessions: Sessions,
    pub(in crate::artifact) manifests: Manifests,
    /// Call records that this replica has seen decided: which artifact a call's output became. They
    /// never change; what they name may have been collected since.
    pub(in crate::artifact) records: Cache<(Tenant, DecisionId), ArtifactId>,
    /// Records of decisions that this replica has seen decided. They never change.
    pub(in crate::artifact) decisions: Cache<Key, Bytes>,
    pub(in crate::artifact) uploads: Arc<Semaphore>,
    pub(in crate::artifact) upload_memory: UploadMemory,
    pub(in crate::artifact) usage: Arc<UsageLedger>,
    pub(in crate::artifact) searches: Arc<Semaphore>,
    /// Who appends references to artifacts that are used; none where there are no journals.
    pub(in crate::artifact) keep_alive: Option<SharedKeepAlive>,
    /// Artifacts whose reads have appended a reference, for half a TTL.
    pub(in crate::artifact) touched: Cache<(Tenant, ArtifactRef), ()>,
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
            upload_memory: UploadMemory::new(options.upload_memory_bytes),
            usage: Arc::new(UsageLedger::new(options.quotas)),
            searches: Arc::new(Semaphore::new(options.max_concurrent_searches.max(1))),
            keep_alive: None,
            touched: Cache::builder()
                .max_capacity(CACHED_RECORDS)
                .time_to_live(format.orphan_ttl() / 2)
                .build(),
            tracker: TaskTracker::new(),
            options: Arc::new(options),
            part_bytes: PART_BYTES,
            store,
            keys,
            clock,
            ids,
            format,
        }
    }

    /// Lets replays and reads of old artifacts append references.
    #[must_use]
    pub fn with_keep_alive(mut self, keep_alive: SharedKeepAlive) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Streams bodies above `part_bytes`, at most [`PART_BYTES`], in parts of that size. For simulations:
    /// the size decides which bodies are known in full, so every replica of a store must have the same.
    #[must_use]
    pub fn with_part_bytes(mut self, part_bytes: usize) -> Self {
        self.part_bytes = part_bytes.clamp(1, PART_BYTES);
        self
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

    /// Returns what is running now.
    pub fn load(&self) -> LibraryLoad {
        let searches = self.options.max_concurrent_searches.max(1);
        let uploads = self.options.max_concurrent_uploads;
        LibraryLoad {
            uploads: uploads.saturating_sub(self.uploads.available_permits()),
            upload_memory_bytes: self.upload_memory.reserved_bytes(),
            searches: searches.saturating_sub(self.searches.available_permits()),
        }
    }

    /// Takes over what a plan of the collector, whose look began at `look_began`, saw of the use of quotas.
    pub fn rebase_usage(&self, baseline: UsageBaseline, look_began: jiff::Timestamp) {
        self.usage.rebase(baseline, look_began);
    }

    /// Asks the store for one small answer, to see whether it answers at all.
    ///
    /// # Errors
    /// It does not; that the object asked for is absent is an answer.
    pub async fn probe_store(&self) -> Result<(), StoreError> {
        match self.store.head(&self.keys.format()).await {
            Err(error) if !error.is(StoreErrorKind::NotFound) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
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
