//! Credentials that the service makes itself: session tokens and capabilities. Both are limited, end by
//! themselves, and end with the configured token that made them.

use jiff::{SignedDuration, Timestamp};

use crate::auth::principal::PrincipalId;
use crate::auth::scope::{Scope, Scopes};
use crate::auth::signing::{Purpose, SigningKeys};
use crate::ids::{ArtifactRef, SessionKey, Tenant};
use crate::limits::SIGNED_CLOCK_SKEW;

/// Begins every session token, so that the service, people and scanners know one when they see it.
pub const SESSION_TOKEN_PREFIX: &str = "sbs_";

/// Why a sealed credential lets nobody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// No live key of this service sealed it.
    #[error("not sealed by a live key of this service")]
    Invalid,
    /// Its time is over.
    #[error("expired")]
    Expired,
}

/// What a session token allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionGrant {
    /// The tenant of the session.
    pub tenant: Tenant,
    /// The session that it is limited to.
    pub session_key: SessionKey,
    /// What it may do there.
    pub scopes: Scopes,
    /// When it ends; whole seconds.
    pub expires_at: Timestamp,
    /// The principal of the configured token that made it.
    pub minter: PrincipalId,
}

impl SessionGrant {
    /// Returns the token's text.
    pub fn seal(&self, keys: &SigningKeys) -> String {
        let sealed = keys.seal(
            Purpose::SessionToken,
            &[
                self.tenant.as_str().as_bytes(),
                self.session_key.to_string().as_bytes(),
                &[self.scopes.bits()],
                &self.expires_at.as_second().to_be_bytes(),
                self.minter.as_str().as_bytes(),
            ],
        );
        format!("{SESSION_TOKEN_PREFIX}{sealed}")
    }

    /// Reads a token's text.
    ///
    /// # Errors
    /// See [`GrantError`]; only a token that is ours is called expired.
    pub fn open(text: &str, keys: &SigningKeys, now: Timestamp) -> Result<Self, GrantError> {
        let sealed = text.strip_prefix(SESSION_TOKEN_PREFIX);
        let fields = sealed.and_then(|sealed| keys.open(Purpose::SessionToken, sealed));
        let [tenant, session_key, scopes, expires_at, minter] =
            fields.ok_or(GrantError::Invalid)?;
        let grant = Self {
            tenant: read(&tenant)?,
            session_key: read(&session_key)?,
            scopes: match *scopes {
                [bits] => Scopes::from_bits(bits).ok_or(GrantError::Invalid)?,
                _ => return Err(GrantError::Invalid),
            },
            expires_at: read_time(&expires_at)?,
            minter: PrincipalId::of_sealed(&minter).ok_or(GrantError::Invalid)?,
        };
        demand_live(grant.expires_at, now)?;
        Ok(grant)
    }
}

/// What a capability allows: to read one artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityGrant {
    /// The artifact's tenant.
    pub tenant: Tenant,
    /// The artifact.
    pub artifact: ArtifactRef,
    /// When it ends; whole seconds.
    pub expires_at: Timestamp,
    /// The principal of the configured token that made it.
    pub minter: PrincipalId,
}

impl CapabilityGrant {
    /// Returns the text that stands in the URL.
    pub fn seal(&self, keys: &SigningKeys) -> String {
        keys.seal(
            Purpose::Capability,
            &[
                self.tenant.as_str().as_bytes(),
                self.artifact.to_string().as_bytes(),
                &self.expires_at.as_second().to_be_bytes(),
                self.minter.as_str().as_bytes(),
            ],
        )
    }

    /// Reads what stands in a URL.
    ///
    /// # Errors
    /// See [`GrantError`]; only a capability that is ours is called expired.
    pub fn open(text: &str, keys: &SigningKeys, now: Timestamp) -> Result<Self, GrantError> {
        let fields = keys.open(Purpose::Capability, text);
        let [tenant, artifact, expires_at, minter] = fields.ok_or(GrantError::Invalid)?;
        let grant = Self {
            tenant: read(&tenant)?,
            artifact: read(&artifact)?,
            expires_at: read_time(&expires_at)?,
            minter: PrincipalId::of_sealed(&minter).ok_or(GrantError::Invalid)?,
        };
        demand_live(grant.expires_at, now)?;
        Ok(grant)
    }

    /// Returns the scopes of who presents one.
    pub fn scopes() -> Scopes {
        [Scope::Read].into_iter().collect()
    }
}

fn read<T: std::str::FromStr>(field: &[u8]) -> Result<T, GrantError> {
    let text = std::str::from_utf8(field).map_err(|_| GrantError::Invalid)?;
    text.parse().map_err(|_| GrantError::Invalid)
}

fn read_time(field: &[u8]) -> Result<Timestamp, GrantError> {
    let seconds = field.try_into().map_err(|_| GrantError::Invalid)?;
    Timestamp::from_second(i64::from_be_bytes(seconds)).map_err(|_| GrantError::Invalid)
}

/// Replicas may differ a little about the time: an end counts once it has passed by that much.
fn demand_live(expires_at: Timestamp, now: Timestamp) -> Result<(), GrantError> {
    let end =
        expires_at.saturating_add(SignedDuration::try_from(SIGNED_CLOCK_SKEW).unwrap_or_default());
    match end {
        Ok(end) if now < end => Ok(()),
        Ok(_) | Err(_) => Err(GrantError::Expired),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ArtifactId, SessionId};

    fn keys(secret: u8) -> SigningKeys {
        SigningKeys::new(&[[secret; 32]]).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_796_083_200 + second).unwrap()
    }

    fn grant() -> SessionGrant {
        let session: SessionId = "s".parse().unwrap();
        SessionGrant {
            tenant: Tenant::default(),
            session_key: SessionKey::derive(&Tenant::default(), &session),
            scopes: [Scope::Read, Scope::Save].into_iter().collect(),
            expires_at: at(60),
            minter: "ci".parse().unwrap(),
        }
    }

    fn capability() -> CapabilityGrant {
        CapabilityGrant {
            tenant: Tenant::default(),
            artifact: ArtifactRef {
                session_key: grant().session_key,
                artifact_id: ArtifactId::new(1, [2; 10]),
            },
            expires_at: at(60),
            minter: PrincipalId::of_unnamed(&crate::digest::Sha256Digest::of(b"x")),
        }
    }

    #[test]
    fn a_token_says_what_was_sealed_until_its_end_and_the_tolerance_after_it() {
        let token = grant().seal(&keys(1));
        assert!(crate::auth::is_token_text(token.as_bytes()), "{token}");
        let tolerance = i64::try_from(SIGNED_CLOCK_SKEW.as_secs()).unwrap();
        for second in [0, 59, 60, 60 + tolerance - 1] {
            assert_eq!(
                SessionGrant::open(&token, &keys(1), at(second)),
                Ok(grant())
            );
        }
        let late = at(60 + tolerance);
        let expired = SessionGrant::open(&token, &keys(1), late);
        assert_eq!(expired, Err(GrantError::Expired));
        // Who has no key learns nothing, not even that it expired.
        let foreign = SessionGrant::open(&token, &keys(2), late);
        assert_eq!(foreign, Err(GrantError::Invalid));
        let bare = token.strip_prefix(SESSION_TOKEN_PREFIX).unwrap();
        let unmarked = SessionGrant::open(bare, &keys(1), at(0));
        assert_eq!(unmarked, Err(GrantError::Invalid));
    }

    #[test]
    fn a_capability_is_no_token_and_a_token_is_no_capability() {
        let text = capability().seal(&keys(1));
        assert_eq!(
            CapabilityGrant::open(&text, &keys(1), at(0)),
            Ok(capability())
        );
        assert_eq!(
            CapabilityGrant::open(&text, &keys(1), at(500)),
            Err(GrantError::Expired)
        );
        let as_token = format!("{SESSION_TOKEN_PREFIX}{text}");
        assert_eq!(
            SessionGrant::open(&as_token, &keys(1), at(0)),
            Err(GrantError::Invalid)
        );
        let token = grant().seal(&keys(1));
        let sealed = token.strip_prefix(SESSION_TOKEN_PREFIX).unwrap();
        assert_eq!(
            CapabilityGrant::open(sealed, &keys(1), at(0)),
            Err(GrantError::Invalid)
        );
    }

    #[test]
    fn the_longest_token_fits_into_a_header() {
        let longest = SessionGrant {
            tenant: "x".repeat(32).parse().unwrap(),
            minter: "y".repeat(64).parse().unwrap(),
            ..grant()
        };
        let token = longest.seal(&keys(1));
        assert!(
            crate::auth::is_token_text(token.as_bytes()),
            "{}",
            token.len()
        );
        assert_eq!(SessionGrant::open(&token, &keys(1), at(0)), Ok(longest));
    }
}
