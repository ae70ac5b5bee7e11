//! A save that may store nothing new: only an output that is there already is answered.
//!
//! A quota that is used up must not take receipts away: the same save again is a question, and it is
//! answered from what the first one stored, here or in a parent session.

use crate::artifact::ingest::check_only;
use crate::artifact::inherit::{ChainEnd, chain_end};
use crate::artifact::library::Library;
use crate::artifact::quota::QuotaExceededError;
use crate::artifact::request::{BodyStream, SaveError, SaveRequest};
use crate::artifact::save::Saved;
use crate::digest::Sha256Digest;
use crate::ids::SessionKey;

impl Library {
    /// Reads a body for its digest alone and answers the artifact that it became before.
    ///
    /// # Errors
    /// There is none: the quota's refusal. See [`SaveError`] for the others.
    pub(super) async fn repeat_of_body(
        &self,
        request: &SaveRequest,
        body: BodyStream,
        exceeded: QuotaExceededError,
    ) -> Result<Saved, SaveError> {
        if request.call_id.is_none() {
            return Err(exceeded.into());
        }
        let digest = check_only(request, body, self.options.max_body_bytes).await?;
        self.repeat_of(request, digest, exceeded).await
    }

    /// Answers the artifact that these bytes of this call became before.
    ///
    /// # Errors
    /// As [`Library::repeat_of_body`].
    pub(super) async fn repeat_of(
        &self,
        request: &SaveRequest,
        digest: Sha256Digest,
        exceeded: QuotaExceededError,
    ) -> Result<Saved, SaveError> {
        let mut sessions = vec![request.session.clone()];
        let own = SessionKey::derive(&request.tenant, &request.session);
        let nearest = match self.sessions.find(&request.tenant, &own).await? {
            Some(descriptor) => Some(descriptor),
            // Not created yet: the parent that it would get.
            None => match &request.parent {
                Some(parent) => {
                    sessions.push(parent.clone());
                    let parent = SessionKey::derive(&request.tenant, parent);
                    self.sessions.find(&request.tenant, &parent).await?
                }
                None => None,
            },
        };
        if let Some(descriptor) = nearest {
            let ancestors = self.sessions.ancestors(&descriptor).await?;
            sessions.extend(ancestors.into_iter().map(|ancestor| ancestor.session));
        }
        for session in &sessions {
            match chain_end(self, request, session, digest).await? {
                ChainEnd::Live(manifest) => {
                    return Ok(Saved {
                        manifest,
                        is_new: false,
                    });
                }
                ChainEnd::Erased(deletion) => return Err(SaveError::Erased(deletion)),
                ChainEnd::Unfinished { .. } | ChainEnd::Free { .. } => {}
            }
        }
        Err(exceeded.into())
    }
}
