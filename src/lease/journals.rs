//! The open journals of a replica.

use std::fmt;
use std::sync::Arc;

use moka::future::Cache;
use tokio_util::task::TaskTracker;

use crate::clock::SharedClock;
use crate::digest::Sha256Digest;
use crate::ids::{SessionId, SharedIds, Tenant};
use crate::lease::evaluate::Operation;
use crate::lease::journal::{Answer, Journal, JournalError};
use crate::lease::open::{self, OpenError, Opened};
use crate::lease::site::{Site, Surroundings};
use crate::limits::{JOURNAL_IDLE, OPEN_JOURNALS};
use crate::store::keys::KeySpace;
use crate::store::{SharedStore, StoreError};

/// A bounded number of journals, opened when they are first asked for. Cheap to clone; clones share
/// the journals.
#[derive(Clone)]
pub struct Journals {
    around: Arc<Surroundings>,
    journals: Cache<(Tenant, SessionId), (Site, Journal)>,
}

impl fmt::Debug for Journals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journals")
            .field("around", &self.around)
            .finish_non_exhaustive()
    }
}

/// A journal folded from the checkpoint before the newest one, for work that destroys.
#[derive(Debug)]
pub struct DoubleRooted {
    /// The journal.
    pub opened: Opened,
    /// Whether nothing may be destroyed on its word.
    pub is_suspect: bool,
}

impl Journals {
    /// Works on `store` as one writer of its journals.
    pub fn new(store: SharedStore, keys: KeySpace, clock: SharedClock, ids: SharedIds) -> Self {
        let writer = ids.uuid(clock.now());
        let around = Surroundings {
            store,
            keys,
            clock,
            ids,
            writer,
            tracker: TaskTracker::new(),
        };
        Self {
            around: Arc::new(around),
            journals: Cache::builder()
                .max_capacity(OPEN_JOURNALS)
                .time_to_idle(JOURNAL_IDLE)
                .build(),
        }
    }

    /// Asks the journal of a session for an operation.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub async fn submit(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        operation: Operation,
    ) -> Result<Answer, JournalError> {
        let (_, journal) = self.get(tenant, session).await;
        journal.submit(operation).await
    }

    /// Returns the hash of a record as it is stored; `None` where there is none.
    ///
    /// # Errors
    /// The store's.
    pub async fn hash_of(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        seq: u64,
    ) -> Result<Option<Sha256Digest>, StoreError> {
        open::hash_of(&self.site(tenant, session), seq).await
    }

    /// Folds a journal anew from two roots, as everything that destroys has to.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_double_rooted(
        &self,
        tenant: &Tenant,
        session: &SessionId,
    ) -> Result<DoubleRooted, OpenError> {
        let (site, _) = self.get(tenant, session).await;
        let opened = open::open_double_rooted(&site).await?;
        let is_suspect = opened.chain.state().is_suspect() || site.has_conflict();
        Ok(DoubleRooted { opened, is_suspect })
    }

    /// Names a session's journal, for reading it record by record.
    pub fn site(&self, tenant: &Tenant, session: &SessionId) -> Site {
        Site::new(Arc::clone(&self.around), tenant.clone(), session.clone())
    }

    /// Returns a fresh identifier of this replica.
    pub fn fresh_id(&self) -> uuid::Uuid {
        self.around.ids.uuid(self.around.clock.now())
    }

    /// Forgets every open journal and waits until each has answered what was asked of it. New ones may
    /// be opened all the same.
    pub async fn drain(&self) {
        self.journals.invalidate_all();
        self.journals.run_pending_tasks().await;
        self.around.tracker.close();
        self.around.tracker.wait().await;
        self.around.tracker.reopen();
    }

    async fn get(&self, tenant: &Tenant, session: &SessionId) -> (Site, Journal) {
        let open = async {
            let site = self.site(tenant, session);
            (site.clone(), Journal::open(site))
        };
        let name = (tenant.clone(), session.clone());
        self.journals.get_with(name, open).await
    }
}
