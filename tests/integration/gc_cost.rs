//! What a plan over many artifacts asks of the store: the floor of its listings, and one cold open per
//! session that has an old artifact.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use spillbox::artifact::session::Sessions;
use spillbox::clock::Clock;
use spillbox::gc::plan::Scope;
use spillbox::gc::policy::PolicyRequest;
use spillbox::gc::status::Status;
use spillbox::ids::{ArtifactId, ArtifactRef, SessionId, SessionKey, Tenant};
use spillbox::lease::entry::{CondemnReason, Condemned, DeleteOutcome, OwnerMode, Prepared};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journals::Journals;
use spillbox::store::PutMode;

use crate::support::app::Backend;
use crate::support::collection::{World, policy_of};
use crate::support::crash::Mortal;

const OLD_SESSIONS: usize = 40;
const YOUNG_SESSIONS: usize = 10;
const ARTIFACTS: usize = 400;
const LEASED: usize = 100;
const TOMBSTONES: usize = 250;

/// Writes in flight.
const BESIDE: usize = 64;

/// Builds the state that saves, owners and collectors leave, with bare puts.
struct Builder<'a> {
    world: &'a World,
    journals: Journals,
    tenant: Tenant,
}

impl Builder<'_> {
    fn artifact(session: &SessionId, number: usize) -> ArtifactRef {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&(number as u64).to_be_bytes());
        ArtifactRef {
            session_key: SessionKey::derive(&Tenant::default(), session),
            artifact_id: ArtifactId::new(1, random),
        }
    }

    async fn session(&self, name: &str) -> SessionId {
        let (store, keys) = (Arc::clone(&self.world.store), self.world.keys.clone());
        let session: SessionId = name.parse().unwrap();
        let now = self.world.clock.now();
        let sessions = Sessions::new(store, keys);
        sessions
            .ensure(&self.tenant, &session, None, now)
            .await
            .unwrap();
        session
    }

    /// A manifest's key, whose bytes no plan reads, and beside it a body, unless a collection was there.
    async fn artifact_keys(&self, artifact: &ArtifactRef, has_body: bool) -> String {
        let (keys, store) = (&self.world.keys, &self.world.store);
        let manifest = keys.manifest(&self.tenant, artifact);
        let put = store.put(&manifest, "{}".into(), PutMode::CreateIfAbsent);
        put.await.unwrap();
        if !has_body {
            return String::new();
        }
        let body = keys.body(&self.tenant, artifact);
        let put = store.put(&body, "body".into(), PutMode::CreateIfAbsent);
        put.await.unwrap().etag.0
    }

    async fn artifacts(&self, session: &SessionId) -> Vec<(ArtifactRef, String)> {
        let artifacts = (0..ARTIFACTS).map(|number| Self::artifact(session, number));
        let puts = artifacts.map(async |artifact| {
            let etag = self.artifact_keys(&artifact, true).await;
            (artifact, etag)
        });
        stream::iter(puts).buffered(BESIDE).collect().await
    }

    async fn submit(&self, session: &SessionId, operations: Vec<Operation>) {
        let submitted = operations.into_iter();
        let submitted = submitted.map(|one| self.journals.submit(&self.tenant, session, one));
        for answer in join_all(submitted).await {
            answer.unwrap();
        }
    }

    async fn lease(&self, session: &SessionId, artifacts: &[(ArtifactRef, String)]) {
        let prepared = artifacts.iter().enumerate().map(|(n, (artifact, etag))| {
            Operation::Prepare(Box::new(Prepared {
                transaction_id: format!("t{n}").parse().unwrap(),
                owner: "memory".parse().unwrap(),
                mode: OwnerMode::CommitFirst,
                artifact_id: artifact.artifact_id,
                sha256: spillbox::digest::Sha256Digest::of(b"body"),
                size_bytes: 4,
                etag: etag.clone(),
                version_id: None,
                reference_count: 1,
                retain_until: None,
                reason: None,
            }))
        });
        self.submit(session, prepared.collect()).await;
    }

    async fn collected(&self, session: &SessionId) {
        let gone = ARTIFACTS..ARTIFACTS + TOMBSTONES;
        let gone: Vec<_> = gone.map(|number| Self::artifact(session, number)).collect();
        for artifact in &gone {
            self.artifact_keys(artifact, false).await;
        }
        let condemn = gone.iter().map(|artifact| {
            Operation::Condemn(Box::new(Condemned {
                artifact_id: artifact.artifact_id,
                decision_id: None,
                sha256: None,
                size_bytes: None,
                etag: None,
                version_id: None,
                store_checksum: None,
                manifest_version_id: None,
                why: CondemnReason::Expired,
                server_date: self.world.clock.now(),
                plan_id: None,
            }))
        });
        self.submit(session, condemn.collect()).await;
        let deleted = gone.iter().map(|artifact| Operation::Delete {
            artifact_id: artifact.artifact_id,
            outcome: DeleteOutcome::Deleted,
        });
        self.submit(session, deleted.collect()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_over_many_artifacts_costs_its_listings_and_a_cold_open_per_old_session() {
    let world = World::new(Backend::Memory);
    let builder = Builder {
        world: &world,
        journals: world.journals_over(&world.store),
        tenant: Tenant::default(),
    };
    for n in 0..OLD_SESSIONS {
        let session = builder.session(&format!("old-{n}")).await;
        let artifacts = builder.artifacts(&session).await;
        builder.lease(&session, &artifacts[..LEASED]).await;
        builder.collected(&session).await;
    }
    world.wait(26);
    for n in 0..YOUNG_SESSIONS {
        let session = builder.session(&format!("young-{n}")).await;
        builder.artifacts(&session).await;
    }
    let count = |keys: &[String], class: &str| keys.iter().filter(|k| k.contains(class)).count();
    let keys = world.all_keys().await;
    let (manifests, bodies) = (count(&keys, "/a/"), count(&keys, "/b/"));
    assert_eq!((manifests, bodies), (30_000, 20_000));
    let records = count(&keys, "/j/");
    let (store, asked) = Mortal::over(&world.store, &world.keys, None);
    let policy = policy_of(&PolicyRequest::default());
    let planned = world
        .collector_over(&store)
        .plan(&Scope::All, &policy)
        .await;
    let plan = planned.unwrap().plan;
    let old = (OLD_SESSIONS * ARTIFACTS) as u64;
    let leased = (OLD_SESSIONS * LEASED) as u64;
    assert_eq!(plan.live, 20_000);
    assert_eq!(plan.tombstones, 10_000);
    assert_eq!(plan.counts.of(Status::RetainedReferenced).count, leased);
    assert_eq!(plan.counts.of(Status::RetainedRecent).count, 4_000);
    assert_eq!(plan.counts.of(Status::PlannedDelete).count, 10_000);
    assert_eq!(
        plan.counts.of(Status::RetainedLimit).count,
        old - leased - 10_000
    );
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for label in asked.asked() {
        *counts.entry(label).or_default() += 1;
    }
    let expected = [
        // The store's clock.
        ("put:probe", 1),
        ("head:probe", 1),
        ("delete:probe", 1),
        // The tenants; both listings, 1,000 keys a page.
        ("list:foreign", 1),
        ("list:manifest", manifests.div_ceil(1_000)),
        ("list:body", bodies.div_ceil(1_000)),
        ("list_uploads", 1),
        // Each old session: its name, its journal.
        ("get:session", OLD_SESSIONS),
        ("list:checkpoint", OLD_SESSIONS),
        ("list:journal", OLD_SESSIONS),
        ("get:journal", records),
        // The plan: a root, and a part per 5,000 candidates; what it saw for quotas: a root and a part.
        ("put:plan", 5),
    ];
    let expected: BTreeMap<String, usize> = expected.map(|(label, n)| (label.to_owned(), n)).into();
    assert_eq!(counts, expected);
}
