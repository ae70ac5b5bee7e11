//! References that using an artifact appends: `touched` entries.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::artifact::keep_alive::{KeepAlive, KeepAliveError, KeptAlive};
use crate::ids::{ArtifactId, SessionId, Tenant};
use crate::lease::entry::CondemnReason;
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::journal::{Answer, JournalError};
use crate::lease::journals::Journals;

#[async_trait]
impl KeepAlive for Journals {
    async fn keep_alive(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        artifact_id: ArtifactId,
        unless_since: Option<Timestamp>,
    ) -> Result<KeptAlive, KeepAliveError> {
        if let Some(since) = unless_since {
            let read = self.submit(tenant, session, Operation::Read).await;
            match read.map(|answer| referred_at(&answer, artifact_id)) {
                Ok(Some(date)) if date >= since => {
                    let referred_at = Some(date);
                    return Ok(KeptAlive::Until { referred_at });
                }
                Ok(_) => {}
                Err(error) => return judge(error),
            }
        }
        let touch = Operation::Touch { artifact_id };
        match self.submit(tenant, session, touch).await {
            Ok(answer) => Ok(KeptAlive::Until {
                referred_at: referred_at(&answer, artifact_id),
            }),
            Err(error) => judge(error),
        }
    }
}

/// The date of the artifact's last reference.
fn referred_at(answer: &Answer, artifact_id: ArtifactId) -> Option<Timestamp> {
    let artifact = answer.state.artifact(artifact_id)?;
    artifact.last_reference?.as_of
}

fn judge(error: JournalError) -> Result<KeptAlive, KeepAliveError> {
    match error {
        JournalError::Refused(Refusal::ArtifactCondemned(condemned)) => Ok(KeptAlive::Condemned {
            is_erased: condemned.why == CondemnReason::Erased,
        }),
        JournalError::Refused(_) => Ok(KeptAlive::Condemned { is_erased: false }),
        // Broken, or a newer version's: nothing is collected in such a session here.
        JournalError::Unreadable(_) => Ok(KeptAlive::NotCollected),
        JournalError::Store(error) | JournalError::OutcomeUnknown { cause: error, .. } => {
            Err(KeepAliveError::Store(error))
        }
        JournalError::Contended | JournalError::Saturated | JournalError::Closed => {
            Err(KeepAliveError::Busy)
        }
    }
}
