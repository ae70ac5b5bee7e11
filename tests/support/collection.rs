//! A store whose clock the test moves, with savers, owners and collectors on any number of hosts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::read::ReadError;
use spillbox::artifact::save::Saved;
use spillbox::clock::{Clock, ManualClock, SharedClock, SystemClock};
use spillbox::gc::collector::Collector;
use spillbox::gc::plan::Scope;
use spillbox::gc::planner::Planned;
use spillbox::gc::policy::{GcPolicy, PolicyRequest, PolicySettings};
use spillbox::gc::report::Report;
use spillbox::ids::{ArtifactRef, SessionId, SystemIds, Tenant};
use spillbox::lease::journals::Journals;
use spillbox::lease::leases::{LeaseOptions, Leases, PrepareRequest};
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::store::attest::Fence;
use spillbox::store::keys::KeySpace;
use spillbox::store::local::LocalStore;
use spillbox::store::memory::MemoryStore;
use spillbox::store::{ListRequest, SharedStore, paging};

use super::app::Backend;
use super::library::{body, request};
use super::s3_server::{BucketVersioning, Quirks, S3Server};

/// One store and its clock.
pub(crate) struct World {
    pub(crate) store: SharedStore,
    pub(crate) s3: Option<S3Server>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) keys: KeySpace,
    pub(crate) fence: Fence,
    root: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn new(backend: Backend) -> Self {
        // Whole seconds, as stores write them.
        let start = Timestamp::from_second(SystemClock.now().as_second()).unwrap();
        let clock = Arc::new(ManualClock::new(start));
        let shared: SharedClock = Arc::clone(&clock) as SharedClock;
        let (mut s3, mut root) = (None, None);
        let store: SharedStore = match backend {
            Backend::Memory => Arc::new(MemoryStore::new(shared)),
            Backend::Local => {
                let dir = root.insert(tempfile::tempdir().unwrap());
                Arc::new(LocalStore::open(dir.path(), shared, SystemIds::shared()).unwrap())
            }
            Backend::S3 | Backend::S3Versioned | Backend::Minio | Backend::MinioVersioned => {
                let is_minio = matches!(backend, Backend::Minio | Backend::MinioVersioned);
                let is_versioned =
                    matches!(backend, Backend::S3Versioned | Backend::MinioVersioned);
                let server = S3Server::builder()
                    .quirks(if is_minio { Quirks::MINIO } else { Quirks::AWS })
                    .versioning(if is_versioned {
                        BucketVersioning::Enabled
                    } else {
                        BucketVersioning::Never
                    })
                    .clock(shared)
                    .any_signing_time()
                    .start();
                Arc::new(s3.insert(server).store())
            }
        };
        let fence = match backend {
            Backend::Memory | Backend::Local | Backend::S3 => Fence::IfMatch,
            Backend::S3Versioned | Backend::MinioVersioned => Fence::VersionId,
            Backend::Minio => Fence::None,
        };
        let keys = KeySpace::new("team").unwrap();
        Self {
            store,
            s3,
            clock,
            keys,
            fence,
            root,
        }
    }

    pub(crate) fn root(&self) -> Option<&std::path::Path> {
        self.root.as_ref().map(tempfile::TempDir::path)
    }

    fn shared_clock(&self) -> SharedClock {
        Arc::clone(&self.clock) as SharedClock
    }

    pub(crate) fn wait(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    pub(crate) fn format() -> StoreFormat {
        StoreFormat::new(DEFAULT_ORPHAN_TTL)
    }

    /// A replica with empty caches.
    pub(crate) fn library(&self) -> Library {
        self.library_over(&self.store)
    }

    pub(crate) fn library_over(&self, store: &SharedStore) -> Library {
        let (store, keys, clock) = (Arc::clone(store), self.keys.clone(), self.shared_clock());
        let options = LibraryOptions::default();
        Library::new(
            store,
            keys,
            Self::format(),
            clock,
            SystemIds::shared(),
            options,
        )
    }

    pub(crate) fn journals_over(&self, store: &SharedStore) -> Journals {
        let (store, keys) = (Arc::clone(store), self.keys.clone());
        Journals::new(store, keys, self.shared_clock(), SystemIds::shared())
    }

    pub(crate) fn leases(&self) -> Leases {
        self.leases_over(&self.store)
    }

    pub(crate) fn leases_over(&self, store: &SharedStore) -> Leases {
        let journals = self.journals_over(store);
        Leases::new(self.library_over(store), journals, LeaseOptions::default())
    }

    /// A collector on a host of its own.
    pub(crate) fn collector(&self) -> Collector {
        self.collector_over(&self.store)
    }

    pub(crate) fn collector_over(&self, store: &SharedStore) -> Collector {
        let journals = self.journals_over(store);
        let around = (self.shared_clock(), SystemIds::shared());
        let (store, keys) = (Arc::clone(store), self.keys.clone());
        Collector::new(
            store,
            keys,
            DEFAULT_ORPHAN_TTL,
            journals,
            self.fence,
            around,
        )
    }

    pub(crate) async fn save(&self, session: &str, bytes: &str) -> Saved {
        let bytes = Bytes::from(bytes.to_owned());
        let library = self.library();
        let saved = library.save(request(session, None), body(&bytes)).await;
        saved.unwrap()
    }

    pub(crate) fn intent(saved: &Saved, transaction: &str) -> PrepareRequest {
        PrepareRequest {
            transaction_id: transaction.parse().unwrap(),
            source_id: saved.manifest.head.source_id(),
            content_sha256: saved.manifest.head.body.sha256,
            reference_count: 1,
            retain_until: None,
            owner: None,
            mode: None,
        }
    }

    pub(crate) async fn prepare(&self, saved: &Saved, transaction: &str) {
        let session = saved.manifest.head.session.clone();
        let intent = Self::intent(saved, transaction);
        let leases = self.leases();
        let prepared = leases.prepare(&Tenant::default(), &session, intent).await;
        prepared.unwrap();
    }

    pub(crate) async fn plan(&self) -> Planned {
        self.plan_with(&PolicyRequest::default()).await
    }

    pub(crate) async fn plan_with(&self, policy: &PolicyRequest) -> Planned {
        let planned = self.collector().plan(&Scope::All, &policy_of(policy)).await;
        planned.unwrap()
    }

    /// Applies a plan from another host.
    pub(crate) async fn apply(&self, planned: &Planned) -> Report {
        let collector = self.collector();
        let applied = collector.apply(planned.plan.plan_id, &planned.sha256).await;
        applied.unwrap()
    }

    /// Plans, waits until the plan may be applied, and applies it.
    pub(crate) async fn collect(&self) -> Report {
        let planned = self.plan().await;
        self.wait(1);
        self.apply(&planned).await
    }

    /// Everything of an artifact, through the verifying reader of a fresh replica.
    pub(crate) async fn read(&self, saved: &Saved) -> Result<Bytes, ReadError> {
        super::library::read_all(&self.library(), saved).await
    }

    /// Every current key of the bucket.
    pub(crate) async fn all_keys(&self) -> Vec<String> {
        let mut pages = paging::list(&*self.store, ListRequest::default());
        let mut keys = Vec::new();
        while let Some(page) = pages.next_page().await.unwrap() {
            keys.extend(page.objects.into_iter().map(|listed| listed.key));
        }
        keys
    }

    /// Whether anything of a body is left, in any version.
    pub(crate) async fn has_body(&self, artifact: &ArtifactRef) -> bool {
        let key = self.keys.body(&Tenant::default(), artifact);
        match &self.s3 {
            Some(server) => server.version_count(key.as_str()) > 0,
            None => self.store.head(&key).await.is_ok(),
        }
    }

    /// Whether a session's journal may be trusted.
    pub(crate) async fn is_sound(&self, session: &str) -> bool {
        let session: SessionId = session.parse().unwrap();
        let journals = self.journals_over(&self.store);
        let opened = journals
            .open_double_rooted(&Tenant::default(), &session)
            .await;
        !opened.unwrap().is_suspect
    }
}

/// The defaults, with no settle time: nothing waits on a real clock.
pub(crate) fn policy_of(request: &PolicyRequest) -> GcPolicy {
    let settings = PolicySettings {
        settle: Duration::ZERO,
        is_one_host: true,
        ..PolicySettings::default()
    };
    GcPolicy::new(request, &settings, DEFAULT_ORPHAN_TTL).unwrap()
}
