//! Finding the journals of a store: who walks leases starts here, and not from artifacts, so that the
//! leases of a session of which nothing else is left are seen as well.

use std::sync::Arc;

use serde::Deserialize;

use crate::artifact::session::{SessionError, Sessions};
use crate::ids::{SessionId, SessionKey, Tenant};
use crate::lease::slot;
use crate::store::keys::KeySpace;
use crate::store::{ListRequest, SharedStore, StoreError, paging};

/// Which journals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalScope {
    /// Every tenant's.
    All,
    /// One tenant's.
    Tenant(Tenant),
    /// One session's, whether there is one or not.
    Session {
        /// Its tenant.
        tenant: Tenant,
        /// The session.
        session: SessionId,
    },
}

/// The journals of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct JournalWalk {
    store: SharedStore,
    keys: KeySpace,
}

/// What is read off a record before anything of it is verified.
#[derive(Deserialize)]
struct Named {
    session: SessionId,
}

impl JournalWalk {
    /// Looks into `store`.
    pub fn new(store: SharedStore, keys: KeySpace) -> Self {
        Self { store, keys }
    }

    /// Returns the tenants of the store. What stands among them and is none is left alone.
    ///
    /// # Errors
    /// The store's.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.names(self.keys.tenants()).await
    }

    /// Returns the sessions of a tenant that have a journal: those whose key form is greater than `from`,
    /// and then the rest, so that a run that is cut short need not begin where the last one began.
    ///
    /// # Errors
    /// The store's.
    pub async fn sessions(
        &self,
        tenant: &Tenant,
        from: Option<&SessionKey>,
    ) -> Result<Vec<SessionKey>, StoreError> {
        let prefix = self.keys.all_journals(tenant);
        let mut sessions: Vec<SessionKey> = self.names(prefix).await?;
        if let Some(from) = from {
            let later = sessions.partition_point(|session_key| session_key <= from);
            sessions.rotate_left(later);
        }
        Ok(sessions)
    }

    /// Finds out what a session with a journal is called: its first record says so, also where nothing
    /// else of it is left. The name is believed where its hash is the key.
    ///
    /// # Errors
    /// The store's.
    pub async fn session_of(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
    ) -> Result<Option<SessionId>, StoreError> {
        let is_it = |session: &SessionId| SessionKey::derive(tenant, session) == *session_key;
        let first = self.keys.journal_record(tenant, session_key, 0);
        let stored = slot::read(&*self.store, &first).await?;
        let named = stored.and_then(|stored| serde_json::from_slice::<Named>(&stored.bytes).ok());
        if let Some(Named { session }) = named.filter(|named| is_it(&named.session)) {
            return Ok(Some(session));
        }
        let sessions = Sessions::new(Arc::clone(&self.store), self.keys.clone());
        match sessions.find(tenant, session_key).await {
            Ok(found) => Ok(found.map(|found| found.session).filter(is_it)),
            Err(SessionError::Store(error)) => Err(error),
            Err(
                SessionError::Format(_)
                | SessionError::ParentNotFound(_)
                | SessionError::ParentConflict { .. },
            ) => Ok(None),
        }
    }

    async fn names<T: std::str::FromStr>(&self, prefix: String) -> Result<Vec<T>, StoreError> {
        let request = ListRequest {
            prefix: prefix.clone(),
            delimiter: Some('/'),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        let mut names = Vec::new();
        while let Some(page) = pages.next_page().await? {
            let found = page.common_prefixes.iter();
            let found = found.filter_map(|common| common.strip_prefix(&prefix)?.strip_suffix('/'));
            names.extend(found.filter_map(|name| name.parse().ok()));
        }
        Ok(names)
    }
}
