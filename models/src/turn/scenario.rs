//! The worlds that are explored.

use super::Action::{Inline, Spilled};
use super::{Decisions, Part, TurnModel};

const fn call(wishes: Decisions) -> Part {
    Part {
        is_fork: false,
        wishes,
    }
}

const fn fork(wishes: Decisions) -> Part {
    Part {
        is_fork: true,
        wishes,
    }
}

const INLINE: Decisions = [Some(Inline), None];
const SPILLED: Decisions = [Some(Spilled), None];
const BOTH: Decisions = [Some(Spilled), Some(Inline)];
const BOTH_OTHER: Decisions = [Some(Inline), Some(Spilled)];

/// Returns a world by its name.
pub fn by_name(name: &str) -> Option<TurnModel> {
    let (parts, results) = match name {
        "race" => (vec![call(BOTH), call(BOTH_OTHER)], [None; 2]),
        "grown" => (vec![call(INLINE), call(BOTH), call(BOTH_OTHER)], [None; 2]),
        "spilled" => (
            vec![call(BOTH_OTHER), call(INLINE), call(BOTH)],
            [Some(Spilled), Some(Inline)],
        ),
        "forked" => (vec![call(INLINE), fork(BOTH), fork(SPILLED)], [None; 2]),
        "forked_late" => (
            vec![call(INLINE), call(BOTH), fork(BOTH), fork(BOTH_OTHER)],
            [None; 2],
        ),
        _ => return None,
    };
    Some(TurnModel {
        parts,
        results,
        without: None,
    })
}
