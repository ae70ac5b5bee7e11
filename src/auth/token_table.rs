//! The tokens of the configuration: SHA-256 digests, each with a tenant and scopes.
//!
//! A presented token is compared by its digest with *every* entry in constant time. A hash map, or a loop
//! that ends at the match, would tell by its time how much of a digest was right; with digests of
//! random tokens that is hard to use, and closing it costs less than the argument.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::auth::authenticator::Refusal;
use crate::auth::grant::{CapabilityGrant, GrantError, SessionGrant};
use crate::auth::principal::{Credential, Principal, PrincipalId};
use crate::auth::scope::{Scope, Scopes};
use crate::auth::signing::SigningKeys;
use crate::digest::Sha256Digest;
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::MAX_TOKENS;

/// One `[[tokens]]` entry as it is written; checked by [`TokenTable::new`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// SHA-256 of the token's text: 64 lower-case hex digits.
    pub sha256: String,
    /// The tenant that it acts in.
    pub tenant: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// Its name in logs; the start of the digest when absent.
    #[serde(default)]
    pub name: Option<String>,
}

/// An entry that was refused. The table is all or nothing: a service that starts without one of its
/// tokens, or with a wrong one, is found out by its users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {rule}", self.key())]
pub struct TokenEntryError {
    /// Which entry, counted from 0.
    pub index: usize,
    /// Which key of it.
    pub field: Option<&'static str>,
    /// What is wrong, or what is allowed.
    pub rule: String,
}

impl TokenEntryError {
    /// Returns the setting that is wrong, as `tokens[2].sha256`.
    pub fn key(&self) -> String {
        let index = self.index;
        match self.field {
            Some(field) => format!("tokens[{index}].{field}"),
            None => format!("tokens[{index}]"),
        }
    }
}

/// The tokens that come in.
#[derive(Clone)]
pub struct TokenTable {
    entries: Vec<([u8; 32], Principal)>,
    signing: Option<SigningKeys>,
}

impl std::fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let principals = self.entries.iter().map(|(_, principal)| principal);
        f.debug_list().entries(principals).finish()
    }
}

impl TokenTable {
    /// Checks the entries and builds the table.
    ///
    /// Two tokens may share a name, so that an old and a new one are one principal while the old one is
    /// being replaced; they then act in the same tenant.
    ///
    /// # Errors
    /// The first entry that is malformed, repeats a digest, or shares a name across tenants.
    pub fn new(entries: &[TokenEntry]) -> Result<Self, TokenEntryError> {
        if entries.len() > MAX_TOKENS {
            return Err(TokenEntryError {
                index: MAX_TOKENS,
                field: None,
                rule: format!("at most {MAX_TOKENS} tokens"),
            });
        }
        let mut table = Self {
            entries: Vec::with_capacity(entries.len()),
            signing: None,
        };
        for (index, entry) in entries.iter().enumerate() {
            let (field, rule) = match table.take(entry) {
                Ok(()) => continue,
                Err(refusal) => refusal,
            };
            return Err(TokenEntryError {
                index,
                field: Some(field),
                rule,
            });
        }
        Ok(table)
    }

    fn take(&mut self, entry: &TokenEntry) -> Result<(), (&'static str, String)> {
        let sha256 = Sha256Digest::from_hex(&entry.sha256).map_err(|_| {
            let rule = "64 lower-case hex digits: the SHA-256 of the token, as `spillbox token hash` prints it";
            ("sha256", rule.to_owned())
        })?;
        if let Some(earlier) = self.position(&sha256) {
            return Err(("sha256", format!("the same token as tokens[{earlier}]")));
        }
        let tenant: Tenant = entry
            .tenant
            .parse()
            .map_err(|error: crate::ids::InvalidIdError| ("tenant", error.rule.to_owned()))?;
        let scopes = scopes_of(&entry.scopes).map_err(|rule| ("scopes", rule))?;
        let id = match &entry.name {
            Some(name) => name
                .parse()
                .map_err(|error: super::InvalidPrincipalNameError| ("name", error.to_string()))?,
            None => PrincipalId::of_unnamed(&sha256),
        };
        let namesake = self.entries.iter().find(|(_, other)| other.id == id);
        if namesake.is_some_and(|(_, other)| other.tenant != tenant) {
            let rule = "another token of this name acts in another tenant".to_owned();
            return Err(("name", rule));
        }
        let principal = Principal {
            id,
            tenant,
            scopes,
            credential: Credential::ConfiguredToken,
        };
        self.entries.push((*sha256.as_bytes(), principal));
        Ok(())
    }

    /// Lets the tokens make credentials that these keys sign.
    #[must_use]
    pub fn signed_by(mut self, keys: SigningKeys) -> Self {
        self.signing = Some(keys);
        self
    }

    /// Returns the keys that sign, where there are any.
    pub fn signing_keys(&self) -> Option<&SigningKeys> {
        self.signing.as_ref()
    }

    /// Returns the principal of a session token: what it says, as far as its maker may still do it.
    pub(in crate::auth) fn open_session_token(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        // An operator may have chosen a token that begins like ours.
        if let Some(chosen) = self.find(&Sha256Digest::of(text.as_bytes())) {
            return Ok(chosen.clone());
        }
        let keys = self.signing.as_ref().ok_or(Refusal::InvalidToken)?;
        let grant = SessionGrant::open(text, keys, now).map_err(|error| match error {
            GrantError::Invalid => Refusal::InvalidToken,
            GrantError::Expired => Refusal::ExpiredToken,
        })?;
        let scopes = self.scopes_by_id(&grant.minter, &grant.tenant);
        let scopes = scopes.ok_or(Refusal::InvalidToken)?.and(grant.scopes);
        Ok(Principal {
            id: grant.minter,
            tenant: grant.tenant,
            scopes,
            credential: Credential::SessionToken(grant.session_key),
        })
    }

    /// Returns the principal of a capability for an artifact.
    pub(in crate::auth) fn open_capability(
        &self,
        text: &str,
        artifact: &ArtifactRef,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        let keys = self.signing.as_ref().ok_or(Refusal::InvalidCapability)?;
        let grant = CapabilityGrant::open(text, keys, now).map_err(|error| match error {
            GrantError::Invalid => Refusal::InvalidCapability,
            GrantError::Expired => Refusal::ExpiredCapability,
        })?;
        let scopes = self.scopes_by_id(&grant.minter, &grant.tenant);
        let scopes = scopes.filter(|_| grant.artifact == *artifact);
        let scopes = scopes.ok_or(Refusal::InvalidCapability)?;
        Ok(Principal {
            id: grant.minter,
            tenant: grant.tenant,
            scopes: scopes.and(CapabilityGrant::scopes()),
            credential: Credential::Capability(grant.artifact),
        })
    }

    /// Returns what the configured tokens of a principal may do together; `None` where there is none
    /// any more, so that what it made ends with it.
    fn scopes_by_id(&self, id: &PrincipalId, tenant: &Tenant) -> Option<Scopes> {
        let theirs = self.entries.iter().map(|(_, principal)| principal);
        let theirs = theirs.filter(|other| other.id == *id && other.tenant == *tenant);
        let scopes: Vec<Scope> = theirs.flat_map(|other| other.scopes.iter()).collect();
        (!scopes.is_empty()).then(|| scopes.into_iter().collect())
    }

    /// Returns how many tokens there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no tokens at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the principal of the token with this digest.
    pub fn find(&self, sha256: &Sha256Digest) -> Option<&Principal> {
        let place = self.position(sha256)?;
        self.entries.get(place).map(|(_, principal)| principal)
    }

    /// Looks at every entry, wherever the match is.
    fn position(&self, sha256: &Sha256Digest) -> Option<usize> {
        let mut found = Choice::from(0);
        let mut place = 0_u64;
        for (index, (known, _)) in (0_u64..).zip(&self.entries) {
            let is_same = known.ct_eq(sha256.as_bytes());
            place.conditional_assign(&index, is_same);
            found |= is_same;
        }
        let place = usize::try_from(place).ok()?;
        bool::from(found).then_some(place)
    }
}

fn scopes_of(words: &[String]) -> Result<Scopes, String> {
    let mut scopes = Vec::new();
    for word in words {
        let scope: Scope = word
            .parse()
            .map_err(|error| format!("`{}`: {error}", word.escape_debug()))?;
        if scopes.contains(&scope) {
            return Err(format!("`{scope}` stands there twice"));
        }
        scopes.push(scope);
    }
    if scopes.is_empty() {
        return Err("names no scope, so that the token could do nothing".to_owned());
    }
    Ok(scopes.into_iter().collect())
}

#[cfg(test)]
mod tests;
