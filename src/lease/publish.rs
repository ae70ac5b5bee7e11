//! An owner's side in the safe order: what to publish when, and what an error means.
//!
//! [`publish_reference`] prepares, publishes, commits (an owner that publishes after its commit: prepares,
//! commits, publishes). **Only an explicit rejection ends the lease.** Any other failure may have been a
//! success: the lease stays as it is, protects on, and the failure goes to the caller unchanged;
//! reconciliation finds out. A transaction that is known already is never published again: its first try
//! may still be in flight. [`remove_reference`] removes first and releases then, so that a crash between
//! the two keeps bytes too long and loses none.
//!
//! For programs that have a [`Leases`] of their own; over HTTP the order is the same, told in
//! `docs/OWNERS.md`.

use crate::ids::{SessionId, Tenant};
use crate::lease::entry::{AbortReason, OwnerMode, ReleaseReason};
use crate::lease::failure::{LeaseError, PrepareError};
use crate::lease::leases::{LeaseAnswer, Leases, PrepareRequest};
use crate::lease::names::{OwnerGeneration, TransactionId};
use crate::lease::report::LeaseReport;

/// How a publication failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishFailure<E> {
    /// The owner said no, and nothing is in flight: the reference will never be there.
    Rejected(E),
    /// Anything else: it may be there, or come to be.
    Unknown(E),
}

/// What makes a reference visible, and takes it away.
pub trait Publisher: Sync {
    /// What goes wrong.
    type Error: Send;

    /// Makes the reference visible, under the lease's transaction id, and returns the owner's name of the
    /// state in which it is.
    fn publish(
        &self,
        lease: &LeaseReport,
    ) -> impl Future<Output = Result<Option<OwnerGeneration>, PublishFailure<Self::Error>>> + Send;

    /// Takes it away for good; durable when it returns.
    fn remove(
        &self,
        transaction_id: &TransactionId,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A reference was not published, or nobody knows.
#[derive(Debug, thiserror::Error)]
pub enum PublishError<E> {
    /// No lease: nothing was published.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The transaction is known already, so the publisher was not asked: reconcile it.
    #[error("the transaction is known already, {}: reconcile it", .0.lease.state)]
    Known(Box<LeaseAnswer>),
    /// The owner said no; the lease has ended, unless `ending` says why not.
    #[error("the owner rejected the reference")]
    Rejected {
        /// Its own words.
        error: E,
        /// Why the lease goes on protecting, if it does.
        ending: Option<LeaseError>,
    },
    /// The publication's outcome is unknown; the lease protects on until it is reconciled.
    #[error("the publication's outcome is unknown: the lease protects on")]
    Unknown(E),
    /// The commit did not come to stand, or nobody knows. An owner that publishes first has published, and
    /// the prepared lease protects on; one that commits first has published nothing.
    #[error("not committed: {0}")]
    Commit(LeaseError),
}

/// A reference is there still, or its lease is.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError<E> {
    /// It was not removed: the lease protects on.
    #[error("the reference was not removed")]
    Remove(E),
    /// It is removed, and its lease not released: call again, or let reconciliation find out.
    #[error("removed, and not released: {0}")]
    Release(LeaseError),
}

/// Publishes a reference under a lease.
///
/// # Errors
/// See [`PublishError`].
pub async fn publish_reference<P: Publisher>(
    leases: &Leases,
    (tenant, session): (&Tenant, &SessionId),
    request: PrepareRequest,
    publisher: &P,
) -> Result<LeaseAnswer, PublishError<P::Error>> {
    let prepared = leases.prepare(tenant, session, request).await?;
    if !prepared.is_new {
        return Err(PublishError::Known(Box::new(prepared)));
    }
    let name = prepared.lease.transaction_id.clone();
    match prepared.lease.mode {
        OwnerMode::OwnerFenced => match publisher.publish(&prepared.lease).await {
            Ok(generation) => {
                let committed = leases.commit(tenant, session, &name, generation).await;
                committed.map_err(PublishError::Commit)
            }
            Err(PublishFailure::Rejected(error)) => {
                let why = AbortReason::Rejected;
                let ended = leases.abort(tenant, session, &name, why).await;
                let ending = ended.err();
                Err(PublishError::Rejected { error, ending })
            }
            Err(PublishFailure::Unknown(error)) => Err(PublishError::Unknown(error)),
        },
        OwnerMode::CommitFirst => {
            let committed = leases.commit(tenant, session, &name, None).await;
            let committed = committed.map_err(PublishError::Commit)?;
            match publisher.publish(&committed.lease).await {
                Ok(_) => Ok(committed),
                Err(PublishFailure::Rejected(error)) => {
                    let why = ReleaseReason::Removed;
                    let ended = leases.release(tenant, session, &name, why).await;
                    let ending = ended.err();
                    Err(PublishError::Rejected { error, ending })
                }
                Err(PublishFailure::Unknown(error)) => Err(PublishError::Unknown(error)),
            }
        }
    }
}

/// Removes a reference and releases its lease, in this order.
///
/// # Errors
/// See [`RemoveError`].
pub async fn remove_reference<P: Publisher>(
    leases: &Leases,
    (tenant, session): (&Tenant, &SessionId),
    transaction_id: &TransactionId,
    publisher: &P,
) -> Result<LeaseAnswer, RemoveError<P::Error>> {
    let removed = publisher.remove(transaction_id).await;
    removed.map_err(RemoveError::Remove)?;
    let why = ReleaseReason::Removed;
    let released = leases.release(tenant, session, transaction_id, why).await;
    released.map_err(RemoveError::Release)
}
