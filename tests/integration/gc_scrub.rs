//! A scrub over every backend: what it reads back, what it finds, and that it changes nothing.

use spillbox::gc::plan::Scope;
use spillbox::gc::scrub::{Damage, Depth, ScrubReport, ScrubRequest};
use spillbox::ids::{ArtifactRef, Tenant};
use spillbox::store::keys::Key;
use spillbox::store::{DeleteFence, PutMode};

use crate::support::app::Backend;
use crate::support::collection::World;

async fn scrub(world: &World, depth: Depth) -> ScrubReport {
    let request = ScrubRequest {
        scope: Scope::All,
        depth,
        bytes_per_second: u64::MAX,
    };
    world.collector().scrub(&request).await.unwrap()
}

fn body_key(world: &World, artifact: &ArtifactRef) -> Key {
    world.keys.body(&Tenant::default(), artifact)
}

/// Removes an object as nothing of ours does.
async fn lose(world: &World, key: &Key) {
    world.store.delete(key, DeleteFence::None).await.unwrap();
}

fn found(report: &ScrubReport, artifact: &ArtifactRef) -> Vec<(Damage, Option<bool>)> {
    let name = artifact.to_string();
    let findings = report.findings.iter();
    let of = findings.filter(|finding| finding.artifact == name);
    of.map(|finding| (finding.damage, finding.is_referenced))
        .collect()
}

#[tokio::test]
async fn sound_bodies_are_read_back_and_nothing_is_found() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let leased = world.save("s", "leased").await;
        world.prepare(&leased, "t1").await;
        world.save("t", "not leased").await;
        // A tombstone, and one of a session without a journal.
        world.save("u", "collected").await;
        world.wait(25);
        world.prepare(&world.save("u", "young").await, "t2").await;
        world.collect().await;
        let before = world.all_keys().await;
        let report = scrub(&world, Depth::All).await;
        assert_eq!(report.damaged, 0, "{backend:?} {:?}", report.findings);
        assert_eq!(report.artifacts, 2, "{backend:?}");
        assert_eq!((report.sound.count, report.sound.bytes), (2, 11));
        assert_eq!(world.all_keys().await, before, "{backend:?}");
        let sampled = scrub(&world, Depth::Sample(1)).await;
        assert_eq!(sampled.sound.count, 1);
        assert_eq!(sampled.artifacts, 2);
    }
}

#[tokio::test]
async fn damage_is_named_and_alarms_where_something_refers_to_it() {
    for backend in [Backend::Memory, Backend::Local, Backend::S3] {
        let world = World::new(backend);
        let mut saved = Vec::new();
        for n in 0..4 {
            saved.push(world.save("s", &format!("artifact {n}")).await);
        }
        let names: Vec<_> = saved
            .iter()
            .map(|saved| saved.manifest.head.artifact_ref())
            .collect();
        world.prepare(&saved[0], "t0").await;
        world.prepare(&saved[2], "t2").await;
        for name in &names[..2] {
            let key = body_key(&world, name);
            let put = world
                .store
                .put(&key, "artifact X".into(), PutMode::Overwrite);
            put.await.unwrap();
        }
        for name in &names[2..] {
            lose(&world, &body_key(&world, name)).await;
        }
        let before = world.all_keys().await;
        for depth in [Depth::All, Depth::Sample(100)] {
            let report = scrub(&world, depth).await;
            assert_eq!(found(&report, &names[0]), [(Damage::Corrupt, Some(true))]);
            assert_eq!(found(&report, &names[1]), [(Damage::Corrupt, Some(false))]);
            let missing = [(Damage::MissingReferenced, Some(true))];
            assert_eq!(found(&report, &names[2]), missing, "{backend:?}");
            assert_eq!(found(&report, &names[3]), [(Damage::Missing, Some(false))]);
            assert_eq!((report.damaged, report.alarms), (4, 2), "{backend:?}");
            assert_eq!(report.counts["corrupt"], 2);
            assert_eq!(report.counts["unreadable"], 0);
        }
        assert_eq!(world.all_keys().await, before, "{backend:?}");
    }
}

/// Nothing of the session is left but its journal.
#[tokio::test]
async fn a_lease_whose_artifact_vanished_whole_is_seen() {
    for backend in [Backend::Memory, Backend::Local, Backend::S3] {
        let world = World::new(backend);
        let mut leased = Vec::new();
        // On both sides of a session that is whole.
        for session in ["a", "b", "c", "d"] {
            let saved = world.save(session, session).await;
            world.prepare(&saved, "t").await;
            leased.push(saved);
        }
        for saved in &leased[..3] {
            let head = &saved.manifest.head;
            let artifact = head.artifact_ref();
            let tenant = Tenant::default();
            lose(&world, &body_key(&world, &artifact)).await;
            lose(&world, &world.keys.manifest(&tenant, &artifact)).await;
            lose(&world, &world.keys.session(&tenant, &artifact.session_key)).await;
        }
        let report = scrub(&world, Depth::Sample(0)).await;
        for saved in &leased[..3] {
            let missing = [(Damage::MissingReferenced, Some(true))];
            let artifact = saved.manifest.head.artifact_ref();
            assert_eq!(found(&report, &artifact), missing, "{backend:?}");
        }
        assert_eq!((report.damaged, report.alarms, report.journals), (3, 3, 4));
        // One session alone.
        let request = ScrubRequest {
            scope: Scope::Session {
                tenant: Tenant::default(),
                session: "b".parse().unwrap(),
            },
            depth: Depth::All,
            bytes_per_second: u64::MAX,
        };
        let report = world.collector().scrub(&request).await.unwrap();
        assert_eq!(report.alarms, 1, "{backend:?}");
    }
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_is_reported_and_hides_nothing() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "damaged").await;
    world.prepare(&saved, "t").await;
    let artifact = saved.manifest.head.artifact_ref();
    let body = body_key(&world, &artifact);
    let put = world.store.put(&body, "other".into(), PutMode::Overwrite);
    put.await.unwrap();
    let record = world
        .keys
        .journal_record(&Tenant::default(), &artifact.session_key, 0);
    let put = world
        .store
        .put(&record, "no record".into(), PutMode::Overwrite);
    put.await.unwrap();
    let report = scrub(&world, Depth::All).await;
    assert_eq!(found(&report, &artifact), [(Damage::Corrupt, None)]);
    assert_eq!(
        (report.damaged, report.alarms),
        (2, 1),
        "{:?}",
        report.findings
    );
    assert_eq!(report.counts["unreadable"], 1);
}
