//! Taking a body in: one pass, constant memory, every limit enforced while the bytes arrive.
//!
//! Up to one part (8 MiB) is kept and known in full; the byte after that begins a multipart upload
//! under the save's own artifact id. Which of the two depends on the size alone.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::artifact::request::{BodyError, BodyStream, SaturatedError, SaveError, SaveRequest};
use crate::artifact::scan::{BodyFacts, BodyScan};
use crate::artifact::upload::PartUpload;
use crate::artifact::upload_memory::Reserved;
use crate::digest::{Sha256Digest, Sha256Hasher};
use crate::limits::{BODY_IDLE_TIMEOUT, MAX_PARTS, PART_BYTES, UPLOAD_GROWTH_TIMEOUT};
use crate::store::keys::Key;
use crate::store::register::Stored;
use crate::store::{Payload, SharedStore};

/// A body that outgrows this gets room for a whole part at once; smaller ones do not pay for it.
pub(super) const SMALL_BODY_BYTES: usize = 1 << 20;

/// A body that has arrived whole and as stated.
#[derive(Debug)]
pub(super) struct Intake {
    /// What was learned of it.
    pub(super) facts: BodyFacts,
    /// Where its bytes are.
    pub(super) bytes: IntakeBytes,
}

/// Where the bytes of a taken body are.
#[derive(Debug)]
pub(super) enum IntakeBytes {
    /// Here; nothing was sent to the store.
    Known(Box<Payload>),
    /// In the store, under the save's own artifact id.
    Streamed(Stored),
}

/// Where a body goes, and how much of it is taken.
#[derive(Debug)]
pub(super) struct Intaker {
    /// The store.
    pub(super) store: SharedStore,
    /// Tasks that outlive a cancelled request.
    pub(super) tracker: TaskTracker,
    /// The key of the save's own body.
    pub(super) key: Key,
    /// The cap in bytes.
    pub(super) limit_bytes: u64,
    /// What is known in full, and the size of a part above that.
    pub(super) part_bytes: usize,
    /// Bytes of head and of tail that the preview may need.
    pub(super) window_bytes: usize,
}

impl Intaker {
    /// Takes the body in.
    ///
    /// # Errors
    /// The body breaks off, is too large, is not what the request states, or the store fails; then
    /// nothing is left of it (an upload was aborted).
    pub(super) async fn take(
        &self,
        request: &SaveRequest,
        body: BodyStream,
        memory: &mut Reserved,
    ) -> Result<Intake, SaveError> {
        let limit_bytes = check_stated_size(request, self.limit_bytes)?;
        let mut taken = Taken {
            intaker: self,
            memory: Some(memory),
            scan: BodyScan::new(self.window_bytes),
            part: BytesMut::new(),
            upload: None,
        };
        match taken.read(request, body, limit_bytes).await {
            Ok(()) => taken.finish(request).await,
            Err(error) => taken.give_up(error).await,
        }
    }
}

/// Refuses a body that states to be larger than `limit_bytes`, before a byte is read, and returns the limit
/// that its bytes are held to.
///
/// # Errors
/// It is too large.
pub(super) fn check_stated_size(request: &SaveRequest, limit_bytes: u64) -> Result<u64, BodyError> {
    let limit_bytes = limit_bytes.min(PART_BYTES as u64 * MAX_PARTS);
    match request.expected_bytes {
        Some(stated) if stated > limit_bytes => Err(BodyError::TooLarge { limit_bytes }),
        Some(_) | None => Ok(limit_bytes),
    }
}

/// What becomes of a result's bytes while they arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// All go somewhere: up to one part is kept, more is sent on.
    Store,
    /// Up to this much is kept; of more only what the scan learned is left.
    UpTo(usize),
}

/// A result's body, as far as it could be had.
#[derive(Debug)]
pub(super) struct Reception {
    /// What was learned of it.
    pub(super) facts: BodyFacts,
    /// Where its bytes are.
    pub(super) bytes: ReceivedBytes,
}

/// Where the bytes of a received body are.
#[derive(Debug)]
pub(super) enum ReceivedBytes {
    /// Here, all of them.
    Known(Bytes),
    /// In the store, under the save's own artifact id.
    Streamed(Stored),
    /// Read to the end and let go.
    LetGo,
    /// Read to the end; they could not be sent on.
    NotStored(SaveError),
    /// Not read to the end: there are more than the service takes.
    TooLarge {
        /// The cap.
        limit_bytes: u64,
    },
}

impl Intaker {
    /// Takes a result in. Unlike [`Intaker::take`] it goes on where the store fails, because what stands in
    /// the prompt then is made of both ends.
    ///
    /// # Errors
    /// Only what is the caller's: the body breaks off, or is not what the request states.
    pub(super) async fn receive(
        &self,
        request: &SaveRequest,
        mut body: BodyStream,
        keeping: Keeping,
        memory: Option<&mut Reserved>,
    ) -> Result<Reception, SaveError> {
        let limit_bytes = self.limit_bytes.min(PART_BYTES as u64 * MAX_PARTS);
        // Of a body that is known to be too large only its head is of use.
        let is_too_large = request
            .expected_bytes
            .is_some_and(|stated| stated > limit_bytes);
        let read_to = if is_too_large {
            limit_bytes.min(self.window_bytes as u64)
        } else {
            limit_bytes
        };
        let mut taken = Taken {
            intaker: self,
            memory,
            scan: BodyScan::new(self.window_bytes),
            part: BytesMut::new(),
            upload: None,
        };
        let mut failure = None;
        let most_kept = match keeping {
            Keeping::Store => usize::MAX,
            Keeping::UpTo(most) => most,
        };
        let mut is_kept = true;
        loop {
            let frame = match next_frame(&mut body, BODY_IDLE_TIMEOUT).await {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => return taken.give_up(error.into()).await,
            };
            let size_bytes = taken.scan.size_bytes() + frame.len() as u64;
            if size_bytes > read_to {
                let room = usize::try_from(read_to - taken.scan.size_bytes()).unwrap_or(usize::MAX);
                taken.scan.push(&frame[..room]);
                let bytes = ReceivedBytes::TooLarge { limit_bytes };
                return Ok(taken.let_go(bytes).await);
            }
            // No more is taken in than memory was reserved for.
            let is_more_than_stated = request
                .expected_bytes
                .is_some_and(|stated| size_bytes > stated);
            if is_more_than_stated && let Err(error) = check_size(request, size_bytes) {
                return taken.give_up(error).await;
            }
            taken.scan.push(&frame);
            if !is_kept {
                continue;
            }
            is_kept = taken.part.len() + frame.len() <= most_kept || taken.upload.is_some();
            if !is_kept {
                taken.part = BytesMut::new();
                continue;
            }
            if let Err(error) = taken.push(frame).await {
                taken.abandon().await;
                (failure, is_kept) = (Some(error), false);
            }
        }
        let stated = check_size(request, taken.scan.size_bytes());
        if let Err(error) = stated {
            return taken.give_up(error).await;
        }
        let facts = std::mem::replace(&mut taken.scan, BodyScan::new(0)).finish();
        if let Err(error) = check_digest(request, facts.sha256) {
            return taken.give_up(error).await;
        }
        let part = std::mem::take(&mut taken.part);
        let bytes = match (is_kept, failure) {
            (false, Some(error)) => ReceivedBytes::NotStored(error),
            (false, None) => ReceivedBytes::LetGo,
            (true, _) => match taken.upload.take() {
                None => ReceivedBytes::Known(part.freeze()),
                Some(mut upload) => {
                    let sent = upload.send(Payload::from(part)).await;
                    let finished = match sent {
                        Ok(()) => upload.finish().await,
                        Err(error) => {
                            upload.abort().await;
                            Err(error)
                        }
                    };
                    match finished {
                        Ok(stored) => ReceivedBytes::Streamed(stored),
                        Err(error) => ReceivedBytes::NotStored(error.into()),
                    }
                }
            },
        };
        Ok(Reception { facts, bytes })
    }
}

/// Reads a body that need not be stored, checks that it is what the request states, and returns its
/// digest.
///
/// # Errors
/// As [`Intaker::take`].
pub(super) async fn check_only(
    request: &SaveRequest,
    mut body: BodyStream,
    limit_bytes: u64,
) -> Result<Sha256Digest, SaveError> {
    let mut hasher = Sha256Hasher::default();
    let mut size_bytes = 0_u64;
    while let Some(frame) = next_frame(&mut body, BODY_IDLE_TIMEOUT).await? {
        size_bytes += frame.len() as u64;
        if size_bytes > limit_bytes {
            return Err(BodyError::TooLarge { limit_bytes }.into());
        }
        hasher.update(&frame);
    }
    check_size(request, size_bytes)?;
    let digest = hasher.finish();
    check_digest(request, digest)?;
    Ok(digest)
}

fn check_size(request: &SaveRequest, size_bytes: u64) -> Result<(), SaveError> {
    match request
        .expected_bytes
        .filter(|stated| *stated != size_bytes)
    {
        Some(stated) => {
            let detail = format!("{size_bytes} of {stated} bytes arrived");
            Err(BodyError::Incomplete(detail).into())
        }
        None => Ok(()),
    }
}

fn check_digest(request: &SaveRequest, actual: Sha256Digest) -> Result<(), SaveError> {
    match request.expected_digest {
        Some(expected) if expected != actual => Err(SaveError::DigestMismatch { expected, actual }),
        _ => Ok(()),
    }
}

struct Taken<'a> {
    intaker: &'a Intaker,
    /// Its share of the memory; none where at most [`SMALL_BODY_BYTES`] are kept.
    memory: Option<&'a mut Reserved>,
    scan: BodyScan,
    /// The part that is being collected, in one piece. Copying each frame once costs a fraction of
    /// hashing it; keeping frames would pin the larger read buffers that they are slices of, and let a
    /// client that sends single bytes make each cost an allocation.
    part: BytesMut,
    upload: Option<PartUpload>,
}

impl Taken<'_> {
    async fn read(
        &mut self,
        request: &SaveRequest,
        mut body: BodyStream,
        limit_bytes: u64,
    ) -> Result<(), SaveError> {
        let mut size_bytes = 0_u64;
        while let Some(frame) = next_frame(&mut body, BODY_IDLE_TIMEOUT).await? {
            size_bytes += frame.len() as u64;
            if size_bytes > limit_bytes {
                return Err(BodyError::TooLarge { limit_bytes }.into());
            }
            // No more is taken in than memory was reserved for.
            if request
                .expected_bytes
                .is_some_and(|stated| size_bytes > stated)
            {
                return check_size(request, size_bytes);
            }
            self.scan.push(&frame);
            self.push(frame).await?;
        }
        check_size(request, size_bytes)
    }

    async fn give_up<T>(mut self, error: SaveError) -> Result<T, SaveError> {
        self.abandon().await;
        Err(error)
    }

    /// Ends with what the scan has learned so far.
    async fn let_go(mut self, bytes: ReceivedBytes) -> Reception {
        self.abandon().await;
        let facts = self.scan.finish();
        Reception { facts, bytes }
    }

    /// Forgets the bytes, here and in the store.
    async fn abandon(&mut self) {
        self.part = BytesMut::new();
        if let Some(upload) = self.upload.take() {
            upload.abort().await;
        }
    }

    /// Adds a frame to the current part, sending parts as they fill; the last byte of a body of
    /// exactly one part stays known in full.
    async fn push(&mut self, mut frame: Bytes) -> Result<(), SaveError> {
        while !frame.is_empty() {
            let room = self.intaker.part_bytes - self.part.len();
            if room == 0 {
                self.send_part().await?;
                continue;
            }
            let piece = frame.split_to(room.min(frame.len()));
            if self.part.len() + piece.len() > SMALL_BODY_BYTES {
                self.grow().await?;
                self.part.reserve(room);
            }
            self.part.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// Waits for the memory of a large body; the client is held back meanwhile.
    async fn grow(&mut self) -> Result<(), SaveError> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        let budget = memory.budget_bytes();
        timeout(UPLOAD_GROWTH_TIMEOUT, memory.grow())
            .await
            .map_err(|_| SaveError::Saturated(SaturatedError::Memory(budget)))
    }

    async fn send_part(&mut self) -> Result<(), SaveError> {
        let part = Payload::from(std::mem::take(&mut self.part));
        if self.upload.is_none() {
            let Intaker {
                store,
                tracker,
                key,
                ..
            } = self.intaker;
            self.upload = Some(PartUpload::begin(Arc::clone(store), tracker.clone(), key).await?);
        }
        if let Some(upload) = &mut self.upload {
            upload.send(part).await?;
            self.part = upload.buffer(self.intaker.part_bytes);
        }
        Ok(())
    }

    async fn finish(mut self, request: &SaveRequest) -> Result<Intake, SaveError> {
        let facts = std::mem::replace(&mut self.scan, BodyScan::new(0)).finish();
        if let Err(error) = check_digest(request, facts.sha256) {
            return self.give_up(error).await;
        }
        let part = Payload::from(std::mem::take(&mut self.part));
        let bytes = match self.upload.take() {
            None => IntakeBytes::Known(Box::new(part)),
            Some(mut upload) => {
                upload.send(part).await?;
                IntakeBytes::Streamed(upload.finish().await?)
            }
        };
        Ok(Intake { facts, bytes })
    }
}

async fn next_frame(body: &mut BodyStream, idle: Duration) -> Result<Option<Bytes>, BodyError> {
    match tokio::time::timeout(idle, body.next()).await {
        Ok(frame) => frame.transpose(),
        Err(_) => Err(BodyError::Stalled(idle.as_secs())),
    }
}
