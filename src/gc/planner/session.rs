//! The session that the walk of a planner is in.

use std::sync::Arc;

use crate::gc::collector::SessionJournal;
use crate::gc::plan::Anchor;
use crate::ids::{ArtifactId, SessionKey, Tenant};

/// The session that the walk is in.
pub(super) struct Current {
    pub(super) tenant: Tenant,
    pub(super) session_key: SessionKey,
    pub(super) journal: Option<SessionJournal>,
    anchor: Option<Arc<Anchor>>,
    pub(super) seen: Vec<ArtifactId>,
    pub(super) pending: Vec<ArtifactId>,
}

impl Current {
    pub(super) fn new(tenant: &Tenant, session_key: SessionKey) -> Self {
        Self {
            tenant: tenant.clone(),
            session_key,
            journal: None,
            anchor: None,
            seen: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the session as candidates keep it, the same for all of them.
    pub(super) fn anchor(&mut self) -> Arc<Anchor> {
        let journal = self.journal.as_ref();
        let anchor = self.anchor.get_or_insert_with(|| {
            Arc::new(Anchor {
                tenant: self.tenant.clone(),
                session_key: self.session_key,
                session: journal.and_then(|journal| journal.session.clone()),
                as_of_seq: journal.map_or(0, |journal| journal.as_of_seq),
            })
        });
        Arc::clone(anchor)
    }
}
