//! Collectors: they plan, apply the plans of others days later, and erase.

use std::sync::Arc;
use std::time::Duration;

use spillbox::gc::erase::EraseError;
use spillbox::gc::plan::Scope;
use spillbox::gc::policy::{GcPolicy, PolicyRequest, PolicySettings};
use spillbox::lease::evaluate::Refusal;
use spillbox::lease::journal::JournalError;
use spillbox::limits::DEFAULT_ORPHAN_TTL;

use crate::host::Host;
use crate::world::{World, lock};

/// A policy with this settle time and no least age of a plan.
pub(crate) fn policy(settle: Duration) -> GcPolicy {
    let settings = PolicySettings {
        min_plan_age: Duration::ZERO,
        settle,
        is_one_host: true,
        ..PolicySettings::default()
    };
    GcPolicy::new(&PolicyRequest::default(), &settings, DEFAULT_ORPHAN_TTL).unwrap()
}

pub(crate) async fn plan(world: Arc<World>) {
    let settle = Duration::from_secs(*world.dice.pick(&[0, 0, 60]));
    let host = world.any_host();
    let policy = policy(settle);
    let planning = host.collector.plan(&Scope::All, &policy);
    let Some(planned) = host.gate.unless_dead(planning).await else {
        return;
    };
    match planned {
        Ok(planned) => {
            let text = format!("* plan: {} candidates", planned.candidates.len());
            world.sim.note(&host.name, &text);
            lock(&world.plans).push((planned.plan.plan_id, planned.sha256));
        }
        Err(error) => world.sim.note(&host.name, &format!("* plan: {error}")),
    }
}

/// Applies some plan that somebody made some time ago; the newest ones oftener.
pub(crate) async fn apply(world: Arc<World>) {
    let chosen = {
        let plans = lock(&world.plans);
        let Some(last) = plans.len().checked_sub(1) else {
            return;
        };
        let back = if world.dice.chance(600) {
            0
        } else {
            world.dice.index(plans.len())
        };
        plans[last - back]
    };
    apply_with(&world, &world.any_host(), chosen).await;
}

pub(crate) async fn apply_with(
    world: &World,
    host: &Host,
    (plan_id, sha256): (uuid::Uuid, spillbox::digest::Sha256Digest),
) {
    let applying = host.collector.apply(plan_id, &sha256);
    let Some(applied) = host.gate.unless_dead(applying).await else {
        return;
    };
    match applied {
        Ok(report) => {
            for line in &report.artifacts {
                let note = line.note.as_deref().unwrap_or("");
                let (status, reason) = (line.status, line.reason);
                let text = format!("* apply: {} {status:?} {reason:?} {note}", line.artifact);
                world.sim.note(&host.name, &text);
            }
        }
        Err(error) => world.sim.note(&host.name, &format!("* apply: {error}")),
    }
}

pub(crate) async fn erase(world: Arc<World>) {
    let Some(known) = world.any_saved() else {
        return;
    };
    let host = world.any_host();
    let erasing = host.collector.erase(&world.tenant, &known.artifact);
    let what = format!("* erase {}", known.artifact);
    match host.gate.unless_dead(erasing).await {
        None => {}
        Some(Ok(_)) => {
            world.sim.note(&host.name, &format!("{what}: done"));
            let did = known.manifest.head.decision_id;
            world
                .sim
                .oracle
                .erased(&world.sim.truth, &known.artifact, did);
        }
        Some(Err(error)) => {
            world.sim.note(&host.name, &format!("{what}: {error}"));
            let is_defect = matches!(
                error,
                EraseError::Unreadable(_)
                    | EraseError::SessionUnknown
                    | EraseError::Journal(JournalError::Refused(
                        Refusal::Suspect | Refusal::Defect(_)
                    ))
            );
            if is_defect {
                world
                    .sim
                    .oracle
                    .violation(format!("an erasure failed as none may: {error}"));
            }
        }
    }
}
