//! The first word with each endpoint: whether it answers at all, and what time it has there.

use std::time::Duration;

use jiff::Timestamp;

use super::diagnose::{Cause, Diagnosis, diagnose};
use super::prober::Prober;
use super::{Check, ClockReading, Endpoint};
use crate::store::keys::Key;
use crate::store::{Payload, PutMode, StoreError, StoreErrorKind, Versioning};

/// Tries of the first word, and the pause between them.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// How the first word ended.
pub(super) enum Contact {
    /// Every endpoint took an object.
    Reached {
        clocks: Vec<ClockReading>,
        date: Option<Timestamp>,
    },
    /// The store is there, but these credentials may not write.
    MayNotWrite(Check),
    /// An endpoint cannot be used; one is enough, since what is attested is all of them together.
    Unreachable(Diagnosis),
}

/// Writes one object through each endpoint, all at once. A put, since it is sent once where reads are
/// repeated, so that a dead endpoint is told after one connection timeout.
pub(super) async fn contact_all(prober: &Prober<'_>) -> Contact {
    if prober.target.endpoints.is_empty() {
        return Contact::Unreachable(Diagnosis::no_endpoint());
    }
    let words = prober.target.endpoints.iter().map(|e| contact(prober, e));
    let mut clocks = Vec::new();
    let mut first_date = None;
    let answers = futures_util::future::join_all(words).await;
    for (answer, endpoint) in answers.into_iter().zip(&prober.target.endpoints) {
        match answer {
            Ok((ahead_ms, date)) => {
                first_date = first_date.or(date);
                clocks.push(ClockReading {
                    endpoint: endpoint.name.clone(),
                    ahead_ms,
                });
            }
            Err(error) => {
                let diagnosis = diagnose(&error);
                if diagnosis.cause == Cause::Permission {
                    return Contact::MayNotWrite(prober.trouble("s3:PutObject", &error));
                }
                return Contact::Unreachable(diagnosis.at(&endpoint.name));
            }
        }
    }
    Contact::Reached {
        clocks,
        date: first_date,
    }
}

async fn contact(
    prober: &Prober<'_>,
    endpoint: &Endpoint,
) -> Result<(Option<i64>, Option<Timestamp>), StoreError> {
    let (key, body) = (prober.key(), prober.body());
    let put = || async {
        let sent = prober.clock.now();
        let payload = Payload::from(body.clone());
        let receipt = endpoint
            .store
            .put(&key, payload, PutMode::Overwrite)
            .await?;
        Ok::<_, StoreError>((sent, receipt))
    };
    let answer = patiently(prober, &key, put).await;
    if answer
        .as_ref()
        .is_err_and(|error| !error.kind.is_undecided())
    {
        prober.forget_key(&key);
    }
    let (sent, receipt) = answer?;
    let received = prober.clock.now();
    let ahead_ms = receipt.date.map(|date| ahead_ms(date, sent, received));
    Ok((ahead_ms, receipt.date))
}

/// Sends the first put, and again where something answered or broke at once: one hiccup must not stop a
/// service from starting. What cannot be connected to is not asked twice, since the deadline is for it.
async fn patiently<T, F>(
    prober: &Prober<'_>,
    key: &Key,
    put: impl Fn() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let kind = StoreErrorKind::Ambiguous;
    let mut last = StoreError::new(kind, "put", key, "no reply in time");
    for _ in 0..TRIES {
        match tokio::time::timeout_at(prober.until, put()).await {
            Ok(Err(error)) if error.kind.is_undecided() => last = error,
            Ok(result) => return result,
            Err(_) => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(last)
}

/// How far the store is ahead. Its date was true at some time between sending and receiving: what lies
/// between is no difference. Dates show whole seconds, so up to one second behind is none either.
fn ahead_ms(date: Timestamp, sent: Timestamp, received: Timestamp) -> i64 {
    let date = date.as_millisecond();
    let (earliest, latest) = (sent.as_millisecond() - 999, received.as_millisecond());
    if date < earliest {
        date - earliest
    } else if date > latest {
        date - latest
    } else {
        0
    }
}

/// Asks whether the bucket keeps versions.
pub(super) async fn versioning(prober: &Prober<'_>) -> (Option<Versioning>, Check) {
    let store = prober.store(0);
    match tokio::time::timeout_at(prober.until, store.versioning()).await {
        Ok(Ok(versioning)) => {
            let said = match versioning {
                Versioning::NeverEnabled => "never enabled",
                Versioning::Enabled => "enabled",
                Versioning::Suspended => "suspended",
            };
            (Some(versioning), Check::passed(said))
        }
        Ok(Err(error)) => (None, prober.trouble("s3:GetBucketVersioning", &error)),
        Err(_) => (None, Check::unknown("not answered in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_differs_by_what_the_request_does_not_explain() {
        let at = |millis: i64| Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap();
        let (sent, received) = (at(500), at(2_500));
        for (date, want) in [
            (0, 0),
            (1_000, 0),
            (2_000, 0),
            (3_000, 500),
            (-2_000, -1_501),
        ] {
            assert_eq!(ahead_ms(at(date), sent, received), want, "{date}");
        }
    }
}
