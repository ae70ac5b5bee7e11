//! A seeded simulation of hosts over a store that fails and lies, in which the real `save`, journal, fold
//! and collector run. What must hold is looked up in the store's true state after every write.
//!
//! `SPILLBOX_SIM_SEEDS=from..to` runs other seeds than CI's; `SPILLBOX_SIM_SEED=n` runs one and prints all
//! that happened.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "what a simulation cannot set up is a failed test; its tasks end with its runtime; a fault is of \
              one kind of request, and leaves all others as they are"
)]

mod clock;
mod collect;
mod ending;
mod fault;
mod gate;
mod history;
mod host;
mod oracle;
mod owner;
mod random;
mod request;
mod run;
mod saver;
mod short;
mod store;
mod trace;
mod truth;
mod world;

use std::ops::Range;
use std::time::Instant;

use crate::run::{Outcome, run};

/// Seeds of every run, shared by two threads.
const SEEDS: Range<u64> = 0..2000;

const THREADS: u64 = 2;

#[derive(Debug, Default)]
struct Total {
    requests: u64,
    faults: u64,
    lies: u64,
    late: u64,
    calls: u64,
    records: u64,
    saved: u64,
}

impl Total {
    fn add(&mut self, outcome: &Outcome) {
        self.requests += outcome.requests;
        self.faults += outcome.faults;
        self.lies += outcome.lies;
        self.late += outcome.late;
        self.calls += outcome.calls;
        self.records += outcome.records;
        self.saved += outcome.saved;
    }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("SPILLBOX_SIM_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").expect("SPILLBOX_SIM_SEEDS=from..to");
    from.parse().unwrap()..to.parse().unwrap()
}

fn fail(seed: u64, outcome: &Outcome) -> ! {
    for line in &outcome.trace {
        println!("{line}");
    }
    panic!(
        "seed {seed}: {}\nreplay: SPILLBOX_SIM_SEED={seed} cargo test --test sim -- --nocapture",
        outcome.violations.join("\n")
    );
}

#[test]
fn nothing_that_was_promised_is_broken_whatever_the_store_and_the_hosts_do() {
    if let Ok(seed) = std::env::var("SPILLBOX_SIM_SEED") {
        let seed = seed.parse().unwrap();
        let outcome = run(seed);
        if !outcome.violations.is_empty() {
            fail(seed, &outcome);
        }
        outcome.trace.iter().for_each(|line| println!("{line}"));
        return;
    }
    let (range, began) = (seeds(), Instant::now());
    let (mut total, mut failed) = (Total::default(), Vec::new());
    std::thread::scope(|scope| {
        let shard = |nth: u64| {
            let mine = range.clone().filter(move |seed| seed % THREADS == nth);
            scope.spawn(move || {
                let (mut total, mut failed) = (Total::default(), None);
                for seed in mine {
                    let outcome = run(seed);
                    total.add(&outcome);
                    if !outcome.violations.is_empty() {
                        failed = Some((seed, outcome));
                        break;
                    }
                }
                (total, failed)
            })
        };
        let shards: Vec<_> = (0..THREADS).map(shard).collect();
        for shard in shards {
            let (part, found) = shard.join().unwrap();
            total.requests += part.requests;
            total.faults += part.faults;
            total.lies += part.lies;
            total.late += part.late;
            total.calls += part.calls;
            total.records += part.records;
            total.saved += part.saved;
            failed.extend(found);
        }
    });
    println!(
        "seeds {range:?} in {:.1} s: {total:?}",
        began.elapsed().as_secs_f64()
    );
    failed.sort_by_key(|(seed, _)| *seed);
    if let Some((seed, outcome)) = failed.first() {
        fail(*seed, outcome);
    }
    // The histories are not empty ones.
    let count = range.end - range.start;
    assert!(
        total.records > 5 * count && total.saved > 3 * count,
        "{total:?}"
    );
}

#[test]
fn a_seed_is_one_history() {
    for seed in 0..20 {
        let (first, second) = (run(seed), run(seed));
        if first.hash != second.hash {
            let pairs = first.trace.iter().zip(&second.trace);
            let (nth, differs) = pairs.enumerate().find(|(_, (a, b))| a != b).unwrap();
            panic!(
                "seed {seed} differs in line {nth}:\n{}\n{}",
                differs.0, differs.1
            );
        }
    }
}
