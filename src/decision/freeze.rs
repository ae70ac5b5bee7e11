//! Reading and writing the records of decisions.

use futures_util::future::try_join_all;

use crate::artifact::decision_access::DecisionName;
use crate::artifact::request::SaveError;
use crate::decision::{Chain, Decider};
use crate::digest::Sha256Digest;
use crate::ids::{CallId, DecisionId, Question, SessionId, Tenant};
use crate::policy::frozen::{Action, Frozen, RecordFormatError, ResultRecord};

impl From<RecordFormatError> for SaveError {
    fn from(error: RecordFormatError) -> Self {
        Self::Format(error.to_string())
    }
}

/// Names a result in one session's records.
pub(super) fn did_of(
    tenant: &Tenant,
    session: &SessionId,
    call: &CallId,
    digest: &Sha256Digest,
) -> DecisionId {
    DecisionId::derive(Question::Result, tenant, session, call, digest)
}

pub(super) fn frozen_of(record: ResultRecord) -> Frozen {
    Frozen {
        action: record.action,
        template_version: record.template_version,
    }
}

impl Decider {
    /// Returns the session with those above it; creates it unless nothing is written here.
    pub(super) async fn open_chain(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Chain, SaveError> {
        let chain = if self.library.options().is_read_only {
            self.library.existing_chain(tenant, session, parent).await
        } else {
            self.library.chain(tenant, session, parent).await
        };
        Ok(chain?)
    }

    /// Reads the record of a result in every session of the chain.
    pub(super) async fn result_records(
        &self,
        tenant: &Tenant,
        chain: &Chain,
        call: &CallId,
        digest: &Sha256Digest,
    ) -> Result<Vec<Option<ResultRecord>>, SaveError> {
        let reads = chain.iter().map(|session| {
            let did = did_of(tenant, session, call, digest);
            let name = DecisionName::Result(did);
            self.library.find_decision(tenant, session, name)
        });
        let found = try_join_all(reads).await?;
        let decode = |bytes: Option<bytes::Bytes>| {
            let decoded = bytes.map(|bytes| ResultRecord::decode(&bytes)).transpose();
            decoded.map_err(SaveError::from)
        };
        found.into_iter().map(decode).collect()
    }

    /// Returns the decision of a result that is made already, as far as it can be told before one is
    /// made: the nearest record of a fork, or what this replica knows.
    pub(super) async fn frozen_result(
        &self,
        tenant: &Tenant,
        chain: &Chain,
        call: &CallId,
        digest: &Sha256Digest,
    ) -> Result<Option<Frozen>, SaveError> {
        if chain.len() > 1 || self.library.options().is_read_only {
            let records = self.result_records(tenant, chain, call, digest).await?;
            return Ok(records.into_iter().flatten().next().map(frozen_of));
        }
        // A session without parents need not look: the create-only record says who was first.
        let Some(session) = chain.first() else {
            return Ok(None);
        };
        let name = DecisionName::Result(did_of(tenant, session, call, digest));
        let known = self.library.known_decision(tenant, session, name).await;
        let record = known
            .map(|bytes| ResultRecord::decode(&bytes))
            .transpose()?;
        Ok(record.map(frozen_of))
    }

    /// Decides a result's record, and returns what stands in it.
    pub(super) async fn freeze_result(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        did: DecisionId,
        action: Action,
    ) -> Result<Frozen, SaveError> {
        if self.library.options().is_read_only {
            return Err(SaveError::ReadOnly);
        }
        let record = ResultRecord::new(action, self.templates.newest().version);
        let name = DecisionName::Result(did);
        let stands = self
            .library
            .decide(tenant, session, name, record.encode().into())
            .await?;
        Ok(frozen_of(ResultRecord::decode(&stands)?))
    }
}
