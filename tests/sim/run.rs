//! One seed from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use spillbox::digest::Sha256Digest;
use spillbox::store::attest::Fence;

use crate::clock::StoreClock;
use crate::fault::Profile;
use crate::random::Dice;
use crate::store::SimStore;
use crate::trace::Trace;
use crate::world::{HOSTS, World};
use crate::{collect, ending, owner, saver};

/// Steps of one seed: a call that begins, a host that stops, time that passes.
const STEPS: u64 = 45;

/// What one seed came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) hash: Sha256Digest,
    pub(crate) requests: u64,
    pub(crate) faults: u64,
    pub(crate) lies: u64,
    pub(crate) late: u64,
    pub(crate) calls: u64,
    pub(crate) records: u64,
    pub(crate) saved: u64,
}

/// Runs a seed on a runtime of its own, whose clock stands still while anything can be done.
pub(crate) fn run(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(simulate(seed))
}

async fn simulate(seed: u64) -> Outcome {
    let dice = Arc::new(Dice::new(seed));
    let trace = Arc::new(Trace::default());
    let profile = Profile::draw(&dice);
    let erases = !profile.is_stale_everywhere && dice.chance(500);
    let (versioning, switches) = (dice.below(3), dice.chance(150));
    let leaps = dice.chance(250);
    let clock = Arc::new(StoreClock::new());
    let text = format!(
        "{profile:?} erases: {erases}, versioning: {versioning}, switches: {switches}, leaps: {leaps}"
    );
    let fence = match (profile.ignores_delete_conditions, versioning) {
        (_, 1) => Fence::VersionId,
        (true, _) => Fence::None,
        (false, _) => Fence::IfMatch,
    };
    let sim = Arc::new(SimStore::new(
        Arc::clone(&dice),
        profile,
        clock,
        Arc::clone(&trace),
    ));
    sim.note("store", &text);
    if versioning > 0 {
        sim.truth.memory.enable_versioning();
    }
    if versioning == 2 {
        sim.truth.memory.suspend_versioning();
    }
    let world = Arc::new(World::new(
        Arc::clone(&sim),
        Arc::clone(&dice),
        fence,
        erases,
    ));
    let mut callers = Vec::new();
    for step in 0..STEPS {
        // Something has to be there before anything can happen to it.
        if let Some(caller) = step_once(&world, step < 3, switches, leaps) {
            callers.push(caller);
        }
        let time = match dice.below(20) {
            0..=12 => dice.millis(0, 250),
            13..=16 => dice.millis(1_000, 60_000),
            17 | 18 => dice.millis(3_600_000, 3 * 3_600_000),
            _ => dice.millis(13 * 3_600_000, 30 * 3_600_000),
        };
        tokio::time::sleep(time).await;
        if !sim.oracle.violations().is_empty() {
            break;
        }
    }
    if sim.oracle.violations().is_empty() {
        sim.note("store", "everything works from now on");
        sim.profile.calm();
        for index in 0..HOSTS {
            world.resume(index);
        }
        for caller in callers {
            caller.await.unwrap();
        }
        // Whatever is still on its way arrives.
        tokio::time::sleep(owner::LONGEST_PAUSE + Duration::from_secs(3 * 86_400)).await;
        ending::settle(&world).await;
    }
    let counts = &sim.counts;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Outcome {
        violations: sim.oracle.violations(),
        hash: trace.hash(),
        trace: trace.lines(),
        requests: count(&counts.requests),
        faults: count(&counts.faults),
        lies: count(&counts.lies),
        late: count(&counts.late),
        calls: crate::world::lock(&world.calls).len() as u64,
        records: sim
            .oracle
            .sessions()
            .iter()
            .map(|session| sim.oracle.len(session))
            .sum(),
        saved: crate::world::lock(&world.saved).len() as u64,
    }
}

/// One step; returns the caller that it began.
fn step_once(
    world: &Arc<World>,
    saves_only: bool,
    switches: bool,
    leaps: bool,
) -> Option<tokio::task::JoinHandle<()>> {
    let dice = &world.dice;
    let own = Arc::clone(world);
    let index = || u16::try_from(dice.below(u64::from(HOSTS))).unwrap();
    let chosen = if saves_only { 0 } else { dice.below(100) };
    Some(match chosen {
        0..=24 => tokio::spawn(saver::save(own)),
        25..=44 => tokio::spawn(owner::own(own)),
        45..=52 => tokio::spawn(owner::reconcile(own)),
        53..=58 => tokio::spawn(owner::look(own)),
        59..=63 => tokio::spawn(owner::hold(own)),
        64..=67 => tokio::spawn(saver::read(own)),
        68..=70 => tokio::spawn(saver::touch(own)),
        71..=77 => tokio::spawn(collect::plan(own)),
        78..=87 => tokio::spawn(collect::apply(own)),
        88 | 89 if world.erases => tokio::spawn(collect::erase(own)),
        90..=92 => {
            world.kill(index());
            return None;
        }
        93 | 94 => {
            world.pause(index());
            return None;
        }
        95 | 96 => {
            world.resume(index());
            return None;
        }
        97 if switches => {
            let memory = &world.sim.truth.memory;
            if dice.chance(600) {
                world.sim.note("store", "keeps versions");
                memory.enable_versioning();
            } else if world.sim.truth.is_versioned() {
                world.sim.note("store", "keeps no new versions");
                memory.suspend_versioning();
            }
            return None;
        }
        98 if leaps => {
            let hours = *dice.pick(&[-49, -2, 2, 49]);
            world
                .sim
                .note("store", &format!("its clock leaps by {hours} h"));
            world.sim.clock.leap(SignedDuration::from_hours(hours));
            return None;
        }
        _ => return None,
    })
}
