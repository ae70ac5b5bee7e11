//! Removes what an attestation made: objects, their versions and markers, uploads.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::Mode;
use super::prober::{Prober, settled};
use crate::store::keys::Key;
use crate::store::{DeleteFence, ListRequest, StoreError, VersionId, paging};

/// Deletes on the wire at once.
const IN_FLIGHT: usize = 16;

/// Passes over what is listed: a put that was still under way may land behind the first one.
const PASSES: usize = 3;

/// Pages of the probe prefix that are looked through; more are other attestations' leftovers.
const MAX_PAGES: usize = 10;

/// Removes everything that was made; answers how much of it is left, as far as that can be seen.
pub(super) async fn clean(prober: &Prober<'_>, mode: Mode, until: Instant) -> u64 {
    let keys = prober.keys();
    if keys.is_empty() {
        return 0;
    }
    let uploads = prober.uploads();
    let aborts = uploads.iter().map(|upload| async move {
        let abort = settled(|| prober.store(0).abort_upload(upload));
        let ended = tokio::time::timeout_at(until, abort).await;
        u64::from(!matches!(ended, Ok(Ok(()))))
    });
    let mut left: u64 = futures_util::future::join_all(aborts).await.iter().sum();
    left += match mode {
        Mode::Enabled | Mode::Suspended => versions(prober, &keys, until)
            .await
            .unwrap_or(keys.len() as u64),
        Mode::NeverEnabled => objects(prober, keys, until).await,
        // These are our own scratch keys. What is listed after their deletes shows that there are versions.
        Mode::Unknown => {
            let objects = objects(prober, keys.clone(), until).await;
            objects + versions(prober, &keys, until).await.unwrap_or(0)
        }
    };
    left
}

async fn objects(prober: &Prober<'_>, mut keys: BTreeSet<String>, until: Instant) -> u64 {
    for _ in 0..PASSES {
        let targets = keys.iter().map(|key| (key.clone(), DeleteFence::None));
        let failed = delete_all(prober, targets.collect(), until).await;
        let listed = tokio::time::timeout_at(until, listed_objects(prober, &keys)).await;
        keys = match listed {
            Ok(Ok(left)) => left,
            // Unseen is not removed: what was not acknowledged counts as left.
            Ok(Err(_)) | Err(_) => return failed,
        };
        if keys.is_empty() {
            return 0;
        }
    }
    keys.len() as u64
}

/// Deletes every version that is listed; answers how many are left, `None` where none can be listed.
async fn versions(prober: &Prober<'_>, keys: &BTreeSet<String>, until: Instant) -> Option<u64> {
    let mut left = 0;
    for _ in 0..PASSES {
        let listed = tokio::time::timeout_at(until, listed_versions(prober, keys)).await;
        let Ok(Ok(found)) = listed else {
            return None;
        };
        if found.is_empty() {
            return Some(0);
        }
        let targets = found
            .into_iter()
            .map(|(key, id)| (key, DeleteFence::Version(id)));
        left = delete_all(prober, targets.collect(), until).await;
    }
    Some(left)
}

/// Deletes side by side; answers how many deletes were not acknowledged.
async fn delete_all(
    prober: &Prober<'_>,
    targets: Vec<(String, DeleteFence)>,
    until: Instant,
) -> u64 {
    stream::iter(targets.into_iter().enumerate())
        .map(|(turn, (key, fence))| async move {
            let Ok(key) = Key::parse(key) else {
                return 1;
            };
            let permission = match fence {
                DeleteFence::Version(_) => "s3:DeleteObjectVersion",
                DeleteFence::None | DeleteFence::IfMatch(_) => "s3:DeleteObject",
            };
            let delete = settled(|| prober.store(turn).delete(&key, fence.clone()));
            match tokio::time::timeout_at(until, delete).await {
                Ok(Ok(_)) => 0,
                Ok(Err(error)) => {
                    prober.trouble(permission, &error);
                    1
                }
                Err(_) => 1,
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .fold(0, |sum, failed| async move { sum + failed })
        .await
}

async fn listed_objects(
    prober: &Prober<'_>,
    keys: &BTreeSet<String>,
) -> Result<BTreeSet<String>, StoreError> {
    let request = ListRequest {
        prefix: prober.target.keys.probes(),
        ..ListRequest::default()
    };
    let mut pages = paging::list(prober.store(0).as_ref(), request);
    let mut found = BTreeSet::new();
    for _ in 0..MAX_PAGES {
        let Some(page) = pages.next_page().await? else {
            break;
        };
        let ours = page.objects.into_iter().map(|object| object.key);
        found.extend(ours.filter(|key| keys.contains(key)));
    }
    Ok(found)
}

async fn listed_versions(
    prober: &Prober<'_>,
    keys: &BTreeSet<String>,
) -> Result<Vec<(String, VersionId)>, StoreError> {
    let prefix = prober.target.keys.probes();
    let mut pages = paging::list_versions(prober.store(0).as_ref(), &prefix);
    let mut found = Vec::new();
    for _ in 0..MAX_PAGES {
        let Some(page) = pages.next_page().await? else {
            break;
        };
        let ours = page.versions.into_iter().filter(|v| keys.contains(&v.key));
        found.extend(ours.map(|version| (version.key, version.version_id)));
    }
    Ok(found)
}
