//! Callers that save, read and keep alive.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use spillbox::artifact::keep_alive::KeepAlive;
use spillbox::artifact::manifest::Manifest;
use spillbox::artifact::read::ReadError;
use spillbox::artifact::request::{SaveError, SaveRequest};
use spillbox::artifact::session::SessionError;
use spillbox::digest::Sha256Digest;
use spillbox::ids::{CallId, DecisionId, Question};

use crate::host::PART_BYTES;
use crate::truth::Stands;
use crate::world::{Known, World, lock};

/// Calls that are made again and again.
const CALLS: u64 = 3;

fn body(variant: u64) -> Bytes {
    let lines = (0..).flat_map(|n| format!("line {n} of body {variant}\n").into_bytes());
    let size = [40, 200, PART_BYTES * 5 / 2][usize::try_from(variant % 3).unwrap()];
    lines.take(size).collect::<Vec<_>>().into()
}

/// Saves something; the same calls bring the same few bodies.
pub(crate) async fn save(world: Arc<World>) {
    let dice = Arc::clone(&world.dice);
    let session = usize::from(dice.chance(300));
    let call = dice.chance(800).then(|| format!("c{}", dice.below(CALLS)));
    let bytes = body(dice.below(5));
    let digest = Sha256Digest::of(&bytes);
    let mut request = SaveRequest::new(world.tenant.clone(), world.sessions[session].clone());
    let call: Option<CallId> = call.map(|call| call.parse().unwrap());
    request.call_id = call.clone();
    request.parent = (session == 1).then(|| world.sessions[0].clone());
    request.tool = Some("bash".to_owned());
    request.expected_digest = dice.chance(300).then_some(digest);
    let mut rest = bytes.clone();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(Ok(rest.split_to(rest.len().min(700))));
    }
    let session_key = world.session_key(session);
    let did = call.as_ref().map(|call| {
        let (tenant, session) = (&world.tenant, &world.sessions[session]);
        DecisionId::derive(Question::Save, tenant, session, call, &digest)
    });
    let oracle = &world.sim.oracle;
    let was_erased = did.is_some_and(|did| oracle.is_erased_call(&session_key, &did));
    let host = world.any_host();
    let what = format!(
        "* s{session} save {} {}",
        call.as_ref().map_or("-", CallId::as_str),
        &digest.to_hex()[..6]
    );
    let saving = host.library.save(request, stream::iter(pieces).boxed());
    let answer = host.gate.unless_dead(saving).await;
    match answer {
        None => world
            .sim
            .note(&host.name, &format!("{what}: nobody answers")),
        Some(Ok(saved)) => {
            let artifact = saved.manifest.head.artifact_ref();
            let is_new = if saved.is_new { "new" } else { "again" };
            world
                .sim
                .note(&host.name, &format!("{what}: {is_new} {artifact}"));
            oracle.saved(&world.sim.truth, &saved, &digest, session == 1);
            if was_erased && artifact.session_key == session_key {
                oracle.violation(format!(
                    "P4: a save after an erasure was answered with {artifact}"
                ));
            }
            let session = usize::from(artifact.session_key == world.session_key(1));
            let manifest = saved.manifest;
            lock(&world.saved).push(Known {
                session,
                artifact,
                manifest,
                bytes,
            });
        }
        Some(Err(error)) => {
            world.sim.note(&host.name, &format!("{what}: {error}"));
            let is_defect = matches!(
                error,
                SaveError::Internal(_)
                    | SaveError::Format(_)
                    | SaveError::DigestMismatch { .. }
                    | SaveError::BodyDiffers(_)
                    | SaveError::Session(
                        SessionError::ParentConflict { .. } | SessionError::Format(_)
                    )
            );
            if is_defect {
                oracle.violation(format!("a save failed as none may: {error}"));
            }
        }
    }
}

/// Reads an artifact through the verifying reader.
pub(crate) async fn read(world: Arc<World>) {
    let Some(known) = world.any_saved() else {
        return;
    };
    let host = world.any_host();
    let (truth, oracle) = (&world.sim.truth, &world.sim.oracle);
    let is_live = || matches!(truth.manifest(&known.artifact), Stands::Live(_));
    let was_live = is_live();
    let was_erased = oracle.is_erased(&known.artifact);
    let whole = |manifest: &Manifest| 0..manifest.head.body.size_bytes;
    let reading = async {
        let opened = host
            .library
            .open(&world.tenant, &known.artifact, whole)
            .await?;
        let pieces: Vec<Bytes> = opened.into_stream().try_collect().await?;
        Ok::<Bytes, ReadError>(pieces.concat().into())
    };
    let answer = host.gate.unless_dead(reading).await;
    let what = format!("* read {}", known.artifact.artifact_id);
    match answer {
        None => {}
        Some(Ok(bytes)) => {
            world
                .sim
                .note(&host.name, &format!("{what}: {} bytes", bytes.len()));
            if bytes != known.bytes {
                oracle.violation(format!("P6: {} was read with other bytes", known.artifact));
            }
            if was_erased && oracle.reads_writes() {
                oracle.violation(format!(
                    "P4: {} was read after it was erased",
                    known.artifact
                ));
            }
        }
        Some(Err(error)) => {
            world.sim.note(&host.name, &format!("{what}: {error}"));
            let is_absence = matches!(
                error,
                ReadError::NotFound
                    | ReadError::Deleted(_)
                    | ReadError::Corrupt(_)
                    | ReadError::Format(_)
            );
            if is_absence && was_live && is_live() && oracle.reads_writes() {
                oracle.violation(format!(
                    "P2: {} is live and was not read: {error}",
                    known.artifact
                ));
            }
        }
    }
}

/// Appends a reference.
pub(crate) async fn touch(world: Arc<World>) {
    let Some(known) = world.any_saved() else {
        return;
    };
    let host = world.any_host();
    let session = &world.sessions[known.session];
    let journals = host.leases.journals();
    let touching = journals.keep_alive(&world.tenant, session, known.artifact.artifact_id, None);
    let answer = host.gate.unless_dead(touching).await;
    world.sim.note(
        &host.name,
        &format!("* touch {}: {answer:?}", known.artifact.artifact_id),
    );
}
