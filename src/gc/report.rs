//! What one run did: counts, and every artifact that it decided about. No path, no content.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::gc::plan::Scope;
use crate::gc::policy::GcPolicy;
use crate::gc::status::{Counts, Reason, Status};
use crate::ids::{ArtifactRef, Tenant};

/// The version of the encoding; another one is not read.
pub const REPORT_VERSION: u32 = 1;

/// What one application of a plan did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub v: u32,
    /// The plan.
    pub plan_id: Uuid,
    /// Its root's SHA-256.
    pub plan_sha256: Sha256Digest,
    /// This run.
    pub run_id: Uuid,
    /// The store's date when the run began.
    pub server_date: Timestamp,
    /// What the plan looked at.
    pub scope: Scope,
    /// The plan's policy.
    pub policy: GcPolicy,
    /// By status and reason.
    pub counts: Counts,
    /// Whether everything that the plan proposed was decided and is finished.
    pub is_complete: bool,
    /// Every artifact of the plan.
    pub artifacts: Vec<ReportLine>,
    /// Sessions that could not be worked on, with what was said.
    pub failures: Vec<SessionFailure>,
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportLine {
    /// Its tenant.
    pub tenant: Tenant,
    /// `{skey}.{aid}`.
    pub artifact: String,
    /// What became of it.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// Bytes of its body.
    pub bytes: u64,
    /// What was noticed beside: a difference after the condemnation, a failed request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
}

/// A session that could not be worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFailure {
    /// Its tenant.
    pub tenant: Tenant,
    /// Its key form.
    pub session_key: String,
    /// What was said.
    pub detail: String,
}

impl Report {
    /// Adds what became of an artifact.
    pub fn add(&mut self, line: ReportLine) {
        self.counts.add(line.status, line.reason, line.bytes);
        self.artifacts.push(line);
    }

    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text, numbers and lists always serialise")
    }
}

impl ReportLine {
    /// Builds a line without a note.
    pub fn new(
        tenant: &Tenant,
        artifact: ArtifactRef,
        (status, reason): (Status, Reason),
        bytes: u64,
    ) -> Self {
        Self {
            tenant: tenant.clone(),
            artifact: artifact.to_string(),
            status,
            reason,
            bytes,
            note: None,
        }
    }
}
