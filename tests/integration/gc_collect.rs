//! Plans and their application over every backend: what goes, what stays, and who may come in between.

use bytes::Bytes;
use rstest::rstest;
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::gc::apply::ApplyError;
use spillbox::gc::plan::PlanRefusal;
use spillbox::gc::planner::PlanError;
use spillbox::gc::policy::PolicyRequest;
use spillbox::gc::shard::Shard;
use spillbox::gc::status::{Reason, Status};
use spillbox::ids::Tenant;
use spillbox::lease::entry::ReleaseReason;
use spillbox::lease::evaluate::Operation;
use spillbox::lease::names::TransactionId;
use spillbox::store::keys::Key;
use spillbox::store::{DeleteFence, GetOptions, GetReply, PutMode};

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::crash::refusing;
use crate::support::library::{body, request};

const BACKENDS: [Backend; 6] = Backend::ALL;

async fn gone(world: &World, saved: &spillbox::artifact::save::Saved) -> TombstoneReason {
    let artifact = saved.manifest.head.artifact_ref();
    assert!(!world.has_body(&artifact).await, "a body is left");
    let error = world.read(saved).await.unwrap_err();
    let deletion = error.deletion().expect("a 410").clone();
    assert_eq!(
        deletion.digest,
        Some(saved.manifest.head.body.sha256.to_string())
    );
    if let Some(server) = &world.s3 {
        let key = world.keys.manifest(&Tenant::default(), &artifact);
        assert_eq!(
            server.version_count(key.as_str()),
            1,
            "an older manifest is left"
        );
    }
    match deletion.reason.as_str() {
        "expired" => TombstoneReason::Expired,
        "erased" => TombstoneReason::Erased,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_is_old_and_unreferenced_goes_and_everything_else_stays() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let orphan = world.save("s", "orphan").await;
        let leased = world.save("s", "leased").await;
        let elsewhere = world.save("t", "another session's").await;
        world.prepare(&leased, "t1").await;
        world.wait(25);
        let young = world.save("s", "young").await;
        let planned = world.plan().await;
        let of = |status| planned.plan.counts.of(status).count;
        assert_eq!(of(Status::PlannedDelete), 2, "{backend:?}");
        assert_eq!(of(Status::RetainedReferenced), 1, "{backend:?}");
        assert_eq!(of(Status::RetainedRecent), 1, "{backend:?}");
        assert_eq!(planned.plan.live, 4);
        // A plan alone deletes nothing.
        for saved in [&orphan, &leased, &elsewhere, &young] {
            world.read(saved).await.unwrap();
        }
        world.wait(1);
        let report = world.apply(&planned).await;
        assert!(report.is_complete, "{backend:?} {:?}", report.artifacts);
        assert_eq!(report.counts.of(Status::Deleted).count, 2, "{backend:?}");
        for saved in [&orphan, &elsewhere] {
            assert_eq!(gone(&world, saved).await, TombstoneReason::Expired);
        }
        assert_eq!(world.read(&leased).await.unwrap(), "leased");
        assert_eq!(world.read(&young).await.unwrap(), "young");
        assert!(world.is_sound("s").await && world.is_sound("t").await);
        // Again: nothing is left to do, and nothing goes wrong.
        let again = world.apply(&planned).await;
        assert!(again.is_complete);
        assert_eq!(again.counts.of(Status::AlreadyMissing).count, 2);
        world.wait(25);
        let next = world.plan().await;
        let planned_delete = next.plan.counts.of(Status::PlannedDelete);
        // What was young is old now.
        assert_eq!(planned_delete.count, 1);
        assert_eq!(next.plan.tombstones, 2);
    }
}

#[tokio::test]
async fn a_reference_that_comes_after_the_plan_keeps_its_artifact() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let leased = world.save("s", "leased late").await;
        let touched = world.save("s", "touched late").await;
        let ended = world.save("s", "leased and released late").await;
        world.wait(25);
        let planned = world.plan().await;
        assert_eq!(planned.plan.counts.of(Status::PlannedDelete).count, 3);
        world.prepare(&leased, "t1").await;
        world.prepare(&ended, "t2").await;
        let journals = world.journals_over(&world.store);
        let (tenant, session) = (Tenant::default(), "s".parse().unwrap());
        let commit = Operation::Commit {
            transaction_id: "t2".parse().unwrap(),
            owner_generation: None,
        };
        journals.submit(&tenant, &session, commit).await.unwrap();
        let release = Operation::Release {
            transaction_id: "t2".parse().unwrap(),
            why: ReleaseReason::Removed,
        };
        journals.submit(&tenant, &session, release).await.unwrap();
        let artifact_id = touched.manifest.head.artifact_id;
        let touch = Operation::Touch { artifact_id };
        journals.submit(&tenant, &session, touch).await.unwrap();
        // Days later, on another host.
        world.wait(48);
        let report = world.apply(&planned).await;
        let raced = report.counts.of_reason(
            Status::RaceDetected,
            Reason::ActiveClaimAddedAfterCleanupPlan,
        );
        assert_eq!(raced.count, 3, "{backend:?} {:?}", report.artifacts);
        for saved in [&leased, &touched, &ended] {
            world.read(saved).await.unwrap();
        }
    }
}

/// An end that has passed is first written down; grace begins with that entry.
#[tokio::test]
async fn a_lease_past_its_end_is_released_and_its_artifact_goes_a_ttl_later() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "leased for an hour").await;
    let mut intent = World::intent(&saved, "t1");
    intent.retain_until =
        Some(spillbox::clock::Clock::now(&*world.clock) + jiff::SignedDuration::from_hours(1));
    let (tenant, session) = (Tenant::default(), "s".parse().unwrap());
    let leases = world.leases();
    leases.prepare(&tenant, &session, intent).await.unwrap();
    let transaction: TransactionId = "t1".parse().unwrap();
    leases
        .commit(&tenant, &session, &transaction, None)
        .await
        .unwrap();
    world.wait(100);
    let first = world.collect().await;
    assert!(first.artifacts.is_empty(), "{:?}", first.artifacts);
    world.read(&saved).await.unwrap();
    world.wait(20);
    let planned = world.plan().await;
    let recent = planned.plan.counts.of_reason(
        Status::RetainedRecent,
        Reason::RetentionClaimExpiredButOrphanTtlNotReached,
    );
    assert_eq!(recent.count, 1);
    world.wait(5);
    let planned = world.plan().await;
    let expired = planned
        .plan
        .counts
        .of_reason(Status::PlannedDelete, Reason::ExpiredRetentionClaim);
    assert_eq!(expired.count, 1);
    world.wait(1);
    world.apply(&planned).await;
    assert_eq!(gone(&world, &saved).await, TombstoneReason::Expired);
}

#[tokio::test]
async fn a_body_replaced_after_the_plan_is_kept_and_reported() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let saved = world.save("s", "first bytes").await;
        world.wait(25);
        let planned = world.plan().await;
        let artifact = saved.manifest.head.artifact_ref();
        let key = world.keys.body(&Tenant::default(), &artifact);
        let put = world
            .store
            .put(&key, "other bytes".into(), PutMode::Overwrite);
        put.await.unwrap();
        world.wait(1);
        let report = world.apply(&planned).await;
        let raced = report.counts.of_reason(
            Status::RaceDetected,
            Reason::ArtifactChangedAfterCleanupPlan,
        );
        assert_eq!(raced.count, 1, "{backend:?} {:?}", report.artifacts);
        assert!(world.has_body(&artifact).await);
        // A plan that has seen the other bytes finds that they are not the manifest's.
        world.wait(25);
        let report = world.collect().await;
        let corrupt = report
            .counts
            .of_reason(Status::RetainedCorrupt, Reason::BodyDiffersFromManifest);
        assert_eq!(corrupt.count, 1, "{backend:?} {:?}", report.artifacts);
        assert!(world.has_body(&artifact).await);
    }
}

#[tokio::test]
async fn an_upload_that_never_finished_goes_after_a_day_and_its_key_is_closed() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let crashing = refusing(&world.store, "/a/");
        let library = world.library_over(&crashing);
        let bytes = Bytes::from_static(b"half saved");
        let failed = library.save(request("s", Some("c")), body(&bytes)).await;
        assert!(failed.is_err());
        let bodies = |keys: Vec<String>| keys.iter().filter(|key| key.contains("/b/")).count();
        assert_eq!(bodies(world.all_keys().await), 1);
        world.wait(24);
        let early = world.plan().await;
        assert_eq!(
            early.plan.counts.of(Status::PlannedDelete).count,
            0,
            "{backend:?}"
        );
        world.wait(1);
        let report = world.collect().await;
        let deleted = report
            .counts
            .of_reason(Status::Deleted, Reason::AbandonedUpload);
        assert_eq!(deleted.count, 1, "{backend:?} {:?}", report.artifacts);
        assert_eq!(bodies(world.all_keys().await), 0, "{backend:?}");
        // The same save again finds its record, meets the tombstone, and gets the next incarnation.
        let again = world
            .library()
            .save(request("s", Some("c")), body(&bytes))
            .await;
        assert_eq!(world.read(&again.unwrap()).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_body_that_lands_beside_a_tombstone_goes_whatever_its_age() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let saved = world.save("s", "collected").await;
        world.wait(25);
        world.collect().await;
        let artifact = saved.manifest.head.artifact_ref();
        let key = world.keys.body(&Tenant::default(), &artifact);
        world.wait(1);
        let put = world
            .store
            .put(&key, "a late copy".into(), PutMode::CreateIfAbsent);
        put.await.unwrap();
        let report = world.collect().await;
        let deleted = report
            .counts
            .of_reason(Status::Deleted, Reason::BodyBesideTombstone);
        assert_eq!(deleted.count, 1, "{backend:?} {:?}", report.artifacts);
        assert_eq!(gone(&world, &saved).await, TombstoneReason::Expired);
    }
}

#[tokio::test]
async fn keys_that_are_not_ours_are_counted_and_never_touched() {
    for backend in BACKENDS {
        let world = World::new(backend);
        world.save("s", "ours").await;
        let foreign = [
            "team/v1/t/default/a/notes.md",
            "team/v1/t/default/b/notes.md",
            "team/v1/t/default/b/zzz/zzz",
            "team/v1/t/readme.md",
            "team/v1/t/bad_tenant/a/x",
            "other/v1/t/default/b/x",
        ];
        for key in foreign {
            let key = Key::parse(key).unwrap();
            let put = world
                .store
                .put(&key, "foreign".into(), PutMode::CreateIfAbsent);
            put.await.unwrap();
        }
        world.wait(24 * 30);
        let planned = world.plan().await;
        let unknown = planned.plan.counts.of(Status::RetainedUnknown).count;
        assert_eq!(unknown, 5, "{backend:?}");
        world.wait(1);
        world.apply(&planned).await;
        let keys = world.all_keys().await;
        for key in foreign {
            assert!(keys.iter().any(|found| found == key), "{backend:?} {key}");
        }
    }
}

#[tokio::test]
async fn a_plan_that_is_altered_foreign_too_young_or_too_old_is_refused() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "stays").await;
    world.wait(25);
    let planned = world.plan().await;
    let (plan_id, sha256) = (planned.plan.plan_id, planned.sha256);
    let refused = |error: ApplyError| {
        let ApplyError::Refused(refusal) = error else {
            panic!("{error}");
        };
        refusal
    };
    let young = world.collector().apply(plan_id, &sha256).await.unwrap_err();
    assert!(young.is_refusal());
    assert!(matches!(refused(young), PlanRefusal::TooYoung { .. }));
    let other = spillbox::digest::Sha256Digest::of(b"other");
    let altered = world.collector().apply(plan_id, &other).await.unwrap_err();
    assert!(matches!(refused(altered), PlanRefusal::Altered { .. }));
    // A part that was changed behind its root.
    let part = world.keys.gc_plan_part(&plan_id, 0);
    let GetReply::Found(object) = world.store.get(&part, GetOptions::default()).await.unwrap()
    else {
        unreachable!()
    };
    let bytes = spillbox::store::register::collect(object.body)
        .await
        .unwrap();
    let mut changed = bytes.to_vec();
    changed[10] ^= 1;
    world
        .store
        .put(&part, changed.into(), PutMode::Overwrite)
        .await
        .unwrap();
    world.wait(2);
    let altered = world.collector().apply(plan_id, &sha256).await.unwrap_err();
    assert!(matches!(refused(altered), PlanRefusal::Altered { .. }));
    world
        .store
        .put(&part, bytes.into(), PutMode::Overwrite)
        .await
        .unwrap();
    // A copy under another name.
    let copy = uuid::Uuid::from_u128(1);
    let root = planned.plan.encode();
    let key = world.keys.gc_plan(&copy);
    world
        .store
        .put(&key, root.into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let foreign = world.collector().apply(copy, &sha256).await.unwrap_err();
    assert!(matches!(refused(foreign), PlanRefusal::Foreign(_)));
    let missing = world.collector().apply(uuid::Uuid::nil(), &sha256).await;
    assert!(matches!(missing, Err(ApplyError::NotFound(_))));
    world.wait(24 * 7);
    let expired = world.collector().apply(plan_id, &sha256).await.unwrap_err();
    assert!(matches!(refused(expired), PlanRefusal::Expired { .. }));
    assert_eq!(world.read(&saved).await.unwrap(), "stays");
}

#[tokio::test]
async fn a_host_whose_clock_is_off_collects_nothing() {
    for (backend, minutes) in [(Backend::S3, 10), (Backend::S3, -10), (Backend::Minio, 6)] {
        let world = World::new(backend);
        world.save("s", "stays").await;
        world.wait(25);
        let host = spillbox::clock::ManualClock::new(spillbox::clock::Clock::now(&*world.clock));
        host.advance(jiff::SignedDuration::from_mins(minutes));
        let ids = spillbox::ids::SystemIds::shared();
        let collector = spillbox::gc::collector::Collector::new(
            std::sync::Arc::clone(&world.store),
            world.keys.clone(),
            spillbox::limits::DEFAULT_ORPHAN_TTL,
            world.journals_over(&world.store),
            world.fence,
            (std::sync::Arc::new(host), ids),
        );
        let policy = crate::support::collection::policy_of(&PolicyRequest::default());
        let refused = collector
            .plan(&spillbox::gc::plan::Scope::All, &policy)
            .await;
        let error = refused.unwrap_err();
        assert!(
            error.is_refusal() && matches!(error, PlanError::Clock(_)),
            "{error}"
        );
        // Nothing but the probe was written, and it is gone.
        let keys = world.all_keys().await;
        assert!(
            keys.iter()
                .all(|key| !key.contains("/gc/") && !key.contains("/probe/"))
        );
    }
}

#[rstest]
#[case::none(Some(0), None, 0, 3)]
#[case::one(Some(1), None, 1, 2)]
#[case::no_limit(None, None, 3, 0)]
#[tokio::test]
async fn limits_hold_in_plan_and_apply(
    #[case] max_deletions: Option<u64>,
    #[case] max_share: Option<&str>,
    #[case] planned_delete: u64,
    #[case] retained_limit: u64,
) {
    let world = World::new(Backend::Memory);
    for n in 0..3 {
        world.save("s", &format!("artifact {n}")).await;
    }
    world.wait(25);
    let request = PolicyRequest {
        max_deletions,
        max_share: max_share.map(|share| share.parse().unwrap()),
        ..PolicyRequest::default()
    };
    let planned = world.plan_with(&request).await;
    let counts = &planned.plan.counts;
    assert_eq!(counts.of(Status::PlannedDelete).count, planned_delete);
    assert_eq!(counts.of(Status::RetainedLimit).count, retained_limit);
    assert_eq!(planned.plan.is_partial, retained_limit > 0);
    world.wait(1);
    let report = world.apply(&planned).await;
    assert_eq!(report.counts.of(Status::Deleted).count, planned_delete);
}

/// The parts of a plan are together the whole, and each may be applied by another host.
#[tokio::test]
async fn shards_of_a_plan_are_together_the_whole() {
    for backend in [Backend::Memory, Backend::S3Versioned] {
        let world = World::new(backend);
        let mut saved = Vec::new();
        for n in 0..24 {
            saved.push(world.save(&format!("s{n}"), &format!("artifact {n}")).await);
        }
        world.prepare(&saved[0], "t1").await;
        let foreign = Key::parse("team/v1/t/readme.md").unwrap();
        let put = world
            .store
            .put(&foreign, "foreign".into(), PutMode::CreateIfAbsent);
        put.await.unwrap();
        world.wait(25);
        let policy = crate::support::collection::policy_of(&PolicyRequest::default());
        let scope = spillbox::gc::plan::Scope::All;
        let whole = world.collector().plan(&scope, &policy).await.unwrap();
        let mut named = Vec::new();
        let (mut live, mut kept, mut unknown, mut plans) = (0, 0, 0, Vec::new());
        for part in 1..=8 {
            let shard = Shard::new(part, 8).unwrap();
            let collector = world.collector();
            let planned = collector.plan_shard(&scope, Some(shard), &policy).await;
            let planned = planned.unwrap();
            let candidates = planned.candidates.iter();
            for placed in candidates {
                assert!(shard.contains(&placed.anchor.session_key), "{shard}");
                named.push(placed.candidate.artifact_id);
            }
            live += planned.plan.live;
            kept += planned.plan.counts.of(Status::RetainedReferenced).count;
            unknown += planned.plan.counts.of(Status::RetainedUnknown).count;
            plans.push(planned);
        }
        let mut all: Vec<_> = whole
            .candidates
            .iter()
            .map(|placed| placed.candidate.artifact_id)
            .collect();
        all.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, all, "{backend:?}");
        assert_eq!((live, kept, unknown), (24, 1, 1), "{backend:?}");
        world.wait(1);
        let mut deleted = 0;
        for planned in &plans {
            deleted += world.apply(planned).await.counts.of(Status::Deleted).count;
        }
        assert_eq!(deleted, 23, "{backend:?}");
        assert_eq!(world.read(&saved[0]).await.unwrap(), "artifact 0");
    }
}

#[tokio::test]
async fn half_of_many_artifacts_stays_unless_the_operator_says_otherwise() {
    let world = World::new(Backend::Memory);
    for n in 0..120 {
        world
            .save(&format!("s{}", n % 4), &format!("artifact {n}"))
            .await;
    }
    world.wait(25);
    let planned = world.plan().await;
    let counts = &planned.plan.counts;
    assert_eq!(counts.of(Status::PlannedDelete).count, 60);
    let share = counts.of_reason(Status::RetainedLimit, Reason::ShareLimitReached);
    assert_eq!(share.count, 60);
    let all = PolicyRequest {
        max_share: Some(spillbox::gc::policy::Share::ALL),
        ..PolicyRequest::default()
    };
    let planned = world.plan_with(&all).await;
    assert_eq!(planned.plan.counts.of(Status::PlannedDelete).count, 120);
}

#[tokio::test]
async fn two_collectors_at_once_do_the_work_of_one() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let mut saved = Vec::new();
        for n in 0..6 {
            saved.push(world.save("s", &format!("artifact {n}")).await);
        }
        world.prepare(&saved[0], "t1").await;
        world.wait(25);
        let planned = world.plan().await;
        world.wait(1);
        let (a, b) = (world.collector(), world.collector());
        let (plan_id, sha256) = (planned.plan.plan_id, planned.sha256);
        let (a, b) = tokio::join!(a.apply(plan_id, &sha256), b.apply(plan_id, &sha256));
        for report in [a.unwrap(), b.unwrap()] {
            assert_eq!(
                report.counts.of(Status::RetainedCorrupt).count,
                0,
                "{backend:?}"
            );
        }
        assert!(world.is_sound("s").await, "{backend:?}");
        assert_eq!(world.read(&saved[0]).await.unwrap(), "artifact 0");
        for saved in &saved[1..] {
            assert_eq!(gone(&world, saved).await, TombstoneReason::Expired);
        }
    }
}

/// A collector that wakes up days later goes on with what it knew: others have done its work, and what was
/// saved since, by the same call too, is not its.
#[tokio::test]
async fn a_stale_collector_days_later_touches_nothing_new() {
    for backend in BACKENDS {
        let world = World::new(backend);
        let bytes = Bytes::from_static(b"saved by a call");
        let save = async || {
            let library = world.library();
            let saved = library.save(request("s", Some("c")), body(&bytes));
            saved.await.unwrap()
        };
        let first = save().await;
        world.wait(25);
        let stale = world.collector();
        let policy = crate::support::collection::policy_of(&PolicyRequest::default());
        let scope = spillbox::gc::plan::Scope::All;
        let planned = stale.plan(&scope, &policy).await.unwrap();
        world.wait(1);
        world.apply(&planned).await;
        assert_eq!(gone(&world, &first).await, TombstoneReason::Expired);
        let second = save().await;
        world.prepare(&second, "t1").await;
        let young = world.save("s", "saved since").await;
        world.wait(24 * 6);
        let report = stale.apply(planned.plan.plan_id, &planned.sha256).await;
        assert_eq!(
            report.unwrap().counts.of(Status::Deleted).count,
            0,
            "{backend:?}"
        );
        // Its deletes as well, with no condition at all, as they arrive at last.
        let artifact = first.manifest.head.artifact_ref();
        let key = world.keys.body(&Tenant::default(), &artifact);
        world.store.delete(&key, DeleteFence::None).await.unwrap();
        assert_eq!(world.read(&second).await.unwrap(), bytes, "{backend:?}");
        assert_eq!(
            world.read(&young).await.unwrap(),
            "saved since",
            "{backend:?}"
        );
        assert!(world.is_sound("s").await, "{backend:?}");
    }
}

/// Whoever takes the slot first wins; never both.
#[tokio::test]
async fn a_lease_against_a_collector_has_one_winner() {
    for backend in BACKENDS {
        for round in 0..4 {
            let world = World::new(backend);
            let saved = world.save("s", "contended").await;
            world.wait(25);
            let planned = world.plan().await;
            world.wait(1);
            let (leases, collector) = (world.leases(), world.collector());
            let (tenant, session) = (Tenant::default(), "s".parse().unwrap());
            let prepare = async {
                for _ in 0..round * 3 {
                    tokio::task::yield_now().await;
                }
                leases
                    .prepare(&tenant, &session, World::intent(&saved, "t1"))
                    .await
            };
            let apply = collector.apply(planned.plan.plan_id, &planned.sha256);
            let (prepared, report) = tokio::join!(prepare, apply);
            let is_deleted = report.unwrap().counts.of(Status::Deleted).count == 1;
            assert_ne!(prepared.is_ok(), is_deleted, "{backend:?} {round}");
            assert_eq!(world.read(&saved).await.is_ok(), prepared.is_ok());
            assert!(world.is_sound("s").await);
        }
    }
}

#[tokio::test]
async fn a_lease_whose_artifact_has_vanished_is_an_alarm() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "leased and lost").await;
    world.save("s", "another").await;
    world.prepare(&saved, "t1").await;
    let artifact = saved.manifest.head.artifact_ref();
    let tenant = Tenant::default();
    for key in [
        world.keys.body(&tenant, &artifact),
        world.keys.manifest(&tenant, &artifact),
    ] {
        world.store.delete(&key, DeleteFence::None).await.unwrap();
    }
    world.wait(25);
    let planned = world.plan().await;
    let missing = planned.plan.counts.of(Status::MissingReferenced);
    assert_eq!(missing.count, 1);
    assert_eq!(planned.plan.alarms.len(), 1);
    assert_eq!(planned.plan.alarms[0].artifact, artifact.to_string());
}
