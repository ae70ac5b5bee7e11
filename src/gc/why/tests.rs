use rstest::rstest;

use super::*;
use crate::gc::classify::tests::{
    HOUR, ago, committed, condemned, cutoff, journal, journal_at, old, pair, prepared, released,
    touched,
};

fn of(pair: &Pair, view: &JournalView) -> Grounds {
    grounds(pair, &cutoff(), view, ManifestState::Live)
}

fn after(at: Timestamp, seconds: i64) -> Option<Timestamp> {
    Some(at + SignedDuration::from_secs(seconds))
}

#[test]
fn a_young_artifact_says_from_when_on_it_may_go() {
    let found = of(&pair(Some(HOUR), Some(2 * HOUR)), &journal(&[]));
    let verdict = (Status::RetainedRecent, Reason::OrphanTtlNotReached);
    assert_eq!(found.verdict, Some(verdict));
    assert_eq!(found.eligible_from, after(ago(HOUR), 24 * HOUR + 1));
    assert!(found.records.is_empty());
}

#[test]
fn an_upload_has_its_own_day() {
    let found = of(&pair(None, Some(HOUR)), &journal(&[]));
    assert_eq!(found.verdict.unwrap().1, Reason::UploadNotFinished);
    assert_eq!(found.eligible_from, after(ago(HOUR), 24 * HOUR + 1));
}

#[test]
fn a_lease_is_named_by_its_records_and_no_time_ends_it() {
    let found = of(&old(), &journal(&[prepared(), committed()]));
    assert_eq!(found.verdict.unwrap().0, Status::RetainedReferenced);
    assert_eq!(found.eligible_from, None);
    assert_eq!(found.records, BTreeSet::from([0, 1]));
}

#[test]
fn grace_after_the_last_reference_says_when_it_ends() {
    let entries = [prepared(), committed(), released(), touched()];
    let found = of(&old(), &journal_at(Some(HOUR), &entries));
    assert_eq!(found.verdict.unwrap().0, Status::RetainedRecent);
    assert_eq!(found.eligible_from, after(ago(HOUR), 24 * HOUR + 601));
    assert_eq!(found.records, BTreeSet::from([0, 2, 3]));
}

#[rstest]
#[case::candidate(&[], Status::PlannedDelete)]
#[case::condemned(&[condemned()], Status::PendingDelete)]
fn what_goes_waits_for_no_time(#[case] entries: &[Entry], #[case] status: Status) {
    let found = of(&old(), &journal(entries));
    assert_eq!(found.verdict.unwrap().0, status);
    assert_eq!(found.eligible_from, None);
    assert_eq!(found.records.len(), entries.len());
}

#[test]
fn a_tombstone_without_a_body_is_no_question_any_more() {
    let found = grounds(
        &pair(Some(48 * HOUR), None),
        &cutoff(),
        &journal(&[]),
        ManifestState::Tombstone,
    );
    assert_eq!(found.verdict, None);
}

/// The answer is the planner's: at the moment that is named, and not a second before.
#[test]
fn the_named_moment_is_when_the_planner_proposes_it() {
    let entries = [prepared(), committed(), released()];
    let view = journal_at(Some(HOUR), &entries);
    let from = of(&old(), &view).eligible_from.unwrap();
    for (seconds, status) in [(-1, Status::RetainedRecent), (0, Status::PlannedDelete)] {
        let then = Cutoff {
            now: from + SignedDuration::from_secs(seconds),
            ..cutoff()
        };
        let verdict = grounds(&old(), &then, &view, ManifestState::Live).verdict;
        assert_eq!(verdict.unwrap().0, status);
    }
}
