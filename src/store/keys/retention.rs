//! How long each class of objects stays: the rule of every prefix, and which single objects go by age.

use std::time::Duration;

use uuid::Uuid;

use super::{KeyClass, KeySpace};
use crate::limits::{GC_PLAN_KEPT, GC_REPORT_KEPT, PROBE_KEPT};

/// How long objects of one class stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// As long as the store is used.
    Store,
    /// Until nothing refers to it and its grace is over, or it is erased.
    Collected,
    /// As long as the session is known: small, without content.
    Session,
    /// So long by the store's clock, then the collector removes it.
    Age(Duration),
    /// It is not ours: nothing of ours ever removes it.
    NotOurs,
}

impl KeyClass {
    /// Returns the rule; there is no class without one.
    pub const fn retention(self) -> Retention {
        match self {
            Self::Format | Self::Attest | Self::Reconciliation => Retention::Store,
            Self::Body => Retention::Collected,
            // A manifest becomes its tombstone, which stays as the rest of the session's records do.
            Self::Session
            | Self::Manifest
            | Self::CallRecord
            | Self::Turn
            | Self::Journal
            | Self::Checkpoint => Retention::Session,
            Self::Plan => Retention::Age(GC_PLAN_KEPT),
            Self::Report => Retention::Age(GC_REPORT_KEPT),
            Self::Probe => Retention::Age(PROBE_KEPT),
            Self::Foreign => Retention::NotOurs,
        }
    }
}

impl KeySpace {
    /// Returns after which age an object goes, if it goes by age and its key is exactly one of ours.
    pub fn expires_after(&self, key: &str) -> Option<Duration> {
        let rest = key.strip_prefix(&self.root())?;
        let is_uuid = |text: &str| {
            let parsed = text.parse::<Uuid>();
            parsed.is_ok_and(|uuid| uuid.to_string() == text)
        };
        let is_part = |name: &str| {
            let number = name.strip_suffix(".json");
            number.is_some_and(|n| n.len() >= 5 && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let segments: Vec<&str> = rest.split('/').collect();
        let is_ours = match segments.as_slice() {
            ["probe", random] => is_uuid(random),
            ["gc", "plans", plan, name] => {
                let is_usage = *name == "usage.json";
                let part = name.strip_prefix("usage-").unwrap_or(name);
                is_uuid(plan) && (*name == "plan.json" || is_usage || is_part(part))
            }
            ["gc", "reports", plan, name] => {
                is_uuid(plan) && name.strip_suffix(".json").is_some_and(is_uuid)
            }
            _ => false,
        };
        match self.class_of(key).retention() {
            Retention::Age(age) if is_ours => Some(age),
            Retention::Age(_)
            | Retention::Store
            | Retention::Collected
            | Retention::Session
            | Retention::NotOurs => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table for operators has a row for every class, and says the rule that the code has.
    #[test]
    fn every_class_has_its_row_in_the_operators_table() {
        let document = include_str!("../../../docs/OPERATIONS.md");
        let days = |age: Duration| format!("{} d", age.as_secs() / 86_400);
        for class in KeyClass::ALL {
            let start = format!("| `{}` |", class.as_str());
            let mut rows = document.lines().filter(|line| line.starts_with(&start));
            let row = rows.next();
            let row = row.unwrap_or_else(|| panic!("no retention rule for `{}`", class.as_str()));
            let rule = match class.retention() {
                Retention::Store => "with the store".to_owned(),
                Retention::Collected => "collected".to_owned(),
                Retention::Session => "with the session".to_owned(),
                Retention::Age(age) => days(age),
                Retention::NotOurs => "never touched".to_owned(),
            };
            assert!(row.contains(&rule), "{row} lacks `{rule}`");
            assert_eq!(rows.next(), None, "two rules for `{}`", class.as_str());
        }
    }

    #[test]
    fn only_our_own_scratch_plans_and_reports_go_by_age() {
        let space = KeySpace::new("p").unwrap();
        let id = Uuid::from_u128(7);
        for (key, age) in [
            (space.probe(&id), PROBE_KEPT),
            (space.gc_plan(&id), GC_PLAN_KEPT),
            (space.gc_plan_part(&id, 3), GC_PLAN_KEPT),
            (space.gc_usage(&id), GC_PLAN_KEPT),
            (space.gc_usage_part(&id, 3), GC_PLAN_KEPT),
            (space.gc_report(&id, &id), GC_REPORT_KEPT),
        ] {
            assert_eq!(space.expires_after(key.as_str()), Some(age), "{key}");
        }
        for key in [
            "p/v1/format.json",
            "p/v1/probe/notes",
            "p/v1/gc/plans/00000000-0000-0000-0000-000000000007",
            "p/v1/gc/plans/00000000-0000-0000-0000-000000000007/notes.md",
            "p/v1/gc/plans/00000000-0000-0000-0000-000000000007/usage-3.json",
            "p/v1/gc/plans/x/plan.json",
            "p/v1/gc/notes/00000000-0000-0000-0000-000000000007/plan.json",
            "v1/probe/00000000-0000-0000-0000-000000000007",
            "p/v1/t/default/b/x/y",
        ] {
            assert_eq!(space.expires_after(key), None, "{key}");
        }
    }
}
