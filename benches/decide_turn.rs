//! What the pure decision of a turn costs: 100 results of 1 MB, against one `memchr` over the same bytes.
//!
//! `cargo bench --bench decide_turn`. A decision looks at each byte at most once (to count characters);
//! ASCII texts and limits in bytes need less.

use std::hint::black_box;
use std::time::{Duration, Instant};

use spillbox::artifact::measure::Measures;
use spillbox::policy::decide::{Circumstance, ResultFacts, decide, is_blank};
use spillbox::policy::profile::{Given, Profile};
use spillbox::policy::profiles::built_in;
use spillbox::policy::turn::{Standing, TurnItem, plan};

const RESULTS: usize = 100;
const RESULT_BYTES: usize = 1_000_000;
const ROUNDS: usize = 5;

/// The shortest of a few rounds: what the work costs when nothing disturbs it.
fn shortest(mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn decide_turn(profile: &Profile, texts: &[String]) -> u64 {
    let given = Given::default();
    let items: Vec<TurnItem> = texts
        .iter()
        .map(|text| {
            let size = Measures::of(text.as_bytes());
            let facts = ResultFacts {
                tool: "bash",
                size,
                is_binary: false,
                is_blank: is_blank(text),
                is_mixed: false,
                circumstance: Circumstance::Ordinary,
            };
            let decision = decide(profile, &facts, &given);
            TurnItem {
                size: size.get(profile.turn.measure),
                standing: if decision.is_stored() {
                    Standing::Frozen
                } else {
                    Standing::Fresh
                },
            }
        })
        .collect();
    let budget = profile.turn_budget(&given);
    plan(budget, &profile.turn, &items, |_| Some(10_000)).total
}

fn main() {
    println!("a turn of {RESULTS} results of {RESULT_BYTES} bytes, shortest of {ROUNDS} rounds");
    println!(
        "{:12}  {:8}  {:>10}  {:>10}  {:>6}",
        "profile", "text", "decide ms", "memchr ms", "ratio"
    );
    for (kind, unit) in [
        ("ascii", "0123456789abcdef log line\n"),
        ("mixed", "0123 żółw 界 🙂 log\n"),
    ] {
        let text: String = unit
            .chars()
            .cycle()
            .take(RESULT_BYTES / unit.len() * unit.chars().count())
            .collect();
        let texts: Vec<String> = (0..RESULTS).map(|_| text.clone()).collect();
        let baseline = shortest(|| {
            for text in &texts {
                black_box(memchr::memchr(0, black_box(text.as_bytes())));
            }
        });
        for profile in built_in() {
            let taken = shortest(|| {
                black_box(decide_turn(black_box(&profile), black_box(&texts)));
            });
            let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
            println!(
                "{:12}  {kind:8}  {:10.2}  {:10.2}  {:6.2}",
                profile.name,
                ms(taken),
                ms(baseline),
                taken.as_secs_f64() / baseline.as_secs_f64()
            );
        }
    }
}
