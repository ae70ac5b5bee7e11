//! Erasing one artifact now, and for good.
//!
//! An erasure means the content. So it walks the records of the call that led to it: what is live is
//! condemned, what was recorded and never finished gets a tombstone that creates or loses, what is
//! condemned is rolled forward, and the free end of the chain says `erased`, so that a later save of the
//! same output is told so. It answers success only when every tombstone was seen, and every body and
//! older version was deleted and acknowledged. Nothing goes while a lease protects any of it.
//!
//! A journal whose chain is broken can neither refuse nor take an entry. There an administrator may force
//! it: tombstones and deletes without the journal, leases or not. A journal that a newer version wrote is
//! not broken, and whoever can read it may erase.

use jiff::Timestamp;

use crate::artifact::call_record::{CallAction, CallRecord, RECORD_VERSION};
use crate::artifact::manifest::{
    MANIFEST_VERSION, Manifest, ManifestEntry, Tombstone, TombstoneReason,
};
use crate::artifact::request::code_of_store_error;
use crate::error::{Deletion, ErrorCode};
use crate::gc::collector::{Collector, Stands};
use crate::gc::store_clock::ClockError;
use crate::gc::sweep::{SweepError, tombstone_of};
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SessionId, SessionKey, Tenant};
use crate::lease::entry::{CondemnReason, Condemned};
use crate::lease::evaluate::{Operation, Refusal};
use crate::lease::journal::JournalError;
use crate::lease::open::OpenError;
use crate::lease::state::ArtifactStatus;
use crate::limits::MAX_INCARNATION;
use crate::store::register::{Decision, Register, decide, read_register};
use crate::store::{StoreError, StoreErrorKind};

/// An artifact was not erased, or not to the end: the same request again goes on.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// Nothing of that name is there.
    #[error("no such artifact")]
    NotFound,
    /// The session's journal cannot be found.
    #[error("the session's descriptor is missing or not readable by this version")]
    SessionUnknown,
    /// What stands there cannot be read by this version.
    #[error("not readable by this version: {0}")]
    Unreadable(String),
    /// The store's date cannot be told or believed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The journal cannot be folded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal says no (a lease protects it), or nothing.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is condemned is not gone yet.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EraseError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        let of_store = |error: &StoreError| {
            if error.is(StoreErrorKind::Denied) {
                ErrorCode::EraseDenied
            } else {
                code_of_store_error(error.kind)
            }
        };
        match self {
            Self::NotFound => ErrorCode::ArtifactNotFound,
            Self::SessionUnknown | Self::Unreadable(_) => ErrorCode::StoreFormatUnsupported,
            Self::Clock(ClockError::Differs { .. }) => ErrorCode::StoreUnavailable,
            Self::Clock(ClockError::Store(error)) | Self::Store(error) => of_store(error),
            Self::Open(error) => error.code(),
            Self::Journal(error) => error.code(),
            Self::Sweep(SweepError::Store(error)) => of_store(error),
            Self::Sweep(SweepError::Journal(error)) => error.code(),
            Self::Sweep(SweepError::TombstoneNotSeen) => ErrorCode::StoreOutcomeUnknown,
        }
    }
}

/// What an erasure may do about a journal that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Refuse.
    Refuse,
    /// Go on without it.
    WithoutBrokenJournal,
}

/// Everything that one erasure is about.
struct Erasure<'a> {
    tenant: &'a Tenant,
    session_key: SessionKey,
    session: SessionId,
    now: Timestamp,
    /// The journal is broken, and the administrator said to go on.
    is_without_journal: bool,
}

impl Erasure<'_> {
    fn artifact(&self, artifact_id: ArtifactId) -> ArtifactRef {
        ArtifactRef {
            session_key: self.session_key,
            artifact_id,
        }
    }
}

impl Collector {
    /// Erases an artifact and everything that its call ever became in its session.
    ///
    /// # Errors
    /// See [`EraseError`]; every step may be done again.
    pub async fn erase(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
    ) -> Result<Deletion, EraseError> {
        self.erase_with(tenant, artifact, Force::Refuse).await
    }

    /// The same, with a word about a broken journal.
    ///
    /// # Errors
    /// See [`EraseError`]; every step may be done again.
    pub async fn erase_with(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        force: Force,
    ) -> Result<Deletion, EraseError> {
        let (decision_id, facts) = match self.read_manifest(tenant, artifact).await? {
            Stands::Nothing => return Err(EraseError::NotFound),
            Stands::Unreadable(error) => return Err(EraseError::Unreadable(error.to_string())),
            Stands::Entry(entry, _) => match *entry {
                ManifestEntry::Live(manifest) => (manifest.head.decision_id, None),
                ManifestEntry::Tombstone(found) => (found.decision_id, Some(found.deletion())),
            },
        };
        let session_key = artifact.session_key;
        let session = self.session_of(tenant, &session_key).await?;
        let mut erasure = Erasure {
            tenant,
            session_key,
            session: session.map_err(|_| EraseError::SessionUnknown)?,
            now: self.store_date().await?,
            is_without_journal: false,
        };
        let demanded = self.demand_unleased(&erasure, artifact, decision_id).await;
        match demanded {
            Err(EraseError::Open(error))
                if force == Force::WithoutBrokenJournal && is_broken(&error) =>
            {
                tracing::warn!(artifact = %artifact, "erased by force, without the journal: {error}");
                erasure.is_without_journal = true;
            }
            other => other?,
        }
        let erased = self.erase_one(&erasure, artifact).await?;
        if let Some(decision_id) = decision_id {
            self.close_chain(&erasure, artifact, decision_id).await?;
        }
        erased.or(facts).ok_or(EraseError::NotFound)
    }

    /// Refuses before anything is done where a lease protects any artifact of the call. Each
    /// condemnation is decided by its own slot all the same.
    async fn demand_unleased(
        &self,
        erasure: &Erasure<'_>,
        artifact: &ArtifactRef,
        decision_id: Option<DecisionId>,
    ) -> Result<(), EraseError> {
        let journals = &self.journals;
        let opened = journals
            .open_double_rooted(erasure.tenant, &erasure.session)
            .await?;
        if opened.is_suspect {
            return Err(JournalError::Refused(Refusal::Suspect).into());
        }
        let mut named = vec![artifact.artifact_id];
        if let Some(decision_id) = decision_id {
            for incarnation in 0..=MAX_INCARNATION {
                match self.read_record(erasure, decision_id, incarnation).await? {
                    Some(CallAction::Saved { aid, .. }) => named.push(aid),
                    Some(CallAction::Erased) | None => break,
                }
            }
        }
        let state = opened.opened.chain.state();
        let protecting = named.iter().map(|aid| state.protectors(*aid).count());
        match protecting.max() {
            Some(leases) if leases > 0 => {
                Err(JournalError::Refused(Refusal::Leased { leases }).into())
            }
            _ => Ok(()),
        }
    }

    async fn read_record(
        &self,
        erasure: &Erasure<'_>,
        decision_id: DecisionId,
        incarnation: u32,
    ) -> Result<Option<CallAction>, EraseError> {
        let Erasure {
            tenant,
            session_key,
            ..
        } = erasure;
        let key = self
            .keys
            .call_record(tenant, session_key, &decision_id, incarnation);
        match read_register(&*self.store, &key).await? {
            Some(found) => action_of(&found).map(Some),
            None => Ok(None),
        }
    }

    /// Erases what every record of the call names, and closes the free end.
    async fn close_chain(
        &self,
        erasure: &Erasure<'_>,
        first: &ArtifactRef,
        decision_id: DecisionId,
    ) -> Result<(), EraseError> {
        let erased = CallRecord {
            v: RECORD_VERSION,
            action: CallAction::Erased,
        };
        let bytes: bytes::Bytes = erased.encode().into();
        for incarnation in 0..=MAX_INCARNATION {
            let known = self.read_record(erasure, decision_id, incarnation).await?;
            let action = match known {
                Some(action) => action,
                None => {
                    let (tenant, session_key) = (erasure.tenant, &erasure.session_key);
                    let key = self
                        .keys
                        .call_record(tenant, session_key, &decision_id, incarnation);
                    let decided = decide(&*self.store, &key, &bytes).await;
                    match decided.map_err(|error| error.into_store_error())? {
                        Decision::Won(_) => return Ok(()),
                        // A save was faster: what it recorded goes as well.
                        Decision::Lost(found) => action_of(&found)?,
                    }
                }
            };
            match action {
                CallAction::Erased => return Ok(()),
                CallAction::Saved { aid, .. } if aid == first.artifact_id => {}
                CallAction::Saved { aid, .. } => {
                    let artifact = erasure.artifact(aid);
                    self.erase_one(erasure, &artifact).await?;
                }
            }
        }
        // Past the last incarnation no save finds a free one.
        Ok(())
    }

    /// Erases one artifact that a record names; returns the facts of its tombstone where it was live.
    async fn erase_one(
        &self,
        erasure: &Erasure<'_>,
        artifact: &ArtifactRef,
    ) -> Result<Option<Deletion>, EraseError> {
        let manifest = match self.read_manifest(erasure.tenant, artifact).await? {
            Stands::Unreadable(error) => return Err(EraseError::Unreadable(error.to_string())),
            Stands::Entry(entry, found) => match *entry {
                ManifestEntry::Live(manifest) => (manifest, found),
                ManifestEntry::Tombstone(_) => {
                    return self.roll_forward(erasure, artifact).await.map(|()| None);
                }
            },
            Stands::Nothing => {
                let tombstone = Tombstone {
                    v: MANIFEST_VERSION,
                    artifact_id: artifact.artifact_id,
                    tombstone: TombstoneReason::Erased,
                    decision_id: None,
                    sha256: None,
                    size_bytes: None,
                    deleted_at: Some(erasure.now.to_string()),
                };
                let key = self.keys.manifest(erasure.tenant, artifact);
                let decided = decide(&*self.store, &key, &tombstone.encode().into()).await;
                match decided.map_err(|error| error.into_store_error())? {
                    Decision::Won(_) => {
                        return self.roll_forward(erasure, artifact).await.map(|()| None);
                    }
                    Decision::Lost(found) => match ManifestEntry::decode(&found.bytes, artifact) {
                        Ok(ManifestEntry::Live(manifest)) => (manifest, found),
                        Ok(ManifestEntry::Tombstone(_)) => {
                            return self.roll_forward(erasure, artifact).await.map(|()| None);
                        }
                        Err(error) => return Err(EraseError::Unreadable(error.to_string())),
                    },
                }
            }
        };
        let (tenant, session) = (erasure.tenant, &erasure.session);
        if erasure.is_without_journal {
            let (why, now) = (CondemnReason::Erased, erasure.now);
            let condemned = condemned_of(&manifest.0, &manifest.1, why, now);
            self.bury(tenant, artifact, &condemned).await?;
            return Ok(Some(tombstone_of(&condemned).deletion()));
        }
        let condemned = self.condemn_now(erasure, &manifest.0, &manifest.1).await?;
        let facts = tombstone_of(&condemned).deletion();
        match self
            .sweep_condemned(tenant, session, artifact, &condemned)
            .await
        {
            Ok(_) => {}
            // Tombstone and deletes are confirmed; the next sweep writes it down.
            Err(SweepError::Journal(error)) => {
                tracing::warn!(artifact = %artifact, "erased, but not yet in the journal: {error}");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Some(facts))
    }

    /// Finishes what stands beside a tombstone.
    async fn roll_forward(
        &self,
        erasure: &Erasure<'_>,
        artifact: &ArtifactRef,
    ) -> Result<(), EraseError> {
        self.remove_beside_tombstone(erasure.tenant, artifact)
            .await?;
        Ok(())
    }

    async fn condemn_now(
        &self,
        erasure: &Erasure<'_>,
        manifest: &Manifest,
        found: &Register,
    ) -> Result<Condemned, EraseError> {
        let condemned = Condemned {
            plan_id: None,
            ..condemned_of(manifest, found, CondemnReason::Erased, erasure.now)
        };
        let artifact_id = condemned.artifact_id;
        let operation = Operation::Condemn(Box::new(condemned.clone()));
        let (tenant, session) = (erasure.tenant, &erasure.session);
        let answer = self.journals.submit(tenant, session, operation).await?;
        let record = answer.state.artifact(artifact_id);
        Ok(match record.map(|record| &record.status) {
            // Condemned before, perhaps for another reason: that one is rolled forward.
            Some(ArtifactStatus::Condemned(first)) => Condemned::clone(first),
            // Deleted already, and its manifest still seen: the sweep writes the tombstone again.
            Some(ArtifactStatus::Live | ArtifactStatus::Deleted(_)) | None => condemned,
        })
    }
}

/// Returns whether a chain is broken: an entry or a version that this version does not know is not.
fn is_broken(error: &OpenError) -> bool {
    match error {
        OpenError::Store(_) => false,
        OpenError::Broken { .. } | OpenError::Gap { .. } => !error.is_unsupported(),
    }
}

/// Returns what a condemnation says of a live artifact.
pub(in crate::gc) fn condemned_of(
    manifest: &Manifest,
    found: &Register,
    why: CondemnReason,
    server_date: Timestamp,
) -> Condemned {
    let (head, body) = (&manifest.head, &manifest.head.body);
    let version = found.meta.version_id.as_ref();
    Condemned {
        artifact_id: head.artifact_id,
        decision_id: head.decision_id,
        sha256: Some(body.sha256),
        size_bytes: Some(body.size_bytes),
        etag: Some(body.etag.clone()),
        version_id: body.version_id.clone(),
        store_checksum: body.store_checksum.clone(),
        manifest_version_id: version.map(|version| version.0.clone()),
        why,
        server_date,
        plan_id: None,
    }
}

fn action_of(found: &Register) -> Result<CallAction, EraseError> {
    let record = CallRecord::decode(&found.bytes);
    record
        .map(|record| record.action)
        .map_err(|error| EraseError::Unreadable(error.to_string()))
}
