//! The worlds that are explored.

use super::state::{Action, Mode};
use super::{Part, Relation, SaveModel};

/// Returns a world by its name: a letter for each saver, then what else can happen.
///
/// `k` a body known in full, `s` a streamed one, `n` one without a call id; `i` and `r` came to
/// `/results` and would answer inline, or spilled. A capital letter is in the second chain of records.
pub fn by_name(name: &str) -> Option<SaveModel> {
    let mut words = name.split('_');
    let part = |letter: char| {
        let (mode, result) = match letter.to_ascii_lowercase() {
            'k' => (Mode::Known, None),
            's' => (Mode::Streamed, None),
            'n' => (Mode::Bare, None),
            'i' => (Mode::Known, Some(Action::Inline)),
            'r' => (Mode::Known, Some(Action::Spilled)),
            _ => return None,
        };
        let chain = usize::from(letter.is_ascii_uppercase());
        Some(Part {
            mode,
            chain,
            result,
        })
    };
    let mut model = SaveModel {
        parts: words.next()?.chars().map(part).collect::<Option<_>>()?,
        relation: Relation::One,
        leases: false,
        condemns: false,
        erases: false,
        touches: false,
        is_versioned: false,
        appends_deleted: false,
        is_stale: false,
        retries: false,
        without: None,
    };
    for word in words {
        match word {
            "fork" => model.relation = Relation::Fork,
            "digests" => model.relation = Relation::Digests,
            "lease" => model.leases = true,
            "gc" => model.condemns = true,
            "erase" => model.erases = true,
            "touch" => model.touches = true,
            "ver" => model.is_versioned = true,
            "deleted" => model.appends_deleted = true,
            "stale" => model.is_stale = true,
            "retry" => model.retries = true,
            _ => return None,
        }
    }
    Some(model)
}
