//! The results of one turn together: what is taken out so that they fit their budget.
//!
//! The largest fresh result goes first, of equal ones the earlier; it stops as soon as the turn fits.
//! What an earlier call decided, and what an exempt tool printed, counts but is never touched: an answer
//! that was given stays as it was given. What remains over is reported, not taken from somewhere else.
//!
//! The unit is one turn, not the conversation: ten turns inside the budget are ten turns inside it.

use std::cmp::Reverse;

use super::limit::Limit;
use super::profile::TurnRule;

/// Whether a result may be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was decided of it.
    Fresh,
    /// It was decided before, or is named by its artifact.
    Frozen,
    /// Its tool is never taken out.
    Exempt,
}

/// One result of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnItem {
    /// The length of what stands in the prompt for it, in the unit of the budget.
    pub size: u64,
    /// Whether it may be taken out.
    pub standing: Standing,
}

/// What the pass decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPlan {
    /// The places of the results to be taken out, in the order in which they were.
    pub spilled: Vec<usize>,
    /// What the turn holds then, as the rule counts it.
    pub total: u64,
    /// Whether that is more than the budget.
    pub is_over_budget: bool,
}

/// Decides which results of a turn are taken out.
///
/// `price` says how long the text that stands for a result would be; `None` where none can stand for it.
/// A result is only taken out for something smaller.
pub fn plan(
    budget: Limit,
    rule: &TurnRule,
    items: &[TurnItem],
    mut price: impl FnMut(usize) -> Option<u64>,
) -> TurnPlan {
    let mut total = items
        .iter()
        .fold(0_u64, |sum, item| sum.saturating_add(item.size));
    let mut spilled = Vec::new();
    if budget.is_exceeded_by(total) {
        let fresh = |place: &usize| {
            let item = items[*place];
            item.standing == Standing::Fresh && item.size > rule.result_floor
        };
        let mut candidates: Vec<usize> = (0..items.len()).filter(fresh).collect();
        // Stable: equal ones keep the order of the calls.
        candidates.sort_by_key(|place| Reverse(items[*place].size));
        for place in candidates {
            if !budget.is_exceeded_by(total) {
                break;
            }
            let size = items[place].size;
            let Some(replacement) = price(place).filter(|price| *price < size) else {
                continue;
            };
            total -= size;
            if rule.counts_replacements {
                total += replacement;
            }
            spilled.push(place);
        }
    }
    TurnPlan {
        spilled,
        total,
        is_over_budget: budget.is_exceeded_by(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::measure::Measure;
    use proptest::prelude::*;

    fn rule(result_floor: u64, counts_replacements: bool) -> TurnRule {
        TurnRule {
            budget: Limit::Never,
            measure: Measure::Bytes,
            result_floor,
            counts_replacements,
        }
    }

    fn items(sizes: &[u64], standing: Standing) -> Vec<TurnItem> {
        let item = |size: &u64| TurnItem {
            size: *size,
            standing,
        };
        sizes.iter().map(item).collect()
    }

    #[test]
    fn the_largest_go_first_and_equal_ones_in_the_order_of_their_calls() {
        let fresh = items(&[50, 70, 50, 70, 10], Standing::Fresh);
        let plan = plan(Limit::AtMost(120), &rule(0, true), &fresh, |_| Some(5));
        assert_eq!(plan.spilled, [1, 3]);
        assert_eq!((plan.total, plan.is_over_budget), (120, false));
    }

    #[test]
    fn frozen_and_exempt_ones_count_and_stay() {
        let mut all = items(&[500], Standing::Frozen);
        all.extend(items(&[400], Standing::Exempt));
        all.extend(items(&[30], Standing::Fresh));
        let plan = plan(Limit::AtMost(100), &rule(0, true), &all, |_| Some(5));
        assert_eq!(plan.spilled, [2]);
        assert_eq!((plan.total, plan.is_over_budget), (905, true));
    }

    #[test]
    fn small_results_and_those_that_would_grow_stay() {
        let fresh = items(&[35, 35, 35, 35], Standing::Fresh);
        let stays = TurnPlan {
            spilled: Vec::new(),
            total: 140,
            is_over_budget: true,
        };
        let limit = Limit::AtMost(90);
        assert_eq!(plan(limit, &rule(0, true), &fresh, |_| Some(450)), stays);
        assert_eq!(plan(limit, &rule(0, true), &fresh, |_| None), stays);
        assert_eq!(plan(limit, &rule(35, true), &fresh, |_| Some(1)), stays);
    }

    proptest! {
        #[test]
        fn the_pass_never_makes_a_turn_larger_and_stops_in_time(
            sizes in proptest::collection::vec((0_u64..1_000, 0_u8..3), 0..30),
            budget in 0_u64..5_000,
            replacement in 0_u64..300,
            counts in any::<bool>(),
        ) {
            let standings = [Standing::Fresh, Standing::Frozen, Standing::Exempt];
            let items: Vec<_> = sizes
                .iter()
                .map(|(size, which)| TurnItem { size: *size, standing: standings[usize::from(*which)] })
                .collect();
            let before: u64 = items.iter().map(|item| item.size).sum();
            let limit = Limit::AtMost(budget);
            let plan = plan(limit, &rule(0, counts), &items, |_| Some(replacement));
            prop_assert!(plan.total <= before);
            prop_assert_eq!(plan.is_over_budget, plan.total > budget);
            for pair in plan.spilled.windows(2) {
                let (one, two) = (items[pair[0]].size, items[pair[1]].size);
                prop_assert!(one > two || (one == two && pair[0] < pair[1]));
            }
            if let Some(last) = plan.spilled.last() {
                let kept = if counts { replacement } else { 0 };
                let before_last = plan.total + items[*last].size - kept;
                prop_assert!(before_last > budget, "it went on although the turn fitted");
            }
            for place in &plan.spilled {
                prop_assert_eq!(items[*place].standing, Standing::Fresh);
                prop_assert!(replacement < items[*place].size);
            }
            if plan.is_over_budget {
                let left = (0..items.len()).filter(|place| !plan.spilled.contains(place));
                for place in left {
                    prop_assert!(items[place].standing != Standing::Fresh || items[place].size <= replacement);
                }
            }
        }
    }
}
