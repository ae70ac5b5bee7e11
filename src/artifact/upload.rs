//! One multipart upload: parts of 8 MiB, a bounded number in flight, never left behind.
//!
//! A condition on the completing call is not relied on anywhere: the key is random and needs none.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use crate::limits::PARTS_IN_FLIGHT;
use crate::store::checksum;
use crate::store::keys::Key;
use crate::store::register::{Attempts, Stored};
use crate::store::{Part, Payload, SharedStore, StoreError, StoreErrorKind, Upload};

/// An upload in progress. Dropping it unfinished aborts it on a task of its own, so that parts never
/// outlive a cancelled request.
#[derive(Debug)]
pub(super) struct PartUpload {
    store: SharedStore,
    tracker: TaskTracker,
    upload: Upload,
    in_flight: JoinSet<Result<(Part, Payload), StoreError>>,
    /// Buffers of parts that are stored: an upload allocates as many as it has in flight, once, whatever
    /// its size. Freed ones would stay with the allocator's per-thread heaps.
    spare: Vec<BytesMut>,
    parts: Vec<Part>,
    sent: u32,
    size_bytes: u64,
    is_settled: bool,
}

impl PartUpload {
    /// Begins an upload of `key`.
    ///
    /// # Errors
    /// The store refuses or fails.
    pub(super) async fn begin(
        store: SharedStore,
        tracker: TaskTracker,
        key: &Key,
    ) -> Result<Self, StoreError> {
        let mut attempts = Attempts::new();
        loop {
            match store.create_upload(key).await {
                Ok(upload) => {
                    let in_flight = JoinSet::new();
                    let (parts, sent, size_bytes, is_settled) = (Vec::new(), 0, 0, false);
                    return Ok(Self {
                        store,
                        tracker,
                        upload,
                        in_flight,
                        spare: Vec::new(),
                        parts,
                        sent,
                        size_bytes,
                        is_settled,
                    });
                }
                // A lost reply may leave an upload that nobody knows of: the collector's.
                Err(error) if error.kind.is_transient() && attempts.pause().await => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends the next part; waits while the allowed number is in flight.
    ///
    /// # Errors
    /// An earlier part failed for good.
    pub(super) async fn send(&mut self, payload: Payload) -> Result<(), StoreError> {
        while self.in_flight.len() >= PARTS_IN_FLIGHT {
            self.take_one().await?;
        }
        self.sent += 1;
        self.size_bytes += payload.size_bytes();
        let (store, upload, number) = (Arc::clone(&self.store), self.upload.clone(), self.sent);
        self.in_flight
            .spawn(async move { send_part(&store, &upload, number, payload).await });
        Ok(())
    }

    /// Returns an empty buffer for the next part.
    pub(super) fn buffer(&mut self, part_bytes: usize) -> BytesMut {
        self.spare
            .pop()
            .unwrap_or_else(|| BytesMut::with_capacity(part_bytes))
    }

    async fn take_one(&mut self) -> Result<(), StoreError> {
        match self.in_flight.join_next().await {
            None => Ok(()),
            Some(Ok(sent)) => {
                let (part, payload) = sent?;
                self.parts.push(part);
                self.spare.extend(payload.into_buffer());
                Ok(())
            }
            Some(Err(join_error)) => Err(StoreError::new(
                StoreErrorKind::Unavailable,
                "put_part",
                &self.upload.key,
                format!("the part's task ended early: {join_error}"),
            )),
        }
    }

    /// Completes the upload and reads back what the store made of it.
    ///
    /// A lost reply to the completing call is settled by looking: the parts are gone and the object is
    /// there, or the call is sent again.
    ///
    /// # Errors
    /// A part failed, the store refuses, stays undecided, or holds another size than was sent.
    pub(super) async fn finish(mut self) -> Result<Stored, StoreError> {
        while !self.in_flight.is_empty() {
            self.take_one().await?;
        }
        self.parts.sort_by_key(|part| part.number);
        let mut attempts = Attempts::new();
        loop {
            let failure = match self.store.complete_upload(&self.upload, &self.parts).await {
                Ok(_) => break,
                // No such upload: completed by an attempt whose reply was lost, or aborted.
                Err(error) if error.is(StoreErrorKind::NotFound) => break,
                Err(error) => error,
            };
            if !(failure.kind.is_transient() && attempts.pause().await) {
                return Err(failure);
            }
        }
        let head = self.store.head(&self.upload.key).await?;
        let contradiction = if head.meta.size_bytes == self.size_bytes {
            let ours = checksum::of_parts(&self.parts);
            checksum::contradiction(head.meta.checksum.as_deref(), &ours)
        } else {
            let (stored, sent) = (head.meta.size_bytes, self.size_bytes);
            Some(format!(
                "the stored object has {stored} bytes instead of {sent}"
            ))
        };
        if let Some(detail) = contradiction {
            let kind = StoreErrorKind::Rejected;
            return Err(StoreError::new(
                kind,
                "complete_upload",
                &self.upload.key,
                detail,
            ));
        }
        self.is_settled = true;
        Ok(head.meta.into())
    }

    /// Gives the upload up and waits until its parts are freed.
    pub(super) async fn abort(mut self) {
        self.is_settled = true;
        self.in_flight.shutdown().await;
        abort_upload(&self.store, &self.upload).await;
    }
}

impl Drop for PartUpload {
    fn drop(&mut self) {
        if self.is_settled || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (store, upload) = (Arc::clone(&self.store), self.upload.clone());
        let mut in_flight = std::mem::take(&mut self.in_flight);
        self.tracker.spawn(async move {
            in_flight.shutdown().await;
            abort_upload(&store, &upload).await;
        });
    }
}

async fn send_part(
    store: &SharedStore,
    upload: &Upload,
    number: u32,
    payload: Payload,
) -> Result<(Part, Payload), StoreError> {
    let mut attempts = Attempts::new();
    loop {
        // Sending a part again replaces it, so every transient failure may simply be repeated.
        match store.put_part(upload, number, payload.clone()).await {
            Err(error) if error.kind.is_transient() && attempts.pause().await => {}
            outcome => return outcome.map(|part| (part, payload)),
        }
    }
}

async fn abort_upload(store: &SharedStore, upload: &Upload) {
    let mut attempts = Attempts::new();
    loop {
        match store.abort_upload(upload).await {
            Ok(()) => return,
            Err(error) if error.kind.is_transient() && attempts.pause().await => {}
            Err(error) => {
                tracing::warn!(
                    error = %error,
                    "multipart upload not aborted; the collector aborts it after 24 h"
                );
                return;
            }
        }
    }
}
