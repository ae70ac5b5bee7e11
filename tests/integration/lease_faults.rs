//! Every request of prepare, commit and release under every fault: at the end the client holds a
//! receipt that is on the journal, or an error that says what to do; a retry ends in one lease; and an
//! outcome that was unknown is made final.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rstest::rstest;
use spillbox::artifact::save::Saved;
use spillbox::error::ErrorCode;
use spillbox::ids::Tenant;
use spillbox::lease::entry::ReleaseReason;
use spillbox::lease::failure::{LeaseError, PrepareError};
use spillbox::lease::journal::Receipt;
use spillbox::lease::leases::{LeaseAnswer, Leases};
use spillbox::store::SharedStore;

use crate::support::leases::{assert_receipt, claim, is_on_the_journal, replica, session, txn};
use crate::support::library::{body, log, replica as library, request};
use crate::support::s3_server::{Action, BucketVersioning, Fault, Op, Quirks, S3Server};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Commit,
    Release,
}

/// What the operation under fault meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A replica that has just been started.
    Cold,
    /// A replica whose view is up to date.
    Warm,
    /// A replica whose view is one record behind.
    Behind,
}

#[derive(Debug, Clone, Copy)]
struct Scenario {
    step: Step,
    before: Before,
}

/// A failed operation, as its caller sees it.
#[derive(Debug)]
struct Failure {
    code: ErrorCode,
    unknown: Option<Receipt>,
    text: String,
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        let text = error.to_string();
        let code = error.code();
        let unknown = if let PrepareError::Journal(error) = error {
            error.unknown_record().cloned()
        } else {
            None
        };
        Self {
            code,
            unknown,
            text,
        }
    }
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        let text = error.to_string();
        let code = error.code();
        let unknown = match error {
            LeaseError::Journal(error) => error.unknown_record().cloned(),
            LeaseError::ReadOnly | LeaseError::OwnerUnsealed(_) => None,
        };
        Self {
            code,
            unknown,
            text,
        }
    }
}

impl Step {
    async fn run(self, leases: &Leases, saved: &Saved) -> Result<LeaseAnswer, Failure> {
        let (tenant, session, name) = (Tenant::default(), session(), txn("t"));
        Ok(match self {
            Self::Prepare => leases.prepare(&tenant, &session, claim("t", saved)).await?,
            Self::Commit => leases.commit(&tenant, &session, &name, None).await?,
            Self::Release => {
                let why = ReleaseReason::Removed;
                leases.release(&tenant, &session, &name, why).await?
            }
        })
    }

    /// The lease's state once the step stands.
    const fn state(self) -> &'static str {
        match self {
            Self::Prepare => "prepared",
            Self::Commit => "committed",
            Self::Release => "released",
        }
    }

    const fn earlier(self) -> &'static [Self] {
        match self {
            Self::Prepare => &[],
            Self::Commit => &[Self::Prepare],
            Self::Release => &[Self::Prepare, Self::Commit],
        }
    }
}

impl Scenario {
    /// Everything before the operation; answers the replica that will be asked for it.
    async fn set_up(&self, store: &SharedStore) -> (Leases, Saved) {
        let saved = library(store)
            .save(request("s", None), body(&log(3_000)))
            .await
            .unwrap();
        let leases = replica(store);
        for step in self.step.earlier() {
            step.run(&leases, &saved).await.unwrap();
        }
        if self.before == Before::Cold {
            return (replica(store), saved);
        }
        leases
            .journal(&Tenant::default(), &session())
            .await
            .unwrap();
        if self.before == Before::Behind {
            let other = replica(store);
            let claim = claim("other", &saved);
            let (tenant, session) = (Tenant::default(), session());
            other.prepare(&tenant, &session, claim).await.unwrap();
        }
        (leases, saved)
    }
}

fn refuse(status: u16) -> Action {
    let code = match status {
        403 => "AccessDenied",
        409 => "ConditionalRequestConflict",
        503 => "SlowDown",
        _ => "InternalError",
    };
    Action::Refuse { status, code }
}

/// Faults before, after and instead of a request.
fn actions(op: Op) -> Vec<Action> {
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
        actions.extend([Action::ApplyLate, Action::Corrupt]);
    }
    if op == Op::Get {
        actions.push(Action::DenyMissing);
        actions.extend([false, true].map(|is_silent| Action::CutBody {
            after_bytes: 3,
            is_silent,
        }));
    }
    if op == Op::List {
        let short = |is_honest| Action::ShortListing { keys: 1, is_honest };
        actions.extend([false, true].map(short));
    }
    actions
}

/// A manifest that is cut short without a sign cannot be told from a damaged one; what reads do then is
/// the business of their own suite.
fn is_other_suites(class: &str, action: &Action) -> bool {
    class == "a"
        && matches!(
            action,
            Action::CutBody {
                is_silent: true,
                ..
            }
        )
}

fn start(quirks: Quirks) -> (S3Server, SharedStore) {
    let versioning = BucketVersioning::Never;
    let builder = S3Server::builder().quirks(quirks).versioning(versioning);
    let server = builder.start();
    let store: SharedStore = Arc::new(server.store());
    (server, store)
}

/// What the client may conclude, and what a retry without fault then gives.
async fn check(
    server: &S3Server,
    store: &SharedStore,
    scenario: &Scenario,
    saved: &Saved,
    outcome: Result<LeaseAnswer, Failure>,
    context: &str,
) {
    server.clear_faults();
    let fresh = replica(store);
    if context.contains("Corrupt") {
        return damage_is_never_an_empty_journal(&fresh, scenario, outcome, context).await;
    }
    let mut has_landed;
    match &outcome {
        Ok(answer) => {
            assert_eq!(answer.lease.state, scenario.step.state(), "{context}");
            assert_receipt(&fresh, answer, context).await;
            has_landed = Some(true);
        }
        Err(failure) => {
            let Failure { code, text, .. } = failure;
            // Records that are always cut short without a sign are damage.
            let is_damage =
                context.contains("is_silent: true") && context.contains("lasting: true");
            let is_told = is_damage && *code == ErrorCode::JournalCorrupt;
            assert!(code.is_retryable() || is_told, "{context}: {code}: {text}");
            has_landed = code.has_no_side_effects().then_some(false);
            assert_eq!(
                *code == ErrorCode::OutcomeUnknown,
                failure.unknown.is_some()
            );
        }
    }
    if let Err(Failure {
        unknown: Some(unknown),
        ..
    }) = &outcome
    {
        let (tenant, name) = (Tenant::default(), txn("t"));
        let resolved = fresh
            .resolve(&tenant, &session(), &name, unknown.seq, unknown.sha256)
            .await
            .unwrap();
        has_landed = Some(resolved.has_landed);
        let state = resolved.lease.map(|lease| lease.state);
        let stands = state == Some(scenario.step.state());
        assert_eq!(stands, resolved.has_landed, "{context}");
    }
    server.apply_late().await;
    if let Some(has_landed) = has_landed {
        // What was told, or resolved, stays so, whatever arrives late.
        let lease = replica(store)
            .get(&Tenant::default(), &session(), &txn("t"))
            .await;
        let stands = lease.is_ok_and(|lease| lease.lease.state == scenario.step.state());
        assert_eq!(stands, has_landed, "{context}");
        if let Err(Failure {
            unknown: Some(unknown),
            ..
        }) = &outcome
        {
            let is_there = is_on_the_journal(&fresh, unknown).await;
            assert_eq!(is_there, has_landed, "{context}");
        }
    }
    let fresh = replica(store);
    let again = scenario.step.run(&fresh, saved).await;
    let again = again.unwrap_or_else(|failure| panic!("{context}: the retry: {failure:?}"));
    assert_eq!(again.lease.state, scenario.step.state(), "{context}");
    assert_receipt(&fresh, &again, context).await;
    let folded = fresh.journals();
    let folded = folded
        .open_double_rooted(&Tenant::default(), &session())
        .await
        .unwrap();
    assert!(!folded.is_suspect, "{context}: an entry without effect");
    let leases = folded.opened.chain.state().leases().count();
    let others = usize::from(scenario.before == Before::Behind);
    assert_eq!(leases, 1 + others, "{context}");
}

/// A store that takes damaged bytes for good breaks the journal. That is told, by the operation or by
/// whoever comes next, and never read as "no leases".
async fn damage_is_never_an_empty_journal(
    fresh: &Leases,
    scenario: &Scenario,
    outcome: Result<LeaseAnswer, Failure>,
    context: &str,
) {
    let seen = fresh.get(&Tenant::default(), &session(), &txn("t")).await;
    let code = seen.as_ref().err().map(LeaseError::code);
    let is_honest = match (&outcome, &seen) {
        (Ok(_), Ok(lease)) => lease.lease.state == scenario.step.state(),
        // It took the damage for a success: the next reader finds it.
        (Ok(_), Err(_)) => code == Some(ErrorCode::JournalCorrupt),
        (Err(_), Ok(_)) => true,
        (Err(_), Err(_)) => {
            let told = [ErrorCode::JournalCorrupt, ErrorCode::TransactionUnknown];
            code.is_some_and(|code| told.contains(&code))
        }
    };
    assert!(is_honest, "{context}: {outcome:?} {seen:?}");
}

#[derive(Debug, Default)]
struct Coverage {
    seen: BTreeSet<String>,
    hit: BTreeSet<String>,
}

async fn run(quirks: Quirks, scenario: &Scenario, coverage: &Mutex<Coverage>) -> usize {
    let plain = {
        let (server, store) = start(quirks);
        let (leases, saved) = scenario.set_up(&store).await;
        server.log().clear();
        scenario.step.run(&leases, &saved).await.unwrap();
        leases.drain().await;
        server.log().entries()
    };
    let mut runs = 0;
    for (index, entry) in plain.iter().enumerate() {
        let same_before = plain[..index]
            .iter()
            .filter(|earlier| earlier.seen.label() == entry.seen.label())
            .count();
        for action in actions(entry.seen.op) {
            if is_other_suites(&entry.seen.class, &action) {
                continue;
            }
            // Once, and for as long as anybody tries.
            for is_lasting in [false, true] {
                let (server, store) = start(quirks);
                let (leases, saved) = scenario.set_up(&store).await;
                server.log().clear();
                let fault = Fault::on(entry.seen.op, action.clone())
                    .of_class(&entry.seen.class)
                    .after(same_before);
                server.fault(if is_lasting { fault.always() } else { fault });
                let outcome = scenario.step.run(&leases, &saved).await;
                leases.drain().await;
                let label = entry.seen.label();
                let context = format!(
                    "{quirks:?} {scenario:?} {label}#{same_before} {action:?} lasting: {is_lasting}"
                );
                let labels = server.log().entries();
                let labels: Vec<_> = labels.iter().map(|entry| entry.seen.label()).collect();
                check(&server, &store, scenario, &saved, outcome, &context).await;
                let mut coverage = coverage.lock().unwrap();
                coverage.seen.extend(labels);
                coverage.hit.insert(label);
                runs += 1;
            }
        }
    }
    runs
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn every_request_of_a_lease_under_every_fault(
    #[values(Step::Prepare, Step::Commit, Step::Release)] step: Step,
    #[values(Before::Cold, Before::Warm, Before::Behind)] before: Before,
    #[values(Quirks::AWS, Quirks::MINIO)] quirks: Quirks,
) {
    let coverage = Mutex::new(Coverage::default());
    let runs = run(quirks, &Scenario { step, before }, &coverage).await;
    let coverage = coverage.into_inner().unwrap();
    assert!(runs >= 20, "{runs}");
    assert!(coverage.hit.contains("put:j"));
    let missed: Vec<_> = coverage.seen.difference(&coverage.hit).collect();
    // What only a fault brings about (the read after a 412) is hit where it belongs to the plain way.
    let expected = ["get:j", "list:j", "list:k", "get:k", "put:k"];
    assert!(
        missed
            .iter()
            .all(|label| expected.contains(&label.as_str())),
        "never under a fault: {missed:?}"
    );
}
