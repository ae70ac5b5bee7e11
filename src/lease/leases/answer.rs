//! What is asked of the leases of a store, and what is answered.

use std::time::Duration;

use jiff::Timestamp;

use crate::digest::Sha256Digest;
use crate::ids::SessionId;
use crate::lease::entry::OwnerMode;
use crate::lease::evaluate::Refusal;
use crate::lease::journal::{Answer, JournalError, Receipt};
use crate::lease::names::{OwnerName, TransactionId};
use crate::lease::report::LeaseReport;
use crate::lease::state::State;

/// A claim on an artifact, as a caller states it.
#[derive(Debug, Clone)]
pub struct PrepareRequest {
    /// The owner's name of this lease.
    pub transaction_id: TransactionId,
    /// `artifact:{session}:{aid}:{hex}`.
    pub source_id: String,
    /// Digest of the artifact's bytes.
    pub content_sha256: Sha256Digest,
    /// References that the owner will hold; at least 1.
    pub reference_count: u64,
    /// When it will not need them any more; `None`: never.
    pub retain_until: Option<Timestamp>,
    /// Who; [`DEFAULT_OWNER`](super::DEFAULT_OWNER) where the caller names none.
    pub owner: Option<OwnerName>,
    /// In which order it publishes; as configured where the caller names none.
    pub mode: Option<OwnerMode>,
}

/// Which leases a list shows.
#[derive(Debug, Clone, Default)]
pub struct LeaseFilter {
    /// Only this owner's.
    pub owner: Option<OwnerName>,
    /// Only in this state: `prepared`, `committed`, `aborted` or `released`.
    pub state: Option<String>,
    /// Only prepared ones that have been so for this long, or for nobody knows how long.
    pub stuck_for: Option<Duration>,
    /// Only transactions after this one.
    pub after: Option<TransactionId>,
    /// At most so many.
    pub limit: usize,
}

/// A page of leases, by transaction id.
#[derive(Debug, Clone)]
pub struct LeasePage {
    /// The leases.
    pub leases: Vec<LeaseReport>,
    /// Whether there are more.
    pub has_more: bool,
    /// The journal's last record as it was just seen.
    pub receipt: Option<Receipt>,
}

/// A lease as an operation left it.
#[derive(Debug, Clone)]
pub struct LeaseAnswer {
    /// Whether the operation changed it; else it was so already.
    pub is_new: bool,
    /// The lease.
    pub lease: LeaseReport,
    /// The record that proves it; keep it.
    pub receipt: Option<Receipt>,
}

/// What a resolve found.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// Whether the record with that hash stands in the journal; else it never will.
    pub has_landed: bool,
    /// The lease as the journal says now; `None` where there is none.
    pub lease: Option<LeaseReport>,
    /// The journal's last record as it was just seen.
    pub receipt: Option<Receipt>,
}

/// What a lift released.
#[derive(Debug, Clone)]
pub struct Lifted {
    /// Whether there was a hold.
    pub is_new: bool,
    /// The record that proves that there is none now.
    pub receipt: Option<Receipt>,
}

/// Returns the lease that an operation was about, as its answer's state says.
///
/// # Errors
/// There is none of that name.
pub(in crate::lease) fn lease_answer(
    answer: Answer,
    session: &SessionId,
    transaction_id: &TransactionId,
) -> Result<LeaseAnswer, JournalError> {
    let find = |state: &State| {
        let lease = state.lease(transaction_id);
        lease.map(|lease| LeaseReport::of(lease, session))
    };
    Ok(LeaseAnswer {
        is_new: answer.is_new,
        lease: find(&answer.state).ok_or(JournalError::Refused(Refusal::TransactionUnknown))?,
        receipt: answer.receipt,
    })
}
