//! A result on its way: received first, then decided by somebody else, then saved or let go.
//!
//! A save of an artifact knows from the start that it saves. A result may stay in the prompt, so its
//! bytes wait here: up to one part in memory, more under the save's own artifact id in the store, where
//! the last act of a save takes them back if nothing names them.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::decision_access::DecisionName;
use crate::artifact::ingest::{Intake, IntakeBytes, Keeping, ReceivedBytes, Reception};
use crate::artifact::library::Library;
use crate::artifact::own_body::OwnBody;
use crate::artifact::request::{BodyError, BodyStream, SaturatedError, SaveError, SaveRequest};
use crate::artifact::save::{Beside, Job, Saved};
use crate::artifact::scan::BodyFacts;
use crate::artifact::upload_memory::Reserved;
use crate::ids::{ArtifactRef, SessionKey};
use crate::limits::{MAX_INLINE_TEXT_BYTES, PART_BYTES, UPLOAD_DEADLINE, UPLOAD_QUEUE_TIMEOUT};
use crate::store::register::DecideError;

/// What is kept of a result that found no place: so little that every connection of the service may, beside
/// the budget of all uploads. Of a larger one both ends are kept.
const UNPLACED_RESULT_BYTES: usize = 64 << 10;

/// A result that has arrived.
#[derive(Debug)]
pub struct Received {
    facts: BodyFacts,
    bytes: ReceivedBytes,
    own: OwnBody,
    /// The live artifact of the same bytes, where the request states their digest and this replica knows
    /// it: nothing had to be sent.
    known: Option<ConfirmedManifest>,
    /// The place that bounds what is in memory; none where all were taken.
    place: Option<Place>,
}

/// A place among the uploads, with its share of their memory.
#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
    memory: Reserved,
}

/// How a result was saved.
#[derive(Debug)]
pub struct SavedResult {
    /// The artifact.
    pub saved: Result<Saved, SaveError>,
    /// What stands in the register that was to be decided beside the manifest; `None` where it was not
    /// sent.
    pub beside: Option<Result<Bytes, DecideError>>,
}

impl Received {
    /// Returns what was learned of the bytes.
    pub fn facts(&self) -> &BodyFacts {
        &self.facts
    }

    /// Returns whether the bytes were read to their end.
    pub fn is_whole(&self) -> bool {
        !matches!(self.bytes, ReceivedBytes::TooLarge { .. })
    }

    /// Returns the text where it is one, and short enough to be repeated to the caller.
    pub fn text(&self) -> Option<&str> {
        let ReceivedBytes::Known(bytes) = &self.bytes else {
            return None;
        };
        if bytes.len() as u64 > MAX_INLINE_TEXT_BYTES || self.facts.is_binary() {
            return None;
        }
        std::str::from_utf8(bytes).ok()
    }
}

impl Library {
    /// Receives a result. With `is_kept_only` nothing is sent to the store whatever its size.
    ///
    /// # Errors
    /// Only what is the caller's: see [`BodyError`], and a digest that is not the stated one.
    pub async fn receive(
        &self,
        request: &SaveRequest,
        body: BodyStream,
        is_kept_only: bool,
    ) -> Result<Received, SaveError> {
        let waiting = self.place(request.expected_bytes);
        let mut place = timeout(UPLOAD_QUEUE_TIMEOUT, waiting).await.ok().flatten();
        // A failure is met again, with the bytes at hand, where it matters.
        let known = self.replay_stated(request).await.unwrap_or_default();
        let keeping = if place.is_none() {
            Keeping::UpTo(UNPLACED_RESULT_BYTES)
        } else if is_kept_only || known.is_some() || self.options.is_read_only {
            Keeping::UpTo(PART_BYTES)
        } else {
            Keeping::Store
        };
        let artifact = ArtifactRef {
            session_key: SessionKey::derive(&request.tenant, &request.session),
            artifact_id: self.ids.artifact_id(self.clock.now()),
        };
        let intaker = self.intaker(request, &artifact);
        let memory = place.as_mut().map(|place| &mut place.memory);
        let receiving = intaker.receive(request, body, keeping, memory);
        let Ok(reception) = timeout(UPLOAD_DEADLINE, receiving).await else {
            return Err(BodyError::Stalled(UPLOAD_DEADLINE.as_secs()).into());
        };
        let Reception { facts, bytes } = reception?;
        let mut own = OwnBody::new(artifact);
        if matches!(bytes, ReceivedBytes::Streamed(_)) {
            own.put_body();
        }
        if let Some(Place { memory, .. }) = &mut place {
            match &bytes {
                ReceivedBytes::Known(bytes) => memory.settle_at(bytes.len() as u64),
                ReceivedBytes::Streamed(_)
                | ReceivedBytes::LetGo
                | ReceivedBytes::NotStored(_)
                | ReceivedBytes::TooLarge { .. } => memory.release(),
            }
        }
        Ok(Received {
            facts,
            bytes,
            own,
            known,
            place,
        })
    }

    /// Waits for a place; `None` never comes while the service runs.
    async fn place(&self, stated: Option<u64>) -> Option<Place> {
        let permit = Arc::clone(&self.uploads).acquire_owned().await.ok()?;
        let memory = self.upload_memory.reserve(stated).await;
        Some(Place {
            _permit: permit,
            memory,
        })
    }

    /// Saves a received result, and decides `beside` together with its manifest.
    pub async fn save_received(
        &self,
        request: &SaveRequest,
        received: Received,
        beside: Option<(DecisionName, Bytes)>,
    ) -> SavedResult {
        let failed = |error| SavedResult {
            saved: Err(error),
            beside: None,
        };
        if self.options.is_read_only {
            return failed(SaveError::ReadOnly);
        }
        let Received {
            facts,
            bytes,
            own,
            known,
            place,
        } = received;
        let saturated = || SaturatedError::Uploads(self.options.max_concurrent_uploads).into();
        let bytes = match bytes {
            ReceivedBytes::Known(_) if place.is_none() => return failed(saturated()),
            ReceivedBytes::Known(bytes) => IntakeBytes::Known(Box::new(bytes.into())),
            ReceivedBytes::Streamed(stored) => IntakeBytes::Streamed(stored),
            ReceivedBytes::NotStored(error) => return failed(error),
            ReceivedBytes::TooLarge { limit_bytes } => {
                return failed(BodyError::TooLarge { limit_bytes }.into());
            }
            ReceivedBytes::LetGo => {
                return match known {
                    Some(manifest) => SavedResult {
                        saved: Ok(Saved {
                            manifest,
                            is_new: false,
                        }),
                        beside: None,
                    },
                    None => failed(saturated()),
                };
            }
        };
        let (tenant, session) = (&request.tenant, &request.session);
        let session_key = SessionKey::derive(tenant, session);
        let charge = self.usage.charge(tenant, session_key, facts.size_bytes);
        let charge = match charge.await {
            Ok(charge) => charge,
            Err(exceeded) => {
                let saved = self.repeat_of(request, facts.sha256, exceeded).await;
                self.take_back(tenant, &own).await;
                return SavedResult {
                    saved,
                    beside: None,
                };
            }
        };
        let parent = request.parent.as_ref();
        let now = self.clock.now();
        let descriptor = match self.sessions.ensure(tenant, session, parent, now).await {
            Ok(descriptor) => descriptor,
            Err(error) => {
                self.take_back(tenant, &own).await;
                return failed(error.into());
            }
        };
        let beside = beside.map(|(name, bytes)| Beside {
            key: self.decision_key(tenant, session, name),
            bytes,
            decided: None,
        });
        let mut job = Job {
            library: self,
            request,
            session: descriptor,
            session_key,
            intake: Intake { facts, bytes },
            own,
            beside,
        };
        let saved = job.settle().await;
        let Job { own, beside, .. } = job;
        let beside = match beside {
            Some(Beside {
                key,
                bytes,
                decided: Some(decided),
            }) => Some(self.settled(key, bytes, decided).await),
            Some(Beside { decided: None, .. }) | None => None,
        };
        self.take_back(tenant, &own).await;
        if saved.as_ref().is_ok_and(|saved| saved.is_new) {
            charge.keep(self.clock.now());
        }
        SavedResult { saved, beside }
    }

    /// Lets a received result go: nothing of it stays in the store.
    pub async fn let_go(&self, request: &SaveRequest, received: &Received) {
        self.take_back(&request.tenant, &received.own).await;
    }
}
