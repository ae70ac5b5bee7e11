//! From what a request presents to who it is.

use jiff::Timestamp;

use crate::auth::bearer::PresentedToken;
use crate::auth::principal::Principal;
use crate::auth::signing::SigningKeys;
use crate::auth::token_table::TokenTable;
use crate::ids::{ArtifactRef, Tenant};

/// Why nobody was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request presents no bearer token.
    #[error("the request presents no bearer token")]
    NothingPresented,
    /// It presents one that is malformed or unknown.
    #[error("the bearer token is not one of this service")]
    InvalidToken,
    /// It presents a session token of this service whose time is over.
    #[error("the session token has expired")]
    ExpiredToken,
    /// Its URL holds a capability that no live key sealed for this artifact, or whose maker is gone.
    #[error("the capability is not one of this service for this artifact")]
    InvalidCapability,
    /// Its URL holds a capability whose time is over.
    #[error("the capability has expired")]
    ExpiredCapability,
}

/// Decides who a caller is.
#[derive(Debug, Clone)]
pub enum Authenticator {
    /// No tokens are configured: every caller is this principal. Only for listeners that nobody else
    /// on the network reaches.
    Anonymous(Principal),
    /// Only the tokens of the configuration come in.
    Tokens(TokenTable),
}

impl Authenticator {
    /// Takes every caller for the anonymous principal of `tenant`.
    pub fn anonymous(tenant: Tenant) -> Self {
        Self::Anonymous(Principal::anonymous(tenant))
    }

    /// Returns who presents this.
    ///
    /// Without tokens, whatever is presented is not looked at: a client may have a token for elsewhere.
    ///
    /// # Errors
    /// A token is needed, and what is presented is none.
    pub fn authenticate(
        &self,
        presented: PresentedToken,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        let table = match self {
            Self::Anonymous(principal) => return Ok(principal.clone()),
            Self::Tokens(table) => table,
        };
        match presented {
            PresentedToken::Nothing => Err(Refusal::NothingPresented),
            PresentedToken::Malformed => Err(Refusal::InvalidToken),
            PresentedToken::Token(sha256) => {
                let known = table.find(&sha256).cloned();
                known.ok_or(Refusal::InvalidToken)
            }
            PresentedToken::Sealed(text) => table.open_session_token(&text, now),
        }
    }

    /// Returns who presents a capability for an artifact.
    ///
    /// # Errors
    /// It is none, not for this artifact, or over.
    pub fn authenticate_capability(
        &self,
        text: &str,
        artifact: &ArtifactRef,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        match self {
            // Everybody may read there; what else is presented is not looked at.
            Self::Anonymous(principal) => Ok(principal.clone()),
            Self::Tokens(table) => table.open_capability(text, artifact, now),
        }
    }

    /// Returns the keys that sign, where there are any.
    pub fn signing_keys(&self) -> Option<&SigningKeys> {
        match self {
            Self::Anonymous(_) => None,
            Self::Tokens(table) => table.signing_keys(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::token_table::TokenEntry;
    use crate::digest::Sha256Digest;

    #[test]
    fn without_tokens_everybody_is_anonymous_whatever_is_presented() {
        let open = Authenticator::anonymous(Tenant::default());
        for presented in [
            PresentedToken::Nothing,
            PresentedToken::Malformed,
            PresentedToken::Token(Sha256Digest::of(b"x")),
        ] {
            let principal = open.authenticate(presented, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(principal.id.as_str(), "anonymous");
        }
    }

    #[test]
    fn with_tokens_only_a_known_one_comes_in() {
        let entry = TokenEntry {
            sha256: Sha256Digest::of(b"known").to_hex(),
            tenant: "acme".to_owned(),
            scopes: vec!["read".to_owned()],
            name: None,
        };
        let closed = Authenticator::Tokens(TokenTable::new(&[entry]).unwrap());
        let known = PresentedToken::Token(Sha256Digest::of(b"known"));
        assert_eq!(
            closed
                .authenticate(known, Timestamp::UNIX_EPOCH)
                .unwrap()
                .tenant
                .as_str(),
            "acme"
        );
        for (presented, refusal) in [
            (PresentedToken::Nothing, Refusal::NothingPresented),
            (PresentedToken::Malformed, Refusal::InvalidToken),
            (
                PresentedToken::Token(Sha256Digest::of(b"unknown")),
                Refusal::InvalidToken,
            ),
        ] {
            assert_eq!(
                closed.authenticate(presented, Timestamp::UNIX_EPOCH),
                Err(refusal)
            );
        }
    }
}
