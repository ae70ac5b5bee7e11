//! Session descriptors: that a session exists, what its caller calls it, and which session it forked
//! from. A register under `s/{skey}`, written by the session's first save.

use bytes::Bytes;
use jiff::Timestamp;
use moka::future::Cache;
use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, SessionKey, Tenant};
use crate::limits::MAX_PARENT_LEVELS;
use crate::store::keys::KeySpace;
use crate::store::register::{DecideError, Decision, decide, read_register};
use crate::store::{SharedStore, StoreError};

/// The version of the encoding; another one is not read.
pub const SESSION_VERSION: u32 = 1;

/// Descriptors kept in memory; each is a few hundred bytes and never changes.
const CACHED_SESSIONS: u64 = 50_000;

/// What a descriptor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDescriptor {
    /// [`SESSION_VERSION`].
    pub v: u32,
    /// The session's tenant.
    pub tenant: Tenant,
    /// The session as its caller named it.
    pub session: SessionId,
    /// The session it forked from; fixed at creation.
    pub parent: Option<SessionId>,
    /// When it was created, by its creator's clock; information only.
    pub created_at: Timestamp,
}

/// A session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The named parent has no descriptor.
    #[error("parent session `{0}` does not exist")]
    ParentNotFound(SessionId),
    /// The session exists with another parent, or without one.
    #[error("the session was created with {}", .actual.as_ref().map_or("no parent".to_owned(), |p| format!("parent `{p}`")))]
    ParentConflict {
        /// What it was created with.
        actual: Option<SessionId>,
    },
    /// The stored descriptor cannot be read.
    #[error("session descriptor not readable by this version: {0}")]
    Format(String),
    /// The store failed; the flag says whether our descriptor may be there.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and creates descriptors.
#[derive(Debug, Clone)]
pub struct Sessions {
    store: SharedStore,
    keys: KeySpace,
    known: Cache<(Tenant, SessionKey), SessionDescriptor>,
}

impl Sessions {
    /// Works on `store`.
    pub fn new(store: SharedStore, keys: KeySpace) -> Self {
        Self {
            store,
            keys,
            known: Cache::new(CACHED_SESSIONS),
        }
    }

    /// Reads a descriptor; `None` when the session was never created.
    ///
    /// # Errors
    /// The store fails, or holds something unreadable.
    pub async fn find(
        &self,
        tenant: &Tenant,
        key: &SessionKey,
    ) -> Result<Option<SessionDescriptor>, SessionError> {
        let cache_key = (tenant.clone(), *key);
        if let Some(known) = self.known.get(&cache_key).await {
            return Ok(Some(known));
        }
        match read_register(&*self.store, &self.keys.session(tenant, key)).await? {
            None => Ok(None),
            Some(found) => {
                let descriptor = decode(&found.bytes)?;
                self.known.insert(cache_key, descriptor.clone()).await;
                Ok(Some(descriptor))
            }
        }
    }

    /// Checks, without writing, that a save with this parent could go on.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn check_parent(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: &SessionId,
    ) -> Result<(), SessionError> {
        match self
            .find(tenant, &SessionKey::derive(tenant, session))
            .await?
        {
            Some(descriptor) => agree(&descriptor, Some(parent)),
            None => self.require(tenant, parent).await,
        }
    }

    async fn require(&self, tenant: &Tenant, parent: &SessionId) -> Result<(), SessionError> {
        match self
            .find(tenant, &SessionKey::derive(tenant, parent))
            .await?
        {
            Some(_) => Ok(()),
            None => Err(SessionError::ParentNotFound(parent.clone())),
        }
    }

    /// Makes sure that `session` exists. Without `parent` an existing session never conflicts.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn ensure(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: Option<&SessionId>,
        now: Timestamp,
    ) -> Result<SessionDescriptor, SessionError> {
        let key = SessionKey::derive(tenant, session);
        let cache_key = (tenant.clone(), key);
        if let Some(known) = self.known.get(&cache_key).await {
            agree(&known, parent)?;
            return Ok(known);
        }
        if let Some(parent) = parent {
            self.check_parent(tenant, session, parent).await?;
        }
        let ours = SessionDescriptor {
            v: SESSION_VERSION,
            tenant: tenant.clone(),
            session: session.clone(),
            parent: parent.cloned(),
            created_at: now,
        };
        let bytes: Bytes = serde_json::to_vec(&ours)
            .expect("strings and a time always serialise")
            .into();
        let decided = decide(&*self.store, &self.keys.session(tenant, &key), &bytes).await;
        let descriptor = match decided.map_err(DecideError::into_store_error)? {
            Decision::Won(_) => ours,
            Decision::Lost(found) => decode(&found.bytes)?,
        };
        self.known.insert(cache_key, descriptor.clone()).await;
        agree(&descriptor, parent)?;
        Ok(descriptor)
    }

    /// Returns the sessions above `descriptor`, nearest first, at most [`MAX_PARENT_LEVELS`].
    ///
    /// # Errors
    /// The store fails; a parent without a descriptor ends the chain (it was required at creation).
    pub async fn ancestors(
        &self,
        descriptor: &SessionDescriptor,
    ) -> Result<Vec<SessionDescriptor>, SessionError> {
        let mut ancestors = Vec::new();
        let mut parent = descriptor.parent.clone();
        while let Some(session) = parent.take() {
            if ancestors.len() == MAX_PARENT_LEVELS {
                break;
            }
            let key = SessionKey::derive(&descriptor.tenant, &session);
            let Some(found) = self.find(&descriptor.tenant, &key).await? else {
                break;
            };
            parent = found.parent.clone();
            ancestors.push(found);
        }
        Ok(ancestors)
    }
}

fn agree(descriptor: &SessionDescriptor, parent: Option<&SessionId>) -> Result<(), SessionError> {
    match parent {
        Some(wanted) if descriptor.parent.as_ref() != Some(wanted) => {
            Err(SessionError::ParentConflict {
                actual: descriptor.parent.clone(),
            })
        }
        _ => Ok(()),
    }
}

fn decode(bytes: &[u8]) -> Result<SessionDescriptor, SessionError> {
    let descriptor: SessionDescriptor =
        serde_json::from_slice(bytes).map_err(|error| SessionError::Format(error.to_string()))?;
    if descriptor.v != SESSION_VERSION {
        return Err(SessionError::Format(format!("version {}", descriptor.v)));
    }
    Ok(descriptor)
}
