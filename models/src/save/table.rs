//! The two tables: what holds, and what each rule prevents.

use super::scenario::by_name;
use super::{Rule, SaveModel};
use crate::scenario::{self, Removal, RemovalRow, Scenario, ScenarioRow};

#[rustfmt::skip] // a line for each
const SCENARIOS: &[ScenarioRow] = &[
    ("kk", 13_358, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("ss", 1_236, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("sss", 84_604, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("kk_gc_lease_touch", 127_650, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("ss_gc_lease_touch", 8_748, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("kk_gc_erase_touch", 160_006, true, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("ss_gc_erase_touch", 10_340, true, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("ss_gc_lease_ver_touch", 15_932, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("kk_gc_erase_ver_touch", 303_036, true, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("kk_gc_erase_deleted_touch", 307_578, true, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("kk_gc_lease_stale_touch", 127_650, true, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("kk_gc_retry", 17_584, true, &["a second incarnation", "finished by another"]),
    ("nn_gc_lease_ver", 6_889, true, &["a receipt without a call id"]),
    ("kK_digests_gc_lease_erase", 46_217, true, &["both digests have a receipt", "erased"]),
    ("ssS_digests_gc", 152_000, true, &["a second incarnation", "both digests have a receipt", "finished by another"]),
    ("kK_fork", 2_179, true, &["a fork has its parent's artifact", "a fork passes over its parent's record", "all savers hold the same receipt", "finished by another"]),
    ("kK_fork_gc_lease_erase_touch", 75_347, true, &["a fork has its parent's artifact", "a fork is told 410", "a fork passes over its parent's record", "all savers hold the same receipt", "erased", "finished by another"]),
    ("sS_fork_gc_lease_erase_touch", 28_000, true, &["a fork has its parent's artifact", "a fork is told 410", "a fork passes over its parent's record", "all savers hold the same receipt", "erased", "finished by another"]),
    ("sSS_fork_gc", 382_480, true, &["a fork has its parent's artifact", "a fork passes over its parent's record", "a second incarnation", "all savers hold the same receipt", "finished by another", "note: two receipts in a fork"]),
    ("ir", 5_238, true, &["a second incarnation", "all savers hold the same receipt", "answered inline", "answered spilled", "finished by another", "took another's result"]),
    ("ir_gc_erase", 62_494, true, &["a second incarnation", "all savers hold the same receipt", "answered inline", "answered spilled", "erased", "finished by another", "note: bytes beside a tombstone after the erase", "took another's result"]),
    ("rr_gc", 112_138, true, &["a second incarnation", "all savers hold the same receipt", "answered spilled", "finished by another"]),
    ("ik_gc_erase", 790, true, &["answered inline", "erased"]),
    ("iR_fork", 460, true, &["answered inline", "answered spilled", "took another's result"]),
    ("rI_fork_gc", 19_055, true, &["a fork has its parent's artifact", "a fork passes over its parent's record", "all savers hold the same receipt", "answered inline", "answered spilled", "finished by another", "took another's result"]),
    ("iRI_fork", 10_624, true, &["a second incarnation", "answered inline", "answered spilled", "finished by another", "note: two answers in a fork", "took another's result"]),
    ("kkk", 5_124_061, false, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("kk_gc_lease_erase_touch", 476_430, false, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("sss_gc_lease_touch", 1_799_704, false, &["a second incarnation", "all savers hold the same receipt", "finished by another"]),
    ("sss_gc_lease_erase", 5_794_342, false, &["a second incarnation", "all savers hold the same receipt", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
    ("ssk_gc_retry", 2_532_966, false, &["a second incarnation", "finished by another"]),
    ("kkK_digests", 601_110, false, &["a second incarnation", "both digests have a receipt", "finished by another"]),
    ("kKK_fork", 658_176, false, &["a fork has its parent's artifact", "a fork passes over its parent's record", "a second incarnation", "all savers hold the same receipt", "finished by another", "note: two receipts in a fork"]),
    ("kKK_fork_gc", 7_767_172, false, &["a fork has its parent's artifact", "a fork passes over its parent's record", "a second incarnation", "all savers hold the same receipt", "finished by another", "note: two receipts in a fork"]),
    ("irk", 2_631_185, false, &["a second incarnation", "all savers hold the same receipt", "answered inline", "answered spilled", "finished by another", "took another's result"]),
    ("rk_gc_erase_touch", 220_000, false, &["a second incarnation", "all savers hold the same receipt", "answered spilled", "erased", "finished by another", "note: bytes beside a tombstone after the erase"]),
];

#[rustfmt::skip] // a line for each
const REMOVALS: &[RemovalRow<Rule>] = &[
    (Rule::BodyBeforeManifest, "kk", 4, &["P5 a live manifest has its body"]),
    (Rule::LostRecordsAreRead, "kk", 9, &["E1 swept: one live at most, no orphan body", "P3 one artifact per call and digest"]),
    (Rule::CompareBeforeOwnDelete, "kk", 6, &["P5 a live manifest has its body"]),
    (Rule::LostManifestsAreRead, "kk", 7, &["P2 receipt: live manifest and body, or condemned"]),
    (Rule::ManifestsAreCreated, "kk_gc", 8, &["P5 a live manifest has its body"]),
    (Rule::UnfinishedIsFinished, "kk", 13, &["E1 swept: one live at most, no orphan body", "P3 one artifact per call and digest"]),
    (Rule::OwnDeleteIsLast, "kk", 14, &["P5 a live manifest has its body"]),
    (Rule::OwnDeleteWaitsForRecords, "kk", 14, &["P5 a live manifest has its body"]),
    (Rule::OwnDeleteNotAfterManifest, "n", 5, &["P5 a live manifest has its body"]),
    (Rule::DigestsHaveOwnRecords, "kK_digests", 8, &["P6 a receipt is of the own bytes"]),
    (Rule::OrphansAreBuriedFirst, "kk", 7, &["P5 a live manifest has its body"]),
    (Rule::BurialIsAwaited, "ss", 9, &["P5 a live manifest has its body"]),
    (Rule::LostBurialIsNoLicence, "ss", 9, &["P5 a live manifest has its body"]),
    (Rule::BurialCreates, "ss", 9, &["P2 receipt: live manifest and body, or condemned"]),
    (Rule::AbandonedMovesOn, "kk", 3, &["E2 one more save ends"]),
    (Rule::TombstoneBeforeDelete, "kk_gc", 8, &["P5 a live manifest has its body"]),
    (Rule::TombstoneOverwrites, "kk_gc_lease", 8, &["P5 a live manifest has its body"]),
    (Rule::LeasesBlockCondemned, "ss_gc_lease", 11, &["P1 leased: live manifest and body"]),
    (Rule::PrepareReadsJournal, "ss_gc_lease", 11, &["P1 leased: live manifest and body"]),
    (Rule::ManifestKeyStaysTaken, "kk", 8, &["P5 a live manifest has its body"]),
    (Rule::LateBodiesGo, "kk_gc_deleted", 12, &["E1 swept: one live at most, no orphan body"]),
    (Rule::ReadsRevalidate, "kk_erase", 14, &["P4c erased: no reader is served"]),
    (Rule::EraseEndsTheRecords, "kk_gc_erase", 11, &["P4b erased: no later save gets a receipt"]),
    (Rule::EraseGoesOn, "kk_gc_erase", 15, &["P4b erased: no later save gets a receipt"]),
    (Rule::EraseTakesLaterRecords, "kk_gc_erase", 16, &["P4b erased: no later save gets a receipt"]),
    (Rule::EraseConfirmsEarlier, "kk_gc_erase_touch", 20, &["P4a erased: nothing of the call is live", "P4b erased: no later save gets a receipt", "P4c erased: no reader is served"]),
    (Rule::EraseConfirms, "ss_erase", 10, &["P4a erased: nothing of the call is live", "P4b erased: no later save gets a receipt", "P4c erased: no reader is served"]),
    (Rule::ErasedIsFinal, "ss_erase", 12, &["P4b erased: no later save gets a receipt"]),
    (Rule::ParentsAreRead, "kK_fork", 12, &["P7 a fork replays its parent"]),
    (Rule::ParentUnfinishedIsPassed, "kK_fork", 2, &["E2 one more save ends"]),
    (Rule::ParentCollectedIsPassed, "kK_fork_gc", 3, &["E2 one more save ends"]),
    (Rule::ParentErasedIsFinal, "kK_fork_gc_erase", 11, &["P4b erased: no later save gets a receipt"]),
    (Rule::ResultsAreCompared, "ir", 7, &["R1 a result is answered as recorded"]),
    (Rule::AnswerWaitsForResult, "ir", 6, &["R1 a result is answered as recorded"]),
    (Rule::ParentResultsAreTaken, "iR_fork", 13, &["R2 a frozen result stays"]),
    (Rule::ReadsSeeWrites, "kk_gc_erase", 14, &["P4b erased: no later save gets a receipt"]),
];

/// Returns the worlds in which every invariant holds.
pub fn scenarios() -> Vec<Scenario<SaveModel>> {
    scenario::scenarios(SCENARIOS, by_name)
}

/// Returns a world for each rule, without it.
pub fn removals() -> Vec<Removal<SaveModel>> {
    scenario::removals(REMOVALS, without)
}

/// Returns a world by its name, without a rule.
fn without(name: &str, rule: Rule) -> Option<SaveModel> {
    let without = Some(rule);
    by_name(name).map(|model| SaveModel { without, ..model })
}
