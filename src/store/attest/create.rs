//! Create-if-absent: what everything in this product rests on.

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::{Duration, Instant, timeout, timeout_at};

use super::contest::{Answer, Contender, Ruling, judge};
use super::prober::{Prober, Step};
use super::{Check, Outcome};
use crate::limits;
use crate::store::probe::{Hold, ProbePut};
use crate::store::{Payload, PutMode, PutReceipt, StoreError, StoreErrorKind};

/// Body of the slow writer: large enough that its halves travel apart.
const SLOW_BODY_BYTES: usize = 64 << 10;

/// Wait until a held-back body should have reached the server.
const SETTLE: Duration = Duration::from_millis(50);

/// How long the fast writer may stay unanswered before the slow one goes on: some servers hold the
/// key's lock while a body arrives, and answer the fast one only then.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a race waits for all its held-back bodies to be under way.
const GATHER: Duration = Duration::from_millis(250);

/// Every so many races the last byte of each body comes late.
const LATE_EVERY: usize = 7;

/// Tries of the slow writer whose end was unclear.
const SLOW_TRIES: usize = 2;

/// Creates a key twice: the second is refused and changes nothing.
pub(super) async fn twice(prober: &Prober<'_>) -> Step {
    let (key, first, second) = (prober.key(), prober.body(), prober.body());
    let create = |turn: usize, body: &Bytes| {
        let payload = Payload::from(body.clone());
        let store = prober.store(turn);
        let key = &key;
        async move { store.put(key, payload, PutMode::CreateIfAbsent).await }
    };
    if let Err(error) = super::prober::settled(|| create(0, &first)).await {
        match error.kind {
            // A repeated request met the one whose reply was lost; the content decides below.
            StoreErrorKind::AlreadyExists => {}
            StoreErrorKind::NotFound
            | StoreErrorKind::PreconditionFailed
            | StoreErrorKind::Conflict
            | StoreErrorKind::Ambiguous
            | StoreErrorKind::Denied
            | StoreErrorKind::Throttled
            | StoreErrorKind::Unavailable
            | StoreErrorKind::NotImplemented
            | StoreErrorKind::InvalidRange
            | StoreErrorKind::Full
            | StoreErrorKind::Rejected => return Err(prober.trouble("s3:PutObject", &error)),
        }
    }
    for turn in 0..prober.target.endpoints.len() {
        let again = super::prober::settled(|| create(turn, &second)).await;
        let content = prober.read(turn + 1, &key).await?;
        if content.as_ref() != Some(&first) {
            return Err(Check::failed(
                "a second create replaced the object that was there",
            ));
        }
        match again {
            Err(error) if error.is(StoreErrorKind::AlreadyExists) => {}
            Ok(_) => {
                return Err(Check::failed(
                    "a second create was answered as a success, though nothing was written",
                ));
            }
            Err(error) => return Err(prober.trouble("s3:PutObject", &error)),
        }
    }
    Ok(Check::passed("the second create was refused"))
}

/// Fewer contenders than this are configured only for stores that are slow with more.
const FEW_CONTENDERS: usize = 8;

fn is_late_round(round: usize) -> bool {
    round % LATE_EVERY == 1
}

/// Races many creators for one key after another, as far as the time for it reaches; answers how many
/// races had a clear end.
pub(super) async fn race(prober: &Prober<'_>) -> (Check, usize) {
    let until = prober
        .until
        .min(Instant::now() + limits::ATTEST_RACE_BUDGET);
    let wanted = limits::ATTEST_MIN_ROUNDS.min(prober.options.rounds);
    let (mut clear, mut late, mut unclear) = (0, 0, String::new());
    // A store that is raced by few is one that serialises the writers of a key by sleeping: its first
    // races, each for a key of its own, sleep side by side.
    let beside = if prober.options.contenders < FEW_CONTENDERS {
        wanted
    } else {
        0
    };
    let races = (0..beside).map(|round| {
        timeout_at(
            prober.until,
            Box::pin(one_race(prober, round, is_late_round(round))),
        )
    });
    let mut ended = join_all(races).await.into_iter();
    for round in 0..prober.options.rounds {
        // The first rounds are needed for any conclusion: they may take all the time there is.
        let limit = if clear < wanted { prober.until } else { until };
        let is_late = is_late_round(round);
        let end = match ended.next() {
            Some(end) => end,
            None => timeout_at(limit, Box::pin(one_race(prober, round, is_late))).await,
        };
        let Ok(raced) = end else {
            break;
        };
        match raced {
            Ok(Ruling::Fair) => {
                clear += 1;
                late += usize::from(is_late);
            }
            Ok(Ruling::Unfair(why)) => return (Check::failed(why), clear + 1),
            Ok(Ruling::Unclear(why)) => unclear = why,
            // The late form is a sharper tool; without it the others still tell.
            Err(check) if is_late && check.outcome == Outcome::Unsupported => {}
            Err(check) => return (check, clear),
        }
    }
    let contenders = prober.options.contenders;
    if clear < wanted {
        let why = format!(
            "only {clear} of {wanted} races of {contenders} writers had a clear end {unclear}"
        );
        return (Check::unknown(why.trim_end()), clear);
    }
    let said =
        format!("one winner in {clear} races of {contenders} writers, {late} with late bodies");
    (Check::passed(said), clear)
}

async fn one_race(prober: &Prober<'_>, round: usize, is_late: bool) -> Step<Ruling> {
    let key = prober.key();
    let bodies: Vec<Bytes> = (0..prober.options.contenders)
        .map(|_| prober.body())
        .collect();
    let mut reached = Vec::new();
    let mut releases = Vec::new();
    let mut puts = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let (store, key) = (prober.store(number + round), &key);
        let payload = Payload::from(body.clone());
        let hold = is_late.then(|| {
            let (hold, on_reached, release) = hold(body.len() - 1);
            reached.push(on_reached);
            releases.push(release);
            hold
        });
        puts.push(Box::pin(async move {
            match hold {
                None => store.put(key, payload, PutMode::CreateIfAbsent).await,
                Some(hold) => {
                    let probe = ProbePut {
                        payload,
                        hold: Some(hold),
                        claimed_crc32: None,
                    };
                    store.put_probe(key, probe, PutMode::CreateIfAbsent).await
                }
            }
        }));
    }
    let conductor = async move {
        // A server that holds the key's lock lets only one body begin.
        let _ = timeout(GATHER, join_all(reached)).await;
        tokio::time::sleep(SETTLE).await;
        drop(releases);
    };
    let (results, ()) = futures_util::join!(join_all(puts), conductor);
    if let Some(Err(error)) = results.iter().find(|result| is_unsupported(result)) {
        return Err(prober.trouble("s3:PutObject", error));
    }
    let content = prober.read(round, &key).await?;
    Ok(judge(&contenders(bodies, &results), content.as_deref()))
}

fn contenders(bodies: Vec<Bytes>, results: &[Result<PutReceipt, StoreError>]) -> Vec<Contender> {
    let answers = results.iter().map(Answer::of);
    let pairs = bodies.into_iter().zip(answers);
    pairs
        .map(|(body, answer)| Contender { body, answer })
        .collect()
}

fn is_unsupported(result: &Result<PutReceipt, StoreError>) -> bool {
    matches!(result, Err(error) if error.is(StoreErrorKind::NotImplemented))
}

fn hold(after_bytes: usize) -> (Hold, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (reached, on_reached) = oneshot::channel();
    let (release, on_release) = oneshot::channel();
    let hold = Hold {
        after_bytes,
        reached,
        release: on_release,
    };
    (hold, on_reached, release)
}

/// A sends half its body, B creates the key beside it, A finishes. A server that looks first and writes
/// later tells both that they won.
pub(super) async fn slow_writer(prober: &Prober<'_>) -> Step {
    let mut unclear = String::new();
    for _ in 0..SLOW_TRIES {
        match slow_and_fast(prober).await? {
            Ruling::Fair => {
                return Ok(Check::passed("exactly one of a slow and a fast writer won"));
            }
            Ruling::Unfair(why) => {
                return Err(Check::failed(format!("a slow and a fast writer: {why}")));
            }
            Ruling::Unclear(why) => unclear = why,
        }
    }
    Err(Check::unknown(unclear))
}

async fn slow_and_fast(prober: &Prober<'_>) -> Step<Ruling> {
    let (key, fast_body) = (prober.key(), prober.body());
    let mut slow_body = prober.body().to_vec();
    slow_body.resize(SLOW_BODY_BYTES, b'.');
    let slow_body = Bytes::from(slow_body);
    let (hold, on_reached, release) = hold(slow_body.len() / 2);
    let probe = ProbePut {
        payload: slow_body.clone().into(),
        hold: Some(hold),
        claimed_crc32: None,
    };
    let slow = prober
        .store(0)
        .put_probe(&key, probe, PutMode::CreateIfAbsent);
    let fast = async {
        let _ = timeout(PATIENCE, on_reached).await;
        tokio::time::sleep(SETTLE).await;
        let payload = Payload::from(fast_body.clone());
        let mut put = prober.store(1).put(&key, payload, PutMode::CreateIfAbsent);
        // Never wait for its answer first: where the slow one holds the lock it would not come.
        match timeout(PATIENCE, &mut put).await {
            Ok(result) => {
                drop(release);
                result
            }
            Err(_) => {
                drop(release);
                put.await
            }
        }
    };
    let (slow, fast) = futures_util::join!(slow, fast);
    if let Err(error) = &slow
        && matches!(
            error.kind,
            StoreErrorKind::NotImplemented | StoreErrorKind::Denied
        )
    {
        return Err(prober.trouble("s3:PutObject", error));
    }
    let content = prober.read(0, &key).await?;
    let contenders = contenders(vec![slow_body, fast_body], &[slow, fast]);
    Ok(judge(&contenders, content.as_deref()))
}
