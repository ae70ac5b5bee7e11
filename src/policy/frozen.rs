//! What is kept of a decision, so that every replica repeats it: content-free records, each decided once.
//!
//! * A *result record* says whether one result stays inline or is spilled.
//! * A *turn record* says the same of the results that one call of a turn decided. Results that are added
//!   to the turn later get a further record, which decides only what the earlier ones do not name.
//!
//! Both name results by [`DecisionId`], a hash of session, call id and digest, and carry the version of
//! the sentences ([`super::template`]). Text is never in them: an inline one is the caller's own, a
//! spilled one stands in its manifest.
//!
//! In a fork a result is decided by the nearest record up the chain that names it ([`nearest`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::DecisionId;

/// The version of the encoding; another one is not read.
pub const RECORD_VERSION: u32 = 1;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It stays in the prompt.
    Inline,
    /// Something stands for it.
    Spilled,
}

/// One result's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// [`RECORD_VERSION`].
    pub v: u32,
    /// What was decided.
    pub action: Action,
    /// The version of the sentences.
    pub template_version: u32,
}

/// One turn's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// [`RECORD_VERSION`].
    pub v: u32,
    /// The version of the sentences.
    pub template_version: u32,
    /// What was decided, by result.
    pub results: BTreeMap<DecisionId, Action>,
}

/// The bytes of a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordFormatError {
    /// They are not JSON of the expected shape.
    #[error("not a record of a decision: {0}")]
    Malformed(#[from] serde_json::Error),
    /// They were written by another version of the product.
    #[error("version {0} of a decision's record is not readable by this version")]
    UnknownVersion(u32),
}

fn encode(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("a struct of strings and numbers always serialises")
}

fn checked<T>(version: u32, record: T) -> Result<T, RecordFormatError> {
    if version == RECORD_VERSION {
        Ok(record)
    } else {
        Err(RecordFormatError::UnknownVersion(version))
    }
}

impl ResultRecord {
    /// Records a decision.
    pub fn new(action: Action, template_version: u32) -> Self {
        Self {
            v: RECORD_VERSION,
            action,
            template_version,
        }
    }

    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// See [`RecordFormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordFormatError> {
        let record: Self = serde_json::from_slice(bytes)?;
        checked(record.v, record)
    }
}

impl TurnRecord {
    /// Records what one call of a turn decided.
    pub fn new(results: BTreeMap<DecisionId, Action>, template_version: u32) -> Self {
        Self {
            v: RECORD_VERSION,
            template_version,
            results,
        }
    }

    /// Returns the stored form: the same decisions are the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// See [`RecordFormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordFormatError> {
        let record: Self = serde_json::from_slice(bytes)?;
        checked(record.v, record)
    }
}

/// A decision that was made before, with the version of its sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// What was decided.
    pub action: Action,
    /// The version of the sentences.
    pub template_version: u32,
}

/// What the records of one session say of one result.
#[derive(Debug, Clone, Copy, Default)]
pub struct Level<'a> {
    /// The result, as this session's records name it.
    pub did: Option<DecisionId>,
    /// The session's records of the turn, oldest first.
    pub turns: &'a [TurnRecord],
    /// The session's record of the result.
    pub result: Option<ResultRecord>,
}

/// What the nearest record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearest {
    /// No session up the chain has decided it.
    Undecided,
    /// A turn has: that is final.
    ByTurn(Frozen),
    /// The result itself was decided. One that stayed inline is still a candidate of its turn.
    ByResult(Frozen),
}

/// Finds the nearest record that names a result, from the own session upwards. Within one session the
/// turn's word is the later one.
pub fn nearest(levels: &[Level<'_>]) -> Nearest {
    for level in levels {
        let named = |record: &TurnRecord| {
            let action = *record.results.get(&level.did?)?;
            Some(Frozen {
                action,
                template_version: record.template_version,
            })
        };
        if let Some(frozen) = level.turns.iter().find_map(named) {
            return Nearest::ByTurn(frozen);
        }
        if let Some(record) = level.result {
            return Nearest::ByResult(Frozen {
                action: record.action,
                template_version: record.template_version,
            });
        }
    }
    Nearest::Undecided
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(number: u8) -> DecisionId {
        format!("{number:026}").parse().unwrap()
    }

    #[test]
    fn the_encodings_are_golden_and_hold_no_content() {
        let result = ResultRecord::new(Action::Spilled, 1);
        assert_eq!(
            result.encode(),
            br#"{"v":1,"action":"spilled","template_version":1}"#
        );
        assert_eq!(ResultRecord::decode(&result.encode()).unwrap(), result);
        let results = BTreeMap::from([(did(2), Action::Inline), (did(1), Action::Spilled)]);
        let turn = TurnRecord::new(results, 1);
        assert_eq!(
            String::from_utf8(turn.encode()).unwrap(),
            format!(
                r#"{{"v":1,"template_version":1,"results":{{"{}":"spilled","{}":"inline"}}}}"#,
                did(1),
                did(2)
            )
        );
        assert_eq!(TurnRecord::decode(&turn.encode()).unwrap(), turn);
        assert!(
            ResultRecord::decode(br#"{"v":2,"action":"inline","template_version":1}"#).is_err()
        );
        assert!(TurnRecord::decode(br#"{"v":2,"template_version":1,"results":{}}"#).is_err());
        assert!(ResultRecord::decode(br#"{"v":1,"action":"kept","template_version":1}"#).is_err());
    }

    #[test]
    fn the_nearest_record_decides_and_the_turn_speaks_last() {
        let of_turn = |number, action| TurnRecord::new(BTreeMap::from([(did(number), action)]), 3);
        let frozen = |action, template_version| Frozen {
            action,
            template_version,
        };
        let own = [of_turn(9, Action::Inline)];
        let parents = [of_turn(1, Action::Inline), of_turn(2, Action::Spilled)];
        let level = |number, turns, result| Level {
            did: Some(did(number)),
            turns,
            result,
        };
        let inline = Some(ResultRecord::new(Action::Inline, 2));
        // The parent's second record names it; the own session names another one.
        let levels = [level(7, &own, None), level(2, &parents, inline)];
        assert_eq!(
            nearest(&levels),
            Nearest::ByTurn(frozen(Action::Spilled, 3))
        );
        // An own record is nearer than the parent's turn.
        let levels = [level(7, &own, inline), level(2, &parents, None)];
        assert_eq!(
            nearest(&levels),
            Nearest::ByResult(frozen(Action::Inline, 2))
        );
        let levels = [level(7, &own, None), level(8, &parents, None)];
        assert_eq!(nearest(&levels), Nearest::Undecided);
        // Of two records of one turn the first that names it decides.
        let both = [of_turn(4, Action::Inline), of_turn(4, Action::Spilled)];
        assert_eq!(
            nearest(&[level(4, &both, None)]),
            Nearest::ByTurn(frozen(Action::Inline, 3))
        );
    }
}
