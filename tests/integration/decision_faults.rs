//! Every request of a decision under every fault: a result is always answered, and what was answered as
//! frozen is answered again by a replica that has seen nothing of it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rstest::rstest;
use spillbox::artifact::library::Library;
use spillbox::decision::{
    Answer, Content, Decider, ResultRequest, TurnContent, TurnRequest, TurnResult,
};
use spillbox::ids::Tenant;
use spillbox::policy::frozen::Action as Decision;
use spillbox::policy::profile::Given;
use spillbox::policy::profiles::default;
use spillbox::store::SharedStore;

use crate::save_faults::{Coverage, Server, actions, none_is_without_a_kill_point};
use crate::support::library::{body, log, replica, request};
use crate::support::s3_server::{Action, Fault, S3Server};

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A result of this many bytes.
    Result(usize),
    /// A turn with a result that is too large by itself, three that fill it, and a small one.
    Turn,
}

/// What stands in the store before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// The same, decided by another replica.
    Decided,
    /// The same, decided in a parent session.
    DecidedByParent,
    /// The same, decided the other way by another replica.
    DecidedInline,
}

#[derive(Debug, Clone, Copy)]
struct Scenario {
    asked: Asked,
    before: Before,
}

const SCENARIOS: [Scenario; 8] = [
    Scenario {
        asked: Asked::Result(2_000),
        before: Before::Nothing,
    },
    Scenario {
        asked: Asked::Result(40_000),
        before: Before::Nothing,
    },
    Scenario {
        asked: Asked::Result(40_000),
        before: Before::Decided,
    },
    Scenario {
        asked: Asked::Result(40_000),
        before: Before::DecidedInline,
    },
    Scenario {
        asked: Asked::Result(40_000),
        before: Before::DecidedByParent,
    },
    Scenario {
        asked: Asked::Turn,
        before: Before::Nothing,
    },
    Scenario {
        asked: Asked::Turn,
        before: Before::Decided,
    },
    Scenario {
        asked: Asked::Turn,
        before: Before::DecidedByParent,
    },
];

impl Scenario {
    async fn ask(&self, library: &Library, session: &str, is_fork: bool) -> Vec<Answer> {
        let parent = is_fork.then(|| "parent".parse().unwrap());
        let decider = Decider::new(library.clone());
        let mut profile = default();
        match self.asked {
            Asked::Result(size) => {
                let mut save = request(session, Some("c"));
                save.parent = parent;
                let request = ResultRequest {
                    save,
                    profile: Arc::new(profile),
                    given: Given::default(),
                };
                let answer = decider.decide_result(request, body(&log(size))).await;
                vec![answer.expect("a result is always answered")]
            }
            Asked::Turn => {
                profile.turn.budget = spillbox::policy::limit::Limit::AtMost(60_000);
                let text =
                    |bytes: Bytes| TurnContent::Text(String::from_utf8(bytes.to_vec()).unwrap());
                let sizes = [40_000, 25_000, 24_000, 23_000, 500];
                let results = sizes.iter().enumerate().map(|(n, size)| TurnResult {
                    call_id: format!("c{n}").parse().unwrap(),
                    tool: Some("bash".to_owned()),
                    server_max: None,
                    content: text(log(*size)),
                });
                let request = TurnRequest {
                    tenant: Tenant::default(),
                    session: session.parse().unwrap(),
                    turn: "t".parse().unwrap(),
                    parent,
                    profile: Arc::new(profile),
                    means: Vec::new(),
                    context_tokens: None,
                    results: results.collect(),
                };
                let turn = decider.decide_turn(request).await;
                turn.expect("a turn is always answered").answers
            }
        }
    }

    async fn prepare(&self, store: &SharedStore) {
        let earlier = replica(store);
        match self.before {
            Before::Nothing => {}
            Before::Decided => drop(self.ask(&earlier, "s", false).await),
            Before::DecidedByParent => drop(self.ask(&earlier, "parent", false).await),
            Before::DecidedInline => {
                let mut profile = default();
                profile.limits.default.limit = spillbox::policy::limit::Limit::AtMost(90_000);
                let request = ResultRequest {
                    save: request("s", Some("c")),
                    profile: Arc::new(profile),
                    given: Given::default(),
                };
                let Asked::Result(size) = self.asked else {
                    panic!("of results only")
                };
                let decided = Decider::new(earlier)
                    .decide_result(request, body(&log(size)))
                    .await;
                assert_eq!(decided.unwrap().action, Decision::Inline);
            }
        }
    }

    async fn run(&self, library: &Library) -> Vec<Answer> {
        let is_fork = self.before == Before::DecidedByParent;
        self.ask(library, "s", is_fork).await
    }
}

fn check(scenario: &Scenario, first: &[Answer], again: &[Answer], context: &str) {
    for (first, again) in first.iter().zip(again) {
        assert_eq!(again.reason, None, "{context}");
        if first.reason.is_none() {
            assert_eq!(first.action, again.action, "{context}");
            assert_eq!(first.content, again.content, "{context}");
        }
        if first.action == Decision::Spilled && first.artifact.is_some() {
            let shown = Content::Text(
                first
                    .artifact
                    .as_ref()
                    .unwrap()
                    .head
                    .replacement
                    .text
                    .clone(),
            );
            assert_eq!(first.content, shown, "{context}");
        }
    }
    if scenario.before == Before::DecidedInline {
        assert_eq!(again[0].action, Decision::Inline, "{context}");
    }
}

async fn plain(server: Server, scenario: &Scenario) -> (S3Server, usize) {
    let (fake, store) = server.start();
    scenario.prepare(&store).await;
    fake.log().clear();
    scenario.run(&replica(&store)).await;
    let requests = fake.log().entries().len();
    (fake, requests)
}

/// The saves inside a turn are those of results, whose every request is hit; of a turn the requests that
/// only it makes are.
fn is_wanted(asked: Asked, class: &str) -> bool {
    match asked {
        Asked::Result(_) => true,
        Asked::Turn => matches!(class, "c" | "d"),
    }
}

#[rstest]
#[case::aws(0, &SCENARIOS)]
#[case::minio_versioned(3, &SCENARIOS[1..2])]
#[tokio::test(start_paused = true)]
async fn every_request_of_a_decision_survives_every_fault(
    #[case] server: usize,
    #[case] scenarios: &[Scenario],
) {
    let server = Server::ALL[server];
    let coverage = Mutex::<Coverage>::default();
    let mut runs = 0;
    for scenario in scenarios.iter().copied() {
        let (fake, requests) = plain(server, &scenario).await;
        let entries = fake.log().entries();
        for index in 0..requests {
            let seen = &entries[index].seen;
            if !is_wanted(scenario.asked, &seen.class) {
                continue;
            }
            let places: Vec<_> = (0..requests)
                .filter(|other| {
                    let other = &entries[*other].seen;
                    other.op == seen.op && other.class == seen.class
                })
                .collect();
            let same_before = places.iter().filter(|other| **other < index).count();
            // Of many alike the first and the last stand for all.
            if same_before > 0 && same_before + 1 < places.len() {
                continue;
            }
            for action in actions(seen.op) {
                let (fake, store) = server.start();
                scenario.prepare(&store).await;
                fake.log().clear();
                let fault = Fault::on(seen.op, action.clone());
                fake.fault(fault.of_class(&seen.class).after(same_before));
                let library = replica(&store);
                let context = format!("{scenario:?} {}#{same_before} {action:?}", seen.label());
                let first = scenario.run(&library).await;
                library.drain().await;
                let labels: Vec<_> = fake
                    .log()
                    .entries()
                    .iter()
                    .map(|entry| entry.seen.label())
                    .collect();
                fake.clear_faults();
                fake.apply_late().await;
                // A store that keeps damaged bytes for good cannot be seen through here.
                if action != Action::Corrupt {
                    let again = scenario.run(&replica(&store)).await;
                    check(&scenario, &first, &again, &context);
                }
                let mut coverage = coverage.lock().unwrap();
                coverage.seen.extend(labels);
                coverage.hit.insert(seen.label());
                runs += 1;
            }
        }
    }
    assert!(runs > 40, "{runs} runs");
    // Only a save compares a body that it meets; its own test hits that.
    coverage.lock().unwrap().hit.insert("head:b".to_owned());
    if scenarios.len() == SCENARIOS.len() {
        let seen = coverage.lock().unwrap().seen.clone();
        assert!(seen.contains("put:d") && seen.contains("get:d"), "{seen:?}");
    }
    none_is_without_a_kill_point(coverage);
}
