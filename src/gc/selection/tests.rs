use proptest::prelude::*;

use super::*;
use crate::gc::policy::{PolicyRequest, PolicySettings, Share};
use crate::limits::DEFAULT_ORPHAN_TTL;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item(u64, i64);

impl Aged for Item {
    fn last_modified(&self) -> Timestamp {
        Timestamp::from_second(self.1).unwrap()
    }

    fn body_bytes(&self) -> u64 {
        10
    }
}

fn policy(max_deletions: Option<u64>, share: &str) -> GcPolicy {
    let request = PolicyRequest {
        max_deletions,
        max_share: Some(share.parse::<Share>().unwrap()),
        ..PolicyRequest::default()
    };
    GcPolicy::new(&request, &PolicySettings::default(), DEFAULT_ORPHAN_TTL).unwrap()
}

fn select(items: &[Item], policy: &GcPolicy, live: u64) -> Selected<Item> {
    let mut selection = Selection::new(policy);
    for item in items {
        selection.add(item.clone());
    }
    selection.finish(policy, live)
}

#[test]
fn a_limit_of_zero_deletes_nothing() {
    let items = [Item(1, 1), Item(2, 2), Item(3, 3)];
    let selected = select(&items, &policy(Some(0), "1"), 3);
    assert!(selected.taken.is_empty());
    assert_eq!(
        selected.over_number,
        Tally {
            count: 3,
            bytes: 30
        }
    );
    assert!(selected.is_partial());
}

#[test]
fn the_oldest_go_first_and_ties_are_broken_by_name() {
    let items = [Item(5, 9), Item(4, 1), Item(3, 9), Item(2, 9), Item(1, 20)];
    let selected = select(&items, &policy(Some(3), "1"), 5);
    assert_eq!(selected.taken, [Item(2, 9), Item(3, 9), Item(4, 1)]);
}

#[test]
fn the_share_counts_from_a_hundred_live_artifacts_on() {
    let items: Vec<_> = (0..60).map(|n| Item(n, 1)).collect();
    let few = select(&items, &policy(None, "0.5"), 99);
    assert_eq!((few.taken.len(), few.is_partial()), (60, false));
    let many = select(&items, &policy(None, "0.5"), 100);
    assert_eq!((many.taken.len(), many.over_share.count), (50, 10));
    let all = select(&items, &policy(None, "1"), 100);
    assert_eq!((all.taken.len(), all.is_partial()), (60, false));
    assert!(select(&items, &policy(None, "0"), 100).taken.is_empty());
}

proptest! {
    #[test]
    fn nothing_is_lost_nothing_is_taken_over_a_limit_and_nothing_older_stays(
        times in prop::collection::vec(0_i64..20, 0..150),
        max in prop::option::of(0_u64..150),
        share in 0_u16..=10_000,
        live in 0_u64..300,
    ) {
        let share = Share::of_ten_thousandths(share).unwrap();
        let policy = GcPolicy { max_share: share, ..policy(max, "1") };
        let items: Vec<_> = times.iter().enumerate().map(|(n, t)| Item(n as u64, *t)).collect();
        let selected = select(&items, &policy, live);
        let taken = selected.taken.len() as u64;
        prop_assert_eq!(
            taken + selected.over_number.count + selected.over_share.count,
            items.len() as u64
        );
        prop_assert!(max.is_none_or(|max| taken <= max));
        prop_assert!(live < 100 || taken <= share.of(live));
        let youngest = selected.taken.iter().map(|item| (item.1, item.0)).max();
        for item in items.iter().filter(|item| !selected.taken.contains(item)) {
            prop_assert!(youngest.is_none_or(|youngest| youngest <= (item.1, item.0)));
        }
    }
}
