//! The leases of one store: what the edges call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::library::Library;
use crate::digest::Sha256Digest;
use crate::error::ErrorCode;
use crate::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::entry::{AbortReason, OwnerMode, Prepared, ReleaseReason};
use crate::lease::evaluate::{Operation, Refusal, holds};
use crate::lease::failure::{LeaseError, PrepareError};
use crate::lease::journal::{Answer, JournalError, Receipt};
use crate::lease::journals::Journals;
use crate::lease::names::{HoldName, OwnerGeneration, OwnerName, Reason, TransactionId};
use crate::lease::owner::{NoOwners, OwnerLink};
use crate::lease::record::is_encodable;
use crate::lease::report::{JournalReport, JournalStatus, LeaseReport};
use crate::lease::source::SourceId;
use crate::lease::state::{Lease, Phase, State};

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
    /// Who; [`DEFAULT_OWNER`] where the caller names none.
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

    /// Claims a lease on an artifact whose manifest is confirmed live.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing was written unless the outcome is unknown.
    pub async fn prepare(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        request: PrepareRequest,
    ) -> Result<LeaseAnswer, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        if request.reference_count == 0 || !is_encodable(request.reference_count) {
            return Err(PrepareError::Invalid {
                field: "reference_count",
                rule: "an integer from 1 to 2^53 - 1",
            });
        }
        let owner = match request.owner {
            Some(owner) if owner.is_hold() => {
                let detail = "`hold` is the owner of holds: POST {locator}/hold".to_owned();
                return Err(PrepareError::OwnerMode(detail));
            }
            Some(owner) => owner,
            None => DEFAULT_OWNER.parse().expect("a name of lower-case letters"),
        };
        let mode = self.mode_of(&owner, request.mode)?;
        let source = SourceId::parse(&request.source_id).ok_or(PrepareError::Invalid {
            field: "source_id",
            rule: "artifact:{session}:{artifact id}:{first 12 hex digits of the SHA-256}",
        })?;
        if source.session != *session {
            let detail = format!("`source_id` names session `{}`", source.session);
            return Err(PrepareError::SourceMismatch(detail));
        }
        let artifact = ArtifactRef {
            session_key: SessionKey::derive(tenant, session),
            artifact_id: source.artifact_id,
        };
        let manifest = self.library.stat(tenant, &artifact).await?;
        let actual = manifest.head.body.sha256;
        if actual != request.content_sha256 || !source.is_of(&actual) {
            let detail = format!("the artifact's digest is {actual}");
            return Err(PrepareError::SourceMismatch(detail));
        }
        let intent = Prepared {
            transaction_id: request.transaction_id.clone(),
            owner,
            mode,
            reference_count: request.reference_count,
            retain_until: request.retain_until,
            reason: None,
            ..intent_of(&manifest, request.transaction_id.clone())
        };
        let operation = Operation::Prepare(Box::new(intent));
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(lease_answer(answer, session, &request.transaction_id)?)
    }

    /// Holds an artifact without end under a name, unless it is held under that name already. `fresh` is
    /// the transaction id that a new hold gets ([`HoldName::transaction_id`]); the one that holds stands in
    /// the answer.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub async fn hold(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        fresh: TransactionId,
        reason: Option<Reason>,
    ) -> Result<LeaseAnswer, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        let manifest = self.library.stat(tenant, artifact).await?;
        let session = manifest.head.session.clone();
        let hold_name = HoldName::of(&fresh);
        let intent = Prepared {
            owner: OwnerName::hold(),
            reason,
            ..intent_of(&manifest, fresh)
        };
        let operation = Operation::Hold(Box::new(intent));
        let answer = self.journals.submit(tenant, &session, operation).await?;
        let held = holds(&answer.state, artifact.artifact_id, hold_name.as_ref()).next();
        let name = held.map(|lease| lease.intent.transaction_id.clone());
        let name = name.ok_or(JournalError::Refused(Refusal::TransactionUnknown))?;
        Ok(lease_answer(answer, &session, &name)?)
    }

    /// Releases every hold of a name on an artifact.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub async fn lift(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        name: HoldName,
    ) -> Result<Lifted, PrepareError> {
        self.demand_writable().map_err(|_| PrepareError::ReadOnly)?;
        let manifest = self.library.stat(tenant, artifact).await?;
        let operation = Operation::Lift {
            artifact_id: artifact.artifact_id,
            name: Some(name),
            why: ReleaseReason::Removed,
        };
        let session = &manifest.head.session;
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(Lifted {
            is_new: answer.is_new,
            receipt: answer.receipt,
        })
    }

    /// Confirms that the owner holds its references.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn commit(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        owner_generation: Option<OwnerGeneration>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Commit {
            transaction_id: transaction_id.clone(),
            owner_generation,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Ends a prepared lease that will never be published.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn abort(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        why: AbortReason,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Abort {
            transaction_id: transaction_id.clone(),
            why,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Ends a committed lease whose references are gone.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn release(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        why: ReleaseReason,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Release {
            transaction_id: transaction_id.clone(),
            why,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
    }

    /// Moves a committed lease's end into the future; `None` ends its end.
    ///
    /// # Errors
    /// See [`LeaseError`].
    pub async fn extend(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        retain_until: Option<Timestamp>,
    ) -> Result<LeaseAnswer, LeaseError> {
        let transaction_id = transaction_id.clone();
        let operation = Operation::Extend {
            transaction_id: transaction_id.clone(),
            retain_until,
        };
        self.change(tenant, session, &transaction_id, operation)
            .await
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
        let stored = stored.map_err(JournalError::Store)?;
        let lease = answer.state.lease(transaction_id);
        Ok(Resolved {
            has_landed: stored == Some(sha256),
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

    async fn change(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        transaction_id: &TransactionId,
        operation: Operation,
    ) -> Result<LeaseAnswer, LeaseError> {
        self.demand_writable()?;
        let answer = self.journals.submit(tenant, session, operation).await?;
        Ok(lease_answer(answer, session, transaction_id)?)
    }

    pub(in crate::lease) fn demand_writable(&self) -> Result<(), LeaseError> {
        if self.options.is_read_only {
            return Err(LeaseError::ReadOnly);
        }
        Ok(())
    }

    fn mode_of(
        &self,
        owner: &OwnerName,
        stated: Option<OwnerMode>,
    ) -> Result<OwnerMode, PrepareError> {
        let configured = self.options.owners.modes.get(owner).copied();
        let mode = configured.unwrap_or(OwnerMode::OwnerFenced);
        match stated {
            Some(stated) if stated != mode => Err(PrepareError::OwnerMode(format!(
                "owner `{owner}` is configured as {mode:?}"
            ))),
            Some(_) | None => Ok(mode),
        }
    }
}

/// The claim on an artifact, as its confirmed manifest describes it: one reference without end.
fn intent_of(manifest: &ConfirmedManifest, transaction_id: TransactionId) -> Prepared {
    let body = &manifest.head.body;
    Prepared {
        transaction_id,
        owner: OwnerName::hold(),
        mode: OwnerMode::OwnerFenced,
        artifact_id: manifest.head.artifact_id,
        sha256: body.sha256,
        size_bytes: body.size_bytes,
        etag: body.etag.clone(),
        version_id: body.version_id.clone(),
        reference_count: 1,
        retain_until: None,
        reason: None,
    }
}

/// Returns whether a lease has been prepared for at least so long; one whose date nobody wrote down counts:
/// better seen than overlooked.
pub(in crate::lease) fn is_stuck(lease: &Lease, least: Duration, now: Timestamp) -> bool {
    let age = lease.prepared_as_of.map(|then| now.duration_since(then));
    lease.phase == Phase::Prepared
        && age.is_none_or(|age| Duration::try_from(age).is_ok_and(|age| age >= least))
}

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
