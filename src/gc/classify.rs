//! What becomes of one artifact: pure, from what the listings show, the folded journal, and the store's
//! clock.
//!
//! **Grace runs from the last reference.** An artifact may go only when its manifest, its body and the
//! last lease or touch entry about it are all older than the orphan TTL. Times are compared with times
//! of the same clock only, the store's; a listed time may have been cut to whole seconds, so it counts
//! as up to one second later, and a journal's `as_of` as up to ten minutes later. A record without an
//! `as_of` counts from when the store says that it was written, which is never earlier.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::gc::inventory::{Pair, Seen};
use crate::gc::status::{Reason, Status};
use crate::ids::ArtifactId;
use crate::lease::state::{ArtifactRecord, ArtifactStatus, Lease, Reference, State};
use crate::limits::{AS_OF_MARGIN, GC_ABANDONED_UPLOAD};
use crate::store::UNREADABLE_ETAG;

/// What stores cut off a time when they list it.
pub(in crate::gc) const LISTED_TIME_MARGIN: Duration = Duration::from_secs(1);

/// The times that one collection decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutoff {
    /// The store's date when the collection began.
    pub now: Timestamp,
    /// Grace after the last reference.
    pub orphan_ttl: Duration,
}

impl Cutoff {
    /// Returns whether something that the store dates `at`, and that may be `margin` younger, is at
    /// least `age` old. A time in the future is never old.
    pub fn is_older(&self, at: Timestamp, margin: Duration, age: Duration) -> bool {
        let needed = age.saturating_add(margin);
        let needed = SignedDuration::try_from(needed).unwrap_or(SignedDuration::MAX);
        self.now.duration_since(at) >= needed
    }

    fn is_listed_older(&self, seen: &Seen, age: Duration) -> bool {
        self.is_older(seen.last_modified, LISTED_TIME_MARGIN, age)
    }
}

/// The folded journal of a session.
#[derive(Debug, Clone)]
pub struct Folded {
    /// What the journal says.
    pub state: Arc<State>,
    /// Whether nothing may be destroyed on its word.
    pub is_suspect: bool,
    /// Artifacts that ever had a lease.
    leased: HashSet<ArtifactId>,
    /// When records were written, where they do not say it themselves.
    written: BTreeMap<u64, Timestamp>,
}

impl Folded {
    /// Wraps a state; `has_conflict` says that a stored checkpoint contradicts it.
    pub fn new(state: Arc<State>, has_conflict: bool) -> Self {
        let leased = state.leases().map(|lease| lease.intent.artifact_id);
        Self {
            leased: leased.collect(),
            is_suspect: state.is_suspect() || has_conflict,
            written: BTreeMap::new(),
            state,
        }
    }

    /// Adds when records were written, by the store's clock: those of [`untimed_references`].
    #[must_use]
    pub fn with_written(self, written: BTreeMap<u64, Timestamp>) -> Self {
        Self { written, ..self }
    }

    /// Returns when an artifact was last referred to, as far as that can be told: at most
    /// [`AS_OF_MARGIN`] later.
    pub fn referred_at(&self, reference: &Reference) -> Option<Timestamp> {
        let written = || self.written.get(&reference.seq).copied();
        reference.as_of.or_else(written)
    }
}

/// Returns the records that hold the last reference to an artifact that may go, and do not say when that
/// was: their writers had seen no date of the store.
pub fn untimed_references(state: &State) -> BTreeSet<u64> {
    let may_go = state.artifacts().filter(|(artifact_id, record)| {
        record.status == ArtifactStatus::Live && !state.is_protected(*artifact_id)
    });
    let references = may_go.filter_map(|(_, record)| record.last_reference);
    let untimed = references.filter(|reference| reference.as_of.is_none());
    untimed.map(|reference| reference.seq).collect()
}

/// What is known of a session's journal.
#[derive(Debug, Clone)]
pub enum JournalView {
    /// It was folded.
    Folded(Folded),
    /// It cannot be used: everything in the session that would need it is kept, for this reason.
    Unusable(Status, Reason),
}

/// What stands at a manifest's key, where it had to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestState {
    /// A live manifest.
    Live,
    /// A tombstone.
    Tombstone,
    /// Nothing, although a listing showed it.
    Absent,
    /// Bytes that this version cannot read.
    Unreadable,
}

/// What becomes of an artifact, or what has to be known first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// This.
    Is(Status, Reason),
    /// Nothing is left to do: a tombstone without a body.
    Finished,
    /// The session's journal has to be folded first.
    NeedsJournal,
    /// The manifest's key has to be read first.
    NeedsManifest,
}

/// Judges one pair. Call again with what the answer says is needed.
pub fn judge(
    pair: &Pair,
    cutoff: &Cutoff,
    journal: Option<&JournalView>,
    manifest: Option<ManifestState>,
) -> Judged {
    let keys = [&pair.manifest, &pair.body];
    if keys
        .into_iter()
        .flatten()
        .any(|seen| seen.etag == UNREADABLE_ETAG)
    {
        return Judged::Is(Status::Denied, Reason::ArtifactNotARegularFile);
    }
    // A body that landed after the manifest key was last written may stand beside a tombstone; it goes
    // whatever its age. One GET tells.
    if let (Some(key), Some(body)) = (&pair.manifest, &pair.body)
        && body.last_modified > key.last_modified
    {
        match manifest {
            None => return Judged::NeedsManifest,
            Some(ManifestState::Tombstone) => {
                return Judged::Is(Status::PendingDelete, Reason::BodyBesideTombstone);
            }
            Some(ManifestState::Live | ManifestState::Absent | ManifestState::Unreadable) => {}
        }
    }
    if let Some(young) = too_young(pair, cutoff) {
        return Judged::Is(Status::RetainedRecent, young);
    }
    let folded = match journal {
        None => return Judged::NeedsJournal,
        Some(JournalView::Unusable(status, reason)) => return Judged::Is(*status, *reason),
        Some(JournalView::Folded(folded)) => folded,
    };
    by_journal(pair, cutoff, folded, manifest)
}

/// Returns why the listing alone keeps the pair.
fn too_young(pair: &Pair, cutoff: &Cutoff) -> Option<Reason> {
    let is_older = |seen: &Seen, age| cutoff.is_listed_older(seen, age);
    match (&pair.manifest, &pair.body) {
        // The TTL is a promise about artifacts; what never became one has its own time.
        (None, Some(body)) => {
            (!is_older(body, GC_ABANDONED_UPLOAD)).then_some(Reason::UploadNotFinished)
        }
        (manifest, body) => {
            let mut keys = manifest.iter().chain(body);
            let is_old = keys.all(|seen| is_older(seen, cutoff.orphan_ttl));
            (!is_old).then_some(Reason::OrphanTtlNotReached)
        }
    }
}

fn by_journal(
    pair: &Pair,
    cutoff: &Cutoff,
    folded: &Folded,
    manifest: Option<ManifestState>,
) -> Judged {
    let artifact_id = pair.artifact.artifact_id;
    let record = folded.state.artifact(artifact_id);
    match record.map(|record| &record.status) {
        Some(ArtifactStatus::Condemned(_)) => {
            return Judged::Is(Status::PendingDelete, Reason::CondemnedEarlier);
        }
        Some(ArtifactStatus::Deleted(_)) => return after_deletion(pair),
        Some(ArtifactStatus::Live) | None => {}
    }
    let is_protected = folded.state.is_protected(artifact_id);
    match (&pair.manifest, &pair.body) {
        (Some(_), Some(body)) if is_protected => {
            let contradicts = |lease: &Lease| {
                lease.intent.size_bytes != body.size_bytes || lease.intent.etag != body.etag
            };
            if folded.state.protectors(artifact_id).any(contradicts) {
                Judged::Is(
                    Status::RetainedCorrupt,
                    Reason::RetentionClaimDigestMismatch,
                )
            } else {
                Judged::Is(
                    Status::RetainedReferenced,
                    Reason::ActiveMemoryRetentionClaim,
                )
            }
        }
        (Some(_), None) | (None, Some(_)) if is_protected => Judged::Is(
            Status::MissingReferenced,
            Reason::ActiveRetentionClaimHasNoArtifact,
        ),
        (Some(_), None) => match manifest {
            None => Judged::NeedsManifest,
            Some(ManifestState::Tombstone | ManifestState::Absent) => Judged::Finished,
            Some(ManifestState::Live) => {
                Judged::Is(Status::RetainedCorrupt, Reason::ManifestWithoutBody)
            }
            Some(ManifestState::Unreadable) => {
                Judged::Is(Status::RetainedUnknown, Reason::ManifestUnreadable)
            }
        },
        // The journal knows it, so a manifest was there once: that is damage, not an upload.
        (None, _) if record.is_some() => {
            Judged::Is(Status::RetainedCorrupt, Reason::ManifestMissing)
        }
        _ if folded.is_suspect => Judged::Is(Status::RetainedCorrupt, Reason::JournalSuspect),
        (None, _) => Judged::Is(Status::PlannedDelete, Reason::AbandonedUpload),
        (Some(_), Some(_)) => unprotected(artifact_id, cutoff, folded, record),
    }
}

fn after_deletion(pair: &Pair) -> Judged {
    match (&pair.manifest, &pair.body) {
        (Some(_), Some(_)) => Judged::Is(Status::PendingDelete, Reason::BodyBesideTombstone),
        (_, None) => Judged::Finished,
        // Its tombstone is gone, which nothing of ours does.
        (None, Some(_)) => Judged::Is(Status::RetainedCorrupt, Reason::ManifestMissing),
    }
}

fn unprotected(
    artifact_id: ArtifactId,
    cutoff: &Cutoff,
    folded: &Folded,
    record: Option<&ArtifactRecord>,
) -> Judged {
    let had_lease = folded.leased.contains(&artifact_id);
    if let Some(reference) = record.and_then(|record| record.last_reference) {
        let Some(as_of) = folded.referred_at(&reference) else {
            return Judged::Is(Status::RetainedRecent, Reason::ReferenceTimeUnknown);
        };
        let margin = AS_OF_MARGIN.saturating_add(LISTED_TIME_MARGIN);
        if !cutoff.is_older(as_of, margin, cutoff.orphan_ttl) {
            let reason = if had_lease {
                Reason::RetentionClaimExpiredButOrphanTtlNotReached
            } else {
                Reason::OrphanTtlNotReached
            };
            return Judged::Is(Status::RetainedRecent, reason);
        }
    }
    let reason = if had_lease {
        Reason::ExpiredRetentionClaim
    } else {
        Reason::ExpiredUnreferencedArtifact
    };
    Judged::Is(Status::PlannedDelete, reason)
}

/// Returns what a folded journal knows of artifacts that its session's listings did not show: leases
/// whose artifact is gone, and condemnations that are not finished. `seen` is in key order.
pub fn judge_unseen<'a>(
    folded: &'a Folded,
    seen: &'a [ArtifactId],
) -> impl Iterator<Item = (ArtifactId, Status, Reason)> + 'a {
    debug_assert!(seen.is_sorted());
    let artifacts = folded.state.artifacts();
    artifacts.filter_map(move |(artifact_id, record)| {
        if seen.binary_search(&artifact_id).is_ok() {
            return None;
        }
        match record.status {
            ArtifactStatus::Condemned(_) => {
                Some((artifact_id, Status::PendingDelete, Reason::CondemnedEarlier))
            }
            ArtifactStatus::Live if folded.state.is_protected(artifact_id) => Some((
                artifact_id,
                Status::MissingReferenced,
                Reason::ActiveRetentionClaimHasNoArtifact,
            )),
            ArtifactStatus::Live | ArtifactStatus::Deleted(_) => None,
        }
    })
}

#[cfg(test)]
pub(in crate::gc) mod tests;
