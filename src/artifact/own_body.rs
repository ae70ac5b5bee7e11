//! What a save must remember of the body that it put under its own artifact id, and when it may take
//! that body back.
//!
//! A saver deletes its own body only when every record PUT that it ever sent for it is decided, none
//! names it, and no manifest for it was sent; and only as the last thing that the save does. In every
//! other case a record or a manifest may yet name the body, and the collector decides. (Modelled: the
//! early delete, the delete while a record is undecided, and the one after a manifest all lose data.)

use crate::ids::{ArtifactRef, Tenant};
use crate::store::keys::KeySpace;
use crate::store::{DeleteFence, ObjectStore, StoreError, Versioning, paging};

/// The history of a save's own artifact id.
#[derive(Debug)]
pub(super) struct OwnBody {
    /// The id.
    pub(super) artifact: ArtifactRef,
    was_put: bool,
    is_named: bool,
    has_undecided_record: bool,
    has_sent_manifest: bool,
}

impl OwnBody {
    /// Starts with nothing sent.
    pub(super) fn new(artifact: ArtifactRef) -> Self {
        Self {
            artifact,
            was_put: false,
            is_named: false,
            has_undecided_record: false,
            has_sent_manifest: false,
        }
    }

    /// A body PUT was sent.
    pub(super) fn put_body(&mut self) {
        self.was_put = true;
    }

    /// A decided record names it.
    pub(super) fn named(&mut self) {
        self.is_named = true;
    }

    /// A record PUT that names it stayed undecided.
    pub(super) fn record_undecided(&mut self) {
        self.has_undecided_record = true;
    }

    /// A manifest PUT was sent for it.
    pub(super) fn sent_manifest(&mut self) {
        self.has_sent_manifest = true;
    }

    /// Returns whether the save may delete this body as its last act.
    pub(super) fn may_be_taken_back(&self) -> bool {
        self.was_put && !self.is_named && !self.has_undecided_record && !self.has_sent_manifest
    }
}

/// Deletes every version of a body that nothing names.
///
/// Versioning may be switched while data is there, so it is read in the same operation: only a store
/// that says *never enabled* gets a plain delete; else each listed version goes by its id.
///
/// # Errors
/// The store denies or does not answer one of the calls; then nothing further was sent, and the
/// collector will find the body.
pub(super) async fn delete_body(
    store: &dyn ObjectStore,
    keys: &KeySpace,
    tenant: &Tenant,
    artifact: &ArtifactRef,
) -> Result<(), StoreError> {
    let key = keys.body(tenant, artifact);
    if store.versioning().await? == Versioning::NeverEnabled {
        store.delete(&key, DeleteFence::None).await?;
        return Ok(());
    }
    let mut pages = paging::list_versions(store, key.as_str());
    let mut versions = Vec::new();
    while let Some(page) = pages.next_page().await? {
        versions.extend(
            page.versions
                .into_iter()
                .filter(|version| version.key == key.as_str()),
        );
    }
    let (current, older): (Vec<_>, Vec<_>) =
        versions.into_iter().partition(|version| version.is_latest);
    // The current one last: until it goes, a plain read sees no older version come back.
    for version in older.into_iter().chain(current) {
        store
            .delete(&key, DeleteFence::Version(version.version_id))
            .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_back_only_when_nothing_can_name_it() {
        let artifact = "00000000000000000000000001.00000000000000000000000002"
            .parse()
            .unwrap();
        let acts: [fn(&mut OwnBody); 3] = [
            OwnBody::named,
            OwnBody::record_undecided,
            OwnBody::sent_manifest,
        ];
        for mask in 0..16_u8 {
            let mut own = OwnBody::new(artifact);
            if mask & 8 != 0 {
                own.put_body();
            }
            for (bit, act) in acts.iter().enumerate() {
                if mask & (1 << bit) != 0 {
                    act(&mut own);
                }
            }
            assert_eq!(own.may_be_taken_back(), mask == 8, "{mask:04b}");
        }
    }
}
