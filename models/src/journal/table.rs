//! The two tables: what holds, and what each rule prevents.

use super::scenario::by_name;
use super::{JournalModel, Rule};
use crate::scenario::{self, Removal, RemovalRow, Scenario, ScenarioRow};

#[rustfmt::skip] // a line for each
const SCENARIOS: &[ScenarioRow] = &[
    ("base_small", 48_720, true, &["committed and published", "deleted", "publisher refused", "sealed and aborted"]),
    ("two_publishers", 243_760, true, &["committed and published", "deleted", "publisher refused"]),
    ("removal_small", 18_216, true, &["committed and published", "deleted", "publisher refused", "removed and released"]),
    ("removal", 134_692, true, &["committed and published", "deleted", "publisher refused", "removed and released"]),
    ("commit_first_small", 12_031, true, &["committed and published", "deleted", "publisher refused"]),
    ("truncate_small", 263_165, true, &["committed and published", "deleted", "publisher refused", "removed and released"]),
    ("touch", 630_426, true, &["committed and published", "deleted", "publisher refused"]),
    ("plan_small", 40_947, true, &["deleted", "touched after the plan, and kept"]),
    ("extend_small", 34_272, true, &["committed and published", "deleted", "extended, then expired", "extension refused", "publisher refused"]),
    ("extend", 199_848, true, &["committed and published", "deleted", "extended, then expired", "extension refused", "publisher refused"]),
    ("extend_twice", 171_666, true, &["committed and published", "deleted", "extended, then expired", "extension refused", "publisher refused"]),
    ("extend_plan", 94_908, true, &["committed and published", "deleted", "extended, then expired", "extension refused", "publisher refused"]),
    ("resolve", 275_708, true, &["committed and published", "deleted", "publisher refused", "resolved as landed, and published", "resolved as never"]),
    ("resolve_reconciler", 184_432, true, &["committed and published", "resolved as landed, and published", "resolved as never", "sealed and aborted"]),
    ("resolve_forged", 18_042, true, &["committed and published", "deleted", "publisher refused", "resolved as landed, and published", "resolved as never"]),
    ("base", 1_407_320, false, &["committed and published", "deleted", "publisher refused", "sealed and aborted"]),
    ("two_collectors", 1_287_714, false, &["committed and published", "deleted", "publisher refused"]),
    ("two_collectors_removal", 4_476_672, false, &["committed and published", "deleted", "publisher refused", "sealed and aborted"]),
    ("two_publishers_reconciler", 1_004_612, false, &["committed and published", "deleted", "publisher refused", "sealed and aborted"]),
    ("commit_first", 17_999_866, false, &["committed and published", "deleted", "publisher refused"]),
    ("truncate", 4_149_509, false, &["committed and published", "deleted", "publisher refused"]),
    ("plan", 1_496_636, false, &["committed and published", "deleted", "publisher refused", "touched after the plan, and kept"]),
    ("plan_two_collectors", 10_757_556, false, &["deleted", "touched after the plan, and kept"]),
    ("resolve_two", 391_556, false, &["committed and published", "deleted", "publisher refused", "resolved as landed, and published", "resolved as never"]),
    ("resolve_all", 533_580, false, &["committed and published", "deleted", "publisher refused", "resolved as landed, and published", "resolved as never", "sealed and aborted"]),
    ("resolve_commit_first", 1_457_002, false, &["committed and published", "resolved as landed, and published", "resolved as never"]),
    ("truncate_reconciler", 649_040, false, &["committed and published", "deleted", "publisher refused", "sealed and aborted"]),
];

#[rustfmt::skip] // a line for each
const REMOVALS: &[RemovalRow<Rule>] = &[
    (Rule::OneWinnerPerSlot, "two_publishers", 7, &["I2 AckDurable"]),
    (Rule::CompareAfterConflict, "two_publishers", 7, &["I2 AckDurable"]),
    (Rule::FoldEverySlot, "two_publishers", 6, &["I11 PlanOrder", "I3 PrefixValid"]),
    (Rule::CondemnBeforeDelete, "base", 3, &["I6 CondemnFirst"]),
    (Rule::LeasesBlockCondemned, "base", 12, &["I1 Safety"]),
    (Rule::CondemnedIsForever, "undo", 9, &["I6 CondemnFirst"]),
    (Rule::KeysAreUsedOnce, "reuse", 18, &["I1 Safety"]),
    (Rule::PlansYieldToEntries, "plan_small", 7, &["I11 PlanOrder"]),
    (Rule::SealMakesAbsenceFinal, "base", 9, &["I5 AbortedHidden"]),
    (Rule::SealBeforeAborted, "base", 9, &["I5 AbortedHidden"]),
    (Rule::RemoveBeforeReleased, "removal_small", 12, &["I7 RemoveFirst"]),
    (Rule::ExpiryReadsExtensions, "extend_small", 16, &["I12 EndKept"]),
    (Rule::EndlessStaysEndless, "extend_twice", 20, &["I12 EndKept"]),
    (Rule::DatesAreTheStores, "extend_small", 11, &["I12 EndKept"]),
    (Rule::UnknownStaysInItsSlot, "resolve", 12, &["I13 ResolveFinal"]),
    (Rule::ResolveOccupies, "resolve", 6, &["I13 ResolveFinal"]),
    (Rule::ResolveCompares, "resolve", 8, &["I13 ResolveFinal"]),
    (Rule::ResolveFirstFreeOnly, "resolve_forged", 7, &["I14 NoGap"]),
    (Rule::RecheckAfterStall, "truncate", 15, &["I2 AckDurable"]),
    (Rule::ColdOpenAfterStall, "truncate_small", 24, &["I6 CondemnFirst"]),
];

/// Returns the worlds in which every invariant holds.
pub fn scenarios() -> Vec<Scenario<JournalModel>> {
    scenario::scenarios(SCENARIOS, by_name)
}

/// Returns a world for each rule, without it.
pub fn removals() -> Vec<Removal<JournalModel>> {
    scenario::removals(REMOVALS, without)
}

/// Returns a world by its name, without a rule.
fn without(name: &str, rule: Rule) -> Option<JournalModel> {
    let without = Some(rule);
    by_name(name).map(|model| JournalModel { without, ..model })
}
