//! Clients that die before or after every one of their requests: saves, prepares, applications of plans
//! with their tombstones and sweeps, erasures. Others, on other hosts, go on; what is referenced stays,
//! what is not goes, and nothing is left between.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use spillbox::artifact::request::{SaveError, SaveRequest};
use spillbox::artifact::save::Saved;
use spillbox::gc::planner::Planned;
use spillbox::ids::Tenant;
use spillbox::lease::state::ArtifactStatus;
use spillbox::limits::PART_BYTES;
use spillbox::store::{SharedStore, paging};

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::crash::{Moment, Mortal, refusing};
use crate::support::library::{body, log, receipt, request};

/// Runs `act` through a client that dies at no request, and then, each time in a new world, through one
/// that dies before or after the first, the second, … of its requests; `recover` must succeed always.
/// Answers the kinds of requests that were met.
async fn kill_everywhere<S>(
    what: &str,
    backend: Backend,
    begin: impl AsyncFn(&World) -> S,
    act: impl AsyncFn(&World, &SharedStore, &S),
    recover: impl AsyncFn(&World, &S, &str),
) -> BTreeSet<String> {
    let run = async |dies, note: &str| {
        let world = World::new(backend);
        let scene = begin(&world).await;
        let (store, mortal) = Mortal::over(&world.store, &world.keys, dies);
        act(&world, &store, &scene).await;
        recover(&world, &scene, note).await;
        mortal
    };
    let unharmed = run(None, &format!("{what}: nobody died")).await;
    let mut killed = BTreeSet::new();
    for (at, label) in unharmed.asked().into_iter().enumerate() {
        for moment in [Moment::Before, Moment::After] {
            let note = format!("{what} {backend:?}: died {moment:?} request {at} ({label})");
            let mortal = run(Some((at, moment)), &note).await;
            let died_at = mortal
                .died_at()
                .unwrap_or_else(|| panic!("{note}: did not"));
            killed.insert((died_at, moment));
        }
    }
    let kinds = unharmed.kinds();
    for kind in &kinds {
        for moment in [Moment::Before, Moment::After] {
            let has_point = killed.contains(&(kind.clone(), moment));
            assert!(has_point, "{what}: nobody died {moment:?} {kind}");
        }
    }
    println!(
        "{what} {backend:?}: {} kill points",
        2 * unharmed.asked().len()
    );
    kinds
}

/// The matrix has no point for these kinds unless the requests are made.
fn assert_met(kinds: &BTreeSet<String>, wanted: &[&str]) {
    for kind in wanted {
        assert!(kinds.contains(*kind), "{kind} is not among {kinds:?}");
    }
}

/// Other hosts, later, each on a plan of its own; tombstones must be old enough to be looked at.
async fn collect_twice(world: &World) {
    for _ in 0..2 {
        world.wait(30);
        world.collect().await;
    }
}

async fn bodies(world: &World) -> usize {
    let keys = world.all_keys().await;
    keys.iter().filter(|key| key.contains("/b/")).count()
}

async fn open_uploads(world: &World) -> usize {
    let mut pages = paging::list_uploads(&*world.store);
    let mut count = 0;
    while let Some(page) = pages.next_page().await.unwrap() {
        count += page.uploads.len();
    }
    count
}

async fn a_save_dies(what: &str, call: Option<&str>, bytes: &Bytes) -> BTreeSet<String> {
    let asked = || -> SaveRequest { request("s", call) };
    kill_everywhere(
        what,
        Backend::Memory,
        async |_| {},
        async |world, store, ()| {
            let library = world.library_over(store);
            let _ = library.save(asked(), body(bytes)).await;
            library.drain().await;
        },
        async |world, (), note| {
            // Another host, the same call, twice: one artifact, one receipt.
            let library = world.library();
            let saved = library.save(asked(), body(bytes)).await.expect(note);
            library.drain().await;
            if call.is_some() {
                let again = world.library().save(asked(), body(bytes)).await;
                let again = again.expect(note);
                assert_eq!(
                    receipt(&library, &again),
                    receipt(&library, &saved),
                    "{note}"
                );
            }
            assert!(world.read(&saved).await.expect(note) == *bytes, "{note}");
            world.prepare(&saved, "t1").await;
            collect_twice(world).await;
            assert!(world.read(&saved).await.expect(note) == *bytes, "{note}");
            assert!(world.is_sound("s").await, "{note}");
            assert_eq!(bodies(world).await, 1, "{note}");
            assert_eq!(open_uploads(world).await, 0, "{note}");
        },
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn a_save_that_is_known_in_full_may_die_at_every_request() {
    let bytes = log(40_000);
    let kinds = a_save_dies("save", None, &bytes).await;
    assert_met(&kinds, &["put:session", "put:body", "put:manifest"]);
    let kinds = a_save_dies("save of a call", Some("c"), &bytes).await;
    assert_met(&kinds, &["put:call_record", "put:body", "put:manifest"]);
}

#[tokio::test(start_paused = true)]
async fn a_streamed_save_may_die_at_every_request() {
    let bytes = log(PART_BYTES + 4_000);
    let uploaded = [
        "create_upload:body",
        "put_part:body",
        "complete_upload:body",
    ];
    let kinds = a_save_dies("streamed save", None, &bytes).await;
    assert_met(&kinds, &uploaded);
    let kinds = a_save_dies("streamed save of a call", Some("c"), &bytes).await;
    assert_met(&kinds, &uploaded);
    assert_met(&kinds, &["put:call_record", "put:manifest"]);
}

#[tokio::test(start_paused = true)]
async fn a_prepare_may_die_at_every_request() {
    let kinds = kill_everywhere(
        "prepare",
        Backend::Memory,
        async |world| {
            let saved = world.save("s", "leased").await;
            let other = world.save("s", "nobody's").await;
            (saved, other)
        },
        async |world, store, (saved, _)| {
            let leases = world.leases_over(store);
            let intent = World::intent(saved, "t1");
            let session = &saved.manifest.head.session;
            let _ = leases.prepare(&Tenant::default(), session, intent).await;
            leases.journals().drain().await;
        },
        async |world, (saved, other), note| {
            // Whether or not it took effect, the same intent again is granted by another host.
            let (leases, tenant) = (world.leases(), Tenant::default());
            let session = &saved.manifest.head.session;
            for _ in 0..2 {
                let intent = World::intent(saved, "t1");
                leases.prepare(&tenant, session, intent).await.expect(note);
            }
            collect_twice(world).await;
            assert_eq!(world.read(saved).await.expect(note), "leased", "{note}");
            assert!(world.read(other).await.is_err(), "{note}");
            let journals = world.journals_over(&world.store);
            let opened = journals.open_double_rooted(&tenant, session).await;
            let opened = opened.expect(note);
            assert!(!opened.is_suspect, "{note}");
            let leases = opened.opened.chain.state().leases().count();
            assert_eq!(leases, 1, "{note}");
        },
    )
    .await;
    assert_met(
        &kinds,
        &[
            "get:manifest",
            "list:checkpoint",
            "list:journal",
            "put:journal",
        ],
    );
}

/// Something of every kind that a plan proposes, and something that it must not.
struct Planed {
    planned: Planned,
    orphans: Vec<Saved>,
    leased: Saved,
}

async fn planed(world: &World) -> Planed {
    let orphans = vec![
        world.save("s", "orphan one").await,
        world.save("t", "orphan two").await,
    ];
    let leased = world.save("s", "leased").await;
    world.prepare(&leased, "t1").await;
    let library = world.library_over(&refusing(&world.store, "/a/"));
    let died = library.save(request("s", None), body(&log(20))).await;
    assert!(died.is_err());
    library.drain().await;
    let key = world.keys.body(
        &Tenant::default(),
        &spillbox::ids::ArtifactRef {
            session_key: leased.manifest.head.artifact_ref().session_key,
            artifact_id: orphans[0].manifest.head.artifact_id,
        },
    );
    world.store.create_upload(&key).await.unwrap();
    world.wait(26);
    let planned = world.plan().await;
    world.wait(1);
    Planed {
        planned,
        orphans,
        leased,
    }
}

async fn is_collected(world: &World, scene: &Planed, note: &str) {
    let leased = world.read(&scene.leased).await.expect(note);
    assert_eq!(leased, "leased", "{note}");
    collect_twice(world).await;
    let leased = world.read(&scene.leased).await.expect(note);
    assert_eq!(leased, "leased", "{note}");
    let tenant = Tenant::default();
    for orphan in &scene.orphans {
        let head = &orphan.manifest.head;
        assert!(!world.has_body(&head.artifact_ref()).await, "{note}");
        let error = world.read(orphan).await.expect_err(note);
        assert!(error.deletion().is_some(), "{note}: {error}");
        let journals = world.journals_over(&world.store);
        let opened = journals.open_double_rooted(&tenant, &head.session).await;
        let opened = opened.expect(note);
        assert!(!opened.is_suspect, "{note}");
        let state = Arc::clone(opened.opened.chain.state());
        let record = state.artifact(head.artifact_id).expect(note);
        let is_deleted = matches!(record.status, ArtifactStatus::Deleted(_));
        assert!(is_deleted, "{note}: {:?}", record.status);
    }
    assert_eq!(bodies(world).await, 1, "{note}");
    assert_eq!(open_uploads(world).await, 0, "{note}");
}

/// `gc_faults` does the same to the requests of a real client, versions included.
#[tokio::test(start_paused = true)]
async fn an_application_may_die_at_every_request() {
    let kinds = kill_everywhere(
        "apply",
        Backend::Memory,
        planed,
        async |world, store, scene| {
            let collector = world.collector_over(store);
            let planned = &scene.planned;
            let applied = collector.apply(planned.plan.plan_id, &planned.sha256);
            let _ = applied.await;
        },
        is_collected,
    )
    .await;
    let wanted = [
        "get:plan",
        "put:report",
        "abort_upload:body",
        "put:journal",
        "put:manifest",
        "get:manifest",
        "head:body",
        "versioning",
        "delete:body",
    ];
    assert_met(&kinds, &wanted);
}

#[tokio::test(start_paused = true)]
async fn an_erasure_may_die_at_every_request() {
    for backend in [Backend::Memory, Backend::S3Versioned] {
        let secret = Bytes::from_static(b"a canary in a cage");
        let kinds = kill_everywhere(
            "erase",
            backend,
            async |world| {
                let save = request("s", Some("c"));
                let saved = world.library().save(save, body(&secret)).await.unwrap();
                (saved, world.save("s", "stays").await)
            },
            async |world, store, (saved, _)| {
                let artifact = saved.manifest.head.artifact_ref();
                let collector = world.collector_over(store);
                let _ = collector.erase(&Tenant::default(), &artifact).await;
            },
            async |world, (saved, other), note| {
                let artifact = saved.manifest.head.artifact_ref();
                let collector = world.collector();
                let erased = collector.erase(&Tenant::default(), &artifact).await;
                erased.expect(note);
                assert!(!world.has_body(&artifact).await, "{note}");
                assert!(world.read(saved).await.is_err(), "{note}");
                let save = request("s", Some("c"));
                let again = world.library().save(save, body(&secret)).await;
                assert!(matches!(again, Err(SaveError::Erased(_))), "{note}");
                assert_eq!(world.read(other).await.expect(note), "stays", "{note}");
                assert!(world.is_sound("s").await, "{note}");
            },
        )
        .await;
        let wanted = [
            "put:journal",
            "put:manifest",
            "delete:body",
            "put:call_record",
        ];
        assert_met(&kinds, &wanted);
    }
}
