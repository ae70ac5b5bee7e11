//! What those need of sessions who give access to them.

use crate::artifact::library::Library;
use crate::artifact::request::SaveError;
use crate::artifact::session::SessionError;
use crate::ids::{SessionId, SessionKey, Tenant};

impl Library {
    /// Creates a session that forks from `parent`, unless it is there with that parent.
    ///
    /// # Errors
    /// The service is read-only, or see [`SessionError`].
    pub async fn create_session(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: &SessionId,
    ) -> Result<(), SaveError> {
        if self.options().is_read_only {
            return Err(SaveError::ReadOnly);
        }
        let now = self.clock.now();
        self.sessions
            .ensure(tenant, session, Some(parent), now)
            .await?;
        Ok(())
    }

    /// Returns whether `asked` is among the sessions from which `own` was forked.
    ///
    /// # Errors
    /// See [`SessionError`]; a store that fails is no "no".
    pub async fn session_is_above(
        &self,
        tenant: &Tenant,
        own: &SessionKey,
        asked: &SessionKey,
    ) -> Result<bool, SessionError> {
        let Some(descriptor) = self.sessions.find(tenant, own).await? else {
            return Ok(false);
        };
        let above = self.sessions.ancestors(&descriptor).await?;
        let mut above = above.iter();
        Ok(above.any(|found| SessionKey::derive(tenant, &found.session) == *asked))
    }
}
