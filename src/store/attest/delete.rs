//! Deletes and their fences: whether a late delete can take a newer object.

use futures_util::future::join_all;

use super::Check;
use super::prober::{Prober, Step, settled};
use crate::store::keys::Key;
use crate::store::{
    DeleteFence, DeleteReceipt, ETag, StoreError, StoreErrorKind, VersionId, paging,
};

/// Races of stale deletes against an overwrite, and deletes in each.
const RACES: usize = 6;
const DELETES: usize = 3;

/// A version id that no store gives; several servers delete the current object on it.
const NO_VERSION: &str = "00000000000000000000000000000000";

/// Deletes without a condition, twice.
pub(super) async fn plain(prober: &Prober<'_>) -> Step {
    let (key, body) = (prober.key(), prober.body());
    prober.set(0, &key, &body).await?;
    for turn in 1..3 {
        prober.remove(turn, &key).await?;
        if prober.read_absent(turn + 1, &key).await?.is_some() {
            return Err(Check::failed("an object is there after its delete"));
        }
    }
    Ok(Check::passed("deleted, and again"))
}

async fn fenced(
    prober: &Prober<'_>,
    turn: usize,
    key: &Key,
    etag: &ETag,
) -> Result<DeleteReceipt, StoreError> {
    let fence = DeleteFence::IfMatch(etag.clone());
    settled(|| prober.store(turn).delete(key, fence.clone())).await
}

/// A stale `If-Match` is refused and the object stays; the right one deletes; a missing key is noted.
pub(super) async fn if_match(prober: &Prober<'_>) -> Step {
    let (key, old, new) = (prober.key(), prober.body(), prober.body());
    let stale = prober.set(0, &key, &old).await?.etag;
    let current = prober.set(0, &key, &new).await?.etag;
    let answer = fenced(prober, 1, &key, &stale).await;
    let is_kept = prober.read_absent(0, &key).await?.as_ref() == Some(&new);
    match answer {
        Ok(_) if is_kept => {
            return Err(Check::failed(
                "a stale If-Match was answered as a success, though the object is still there",
            ));
        }
        Ok(_) => return Err(Check::failed("a stale If-Match deleted the object")),
        Err(_) if !is_kept => {
            return Err(Check::failed(
                "a stale If-Match was refused, and the object is gone all the same",
            ));
        }
        Err(error) if error.is(StoreErrorKind::PreconditionFailed) => {}
        Err(error) if error.is(StoreErrorKind::Rejected) => {
            return Err(Check::unsupported(format!(
                "DELETE If-Match is refused: {}",
                error.detail
            )));
        }
        Err(error) => return Err(prober.trouble("s3:DeleteObject", &error)),
    }
    match fenced(prober, 1, &key, &current).await {
        Ok(_) => {}
        Err(error) if error.is(StoreErrorKind::PreconditionFailed) => {
            // Its own repetition may have met an absent key.
            if prober.read_absent(0, &key).await?.is_some() {
                return Err(Check::failed("the right ETag does not delete"));
            }
        }
        Err(error) => return Err(prober.trouble("s3:DeleteObject", &error)),
    }
    if prober.read_absent(0, &key).await?.is_some() {
        return Err(Check::failed("the object is there after a fenced delete"));
    }
    let missing = match fenced(prober, 1, &key, &current).await {
        Ok(_) => "success".to_owned(),
        Err(error) => format!("{:?}", error.kind),
    };
    Ok(Check::passed(format!(
        "a stale ETag is refused, the right one deletes; a missing key: {missing}"
    )))
}

/// Deletes by the old ETag race an overwrite: whoever comes first, the acknowledged overwrite stays.
pub(super) async fn race(prober: &Prober<'_>) -> Step {
    for round in 0..RACES {
        let (key, old, new) = (prober.key(), prober.body(), prober.body());
        let stale = prober.set(round, &key, &old).await?.etag;
        let overwrite = prober.set(round, &key, &new);
        let deletes = (0..DELETES).map(|turn| {
            let fence = DeleteFence::IfMatch(stale.clone());
            let key = &key;
            // Once each: a repetition would come after the overwrite and race nothing.
            async move { prober.store(round + turn + 1).delete(key, fence).await }
        });
        // Half of the races begin with the deletes.
        let (overwritten, _) = if round % 2 == 0 {
            futures_util::join!(overwrite, join_all(deletes))
        } else {
            let (deleted, overwritten) = futures_util::join!(join_all(deletes), overwrite);
            (overwritten, deleted)
        };
        overwritten?;
        if prober.read_absent(round + 1, &key).await?.as_ref() != Some(&new) {
            return Err(Check::failed(format!(
                "a stale delete took an acknowledged overwrite in race {} of {RACES}",
                round + 1
            )));
        }
    }
    Ok(Check::passed(format!(
        "no acknowledged write lost in {RACES} races"
    )))
}

async fn delete_version(prober: &Prober<'_>, key: &Key, id: &VersionId) -> Step<()> {
    let fence = DeleteFence::Version(id.clone());
    settled(|| prober.store(1).delete(key, fence.clone()))
        .await
        .map(drop)
        .map_err(|error| prober.trouble("s3:DeleteObjectVersion", &error))
}

async fn versions(prober: &Prober<'_>, key: &Key) -> Step<Vec<VersionId>> {
    let mut pages = paging::list_versions(prober.store(1).as_ref(), key.as_str());
    let mut found = Vec::new();
    let trouble = |error: StoreError| prober.trouble("s3:ListBucketVersions", &error);
    while let Some(page) = pages.next_page().await.map_err(trouble)? {
        let ours = page.versions.into_iter().filter(|v| v.key == key.as_str());
        found.extend(ours.map(|version| version.version_id));
    }
    Ok(found)
}

/// In a bucket that keeps versions: the old version goes, the newer one stays, then that goes too.
pub(super) async fn old_version(prober: &Prober<'_>) -> Step {
    let (key, old, new) = (prober.key(), prober.body(), prober.body());
    let first = prober.set(0, &key, &old).await?.version_id;
    let second = prober.set(0, &key, &new).await?.version_id;
    let (Some(first), Some(second)) = (first, second) else {
        return Err(Check::failed("writes are not answered with a version id"));
    };
    if first == second {
        return Err(Check::failed("two writes have the same version id"));
    }
    delete_version(prober, &key, &first).await?;
    if prober.read_absent(0, &key).await?.as_ref() != Some(&new) {
        return Err(Check::failed(
            "deleting the old version took the newer object",
        ));
    }
    let left = versions(prober, &key).await?;
    if left != [second.clone()] {
        return Err(Check::failed(format!(
            "after the delete of the old version {} versions are listed instead of the newer one",
            left.len()
        )));
    }
    delete_version(prober, &key, &second).await?;
    let is_gone = prober.read_absent(0, &key).await?.is_none();
    if !is_gone || !versions(prober, &key).await?.is_empty() {
        return Err(Check::failed("a deleted version is still there"));
    }
    Ok(Check::passed("the old version goes, the newer one stays"))
}

/// In a bucket whose versioning is suspended: another id deletes nothing, `null` deletes the object.
pub(super) async fn null_version(prober: &Prober<'_>) -> Step {
    let (key, body) = (prober.key(), prober.body());
    prober.set(0, &key, &body).await?;
    // 204, 400 and 404 are all in order, as long as the object stays.
    let fence = DeleteFence::Version(VersionId(NO_VERSION.into()));
    let _ = prober.store(1).delete(&key, fence).await;
    if prober.read_absent(0, &key).await?.as_ref() != Some(&body) {
        return Err(Check::failed(
            "deleting a version that is not there took the object",
        ));
    }
    delete_version(prober, &key, &VersionId("null".into())).await?;
    let is_gone = prober.read_absent(0, &key).await?.is_none();
    if !is_gone || !versions(prober, &key).await?.is_empty() {
        return Err(Check::failed(
            "the version `null` is there after its delete",
        ));
    }
    Ok(Check::passed("only the named version goes"))
}
