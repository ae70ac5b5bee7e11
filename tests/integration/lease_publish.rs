//! An owner's side in the safe order, against real journals.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use spillbox::artifact::save::Saved;
use spillbox::ids::Tenant;
use spillbox::lease::entry::OwnerMode;
use spillbox::lease::leases::{LeaseOptions, Leases, PrepareRequest};
use spillbox::lease::names::{OwnerGeneration, TransactionId};
use spillbox::lease::publish::{
    PublishError, PublishFailure, Publisher, RemoveError, publish_reference, remove_reference,
};
use spillbox::lease::report::LeaseReport;

use crate::support::app::Backend;
use crate::support::collection::World;
use crate::support::leases::{claim, session, txn};
use crate::support::library::{body, request};
use crate::support::owner::owners;

/// A publisher that does what it is told, and checks what the lease is while it is asked.
struct Told<'a> {
    leases: &'a Leases,
    ends: Result<(), PublishFailure<&'static str>>,
    /// What the lease has to be when it publishes.
    state: &'static str,
    asked: AtomicUsize,
    removes: bool,
}

impl Publisher for Told<'_> {
    type Error = &'static str;

    async fn publish(
        &self,
        lease: &LeaseReport,
    ) -> Result<Option<OwnerGeneration>, PublishFailure<&'static str>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(stands(self.leases, &lease.transaction_id).await, self.state);
        self.ends.clone()?;
        Ok(Some("17".parse().unwrap()))
    }

    async fn remove(&self, name: &TransactionId) -> Result<(), &'static str> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(stands(self.leases, name).await, self.state);
        self.removes.then_some(()).ok_or("disk full")
    }
}

async fn stands(leases: &Leases, name: &TransactionId) -> &'static str {
    let lease = leases.get(&Tenant::default(), &session(), name).await;
    lease.unwrap().lease.state
}

struct Stage {
    _world: World,
    leases: Leases,
    saved: Saved,
}

impl Stage {
    async fn set() -> Self {
        let world = World::new(Backend::Local);
        let library = world.library();
        let bytes = Bytes::from_static(b"what was found");
        let saved = library
            .save(request("s", None), body(&bytes))
            .await
            .unwrap();
        let options = LeaseOptions {
            is_read_only: false,
            owners: owners(&[
                ("memory", OwnerMode::OwnerFenced, None),
                ("files", OwnerMode::CommitFirst, None),
            ]),
        };
        let journals = world.journals_over(&world.store);
        let leases = Leases::new(library, journals, options);
        Self {
            _world: world,
            leases,
            saved,
        }
    }

    fn claim(&self, name: &str, owner: &str) -> PrepareRequest {
        PrepareRequest {
            owner: Some(owner.parse().unwrap()),
            ..claim(name, &self.saved)
        }
    }

    fn told(&self, state: &'static str) -> Told<'_> {
        Told {
            leases: &self.leases,
            ends: Ok(()),
            state,
            asked: AtomicUsize::new(0),
            removes: true,
        }
    }

    async fn publish(
        &self,
        claim: PrepareRequest,
        told: &Told<'_>,
    ) -> Result<String, PublishError<&'static str>> {
        let place = (&Tenant::default(), &session());
        let done = publish_reference(&self.leases, place, claim, told).await?;
        let generation = done.lease.owner_generation.map(|g| g.to_string());
        Ok(format!(
            "{} {}",
            done.lease.state,
            generation.unwrap_or_default()
        ))
    }
}

#[tokio::test]
async fn a_reference_is_published_between_prepare_and_commit() {
    let stage = Stage::set().await;
    let told = stage.told("prepared");
    let done = stage.publish(stage.claim("t", "memory"), &told).await;
    assert_eq!(done.unwrap(), "committed 17");
    // And after the commit by an owner that cannot fence.
    let told = stage.told("committed");
    let done = stage.publish(stage.claim("u", "files"), &told).await;
    assert_eq!(done.unwrap(), "committed ");
    assert_eq!(told.asked.into_inner(), 1);
}

#[tokio::test]
async fn only_a_rejection_ends_the_lease() {
    let stage = Stage::set().await;
    for (name, owner, state, ends, left) in [
        (
            "a",
            "memory",
            "prepared",
            PublishFailure::Rejected("no"),
            "aborted",
        ),
        (
            "b",
            "memory",
            "prepared",
            PublishFailure::Unknown("timeout"),
            "prepared",
        ),
        (
            "c",
            "files",
            "committed",
            PublishFailure::Rejected("no"),
            "released",
        ),
        (
            "d",
            "files",
            "committed",
            PublishFailure::Unknown("timeout"),
            "committed",
        ),
    ] {
        let told = Told {
            ends: Err(ends.clone()),
            ..stage.told(state)
        };
        let failed = stage.publish(stage.claim(name, owner), &told).await;
        match (failed.unwrap_err(), ends) {
            (
                PublishError::Rejected {
                    error,
                    ending: None,
                },
                PublishFailure::Rejected(stated),
            ) => {
                assert_eq!(error, stated);
            }
            (PublishError::Unknown(error), PublishFailure::Unknown(stated)) => {
                assert_eq!(error, stated, "the failure comes unchanged");
            }
            (other, _) => panic!("{name}: {other:?}"),
        }
        assert_eq!(stands(&stage.leases, &txn(name)).await, left, "{name}");
    }
}

#[tokio::test]
async fn a_known_transaction_is_never_published_again() {
    let stage = Stage::set().await;
    let told = Told {
        ends: Err(PublishFailure::Unknown("timeout")),
        ..stage.told("prepared")
    };
    for expected_asks in [1, 1, 1] {
        let failed = stage.publish(stage.claim("t", "memory"), &told).await;
        let error = failed.unwrap_err();
        assert!(
            matches!(error, PublishError::Unknown(_) | PublishError::Known(_)),
            "{error:?}"
        );
        assert_eq!(told.asked.load(Ordering::Relaxed), expected_asks);
    }
    // Nor one that has ended, nor one that means something else.
    let why = spillbox::lease::entry::AbortReason::Rejected;
    let place = (Tenant::default(), session());
    let ended = stage.leases.abort(&place.0, &place.1, &txn("t"), why).await;
    ended.unwrap();
    let failed = stage.publish(stage.claim("t", "memory"), &told).await;
    assert!(matches!(failed.unwrap_err(), PublishError::Prepare(_)));
    assert_eq!(told.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_reference_is_removed_before_its_lease_is_released() {
    let stage = Stage::set().await;
    let published = stage.told("prepared");
    let done = stage.publish(stage.claim("t", "memory"), &published).await;
    done.unwrap();
    let (tenant, session) = (Tenant::default(), session());
    let place = (&tenant, &session);
    let fails = Told {
        removes: false,
        ..stage.told("committed")
    };
    let failed = remove_reference(&stage.leases, place, &txn("t"), &fails).await;
    assert!(matches!(failed, Err(RemoveError::Remove("disk full"))));
    assert_eq!(stands(&stage.leases, &txn("t")).await, "committed");
    let told = stage.told("committed");
    let done = remove_reference(&stage.leases, place, &txn("t"), &told).await;
    assert_eq!(done.unwrap().lease.state, "released");
}
