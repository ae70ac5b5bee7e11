//! Collections and erasures over a real endpoint, in seconds instead of days: its clock is nobody's to
//! move, so that the store's orphan TTL is one second here.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use bytes::Bytes;
use spillbox::artifact::save::Saved;
use spillbox::clock::{Clock, SystemClock};
use spillbox::gc::collector::{Collector, Fence};
use spillbox::gc::plan::Scope;
use spillbox::gc::planner::Planned;
use spillbox::gc::policy::{GcPolicy, PolicyRequest, PolicySettings};
use spillbox::gc::report::Report;
use spillbox::gc::status::Status;
use spillbox::ids::{IdSource, SystemIds, Tenant};
use spillbox::limits::PART_BYTES;
use spillbox::store::keys::KeySpace;
use spillbox::store::s3::{S3Settings, S3Store};
use spillbox::store::testing::remove_all;
use spillbox::store::{ListRequest, SharedStore, Versioning, paging};

use super::endpoint::{Ground, Mode, setting};
use super::suite::Suite;
use crate::support::leases::{claim, journals, replica_under_keys};
use crate::support::library::{body, log, read_all, replica_under, request};

const ORPHAN_TTL: Duration = Duration::from_secs(1);

/// After it everything is older than the TTL, however the server rounds its times.
const AGE: Duration = Duration::from_millis(3_200);

/// One case's own corner of a bucket.
struct Corner {
    store: SharedStore,
    keys: KeySpace,
    prefix: String,
    fence: Fence,
}

impl Corner {
    fn new(store: &SharedStore, prefix: String, fence: Fence) -> Self {
        Self {
            store: Arc::clone(store),
            keys: KeySpace::new(&prefix).unwrap(),
            prefix,
            fence,
        }
    }

    /// A collector on a host of its own.
    fn collector(&self) -> Collector {
        Collector::new(
            Arc::clone(&self.store),
            self.keys.clone(),
            ORPHAN_TTL,
            journals(&self.store, &self.keys),
            self.fence,
            (SystemClock::shared(), SystemIds::shared()),
        )
    }

    async fn save(&self, bytes: &Bytes) -> Saved {
        let library = replica_under(&self.store, &self.keys);
        library.save(request("s", None), body(bytes)).await.unwrap()
    }

    async fn lease(&self, saved: &Saved) {
        let leases = replica_under_keys(&self.store, &self.keys);
        let session = &saved.manifest.head.session;
        let tenant = Tenant::default();
        let asked = leases.prepare(&tenant, session, claim("t1", saved));
        asked.await.unwrap();
    }

    async fn plan(&self) -> Planned {
        let settings = PolicySettings {
            min_plan_age: Duration::ZERO,
            settle: Duration::ZERO,
            allow_short_times: true,
            is_one_host: false,
        };
        let policy = GcPolicy::new(&PolicyRequest::default(), &settings, ORPHAN_TTL).unwrap();
        self.collector().plan(&Scope::All, &policy).await.unwrap()
    }

    async fn apply(&self, planned: &Planned) -> Report {
        let collector = self.collector();
        let applied = collector.apply(planned.plan.plan_id, &planned.sha256);
        applied.await.unwrap()
    }

    /// Keys of a class, once for every version and marker of each where the bucket has versions.
    async fn kept(&self, class: &str) -> Vec<String> {
        let mut keys = Vec::new();
        if self.store.versioning().await.unwrap() == Versioning::NeverEnabled {
            let request = ListRequest {
                prefix: self.prefix.clone(),
                ..ListRequest::default()
            };
            let mut pages = paging::list(&*self.store, request);
            while let Some(page) = pages.next_page().await.unwrap() {
                keys.extend(page.objects.into_iter().map(|listed| listed.key));
            }
        } else {
            let mut pages = paging::list_versions(&*self.store, &self.prefix);
            while let Some(page) = pages.next_page().await.unwrap() {
                keys.extend(page.versions.into_iter().map(|version| version.key));
            }
        }
        keys.retain(|key| key.contains(class));
        keys
    }

    /// Nothing of a body is left in any version, and of its manifest only the tombstone.
    async fn is_gone(&self, saved: &Saved) {
        let (tenant, artifact) = (Tenant::default(), saved.manifest.head.artifact_ref());
        let body = self.keys.body(&tenant, &artifact).to_string();
        let manifest = self.keys.manifest(&tenant, &artifact).to_string();
        let bodies = self.kept("/b/").await;
        assert!(!bodies.contains(&body), "{bodies:?}");
        let manifests = self.kept("/a/").await;
        let left = manifests.iter().filter(|key| **key == manifest).count();
        assert_eq!(left, 1, "{manifests:?}");
        let library = replica_under(&self.store, &self.keys);
        let error = read_all(&library, saved).await.unwrap_err();
        assert!(error.deletion().is_some(), "{error}");
    }

    async fn reads(&self, saved: &Saved, bytes: &Bytes) {
        let library = replica_under(&self.store, &self.keys);
        assert!(read_all(&library, saved).await.unwrap() == *bytes);
    }
}

/// Two orphans, one of them streamed, and a leased artifact.
async fn three(corner: &Corner) -> ([Saved; 2], Saved, Bytes) {
    let small = corner.save(&log(20_000)).await;
    let streamed = corner.save(&log(PART_BYTES + 9)).await;
    let bytes = log(30_000);
    let leased = corner.save(&bytes).await;
    corner.lease(&leased).await;
    ([small, streamed], leased, bytes)
}

async fn what_is_old_and_unreferenced_goes(corner: &Corner) {
    let (orphans, leased, bytes) = three(corner).await;
    tokio::time::sleep(AGE).await;
    let planned = corner.plan().await;
    let report = corner.apply(&planned).await;
    assert!(report.is_complete, "{:?}", report.artifacts);
    assert_eq!(report.counts.of(Status::Deleted).count, 2);
    for orphan in &orphans {
        corner.is_gone(orphan).await;
    }
    corner.reads(&leased, &bytes).await;
    let again = corner.apply(&planned).await;
    assert!(again.is_complete);
    assert_eq!(again.counts.of(Status::AlreadyMissing).count, 2);
}

async fn a_lease_after_the_plan_keeps_its_artifact(corner: &Corner) {
    let bytes = log(10_000);
    let saved = corner.save(&bytes).await;
    tokio::time::sleep(AGE).await;
    let planned = corner.plan().await;
    assert_eq!(planned.plan.counts.of(Status::PlannedDelete).count, 1);
    corner.lease(&saved).await;
    let report = corner.apply(&planned).await;
    assert_eq!(report.counts.of(Status::RaceDetected).count, 1);
    corner.reads(&saved, &bytes).await;
}

async fn two_collectors_at_once_do_the_work_of_one(corner: &Corner) {
    let (orphans, leased, bytes) = three(corner).await;
    tokio::time::sleep(AGE).await;
    let planned = corner.plan().await;
    let (one, other) = tokio::join!(corner.apply(&planned), corner.apply(&planned));
    for report in [one, other] {
        assert_eq!(report.counts.of(Status::RetainedCorrupt).count, 0);
    }
    for orphan in &orphans {
        corner.is_gone(orphan).await;
    }
    corner.reads(&leased, &bytes).await;
}

async fn an_erasure_leaves_nothing(corner: &Corner) {
    let (orphans, leased, bytes) = three(corner).await;
    let (collector, tenant) = (corner.collector(), Tenant::default());
    for orphan in &orphans {
        let artifact = orphan.manifest.head.artifact_ref();
        for _ in 0..2 {
            collector.erase(&tenant, &artifact).await.unwrap();
        }
        corner.is_gone(orphan).await;
    }
    let artifact = leased.manifest.head.artifact_ref();
    let refused = collector.erase(&tenant, &artifact);
    assert!(refused.await.is_err(), "it is leased");
    corner.reads(&leased, &bytes).await;
}

macro_rules! cases {
    ($suite:ident, $corner:expr, [$($name:ident),+ $(,)?]) => {$(
        let corner: Corner = $corner;
        $suite.case(stringify!($name), $name(&corner)).await;
        remove_all(&*corner.store, &corner.prefix).await.unwrap();
    )+};
}

async fn collections(mode: Mode) {
    let Some(ground) = Ground::open(mode).await else {
        return;
    };
    let capabilities = &ground.capabilities;
    let fence = match capabilities.versioning {
        Versioning::Enabled | Versioning::Suspended => Fence::VersionId,
        Versioning::NeverEnabled if capabilities.delete_if_match => Fence::IfMatch,
        Versioning::NeverEnabled => Fence::None,
    };
    let mut suite = Suite::begin(format!("{} collections", ground.name));
    let corner = || Corner::new(&ground.store, ground.fresh_prefix(), fence);
    cases!(
        suite,
        corner(),
        [
            what_is_old_and_unreferenced_goes,
            a_lease_after_the_plan_keeps_its_artifact,
            two_collectors_at_once_do_the_work_of_one,
            an_erasure_leaves_nothing,
        ]
    );
    suite.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_plain_bucket_is_collected() {
    collections(Mode::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_versioned_bucket_is_collected() {
    collections(Mode::Versioned).await;
}

fn client(ground: &Ground) -> aws_sdk_s3::Client {
    let variable = |name: &str| std::env::var(name).expect("credentials in the environment");
    let credentials = Credentials::new(
        variable("AWS_ACCESS_KEY_ID"),
        variable("AWS_SECRET_ACCESS_KEY"),
        None,
        None,
        "test",
    );
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(variable("AWS_REGION")))
        .credentials_provider(credentials)
        .endpoint_url(&ground.url)
        .force_path_style(true);
    aws_sdk_s3::Client::from_conf(config.build())
}

/// A bucket whose versioning is switched to each of `modes`, with three artifacts saved before each; what
/// is erased and collected in the end leaves nothing in any version.
async fn versioning_is_switched_while_data_is_there(
    ground: &Ground,
    modes: &[BucketVersioningStatus],
) {
    let client = client(ground);
    let bucket = format!(
        "spillbox-switch-{}",
        ground.ids.uuid(SystemClock.now()).simple()
    );
    client.create_bucket().bucket(&bucket).send().await.unwrap();
    let settings = S3Settings {
        bucket: bucket.clone(),
        endpoint: Some(ground.url.clone()),
        ..S3Settings::default()
    };
    let store: SharedStore = Arc::new(S3Store::connect(&settings).await.unwrap());
    let corner = Corner::new(&store, ground.fresh_prefix(), Fence::None);
    let mut orphans = Vec::new();
    let bytes = log(30_000);
    let leased = corner.save(&bytes).await;
    corner.lease(&leased).await;
    for mode in modes {
        for size in [5_000, PART_BYTES + 1, 7_000] {
            orphans.push(corner.save(&log(size)).await);
        }
        let status = VersioningConfiguration::builder().status(mode.clone());
        let switched = client
            .put_bucket_versioning()
            .bucket(&bucket)
            .versioning_configuration(status.build());
        switched.send().await.unwrap();
    }
    let erased = orphans[0].manifest.head.artifact_ref();
    let collector = corner.collector();
    collector.erase(&Tenant::default(), &erased).await.unwrap();
    tokio::time::sleep(AGE).await;
    let planned = corner.plan().await;
    let report = corner.apply(&planned).await;
    assert!(report.is_complete, "{:?}", report.artifacts);
    for orphan in &orphans {
        corner.is_gone(orphan).await;
    }
    corner.reads(&leased, &bytes).await;
    remove_all(&*store, &corner.prefix).await.unwrap();
    let _ = client.delete_bucket().bucket(&bucket).send().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn buckets_are_switched() {
    if setting("SPILLBOX_TEST_SWITCHES").is_none() {
        println!("skipped: SPILLBOX_TEST_SWITCHES is not set: no bucket may be made here");
        return;
    }
    let Some(ground) = Ground::open(Mode::Plain).await else {
        return;
    };
    let mut suite = Suite::begin(format!("{} switched", ground.server));
    let (on, off) = (
        BucketVersioningStatus::Enabled,
        BucketVersioningStatus::Suspended,
    );
    for modes in [
        vec![on.clone()],
        vec![on.clone(), off.clone()],
        vec![on.clone(), off, on],
    ] {
        let name = format!("versioning_is_switched_{}_times", modes.len());
        let work = versioning_is_switched_while_data_is_there(&ground, &modes);
        suite.case(&name, work).await;
    }
    suite.end();
}
