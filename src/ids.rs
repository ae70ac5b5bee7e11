//! Identifiers: what each may contain, how it is written, and where new ones come from.
//!
//! Session ids and call ids are caller data and never stand in a key; keys are made of hashes and
//! random identifiers, 128 bits as 26 characters of lower-case Crockford base32 (no `i`, `l`, `o`,
//! `u`; the first character is 0 to 7), so that they are one fixed-length word without look-alikes.

use std::fmt::{self, Debug};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::digest::{Sha256Digest, tagged_hash};
use crate::limits::{MAX_CALL_ID_BYTES, MAX_SESSION_ID_BYTES};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LEN: usize = 26;

/// Writes 128 bits as 26 characters, most significant first.
fn encode_base32(value: u128) -> String {
    (0..ENCODED_LEN)
        .rev()
        .map(|place| char::from(ALPHABET[(value >> (place * 5)) as usize & 31]))
        .collect()
}

fn decode_base32(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != ENCODED_LEN || bytes[0] > b'7' {
        return None;
    }
    bytes.iter().try_fold(0_u128, |value, byte| {
        let digit = ALPHABET.iter().position(|letter| letter == byte)?;
        Some(value << 5 | digit as u128)
    })
}

/// The text is no valid identifier of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {kind}: {rule}")]
pub struct InvalidIdError {
    /// Which identifier.
    pub kind: &'static str,
    /// What it must look like.
    pub rule: &'static str,
}

macro_rules! id128 {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&encode_base32(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                decode_base32(text).map(Self).ok_or(InvalidIdError {
                    kind: $kind,
                    rule: "26 characters of lower-case Crockford base32, the first 0 to 7",
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id128!(
    /// The key form of a session: a hash of tenant and session id.
    SessionKey,
    "session key"
);
id128!(
    /// The name of one artifact; body and manifest share it. Never reused.
    ArtifactId,
    "artifact id"
);
id128!(
    /// The key form of one question about one call's output: a hash of question, session, call id
    /// and digest.
    DecisionId,
    "decision id"
);

id128!(
    /// The key form of a turn: a hash of tenant, session and turn id.
    TurnHash,
    "turn hash"
);

fn first_128_bits(digest: Sha256Digest) -> u128 {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    u128::from_be_bytes(bytes)
}

impl SessionKey {
    /// Derives the key form of `session` in `tenant`.
    pub fn derive(tenant: &Tenant, session: &SessionId) -> Self {
        let fields = [tenant.as_str().as_bytes(), session.as_str().as_bytes()];
        Self(first_128_bits(tagged_hash(
            "spillbox/session-key/v1",
            &fields,
        )))
    }
}

impl TurnHash {
    /// Derives the key form of `turn` in `session`.
    pub fn derive(tenant: &Tenant, session: &SessionId, turn: &TurnId) -> Self {
        let fields = [tenant.as_str(), session.as_str(), turn.as_str()].map(str::as_bytes);
        Self(first_128_bits(tagged_hash("spillbox/turn/v1", &fields)))
    }
}

/// What a call record answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Which artifact did this output become?
    Save,
    /// Does this result stand inline in the prompt, or spilled?
    Result,
}

impl Question {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Save => "save",
            Self::Result => "result",
        }
    }
}

impl DecisionId {
    /// Derives the key form of `question` about the output `digest` of `call` in `session`.
    pub fn derive(
        question: Question,
        tenant: &Tenant,
        session: &SessionId,
        call: &CallId,
        digest: &Sha256Digest,
    ) -> Self {
        let fields: [&[u8]; 5] = [
            question.as_str().as_bytes(),
            tenant.as_str().as_bytes(),
            session.as_str().as_bytes(),
            call.as_str().as_bytes(),
            digest.as_bytes(),
        ];
        Self(first_128_bits(tagged_hash("spillbox/decision/v1", &fields)))
    }
}

impl ArtifactId {
    const MILLIS_MASK: u64 = (1 << 48) - 1;

    /// Builds an id from a time in milliseconds since 1970 and 80 random bits.
    ///
    /// The time is subtracted from 2^48 - 1, so that a plain listing gives the newest first. It is an
    /// order only, never an age: nothing decodes it (a packed clock that wrapped once made a cleanup
    /// take every new file for ancient).
    pub fn new(millis: u64, random: [u8; 10]) -> Self {
        let order = Self::MILLIS_MASK - (millis & Self::MILLIS_MASK);
        let mut low = [0; 16];
        low[6..].copy_from_slice(&random);
        Self(u128::from(order) << 80 | u128::from_be_bytes(low))
    }
}

/// A tenant: `[a-z0-9][a-z0-9-]{0,31}`. The only caller-chosen text that stands in a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Tenant(String);

impl Tenant {
    /// Returns the tenant's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    /// Returns the tenant `default`.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = InvalidIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let valid = (1..=32).contains(&text.len())
            && text.bytes().all(|b| is_word(b) || b == b'-')
            && !text.starts_with('-');
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidIdError {
                kind: "tenant",
                rule: "must match [a-z0-9][a-z0-9-]{0,31}",
            })
        }
    }
}

impl<'de> Deserialize<'de> for Tenant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A session id: 1 to 512 bytes of any UTF-8 but `.` and `..` (URL clients resolve those away).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Returns the id as the caller wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SessionId {
    /// Returns the session `default`, which is used where none is named.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = InvalidIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = (1..=MAX_SESSION_ID_BYTES).contains(&text.len()) && text != "." && text != "..";
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidIdError {
                kind: "session id",
                rule: "1 to 512 bytes of UTF-8, not `.` or `..`",
            })
        }
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A turn's id: 1 to 512 bytes of any UTF-8 but `.` and `..`, as of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TurnId(String);

impl TurnId {
    /// Returns the id as the caller wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TurnId {
    type Err = InvalidIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<SessionId>() {
            Ok(SessionId(text)) => Ok(Self(text)),
            Err(InvalidIdError { rule, .. }) => Err(InvalidIdError {
                kind: "turn id",
                rule,
            }),
        }
    }
}

/// A tool call's id as the provider gave it: 1 to 4,096 bytes of any UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// Returns the id as the caller wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CallId {
    type Err = InvalidIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if (1..=MAX_CALL_ID_BYTES).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidIdError {
                kind: "call_id",
                rule: "1 to 4096 bytes of UTF-8",
            })
        }
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The part of a locator that names an artifact: `{skey}.{aid}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArtifactRef {
    /// The session that owns the artifact.
    pub session_key: SessionKey,
    /// The artifact.
    pub artifact_id: ArtifactId,
}

impl fmt::Display for ArtifactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session_key, self.artifact_id)
    }
}

impl FromStr for ArtifactRef {
    type Err = InvalidIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (session_key, artifact_id) = text.split_once('.')?;
            Some(Self {
                session_key: session_key.parse().ok()?,
                artifact_id: artifact_id.parse().ok()?,
            })
        };
        parse().ok_or(InvalidIdError {
            kind: "locator",
            rule: "ends in {skey}.{aid}, two words of 26 characters each",
        })
    }
}

/// Where new identifiers come from; a parameter, so that tests are repeatable.
pub trait IdSource: Send + Sync + Debug {
    /// Returns a fresh artifact id. The milliseconds never repeat within one source, so that ids of
    /// one process order strictly.
    fn artifact_id(&self, now: Timestamp) -> ArtifactId;

    /// Returns a UUIDv7 for nonces, requests, plans and runs.
    fn uuid(&self, now: Timestamp) -> Uuid;
}

/// A shared id source.
pub type SharedIds = Arc<dyn IdSource>;

fn next_millis(last: &AtomicU64, now: Timestamp) -> u64 {
    let now = u64::try_from(now.as_millisecond()).unwrap_or(0);
    let bump = |last: u64| Some(now.max(last + 1));
    match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, bump) {
        Ok(last) | Err(last) => now.max(last + 1),
    }
}

fn uuid_v7(now: Timestamp, random: [u8; 10]) -> Uuid {
    let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// Identifiers from the operating system's randomness.
#[derive(Debug, Default)]
pub struct SystemIds {
    last_millis: AtomicU64,
}

impl SystemIds {
    /// Returns a shared source.
    pub fn shared() -> SharedIds {
        Arc::new(Self::default())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the system's randomness"
)]
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .expect("the operating system has a random source; without one no id is safe");
    bytes
}

/// Returns 256 bits from the operating system's random source, for a new token.
pub fn random_secret() -> [u8; 32] {
    random()
}

impl IdSource for SystemIds {
    fn artifact_id(&self, now: Timestamp) -> ArtifactId {
        ArtifactId::new(next_millis(&self.last_millis, now), random())
    }

    fn uuid(&self, now: Timestamp) -> Uuid {
        uuid_v7(now, random())
    }
}

/// Repeatable identifiers for tests: the "random" bits are a counter under a seed.
#[derive(Debug)]
pub struct SeededIds {
    seed: u16,
    counter: AtomicU64,
    last_millis: AtomicU64,
}

impl SeededIds {
    /// Creates a source; sources of different seeds never give the same id.
    pub fn new(seed: u16) -> Self {
        Self {
            seed,
            counter: AtomicU64::new(0),
            last_millis: AtomicU64::new(0),
        }
    }

    fn next(&self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..2].copy_from_slice(&self.seed.to_be_bytes());
        bytes[2..].copy_from_slice(&self.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        bytes
    }
}

impl IdSource for SeededIds {
    fn artifact_id(&self, now: Timestamp) -> ArtifactId {
        ArtifactId::new(next_millis(&self.last_millis, now), self.next())
    }

    fn uuid(&self, now: Timestamp) -> Uuid {
        uuid_v7(now, self.next())
    }
}

#[cfg(test)]
mod tests;
