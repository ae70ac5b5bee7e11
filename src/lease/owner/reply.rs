//! Reading what an owner answered: bytes in, an observation out, or the reason why there is none.

use serde::Deserialize;

use crate::digest::Sha256Digest;
use crate::lease::names::{OwnerGeneration, TransactionId};
use crate::lease::owner::{Observation, Presence, Publication};

/// What came back from an owner, bounded by whoever asked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerReply {
    /// A whole reply.
    Answered {
        /// Its status.
        status: u16,
        /// Its `ETag`, where it had exactly one.
        etag: Option<String>,
        /// Its body.
        body: Vec<u8>,
    },
    /// None, or not a whole one; why, for people.
    Lost(String),
}

/// No observation can be made of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// It says nothing that can be relied on; why, for people.
    Unknown(String),
    /// It is about another transaction.
    OtherTransaction,
}

/// An owner's answer to a seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealReply {
    /// The absence is sealed; the generation of that state, where the reply named one.
    Sealed(Option<OwnerGeneration>),
    /// It is not: the reference is there, or the generation is another one.
    Refused,
}

/// The document as an owner writes it. Other members are for other readers.
#[derive(Debug, Deserialize)]
struct Document {
    state: State,
    transaction_id: Option<String>,
    source_id: Option<String>,
    sha256: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Published,
    Absent,
    SealedAbsent,
    Removed,
}

fn unknown<T>(why: &str) -> Result<T, Unclear> {
    Err(Unclear::Unknown(why.to_owned()))
}

/// Reads the opaque part of a strong entity tag.
fn generation(etag: &str) -> Option<OwnerGeneration> {
    let inner = etag.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('"') {
        return None;
    }
    inner.parse().ok()
}

impl Document {
    fn read(body: &[u8], asked: &TransactionId) -> Result<Self, Unclear> {
        let Ok(document) = serde_json::from_slice::<Self>(body) else {
            return unknown("the owner's answer is no such document");
        };
        match &document.transaction_id {
            Some(name) if name != asked.as_str() => Err(Unclear::OtherTransaction),
            Some(_) | None => Ok(document),
        }
    }

    fn presence(self) -> Result<Presence, Unclear> {
        let names_something = self.source_id.is_some() || self.sha256.is_some();
        match self.state {
            State::Published => {
                let digest = self.sha256.as_deref().and_then(digest);
                match (self.source_id, digest) {
                    (Some(source_id), Some(sha256)) => {
                        Ok(Presence::Published(Publication { source_id, sha256 }))
                    }
                    _ => unknown("published, without source_id or sha256"),
                }
            }
            State::Absent | State::SealedAbsent if names_something => {
                unknown("absent, and yet it names a reference")
            }
            State::Absent => Ok(Presence::Absent),
            State::SealedAbsent => Ok(Presence::SealedAbsent),
            // What it was may well be named.
            State::Removed => Ok(Presence::Removed),
        }
    }
}

/// 64 hexadecimal digits, with or without `sha256:`.
fn digest(text: &str) -> Option<Sha256Digest> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    Sha256Digest::from_hex(&digits.to_ascii_lowercase()).ok()
}

impl OwnerReply {
    /// Reads the answer to a look at a transaction. Only 200 is one: 404 may come from a proxy, a wrong
    /// path or an old copy, and says nothing about what will be published.
    ///
    /// # Errors
    /// See [`Unclear`].
    pub fn observation(self, asked: &TransactionId) -> Result<Observation, Unclear> {
        let (etag, body) = match self {
            Self::Answered {
                status: 200,
                etag,
                body,
            } => (etag, body),
            Self::Answered { status, .. } => {
                return Err(Unclear::Unknown(format!("the owner answered {status}")));
            }
            Self::Lost(why) => return Err(Unclear::Unknown(why)),
        };
        let document = Document::read(&body, asked)?;
        let Some(generation) = etag.as_deref().and_then(generation) else {
            return unknown("the owner's answer has no strong ETag");
        };
        Ok(Observation {
            presence: document.presence()?,
            generation,
        })
    }

    /// Reads the answer to a seal.
    ///
    /// # Errors
    /// See [`Unclear`]: whether it is sealed is then seen by looking.
    pub fn sealing(self, asked: &TransactionId) -> Result<SealReply, Unclear> {
        match self {
            Self::Answered {
                status: 200 | 201,
                etag,
                body,
            } => {
                let document = Document::read(&body, asked)?;
                match document.presence()? {
                    Presence::SealedAbsent | Presence::Removed => {
                        Ok(SealReply::Sealed(etag.as_deref().and_then(generation)))
                    }
                    Presence::Published(_) | Presence::Absent => {
                        unknown("the owner answered the seal without having sealed")
                    }
                }
            }
            Self::Answered {
                status: 409 | 412, ..
            } => Ok(SealReply::Refused),
            Self::Answered { status, .. } => Err(Unclear::Unknown(format!(
                "the owner answered the seal {status}"
            ))),
            Self::Lost(why) => Err(Unclear::Unknown(why)),
        }
    }
}
