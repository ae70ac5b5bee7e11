//! The memory that the bodies of all uploads may take together.
//!
//! An upload reserves all that it can come to need before it reads a byte, and never asks for more:
//! uploads that each held a part and waited for a second could wait for each other for ever. What turns
//! out to need less gives the rest back. Waiters are served in their order, so that a stream of small
//! bodies cannot starve a large one.
//!
//! Invariant: the sum of what is reserved never passes the budget. It bounds what our code holds of
//! bodies; a connection's read buffer ([`MAX_HEAD_BYTES`](crate::limits::MAX_HEAD_BYTES)) comes on top.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::artifact::ingest::SMALL_BODY_BYTES;
use crate::limits::{PART_BYTES, STREAMED_UPLOAD_BYTES, UPLOAD_MEMORY_UNIT_BYTES};

/// Returns the most that taking in a body can need: of `stated` bytes, or of any size.
pub(super) fn need_bytes(stated: Option<u64>) -> u64 {
    match stated {
        // A small body's buffer grows by doubling.
        Some(size) if size <= SMALL_BODY_BYTES as u64 => 2 * size + UPLOAD_MEMORY_UNIT_BYTES,
        Some(size) if size <= PART_BYTES as u64 => PART_BYTES as u64 + UPLOAD_MEMORY_UNIT_BYTES,
        Some(_) | None => STREAMED_UPLOAD_BYTES,
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UPLOAD_MEMORY_UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct UploadMemory {
    free: Arc<Semaphore>,
    total: u32,
}

impl UploadMemory {
    /// Hands out at most `budget_bytes`, in whole units.
    pub(super) fn new(budget_bytes: u64) -> Self {
        let whole = budget_bytes / UPLOAD_MEMORY_UNIT_BYTES;
        let total = u32::try_from(whole).unwrap_or(u32::MAX);
        Self {
            free: Arc::new(Semaphore::new(total as usize)),
            total,
        }
    }

    /// Waits until `bytes` are free; what is more than the whole budget waits for all of it. Dropping the
    /// future gives up the place in the queue.
    pub(super) async fn reserve(&self, bytes: u64) -> Reserved {
        let wanted = units(bytes).min(self.total);
        let permit = Arc::clone(&self.free)
            .acquire_many_owned(wanted)
            .await
            .expect("the budget is never closed");
        Reserved(permit)
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

/// An upload's share; given back when dropped.
#[derive(Debug)]
pub(super) struct Reserved(OwnedSemaphorePermit);

impl Reserved {
    /// Gives back all but `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(surplus));
    }
}

#[cfg(test)]
mod tests;
