//! The plan: what one look at the store proposes to delete. Immutable, canonical, of bounded parts.
//!
//! A plan is a root and parts, each one object created once. The root names the SHA-256 of every part,
//! and whoever applies the plan gives the SHA-256 of the root, so that not a byte of it can have changed.
//! The policy is frozen in it. It freezes what the listings said of each candidate; it is a list of
//! candidates and no authority.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::gc::inventory::Seen;
use crate::gc::policy::GcPolicy;
use crate::gc::report::ReportLine;
use crate::gc::selection::Aged;
use crate::gc::shard::Shard;
use crate::gc::status::{Counts, Reason};
use crate::ids::{ArtifactId, SessionId, SessionKey, Tenant};
use crate::lease::canonical;
use crate::limits::{GC_PART_CANDIDATES, GC_PLAN_LIFE};

/// The version of the encoding; another one is not read.
pub const PLAN_VERSION: u32 = 1;

/// What a collection looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Scope {
    /// Every tenant.
    All,
    /// One tenant.
    Tenant(Tenant),
    /// One session.
    Session {
        /// Its tenant.
        tenant: Tenant,
        /// The session as its caller named it.
        session: SessionId,
    },
}

/// The root of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub v: u32,
    /// The plan's name.
    pub plan_id: Uuid,
    /// The prefix of the keys that were listed; a plan copied elsewhere is foreign.
    pub root: String,
    /// What was looked at.
    pub scope: Scope,
    /// Which part of it; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The store's date when the look began.
    pub server_date: Timestamp,
    /// The policy, frozen.
    pub policy: GcPolicy,
    /// Everything that was met, by status and reason.
    pub counts: Counts,
    /// Live artifacts that were met: what the share is one of.
    pub live: u64,
    /// Tombstones without a body: finished work.
    pub tombstones: u64,
    /// Whether a limit left something for a later plan.
    pub is_partial: bool,
    /// Multipart uploads to abort.
    pub uploads: Vec<StaleUpload>,
    /// What somebody should look at, the first hundred of it.
    pub alarms: Vec<ReportLine>,
    /// The parts, in order.
    pub parts: Vec<PartRef>,
}

/// What the root says of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartRef {
    /// SHA-256 of its bytes.
    pub sha256: Sha256Digest,
    /// Its candidates.
    pub candidates: u64,
}

/// A multipart upload that nobody will finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StaleUpload {
    /// Its key.
    pub key: String,
    /// The store's name of it.
    pub upload_id: String,
    /// When it began, by the store's clock.
    pub initiated: Timestamp,
}

/// One part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPart {
    /// [`PLAN_VERSION`].
    pub v: u32,
    /// The plan that it belongs to.
    pub plan_id: Uuid,
    /// Its place, from 0.
    pub part: u64,
    /// The sessions, in order; a large one may go on in the next part.
    pub sessions: Vec<PlanSession>,
}

/// What a plan proposes in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSession {
    /// Its tenant.
    pub tenant: Tenant,
    /// The session in its key form.
    pub session_key: SessionKey,
    /// The session as its caller named it, where its journal was folded.
    pub session: Option<SessionId>,
    /// Records of its journal that the plan has seen: a candidate with an entry in this one or a later
    /// one is dropped.
    pub as_of_seq: u64,
    /// What may go.
    pub candidates: Vec<Candidate>,
    /// What is condemned, or stands beside a tombstone, and only has to be finished.
    pub pending: Vec<ArtifactId>,
    /// Whether committed leases had passed their end: whoever applies the plan releases them.
    pub has_expired_leases: bool,
}

/// One artifact that may go, as the listings showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// Why it may go.
    pub reason: Reason,
    /// What stood at its manifest key; none for an abandoned upload.
    pub manifest: Option<Seen>,
    /// Its body.
    pub body: Seen,
}

/// The session of a candidate, while a plan is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Its tenant.
    pub tenant: Tenant,
    /// The session in its key form.
    pub session_key: SessionKey,
    /// The session as its caller named it, where its journal was folded.
    pub session: Option<SessionId>,
    /// Records of its journal that were folded.
    pub as_of_seq: u64,
}

/// A candidate with its place, while a plan is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its session.
    pub anchor: Arc<Anchor>,
    /// The candidate.
    pub candidate: Candidate,
}

impl Placed {
    fn name(&self) -> (&Tenant, SessionKey, ArtifactId) {
        let Anchor {
            tenant,
            session_key,
            ..
        } = &*self.anchor;
        (tenant, *session_key, self.candidate.artifact_id)
    }
}

impl Ord for Placed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name().cmp(&other.name())
    }
}

impl PartialOrd for Placed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Aged for Placed {
    fn last_modified(&self) -> Timestamp {
        let manifest = self.candidate.manifest.as_ref();
        let manifest = manifest.map(|seen| seen.last_modified);
        let body = self.candidate.body.last_modified;
        manifest.map_or(body, |manifest| manifest.max(body))
    }

    fn body_bytes(&self) -> u64 {
        self.candidate.body.size_bytes
    }
}

/// A plan is not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRefusal {
    /// The bytes are not those whose digest was given.
    #[error(
        "the plan's SHA-256 is {actual}, not {expected}: it was altered, or another one is meant"
    )]
    Altered {
        /// The digest that was given.
        expected: Sha256Digest,
        /// The digest of what is stored.
        actual: Sha256Digest,
    },
    /// The bytes are not a plan of this version.
    #[error("not a plan that this version can read: {0}")]
    Unreadable(String),
    /// It is a plan of another place.
    #[error("a plan of another place: {0}")]
    Foreign(String),
    /// It is too old.
    #[error("the plan is of {made}, older than {} days", GC_PLAN_LIFE.as_secs() / 86_400)]
    Expired {
        /// When it was made.
        made: Timestamp,
    },
    /// It is too young: what it saw must be seen a second time, later.
    #[error("the plan is of {made}; it may be applied from {from} on")]
    TooYoung {
        /// When it was made.
        made: Timestamp,
        /// When it may be applied.
        from: Timestamp,
    },
    /// It would take what receipts promise to keep.
    #[error(
        "the plan's orphan TTL of {plan_seconds} s is shorter than the store's {store_seconds} s"
    )]
    BelowStoreTtl {
        /// The plan's.
        plan_seconds: u64,
        /// The store's.
        store_seconds: u64,
    },
}

impl Plan {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the root whose digest the caller gave.
    ///
    /// # Errors
    /// See [`PlanRefusal`]; the digest is compared before anything is parsed.
    pub fn decode(
        bytes: &[u8],
        sha256: &Sha256Digest,
        plan_id: Uuid,
        root: &str,
    ) -> Result<Self, PlanRefusal> {
        let plan: Self = decode(bytes, sha256)?;
        if plan.v != PLAN_VERSION {
            return Err(PlanRefusal::Unreadable(format!("version {}", plan.v)));
        }
        if plan.plan_id != plan_id {
            return Err(PlanRefusal::Foreign(format!(
                "it calls itself {}",
                plan.plan_id
            )));
        }
        if plan.root != root {
            return Err(PlanRefusal::Foreign(format!("it is about `{}`", plan.root)));
        }
        Ok(plan)
    }

    /// Decides whether the plan may be applied at the store's date `now`.
    ///
    /// # Errors
    /// See [`PlanRefusal`].
    pub fn check_time(&self, now: Timestamp, store_ttl: Duration) -> Result<(), PlanRefusal> {
        let made = self.server_date;
        let seconds =
            |seconds: u64| SignedDuration::from_secs(seconds.try_into().unwrap_or(i64::MAX));
        let age = now.duration_since(made);
        let (policy, store_seconds) = (&self.policy, store_ttl.as_secs());
        if policy.orphan_ttl_seconds < store_seconds {
            return Err(PlanRefusal::BelowStoreTtl {
                plan_seconds: policy.orphan_ttl_seconds,
                store_seconds,
            });
        }
        if age > seconds(GC_PLAN_LIFE.as_secs()) {
            return Err(PlanRefusal::Expired { made });
        }
        let min_age = seconds(policy.min_plan_age_seconds);
        if age < min_age {
            let from = made.saturating_add(min_age).unwrap_or(Timestamp::MAX);
            return Err(PlanRefusal::TooYoung { made, from });
        }
        Ok(())
    }
}

impl PlanPart {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads part `part` of a plan.
    ///
    /// # Errors
    /// See [`PlanRefusal`].
    pub fn decode(
        bytes: &[u8],
        sha256: &Sha256Digest,
        plan_id: Uuid,
        part: u64,
    ) -> Result<Self, PlanRefusal> {
        let read: Self = decode(bytes, sha256)?;
        if read.v != PLAN_VERSION {
            return Err(PlanRefusal::Unreadable(format!("version {}", read.v)));
        }
        if (read.plan_id, read.part) != (plan_id, part) {
            let what = format!("part {} of plan {}", read.part, read.plan_id);
            return Err(PlanRefusal::Foreign(what));
        }
        Ok(read)
    }
}

/// Cuts sessions, in order, into parts of at most [`GC_PART_CANDIDATES`] candidates and pending ones.
pub fn cut_into_parts(sessions: Vec<PlanSession>) -> Vec<Vec<PlanSession>> {
    let mut parts: Vec<Vec<PlanSession>> = Vec::new();
    let mut room = 0;
    for mut session in sessions {
        while !session.is_done() {
            if room == 0 {
                parts.push(Vec::new());
                room = GC_PART_CANDIDATES;
            }
            let candidates = session.candidates.len().min(room);
            let pending = session.pending.len().min(room - candidates);
            let piece = PlanSession {
                candidates: session.candidates.drain(..candidates).collect(),
                pending: session.pending.drain(..pending).collect(),
                ..session.clone_head()
            };
            session.has_expired_leases = false;
            // A session with expired leases alone takes a place too.
            room -= (candidates + pending).max(1);
            parts.last_mut().expect("a part was begun").push(piece);
        }
    }
    parts
}

impl PlanSession {
    /// Returns whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.candidates.is_empty() && self.pending.is_empty() && !self.has_expired_leases
    }

    fn clone_head(&self) -> Self {
        Self {
            tenant: self.tenant.clone(),
            session_key: self.session_key,
            session: self.session.clone(),
            as_of_seq: self.as_of_seq,
            candidates: Vec::new(),
            pending: Vec::new(),
            has_expired_leases: self.has_expired_leases,
        }
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let value = serde_json::to_value(value).expect("text, numbers and lists always serialise");
    canonical::encode(&value).expect("sizes and counts of stored objects are below 2^53")
}

fn decode<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    sha256: &Sha256Digest,
) -> Result<T, PlanRefusal> {
    let actual = Sha256Digest::of(bytes);
    if actual != *sha256 {
        let expected = *sha256;
        return Err(PlanRefusal::Altered { expected, actual });
    }
    let unreadable = |error: &dyn std::fmt::Display| PlanRefusal::Unreadable(error.to_string());
    let value = canonical::decode(bytes).map_err(|error| unreadable(&error))?;
    serde_json::from_value(value).map_err(|error| unreadable(&error))
}

#[cfg(test)]
mod tests;
