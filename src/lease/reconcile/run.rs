//! Reconciling the leases of one session, or of all: a job, bounded in time and number.
//!
//! A session's leases are those that its journal held when the run came to it: a lease that is prepared
//! meanwhile is the next run's, so that a run ends. Prepared ones come first, oldest first; then those
//! that an operator ended, as long as their owner may show them; then some of the committed ones, another
//! part in each run. What every protecting lease protects is looked for, whether its owner is asked or
//! not.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::Serialize;
use tokio::time::Instant;

use crate::ids::{ArtifactRef, SessionId, SessionKey, Tenant};
use crate::lease::entry::{AbortReason, ReleaseReason};
use crate::lease::failure::LeaseError;
use crate::lease::journal::JournalError;
use crate::lease::leases::{Leases, is_stuck};
use crate::lease::missing::{MissingPart, missing_parts};
use crate::lease::names::{OwnerName, TransactionId};
use crate::lease::owner::{Finding, Status, Why};
use crate::lease::reconcile::summary::{Kept, Summary};
use crate::lease::report::LeaseReport;
use crate::lease::state::{Lease, Phase, State};
use crate::lease::walk::{JournalScope, JournalWalk};
use crate::limits::{RECONCILE_AUDITS, RECONCILE_DEADLINE, RECONCILE_LIMIT, RECONCILE_PARALLEL};
use crate::store::{PutMode, StoreError};

/// Which leases, and how long.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Whose journals.
    pub scope: JournalScope,
    /// Only this owner's leases.
    pub owner: Option<OwnerName>,
    /// Prepared leases only when they have been so for this long: what was claimed a moment ago is
    /// probably being published.
    pub stuck_for: Option<Duration>,
    /// At most so many leases.
    pub limit: usize,
    /// Committed leases of each session whose owner is asked.
    pub audits: usize,
    /// No lease is begun after this long.
    pub deadline: Duration,
}

impl RunRequest {
    /// Asks for everything within the default bounds.
    pub const fn new(scope: JournalScope) -> Self {
        Self {
            scope,
            owner: None,
            stuck_for: None,
            limit: RECONCILE_LIMIT,
            audits: RECONCILE_AUDITS,
            deadline: RECONCILE_DEADLINE,
        }
    }

    /// Returns whether the run speaks for the whole store.
    fn is_whole(&self) -> bool {
        self.scope == JournalScope::All && self.owner.is_none() && self.stuck_for.is_none()
    }
}

/// One line of a run's report: a lease, or a journal that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The tenant.
    pub tenant: Tenant,
    /// The session, where its name is known.
    pub session: Option<SessionId>,
    /// Its key form.
    pub session_key: String,
    /// What became of the lease; none for a journal, or where the store did not answer.
    #[serde(flatten)]
    pub finding: Option<Finding>,
    /// What it protects and is not there.
    pub missing_referenced: Vec<MissingPart>,
    /// The lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseReport>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A lease's turn in a run.
#[derive(Debug, Clone)]
enum Turn {
    /// All there is to do.
    Reconcile(TransactionId),
    /// Look for its artifact only.
    Look(Box<Lease>),
}

/// What the run counts down.
#[derive(Debug)]
struct Bounds {
    left: usize,
    ends: Instant,
}

impl Bounds {
    fn is_over(&self) -> bool {
        self.left == 0 || Instant::now() >= self.ends
    }
}

impl Leases {
    /// Reconciles the leases that are asked for; `report` gets a line for each as it is done. The sums of a
    /// run over the whole store that saw everything are kept there for the metrics of every replica.
    ///
    /// # Errors
    /// The store cannot list its journals, or the service does not write. What fails for one lease is a
    /// line.
    pub async fn reconcile_all(
        &self,
        request: &RunRequest,
        mut report: impl FnMut(Line) + Send,
    ) -> Result<Summary, LeaseError> {
        self.demand_writable()?;
        let mut bounds = Bounds {
            left: request.limit,
            ends: Instant::now() + request.deadline,
        };
        let mut summary = Summary::default();
        let walk = self.walk();
        let tenants = match &request.scope {
            JournalScope::All => walk.tenants().await?,
            JournalScope::Tenant(tenant) => vec![tenant.clone()],
            JournalScope::Session { tenant, session } => {
                let session_key = SessionKey::derive(tenant, session);
                let place = (tenant, session_key, Some(session.clone()));
                self.session(place, request, &mut bounds, &mut summary, &mut report)
                    .await;
                Vec::new()
            }
        };
        for tenant in &tenants {
            // Somewhere: a run that is always cut must not always see the same sessions.
            let chance = self.journals().fresh_id().to_string().parse::<SessionId>();
            let from = chance.ok().map(|word| SessionKey::derive(tenant, &word));
            for session_key in walk.sessions(tenant, from.as_ref()).await? {
                if bounds.is_over() {
                    summary.is_cut = true;
                    break;
                }
                let place = match walk.session_of(tenant, &session_key).await {
                    Ok(Some(session)) => (tenant, session_key, Some(session)),
                    Ok(None) => {
                        summary.unreadable += 1;
                        report(nameless(
                            tenant,
                            &session_key,
                            "no record or descriptor names it",
                        ));
                        continue;
                    }
                    Err(error) => {
                        summary.failed += 1;
                        report(nameless(tenant, &session_key, &said(&error)));
                        continue;
                    }
                };
                self.session(place, request, &mut bounds, &mut summary, &mut report)
                    .await;
            }
        }
        if request.is_whole() && !summary.is_cut {
            self.keep(&summary).await?;
        }
        Ok(summary)
    }

    /// Returns the sums of the last run over the whole store; `None` where there was none.
    ///
    /// # Errors
    /// The store's.
    pub async fn last_reconciliation(&self) -> Result<Option<Kept>, StoreError> {
        let key = self.library.keys().reconciliation();
        let found = crate::store::register::read_register(&**self.library.store(), &key).await?;
        Ok(found.and_then(|found| Kept::decode(&found.bytes)))
    }

    fn walk(&self) -> JournalWalk {
        let store = std::sync::Arc::clone(self.library.store());
        JournalWalk::new(store, self.library.keys().clone())
    }

    async fn keep(&self, summary: &Summary) -> Result<(), StoreError> {
        let kept = Kept::new(self.library.clock().now(), summary.clone());
        let key = self.library.keys().reconciliation();
        let payload = bytes::Bytes::from(kept.encode()).into();
        let store = self.library.store();
        store.put(&key, payload, PutMode::Overwrite).await?;
        Ok(())
    }

    async fn session(
        &self,
        (tenant, session_key, session): (&Tenant, SessionKey, Option<SessionId>),
        request: &RunRequest,
        bounds: &mut Bounds,
        summary: &mut Summary,
        report: &mut (impl FnMut(Line) + Send),
    ) {
        let Some(session) = session else {
            return;
        };
        let read = match self.read(tenant, &session).await {
            Ok(read) => read,
            Err(error) => {
                match error {
                    JournalError::Unreadable(_) => summary.unreadable += 1,
                    JournalError::Refused(_)
                    | JournalError::OutcomeUnknown { .. }
                    | JournalError::Store(_)
                    | JournalError::Contended
                    | JournalError::Saturated
                    | JournalError::Closed => summary.failed += 1,
                }
                let line = nameless(tenant, &session_key, &told(&error));
                report(Line {
                    session: Some(session),
                    ..line
                });
                return;
            }
        };
        summary.journals += 1;
        let chance = self.journals().fresh_id().as_u128();
        let turns = self.turns(&read.state, request, chance);
        let place = (tenant, &session);
        let ends = bounds.ends;
        summary.is_cut |= turns.len() > bounds.left;
        let mut done = stream::iter(turns.into_iter().take(bounds.left))
            .map(|turn| async move {
                // Checked when the lease's turn comes, not when it was listed.
                if Instant::now() >= ends {
                    return None;
                }
                self.turn(place, turn).await
            })
            .buffered(RECONCILE_PARALLEL);
        while let Some(line) = done.next().await {
            // Those that are under way are finished: what was done has its line.
            let Some((line, is_told)) = line else {
                summary.is_cut = true;
                continue;
            };
            bounds.left -= 1;
            match (&line.finding, &line.lease) {
                (Some(finding), Some(lease)) => {
                    let is_missing = !line.missing_referenced.is_empty();
                    let is_prepared = lease.state == Phase::Prepared.as_str();
                    summary.add(finding.status, is_missing, is_prepared);
                }
                _ => summary.failed += 1,
            }
            if is_told {
                report(line);
            }
        }
    }

    /// The leases of a session that this run works on, in order.
    fn turns(&self, state: &State, request: &RunRequest, chance: u128) -> Vec<Turn> {
        let now = self.library.clock().now();
        let (mut prepared, mut ended, mut committed) = (Vec::new(), Vec::new(), Vec::new());
        let leases = state.leases();
        let asked = |lease: &&Lease| {
            request
                .owner
                .as_ref()
                .is_none_or(|o| lease.intent.owner == *o)
        };
        for lease in leases.filter(asked) {
            match lease.phase {
                Phase::Prepared => prepared.push(lease),
                Phase::Committed => committed.push(lease),
                Phase::Aborted(AbortReason::Operator)
                | Phase::Released(ReleaseReason::Operator) => ended.push(lease),
                Phase::Aborted(_) | Phase::Released(_) => {}
            }
        }
        prepared.sort_by_key(|lease| lease.prepared_seq);
        let reconcile = |lease: &Lease| Turn::Reconcile(lease.intent.transaction_id.clone());
        let look = |lease: &Lease| Turn::Look(Box::new(lease.clone()));
        let mut turns: Vec<_> = prepared
            .into_iter()
            .map(|lease| match request.stuck_for {
                Some(least) if !is_stuck(lease, least, now) => look(lease),
                Some(_) | None => reconcile(lease),
            })
            .collect();
        turns.extend(ended.into_iter().map(reconcile));
        if !committed.is_empty() {
            let first = usize::try_from(chance % committed.len() as u128).unwrap_or_default();
            committed.rotate_left(first);
        }
        let mut audits = request.audits;
        for lease in committed {
            let is_audited = audits > 0 && !lease.intent.owner.is_hold();
            if is_audited {
                audits -= 1;
            }
            turns.push(if is_audited {
                reconcile(lease)
            } else {
                look(lease)
            });
        }
        turns
    }

    /// Works on one lease; the second says whether its line is shown.
    async fn turn(
        &self,
        (tenant, session): (&Tenant, &SessionId),
        turn: Turn,
    ) -> Option<(Line, bool)> {
        let session_key = SessionKey::derive(tenant, session);
        let line = Line {
            session: Some(session.clone()),
            ..nameless(tenant, &session_key, "")
        };
        Some(match turn {
            Turn::Reconcile(name) => {
                let line = match self.reconcile(tenant, session, &name).await {
                    Ok(done) => Line {
                        finding: Some(done.finding),
                        missing_referenced: done.missing_referenced,
                        lease: Some(done.lease),
                        error: None,
                        ..line
                    },
                    Err(error) => self.failed(line, &name, error).await,
                };
                (line, true)
            }
            Turn::Look(lease) => {
                let artifact = ArtifactRef {
                    session_key,
                    artifact_id: lease.intent.artifact_id,
                };
                let looked = missing_parts(&self.library, tenant, &artifact).await;
                let report = LeaseReport::of(&lease, session);
                let (missing, error) = match looked {
                    Ok(missing) => (missing, None),
                    Err(error) => (Vec::new(), Some(said(&error))),
                };
                let is_told = !missing.is_empty() || error.is_some();
                let finding = error.is_none().then(|| match lease.phase {
                    Phase::Prepared => {
                        let finding = Finding::new(Status::PendingUnknown, Why::OwnerResultUnknown);
                        finding.because("not asked: it was prepared a short time ago")
                    }
                    _ if lease.intent.owner.is_hold() => {
                        Finding::new(Status::Skipped, Why::HoldHasNoOwner)
                    }
                    Phase::Committed | Phase::Aborted(_) | Phase::Released(_) => {
                        Finding::new(Status::AlreadyCommitted, Why::OwnerConfirmedReference)
                    }
                });
                let line = Line {
                    finding,
                    missing_referenced: missing,
                    lease: Some(report),
                    error,
                    ..line
                };
                (line, is_told)
            }
        })
    }

    /// A lease whose reconciliation failed: it protects on, and the line says why.
    async fn failed(&self, line: Line, name: &TransactionId, error: LeaseError) -> Line {
        let why = match &error {
            LeaseError::Journal(JournalError::OutcomeUnknown { .. }) => Why::JournalOutcomeUnknown,
            LeaseError::Journal(_) | LeaseError::ReadOnly | LeaseError::OwnerUnsealed(_) => {
                Why::JournalUnavailable
            }
        };
        let finding = Finding::new(Status::PendingUnknown, why);
        let finding = finding.because(format!("{name}: {}", error.code().as_str()));
        tracing::warn!(%error, "a lease could not be reconciled");
        Line {
            finding: Some(finding),
            error: Some(error.code().as_str().to_owned()),
            ..line
        }
    }
}

fn nameless(tenant: &Tenant, session_key: &SessionKey, error: &str) -> Line {
    Line {
        tenant: tenant.clone(),
        session: None,
        session_key: session_key.to_string(),
        finding: None,
        missing_referenced: Vec::new(),
        lease: None,
        error: (!error.is_empty()).then(|| error.to_owned()),
    }
}

/// Which operation of the store failed; what the server said is for the log.
fn said(error: &StoreError) -> String {
    tracing::warn!(%error, "the store failed during a reconciliation");
    format!("a request to the store failed ({})", error.operation)
}

fn told(error: &JournalError) -> String {
    tracing::warn!(%error, "a journal could not be opened for a reconciliation");
    format!("the journal cannot be opened ({})", error.code().as_str())
}
