//! One open journal of this replica: a task that appends, and the handle that asks it.
//!
//! The task is the only one here that writes this journal, so that a slot has one set of bytes per
//! process until it is decided, whatever becomes of the requests. While a write is in flight callers
//! queue; the next record takes them all. There is no timer: an idle journal answers in one round trip.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::digest::Sha256Digest;
use crate::ids::SessionId;
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::open::OpenError;
use crate::lease::site::Site;
use crate::lease::state::State;
use crate::limits::{JOURNAL_QUEUE, JOURNAL_REQUEST_DEADLINE};
use crate::store::StoreError;

mod appender;

use self::appender::Appender;

/// Proof that a journal held a record: whoever keeps it finds out if the journal ever loses it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Receipt {
    /// The journal's session.
    pub session: SessionId,
    /// The record.
    pub seq: u64,
    /// The SHA-256 of its stored bytes.
    pub sha256: Sha256Digest,
}

/// The answer to an operation that stands.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether this operation appended something; else it was so already.
    pub is_new: bool,
    /// The record that holds the operation's entries; where it appended none, the last record of the
    /// journal as it was just seen. `None` for a journal without records.
    pub receipt: Option<Receipt>,
    /// The state after that record.
    pub state: Arc<State>,
    /// Whether a stored checkpoint contradicts the records.
    pub has_conflict: bool,
}

/// An operation did not come to stand, or it is not known whether it will.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// The state of the journal rules it out; nothing was written.
    #[error(transparent)]
    Refused(Refusal),
    /// It was sent to a slot whose outcome is unknown: it stands if this record is ever there.
    #[error("the outcome of journal record {} is unknown: {cause}", .receipt.seq)]
    OutcomeUnknown {
        /// The record that would hold it.
        receipt: Box<Receipt>,
        /// What the store said last.
        cause: StoreError,
    },
    /// The journal cannot be folded; nothing was written.
    #[error(transparent)]
    Unreadable(OpenError),
    /// The store failed before anything of this operation was written.
    #[error(transparent)]
    Store(StoreError),
    /// Others took every slot that it was aimed at; nothing was written.
    #[error("other writers took every slot for {} s", JOURNAL_REQUEST_DEADLINE.as_secs())]
    Contended,
    /// Too many operations wait for this journal; nothing was written.
    #[error("{JOURNAL_QUEUE} operations wait for this journal")]
    Saturated,
    /// The journal's task has ended; nothing was written.
    #[error("the journal was closed")]
    Closed,
}

impl From<OpenError> for JournalError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => Self::Store(error),
            OpenError::Broken { .. } | OpenError::Gap { .. } => Self::Unreadable(error),
        }
    }
}

type Reply = Result<Answer, JournalError>;

/// An operation on its way to the task.
#[derive(Debug)]
struct Request {
    operation: Operation,
    reply: oneshot::Sender<Reply>,
    deadline: Instant,
}

impl Request {
    /// Whether somebody still waits: only then may it be aimed at another slot.
    fn is_waited_for(&self) -> bool {
        !self.reply.is_closed()
    }

    fn answer(self, reply: Reply) {
        // Nobody is left to hear it: the entry stands or not all the same.
        let _ = self.reply.send(reply);
    }
}

/// An open journal. The task ends when the last handle is gone and the queue is empty.
#[derive(Debug, Clone)]
pub struct Journal {
    requests: mpsc::Sender<Request>,
}

impl Journal {
    /// Opens the journal; nothing is read before the first operation.
    pub fn open(site: Site) -> Self {
        let (requests, queue) = mpsc::channel(JOURNAL_QUEUE);
        let tracker = site.around().tracker.clone();
        tracker.spawn(Appender::new(site, queue).run());
        Self { requests }
    }

    /// Asks for an operation and waits for its answer. A caller that stops waiting leaves the operation
    /// to the slot that it was sent to, if any.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub async fn submit(&self, operation: Operation) -> Result<Answer, JournalError> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            operation,
            reply,
            deadline: Instant::now() + JOURNAL_REQUEST_DEADLINE,
        };
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => JournalError::Saturated,
                mpsc::error::TrySendError::Closed(_) => JournalError::Closed,
            })?;
        answer.await.unwrap_or(Err(JournalError::Closed))
    }
}

#[cfg(test)]
mod tests;
