//! Claims on artifacts: leases that an owner prepares, and holds.

use super::answer::{LeaseAnswer, Lifted, PrepareRequest, lease_answer};
use super::{DEFAULT_OWNER, Leases};
use crate::artifact::confirmed::ConfirmedManifest;
use crate::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::entry::{OwnerMode, Prepared, ReleaseReason};
use crate::lease::evaluate::{Operation, Refusal, holds};
use crate::lease::failure::PrepareError;
use crate::lease::journal::JournalError;
use crate::lease::names::{HoldName, OwnerName, Reason, TransactionId};
use crate::lease::record::is_encodable;
use crate::lease::source::SourceId;

impl Leases {
    /// Claims a lease on an artifact whose manifest is confirmed live.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing was written unless the outcome is unknown.
    pub async fn prepare(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        request: PrepareRequest,
    ) -> Result<LeaseAnswer, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        if request.reference_count == 0 || !is_encodable(request.reference_count) {
            return Err(PrepareError::Invalid {
                field: "reference_count",
                rule: "an integer from 1 to 2^53 - 1",
            });
        }
        let owner = match request.owner {
            Some(owner) if owner.is_hold() => {
                let detail = "`hold` is the owner of holds: POST {locator}/hold".to_owned();
                return Err(PrepareError::OwnerMode(detail));
            }
            Some(owner) => owner,
            None => DEFAULT_OWNER.parse().expect("a name of lower-case letters"),
        };
        let mode = self.mode_of(&owner, request.mode)?;
        let source = SourceId::parse(&request.source_id).ok_or(PrepareError::Invalid {
            field: "source_id",
            rule: "artifact:{session}:{artifact id}:{first 12 hex digits of the SHA-256}",
        })?;
        if source.session != *session {
            let detail = format!("`source_id` names session `{}`", source.session);
            return Err(PrepareError::SourceMismatch(detail));
        }
        let artifact = ArtifactRef {
            session_key: SessionKey::derive(tenant, session),
            artifact_id: source.artifact_id,
        };
        let manifest = self.library.stat(tenant, &artifact).await?;
        let actual = manifest.head.body.sha256;
        if actual != request.content_sha256 || !source.is_of(&actual) {
            let detail = format!("the artifact's digest is {actual}");
            return Err(PrepareError::SourceMismatch(detail));
        }
        let intent = Prepared {
            transaction_id: request.transaction_id.clone(),
            owner,
            mode,
            reference_count: request.reference_count,
            retain_until: request.retain_until,
            reason: None,
            ..intent_of(&manifest, request.transaction_id.clone())
        };
        let operation = Operation::Prepare(Box::new(intent));
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(lease_answer(answer, session, &request.transaction_id)?)
    }

    /// Holds an artifact without end under a name, unless it is held under that name already. `fresh` is
    /// the transaction id that a new hold gets ([`HoldName::transaction_id`]); the one that holds stands in
    /// the answer.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub async fn hold(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        fresh: TransactionId,
        reason: Option<Reason>,
    ) -> Result<LeaseAnswer, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        let manifest = self.library.stat(tenant, artifact).await?;
        let session = manifest.head.session.clone();
        let hold_name = HoldName::of(&fresh);
        let intent = Prepared {
            owner: OwnerName::hold(),
            reason,
            ..intent_of(&manifest, fresh)
        };
        let operation = Operation::Hold(Box::new(intent));
        let answer = self.journals.submit(tenant, &session, operation).await?;
        let held = holds(&answer.state, artifact.artifact_id, hold_name.as_ref()).next();
        let name = held.map(|lease| lease.intent.transaction_id.clone());
        let name = name.ok_or(JournalError::Refused(Refusal::TransactionUnknown))?;
        Ok(lease_answer(answer, &session, &name)?)
    }

    /// Releases every hold of a name on an artifact.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub async fn lift(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        name: HoldName,
    ) -> Result<Lifted, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        let manifest = self.library.stat(tenant, artifact).await?;
        let operation = Operation::Lift {
            artifact_id: artifact.artifact_id,
            name: Some(name),
            why: ReleaseReason::Removed,
        };
        let session = &manifest.head.session;
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(Lifted {
            is_new: answer.is_new,
            receipt: answer.receipt,
        })
    }

    fn mode_of(
        &self,
        owner: &OwnerName,
        stated: Option<OwnerMode>,
    ) -> Result<OwnerMode, PrepareError> {
        let configured = self.options.owners.modes.get(owner).copied();
        let mode = configured.unwrap_or(OwnerMode::OwnerFenced);
        match stated {
            Some(stated) if stated != mode => Err(PrepareError::OwnerMode(format!(
                "owner `{owner}` is configured as {mode:?}"
            ))),
            Some(_) | None => Ok(mode),
        }
    }
}

/// The claim on an artifact, as its confirmed manifest describes it: one reference without end.
fn intent_of(manifest: &ConfirmedManifest, transaction_id: TransactionId) -> Prepared {
    let body = &manifest.head.body;
    Prepared {
        transaction_id,
        owner: OwnerName::hold(),
        mode: OwnerMode::OwnerFenced,
        artifact_id: manifest.head.artifact_id,
        sha256: body.sha256,
        size_bytes: body.size_bytes,
        etag: body.etag.clone(),
        version_id: body.version_id.clone(),
        reference_count: 1,
        retain_until: None,
        reason: None,
    }
}
