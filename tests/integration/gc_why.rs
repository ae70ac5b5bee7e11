//! Why an artifact stays or goes, told as the planner decides.

use spillbox::gc::status::{Reason, Status};
use spillbox::gc::why::Why;
use spillbox::ids::Tenant;
use spillbox::lease::entry::{Entry, ReleaseReason};
use spillbox::lease::evaluate::Operation;
use spillbox::limits::DEFAULT_ORPHAN_TTL;

use crate::support::app::Backend;
use crate::support::collection::World;

async fn why(world: &World, saved: &spillbox::artifact::save::Saved) -> Why {
    let artifact = saved.manifest.head.artifact_ref();
    let collector = world.collector();
    let tenant = Tenant::default();
    let asked = collector.why(&tenant, &artifact, DEFAULT_ORPHAN_TTL);
    asked.await.unwrap().unwrap()
}

#[tokio::test]
async fn an_artifact_is_explained_through_its_whole_life() {
    for backend in [Backend::Memory, Backend::S3Versioned] {
        let world = World::new(backend);
        let saved = world.save("s", "explained").await;
        let other = world.save("s", "another of the session").await;
        world.prepare(&other, "t0").await;
        let young = why(&world, &saved).await;
        assert_eq!(young.status, Some(Status::RetainedRecent));
        assert!(young.records.is_empty() && young.leases.is_empty());
        let from = young.eligible_from.unwrap();
        world.wait(25);
        assert!(spillbox::clock::Clock::now(&*world.clock) > from);
        let old = why(&world, &saved).await;
        assert_eq!(old.status, Some(Status::PlannedDelete));
        assert_eq!(old.reason, Some(Reason::ExpiredUnreferencedArtifact));
        world.prepare(&saved, "t1").await;
        let leased = why(&world, &saved).await;
        assert_eq!(leased.status, Some(Status::RetainedReferenced));
        assert_eq!(leased.leases.len(), 1);
        assert_eq!(leased.records.len(), 1);
        let content = leased.records[0].content.as_ref().unwrap();
        assert!(matches!(content.entries.as_slice(), [Entry::Prepared(_)]));
        let journals = world.journals_over(&world.store);
        let (tenant, session) = (Tenant::default(), "s".parse().unwrap());
        for operation in [
            Operation::Commit {
                transaction_id: "t1".parse().unwrap(),
                owner_generation: None,
            },
            Operation::Release {
                transaction_id: "t1".parse().unwrap(),
                why: ReleaseReason::Removed,
            },
        ] {
            journals.submit(&tenant, &session, operation).await.unwrap();
        }
        let released = why(&world, &saved).await;
        let kept = Reason::RetentionClaimExpiredButOrphanTtlNotReached;
        assert_eq!(released.reason, Some(kept), "{backend:?}");
        assert!(released.eligible_from.is_some());
        world.wait(25);
        world.collect().await;
        let gone = why(&world, &saved).await;
        assert_eq!(gone.status, None);
        assert_eq!(gone.deletion.unwrap().reason, "expired");
        let entries = gone.records.iter().flat_map(|record| {
            let content = record.content.as_ref().unwrap();
            content.entries.clone()
        });
        let entries: Vec<Entry> = entries.collect();
        assert!(
            entries
                .iter()
                .any(|entry| matches!(entry, Entry::Deleted { .. }))
        );
        assert!(!entries.iter().any(|entry| {
            matches!(entry, Entry::Prepared(p) if p.artifact_id != saved.manifest.head.artifact_id)
        }));
    }
}

#[tokio::test]
async fn what_was_never_here_has_no_reason() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "here").await;
    let artifact = saved.manifest.head.artifact_ref();
    let foreign: Tenant = "other".parse().unwrap();
    let asked = world
        .collector()
        .why(&foreign, &artifact, DEFAULT_ORPHAN_TTL)
        .await;
    assert!(asked.unwrap().is_none());
}

#[tokio::test]
async fn a_plan_names_examples_of_what_it_keeps() {
    let world = World::new(Backend::Memory);
    for n in 0..8 {
        world.save("s", &format!("artifact {n}")).await;
    }
    let planned = world.plan().await;
    let kept = (Status::RetainedRecent, Reason::OrphanTtlNotReached);
    assert_eq!(planned.examples[&kept].len(), 5);
    assert_eq!(planned.plan.counts.of_reason(kept.0, kept.1).count, 8);
}
