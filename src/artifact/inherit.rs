//! Forks: a child session replays what its parents have decided.
//!
//! Of the sessions from the own one upwards, the first whose `save` record of the call is live or
//! erased decides. An own unfinished record is finished first; a parent's unfinished or collected one
//! is passed over; where none decides, the child saves in its own session.

use futures_util::future::try_join_all;

use crate::artifact::call_record::{CallAction, CallRecord};
use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::library::Library;
use crate::artifact::manifest::TombstoneReason;
use crate::artifact::manifest_access::Lookup;
use crate::artifact::request::{SaveError, SaveRequest};
use crate::artifact::save::{Job, Resolved};
use crate::error::Deletion;
use crate::ids::{ArtifactRef, DecisionId, Question, SessionId, SessionKey};
use crate::limits::MAX_INCARNATION;
use crate::store::register::{Register, read_register};

/// Where the chain of records of one call in one session ends.
pub(super) enum ChainEnd {
    /// A live artifact.
    Live(ConfirmedManifest),
    /// Erased; final.
    Erased(Deletion),
    /// A record whose manifest is not there.
    Unfinished {
        incarnation: u32,
        record: Register,
        did: DecisionId,
    },
    /// No record at this incarnation: the call was never saved here, or everything was collected.
    Free { incarnation: u32 },
}

impl Job<'_> {
    /// Looks who decides this call: the manifest to replay, or the incarnation that is free to be
    /// decided in the own session.
    pub(in crate::artifact) async fn inherited(
        &mut self,
        own_did: DecisionId,
    ) -> Result<Result<ConfirmedManifest, u32>, SaveError> {
        let ancestors = self.library.sessions.ancestors(&self.session).await?;
        let sessions = std::iter::once(&self.session.session)
            .chain(ancestors.iter().map(|descriptor| &descriptor.session));
        let digest = self.intake.facts.sha256;
        let ends = sessions.map(|session| chain_end(self.library, self.request, session, digest));
        let mut ends = try_join_all(ends).await?.into_iter();
        let free = match ends.next() {
            Some(ChainEnd::Live(manifest)) => return Ok(Ok(manifest)),
            Some(ChainEnd::Erased(deletion)) => return Err(SaveError::Erased(deletion)),
            Some(ChainEnd::Unfinished {
                incarnation,
                record,
                did,
            }) => {
                debug_assert_eq!(did, own_did);
                match self.resolve(&record, did).await? {
                    Resolved::Live(manifest) => return Ok(Ok(manifest)),
                    Resolved::Collected => incarnation + 1,
                }
            }
            Some(ChainEnd::Free { incarnation }) => incarnation,
            None => 0,
        };
        for end in ends {
            match end {
                ChainEnd::Live(manifest) => return Ok(Ok(manifest)),
                ChainEnd::Erased(deletion) => return Err(SaveError::Erased(deletion)),
                ChainEnd::Unfinished { .. } | ChainEnd::Free { .. } => {}
            }
        }
        Ok(Err(free))
    }
}

impl Library {
    /// Looks whether a body of this digest was saved under the request's call id, here or in a parent,
    /// without having the body: the live artifact that a save would be answered from.
    ///
    /// # Errors
    /// The output was erased, or the store fails.
    pub async fn find_saved(
        &self,
        request: &SaveRequest,
        chain: &[SessionId],
        digest: crate::digest::Sha256Digest,
    ) -> Result<Option<ConfirmedManifest>, SaveError> {
        let ends = chain
            .iter()
            .map(|session| chain_end(self, request, session, digest));
        for end in try_join_all(ends).await? {
            match end {
                ChainEnd::Live(manifest) => return Ok(Some(manifest)),
                ChainEnd::Erased(deletion) => return Err(SaveError::Erased(deletion)),
                ChainEnd::Unfinished { .. } | ChainEnd::Free { .. } => {}
            }
        }
        Ok(None)
    }
}

pub(super) async fn chain_end(
    library: &Library,
    request: &SaveRequest,
    session: &SessionId,
    digest: crate::digest::Sha256Digest,
) -> Result<ChainEnd, SaveError> {
    let tenant = &request.tenant;
    let Some(call) = &request.call_id else {
        return Ok(ChainEnd::Free { incarnation: 0 });
    };
    let did = DecisionId::derive(Question::Save, tenant, session, call, &digest);
    let session_key = SessionKey::derive(tenant, session);
    for incarnation in 0..=MAX_INCARNATION {
        let key = library
            .keys
            .call_record(tenant, &session_key, &did, incarnation);
        let Some(record) = read_register(&*library.store, &key).await? else {
            return Ok(ChainEnd::Free { incarnation });
        };
        let decoded =
            CallRecord::decode(&record.bytes).map_err(|e| SaveError::Format(e.to_string()))?;
        let CallAction::Saved { aid, .. } = decoded.action else {
            return Ok(ChainEnd::Erased(Deletion {
                reason: TombstoneReason::Erased.as_str().to_owned(),
                deleted_at: None,
                digest: Some(digest.to_string()),
                size_bytes: None,
            }));
        };
        let artifact = ArtifactRef {
            session_key,
            artifact_id: aid,
        };
        match library.manifests.read(tenant, &artifact).await? {
            Lookup::Live(manifest) => return Ok(ChainEnd::Live(manifest)),
            Lookup::Tombstone(tombstone) if tombstone.tombstone == TombstoneReason::Erased => {
                return Ok(ChainEnd::Erased(tombstone.deletion()));
            }
            Lookup::Tombstone(_) => {}
            Lookup::Absent => {
                return Ok(ChainEnd::Unfinished {
                    incarnation,
                    record,
                    did,
                });
            }
        }
    }
    Ok(ChainEnd::Free {
        incarnation: MAX_INCARNATION + 1,
    })
}
