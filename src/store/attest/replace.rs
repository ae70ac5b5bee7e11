//! Puts with `If-Match`. No save rests on them; what the store does is told all the same.

use bytes::Bytes;
use futures_util::future::join_all;

use super::Check;
use super::prober::{Prober, Step};
use crate::store::keys::Key;
use crate::store::{
    ETag, GetOptions, GetReply, Payload, PutMode, PutReceipt, StoreError, StoreErrorKind,
};

/// Workers of the compare-and-swap race, and what each adds.
const WORKERS: usize = 5;
const STEPS: usize = 3;

/// Tries of one step: each failure means that another worker went on, of whom there are few.
const MAX_TRIES: usize = 60;

async fn replace(
    prober: &Prober<'_>,
    key: &Key,
    body: &Bytes,
    etag: &ETag,
) -> Result<PutReceipt, StoreError> {
    let mode = PutMode::ReplaceIfMatch(etag.clone());
    let payload = Payload::from(body.clone());
    prober.store(1).put(key, payload, mode).await
}

/// The right ETag replaces; a stale one and a missing key do not.
pub(super) async fn one_by_one(prober: &Prober<'_>) -> Step {
    let key = prober.key();
    let bodies = [prober.body(), prober.body(), prober.body()];
    let first = prober.set(0, &key, &bodies[0]).await?.etag;
    match replace(prober, &key, &bodies[1], &first).await {
        Ok(_) => {}
        Err(error) if error.is(StoreErrorKind::PreconditionFailed) => {
            return Err(Check::failed("the right ETag is refused"));
        }
        Err(error) => return Err(prober.trouble("s3:PutObject", &error)),
    }
    if prober.read(0, &key).await?.as_ref() != Some(&bodies[1]) {
        return Err(Check::failed(
            "a replacement with the right ETag is not there",
        ));
    }
    let stale = replace(prober, &key, &bodies[2], &first).await;
    if prober.read(0, &key).await?.as_ref() != Some(&bodies[1]) {
        return Err(Check::failed("a stale ETag replaced the object"));
    }
    refused(prober, stale, "a stale ETag")?;
    let absent = prober.key();
    let missing = replace(prober, &absent, &bodies[2], &first).await;
    if prober.read_absent(0, &absent).await?.is_some() {
        return Err(Check::failed("an ETag created a missing key"));
    }
    refused(prober, missing, "an ETag for a missing key")?;
    Ok(Check::passed("only the right ETag replaces"))
}

fn refused(prober: &Prober<'_>, result: Result<PutReceipt, StoreError>, what: &str) -> Step<()> {
    match result {
        Ok(_) => Err(Check::failed(format!("{what} was answered as a success"))),
        Err(error)
            if matches!(
                error.kind,
                StoreErrorKind::PreconditionFailed | StoreErrorKind::Conflict
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(prober.trouble("s3:PutObject", &error)),
    }
}

/// Workers count up one object by compare-and-swap; the count must be exact.
pub(super) async fn race(prober: &Prober<'_>) -> Step {
    let key = prober.key();
    prober.set(0, &key, &Bytes::from_static(b"0:start")).await?;
    let workers = WORKERS.min(prober.options.contenders);
    let counting = (0..workers).map(|worker| {
        let key = &key;
        async move {
            for step in 0..STEPS {
                count_up(prober, worker, key, &format!("{worker}-{step}")).await?;
            }
            Ok(())
        }
    });
    let results: Vec<Step<()>> = join_all(counting).await;
    results.into_iter().collect::<Step<Vec<()>>>()?;
    let want = workers * STEPS;
    let content = prober.read(0, &key).await?.unwrap_or_default();
    match parse(&content) {
        Some((count, _)) if count == want => Ok(Check::passed(format!(
            "{workers} workers counted to {want}"
        ))),
        Some((count, _)) => Err(Check::failed(format!(
            "{workers} workers were told {want} times that they had counted up; the count is {count}"
        ))),
        None => Err(Check::failed("the counted object holds foreign bytes")),
    }
}

/// Reads `COUNT:NONCE`; the nonce keeps the bytes, and so the ETag, of every state apart.
fn parse(content: &[u8]) -> Option<(usize, &str)> {
    let (count, nonce) = std::str::from_utf8(content).ok()?.split_once(':')?;
    Some((count.parse().ok()?, nonce))
}

async fn count_up(prober: &Prober<'_>, worker: usize, key: &Key, nonce: &str) -> Step<()> {
    let store = prober.store(worker);
    for _ in 0..MAX_TRIES {
        let reply = store.get(key, GetOptions::default()).await;
        let object = match reply.map_err(|error| prober.trouble("s3:GetObject", &error))? {
            GetReply::Found(object) => object,
            GetReply::NotModified { .. } => {
                return Err(Check::failed("a read without a condition answered 304"));
            }
        };
        let etag = object.meta.etag.clone();
        let pieces: Vec<Bytes> = futures_util::TryStreamExt::try_collect(object.body)
            .await
            .map_err(|error: StoreError| prober.trouble("s3:GetObject", &error))?;
        let content = pieces.concat();
        let Some((count, last)) = parse(&content) else {
            return Err(Check::failed("the counted object holds foreign bytes"));
        };
        if last == nonce {
            return Ok(()); // A request of ours whose reply said nothing took effect after all.
        }
        let payload = Payload::from(format!("{}:{nonce}", count + 1));
        match store.put(key, payload, PutMode::ReplaceIfMatch(etag)).await {
            Ok(_) => return Ok(()),
            Err(error)
                if error.is(StoreErrorKind::PreconditionFailed) || error.kind.is_transient() => {}
            Err(error) => return Err(prober.trouble("s3:PutObject", &error)),
        }
    }
    Err(Check::unknown("compare-and-swap did not come through"))
}
