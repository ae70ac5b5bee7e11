//! One line: what it says, and what it hashes to.

use std::collections::BTreeMap;

use super::canonical::{Json, write_object};
use super::claim::{Claim, is_id, zoned};
use super::digits;
use crate::digest::Sha256Digest;

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Prepared,
    Committed,
    Aborted,
    Released,
}

impl Phase {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Released => "released",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Prepared,
            Self::Committed,
            Self::Aborted,
            Self::Released,
        ];
        all.into_iter().find(|phase| phase.as_str() == text)
    }
}

/// A line is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineError {
    #[error("schema_version {0}")]
    UnknownSchema(String),
    #[error("{0}")]
    Unreadable(String),
}

/// One record.
#[derive(Debug, Clone)]
pub struct Line {
    pub(super) sequence: u64,
    pub(super) session_id: String,
    pub(super) transaction_id: String,
    pub(super) phase: Phase,
    pub(super) intent_sha256: String,
    pub(super) previous_sha256: String,
    pub(super) event_sha256: String,
    pub(super) computed_sha256: String,
}

type Members = BTreeMap<String, Json>;

impl Line {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, LineError> {
        let unreadable = |text: &str| LineError::Unreadable(text.to_owned());
        let json: Json = serde_json::from_slice(bytes)
            .map_err(|error| LineError::Unreadable(format!("not JSON: {error}")))?;
        let members = json.object().ok_or_else(|| unreadable("not an object"))?;
        let missing = |name: &str| LineError::Unreadable(format!("no valid `{name}`"));
        let member = |name: &str| members.get(name).ok_or_else(|| missing(name));
        let text = |name: &str| member(name)?.text().ok_or_else(|| missing(name));
        let version = member("schema_version")?;
        if *version != Json::Integer(1) {
            let mut shown = String::new();
            version.write(&mut shown);
            return Err(LineError::UnknownSchema(shown));
        }
        let sequence = member("sequence")?.integer();
        let sequence = sequence
            .and_then(|sequence| u64::try_from(sequence).ok())
            .filter(|sequence| *sequence >= 1);
        let id = |name: &str| {
            let text = text(name)?;
            let text = is_id(text).then(|| text.to_owned());
            text.ok_or_else(|| missing(name))
        };
        let hash = |name: &str| {
            let text = text(name)?;
            let is_digest = text.len() == 64
                && text
                    .bytes()
                    .all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
            is_digest
                .then(|| text.to_owned())
                .ok_or_else(|| missing(name))
        };
        zoned(text("recorded_at")?).ok_or_else(|| missing("recorded_at"))?;
        let line = Self {
            sequence: sequence.ok_or_else(|| missing("sequence"))?,
            session_id: id("session_id")?,
            transaction_id: id("transaction_id")?,
            phase: Phase::parse(text("phase")?).ok_or_else(|| missing("phase"))?,
            intent_sha256: hash("intent_sha256")?,
            previous_sha256: hash("previous_sha256")?,
            event_sha256: hash("event_sha256")?,
            computed_sha256: hash_of(members),
        };
        line.check_intent(members)?;
        Ok(line)
    }

    /// The intent stands on `prepared`, whole and unchanged, and nowhere else.
    fn check_intent(&self, members: &Members) -> Result<(), LineError> {
        let unreadable = |text: String| LineError::Unreadable(text);
        let intent = members.get("intent");
        let (Phase::Prepared, Some(intent)) = (self.phase, intent) else {
            return match (self.phase, intent) {
                (Phase::Prepared, None) => {
                    Err(unreadable("`prepared` without its intent".to_owned()))
                }
                (_, Some(_)) => Err(unreadable(format!(
                    "`{}` repeats an intent",
                    self.phase.as_str()
                ))),
                (_, None) => Ok(()),
            };
        };
        let fields = intent
            .object()
            .ok_or_else(|| unreadable("`intent` is no object".to_owned()))?;
        let is = |name: &str, value: &str| fields.get(name).and_then(Json::text) == Some(value);
        if !is("transaction_id", &self.transaction_id) || !is("session_id", &self.session_id) {
            return Err(unreadable("the intent is of another record".to_owned()));
        }
        let recorded_at = members.get("recorded_at").and_then(Json::text);
        if !recorded_at.is_some_and(|at| is("prepared_at", at)) {
            return Err(unreadable(
                "`recorded_at` is not the intent's `prepared_at`".to_owned(),
            ));
        }
        let claim = fields.get("claim");
        let claim = claim.ok_or_else(|| unreadable("an intent without its claim".to_owned()))?;
        let claim = Claim::of(claim).map_err(|error| unreadable(error.to_string()))?;
        if claim.session != self.session_id {
            return Err(unreadable(
                "a claim on another session's artifact".to_owned(),
            ));
        }
        let mut canonical = String::new();
        intent.write(&mut canonical);
        if digits(&Sha256Digest::of(canonical.as_bytes())) != self.intent_sha256 {
            return Err(unreadable(
                "the intent is not the one that was hashed".to_owned(),
            ));
        }
        Ok(())
    }
}

/// The hash rule: everything but `event_sha256`.
fn hash_of(members: &Members) -> String {
    let mut canonical = String::new();
    let hashed = members.iter().filter(|(name, _)| *name != "event_sha256");
    write_object(hashed, &mut canonical);
    digits(&Sha256Digest::of(canonical.as_bytes()))
}

/// Returns the hash of a record, given as JSON text with or without its `event_sha256`; `None` for what is
/// no JSON object.
pub fn event_sha256(record: &str) -> Option<String> {
    let json: Json = serde_json::from_str(record).ok()?;
    Some(hash_of(json.object()?))
}

/// Returns the hash of the intent of a record; `None` where it has none.
pub fn intent_sha256(record: &str) -> Option<String> {
    let json: Json = serde_json::from_str(record).ok()?;
    let mut canonical = String::new();
    json.object()?.get("intent")?.write(&mut canonical);
    Some(digits(&Sha256Digest::of(canonical.as_bytes())))
}
