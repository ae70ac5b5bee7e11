//! Whether what was acknowledged is seen at once, on every endpoint and in listings. Erase, and every
//! comparison after a refusal, rest on it.

use super::Check;
use super::prober::{Prober, Step, fetch};
use crate::store::{GetOptions, ListRequest, StoreErrorKind, VersionId, Versioning};

/// Overwrites that are read back.
const ROUNDS: usize = 3;

/// Reads after writes and after a delete see them.
pub(super) async fn read(prober: &Prober<'_>) -> Step {
    let key = prober.key();
    for round in 0..ROUNDS {
        let body = prober.body();
        let receipt = prober.set(round, &key, &body).await?;
        for turn in 0..prober.target.endpoints.len() {
            let seen = prober.read(round + turn + 1, &key).await?;
            if seen.as_ref() != Some(&body) {
                return Err(Check::failed("a read missed the write before it"));
            }
        }
        let head = prober.store(round + 1).head(&key).await;
        let meta = head
            .map_err(|error| prober.trouble("s3:GetObject", &error))?
            .meta;
        if meta.etag != receipt.etag || meta.size_bytes != body.len() as u64 {
            return Err(Check::failed("a HEAD missed the write before it"));
        }
    }
    prober.remove(0, &key).await?;
    for turn in 0..prober.target.endpoints.len() {
        if prober.read_absent(turn + 1, &key).await?.is_some() {
            return Err(Check::failed("a read brought a deleted object"));
        }
    }
    Ok(Check::passed("writes and deletes are seen at once"))
}

/// Listings after a write and after a delete see them; of versions too where there are some.
pub(super) async fn list(prober: &Prober<'_>, versioning: Option<Versioning>) -> Step {
    let (key, body) = (prober.key(), prober.body());
    let receipt = prober.set(0, &key, &body).await?;
    for turn in 0..prober.target.endpoints.len() {
        if !is_listed(prober, turn + 1, key.as_str()).await? {
            return Err(Check::failed("a listing missed the write before it"));
        }
    }
    let keeps_versions = matches!(
        versioning,
        Some(Versioning::Enabled | Versioning::Suspended)
    );
    if keeps_versions {
        let page = prober.store(1).list_versions(key.as_str(), None).await;
        let page = page.map_err(|error| prober.trouble("s3:ListBucketVersions", &error))?;
        let wanted = VersionId::generation(receipt.version_id.as_ref());
        let is_there = page.versions.iter().any(|version| {
            version.key == key.as_str()
                && version.is_latest
                && VersionId::generation(Some(&version.version_id)) == wanted
        });
        if !is_there {
            return Err(Check::failed(
                "a listing of versions missed the write before it",
            ));
        }
    }
    prober.remove(0, &key).await?;
    for turn in 0..prober.target.endpoints.len() {
        if is_listed(prober, turn + 1, key.as_str()).await? {
            return Err(Check::failed("a listing shows a deleted object"));
        }
    }
    Ok(Check::passed("listings see writes and deletes at once"))
}

async fn is_listed(prober: &Prober<'_>, turn: usize, key: &str) -> Step<bool> {
    let request = ListRequest {
        prefix: key.to_owned(),
        max_keys: Some(2),
        ..ListRequest::default()
    };
    let page = prober.store(turn).list(&request).await;
    let page = page.map_err(|error| prober.trouble("s3:ListBucket", &error))?;
    Ok(page.objects.iter().any(|object| object.key == key))
}

/// A conditional read of an unchanged object answers 304: what keeps cached manifests cheap.
pub(super) async fn unchanged(prober: &Prober<'_>) -> Step {
    let (key, body) = (prober.key(), prober.body());
    let etag = prober.set(0, &key, &body).await?.etag;
    let options = GetOptions {
        if_none_match: Some(etag),
        ..GetOptions::default()
    };
    match fetch(prober.store(1), &key, options).await {
        Ok(None) => Ok(Check::passed("304")),
        Ok(Some(_)) => Err(Check::failed("the whole object came instead of a 304")),
        Err(error) => Err(prober.trouble("s3:GetObject", &error)),
    }
}

/// A conditional read of a changed or deleted object must never say "unchanged": what keeps reads true.
pub(super) async fn changed(prober: &Prober<'_>) -> Step {
    let (key, old, new) = (prober.key(), prober.body(), prober.body());
    let etag = prober.set(0, &key, &old).await?.etag;
    prober.set(0, &key, &new).await?;
    let options = GetOptions {
        if_none_match: Some(etag),
        ..GetOptions::default()
    };
    match fetch(prober.store(1), &key, options.clone()).await {
        Ok(Some(bytes)) if bytes == new => {}
        Ok(Some(_)) => return Err(Check::failed("a changed object came with its old bytes")),
        Ok(None) => return Err(Check::failed("304 for an object that has changed")),
        Err(error) => return Err(prober.trouble("s3:GetObject", &error)),
    }
    prober.remove(0, &key).await?;
    match fetch(prober.store(1), &key, options).await {
        Err(error) if error.is(StoreErrorKind::NotFound) => {
            Ok(Check::passed("changes and deletes are told"))
        }
        Ok(_) => Err(Check::failed(
            "a deleted object is read, or called unchanged",
        )),
        Err(error) => Err(prober.trouble("s3:ListBucket", &error)),
    }
}
