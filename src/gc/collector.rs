//! What a collection works with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::artifact::library::Library;
use crate::artifact::manifest::{ManifestEntry, ManifestFormatError};
use crate::artifact::session::{SessionError, Sessions};
use crate::clock::SharedClock;
use crate::gc::classify::{Folded, JournalView, ManifestState, untimed_references};
use crate::gc::status::{Reason, Status};
use crate::gc::store_clock::{self, ClockError};
use crate::ids::{ArtifactRef, SessionId, SessionKey, SharedIds, Tenant};
use crate::lease::journals::Journals;
use crate::lease::open::{self, OpenError};
use crate::lease::state::State;
use crate::store::keys::KeySpace;
use crate::store::register::{Register, read_register};
use crate::store::{SharedStore, StoreError, StoreErrorKind};

/// How a delete is kept from taking a newer object.
pub use crate::store::attest::Fence;

/// A collector of one store. Cheap to clone. There is no lock between collectors: a slot of a journal
/// takes one `condemned`, and everything after it may be done by any number of them.
#[derive(Debug, Clone)]
pub struct Collector {
    pub(in crate::gc) store: SharedStore,
    pub(in crate::gc) keys: KeySpace,
    pub(in crate::gc) clock: SharedClock,
    pub(in crate::gc) ids: SharedIds,
    pub(in crate::gc) journals: Journals,
    pub(in crate::gc) sessions: Sessions,
    pub(in crate::gc) store_ttl: Duration,
    pub(in crate::gc) fence: Fence,
}

/// A session's journal as a plan sees it.
#[derive(Debug, Clone)]
pub(in crate::gc) struct SessionJournal {
    pub(in crate::gc) view: JournalView,
    pub(in crate::gc) session: Option<SessionId>,
    /// Records that were folded.
    pub(in crate::gc) as_of_seq: u64,
}

/// What stands at a manifest's key, with its place in the store.
#[derive(Debug)]
pub(in crate::gc) enum Stands {
    Nothing,
    Entry(Box<ManifestEntry>, Register),
    Unreadable(ManifestFormatError),
}

impl Collector {
    /// Builds a collector; `fence` is the strongest that the store was seen to honour.
    pub fn new(
        store: SharedStore,
        keys: KeySpace,
        store_ttl: Duration,
        journals: Journals,
        fence: Fence,
        (clock, ids): (SharedClock, SharedIds),
    ) -> Self {
        Self {
            sessions: Sessions::new(Arc::clone(&store), keys.clone()),
            store_ttl,
            store,
            keys,
            clock,
            ids,
            journals,
            fence,
        }
    }

    /// Builds a collector of the store that a library works on.
    pub fn of(library: &Library, journals: Journals, fence: Fence) -> Self {
        Self::new(
            Arc::clone(library.store()),
            library.keys().clone(),
            library.orphan_ttl(),
            journals,
            fence,
            (Arc::clone(library.clock()), Arc::clone(library.ids())),
        )
    }

    /// Returns the orphan TTL that receipts of this store promise.
    pub fn store_ttl(&self) -> Duration {
        self.store_ttl
    }

    /// Returns the store's date.
    pub(in crate::gc) async fn store_date(&self) -> Result<Timestamp, ClockError> {
        store_clock::read(&*self.store, &self.keys, &*self.clock, &*self.ids).await
    }

    /// Returns a fresh name of a plan.
    pub fn fresh_id(&self) -> Uuid {
        self.ids.uuid(self.clock.now())
    }

    /// Reads what stands at a manifest's key.
    pub(in crate::gc) async fn read_manifest(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<Stands, StoreError> {
        let key = self.keys.manifest(tenant, artifact);
        let Some(found) = read_register(&*self.store, &key).await? else {
            return Ok(Stands::Nothing);
        };
        Ok(match ManifestEntry::decode(&found.bytes, artifact) {
            Ok(ManifestEntry::Live(manifest)) if manifest.head.tenant != *tenant => {
                Stands::Unreadable(ManifestFormatError::Inconsistent("names another tenant"))
            }
            Ok(entry) => Stands::Entry(Box::new(entry), found),
            Err(error) => Stands::Unreadable(error),
        })
    }

    /// Says what stands at a manifest's key, as far as judging needs it.
    pub(in crate::gc) async fn manifest_state(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<ManifestState, StoreError> {
        Ok(match self.read_manifest(tenant, artifact).await {
            Ok(Stands::Nothing) => ManifestState::Absent,
            Ok(Stands::Entry(entry, _)) => match *entry {
                ManifestEntry::Live(_) => ManifestState::Live,
                ManifestEntry::Tombstone(_) => ManifestState::Tombstone,
            },
            Ok(Stands::Unreadable(_)) => ManifestState::Unreadable,
            // Of one key: it is kept and reported, as what this version cannot read.
            Err(error) if error.is(StoreErrorKind::Denied) => ManifestState::Unreadable,
            Err(error) => return Err(error),
        })
    }

    /// Finds out what a session is called; `Err` where it cannot be told.
    pub(in crate::gc) async fn session_of(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
    ) -> Result<Result<SessionId, (Status, Reason)>, StoreError> {
        match self.sessions.find(tenant, session_key).await {
            Ok(Some(found))
                if found.tenant == *tenant
                    && SessionKey::derive(tenant, &found.session) == *session_key =>
            {
                Ok(Ok(found.session))
            }
            Ok(_) | Err(SessionError::Format(_)) => {
                Ok(Err((Status::RetainedUnknown, Reason::SessionUnknown)))
            }
            Err(SessionError::Store(error)) if error.is(StoreErrorKind::Denied) => {
                Ok(Err((Status::Denied, Reason::ArtifactReadDenied)))
            }
            Err(SessionError::Store(error)) => Err(error),
            Err(SessionError::ParentNotFound(_) | SessionError::ParentConflict { .. }) => {
                Ok(Err((Status::RetainedUnknown, Reason::SessionUnknown)))
            }
        }
    }

    /// Folds a session's journal for a plan.
    ///
    /// # Errors
    /// The store fails: nothing is known then, and nothing may be planned.
    pub(in crate::gc) async fn open_session(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
    ) -> Result<SessionJournal, StoreError> {
        let unusable = |(status, reason)| SessionJournal {
            view: JournalView::Unusable(status, reason),
            session: None,
            as_of_seq: 0,
        };
        let session = match self.session_of(tenant, session_key).await? {
            Ok(session) => session,
            Err(why) => return Ok(unusable(why)),
        };
        let site = self.journals.site(tenant, &session);
        match open::open(&site).await {
            Ok(opened) => {
                let state = Arc::clone(opened.chain.state());
                let written = self.written(tenant, session_key, &state).await?;
                let folded = Folded::new(state, site.has_conflict()).with_written(written);
                Ok(SessionJournal {
                    view: JournalView::Folded(folded),
                    session: Some(session),
                    as_of_seq: opened.chain.next_seq(),
                })
            }
            Err(error) => Ok(unusable(why_unusable(error)?)),
        }
    }
}

impl Collector {
    /// Asks the store when those records were written that do not say it themselves. Records are written
    /// once, so the store's time of one is never earlier than the reference in it.
    ///
    /// # Errors
    /// The store's; a record that is not there has no time.
    pub(in crate::gc) async fn written(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
        state: &State,
    ) -> Result<BTreeMap<u64, Timestamp>, StoreError> {
        let mut written = BTreeMap::new();
        for seq in untimed_references(state) {
            let key = self.keys.journal_record(tenant, session_key, seq);
            match self.store.head(&key).await {
                Ok(head) => {
                    written.insert(seq, head.meta.last_modified);
                }
                Err(error) if error.is(StoreErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}

/// Returns what a journal that cannot be folded means for its session.
///
/// # Errors
/// The store fails: nothing is known.
pub(in crate::gc) fn why_unusable(error: OpenError) -> Result<(Status, Reason), StoreError> {
    let is_unsupported = error.is_unsupported();
    match error {
        OpenError::Store(error) if error.is(StoreErrorKind::Denied) => {
            Ok((Status::Denied, Reason::ArtifactReadDenied))
        }
        OpenError::Store(error) => Err(error),
        OpenError::Broken { .. } if is_unsupported => {
            Ok((Status::RetainedUnknown, Reason::JournalUnsupported))
        }
        OpenError::Broken { .. } | OpenError::Gap { .. } => {
            Ok((Status::RetainedCorrupt, Reason::JournalCorrupt))
        }
    }
}
