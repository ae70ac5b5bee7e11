//! Saving: the protocol that makes every receipt of one output equal, whoever finishes it.
//!
//! Model-checked (`docs/MODELS.md`; ADR 3). The order is what makes it safe:
//!
//! * A body known in full (≤ 8 MiB): its call record and its body go out together, the manifest after
//!   both. A larger one: the body first, then the record, which carries the body's identity, then the
//!   manifest. Without a call id there is no record.
//! * Whoever meets another's record answers from what that record names, and finishes it when its
//!   manifest is not there yet. A live manifest never exists without its body.
//! * A tombstone behind a record: the next incarnation, but `erased` is final. A tombstone met by our
//!   own manifest: 503, and the next try has a fresh artifact id.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};

use crate::artifact::call_record::{CallAction, CallRecord};
use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::ingest::{Intake, IntakeBytes, Intaker, check_only, check_stated_size};
use crate::artifact::library::Library;
use crate::artifact::manifest::{BodyIdentity, MANIFEST_VERSION, Tombstone, TombstoneReason};
use crate::artifact::manifest_access::Lookup;
use crate::artifact::own_body::{OwnBody, delete_body};
use crate::artifact::request::{BodyError, BodyStream, SaturatedError, SaveError, SaveRequest};
use crate::artifact::session::SessionDescriptor;
use crate::error::Deletion;
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, Question, SessionKey, Tenant};
use crate::limits::{MAX_INCARNATION, UPLOAD_DEADLINE, UPLOAD_QUEUE_TIMEOUT};
use crate::store::keys::Key;
use crate::store::register::{DecideError, Decision, Register, Stored, create_body, decide};
use crate::store::{StoreError, StoreErrorKind};

/// The outcome of a save.
#[derive(Debug, Clone)]
pub struct Saved {
    /// The artifact, confirmed in the store.
    pub manifest: ConfirmedManifest,
    /// Whether this save created it; `false` for the same save again.
    pub is_new: bool,
}

/// One save on its way.
pub(in crate::artifact) struct Job<'a> {
    pub(in crate::artifact) library: &'a Library,
    pub(in crate::artifact) request: &'a SaveRequest,
    pub(in crate::artifact) session: SessionDescriptor,
    pub(in crate::artifact) session_key: SessionKey,
    pub(in crate::artifact) intake: Intake,
    pub(in crate::artifact) own: OwnBody,
    /// A record that is decided beside the manifest, so that it costs no round trip of its own.
    pub(in crate::artifact) beside: Option<Beside>,
}

/// A register that is decided together with a save's manifest.
#[derive(Debug)]
pub(in crate::artifact) struct Beside {
    pub(in crate::artifact) key: Key,
    pub(in crate::artifact) bytes: Bytes,
    /// Its outcome, once it was sent.
    pub(in crate::artifact) decided: Option<Result<Decision, DecideError>>,
}

/// What a record that is not ours leads to.
pub(in crate::artifact) enum Resolved {
    /// The artifact that it names is live.
    Live(ConfirmedManifest),
    /// What it names was collected: the next incarnation decides.
    Collected,
}

impl Library {
    /// Stores a body and returns its artifact; the same save again returns the same one.
    ///
    /// The work runs on a task of its own, so that a caller that goes away neither tears a half-made
    /// artifact nor leaves parts behind.
    ///
    /// # Errors
    /// See [`SaveError`].
    pub async fn save(&self, request: SaveRequest, body: BodyStream) -> Result<Saved, SaveError> {
        if self.options.is_read_only {
            return Err(SaveError::ReadOnly);
        }
        let library = self.clone();
        let task = self
            .tracker
            .spawn(async move { library.save_here(request, body).await });
        task.await.unwrap_or_else(|join_error| {
            // Only a defect ends the task early; the artifact may or may not be there.
            Err(SaveError::Internal(format!(
                "the save ended early: {join_error}"
            )))
        })
    }

    async fn save_here(&self, request: SaveRequest, body: BodyStream) -> Result<Saved, SaveError> {
        let permits = self.options.max_concurrent_uploads;
        // While it waits nothing of the body is read: the client is held back, not the memory filled.
        let give_up_at = Instant::now() + UPLOAD_QUEUE_TIMEOUT;
        let Ok(Ok(_permit)) = timeout_at(give_up_at, self.uploads.acquire()).await else {
            return Err(SaturatedError::Uploads(permits).into());
        };
        let SaveRequest {
            tenant,
            session,
            parent,
            ..
        } = &request;
        if let Some(parent) = parent {
            self.sessions.check_parent(tenant, session, parent).await?;
        }
        if let Some(manifest) = self.replay_stated(&request).await? {
            check_only(&request, body, self.options.max_body_bytes).await?;
            return Ok(Saved {
                manifest,
                is_new: false,
            });
        }
        let session_key = SessionKey::derive(tenant, session);
        // What is too large for anybody is not a matter of quotas.
        check_stated_size(&request, self.options.max_body_bytes)?;
        // A size that nobody states is at least a byte.
        let stated = request.expected_bytes.unwrap_or(1);
        let mut charge = match self.usage.charge(tenant, session_key, stated).await {
            Ok(charge) => charge,
            Err(exceeded) => return self.repeat_of_body(&request, body, exceeded).await,
        };
        let waiting = self.upload_memory.reserve(request.expected_bytes);
        let Ok(mut memory) = timeout_at(give_up_at, waiting).await else {
            return Err(SaturatedError::Memory(self.upload_memory.total_bytes()).into());
        };
        let artifact = ArtifactRef {
            session_key,
            artifact_id: self.ids.artifact_id(self.clock.now()),
        };
        let intaker = self.intaker(&request, &artifact);
        let taking = intaker.take(&request, body, &mut memory);
        let intake = match timeout(UPLOAD_DEADLINE, taking).await {
            Ok(intake) => intake?,
            Err(_) => return Err(BodyError::Stalled(UPLOAD_DEADLINE.as_secs()).into()),
        };
        let mut own = OwnBody::new(artifact);
        let size_bytes = intake.facts.size_bytes;
        if matches!(intake.bytes, IntakeBytes::Streamed(_)) {
            own.put_body();
            memory.release();
            charge.correct_to(size_bytes);
        } else {
            memory.settle_at(size_bytes);
            if let Err(exceeded) = charge.grow_to(size_bytes) {
                return self
                    .repeat_of(&request, intake.facts.sha256, exceeded)
                    .await;
            }
            charge.correct_to(size_bytes);
        }
        let descriptor = self
            .sessions
            .ensure(tenant, session, parent.as_ref(), self.clock.now())
            .await;
        let answer = match descriptor {
            Ok(session) => {
                let mut job = Job {
                    library: self,
                    request: &request,
                    session,
                    session_key,
                    intake,
                    own,
                    beside: None,
                };
                let answer = job.settle().await;
                own = job.own;
                answer
            }
            Err(error) => Err(error.into()),
        };
        self.take_back(tenant, &own).await;
        if answer.as_ref().is_ok_and(|saved| saved.is_new) {
            charge.keep(self.clock.now());
        }
        answer
    }

    /// Deletes the save's own body where nothing can name it. The last act of a save: from here on nothing
    /// names this artifact id.
    pub(in crate::artifact) async fn take_back(&self, tenant: &Tenant, own: &OwnBody) {
        if own.may_be_taken_back()
            && let Err(error) = delete_body(&*self.store, &self.keys, tenant, &own.artifact).await
        {
            tracing::warn!(error = %error, "own body of a lost save stays for the collector");
        }
    }

    pub(in crate::artifact) fn intaker(
        &self,
        request: &SaveRequest,
        artifact: &ArtifactRef,
    ) -> Intaker {
        Intaker {
            store: Arc::clone(&self.store),
            tracker: self.tracker.clone(),
            key: self.keys.body(&request.tenant, artifact),
            limit_bytes: self.options.max_body_bytes,
            part_bytes: self.part_bytes,
            window_bytes: request.render.window_bytes(),
        }
    }

    /// Answers a repeat whose digest is stated and whose record this replica knows, without taking
    /// the body to the store.
    pub(in crate::artifact) async fn replay_stated(
        &self,
        request: &SaveRequest,
    ) -> Result<Option<ConfirmedManifest>, SaveError> {
        let (Some(call), Some(digest)) = (&request.call_id, &request.expected_digest) else {
            return Ok(None);
        };
        let did = DecisionId::derive(
            Question::Save,
            &request.tenant,
            &request.session,
            call,
            digest,
        );
        self.replay_known(request, did).await
    }

    async fn replay_known(
        &self,
        request: &SaveRequest,
        did: DecisionId,
    ) -> Result<Option<ConfirmedManifest>, SaveError> {
        let Some(artifact_id) = self.records.get(&(request.tenant.clone(), did)).await else {
            return Ok(None);
        };
        let session_key = SessionKey::derive(&request.tenant, &request.session);
        let artifact = ArtifactRef {
            session_key,
            artifact_id,
        };
        match self.lookup_to_replay(&request.tenant, &artifact).await? {
            Lookup::Live(manifest) => Ok(Some(manifest)),
            Lookup::Tombstone(tombstone) if tombstone.tombstone == TombstoneReason::Erased => {
                Err(SaveError::Erased(tombstone.deletion()))
            }
            Lookup::Tombstone(_) | Lookup::Absent => Ok(None),
        }
    }
}

impl Job<'_> {
    /// Decides which artifact this output is, and sees that it is whole.
    pub(in crate::artifact) async fn settle(&mut self) -> Result<Saved, SaveError> {
        let Some(call) = &self.request.call_id else {
            return self.save_unnamed().await;
        };
        let (tenant, session) = (&self.request.tenant, &self.request.session);
        let digest = &self.intake.facts.sha256;
        let did = DecisionId::derive(Question::Save, tenant, session, call, digest);
        if let Some(manifest) = self.library.replay_known(self.request, did).await? {
            return Ok(Saved {
                manifest,
                is_new: false,
            });
        }
        let first = if self.session.parent.is_some() {
            match self.inherited(did).await? {
                Ok(manifest) => {
                    return Ok(Saved {
                        manifest,
                        is_new: false,
                    });
                }
                Err(incarnation) => incarnation,
            }
        } else {
            0
        };
        for incarnation in first..=MAX_INCARNATION {
            if let Some(saved) = self.take_record(did, incarnation).await? {
                return Ok(saved);
            }
        }
        Err(SaveError::IncarnationsExhausted(MAX_INCARNATION + 1))
    }

    /// Without a call id: body, then manifest.
    async fn save_unnamed(&mut self) -> Result<Saved, SaveError> {
        let artifact = self.own.artifact;
        let stored = self.put_body(&artifact).await?;
        self.publish(artifact, None, stored).await
    }

    /// Tries to decide one incarnation of the call's record; `None` when what it names was collected.
    async fn take_record(
        &mut self,
        did: DecisionId,
        incarnation: u32,
    ) -> Result<Option<Saved>, SaveError> {
        let artifact = self.own.artifact;
        let (record, stored) = match &self.intake.bytes {
            IntakeBytes::Streamed(stored) => {
                let stored = stored.clone();
                let identity = self.body_identity(&stored);
                (
                    self.decide_record(did, incarnation, Some(identity)).await,
                    Ok(stored),
                )
            }
            IntakeBytes::Known(payload) => {
                let key = self.library.keys.body(&self.request.tenant, &artifact);
                let record = self.decide_record(did, incarnation, None);
                tokio::join!(record, create_body(&*self.library.store, &key, payload))
            }
        };
        self.own.put_body();
        match record {
            Ok(Decision::Won(_)) => {
                self.own.named();
                self.remember(did, artifact.artifact_id).await;
                self.publish(artifact, Some(did), stored?).await.map(Some)
            }
            Ok(Decision::Lost(found)) => match self.resolve(&found, did).await? {
                Resolved::Live(manifest) => Ok(Some(Saved {
                    manifest,
                    is_new: false,
                })),
                Resolved::Collected => Ok(None),
            },
            Err(error) => {
                if matches!(error, DecideError::Undecided(_)) {
                    self.own.record_undecided();
                }
                Err(error.into())
            }
        }
    }

    async fn decide_record(
        &self,
        did: DecisionId,
        incarnation: u32,
        body: Option<BodyIdentity>,
    ) -> Result<Decision, DecideError> {
        let Library { store, keys, .. } = self.library;
        let key = keys.call_record(&self.request.tenant, &self.session_key, &did, incarnation);
        let bytes = CallRecord::saved(self.own.artifact.artifact_id, body)
            .encode()
            .into();
        decide(&**store, &key, &bytes).await
    }

    async fn remember(&self, did: DecisionId, artifact_id: ArtifactId) {
        let key = (self.request.tenant.clone(), did);
        self.library.records.insert(key, artifact_id).await;
    }

    /// Follows a record of this session that another save decided: replays what it names, or
    /// finishes it.
    pub(in crate::artifact) async fn resolve(
        &mut self,
        found: &Register,
        did: DecisionId,
    ) -> Result<Resolved, SaveError> {
        let record =
            CallRecord::decode(&found.bytes).map_err(|e| SaveError::Format(e.to_string()))?;
        let CallAction::Saved { aid, body } = record.action else {
            return Err(SaveError::Erased(self.erased_without_tombstone()));
        };
        let artifact = ArtifactRef {
            session_key: self.session_key,
            artifact_id: aid,
        };
        match self
            .library
            .lookup_to_replay(&self.request.tenant, &artifact)
            .await?
        {
            Lookup::Live(manifest) => {
                self.remember(did, aid).await;
                Ok(Resolved::Live(manifest))
            }
            Lookup::Tombstone(tombstone) if tombstone.tombstone == TombstoneReason::Erased => {
                Err(SaveError::Erased(tombstone.deletion()))
            }
            Lookup::Tombstone(_) => Ok(Resolved::Collected),
            Lookup::Absent => {
                if aid == self.own.artifact.artifact_id {
                    self.own.named();
                }
                let Some(stored) = self.body_of_record(&artifact, body.as_ref()).await? else {
                    return self.bury(artifact, did).await;
                };
                let saved = self.publish(artifact, Some(did), stored).await?;
                self.remember(did, aid).await;
                Ok(Resolved::Live(saved.manifest))
            }
        }
    }

    /// Sees that the body that a record names is there, and returns its identity; `None` when a streamed
    /// body is not there any more.
    async fn body_of_record(
        &mut self,
        artifact: &ArtifactRef,
        recorded: Option<&BodyIdentity>,
    ) -> Result<Option<Stored>, SaveError> {
        let Some(recorded) = recorded else {
            return match &self.intake.bytes {
                IntakeBytes::Known(_) => self.put_body(artifact).await.map(Some),
                // Equal bytes are streamed by all or by none.
                IntakeBytes::Streamed(_) => Err(SaveError::Format(format!(
                    "the record of {artifact} was written by a version with another part size"
                ))),
            };
        };
        // Streamed by its saver before the record was written, so the body was there.
        let key = self.library.keys.body(&self.request.tenant, artifact);
        match self.library.store.head(&key).await {
            Ok(head) if head.meta.etag.0 == recorded.etag => Ok(Some(head.meta.into())),
            Ok(_) => Err(SaveError::BodyDiffers(StoreError::new(
                StoreErrorKind::Rejected,
                "head",
                &key,
                "the stored body has another ETag than its record says",
            ))),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A recorded body that is gone without a tombstone was lost. Its manifest key is closed by a
    /// tombstone that creates or loses (`upload_abandoned`, as the collector writes for the reverse
    /// case), so that no late manifest can come to stand without its body; then the next incarnation
    /// is free. The model does the same (`Step::Bury`).
    async fn bury(&self, artifact: ArtifactRef, did: DecisionId) -> Result<Resolved, SaveError> {
        let tombstone = Tombstone {
            v: MANIFEST_VERSION,
            artifact_id: artifact.artifact_id,
            tombstone: TombstoneReason::UploadAbandoned,
            decision_id: Some(did),
            sha256: Some(self.intake.facts.sha256),
            size_bytes: Some(self.intake.facts.size_bytes),
            deleted_at: None,
        };
        let manifests = &self.library.manifests;
        match manifests
            .bury(&self.request.tenant, &artifact, &tombstone)
            .await?
        {
            Lookup::Live(manifest) => Ok(Resolved::Live(manifest)),
            Lookup::Tombstone(found) if found.tombstone == TombstoneReason::Erased => {
                Err(SaveError::Erased(found.deletion()))
            }
            Lookup::Tombstone(_) | Lookup::Absent => Ok(Resolved::Collected),
        }
    }

    /// Puts the body under `artifact` unless it is there.
    async fn put_body(&mut self, artifact: &ArtifactRef) -> Result<Stored, SaveError> {
        match &self.intake.bytes {
            IntakeBytes::Streamed(stored) => Ok(stored.clone()),
            IntakeBytes::Known(payload) => {
                if *artifact == self.own.artifact {
                    self.own.put_body();
                }
                let key = self.library.keys.body(&self.request.tenant, artifact);
                Ok(create_body(&*self.library.store, &key, payload).await?)
            }
        }
    }

    /// Creates the manifest of `artifact`, whose body is stored, or answers from the one that another
    /// finisher created first.
    async fn publish(
        &mut self,
        artifact: ArtifactRef,
        did: Option<DecisionId>,
        stored: Stored,
    ) -> Result<Saved, SaveError> {
        let manifest = self.describe(artifact, did, &stored)?;
        if artifact == self.own.artifact {
            self.own.sent_manifest();
        }
        let creating = self.library.manifests.create(manifest);
        let created = match &mut self.beside {
            Some(beside) if beside.decided.is_none() => {
                let deciding = decide(&*self.library.store, &beside.key, &beside.bytes);
                let (created, decided) = tokio::join!(creating, deciding);
                beside.decided = Some(decided);
                created
            }
            Some(_) | None => creating.await,
        };
        match created? {
            Lookup::Live(manifest) if manifest.head.body.sha256 == self.intake.facts.sha256 => {
                let is_new = artifact == self.own.artifact;
                Ok(Saved { manifest, is_new })
            }
            Lookup::Live(_) => Err(SaveError::Internal(format!(
                "manifest of {artifact} describes other bytes than its record"
            ))),
            Lookup::Tombstone(tombstone) => Err(self.met_tombstone(artifact, &tombstone).await),
            Lookup::Absent => Err(SaveError::Superseded),
        }
    }

    /// A manifest PUT met a tombstone: the body that was put there goes again, whatever the reason.
    async fn met_tombstone(&self, artifact: ArtifactRef, tombstone: &Tombstone) -> SaveError {
        let Library { store, keys, .. } = self.library;
        if let Err(error) = delete_body(&**store, keys, &self.request.tenant, &artifact).await {
            tracing::warn!(error = %error, "body beside a tombstone stays for the collector");
        }
        match tombstone.tombstone {
            TombstoneReason::Erased => SaveError::Erased(tombstone.deletion()),
            TombstoneReason::Expired | TombstoneReason::UploadAbandoned => SaveError::Superseded,
        }
    }

    pub(in crate::artifact) fn erased_without_tombstone(&self) -> Deletion {
        Deletion {
            reason: TombstoneReason::Erased.as_str().to_owned(),
            deleted_at: None,
            digest: Some(self.intake.facts.sha256.to_string()),
            size_bytes: Some(self.intake.facts.size_bytes),
        }
    }
}

#[cfg(test)]
mod tests;
