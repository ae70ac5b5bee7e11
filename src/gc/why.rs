//! Why one artifact stays or goes: the verdict of a plan made now, and the journal entries that decide.
//!
//! The verdict is the planner's own ([`judge`]); what is added is from when on the answer would be another,
//! and which records of the journal speak of the artifact.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::artifact::manifest::ManifestEntry;
use crate::error::Deletion;
use crate::gc::classify::{
    Cutoff, Folded, JournalView, Judged, LISTED_TIME_MARGIN, ManifestState, judge,
};
use crate::gc::collector::{Collector, SessionJournal, Stands};
use crate::gc::inventory::{Pair, Seen};
use crate::gc::status::{Reason, Status};
use crate::gc::unfinished::UnfinishedError;
use crate::ids::{ArtifactId, ArtifactRef, SessionId, Tenant};
use crate::lease::entry::Entry;
use crate::lease::names::TransactionId;
use crate::lease::report::LeaseReport;
use crate::lease::show::{self, ShownRecord};
use crate::lease::state::Lease;
use crate::limits::{AS_OF_MARGIN, GC_ABANDONED_UPLOAD};
use crate::store::{ObjectMeta, StoreError, StoreErrorKind};

/// Records that are shown at most; the latest decide.
const SHOWN_RECORDS: usize = 64;

/// What decides about an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grounds {
    /// The verdict; none where nothing is left to decide.
    pub verdict: Option<(Status, Reason)>,
    /// From when on a plan would propose it, if nothing refers to it again; none where time alone does
    /// not change the answer.
    pub eligible_from: Option<Timestamp>,
    /// Records of the journal that speak of it, in order.
    pub records: BTreeSet<u64>,
}

/// Finds out what decides about an artifact, from what the listings show, the journal and the store's
/// date.
pub fn grounds(
    pair: &Pair,
    cutoff: &Cutoff,
    journal: &JournalView,
    manifest: ManifestState,
) -> Grounds {
    let verdict = match judge(pair, cutoff, Some(journal), Some(manifest)) {
        Judged::Is(status, reason) => Some((status, reason)),
        Judged::Finished | Judged::NeedsJournal | Judged::NeedsManifest => None,
    };
    // Not a matter of age: nothing is left to go.
    let is_over = manifest == ManifestState::Tombstone && pair.body.is_none();
    let verdict = verdict.filter(|_| !is_over);
    let artifact_id = pair.artifact.artifact_id;
    let (mut records, mut referred) = (BTreeSet::new(), None);
    if let JournalView::Folded(folded) = journal {
        let leases = of_artifact(folded, artifact_id);
        records.extend(leases.flat_map(|lease| [lease.prepared_seq, lease.changed_seq]));
        if let Some(record) = folded.state.artifact(artifact_id) {
            records.insert(record.last_seq);
            records.extend(record.last_reference.map(|reference| reference.seq));
            let reference = record.last_reference.as_ref();
            referred = reference.and_then(|reference| folded.referred_at(reference));
        }
    }
    let waits = matches!(
        verdict,
        Some((Status::RetainedRecent, reason)) if reason != Reason::ReferenceTimeUnknown
    );
    Grounds {
        verdict,
        eligible_from: eligible_from(pair, cutoff, referred).filter(|_| waits),
        records,
    }
}

fn of_artifact(folded: &Folded, artifact_id: ArtifactId) -> impl Iterator<Item = &Lease> {
    let leases = folded.state.leases();
    leases.filter(move |lease| lease.intent.artifact_id == artifact_id)
}

/// Returns when every grace is over.
fn eligible_from(pair: &Pair, cutoff: &Cutoff, referred: Option<Timestamp>) -> Option<Timestamp> {
    let after = |at: Timestamp, margin: Duration, age: Duration| {
        let wait = SignedDuration::try_from(age.saturating_add(margin)).ok()?;
        at.checked_add(wait).ok()
    };
    let age = if pair.manifest.is_some() {
        cutoff.orphan_ttl
    } else {
        GC_ABANDONED_UPLOAD
    };
    let of_keys = pair.manifest.iter().chain(&pair.body);
    let of_keys = of_keys.map(|seen| after(seen.last_modified, LISTED_TIME_MARGIN, age));
    let margin = AS_OF_MARGIN.saturating_add(LISTED_TIME_MARGIN);
    let of_reference = referred.map(|at| after(at, margin, age));
    let mut ends = of_keys.chain(of_reference);
    ends.try_fold(None, |latest, end| Some(latest.max(Some(end?))))?
}

/// Why an artifact stays or goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// Its tenant.
    pub tenant: Tenant,
    /// `{skey}.{aid}`.
    pub artifact: String,
    /// Its session, where that can be told.
    pub session: Option<SessionId>,
    /// The store's date.
    pub server_date: Timestamp,
    /// What a plan made now says of it; none where it is deleted and nothing is left to do.
    pub status: Option<Status>,
    /// Why.
    pub reason: Option<Reason>,
    /// The same in a sentence.
    pub meaning: &'static str,
    /// From when on a plan proposes it, if nothing refers to it again.
    pub eligible_from: Option<Timestamp>,
    /// What its tombstone says, where it has one.
    pub deletion: Option<Deletion>,
    /// Bytes of its body, where there is one.
    pub size_bytes: Option<u64>,
    /// Its leases, ended ones included.
    pub leases: Vec<LeaseReport>,
    /// The records of its session's journal that speak of it, with those entries of them that do.
    pub records: Vec<ShownRecord>,
}

impl Collector {
    /// Says why an artifact stays or goes; `None` where there is neither manifest nor body nor a word in
    /// a journal. `orphan_ttl` is the grace of the plan that would be made.
    ///
    /// # Errors
    /// The store's date cannot be believed, or the store fails.
    pub async fn why(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        orphan_ttl: Duration,
    ) -> Result<Option<Why>, UnfinishedError> {
        let now = self.store_date().await?;
        let cutoff = Cutoff { now, orphan_ttl };
        let pair = Pair {
            artifact: *artifact,
            manifest: self.seen(&self.keys.manifest(tenant, artifact)).await?,
            body: self.seen(&self.keys.body(tenant, artifact)).await?,
        };
        let opened = self.open_session(tenant, &artifact.session_key).await?;
        let deletion = match self.read_manifest(tenant, artifact).await? {
            Stands::Entry(entry, _) => match *entry {
                ManifestEntry::Tombstone(tombstone) => Some(tombstone.deletion()),
                ManifestEntry::Live(_) => None,
            },
            Stands::Nothing | Stands::Unreadable(_) => None,
        };
        let manifest = self.manifest_state(tenant, artifact).await?;
        let found = grounds(&pair, &cutoff, &opened.view, manifest);
        if pair.manifest.is_none() && pair.body.is_none() && found.records.is_empty() {
            return Ok(None);
        }
        let SessionJournal { view, session, .. } = opened;
        let (leases, records) = match (&view, &session) {
            (JournalView::Folded(folded), Some(session)) => {
                let leases: Vec<_> = of_artifact(folded, artifact.artifact_id).collect();
                let names = leases.iter().map(|lease| &lease.intent.transaction_id);
                let names: BTreeSet<TransactionId> = names.cloned().collect();
                let records = self.records(tenant, session, &found.records).await?;
                let mut reports: Vec<_> = leases
                    .into_iter()
                    .map(|lease| LeaseReport::of(lease, session))
                    .collect();
                reports.sort_by_key(|lease| lease.prepared_seq);
                let about = |record| about(record, artifact.artifact_id, &names);
                (reports, records.into_iter().map(about).collect())
            }
            _ => (Vec::new(), Vec::new()),
        };
        let meaning = match found.verdict {
            Some((_, reason)) => reason.meaning(),
            None if deletion.is_some() => "It is deleted, and nothing of it is left to remove.",
            None => "Nothing of it is left to remove.",
        };
        Ok(Some(Why {
            tenant: tenant.clone(),
            artifact: artifact.to_string(),
            session,
            server_date: now,
            status: found.verdict.map(|(status, _)| status),
            reason: found.verdict.map(|(_, reason)| reason),
            meaning,
            eligible_from: found.eligible_from,
            deletion,
            size_bytes: pair.body.map(|body| body.size_bytes),
            leases,
            records,
        }))
    }

    async fn seen(&self, key: &crate::store::keys::Key) -> Result<Option<Seen>, StoreError> {
        match self.store.head(key).await {
            Ok(head) => Ok(Some(seen_of(head.meta))),
            Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn records(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        seqs: &BTreeSet<u64>,
    ) -> Result<Vec<ShownRecord>, StoreError> {
        let site = self.journals.site(tenant, session);
        let mut records = Vec::new();
        let newest = seqs.iter().rev().take(SHOWN_RECORDS);
        for seq in newest {
            records.extend(show::page(&site, *seq, 1).await?.records);
        }
        records.reverse();
        Ok(records)
    }
}

fn seen_of(meta: ObjectMeta) -> Seen {
    Seen {
        size_bytes: meta.size_bytes,
        etag: meta.etag.0,
        last_modified: meta.last_modified,
    }
}

/// Leaves of a record the entries that speak of the artifact or one of its leases.
fn about(
    mut record: ShownRecord,
    artifact_id: ArtifactId,
    leases: &BTreeSet<TransactionId>,
) -> ShownRecord {
    if let Some(content) = &mut record.content {
        content.entries.retain(|entry| match entry {
            Entry::Prepared(prepared) => prepared.artifact_id == artifact_id,
            Entry::Committed { transaction_id, .. }
            | Entry::Aborted { transaction_id, .. }
            | Entry::Extended { transaction_id, .. }
            | Entry::Released { transaction_id, .. } => leases.contains(transaction_id),
            Entry::Condemned(condemned) => condemned.artifact_id == artifact_id,
            Entry::Deleted {
                artifact_id: named, ..
            }
            | Entry::Touched { artifact_id: named } => *named == artifact_id,
            Entry::Genesis { .. } | Entry::Cleared { .. } | Entry::Noop => false,
        });
    }
    record
}

#[cfg(test)]
mod tests;
