//! A collector that dies before or after any of its requests: the next one finishes, and nothing that is
//! referenced is ever touched. Request budgets of a plan, and buckets whose versioning is switched while
//! data is there.

use std::sync::Arc;

use std::collections::BTreeSet;

use rstest::rstest;
use spillbox::artifact::save::Saved;
use spillbox::gc::status::Status;
use spillbox::ids::Tenant;
use spillbox::lease::state::ArtifactStatus;

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::crash::refusing;
use crate::support::library::{body, request};
use crate::support::s3_server::{Action, BucketVersioning, Fault, Op};

/// A world with something of every kind, and a plan that may be applied.
struct Scene {
    world: World,
    planned: spillbox::gc::planner::Planned,
    orphans: Vec<Saved>,
    leased: Saved,
}

impl Scene {
    async fn new(backend: Backend) -> Self {
        let world = World::new(backend);
        let orphans = vec![
            world.save("s", "orphan one").await,
            world.save("s", "orphan two").await,
            world.save("t", "orphan three").await,
        ];
        let leased = world.save("s", "leased").await;
        world.prepare(&leased, "t1").await;
        let crashing = refusing(&world.store, "/a/");
        let library = world.library_over(&crashing);
        let crashed = library
            .save(request("s", Some("c")), body(&"half".into()))
            .await;
        assert!(crashed.is_err());
        world.wait(26);
        let planned = world.plan().await;
        world.wait(1);
        Self {
            world,
            planned,
            orphans,
            leased,
        }
    }

    async fn apply(&self) -> bool {
        let collector = self.world.collector();
        let applied = collector
            .apply(self.planned.plan.plan_id, &self.planned.sha256)
            .await;
        applied.is_ok_and(|report| report.is_complete)
    }

    /// What must hold at any moment.
    async fn is_safe(&self, note: &str) {
        let bytes = self.world.read(&self.leased).await;
        assert_eq!(bytes.expect(note), "leased", "{note}");
        assert!(self.world.is_sound("s").await, "{note}");
    }

    /// What must hold in the end: only the leased artifact is left.
    async fn is_finished(&self, note: &str) {
        self.is_safe(note).await;
        let tenant = Tenant::default();
        for orphan in &self.orphans {
            let artifact = orphan.manifest.head.artifact_ref();
            assert!(
                !self.world.has_body(&artifact).await,
                "{note}: a body is left"
            );
            let key = self.world.keys.manifest(&tenant, &artifact);
            let server = self.world.s3.as_ref().expect("a bucket");
            assert_eq!(
                server.version_count(key.as_str()),
                1,
                "{note}: manifests are left"
            );
            let journals = self.world.journals_over(&self.world.store);
            let session = &orphan.manifest.head.session;
            let opened = journals.open_double_rooted(&tenant, session).await.unwrap();
            let state = Arc::clone(opened.opened.chain.state());
            let record = state.artifact(artifact.artifact_id).expect(note);
            let is_deleted = matches!(record.status, ArtifactStatus::Deleted(_));
            assert!(is_deleted, "{note}: {:?}", record.status);
        }
        let keys = self.world.all_keys().await;
        let bodies = keys.iter().filter(|key| key.contains("/b/")).count();
        assert_eq!(bodies, 1, "{note}");
    }
}

const DENIED: Action = Action::Refuse {
    status: 403,
    code: "AccessDenied",
};

#[rstest]
#[case::never(Backend::S3)]
#[case::versioned(Backend::S3Versioned)]
#[case::minio(Backend::Minio)]
#[case::minio_versioned(Backend::MinioVersioned)]
#[tokio::test(start_paused = true)]
async fn a_collector_may_die_at_every_request(#[case] backend: Backend) {
    let scene = Scene::new(backend).await;
    let server = scene.world.s3.as_ref().unwrap();
    server.log().clear();
    assert!(scene.apply().await);
    scene.is_finished("without a fault").await;
    let labels: Vec<String> = {
        let entries = server.log().entries();
        entries.iter().map(|entry| entry.seen.label()).collect()
    };
    let kinds: BTreeSet<&String> = labels.iter().collect();
    for kind in ["put:a", "put:j", "head:b", "delete:b", "get:a", "get:gc"] {
        assert!(
            kinds.iter().any(|seen| *seen == kind),
            "{kind} in {kinds:?}"
        );
    }
    // Every kind of request gets a kill point, and of the others every second one: before it arrives and
    // after its effect in turn, the other way round on the other server.
    let mut kinds_left = kinds.clone();
    let shift = usize::from(matches!(backend, Backend::Minio | Backend::MinioVersioned));
    let points: Vec<usize> = (0..labels.len())
        .filter(|at| kinds_left.remove(&labels[*at]) || (at + shift) % 2 == 0)
        .collect();
    assert!(kinds_left.is_empty());
    let mut died = 0;
    for (n, at) in points.iter().copied().enumerate() {
        let is_applied = (n + shift) % 2 == 0;
        let scene = Scene::new(backend).await;
        let server = scene.world.s3.as_ref().unwrap();
        let label = &labels[at];
        let note = format!("{backend:?} died at {at} ({label}), applied: {is_applied}");
        let last = if is_applied {
            Action::LoseReply
        } else {
            DENIED
        };
        server.fault(Fault::on_any(last).after(at));
        server.fault(Fault::on_any(DENIED).always());
        died += usize::from(!scene.apply().await);
        server.clear_faults();
        scene.is_safe(&note).await;
        // Other hosts, later, on plans of their own; tombstones must be old enough to be looked at.
        for _ in 0..2 {
            scene.world.wait(30);
            scene.world.collect().await;
        }
        scene.is_finished(&note).await;
    }
    let total = points.len();
    assert!(died * 2 > total, "{died} of {total} runs died");
}

/// The listing's floor, and one cold open per session that has something old.
#[tokio::test]
async fn a_plan_asks_for_no_artifact_of_its_own() {
    for backend in [Backend::S3, Backend::MinioVersioned] {
        let world = World::new(backend);
        for n in 0..60 {
            world
                .save(&format!("old{}", n % 3), &format!("artifact {n}"))
                .await;
        }
        let leased = world.save("old0", "leased").await;
        world.prepare(&leased, "t1").await;
        world.wait(26);
        for n in 0..20 {
            world.save("young", &format!("young artifact {n}")).await;
        }
        let server = world.s3.as_ref().unwrap();
        server.log().clear();
        let planned = world.plan().await;
        assert_eq!(planned.plan.counts.of(Status::PlannedDelete).count, 60);
        let counts = server.log().counts();
        let expected = [
            // The store's clock.
            ("put:probe", 1),
            ("head:probe", 1),
            ("delete:probe", 1),
            // The tenants, and both listings.
            ("list:t", 1),
            ("list:a", 1),
            ("list:b", 1),
            ("uploads:-", 1),
            // Three old sessions: what they are called, and their journals, one of which has a record.
            ("get:s", 3),
            ("list:k", 3),
            ("list:j", 3),
            ("get:j", 1),
            // The plan, and what it saw for quotas: a root and a part each.
            ("put:gc", 4),
        ];
        let expected: std::collections::BTreeMap<String, usize> =
            expected.map(|(label, n)| (label.to_owned(), n)).into();
        assert_eq!(counts, expected, "{backend:?}");
    }
}

#[rstest]
#[case::switched_on(BucketVersioning::Never, BucketVersioning::Enabled)]
#[case::suspended(BucketVersioning::Enabled, BucketVersioning::Suspended)]
#[case::on_again(BucketVersioning::Suspended, BucketVersioning::Enabled)]
#[tokio::test]
async fn versioning_that_is_switched_while_data_is_there_leaves_nothing_behind(
    #[case] before: BucketVersioning,
    #[case] after: BucketVersioning,
) {
    for is_erased in [false, true] {
        let world = World::new(Backend::S3);
        let server = world.s3.as_ref().unwrap();
        server.set_versioning(before);
        let saved = world.save("s", "stored before the switch").await;
        let leased = world.save("s", "leased").await;
        world.prepare(&leased, "t1").await;
        server.set_versioning(after);
        let artifact = saved.manifest.head.artifact_ref();
        let tenant = Tenant::default();
        if is_erased {
            world.collector().erase(&tenant, &artifact).await.unwrap();
        } else {
            world.wait(26);
            let report = world.collect().await;
            assert!(report.is_complete, "{:?}", report.artifacts);
            assert_eq!(report.counts.of(Status::Deleted).count, 1);
        }
        assert!(!world.has_body(&artifact).await, "{before:?} {after:?}");
        let key = world.keys.manifest(&tenant, &artifact);
        assert_eq!(
            server.version_count(key.as_str()),
            1,
            "{before:?} {after:?}"
        );
        assert_eq!(world.read(&leased).await.unwrap(), "leased");
    }
}

/// Where the versions cannot be listed nothing is deleted, and nobody is told that it was.
#[tokio::test]
async fn a_denied_listing_of_versions_is_never_an_erasure() {
    for op in [Op::Versioning, Op::Versions, Op::Delete] {
        let world = World::new(Backend::S3Versioned);
        let saved = world.save("s", "stays until it may go").await;
        let server = world.s3.as_ref().unwrap();
        server.fault(Fault::on(op, DENIED).always());
        let artifact = saved.manifest.head.artifact_ref();
        let tenant = Tenant::default();
        let refused = world
            .collector()
            .erase(&tenant, &artifact)
            .await
            .unwrap_err();
        assert_eq!(refused.code().as_str(), "erase_denied", "{op:?}");
        assert!(world.has_body(&artifact).await, "{op:?}");
        server.clear_faults();
        world.collector().erase(&tenant, &artifact).await.unwrap();
        assert!(!world.has_body(&artifact).await, "{op:?}");
    }
}
