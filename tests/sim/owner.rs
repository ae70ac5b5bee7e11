//! Owners of references, holders, and whoever decides what an owner left undecided.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use spillbox::artifact::manifest::Manifest;
use spillbox::clock::Clock;
use spillbox::lease::entry::{AbortReason, OwnerMode, Prepared, ReleaseReason};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journal::Receipt;
use spillbox::lease::leases::{LeaseFilter, PrepareRequest};
use spillbox::lease::names::{HoldName, TransactionId};

use crate::history::Told;
use crate::host::{COMMIT_FIRST, FENCED};
use crate::oracle::Shows;
use crate::world::{Known, World, told_of_lease, told_of_prepare};

/// A lease, as its owner knows it.
#[derive(Clone)]
struct Lease {
    session: usize,
    transaction: TransactionId,
}

/// The life of one reference: prepared, published and committed in its owner's order, and perhaps
/// extended and removed again. An owner that gets no answer asks another host, or leaves it.
pub(crate) async fn own(world: Arc<World>) {
    let Some(known) = world.any_saved() else {
        return;
    };
    let dice = &world.dice;
    let number = world.transactions.fetch_add(1, Ordering::Relaxed);
    // Sometimes two owners use one name.
    let number = if number > 0 && dice.chance(100) {
        number - 1
    } else {
        number
    };
    let lease = Lease {
        session: known.session,
        transaction: format!("t{number}").parse().unwrap(),
    };
    let mode = if dice.chance(500) {
        OwnerMode::CommitFirst
    } else {
        OwnerMode::OwnerFenced
    };
    let end = world
        .sim
        .clock
        .now()
        .checked_add(SignedDuration::from_hours(3))
        .unwrap();
    let request = PrepareRequest {
        transaction_id: lease.transaction.clone(),
        source_id: known.manifest.head.source_id(),
        content_sha256: known.manifest.head.body.sha256,
        reference_count: 1,
        retain_until: dice.chance(300).then_some(end),
        owner: Some(owner_of(mode).parse().unwrap()),
        mode: None,
    };
    let mut is_prepared = false;
    for _ in 0..3 {
        match prepare(&world, &lease, &known, request.clone()).await {
            Told::Stands { .. } => is_prepared = true,
            Told::Unknown(receipt) if dice.chance(700) => {
                is_prepared = resolve(&world, &lease, &receipt).await == Some("prepared");
            }
            Told::Refused(_) => return,
            Told::Unknown(_) | Told::Failed => {}
        }
        if is_prepared || dice.chance(300) {
            break;
        }
    }
    if !is_prepared {
        return;
    }
    let session = world.session_key(lease.session);
    let publish = || {
        let is_published = world.sim.oracle.moves(
            &session,
            &lease.transaction,
            Shows::Absent,
            Shows::Published,
        );
        world.sim.note(
            "owner",
            &format!("{} publishes: {is_published}", lease.transaction),
        );
        is_published
    };
    if mode == OwnerMode::OwnerFenced {
        if dice.chance(200) {
            let oracle = &world.sim.oracle;
            if oracle.moves(&session, &lease.transaction, Shows::Absent, Shows::Sealed) {
                let why = AbortReason::Rejected;
                change(&world, &lease, abort(&lease, why)).await;
            }
            return;
        }
        pause(&world).await;
        if dice.chance(150) || !publish() {
            return;
        }
    }
    let mut is_committed = false;
    for _ in 0..3 {
        match change(&world, &lease, commit(&lease)).await {
            Told::Stands { .. } => is_committed = true,
            Told::Unknown(receipt) if dice.chance(700) => {
                is_committed = resolve(&world, &lease, &receipt).await == Some("committed");
            }
            Told::Refused(_) => return,
            Told::Unknown(_) | Told::Failed => {}
        }
        if is_committed || dice.chance(300) {
            break;
        }
    }
    if !is_committed || (mode == OwnerMode::CommitFirst && !publish()) {
        return;
    }
    pause(&world).await;
    if dice.chance(400) {
        let hours = SignedDuration::from_hours(10);
        let until = world.sim.clock.now().checked_add(hours).unwrap();
        let retain_until = dice.chance(700).then_some(until);
        let transaction_id = lease.transaction.clone();
        change(
            &world,
            &lease,
            Operation::Extend {
                transaction_id,
                retain_until,
            },
        )
        .await;
    }
    if dice.chance(500) {
        let oracle = &world.sim.oracle;
        if oracle.moves(
            &session,
            &lease.transaction,
            Shows::Published,
            Shows::Removed,
        ) {
            world
                .sim
                .note("owner", &format!("{} removes", lease.transaction));
            let why = ReleaseReason::Removed;
            let transaction_id = lease.transaction.clone();
            change(
                &world,
                &lease,
                Operation::Release {
                    transaction_id,
                    why,
                },
            )
            .await;
        }
    }
}

fn owner_of(mode: OwnerMode) -> &'static str {
    match mode {
        OwnerMode::OwnerFenced => FENCED,
        OwnerMode::CommitFirst => COMMIT_FIRST,
    }
}

async fn pause(world: &World) {
    let time = match world.dice.below(10) {
        0..=6 => world.dice.millis(0, 300),
        7 | 8 => world.dice.millis(1_000, 600_000),
        _ => world.dice.millis(3_600_000, 2 * 86_400_000),
    };
    tokio::time::sleep(time).await;
}

fn commit(lease: &Lease) -> Operation {
    Operation::Commit {
        transaction_id: lease.transaction.clone(),
        owner_generation: None,
    }
}

fn abort(lease: &Lease, why: AbortReason) -> Operation {
    Operation::Abort {
        transaction_id: lease.transaction.clone(),
        why,
    }
}

async fn prepare(world: &World, lease: &Lease, known: &Known, request: PrepareRequest) -> Told {
    let manifest: &Manifest = &known.manifest;
    let body = &manifest.head.body;
    let owner = request.owner.clone().unwrap();
    let intent = Prepared {
        transaction_id: lease.transaction.clone(),
        mode: if owner.as_str() == FENCED {
            OwnerMode::OwnerFenced
        } else {
            OwnerMode::CommitFirst
        },
        owner,
        artifact_id: known.artifact.artifact_id,
        sha256: body.sha256,
        size_bytes: body.size_bytes,
        etag: body.etag.clone(),
        version_id: body.version_id.clone(),
        reference_count: 1,
        retain_until: request.retain_until,
        reason: None,
    };
    let begun = world.begin(lease.session, Some(Operation::Prepare(Box::new(intent))));
    let host = world.any_host();
    let preparing = host
        .leases
        .prepare(&world.tenant, &world.sessions[lease.session], request);
    let told = told_of_prepare(host.gate.unless_dead(preparing).await);
    finish(world, &host, begun, told)
}

fn finish(world: &World, host: &crate::host::Host, begun: crate::world::Begun, told: Told) -> Told {
    let kept = match &told {
        Told::Stands {
            is_new,
            receipt,
            lease,
        } => Told::Stands {
            is_new: *is_new,
            receipt: receipt.clone(),
            lease: lease.clone(),
        },
        Told::Refused(refusal) => Told::Refused(refusal.clone()),
        Told::Unknown(receipt) => Told::Unknown(receipt.clone()),
        Told::Failed => Told::Failed,
    };
    world.told(host, begun, kept);
    told
}

async fn change(world: &World, lease: &Lease, operation: Operation) -> Told {
    let begun = world.begin(lease.session, Some(operation.clone()));
    let host = world.any_host();
    let (tenant, session) = (&world.tenant, &world.sessions[lease.session]);
    let transaction = &lease.transaction;
    let changing = async {
        let leases = &host.leases;
        match operation {
            Operation::Commit {
                owner_generation, ..
            } => {
                leases
                    .commit(tenant, session, transaction, owner_generation)
                    .await
            }
            Operation::Abort { why, .. } => leases.abort(tenant, session, transaction, why).await,
            Operation::Release { why, .. } => {
                leases.release(tenant, session, transaction, why).await
            }
            Operation::Extend { retain_until, .. } => {
                leases
                    .extend(tenant, session, transaction, retain_until)
                    .await
            }
            _ => leases.get(tenant, session, transaction).await,
        }
    };
    let told = told_of_lease(host.gate.unless_dead(changing).await);
    finish(world, &host, begun, told)
}

/// Makes the outcome of a record final and returns the lease's state then; `None` when that failed.
async fn resolve(world: &World, lease: &Lease, receipt: &Receipt) -> Option<&'static str> {
    let host = world.any_host();
    let (tenant, session) = (&world.tenant, &world.sessions[lease.session]);
    let (transaction, Receipt { seq, sha256, .. }) = (&lease.transaction, receipt);
    let resolving = host
        .leases
        .resolve(tenant, session, transaction, *seq, *sha256);
    let resolved = host.gate.unless_dead(resolving).await?.ok()?;
    let state = resolved.lease.as_ref().map(|lease| lease.state);
    world.sim.note(
        &host.name,
        &format!(
            "* s{} resolve {transaction} record {seq}: {} {state:?}",
            lease.session, resolved.has_landed
        ),
    );
    let oracle = &world.sim.oracle;
    let stands = oracle.hash(&world.session_key(lease.session), *seq);
    if (stands == Some(*sha256)) != resolved.has_landed || stands.is_none() {
        let landed = resolved.has_landed;
        oracle.violation(format!(
            "I13: record {seq} was resolved as {landed} and is {stands:?}"
        ));
    }
    state
}

/// Decides a lease that was left prepared, as its mode allows.
pub(crate) async fn reconcile(world: Arc<World>) {
    let session = usize::from(world.dice.chance(300));
    let session_key = world.session_key(session);
    let state = world.sim.oracle.state(&session_key);
    let open: Vec<_> = state
        .leases()
        .filter(|lease| lease.phase.protects() && !lease.intent.owner.is_hold())
        .map(|lease| (lease.intent.transaction_id.clone(), lease.intent.mode))
        .collect();
    if open.is_empty() {
        return;
    }
    let (transaction, mode) = world.dice.pick(&open).clone();
    let lease = Lease {
        session,
        transaction,
    };
    let oracle = &world.sim.oracle;
    let shows = oracle.shows(&session_key, &lease.transaction);
    pause(&world).await;
    match (mode, shows) {
        (OwnerMode::OwnerFenced, Shows::Published) => {
            change(&world, &lease, commit(&lease)).await;
        }
        (OwnerMode::OwnerFenced, Shows::Absent) => {
            if oracle.moves(
                &session_key,
                &lease.transaction,
                Shows::Absent,
                Shows::Sealed,
            ) {
                change(&world, &lease, abort(&lease, AbortReason::Sealed)).await;
            }
        }
        (OwnerMode::OwnerFenced, Shows::Sealed) => {
            change(&world, &lease, abort(&lease, AbortReason::Sealed)).await;
        }
        (OwnerMode::CommitFirst, Shows::Absent) => {
            change(&world, &lease, abort(&lease, AbortReason::Timeout)).await;
        }
        (_, Shows::Removed) => {
            let (transaction_id, why) = (lease.transaction.clone(), ReleaseReason::Removed);
            change(
                &world,
                &lease,
                Operation::Release {
                    transaction_id,
                    why,
                },
            )
            .await;
        }
        (OwnerMode::CommitFirst, Shows::Published | Shows::Sealed) => {}
    }
}

/// Looks at the leases of a session.
pub(crate) async fn look(world: Arc<World>) {
    let session = usize::from(world.dice.chance(300));
    let begun = world.begin(session, None);
    let host = world.any_host();
    let filter = LeaseFilter {
        limit: 100,
        ..LeaseFilter::default()
    };
    let looking = host
        .leases
        .list(&world.tenant, &world.sessions[session], &filter);
    let told = match host.gate.unless_dead(looking).await {
        Some(Ok(page)) => Told::Stands {
            is_new: false,
            lease: page.leases.into_iter().next().map(Box::new),
            receipt: page.receipt,
        },
        Some(Err(_)) | None => Told::Failed,
    };
    world.told(&host, begun, told);
}

/// Holds an artifact under one of two names, or lifts it.
pub(crate) async fn hold(world: Arc<World>) {
    let Some(known) = world.any_saved() else {
        return;
    };
    let host = world.any_host();
    let name: HoldName = format!("n{}", world.dice.below(2)).parse().unwrap();
    if world.dice.chance(400) {
        let begun = world.begin(known.session, None);
        let lifting = host.leases.lift(&world.tenant, &known.artifact, name);
        let told = match host.gate.unless_dead(lifting).await {
            Some(Ok(lifted)) => Told::Stands {
                is_new: lifted.is_new,
                receipt: lifted.receipt,
                lease: None,
            },
            Some(Err(_)) | None => Told::Failed,
        };
        return world.told(&host, begun, told);
    }
    let fresh = name.transaction_id(&host.leases.journals().fresh_id());
    let begun = world.begin(known.session, None);
    let holding = host
        .leases
        .hold(&world.tenant, &known.artifact, fresh, None);
    let told = told_of_prepare(host.gate.unless_dead(holding).await);
    world.told(&host, begun, told);
}

/// How long the longest pause of a caller is.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(2 * 86_400);
