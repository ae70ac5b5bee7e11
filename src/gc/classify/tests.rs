use rstest::rstest;

use super::*;
use crate::digest::Sha256Digest;
use crate::ids::{ArtifactRef, SessionKey, Tenant};
use crate::lease::entry::{
    CondemnReason, Condemned, DeleteOutcome, Entry, OwnerMode, Prepared, ReleaseReason,
};
use crate::limits::DEFAULT_ORPHAN_TTL;

const NOW: &str = "2026-12-10T00:00:00Z";
pub(in crate::gc) const HOUR: i64 = 3_600;

pub(in crate::gc) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(in crate::gc) fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

pub(in crate::gc) fn cutoff() -> Cutoff {
    Cutoff {
        now: now(),
        orphan_ttl: DEFAULT_ORPHAN_TTL,
    }
}

pub(in crate::gc) fn aid() -> ArtifactId {
    ArtifactId::new(1, [0; 10])
}

pub(in crate::gc) fn seen(age_s: i64) -> Seen {
    Seen {
        size_bytes: 5,
        etag: "\"e\"".to_owned(),
        last_modified: ago(age_s),
    }
}

/// A pair by the ages of its keys in seconds.
pub(in crate::gc) fn pair(manifest: Option<i64>, body: Option<i64>) -> Pair {
    let session_key = SessionKey::derive(&Tenant::default(), &"s".parse().unwrap());
    Pair {
        artifact: ArtifactRef {
            session_key,
            artifact_id: aid(),
        },
        manifest: manifest.map(seen),
        body: body.map(seen),
    }
}

pub(in crate::gc) fn old() -> Pair {
    pair(Some(48 * HOUR), Some(48 * HOUR))
}

/// A journal whose entries were all written at the store's date `ago(age_s)`.
pub(in crate::gc) fn journal_at(age_s: Option<i64>, entries: &[Entry]) -> JournalView {
    let mut state = State::default();
    for (seq, entry) in entries.iter().enumerate() {
        state.apply(seq as u64, age_s.map(ago), entry).unwrap();
    }
    JournalView::Folded(Folded::new(Arc::new(state), false))
}

pub(in crate::gc) fn journal(entries: &[Entry]) -> JournalView {
    journal_at(Some(47 * HOUR), entries)
}

pub(in crate::gc) fn prepared() -> Entry {
    Entry::Prepared(Box::new(Prepared {
        transaction_id: "t".parse().unwrap(),
        owner: "memory".parse().unwrap(),
        mode: OwnerMode::OwnerFenced,
        artifact_id: aid(),
        sha256: Sha256Digest::of(b"x"),
        size_bytes: 5,
        etag: "\"e\"".to_owned(),
        version_id: None,
        reference_count: 2,
        retain_until: Some(ago(47 * HOUR)),
        reason: None,
    }))
}

pub(in crate::gc) fn committed() -> Entry {
    Entry::Committed {
        transaction_id: "t".parse().unwrap(),
        owner_generation: None,
    }
}

pub(in crate::gc) fn released() -> Entry {
    Entry::Released {
        transaction_id: "t".parse().unwrap(),
        why: ReleaseReason::Removed,
    }
}

pub(in crate::gc) fn touched() -> Entry {
    Entry::Touched { artifact_id: aid() }
}

pub(in crate::gc) fn condemned() -> Entry {
    Entry::Condemned(Box::new(Condemned {
        artifact_id: aid(),
        decision_id: None,
        sha256: None,
        size_bytes: None,
        etag: None,
        version_id: None,
        store_checksum: None,
        manifest_version_id: None,
        why: CondemnReason::Expired,
        server_date: ago(HOUR),
        plan_id: None,
    }))
}

pub(in crate::gc) fn deleted() -> Entry {
    Entry::Deleted {
        artifact_id: aid(),
        outcome: DeleteOutcome::Deleted,
    }
}

fn is(pair: &Pair, journal: &JournalView) -> (Status, Reason) {
    match judge(pair, &cutoff(), Some(journal), None) {
        Judged::Is(status, reason) => (status, reason),
        other @ (Judged::Finished | Judged::NeedsJournal | Judged::NeedsManifest) => {
            panic!("{other:?}")
        }
    }
}

#[rstest]
#[case::both_young(Some(HOUR), Some(HOUR))]
#[case::young_manifest(Some(HOUR), Some(48 * HOUR))]
#[case::a_second_short(Some(24 * HOUR), Some(24 * HOUR))]
#[case::in_the_future(Some(-500), Some(-500))]
fn a_young_artifact_is_kept_without_a_look_at_the_journal(
    #[case] manifest: Option<i64>,
    #[case] body: Option<i64>,
) {
    let judged = judge(&pair(manifest, body), &cutoff(), None, None);
    let expected = Judged::Is(Status::RetainedRecent, Reason::OrphanTtlNotReached);
    assert_eq!(judged, expected);
}

/// A listed time of 00:00:00 may be 00:00:00.999: it counts as a second later.
#[test]
fn a_listed_time_counts_as_up_to_a_second_later() {
    let age = 24 * HOUR + 1;
    let judged = judge(&pair(Some(age), Some(age)), &cutoff(), None, None);
    assert_eq!(judged, Judged::NeedsJournal);
}

#[test]
fn an_old_artifact_without_a_reference_is_planned() {
    let planned = (Status::PlannedDelete, Reason::ExpiredUnreferencedArtifact);
    assert_eq!(is(&old(), &journal(&[])), planned);
    assert_eq!(is(&old(), &journal(&[touched()])), planned);
}

#[test]
fn a_lease_keeps_whatever_its_age_and_even_past_its_end() {
    let kept = (
        Status::RetainedReferenced,
        Reason::ActiveMemoryRetentionClaim,
    );
    assert_eq!(is(&old(), &journal(&[prepared()])), kept);
    assert_eq!(is(&old(), &journal(&[prepared(), committed()])), kept);
}

#[test]
fn a_lease_on_other_bytes_still_protects_and_is_an_alarm() {
    let mut other = old();
    other.body.as_mut().unwrap().etag = "\"other\"".to_owned();
    let alarm = (
        Status::RetainedCorrupt,
        Reason::RetentionClaimDigestMismatch,
    );
    assert_eq!(is(&other, &journal(&[prepared()])), alarm);
    let mut longer = old();
    longer.body.as_mut().unwrap().size_bytes = 6;
    assert_eq!(is(&longer, &journal(&[prepared(), committed()])), alarm);
}

/// 90 days old, and its last lease ended now: its grace begins now.
#[test]
fn grace_runs_from_the_last_reference() {
    let ancient = pair(Some(90 * 24 * HOUR), Some(90 * 24 * HOUR));
    let entries = [prepared(), committed(), released()];
    let young = (
        Status::RetainedRecent,
        Reason::RetentionClaimExpiredButOrphanTtlNotReached,
    );
    assert_eq!(is(&ancient, &journal_at(Some(0), &entries)), young);
    // The entry may be ten minutes younger than its `as_of`, and that a second.
    assert_eq!(
        is(&ancient, &journal_at(Some(24 * HOUR + 600), &entries)),
        young
    );
    let planned = (Status::PlannedDelete, Reason::ExpiredRetentionClaim);
    assert_eq!(
        is(&ancient, &journal_at(Some(24 * HOUR + 601), &entries)),
        planned
    );
}

#[test]
fn a_touch_renews_the_grace() {
    let young = (Status::RetainedRecent, Reason::OrphanTtlNotReached);
    assert_eq!(is(&old(), &journal_at(Some(2 * HOUR), &[touched()])), young);
}

#[test]
fn a_reference_of_an_unknown_time_keeps() {
    let kept = (Status::RetainedRecent, Reason::ReferenceTimeUnknown);
    assert_eq!(is(&old(), &journal_at(None, &[touched()])), kept);
}

/// Its writer had seen no date of the store: the store's own time of the record counts.
#[test]
fn a_record_without_a_time_counts_from_when_it_was_written() {
    let JournalView::Folded(folded) = journal_at(None, &[touched()]) else {
        unreachable!()
    };
    assert_eq!(untimed_references(&folded.state), BTreeSet::from([0]));
    for (age_s, status) in [
        (23 * HOUR, Status::RetainedRecent),
        (24 * HOUR + 600, Status::RetainedRecent),
        (24 * HOUR + 601, Status::PlannedDelete),
    ] {
        let written = BTreeMap::from([(0, ago(age_s))]);
        let view = JournalView::Folded(folded.clone().with_written(written));
        assert_eq!(is(&old(), &view).0, status, "{age_s}");
    }
    let JournalView::Folded(timed) = journal(&[touched()]) else {
        unreachable!()
    };
    assert!(untimed_references(&timed.state).is_empty());
    let JournalView::Folded(leased) = journal_at(None, &[prepared()]) else {
        unreachable!()
    };
    assert!(untimed_references(&leased.state).is_empty());
}

#[test]
fn what_is_condemned_is_finished_whatever_is_left_of_it() {
    let pending = (Status::PendingDelete, Reason::CondemnedEarlier);
    for pair in [
        old(),
        pair(Some(48 * HOUR), None),
        pair(None, Some(48 * HOUR)),
    ] {
        assert_eq!(is(&pair, &journal(&[condemned()])), pending);
    }
}

#[test]
fn a_body_that_came_back_after_its_deletion_goes() {
    let journal = journal(&[condemned(), deleted()]);
    let beside = (Status::PendingDelete, Reason::BodyBesideTombstone);
    assert_eq!(is(&old(), &journal), beside);
    let tombstone = pair(Some(48 * HOUR), None);
    let judged = judge(&tombstone, &cutoff(), Some(&journal), None);
    assert_eq!(judged, Judged::Finished);
    // Nothing of ours removes a tombstone.
    let alone = pair(None, Some(48 * HOUR));
    let alarm = (Status::RetainedCorrupt, Reason::ManifestMissing);
    assert_eq!(is(&alone, &journal), alarm);
}

#[test]
fn a_body_younger_than_its_key_is_looked_at_and_goes_beside_a_tombstone() {
    let late = pair(Some(HOUR), Some(HOUR - 1));
    let look = |manifest| judge(&late, &cutoff(), None, manifest);
    assert_eq!(look(None), Judged::NeedsManifest);
    let beside = Judged::Is(Status::PendingDelete, Reason::BodyBesideTombstone);
    assert_eq!(look(Some(ManifestState::Tombstone)), beside);
    let young = Judged::Is(Status::RetainedRecent, Reason::OrphanTtlNotReached);
    assert_eq!(look(Some(ManifestState::Live)), young);
    // An ordinary save writes both in the same second: no request.
    let same = pair(Some(HOUR), Some(HOUR));
    assert_eq!(judge(&same, &cutoff(), None, None), young);
}

#[test]
fn an_abandoned_upload_has_its_own_time_whatever_the_ttl() {
    let patient = Cutoff {
        orphan_ttl: Duration::from_secs(90 * 24 * 3600),
        ..cutoff()
    };
    let hasty = Cutoff {
        orphan_ttl: Duration::from_secs(1),
        ..cutoff()
    };
    let abandoned = Judged::Is(Status::PlannedDelete, Reason::AbandonedUpload);
    let unfinished = Judged::Is(Status::RetainedRecent, Reason::UploadNotFinished);
    for cutoff in [patient, hasty] {
        let body = pair(None, Some(24 * HOUR + 1));
        assert_eq!(judge(&body, &cutoff, None, None), Judged::NeedsJournal);
        assert_eq!(judge(&body, &cutoff, Some(&journal(&[])), None), abandoned);
        let young = pair(None, Some(24 * HOUR));
        assert_eq!(
            judge(&young, &cutoff, Some(&journal(&[])), None),
            unfinished
        );
    }
}

#[test]
fn a_referenced_artifact_without_manifest_or_body_is_missing_and_stays() {
    let missing = (
        Status::MissingReferenced,
        Reason::ActiveRetentionClaimHasNoArtifact,
    );
    for pair in [pair(Some(48 * HOUR), None), pair(None, Some(48 * HOUR))] {
        assert_eq!(is(&pair, &journal(&[prepared()])), missing);
    }
    // A journal that knows the artifact says that it was more than an upload.
    let alone = pair(None, Some(48 * HOUR));
    let alarm = (Status::RetainedCorrupt, Reason::ManifestMissing);
    assert_eq!(is(&alone, &journal(&[touched()])), alarm);
}

#[test]
fn a_manifest_without_body_and_entry_is_read_once() {
    let alone = pair(Some(48 * HOUR), None);
    let look = |manifest| judge(&alone, &cutoff(), Some(&journal(&[])), manifest);
    assert_eq!(look(None), Judged::NeedsManifest);
    assert_eq!(look(Some(ManifestState::Tombstone)), Judged::Finished);
    let alarm = Judged::Is(Status::RetainedCorrupt, Reason::ManifestWithoutBody);
    assert_eq!(look(Some(ManifestState::Live)), alarm);
}

#[test]
fn a_journal_that_cannot_be_used_keeps_everything() {
    let unusable = JournalView::Unusable(Status::RetainedCorrupt, Reason::JournalCorrupt);
    assert_eq!(
        is(&old(), &unusable),
        (Status::RetainedCorrupt, Reason::JournalCorrupt)
    );
    let alone = pair(None, Some(48 * HOUR));
    assert_eq!(
        is(&alone, &unusable),
        (Status::RetainedCorrupt, Reason::JournalCorrupt)
    );
    let conflict = JournalView::Folded(Folded::new(Arc::default(), true));
    let suspect = (Status::RetainedCorrupt, Reason::JournalSuspect);
    assert_eq!(is(&old(), &conflict), suspect);
    assert_eq!(is(&alone, &conflict), suspect);
}

#[test]
fn what_is_no_file_is_denied() {
    let mut link = old();
    link.body.as_mut().unwrap().etag = UNREADABLE_ETAG.to_owned();
    let denied = Judged::Is(Status::Denied, Reason::ArtifactNotARegularFile);
    assert_eq!(judge(&link, &cutoff(), None, None), denied);
}

#[test]
fn what_the_listing_does_not_show_is_told_from_the_journal() {
    let JournalView::Folded(leased) = journal(&[prepared()]) else {
        unreachable!()
    };
    let missing = (
        aid(),
        Status::MissingReferenced,
        Reason::ActiveRetentionClaimHasNoArtifact,
    );
    assert_eq!(judge_unseen(&leased, &[]).collect::<Vec<_>>(), [missing]);
    assert_eq!(judge_unseen(&leased, &[aid()]).count(), 0);
    for (entries, expected) in [
        (vec![condemned()], 1),
        (vec![condemned(), deleted()], 0),
        (vec![touched()], 0),
    ] {
        let JournalView::Folded(folded) = journal(&entries) else {
            unreachable!()
        };
        assert_eq!(judge_unseen(&folded, &[]).count(), expected);
    }
}
