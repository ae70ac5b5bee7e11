//! The memory that the bodies of all uploads may take together.
//!
//! An upload whose size is stated reserves what it needs before it reads a byte. One of unknown size
//! begins with little, since most outputs are small and a running tool's output comes slowly, and asks
//! once for the rest when it has outgrown that. Uploads that each hold something and wait for more could
//! wait for each other for ever; two rules exclude it:
//!
//! * Only those that have not grown yet ever wait while they hold something, and together they hold at
//!   most the budget less the need of one large upload. So whenever nobody else holds anything, the next
//!   one in the queue is served.
//! * Who has grown, or has stated a size, waits for nothing any more: it ends, and gives back.
//!
//! Waiters are served in their order, so that a stream of small bodies cannot starve a large one.
//!
//! Invariant: the sum of what is reserved never passes the budget. It bounds what our code holds of
//! bodies; a connection's read buffer ([`MAX_HEAD_BYTES`](crate::limits::MAX_HEAD_BYTES)) comes on top.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::artifact::ingest::SMALL_BODY_BYTES;
use crate::limits::{PART_BYTES, STREAMED_UPLOAD_BYTES, UPLOAD_MEMORY_UNIT_BYTES};

/// Returns the most that taking in a body of `size_bytes` can need.
fn need_bytes(size_bytes: u64) -> u64 {
    if size_bytes <= SMALL_BODY_BYTES as u64 {
        // A small body's buffer grows by doubling.
        2 * size_bytes + UPLOAD_MEMORY_UNIT_BYTES
    } else if size_bytes <= PART_BYTES as u64 {
        PART_BYTES as u64 + UPLOAD_MEMORY_UNIT_BYTES
    } else {
        STREAMED_UPLOAD_BYTES
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UPLOAD_MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// What an upload of unknown size begins with.
fn first_units() -> u32 {
    units(need_bytes(SMALL_BODY_BYTES as u64))
}

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct UploadMemory {
    free: Arc<Semaphore>,
    /// What those that may still grow hold of `free`, counted down: the first rule.
    growable: Arc<Semaphore>,
    total: u32,
}

impl UploadMemory {
    /// Hands out at most `budget_bytes`, in whole units.
    pub(super) fn new(budget_bytes: u64) -> Self {
        let whole = budget_bytes / UPLOAD_MEMORY_UNIT_BYTES;
        let total = u32::try_from(whole).unwrap_or(u32::MAX);
        let growable = total.saturating_sub(units(STREAMED_UPLOAD_BYTES));
        Self {
            free: Arc::new(Semaphore::new(total as usize)),
            growable: Arc::new(Semaphore::new(growable as usize)),
            total,
        }
    }

    /// Waits until there is room to begin with a body of the `stated` size, or of any. Dropping the future
    /// gives up the place in the queue.
    pub(super) async fn reserve(&self, stated: Option<u64>) -> Reserved {
        let largest = self.total.saturating_sub(units(STREAMED_UPLOAD_BYTES));
        let (growable, wanted) = match stated {
            Some(size) => (None, units(need_bytes(size))),
            // The whole budget is hardly more than one upload: all of it at once.
            None if largest < first_units() => (None, units(STREAMED_UPLOAD_BYTES)),
            None => (
                Some(take(&self.growable, first_units()).await),
                first_units(),
            ),
        };
        Reserved {
            held: take(&self.free, wanted.min(self.total)).await,
            growable,
            memory: self.clone(),
        }
    }

    /// Returns the budget in bytes.
    pub(super) fn total_bytes(&self) -> u64 {
        u64::from(self.total) * UPLOAD_MEMORY_UNIT_BYTES
    }

    /// Returns how much of the budget is reserved now.
    pub(super) fn reserved_bytes(&self) -> u64 {
        let free = self.free.available_permits() as u64;
        u64::from(self.total).saturating_sub(free) * UPLOAD_MEMORY_UNIT_BYTES
    }
}

async fn take(semaphore: &Arc<Semaphore>, units: u32) -> OwnedSemaphorePermit {
    Arc::clone(semaphore)
        .acquire_many_owned(units)
        .await
        .expect("the budget is never closed")
}

/// An upload's share; given back when dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    held: OwnedSemaphorePermit,
    /// There while it may still grow.
    growable: Option<OwnedSemaphorePermit>,
    memory: UploadMemory,
}

impl Reserved {
    /// Returns the budget that the share is of, in bytes.
    pub(super) fn budget_bytes(&self) -> u64 {
        self.memory.total_bytes()
    }

    /// Waits until the share is enough for a body of any size. Returns at once where it is, or where a
    /// size was stated. Dropping the future leaves the share as it was.
    pub(super) async fn grow(&mut self) {
        if self.growable.is_none() {
            return;
        }
        let whole = units(STREAMED_UPLOAD_BYTES).min(self.memory.total);
        let held = u32::try_from(self.held.num_permits()).unwrap_or(u32::MAX);
        let more = take(&self.memory.free, whole.saturating_sub(held)).await;
        self.held.merge(more);
        self.growable = None;
    }

    /// Gives back what a body of `size_bytes`, which has arrived, does not need. It does not grow any more.
    pub(super) fn settle_at(&mut self, size_bytes: u64) {
        self.keep(units(need_bytes(size_bytes)));
    }

    /// Gives everything back: nothing of the body is here any more.
    pub(super) fn release(&mut self) {
        self.keep(0);
    }

    fn keep(&mut self, units: u32) {
        self.growable = None;
        let surplus = self.held.num_permits().saturating_sub(units as usize);
        drop(self.held.split(surplus));
    }
}

#[cfg(test)]
mod tests;
