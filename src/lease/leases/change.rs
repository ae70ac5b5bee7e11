//! What becomes of a lease after it was prepared.

use jiff::Timestamp;

use super::Leases;
use super::answer::{LeaseAnswer, lease_answer};
use crate::ids::{SessionId, Tenant};
use crate::lease::entry::{AbortReason, ReleaseReason};
use crate::lease::evaluate::Operation;
use crate::lease::failure::LeaseError;
use crate::lease::names::{OwnerGeneration, TransactionId};

impl Leases {
    /// Confirms that the owner holds its references.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn commit(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        owner_generation: Option<OwnerGeneration>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Commit {
            transaction_id: transaction_id.clone(),
            owner_generation,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Ends a prepared lease that will never be published.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn abort(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        why: AbortReason,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Abort {
            transaction_id: transaction_id.clone(),
            why,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Ends a committed lease whose references are gone.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn release(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        why: ReleaseReason,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Release {
            transaction_id: transaction_id.clone(),
            why,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Moves a committed lease's end into the future; `None` ends its end.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn extend(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        retain_until: Option<Timestamp>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Extend {
            transaction_id: transaction_id.clone(),
            retain_until,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    async fn change(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        operation: Operation,
    ) -> Result<LeaseAnswer, LeaseError> {
        self.demand_writable()?;
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(lease_answer(answer, session, transaction_id)?)
    }
}
