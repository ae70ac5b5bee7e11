//! What a scrub knows of the session that it is in, and what that session's journal says of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::gc::classify::ManifestState;
use crate::gc::collector::{Collector, why_unusable};
use crate::ids::{ArtifactId, ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::open;
use crate::lease::state::{ArtifactStatus, State};
use crate::store::register::read_register;
use crate::store::{StoreError, StoreErrorKind};

/// Which keys of an artifact were listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) has_manifest: bool,
    pub(super) has_body: bool,
}

/// A session while it is walked.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) tenant: Tenant,
    pub(super) session_key: SessionKey,
    pub(super) shown: BTreeMap<ArtifactId, Shown>,
}

/// A session's journal as a scrub uses it.
#[derive(Debug)]
pub(super) enum Word {
    /// There is no entry in it.
    Nothing,
    /// It was folded.
    Folded(Arc<State>),
    /// It cannot be read.
    Unreadable(String),
}

impl Word {
    /// Returns whether a lease protects an artifact; none where that cannot be told.
    pub(super) fn protects(&self, artifact_id: ArtifactId) -> Option<bool> {
        match self {
            Self::Nothing => Some(false),
            Self::Folded(state) => Some(state.is_protected(artifact_id)),
            Self::Unreadable(_) => None,
        }
    }

    /// Returns what it protects.
    pub(super) fn protected(&self) -> Vec<ArtifactId> {
        let Self::Folded(state) = self else {
            return Vec::new();
        };
        let named = state.artifacts().map(|(artifact_id, _)| artifact_id);
        named.filter(|named| state.is_protected(*named)).collect()
    }

    /// Returns whether an artifact is known to be on its way out, or gone.
    pub(super) fn is_ended(&self, artifact_id: ArtifactId) -> bool {
        let Self::Folded(state) = self else {
            return false;
        };
        let record = state.artifact(artifact_id);
        record.is_some_and(|record| match record.status {
            ArtifactStatus::Condemned(_) | ArtifactStatus::Deleted(_) => true,
            ArtifactStatus::Live => false,
        })
    }
}

/// What is read off a record before anything of it is verified.
#[derive(Deserialize)]
struct Named {
    session: SessionId,
}

impl Collector {
    /// Folds the journal of a session that has one. Its name is what its descriptor says, or, where nothing
    /// else of it is left, its first record; a name is believed where its hash is the key.
    pub(super) async fn word(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
    ) -> Result<Word, StoreError> {
        let name = match self.session_of(tenant, session_key).await? {
            Ok(name) => Some(name),
            Err(_) => self.named_by_record(tenant, session_key).await?,
        };
        let Some(name) = name else {
            return Ok(Word::Unreadable(
                "nothing says what the session is called".to_owned(),
            ));
        };
        let site = self.journals.site(tenant, &name);
        match open::open(&site).await {
            Ok(opened) if opened.chain.next_seq() == 0 => Ok(Word::Nothing),
            Ok(opened) => Ok(Word::Folded(Arc::clone(opened.chain.state()))),
            Err(error) => {
                let said = error.to_string();
                why_unusable(error).map(|_| Word::Unreadable(said))
            }
        }
    }

    async fn named_by_record(
        &self,
        tenant: &Tenant,
        session_key: &SessionKey,
    ) -> Result<Option<SessionId>, StoreError> {
        let first = self.keys.journal_record(tenant, session_key, 0);
        let found = match read_register(&*self.store, &first).await {
            Ok(found) => found,
            Err(error) if error.is(StoreErrorKind::Denied) => None,
            Err(error) => return Err(error),
        };
        let named = found.and_then(|found| serde_json::from_slice::<Named>(&found.bytes).ok());
        let named = named.map(|named| named.session);
        Ok(named.filter(|name| SessionKey::derive(tenant, name) == *session_key))
    }

    /// Looks once more at an artifact that a listing showed in part or not at all; it may have been saved
    /// or deleted since.
    pub(super) async fn shown_now(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<(ManifestState, bool), StoreError> {
        let manifest = self.manifest_state(tenant, artifact).await?;
        match self.store.head(&self.keys.body(tenant, artifact)).await {
            Ok(_) => Ok((manifest, true)),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok((manifest, false)),
            Err(error) => Err(error),
        }
    }
}
