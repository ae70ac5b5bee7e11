//! The registers of decisions: call records of results (`c/`) and records of turns (`d/`). What their
//! bytes mean is not known here; each is decided once, by the first that writes it.

use bytes::Bytes;

use crate::artifact::library::Library;
use crate::artifact::manifest_access::{Lookup, LookupError};
use crate::artifact::session::SessionError;
use crate::ids::{ArtifactRef, DecisionId, SessionId, SessionKey, Tenant, TurnHash};
use crate::store::StoreError;
use crate::store::keys::Key;
use crate::store::register::{DecideError, Decision, decide, read_register};

/// Which register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionName {
    /// Of one result.
    Result(DecisionId),
    /// The `n`-th of a turn.
    Turn(TurnHash, u32),
}

impl Library {
    /// Makes sure that a session exists and returns it with the sessions above it, nearest first.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn chain(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Vec<SessionId>, SessionError> {
        let now = self.clock.now();
        let descriptor = self.sessions.ensure(tenant, session, parent, now).await?;
        let above = self.sessions.ancestors(&descriptor).await?;
        let above = above.into_iter().map(|found| found.session);
        Ok(std::iter::once(session.clone()).chain(above).collect())
    }

    /// Returns a session, whether it exists or not, with the sessions above it that exist; `parent` is where
    /// one that does not exist would fork from.
    ///
    /// # Errors
    /// See [`SessionError`]; nothing is written.
    pub async fn existing_chain(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Vec<SessionId>, SessionError> {
        if let Some(parent) = parent {
            self.check_parent(tenant, session, parent).await?;
        }
        let mut chain = vec![session.clone()];
        let own = SessionKey::derive(tenant, session);
        let above = match (self.sessions.find(tenant, &own).await?, parent) {
            (Some(descriptor), _) => self.sessions.ancestors(&descriptor).await?,
            (None, Some(parent)) => {
                chain.push(parent.clone());
                let parent = SessionKey::derive(tenant, parent);
                match self.sessions.find(tenant, &parent).await? {
                    Some(descriptor) => self.sessions.ancestors(&descriptor).await?,
                    None => Vec::new(),
                }
            }
            (None, None) => Vec::new(),
        };
        chain.extend(above.into_iter().map(|found| found.session));
        Ok(chain)
    }

    /// Reads what stands at an artifact's manifest key now.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub async fn look_up(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<Lookup, LookupError> {
        self.manifests.read(tenant, artifact).await
    }

    /// Checks, without writing, that a session could be used with this parent.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn check_parent(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: &SessionId,
    ) -> Result<(), SessionError> {
        self.sessions.check_parent(tenant, session, parent).await
    }

    /// Returns the register that this replica has already seen decided.
    pub async fn known_decision(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: DecisionName,
    ) -> Option<Bytes> {
        let key = self.decision_key(tenant, session, name);
        self.decisions.get(&key).await
    }

    /// Reads a register; `None` when it is not decided.
    ///
    /// # Errors
    /// The store fails; a failure is never an absence.
    pub async fn find_decision(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: DecisionName,
    ) -> Result<Option<Bytes>, StoreError> {
        let key = self.decision_key(tenant, session, name);
        if let Some(known) = self.decisions.get(&key).await {
            return Ok(Some(known));
        }
        let Some(found) = read_register(&*self.store, &key).await? else {
            return Ok(None);
        };
        self.decisions.insert(key, found.bytes.clone()).await;
        Ok(Some(found.bytes))
    }

    /// Decides a register, and returns what stands in it then: `bytes`, or what another wrote first.
    ///
    /// # Errors
    /// The store refuses, or leaves it open. A service that is read-only never asks it.
    pub async fn decide(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: DecisionName,
        bytes: Bytes,
    ) -> Result<Bytes, DecideError> {
        let key = self.decision_key(tenant, session, name);
        let decided = decide(&*self.store, &key, &bytes).await;
        self.settled(key, bytes, decided).await
    }

    /// Remembers how a register was decided.
    pub(in crate::artifact) async fn settled(
        &self,
        key: Key,
        ours: Bytes,
        decided: Result<Decision, DecideError>,
    ) -> Result<Bytes, DecideError> {
        let stands = match decided? {
            Decision::Won(_) => ours,
            Decision::Lost(found) => found.bytes,
        };
        self.decisions.insert(key, stands.clone()).await;
        Ok(stands)
    }

    pub(in crate::artifact) fn decision_key(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        name: DecisionName,
    ) -> Key {
        let session = SessionKey::derive(tenant, session);
        match name {
            DecisionName::Result(did) => self.keys.call_record(tenant, &session, &did, 0),
            DecisionName::Turn(turn, n) => self.keys.turn_record(tenant, &session, &turn, n),
        }
    }
}
