//! What a plan saw of the use of quotas, and what replicas make of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::quota::{QuotaScope, Quotas};
use spillbox::artifact::request::SaveError;
use spillbox::auth::Authenticator;
use spillbox::clock::SharedClock;
use spillbox::gc::plan::Scope;
use spillbox::gc::policy::PolicyRequest;
use spillbox::http::app::AppState;
use spillbox::ids::{SessionKey, SystemIds, Tenant};
use spillbox::limits::USAGE_LOOK_INTERVAL;
use spillbox::store::PutMode;
use spillbox::usage_watch::{refresh, watch};

use crate::support::app::Backend;
use crate::support::collection::{World, policy_of};
use crate::support::library::{body, request};

/// A replica with quotas.
fn replica(world: &World, session_bytes: Option<u64>, tenant_bytes: Option<u64>) -> Library {
    let options = LibraryOptions {
        quotas: Quotas {
            session_bytes,
            tenant_bytes,
        },
        ..LibraryOptions::default()
    };
    Library::new(
        Arc::clone(&world.store),
        world.keys.clone(),
        World::format(),
        Arc::clone(&world.clock) as SharedClock,
        SystemIds::shared(),
        options,
    )
}

async fn save(library: &Library, session: &str, bytes: usize) -> Result<(), SaveError> {
    let bytes = Bytes::from(vec![b'x'; bytes]);
    let mut request = request(session, None);
    request.expected_bytes = Some(bytes.len() as u64);
    library.save(request, body(&bytes)).await.map(|_| ())
}

/// Whose quota refused, and how much of it was said to be used.
async fn used(library: &Library, session: &str) -> (QuotaScope, u64) {
    match save(library, session, 1_000_000).await {
        Err(SaveError::Quota(exceeded)) => (exceeded.scope, exceeded.used_bytes),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plan_tells_every_replica_what_the_others_have_stored() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let one = replica(&world, Some(100_000), None);
        save(&one, "s", 60_000).await.unwrap();
        save(&one, "s", 1_000).await.unwrap();
        save(&one, "t", 10).await.unwrap();
        let other = replica(&world, Some(100_000), None);
        assert_eq!(used(&other, "s").await, (QuotaScope::Session, 0));
        let collector = world.collector();
        assert_eq!(refresh(&other, &collector, None).await.unwrap(), None);
        world.wait(1);
        let planned = world.plan().await;
        let known = refresh(&other, &collector, None).await.unwrap();
        assert_eq!(known, Some(planned.plan.plan_id), "{backend:?}");
        assert_eq!(used(&other, "s").await, (QuotaScope::Session, 61_000));
        assert_eq!(used(&other, "t").await, (QuotaScope::Session, 10));
        // What is stored after the look is this replica's own count.
        save(&other, "s", 500).await.unwrap();
        assert_eq!(refresh(&other, &collector, known).await.unwrap(), None);
        assert_eq!(used(&other, "s").await, (QuotaScope::Session, 61_500));
        // The one that stored it all counts nothing twice.
        refresh(&one, &collector, None).await.unwrap();
        assert_eq!(used(&one, "s").await, (QuotaScope::Session, 61_000));
        assert!(save(&one, "s", 39_000).await.is_ok(), "{backend:?}");
    }
}

#[tokio::test]
async fn a_tenant_is_the_sum_of_its_sessions_and_what_is_deleted_counts_no_more() {
    let world = World::new(Backend::Memory);
    let library = replica(&world, None, Some(100_000));
    for session in ["s", "t", "u"] {
        save(&library, session, 30_000).await.unwrap();
    }
    world.wait(25);
    let planned = world.plan().await;
    let collector = world.collector();
    refresh(&library, &collector, None).await.unwrap();
    assert_eq!(used(&library, "v").await, (QuotaScope::Tenant, 90_000));
    world.wait(1);
    let report = world.apply(&planned).await;
    assert!(report.is_complete);
    let known = Some(planned.plan.plan_id);
    assert_eq!(refresh(&library, &collector, known).await.unwrap(), None);
    world.plan().await;
    refresh(&library, &collector, known).await.unwrap();
    assert_eq!(used(&library, "v").await, (QuotaScope::Tenant, 0));
}

#[tokio::test]
async fn a_plan_of_a_part_says_nothing_of_the_rest() {
    let world = World::new(Backend::Memory);
    let library = replica(&world, Some(100_000), None);
    save(&library, "s", 30_000).await.unwrap();
    world.wait(1);
    world.plan().await;
    let scope = Scope::Session {
        tenant: Tenant::default(),
        session: "t".parse().unwrap(),
    };
    let collector = world.collector();
    let policy = policy_of(&PolicyRequest::default());
    collector.plan(&scope, &policy).await.unwrap();
    let seen = collector.newest_usage(None, 10).await.unwrap().unwrap();
    let session = SessionKey::derive(&Tenant::default(), &"s".parse().unwrap());
    let key = (Tenant::default(), session);
    assert_eq!(seen.baseline.sessions.get(&key), Some(&30_000));
    // Where nobody asks for sessions, none are read.
    let seen = collector.newest_usage(None, 0).await.unwrap().unwrap();
    assert!(seen.baseline.sessions.is_empty());
    assert_eq!(seen.baseline.tenants[&Tenant::default()], 30_000);
}

#[tokio::test(start_paused = true)]
async fn a_running_replica_looks_now_and_then_and_keeps_what_it_knew_when_it_cannot() {
    let world = World::new(Backend::Memory);
    save(&replica(&world, None, None), "s", 30_000)
        .await
        .unwrap();
    world.wait(1);
    world.plan().await;
    let library = replica(&world, Some(100_000), None);
    let anonymous = Authenticator::anonymous(Tenant::default());
    let state = AppState::opened(library.clone(), anonymous, Vec::new());
    let look = |intervals: u32| {
        let time = USAGE_LOOK_INTERVAL * intervals + Duration::from_secs(1);
        tokio::time::timeout(time, watch(&state, USAGE_LOOK_INTERVAL))
    };
    assert!(look(0).await.is_err(), "it goes on");
    assert_eq!(used(&library, "s").await.1, 30_000, "at once");
    save(&replica(&world, None, None), "s", 5_000)
        .await
        .unwrap();
    world.wait(1);
    let newer = world.plan().await;
    let usage = world.keys.gc_usage(&newer.plan.plan_id);
    let broken = Bytes::from_static(b"no JSON");
    let good = spillbox::store::register::read_register(&*world.store, &usage);
    let good = good.await.unwrap().unwrap().bytes;
    let put = async |bytes: Bytes| {
        let put = world.store.put(&usage, bytes.into(), PutMode::Overwrite);
        put.await.unwrap();
    };
    put(broken).await;
    let collector = world.collector();
    assert!(refresh(&library, &collector, None).await.is_err());
    assert!(look(1).await.is_err());
    assert_eq!(used(&library, "s").await.1, 30_000, "as it was");
    put(good).await;
    assert!(look(1).await.is_err());
    assert_eq!(used(&library, "s").await.1, 35_000);
}
