//! What any run left is finished without a plan that covers it; what collections leave about themselves
//! expires; the store is counted by what it holds.

use spillbox::gc::plan::Scope;
use spillbox::gc::policy::PolicyRequest;
use spillbox::gc::status::{Reason, Status};
use spillbox::ids::Tenant;
use spillbox::lease::entry::{CondemnReason, Condemned};
use spillbox::lease::evaluate::Operation;
use spillbox::store::PutMode;
use spillbox::store::keys::KeyClass;

use crate::support::app::Backend;
use crate::support::collection::{World, policy_of};

/// Condemns as a collector or an erasure does that dies then.
async fn condemn(world: &World, saved: &spillbox::artifact::save::Saved, why: CondemnReason) {
    let head = &saved.manifest.head;
    let condemned = Condemned {
        artifact_id: head.artifact_id,
        decision_id: head.decision_id,
        sha256: Some(head.body.sha256),
        size_bytes: Some(head.body.size_bytes),
        etag: Some(head.body.etag.clone()),
        version_id: head.body.version_id.clone(),
        store_checksum: None,
        manifest_version_id: None,
        why,
        server_date: spillbox::clock::Clock::now(&*world.clock),
        plan_id: None,
    };
    let journals = world.journals_over(&world.store);
    let operation = Operation::Condemn(Box::new(condemned));
    let tenant = Tenant::default();
    let submitted = journals.submit(&tenant, &head.session, operation);
    submitted.await.unwrap();
}

#[tokio::test]
async fn what_a_dead_run_condemned_is_finished_though_no_plan_names_it() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let erased = world.save("s", "an erasure died here").await;
        let collected = world.save("t", "a collector died here").await;
        let bystander = world.save("t", "stays").await;
        let leased = world.save("u", "leased").await;
        world.prepare(&leased, "t1").await;
        condemn(&world, &erased, CondemnReason::Erased).await;
        condemn(&world, &collected, CondemnReason::Expired).await;
        // Nothing is old enough for a plan to open a journal.
        let policy = policy_of(&PolicyRequest::default());
        let settling = world.collector().finish(&Scope::All, 60).await.unwrap();
        assert!(!settling.is_complete, "{backend:?}");
        assert_eq!(settling.sessions, 3);
        let waits = (Status::PendingDelete, Reason::SettleNotReached);
        assert_eq!(settling.counts.of_reason(waits.0, waits.1).count, 1);
        assert_eq!(settling.counts.of(Status::Deleted).count, 1);
        let ran = world.collector().run(&Scope::All, &policy).await.unwrap();
        assert!(ran.finished.is_complete, "{backend:?} {:?}", ran.finished);
        assert_eq!(ran.finished.counts.of(Status::Deleted).count, 1);
        assert!(ran.report.is_none());
        for gone in [&erased, &collected] {
            assert!(!world.has_body(&gone.manifest.head.artifact_ref()).await);
            let error = world.read(gone).await.unwrap_err();
            assert!(error.deletion().is_some(), "{backend:?}");
        }
        for kept in [&bystander, &leased] {
            world.read(kept).await.unwrap();
        }
        let again = world.collector().finish(&Scope::All, 0).await.unwrap();
        assert!(again.is_complete && again.artifacts.is_empty());
        assert!(world.is_sound("s").await && world.is_sound("t").await);
    }
}

#[tokio::test]
async fn a_sweep_keeps_to_its_scope() {
    let world = World::new(Backend::Memory);
    let one = world.save("s", "one").await;
    let other = world.save("t", "other").await;
    for saved in [&one, &other] {
        condemn(&world, saved, CondemnReason::Erased).await;
    }
    let scope = Scope::Session {
        tenant: Tenant::default(),
        session: "s".parse().unwrap(),
    };
    world.collector().finish(&scope, 0).await.unwrap();
    assert!(!world.has_body(&one.manifest.head.artifact_ref()).await);
    assert!(world.has_body(&other.manifest.head.artifact_ref()).await);
    let foreign = Scope::Tenant("other".parse().unwrap());
    world.collector().finish(&foreign, 0).await.unwrap();
    assert!(world.has_body(&other.manifest.head.artifact_ref()).await);
}

#[tokio::test]
async fn old_plans_reports_and_probes_go_and_nothing_else_does() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let saved = world.save("s", "kept by its lease").await;
        world.prepare(&saved, "t1").await;
        world.collect().await;
        let probe = world.keys.probe(&uuid::Uuid::from_u128(9));
        let put = world
            .store
            .put(&probe, "left".into(), PutMode::CreateIfAbsent);
        put.await.unwrap();
        let expired = world.collector().expire().await.unwrap();
        let removed = |expired: &spillbox::gc::expiry::Expired| {
            (expired.plans.count > 0, expired.reports.count)
        };
        assert_eq!(removed(&expired), (false, 0), "{backend:?}");
        assert_eq!(expired.probes.count, 0, "{backend:?}");
        let before = world.all_keys().await;
        world.wait(24 * 15);
        let expired = world.collector().expire().await.unwrap();
        assert_eq!(removed(&expired), (true, 0), "{backend:?}");
        assert!(expired.probes.count >= 1 && expired.failed == 0);
        if let Some(server) = &world.s3 {
            // Of what a plan wrote and of its clock probes no version is left either.
            assert_eq!(server.version_count(probe.as_str()), 0, "{backend:?}");
        }
        world.wait(24 * 80);
        let expired = world.collector().expire().await.unwrap();
        assert_eq!(removed(&expired), (false, 1), "{backend:?}");
        let after = world.all_keys().await;
        let goes = |key: &&String| key.contains("/gc/") || key.contains("/probe/");
        assert!(!after.iter().any(|key| goes(&key)), "{backend:?} {after:?}");
        let kept: Vec<_> = before.iter().filter(|key| !goes(key)).collect();
        assert_eq!(after.iter().collect::<Vec<_>>(), kept);
        world.read(&saved).await.unwrap();
    }
}

#[tokio::test]
async fn an_inventory_counts_every_class() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "five!").await;
    world.prepare(&saved, "t1").await;
    world.collect().await;
    let foreign = spillbox::store::keys::Key::parse("team/v1/notes.md").unwrap();
    let put = world
        .store
        .put(&foreign, "x".into(), PutMode::CreateIfAbsent);
    put.await.unwrap();
    let stock = world.collector().stock().await.unwrap();
    assert_eq!(stock.classes.len(), KeyClass::ALL.len());
    let of = |class: KeyClass| {
        let mut rows = stock.classes.iter();
        rows.find(|row| row.class == class.as_str()).unwrap()
    };
    assert_eq!((of(KeyClass::Body).count, of(KeyClass::Body).bytes), (1, 5));
    for class in [
        KeyClass::Manifest,
        KeyClass::Session,
        KeyClass::Journal,
        KeyClass::Report,
        KeyClass::Foreign,
    ] {
        assert_eq!(of(class).count, 1, "{class:?}");
    }
    let total: u64 = stock.classes.iter().map(|row| row.count).sum();
    assert_eq!(total, world.all_keys().await.len() as u64);
    assert_eq!(stock.uploads, Some(0));
}

/// A host that has seen no date of the store writes no time; the store's own time of the record counts.
#[tokio::test]
async fn a_reference_without_a_time_does_not_keep_for_ever() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "touched without a time").await;
    world.wait(25);
    let artifact_id = saved.manifest.head.artifact_id;
    let journals = world.journals_over(&world.store);
    let touch = Operation::Touch { artifact_id };
    let tenant = Tenant::default();
    let session = "s".parse().unwrap();
    journals.submit(&tenant, &session, touch).await.unwrap();
    without_time(&world).await;
    let planned = world.plan().await;
    let recent = planned.plan.counts.of(Status::RetainedRecent);
    assert_eq!(recent.count, 1, "{:?}", planned.plan.counts);
    world.wait(23);
    assert_eq!(
        world
            .plan()
            .await
            .plan
            .counts
            .of(Status::RetainedRecent)
            .count,
        1
    );
    world.wait(2);
    let report = world.collect().await;
    assert_eq!(
        report.counts.of(Status::Deleted).count,
        1,
        "{:?}",
        report.artifacts
    );
    assert!(!world.has_body(&saved.manifest.head.artifact_ref()).await);
}

/// Writes the last record as a host does that has seen no date.
async fn without_time(world: &World) {
    use spillbox::store::{GetOptions, GetReply};
    let keys = world.all_keys().await;
    let record = keys.iter().rfind(|key| key.contains("/j/")).unwrap();
    let key = spillbox::store::keys::Key::parse(record.as_str()).unwrap();
    let reply = world.store.get(&key, GetOptions::default()).await.unwrap();
    let GetReply::Found(object) = reply else {
        unreachable!()
    };
    let bytes = spillbox::store::register::collect(object.body)
        .await
        .unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert!(!value["as_of"].is_null(), "{value}");
    value["as_of"] = serde_json::Value::Null;
    let bytes = spillbox::lease::canonical::encode(&value).unwrap();
    let put = world.store.put(&key, bytes.into(), PutMode::Overwrite);
    put.await.unwrap();
}
