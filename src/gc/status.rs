//! What a collector says of each key that it met: closed lists of statuses and reasons.
//!
//! The names of the statuses, and of the reasons that an earlier system of this kind had, are kept, so
//! that dashboards and scripts go on working.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lease::canonical::MAX_INTEGER;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $( #[doc = $meaning:literal] $variant:ident = $text:literal ),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $( #[doc = $meaning] #[serde(rename = $text)] $variant, )+
        }

        impl $name {
            /// Every one, in alphabetical order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the name on the wire, stable for ever.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            /// Returns what it says, in a sentence.
            pub fn meaning(self) -> &'static str {
                let sentence = match self { $( Self::$variant => $meaning, )+ };
                sentence.trim_start()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// What becomes of something that a collector met. Keep this alphabetized.
    Status {
        /// It was to be deleted and is gone already.
        AlreadyMissing = "already_missing",
        /// This run deleted it.
        Deleted = "deleted",
        /// The store does not let the collector look at it or delete it.
        Denied = "denied",
        /// A lease protects something whose manifest or body is not there: an alarm.
        MissingReferenced = "missing_referenced",
        /// It is condemned, or stands beside a tombstone: the next sweep takes it.
        PendingDelete = "pending_delete",
        /// The plan proposes to delete it.
        PlannedDelete = "planned_delete",
        /// It changed, or somebody referred to it, after the plan was made: kept.
        RaceDetected = "race_detected",
        /// What is stored contradicts itself: kept, an alarm.
        RetainedCorrupt = "retained_corrupt",
        /// It may go, but the limits of this plan are reached: kept for the next one.
        RetainedLimit = "retained_limit",
        /// Too young, or referred to too recently.
        RetainedRecent = "retained_recent",
        /// A lease protects it.
        RetainedReferenced = "retained_referenced",
        /// Not ours, or not understood by this version: never touched.
        RetainedUnknown = "retained_unknown",
    }
}

names! {
    /// Why. Keep this alphabetized.
    Reason {
        /// Its upload never finished.
        AbandonedUpload = "abandoned_upload",
        /// An entry about it landed after the plan was made.
        ActiveClaimAddedAfterCleanupPlan = "active_claim_added_after_cleanup_plan",
        /// A lease is prepared or committed.
        ActiveMemoryRetentionClaim = "active_memory_retention_claim",
        /// A lease protects what is not there.
        ActiveRetentionClaimHasNoArtifact = "active_retention_claim_has_no_artifact",
        /// Its manifest or its body is not the one that the plan saw.
        ArtifactChangedAfterCleanupPlan = "artifact_changed_after_cleanup_plan",
        /// The credentials may not delete it.
        ArtifactDeleteDenied = "artifact_delete_denied",
        /// Something else than a file stands in its place.
        ArtifactNotARegularFile = "artifact_not_a_regular_file",
        /// The credentials may not read it.
        ArtifactReadDenied = "artifact_read_denied",
        /// It could not be looked at: kept for the next run.
        ArtifactSnapshotFailed = "artifact_snapshot_failed",
        /// Its manifest is a tombstone.
        BodyBesideTombstone = "body_beside_tombstone",
        /// The body is not the one that its manifest describes.
        BodyDiffersFromManifest = "body_differs_from_manifest",
        /// The plan's number of deletions is reached.
        CleanupDeletionLimitReached = "cleanup_deletion_limit_reached",
        /// It was condemned and is not deleted yet.
        CondemnedEarlier = "condemned_earlier",
        /// Its lease ended longer ago than the orphan TTL.
        ExpiredRetentionClaim = "expired_retention_claim",
        /// It never had a lease and is older than the orphan TTL.
        ExpiredUnreferencedArtifact = "expired_unreferenced_artifact",
        /// Its session's journal is broken: nothing there is destroyed.
        JournalCorrupt = "journal_corrupt",
        /// Its session's journal holds entries without effect, or a checkpoint that says something else.
        JournalSuspect = "journal_suspect",
        /// Its session's journal was written by a newer version.
        JournalUnsupported = "journal_unsupported",
        /// The key is none of ours.
        KeyNotOwned = "key_not_owned",
        /// Its journal names it, but its manifest is not there.
        ManifestMissing = "manifest_missing",
        /// Its manifest cannot be read by this version.
        ManifestUnreadable = "manifest_unreadable",
        /// Its manifest lives, but its body is not there.
        ManifestWithoutBody = "manifest_without_body",
        /// Its manifest, its body or its last touch is younger than the orphan TTL.
        OrphanTtlNotReached = "orphan_ttl_not_reached",
        /// When it was last referred to cannot be told.
        ReferenceTimeUnknown = "reference_time_unknown",
        /// What a lease says of it is not what is stored.
        RetentionClaimDigestMismatch = "retention_claim_digest_mismatch",
        /// Its lease ended, but not longer ago than the orphan TTL.
        RetentionClaimExpiredButOrphanTtlNotReached = "retention_claim_expired_but_orphan_ttl_not_reached",
        /// Its session has no readable descriptor, so that its journal cannot be found.
        SessionUnknown = "session_unknown",
        /// The condemnation is younger than the settle time.
        SettleNotReached = "settle_not_reached",
        /// The plan's share of all live artifacts is reached.
        ShareLimitReached = "share_limit_reached",
        /// A multipart upload older than 24 hours.
        StaleUpload = "stale_upload",
        /// A body whose manifest may still come.
        UploadNotFinished = "upload_not_finished",
    }
}

impl Status {
    /// Returns whether somebody should look.
    pub const fn is_alarm(self) -> bool {
        match self {
            Self::Denied | Self::MissingReferenced | Self::RetainedCorrupt => true,
            Self::AlreadyMissing
            | Self::Deleted
            | Self::PendingDelete
            | Self::PlannedDelete
            | Self::RaceDetected
            | Self::RetainedLimit
            | Self::RetainedRecent
            | Self::RetainedReferenced
            | Self::RetainedUnknown => false,
        }
    }
}

/// How many, and how many bytes of body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

impl Tally {
    /// Adds another; what JSON cannot say exactly stays at the largest number that it can.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count).min(MAX_INTEGER);
        self.bytes = self.bytes.saturating_add(other.bytes).min(MAX_INTEGER);
    }
}

/// Counts per status and reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<Status, BTreeMap<Reason, Tally>>);

impl Counts {
    /// Adds a tally.
    pub fn add_all(&mut self, status: Status, reason: Reason, tally: Tally) {
        if tally.count > 0 {
            let of_status = self.0.entry(status).or_default();
            of_status.entry(reason).or_default().add(tally);
        }
    }

    /// Counts one.
    pub fn add(&mut self, status: Status, reason: Reason, bytes: u64) {
        self.add_all(status, reason, Tally { count: 1, bytes });
    }

    /// Returns a status's total.
    pub fn of(&self, status: Status) -> Tally {
        let reasons = self.0.get(&status).into_iter().flatten();
        reasons.fold(Tally::default(), |mut sum, (_, tally)| {
            sum.add(*tally);
            sum
        })
    }

    /// Returns the count of one status for one reason.
    pub fn of_reason(&self, status: Status, reason: Reason) -> Tally {
        let of_status = self.0.get(&status);
        let tally = of_status.and_then(|reasons| reasons.get(&reason));
        tally.copied().unwrap_or_default()
    }

    /// Returns every status that was met, with its reasons.
    pub fn iter(&self) -> impl Iterator<Item = (Status, Reason, Tally)> {
        let statuses = self.0.iter();
        statuses.flat_map(|(status, reasons)| {
            let rows = reasons.iter();
            rows.map(|(reason, tally)| (*status, *reason, *tally))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_alphabetical_unique_snake_case() {
        let statuses = Status::ALL.iter().map(|status| status.as_str());
        let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
        for names in [statuses.collect::<Vec<_>>(), reasons.collect()] {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(names, sorted);
            let is_snake = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(names.iter().all(is_snake));
        }
        assert_eq!(
            serde_json::to_value(Status::RetainedReferenced).unwrap(),
            Status::RetainedReferenced.as_str()
        );
    }

    #[test]
    fn counts_add_up_over_reasons() {
        let mut counts = Counts::default();
        counts.add(Status::PlannedDelete, Reason::AbandonedUpload, 3);
        counts.add(Status::PlannedDelete, Reason::AbandonedUpload, 4);
        counts.add(
            Status::PlannedDelete,
            Reason::ExpiredRetentionClaim,
            u64::MAX,
        );
        let bytes = MAX_INTEGER;
        assert_eq!(counts.of(Status::PlannedDelete), Tally { count: 3, bytes });
        let uploads = counts.of_reason(Status::PlannedDelete, Reason::AbandonedUpload);
        assert_eq!(uploads, Tally { count: 2, bytes: 7 });
        assert_eq!(counts.of(Status::Deleted), Tally::default());
        assert_eq!(counts.iter().count(), 2);
    }
}
