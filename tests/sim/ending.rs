//! After everything came to rest: what is condemned is gone, what is leased is there byte for byte, what
//! was unknown is final, and the journals say the same to everybody.

use std::sync::Arc;
use std::time::Duration;

use spillbox::digest::Sha256Digest;
use spillbox::gc::plan::Scope;
use spillbox::lease::chain::Chain;
use spillbox::lease::checkpoint::{Checkpoint, state_sha256};

use crate::collect::{apply_with, policy};
use crate::history::{Told, contradictions, transaction_of};
use crate::host::Host;
use crate::short::short_key;
use crate::truth::Stands;
use crate::world::{World, lock};

/// Collections until nothing is left to do: leases past their end are ended by the first, their grace ends
/// before the second, and what one round begins the next one finishes.
const ROUNDS: usize = 3;

/// Looks at everything, with a host that has seen nothing of it.
pub(crate) async fn settle(world: &World) {
    let judge = world.judge();
    resolve_unknown(world, &judge).await;
    for _ in 0..ROUNDS {
        match judge
            .collector
            .plan(&Scope::All, &policy(Duration::ZERO))
            .await
        {
            Ok(planned) => {
                let counts = serde_json::to_string(&planned.plan.counts).unwrap();
                world.sim.note(&judge.name, &format!("* plan: {counts}"));
                let chosen = (planned.plan.plan_id, planned.sha256);
                apply_with(world, &judge, chosen).await;
            }
            Err(error) => world
                .sim
                .oracle
                .violation(format!("L2: no plan at the end: {error}")),
        }
        tokio::time::sleep(Duration::from_secs(30 * 3_600)).await;
    }
    let found = contradictions(&lock(&world.calls), &world.sim.oracle);
    for contradiction in found {
        world.sim.oracle.violation(contradiction);
    }
    check_journals(world);
    check_objects(world);
}

/// I13: every open outcome is made final, and is final.
async fn resolve_unknown(world: &World, judge: &Arc<Host>) {
    let open: Vec<_> = lock(&world.calls)
        .iter()
        .filter_map(|call| match &call.answer {
            Told::Unknown(receipt) => {
                let transaction = call.operation.as_ref().and_then(transaction_of).cloned();
                Some((
                    call.session,
                    call.name.clone(),
                    receipt.clone(),
                    transaction,
                ))
            }
            Told::Stands { .. } | Told::Refused(_) | Told::Failed => None,
        })
        .collect();
    for (session, name, receipt, transaction) in open {
        let transaction = transaction.unwrap_or_else(|| "none".parse().unwrap());
        let resolving = judge.leases.resolve(
            &world.tenant,
            &name,
            &transaction,
            receipt.seq,
            receipt.sha256,
        );
        let stands = |world: &World| world.sim.oracle.hash(&session, receipt.seq);
        match resolving.await {
            Ok(resolved) if resolved.has_landed == (stands(world) == Some(receipt.sha256)) => {}
            answer => {
                let text = format!("I13: the unknown {receipt:?} is resolved as {answer:?}");
                world.sim.oracle.violation(text);
            }
        }
    }
}

/// I9: the same records fold to the same state, from the beginning and in every checkpoint.
fn check_journals(world: &World) {
    let truth = &world.sim.truth;
    for session in &world.sessions {
        let key = spillbox::ids::SessionKey::derive(&truth.tenant, session);
        let mut chain = Chain::genesis(truth.tenant.clone(), session.clone());
        while let Some(bytes) = truth.record(&key, chain.next_seq()) {
            if let Err(error) = chain.push(&bytes) {
                world.sim.oracle.violation(format!("I3: {error}"));
                return;
            }
        }
        if *chain.state() != world.sim.oracle.state(&key) {
            world
                .sim
                .oracle
                .violation("I9: a second fold differs".to_owned());
        }
        for version in truth.versions(&truth.keys.checkpoints(&truth.tenant, &key)) {
            let seq = truth
                .keys
                .seq_of_checkpoint(&truth.tenant, &key, &version.key);
            let (Some(seq), Some((bytes, _))) = (seq, truth.read(&version.key)) else {
                continue;
            };
            let checkpoint = Checkpoint::decode(&bytes, &truth.tenant, session, seq);
            let folded = world.sim.oracle.state_of(&key, seq + 1);
            let is_equal = checkpoint.as_ref().is_ok_and(|checkpoint| {
                folded.is_some_and(|folded| checkpoint.state_sha256 == state_sha256(&folded))
            });
            if !is_equal {
                let text = format!("I9: the checkpoint of record {seq} differs: {checkpoint:?}");
                world.sim.oracle.violation(text);
            }
        }
    }
}

/// L2, and I1 to the byte.
fn check_objects(world: &World) {
    let (truth, oracle) = (&world.sim.truth, &world.sim.oracle);
    let violation = |key: &str, what: &str| {
        oracle.violation(format!("L2: {} {what}", short_key(&truth.keys, key)));
    };
    for version in truth.versions(&truth.keys.all_manifests(&truth.tenant)) {
        let Some((artifact, _)) = truth.artifact_of(&version.key) else {
            violation(&version.key, "is no manifest");
            continue;
        };
        if !version.is_latest {
            // A tombstone whose PUT arrived twice: the same bytes, without content.
            let current = truth.read(&version.key).map(|(_, meta)| meta.etag);
            if current != version.etag {
                violation(&version.key, "keeps an older version");
            }
            continue;
        }
        let state = oracle.state(&artifact.session_key);
        match truth.manifest(&artifact) {
            Stands::Live(manifest) => {
                if !state.is_protected(artifact.artifact_id) {
                    violation(&version.key, "is live, old, and nobody's");
                }
                let body = truth.keys.body(&truth.tenant, &artifact);
                let bytes = truth.read(body.as_str()).map(|(bytes, _)| bytes);
                if bytes.map(|bytes| Sha256Digest::of(&bytes)) != Some(manifest.head.body.sha256) {
                    violation(&version.key, "has lost its bytes");
                }
            }
            Stands::Tombstone(_) => {}
            Stands::Nothing | Stands::Garbage(_) => violation(&version.key, "cannot be read"),
        }
    }
    for version in truth.versions(&truth.keys.all_bodies(&truth.tenant)) {
        let live = truth
            .artifact_of(&version.key)
            .filter(|(artifact, _)| matches!(truth.manifest(artifact), Stands::Live(_)));
        // A streamed save that died before its session had a descriptor: nobody knows what the session is
        // called, and a collector keeps what it cannot name (docs/MODELS.md).
        let is_nameless = truth
            .artifact_of(&version.key)
            .is_some_and(|(artifact, _)| {
                let descriptor = truth.keys.session(&truth.tenant, &artifact.session_key);
                truth.head(&descriptor).is_none()
            });
        if live.is_none() && !is_nameless && !oracle.is_hidden(&version.key) {
            violation(&version.key, &format!("{:?} is left", version.version_id));
        }
    }
    for session in oracle.sessions() {
        for (artifact_id, _) in oracle.state(&session).artifacts() {
            let artifact = spillbox::ids::ArtifactRef {
                session_key: session,
                artifact_id,
            };
            oracle.check_protected(truth, &artifact, "at the end");
        }
    }
    for upload in truth.uploads() {
        violation(&upload.key, "is an upload that nobody aborted");
    }
}
