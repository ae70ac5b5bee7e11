//! Every request of a save under every fault: at the end the client holds a receipt whose bytes are
//! there, or an error that says whether a retry is safe; and the retry ends in one artifact.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::join_all;
use rstest::rstest;
use spillbox::artifact::library::Library;
use spillbox::artifact::request::{SaveError, SaveRequest};
use spillbox::artifact::save::Saved;
use spillbox::limits::PART_BYTES;
use spillbox::store::SharedStore;

use crate::support::library::{body, log, read_all, receipt, replica, request};
use crate::support::s3_server::{Action, BucketVersioning, Fault, Op, Quirks, S3Server};

/// A store as the suites of the product meet it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    quirks: Quirks,
    versioning: BucketVersioning,
}

impl Server {
    pub(crate) const ALL: [Self; 4] = [
        Self {
            quirks: Quirks::AWS,
            versioning: BucketVersioning::Never,
        },
        Self {
            quirks: Quirks::AWS,
            versioning: BucketVersioning::Enabled,
        },
        Self {
            quirks: Quirks::MINIO,
            versioning: BucketVersioning::Never,
        },
        Self {
            quirks: Quirks::MINIO,
            versioning: BucketVersioning::Enabled,
        },
    ];

    pub(crate) fn start(self) -> (S3Server, SharedStore) {
        let server = S3Server::builder()
            .quirks(self.quirks)
            .versioning(self.versioning)
            .start();
        let store: SharedStore = Arc::new(server.store());
        (server, store)
    }
}

/// What stands in the store before the save that is put under faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing.
    Nothing,
    /// The same save, finished by another replica.
    Saved,
    /// The same save, crashed after its record and body.
    CrashedBeforeManifest,
    /// The same save, crashed after its record alone.
    CrashedBeforeBody,
    /// A parent session that saved the same output.
    SavedByParent,
}

#[derive(Debug, Clone, Copy)]
struct Scenario {
    call: Option<&'static str>,
    size: usize,
    before: Before,
}

impl Scenario {
    fn request(&self) -> SaveRequest {
        let mut request = request("s", self.call);
        if self.before == Before::SavedByParent {
            request.parent = Some("parent".parse().unwrap());
        }
        request
    }

    async fn prepare(&self, server: &S3Server, store: &SharedStore, bytes: &Bytes) {
        let earlier = replica(store);
        match self.before {
            Before::Nothing => return,
            Before::SavedByParent => {
                earlier
                    .save(request("parent", self.call), body(bytes))
                    .await
                    .unwrap();
                return;
            }
            Before::Saved => {}
            // The manifest PUT never arrives, however often it is sent.
            Before::CrashedBeforeManifest => {
                server.fault(Fault::on(Op::Put, refuse(403)).of_class("a").always());
            }
            Before::CrashedBeforeBody => {
                server.fault(Fault::on(Op::Put, refuse(403)).of_class("b").always());
            }
        }
        let outcome = earlier.save(self.request(), body(bytes)).await;
        assert_eq!(outcome.is_ok(), self.before == Before::Saved);
        server.clear_faults();
    }
}

pub(crate) fn refuse(status: u16) -> Action {
    let code = match status {
        403 => "AccessDenied",
        409 => "ConditionalRequestConflict",
        503 => "SlowDown",
        _ => "InternalError",
    };
    Action::Refuse { status, code }
}

/// Faults before, after and instead of a request.
pub(crate) fn actions(op: Op) -> Vec<Action> {
    let mut actions = vec![
        refuse(403),
        refuse(409),
        refuse(500),
        refuse(503),
        Action::LoseRequest,
        Action::LoseReply,
        Action::ApplyThenRefuse {
            status: 500,
            code: "InternalError",
        },
        Action::ApplyThenRefuse {
            status: 503,
            code: "SlowDown",
        },
        Action::ApplyTwice,
        Action::WebPage { status: 502 },
    ];
    if op == Op::Put {
        actions.push(Action::ApplyLate);
    }
    if matches!(op, Op::Put | Op::Part) {
        actions.push(Action::Corrupt);
    }
    if op == Op::Complete {
        actions.extend([false, true].map(|is_applied| Action::ErrorInSuccess {
            code: "InternalError",
            is_applied,
        }));
    }
    if matches!(op, Op::Get | Op::Head) {
        actions.push(Action::DenyMissing);
    }
    if op == Op::Get {
        actions.extend([false, true].map(|is_silent| Action::CutBody {
            after_bytes: 3,
            is_silent,
        }));
    }
    actions
}

/// What the client may conclude from its answer, and what a retry without fault then gives.
async fn check(
    server: &S3Server,
    store: &SharedStore,
    scenario: &Scenario,
    bytes: &Bytes,
    outcome: Result<Saved, SaveError>,
    context: &str,
) {
    server.clear_faults();
    server.apply_late().await;
    let fresh = replica(store);
    if context.contains("Corrupt") {
        return damage_is_never_served(&fresh, scenario, bytes, outcome, context).await;
    }
    if let Err(error) = &outcome {
        let code = error.code();
        assert!(
            !code.has_no_side_effects(),
            "{context}: {code} claims that nothing happened"
        );
        assert!(
            code.is_retryable(),
            "{context}: {code} says that a retry is useless"
        );
    }
    let again = fresh
        .save(scenario.request(), body(bytes))
        .await
        .unwrap_or_else(|error| {
            panic!("{context}: the retry failed: {error}");
        });
    assert_eq!(&read_all(&fresh, &again).await.unwrap(), bytes, "{context}");
    if let Ok(saved) = &outcome {
        assert_eq!(&read_all(&fresh, saved).await.unwrap(), bytes, "{context}");
        if scenario.call.is_some() {
            assert_eq!(receipt(&fresh, saved), receipt(&fresh, &again), "{context}");
        }
    }
    leftovers_are_findable(server, scenario, context);
}

/// A store that takes a damaged body for good cannot be seen through at the save. What it damaged is
/// an error later, of a read or of the next save, and never other bytes.
async fn damage_is_never_served(
    fresh: &Library,
    scenario: &Scenario,
    bytes: &Bytes,
    outcome: Result<Saved, SaveError>,
    context: &str,
) {
    let again = fresh.save(scenario.request(), body(bytes)).await;
    for saved in [outcome, again].into_iter().flatten() {
        if let Ok(read) = read_all(fresh, &saved).await {
            assert_eq!(&read, bytes, "{context}");
        }
    }
}

/// One manifest remains, its body is there, and what is left over is what the collector looks for:
/// bodies without a manifest, unfinished uploads.
fn leftovers_are_findable(server: &S3Server, scenario: &Scenario, context: &str) {
    let keys = server.keys();
    let of = |class: &str| -> BTreeSet<String> {
        let middle = format!("/{class}/");
        keys.iter()
            .filter_map(|key| key.split_once(&middle).map(|(_, rest)| rest.to_owned()))
            .collect()
    };
    let (manifests, bodies) = (of("a"), of("b"));
    assert!(
        manifests.is_subset(&bodies),
        "{context}: a manifest without its body"
    );
    if scenario.call.is_some() {
        assert_eq!(manifests.len(), 1, "{context}: {manifests:?}");
    }
    assert!(bodies.len() <= manifests.len() + 2, "{context}: {bodies:?}");
    let strange: Vec<_> = keys
        .iter()
        .filter(|key| {
            !["/a/", "/b/", "/c/", "/s/"]
                .iter()
                .any(|class| key.contains(class))
        })
        .collect();
    assert!(strange.is_empty(), "{context}: {strange:?}");
}

/// Labels that appeared in any run, and those that were hit by a fault.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) seen: BTreeSet<String>,
    pub(crate) hit: BTreeSet<String>,
}

async fn run(
    server: Server,
    scenario: &Scenario,
    coverage: &Mutex<Coverage>,
    is_wanted: impl Fn(Op) -> bool,
) -> usize {
    let bytes = log(scenario.size);
    let plain = {
        let (fake, store) = server.start();
        scenario.prepare(&fake, &store, &bytes).await;
        fake.log().clear();
        replica(&store)
            .save(scenario.request(), body(&bytes))
            .await
            .unwrap();
        fake.log().entries()
    };
    let mut runs = 0;
    for (index, entry) in plain.iter().enumerate() {
        if !is_wanted(entry.seen.op) {
            continue;
        }
        let same_before = plain[..index]
            .iter()
            .filter(|earlier| {
                earlier.seen.op == entry.seen.op && earlier.seen.class == entry.seen.class
            })
            .count();
        for action in actions(entry.seen.op) {
            let (fake, store) = server.start();
            scenario.prepare(&fake, &store, &bytes).await;
            fake.log().clear();
            fake.fault(
                Fault::on(entry.seen.op, action.clone())
                    .of_class(&entry.seen.class)
                    .after(same_before),
            );
            let library: Library = replica(&store);
            let outcome = library.save(scenario.request(), body(&bytes)).await;
            library.drain().await;
            let context = format!(
                "{server:?} {scenario:?} {}#{same_before} {action:?}",
                entry.seen.label()
            );
            let labels: Vec<_> = fake
                .log()
                .entries()
                .iter()
                .map(|entry| entry.seen.label())
                .collect();
            check(&fake, &store, scenario, &bytes, outcome, &context).await;
            let mut coverage = coverage.lock().unwrap();
            coverage.seen.extend(labels);
            coverage.hit.insert(entry.seen.label());
            runs += 1;
        }
    }
    runs
}

const SMALL: usize = 5_000;
const STREAMED: usize = PART_BYTES + 5_000;

fn scenarios() -> Vec<Scenario> {
    let mut scenarios = vec![
        Scenario {
            call: None,
            size: SMALL,
            before: Before::Nothing,
        },
        Scenario {
            call: Some("c"),
            size: SMALL,
            before: Before::SavedByParent,
        },
    ];
    for before in [
        Before::Nothing,
        Before::Saved,
        Before::CrashedBeforeManifest,
        Before::CrashedBeforeBody,
    ] {
        scenarios.push(Scenario {
            call: Some("c"),
            size: SMALL,
            before,
        });
    }
    scenarios
}

#[rstest]
#[case::aws(0)]
#[case::aws_versioned(1)]
#[case::minio(2)]
#[case::minio_versioned(3)]
#[tokio::test(start_paused = true)]
async fn every_request_of_a_small_save_survives_every_fault(#[case] server: usize) {
    let coverage = Mutex::default();
    let mut runs = 0;
    for scenario in scenarios() {
        runs += run(Server::ALL[server], &scenario, &coverage, |_| true).await;
    }
    none_is_without_a_kill_point(coverage);
    assert!(runs > 250, "{runs} runs");
}

/// Only the requests that a small save does not make: each run moves 16 MiB.
#[tokio::test(start_paused = true)]
async fn every_request_of_a_streamed_save_survives_every_fault() {
    let coverage = Mutex::default();
    for before in [
        Before::Nothing,
        Before::Saved,
        Before::CrashedBeforeManifest,
    ] {
        let scenario = Scenario {
            call: Some("c"),
            size: STREAMED,
            before,
        };
        let is_own = |op: Op| {
            let is_shared = matches!(op, Op::Put | Op::Get);
            if before == Before::Nothing {
                !is_shared
            } else {
                op == Op::Head
            }
        };
        run(Server::ALL[1], &scenario, &coverage, is_own).await;
    }
    abort_under_faults(&coverage).await;
    let mut coverage = coverage;
    // The small save's test hits these.
    let small = [
        "put:s",
        "put:c",
        "put:a",
        "get:s",
        "get:c",
        "get:a",
        "versioning:-",
        "versions:b",
        "delete:b",
    ];
    coverage
        .get_mut()
        .unwrap()
        .hit
        .extend(small.map(str::to_owned));
    none_is_without_a_kill_point(coverage);
}

pub(crate) fn none_is_without_a_kill_point(coverage: Mutex<Coverage>) {
    let Coverage { seen, hit } = coverage.into_inner().unwrap();
    let without: Vec<_> = seen.difference(&hit).collect();
    assert!(
        without.is_empty(),
        "requests without a kill point: {without:?}"
    );
}

/// A refused body aborts its upload; where that fails, the upload is what the collector looks for.
async fn abort_under_faults(coverage: &Mutex<Coverage>) {
    let bytes = log(STREAMED);
    for action in actions(Op::Abort) {
        let (fake, store) = Server::ALL[0].start();
        fake.fault(Fault::on(Op::Abort, action.clone()).of_class("b"));
        let mut save = request("s", Some("c"));
        save.expected_digest = Some(spillbox::digest::Sha256Digest::of(b"other"));
        let library = replica(&store);
        let error = library.save(save, body(&bytes)).await.unwrap_err();
        library.drain().await;
        assert!(
            matches!(error, SaveError::DigestMismatch { .. }),
            "{action:?}: {error}"
        );
        assert_eq!(fake.keys(), Vec::<String>::new(), "{action:?}");
        let is_final = action == refuse(403) || matches!(action, Action::WebPage { .. });
        assert_eq!(
            fake.open_uploads(),
            usize::from(is_final && fake.open_uploads() == 1),
            "{action:?}"
        );
        let labels: Vec<_> = fake
            .log()
            .entries()
            .iter()
            .map(|entry| entry.seen.label())
            .collect();
        let mut coverage = coverage.lock().unwrap();
        coverage.seen.extend(labels);
        coverage.hit.insert("abort:b".to_owned());
    }
}

/// A small generator, so that a failing seed can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[rstest]
#[case::small(SMALL, 60)]
#[case::streamed(STREAMED, 6)]
#[tokio::test(start_paused = true)]
async fn five_savers_of_one_call_under_faults_agree_on_one_receipt(
    #[case] size: usize,
    #[case] rounds: u64,
) {
    let bytes = log(size);
    for seed in 0..rounds {
        let server = Server::ALL[usize::try_from(seed % 4).unwrap()];
        let (fake, store) = server.start();
        let mut dice = Dice(seed);
        for _ in 0..6 {
            let op = [Op::Put, Op::Put, Op::Get, Op::Head, Op::Complete][dice.roll(5)];
            let mut choice = actions(op);
            // A store that damages bytes is the reader's matter; see the test above.
            choice.retain(|action| *action != Action::Corrupt && *action != Action::ApplyLate);
            let action = choice.swap_remove(dice.roll(choice.len()));
            fake.fault(Fault::on(op, action).after(dice.roll(8)));
        }
        let savers = (0..5).map(|_| {
            let (store, bytes) = (Arc::clone(&store), bytes.clone());
            async move {
                let library = replica(&store);
                for _ in 0..8 {
                    match library.save(request("s", Some("c")), body(&bytes)).await {
                        Ok(saved) => return receipt(&library, &saved),
                        Err(error) => assert!(error.code().is_retryable(), "seed {seed}: {error}"),
                    }
                }
                panic!("seed {seed}: eight tries failed");
            }
        });
        let receipts = join_all(savers).await;
        assert!(
            receipts.iter().all(|other| *other == receipts[0]),
            "seed {seed}"
        );
        fake.clear_faults();
        let scenario = Scenario {
            call: Some("c"),
            size,
            before: Before::Nothing,
        };
        let fresh = replica(&store);
        let again = fresh.save(scenario.request(), body(&bytes)).await.unwrap();
        assert_eq!(receipt(&fresh, &again), receipts[0], "seed {seed}");
        assert_eq!(
            read_all(&fresh, &again).await.unwrap(),
            bytes,
            "seed {seed}"
        );
        let manifests = fake.keys().iter().filter(|key| key.contains("/a/")).count();
        assert_eq!(manifests, 1, "seed {seed}");
    }
}
