//! Who asks: the result of an authentication, and all that the rest of the service learns of it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::auth::scope::{Scope, Scopes};
use crate::digest::Sha256Digest;
use crate::ids::{ArtifactRef, SessionKey, Tenant};
use crate::limits::MAX_PRINCIPAL_NAME_BYTES;

/// Names a principal in logs, metrics and the audit stream. Never a token, nor a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalId(String);

/// The principal of a service without tokens.
const ANONYMOUS: &str = "anonymous";

/// Begins the ids of tokens without a name.
const UNNAMED_PREFIX: &str = "token-";

/// Hex digits of a token's SHA-256 in its id: enough to find its entry in the configuration.
const DIGEST_DIGITS: usize = 12;

/// The text is no name for a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name is 1 to 64 characters of [A-Za-z0-9._-], not `anonymous`, and does not begin with `token-`"
)]
pub struct InvalidPrincipalNameError;

impl PrincipalId {
    /// Returns the id of the one principal of a service without tokens.
    pub fn anonymous() -> Self {
        Self(ANONYMOUS.to_owned())
    }

    /// Builds the id of a token that the operator gave no name.
    pub fn of_unnamed(sha256: &Sha256Digest) -> Self {
        let hex = sha256.to_hex();
        Self(format!("{UNNAMED_PREFIX}{}", &hex[..DIGEST_DIGITS]))
    }

    /// Reads an id that the service itself wrote into something sealed.
    pub(in crate::auth) fn of_sealed(text: &[u8]) -> Option<Self> {
        let is_safe = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_id = !text.is_empty() && text.len() <= MAX_PRINCIPAL_NAME_BYTES;
        let text = std::str::from_utf8(text)
            .ok()
            .filter(|_| is_id && text.iter().all(is_safe));
        text.map(|text| Self(text.to_owned()))
    }

    /// Returns the id's text: safe in logs, labels and JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PrincipalId {
    type Err = InvalidPrincipalNameError;

    /// Reads a name that an operator gave; the ids that the service makes itself are refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_name = (1..=MAX_PRINCIPAL_NAME_BYTES).contains(&text.len())
            && text.bytes().all(is_safe)
            && text != ANONYMOUS
            && !text.starts_with(UNNAMED_PREFIX);
        is_name
            .then(|| Self(text.to_owned()))
            .ok_or(InvalidPrincipalNameError)
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PrincipalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// What a principal was recognised by. Credentials that are made at run time become variants here, so
/// that what only a configured token may do (make other credentials) asks one exhaustive question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// Nothing: the service has no tokens and is reachable from its own machine only.
    Anonymous,
    /// A token of the configuration.
    ConfiguredToken,
    /// A token that a configured one made for a sandbox: only for this session, and for reading those
    /// above it.
    SessionToken(SessionKey),
    /// A signed URL: only for reading this artifact.
    Capability(ArtifactRef),
}

/// A caller that may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Its name in logs.
    pub id: PrincipalId,
    /// The tenant that it acts in; the only source of a tenant in the whole service.
    pub tenant: Tenant,
    /// What it may do there.
    pub scopes: Scopes,
    /// What it was recognised by.
    pub credential: Credential,
}

impl Principal {
    /// Returns the caller of a service without tokens: everything in one tenant.
    pub fn anonymous(tenant: Tenant) -> Self {
        Self {
            id: PrincipalId::anonymous(),
            tenant,
            scopes: Scopes::all(),
            credential: Credential::Anonymous,
        }
    }

    /// Returns whether the principal may do what needs `scope`.
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_safe_and_none_of_our_own() {
        for good in ["ci", "Agent_7", "a.b-c", &"x".repeat(64)] {
            assert_eq!(good.parse::<PrincipalId>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "a b",
            "a\"b",
            "é",
            "a\n",
            "anonymous",
            "token-0123",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<PrincipalId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_token_without_a_name_is_called_by_the_start_of_its_digest() {
        let digest = Sha256Digest::of(b"abc");
        let id = PrincipalId::of_unnamed(&digest);
        assert_eq!(id.as_str(), "token-ba7816bf8f01");
    }
}
