//! Removing what collections and attestations left about themselves, when its time is over.
//!
//! Only keys that are exactly ours go, by the store's clock. Where the bucket keeps versions, each version
//! and marker goes by its own id: a probe that its writer deleted is still there as a version.

use std::time::Duration;

use serde::Serialize;

use crate::gc::classify::{Cutoff, LISTED_TIME_MARGIN};
use crate::gc::collector::Collector;
use crate::gc::remove::remove;
use crate::gc::status::Tally;
use crate::gc::unfinished::UnfinishedError;
use crate::limits::GC_EXPIRED_MOST;
use crate::store::keys::{Key, KeyClass};
use crate::store::{
    DeleteFence, ListRequest, StoreError, StoreErrorKind, VersionId, Versioning, paging,
};

/// What went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Expired {
    /// Objects of plans.
    pub plans: Tally,
    /// Reports.
    pub reports: Tally,
    /// Scratch objects.
    pub probes: Tally,
    /// What could not be removed now.
    pub failed: u64,
    /// Whether more is left for the next run.
    pub is_partial: bool,
}

impl Expired {
    fn add(&mut self, class: KeyClass, bytes: u64) {
        // Nothing but plans, reports and probes goes by age.
        let tally = if class == KeyClass::Plan {
            &mut self.plans
        } else if class == KeyClass::Report {
            &mut self.reports
        } else {
            &mut self.probes
        };
        tally.add(Tally { count: 1, bytes });
    }

    fn is_full(&self) -> bool {
        let removed = self.plans.count + self.reports.count + self.probes.count;
        removed + self.failed >= GC_EXPIRED_MOST
    }
}

/// Something that may have expired.
struct Aged {
    key: String,
    version: Option<VersionId>,
    size_bytes: u64,
    age_needed: Duration,
    last_modified: jiff::Timestamp,
}

impl Collector {
    /// Removes plans, reports and scratch objects whose time is over.
    ///
    /// # Errors
    /// The store's date cannot be believed, or a listing failed. What could not be removed is counted and
    /// left for the next run.
    pub async fn expire(&self) -> Result<Expired, UnfinishedError> {
        let cutoff = Cutoff {
            now: self.store_date().await?,
            orphan_ttl: Duration::ZERO,
        };
        let mut expired = Expired::default();
        let has_versions = self.store.versioning().await? != Versioning::NeverEnabled;
        for prefix in [self.keys.probes(), self.keys.gc_documents()] {
            if has_versions {
                self.expire_versions(&prefix, &cutoff, &mut expired).await?;
            } else {
                self.expire_objects(&prefix, &cutoff, &mut expired).await?;
            }
        }
        Ok(expired)
    }

    async fn expire_objects(
        &self,
        prefix: &str,
        cutoff: &Cutoff,
        expired: &mut Expired,
    ) -> Result<(), StoreError> {
        let request = ListRequest {
            prefix: prefix.to_owned(),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        while let Some(page) = pages.next_page().await? {
            for listed in page.objects {
                let Some(age_needed) = self.keys.expires_after(&listed.key) else {
                    continue;
                };
                let aged = Aged {
                    version: None,
                    size_bytes: listed.size_bytes,
                    last_modified: listed.last_modified,
                    key: listed.key,
                    age_needed,
                };
                self.expire_one(aged, cutoff, expired).await;
            }
        }
        Ok(())
    }

    async fn expire_versions(
        &self,
        prefix: &str,
        cutoff: &Cutoff,
        expired: &mut Expired,
    ) -> Result<(), StoreError> {
        let mut pages = paging::list_versions(&*self.store, prefix);
        while let Some(page) = pages.next_page().await? {
            for listed in page.versions {
                let Some(age_needed) = self.keys.expires_after(&listed.key) else {
                    continue;
                };
                let aged = Aged {
                    version: Some(listed.version_id),
                    size_bytes: listed.size_bytes,
                    last_modified: listed.last_modified,
                    key: listed.key,
                    age_needed,
                };
                self.expire_one(aged, cutoff, expired).await;
            }
        }
        Ok(())
    }

    async fn expire_one(&self, aged: Aged, cutoff: &Cutoff, expired: &mut Expired) {
        if !cutoff.is_older(aged.last_modified, LISTED_TIME_MARGIN, aged.age_needed) {
            return;
        }
        if expired.is_full() {
            expired.is_partial = true;
            return;
        }
        let Ok(key) = Key::parse(aged.key.as_str()) else {
            return;
        };
        let removed = match aged.version {
            None => remove(&*self.store, &key, self.fence).await.map(|_| ()),
            Some(version) => {
                let deleted = self.store.delete(&key, DeleteFence::Version(version)).await;
                deleted.map(|_| ())
            }
        };
        match removed {
            Ok(()) => expired.add(self.keys.class_of(&aged.key), aged.size_bytes),
            Err(error) if error.is(StoreErrorKind::NotFound) => {}
            Err(error) => {
                tracing::warn!("an expired object stays for the next run: {error}");
                expired.failed += 1;
            }
        }
    }
}
