//! The leases of one store: what the edges call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::artifact::library::Library;
use crate::digest::Sha256Digest;
use crate::error::ErrorCode;
use crate::ids::{SessionId, Tenant};
use crate::lease::entry::OwnerMode;
use crate::lease::evaluate::Operation;
use crate::lease::failure::LeaseError;
use crate::lease::journal::JournalError;
use crate::lease::journals::Journals;
use crate::lease::names::{OwnerName, Reason, TransactionId};
use crate::lease::owner::{NoOwners, OwnerLink};
use crate::lease::report::{JournalReport, JournalStatus, LeaseReport};
use crate::lease::state::{Lease, Phase};
use crate::store::{StoreError, StoreErrorKind};

mod answer;
mod change;
mod claim;

pub(in crate::lease) use self::answer::lease_answer;
pub use self::answer::{LeaseAnswer, LeaseFilter, LeasePage, Lifted, PrepareRequest, Resolved};

/// The owner of a lease that names none.
pub const DEFAULT_OWNER: &str = "default";

/// What an operator decides about leases.
#[derive(Debug, Clone, Default)]
pub struct LeaseOptions {
    /// Nothing is ever written.
    pub is_read_only: bool,
    /// The owners.
    pub owners: Owners,
}

/// The configured owners. Any other is owner-fenced without a URL: its leases stay prepared until it
/// commits or aborts them.
#[derive(Debug, Clone)]
pub struct Owners {
    /// In which order each of them publishes.
    pub modes: BTreeMap<OwnerName, OwnerMode>,
    /// How they are asked what they hold.
    pub link: Arc<dyn OwnerLink>,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            modes: BTreeMap::new(),
            link: Arc::new(NoOwners),
        }
    }
}

/// The leases of one store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leases {
    pub(in crate::lease) library: Library,
    pub(in crate::lease) journals: Journals,
    pub(in crate::lease) options: Arc<LeaseOptions>,
}

impl Leases {
    /// Works on the artifacts of `library` with the journals of the same store.
    pub fn new(library: Library, journals: Journals, options: LeaseOptions) -> Self {
        Self {
            library,
            journals,
            options: Arc::new(options),
        }
    }

    /// Returns the journals, for those that read records or collect.
    pub fn journals(&self) -> &Journals {
        &self.journals
    }

    /// Returns one lease as of now.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn get(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
    ) -> Result<LeaseAnswer, LeaseError> {
        let read = self.journals.submit(tenant, session, Operation::Read).await;
        Ok(lease_answer(read?, session, transaction_id)?)
    }

    /// Returns the leases of a session as of now, ended ones included.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn list(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        filter: &LeaseFilter,
    ) -> Result<LeasePage, LeaseError> {
        let read = self
            .journals
            .submit(tenant, session, Operation::Read)
            .await?;
        let after = filter.after.as_ref();
        let now = self.library.clock().now();
        let mut leases = read
            .state
            .leases()
            .filter(|lease| after.is_none_or(|after| lease.intent.transaction_id > *after))
            .filter(|lease| {
                filter
                    .owner
                    .as_ref()
                    .is_none_or(|o| lease.intent.owner == *o)
            })
            .filter(|lease| {
                filter
                    .state
                    .as_ref()
                    .is_none_or(|s| lease.phase.as_str() == s)
            })
            .filter(|lease| {
                filter
                    .stuck_for
                    .is_none_or(|least| is_stuck(lease, least, now))
            })
            .map(|lease| LeaseReport::of(lease, session));
        let page: Vec<_> = leases.by_ref().take(filter.limit).collect();
        let has_more = leases.next().is_some();
        drop(leases);
        Ok(LeasePage {
            leases: page,
            has_more,
            receipt: read.receipt,
        })
    }

    /// Returns the journal's last record and whether its word is good, as of now.
    ///
    /// # Errors
    /// The store fails, or too much waits for the journal.
    pub async fn journal(
        &self,
        tenant: &Tenant,
        session: &SessionId,
    ) -> Result<JournalReport, LeaseError> {
        match self.journals.submit(tenant, session, Operation::Read).await {
            Ok(answer) => Ok(JournalReport::of(&answer)),
            Err(JournalError::Unreadable(error)) => Ok(JournalReport {
                receipt: None,
                status: if error.code() == ErrorCode::JournalReadOnly {
                    JournalStatus::ReadOnly
                } else {
                    JournalStatus::Corrupt
                },
                ineffective: Vec::new(),
                detail: Some(error.to_string()),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the outcome of a record final: the caller of an unknown outcome gives its `seq` and
    /// `sha256`. Where the slot is still free it is occupied, so that the record either stands now or
    /// never will.
    ///
    /// # Errors
    /// See [`LeaseError`]; a `seq` beyond the first free slot is refused.
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        seq: u64,
        sha256: Sha256Digest,
    ) -> Result<Resolved, LeaseError> {
        self.demand_writable()?;
        let operation = Operation::Occupy { seq };
        let answer = self.journals.submit(tenant, session, operation).await?;
        let stored = self.journals.hash_of(tenant, session, seq).await;
        // The slot is occupied by now: an absence is an older state, and not "never".
        let stored = stored.and_then(|stored| {
            stored.ok_or_else(|| {
                let (kind, detail) = (StoreErrorKind::Unavailable, "an older state was shown");
                StoreError::new(kind, "get", format!("journal record {seq}"), detail)
            })
        });
        let stored = stored.map_err(JournalError::Store)?;
        let lease = answer.state.lease(transaction_id);
        Ok(Resolved {
            has_landed: stored == sha256,
            lease: lease.map(|lease| LeaseReport::of(lease, session)),
            receipt: answer.receipt,
        })
    }

    /// Ends `suspect` for the records up to `seq`, which an operator has looked at.
    ///
    /// # Errors
    /// See [`LeaseError`]; a `seq` that is not there yet is refused.
    pub async fn clear(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        seq: u64,
        reason: Option<Reason>,
    ) -> Result<JournalReport, LeaseError> {
        self.demand_writable()?;
        let operation = Operation::Clear { seq, reason };
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(JournalReport::of(&answer))
    }

    /// Waits until every journal has answered what was asked of it.
    pub async fn drain(&self) {
        self.journals.drain().await;
    }

    pub(in crate::lease) fn demand_writable(&self) -> Result<(), LeaseError> {
        if self.options.is_read_only {
            return Err(LeaseError::ReadOnly);
        }
        Ok(())
    }
}

/// Returns whether a lease has been prepared for at least so long; one whose date nobody wrote down counts:
/// better seen than overlooked.
pub(in crate::lease) fn is_stuck(lease: &Lease, least: Duration, now: Timestamp) -> bool {
    let age = lease.prepared_as_of.map(|then| now.duration_since(then));
    lease.phase == Phase::Prepared
        && age.is_none_or(|age| Duration::try_from(age).is_ok_and(|age| age >= least))
}
