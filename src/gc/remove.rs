//! Removing an object with everything that the bucket keeps of it.
//!
//! **Versioning may be switched while data is there**, so it is read in the same operation. Only where
//! the store says *never enabled* a plain delete is sent, with the strongest fence that the store was
//! seen to honour; else each listed version goes by its id, the current one last, so that no older one
//! comes to light in between. Where one of these calls is denied or its answer unknown, nothing is sent.

use crate::lease::entry::DeleteOutcome;
use crate::store::attest::Fence;
use crate::store::keys::Key;
use crate::store::register::Attempts;
use crate::store::{
    DeleteFence, ListedVersion, ObjectStore, StoreError, StoreErrorKind, Versioning, paging,
};

/// Removes whatever stands at `key`, every version and marker of it.
///
/// Who calls this knows that the key is never used again and that its bytes must go, whatever they are:
/// an object that is replaced in between goes as well.
///
/// # Errors
/// The store's; what was not removed is found by the next sweep.
pub async fn remove(
    store: &dyn ObjectStore,
    key: &Key,
    fence: Fence,
) -> Result<DeleteOutcome, StoreError> {
    let mut attempts = Attempts::new();
    loop {
        match remove_once(store, key, fence).await {
            Err(error) if error.kind.is_transient() && attempts.pause().await => {}
            // The object changed between the look and the delete: look again.
            Err(error)
                if error.is(StoreErrorKind::PreconditionFailed) && attempts.pause().await => {}
            other => return other,
        }
    }
}

async fn remove_once(
    store: &dyn ObjectStore,
    key: &Key,
    fence: Fence,
) -> Result<DeleteOutcome, StoreError> {
    match store.versioning().await? {
        Versioning::NeverEnabled => remove_only(store, key, fence).await,
        Versioning::Enabled | Versioning::Suspended => {
            let versions = versions_of(store, key).await?;
            let found = !versions.is_empty();
            let (current, older): (Vec<_>, Vec<_>) =
                versions.into_iter().partition(|version| version.is_latest);
            for version in older.into_iter().chain(current) {
                remove_version(store, key, version).await?;
            }
            Ok(outcome(found))
        }
    }
}

async fn remove_only(
    store: &dyn ObjectStore,
    key: &Key,
    fence: Fence,
) -> Result<DeleteOutcome, StoreError> {
    let etag = match store.head(key).await {
        Ok(head) => head.meta.etag,
        Err(error) if error.is(StoreErrorKind::NotFound) => return Ok(outcome(false)),
        Err(error) => return Err(error),
    };
    let fence = match fence {
        Fence::IfMatch => DeleteFence::IfMatch(etag),
        // There are no versions to name here.
        Fence::VersionId | Fence::None => DeleteFence::None,
    };
    store.delete(key, fence).await?;
    Ok(outcome(true))
}

const fn outcome(found: bool) -> DeleteOutcome {
    if found {
        DeleteOutcome::Deleted
    } else {
        DeleteOutcome::AlreadyMissing
    }
}

/// Removes every version of `key` but the current one.
///
/// # Errors
/// The store's; and [`StoreErrorKind::Rejected`] where the listing names no current version, since then
/// it cannot be told which one has to stay.
pub async fn remove_older_versions(store: &dyn ObjectStore, key: &Key) -> Result<(), StoreError> {
    if store.versioning().await? == Versioning::NeverEnabled {
        return Ok(());
    }
    let versions = versions_of(store, key).await?;
    if versions.iter().filter(|version| version.is_latest).count() != 1 {
        let detail = "the listing of versions does not say which one is current";
        let kind = StoreErrorKind::Rejected;
        return Err(StoreError::new(kind, "list versions", key, detail));
    }
    for version in versions.into_iter().filter(|version| !version.is_latest) {
        remove_version(store, key, version).await?;
    }
    Ok(())
}

async fn remove_version(
    store: &dyn ObjectStore,
    key: &Key,
    version: ListedVersion,
) -> Result<(), StoreError> {
    let fence = DeleteFence::Version(version.version_id);
    match store.delete(key, fence).await {
        Ok(_) => Ok(()),
        // Another collector was faster.
        Err(error) if error.is(StoreErrorKind::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn versions_of(store: &dyn ObjectStore, key: &Key) -> Result<Vec<ListedVersion>, StoreError> {
    let mut pages = paging::list_versions(store, key.as_str());
    let mut versions = Vec::new();
    while let Some(page) = pages.next_page().await? {
        let own = page.versions.into_iter();
        versions.extend(own.filter(|version| version.key == key.as_str()));
    }
    Ok(versions)
}
