//! One journal's place in a store, and everything that comes in from outside to work on it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::SharedClock;
use crate::ids::{SessionId, SessionKey, SharedIds, Tenant};
use crate::lease::chain::Chain;
use crate::lease::pace;
use crate::store::SharedStore;
use crate::store::keys::{Key, KeySpace};

/// What every journal of a replica shares.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The store.
    pub store: SharedStore,
    /// Where in it.
    pub keys: KeySpace,
    /// Time, for identifiers.
    pub clock: SharedClock,
    /// Nonces and chance.
    pub ids: SharedIds,
    /// This process, as its records name it.
    pub writer: Uuid,
    /// Work that outlives its request.
    pub tracker: TaskTracker,
}

/// One journal.
#[derive(Clone)]
pub struct Site {
    around: Arc<Surroundings>,
    tenant: Tenant,
    session: SessionId,
    session_key: SessionKey,
    /// Whether somebody's checkpoint says something else than ours: two versions fold differently.
    has_conflict: Arc<AtomicBool>,
    /// Size of the last checkpoint that was written here.
    checkpoint_bytes: Arc<AtomicU64>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("tenant", &self.tenant)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Site {
    /// Names the journal of a session.
    pub fn new(around: Arc<Surroundings>, tenant: Tenant, session: SessionId) -> Self {
        Self {
            session_key: SessionKey::derive(&tenant, &session),
            around,
            tenant,
            session,
            has_conflict: Arc::default(),
            checkpoint_bytes: Arc::default(),
        }
    }

    /// Returns what comes in from outside.
    pub fn around(&self) -> &Surroundings {
        &self.around
    }

    /// Returns the session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Returns the session's key form.
    pub fn session_key(&self) -> &SessionKey {
        &self.session_key
    }

    /// Returns the empty prefix of this journal.
    pub fn genesis(&self) -> Chain {
        Chain::genesis(self.tenant.clone(), self.session.clone())
    }

    /// Returns the key of a record.
    pub fn record_key(&self, seq: u64) -> Key {
        let keys = &self.around.keys;
        keys.journal_record(&self.tenant, &self.session_key, seq)
    }

    /// Returns the key of a checkpoint.
    pub fn checkpoint_key(&self, seq: u64) -> Key {
        let keys = &self.around.keys;
        keys.checkpoint(&self.tenant, &self.session_key, seq)
    }

    /// Returns a fresh identifier.
    pub fn fresh_id(&self) -> Uuid {
        self.around.ids.uuid(self.around.clock.now())
    }

    /// Returns a number between 0 and 1.
    pub fn chance(&self) -> f64 {
        pace::chance(self.fresh_id())
    }

    /// Notes that a stored checkpoint differs from what the records fold to here.
    pub fn note_conflict(&self) {
        self.has_conflict.store(true, Ordering::Relaxed);
    }

    /// Notes the size of a checkpoint.
    pub fn note_checkpoint_bytes(&self, size_bytes: u64) {
        self.checkpoint_bytes.store(size_bytes, Ordering::Relaxed);
    }

    /// Returns the size of the last checkpoint that was written here; 0 where none was.
    pub fn checkpoint_bytes(&self) -> u64 {
        self.checkpoint_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether a stored checkpoint was seen to differ: nothing is destroyed then.
    pub fn has_conflict(&self) -> bool {
        self.has_conflict.load(Ordering::Relaxed)
    }
}
