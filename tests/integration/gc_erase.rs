//! Erasing over every backend: nothing of the content stays, and nothing that is leased goes.

use bytes::Bytes;
use spillbox::artifact::request::SaveError;
use spillbox::error::ErrorCode;
use spillbox::ids::Tenant;
use spillbox::lease::entry::ReleaseReason;
use spillbox::lease::evaluate::Operation;
use spillbox::store::{GetOptions, GetReply, PutMode};

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::crash::refusing;
use crate::support::library::{body, request};

const CANARY: &str = "canary-5f1b2c";

fn canary_body() -> Bytes {
    let line = format!("a line with {CANARY} in it\n");
    line.repeat(4_000).into()
}

fn canary_request(call: Option<&str>) -> spillbox::artifact::request::SaveRequest {
    let mut request = request("s", call);
    request.summary = Some(format!("summary with {CANARY}"));
    request.title = Some(format!("title with {CANARY}"));
    request
}

/// Whether the canary stands anywhere in the store: in any current object, in any version that an S3
/// server keeps, in any file of a directory.
async fn canary_is_anywhere(world: &World) -> bool {
    let has = |bytes: &[u8]| {
        bytes
            .windows(CANARY.len())
            .any(|part| part == CANARY.as_bytes())
    };
    if let Some(root) = world.root() {
        let mut directories = vec![root.to_path_buf()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if has(&std::fs::read(&path).unwrap()) {
                    return true;
                }
            }
        }
    }
    if let Some(server) = &world.s3 {
        return server.all_bytes().iter().any(|bytes| has(bytes));
    }
    for key in world.all_keys().await {
        let key = spillbox::store::keys::Key::parse(key).unwrap();
        let GetReply::Found(object) = world.store.get(&key, GetOptions::default()).await.unwrap()
        else {
            unreachable!()
        };
        let bytes = spillbox::store::register::collect(object.body)
            .await
            .unwrap();
        if has(&bytes) {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn after_an_erasure_no_trace_of_the_content_is_left_and_no_save_brings_it_back() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let library = world.library();
        let saved = library
            .save(canary_request(Some("c")), body(&canary_body()))
            .await
            .unwrap();
        world.read(&saved).await.unwrap();
        assert!(canary_is_anywhere(&world).await);
        let artifact = saved.manifest.head.artifact_ref();
        let tenant = Tenant::default();
        let deletion = world.collector().erase(&tenant, &artifact).await.unwrap();
        assert_eq!(deletion.reason, "erased", "{backend:?}");
        assert!(!canary_is_anywhere(&world).await, "{backend:?}");
        // The replica that has the manifest in its cache serves nothing either.
        let cached = crate::support::library::read_all(&library, &saved)
            .await
            .unwrap_err();
        assert_eq!(cached.code(), ErrorCode::ArtifactDeleted);
        // Again is as good as once, on another host.
        let again = world.collector().erase(&tenant, &artifact).await.unwrap();
        assert_eq!(again, deletion, "{backend:?}");
        let resaved = world
            .library()
            .save(canary_request(Some("c")), body(&canary_body()))
            .await;
        assert!(matches!(resaved, Err(SaveError::Erased(_))), "{backend:?}");
        assert!(!canary_is_anywhere(&world).await, "{backend:?}");
        assert!(world.is_sound("s").await);
    }
}

#[tokio::test]
async fn a_leased_artifact_is_refused_until_its_lease_ends() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let saved = world.save("s", "leased").await;
        world.prepare(&saved, "t1").await;
        let artifact = saved.manifest.head.artifact_ref();
        let tenant = Tenant::default();
        let refused = world
            .collector()
            .erase(&tenant, &artifact)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ArtifactLeased, "{backend:?}");
        assert_eq!(world.read(&saved).await.unwrap(), "leased");
        let journals = world.journals_over(&world.store);
        let session = "s".parse().unwrap();
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
        world.collector().erase(&tenant, &artifact).await.unwrap();
        assert!(!world.has_body(&artifact).await);
        let leases = world.leases();
        let late = leases
            .prepare(&tenant, &session, World::intent(&saved, "t2"))
            .await;
        assert_eq!(late.unwrap_err().code(), ErrorCode::ArtifactDeleted);
    }
}

/// An earlier incarnation was collected, a later one is live, a third was recorded and never finished.
#[tokio::test]
async fn an_erasure_covers_everything_that_the_call_became() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let save = |library: spillbox::artifact::library::Library| async move {
            library
                .save(canary_request(Some("c")), body(&canary_body()))
                .await
        };
        let first = save(world.library()).await.unwrap();
        world.wait(25);
        world.collect().await;
        let second = save(world.library()).await.unwrap();
        assert_ne!(
            first.manifest.head.artifact_id,
            second.manifest.head.artifact_id
        );
        let tenant = Tenant::default();
        // By the name of the first, which is a tombstone.
        let artifact = first.manifest.head.artifact_ref();
        let deletion = world.collector().erase(&tenant, &artifact).await.unwrap();
        assert_eq!(deletion.reason, "expired", "{backend:?}");
        assert!(!canary_is_anywhere(&world).await, "{backend:?}");
        assert!(matches!(
            save(world.library()).await,
            Err(SaveError::Erased(_))
        ));
    }
}

/// The body and the record of a save that crashed before its manifest.
#[tokio::test]
async fn an_erasure_closes_a_save_that_never_finished() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let save = |library: spillbox::artifact::library::Library| async move {
            library
                .save(canary_request(Some("c")), body(&canary_body()))
                .await
        };
        let first = save(world.library()).await.unwrap();
        world.wait(25);
        world.collect().await;
        let crashing = refusing(&world.store, "/a/");
        let crashed = save(world.library_over(&crashing)).await;
        assert!(crashed.is_err());
        assert!(canary_is_anywhere(&world).await, "{backend:?}");
        let artifact = first.manifest.head.artifact_ref();
        world
            .collector()
            .erase(&Tenant::default(), &artifact)
            .await
            .unwrap();
        assert!(!canary_is_anywhere(&world).await, "{backend:?}");
        assert!(matches!(
            save(world.library()).await,
            Err(SaveError::Erased(_))
        ));
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_erased() {
    let world = World::new(Backend::Memory);
    let saved = world.save("s", "another tenant's").await;
    let artifact = saved.manifest.head.artifact_ref();
    let foreign: Tenant = "other".parse().unwrap();
    let refused = world
        .collector()
        .erase(&foreign, &artifact)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ArtifactNotFound);
    world.read(&saved).await.unwrap();
}

/// A copy that a delayed request brings after the erasure is never served, and the same request again
/// removes it.
#[tokio::test]
async fn a_late_copy_of_an_erased_body_is_never_served_and_goes() {
    for backend in Backend::ALL {
        let world = World::new(backend);
        let library = world.library();
        let saved = library
            .save(canary_request(None), body(&canary_body()))
            .await
            .unwrap();
        let artifact = saved.manifest.head.artifact_ref();
        let tenant = Tenant::default();
        world.collector().erase(&tenant, &artifact).await.unwrap();
        let key = world.keys.body(&tenant, &artifact);
        let put = world
            .store
            .put(&key, canary_body().into(), PutMode::CreateIfAbsent);
        put.await.unwrap();
        let read = world.read(&saved).await.unwrap_err();
        assert_eq!(read.code(), ErrorCode::ArtifactDeleted, "{backend:?}");
        world.collector().erase(&tenant, &artifact).await.unwrap();
        assert!(!canary_is_anywhere(&world).await, "{backend:?}");
    }
}
