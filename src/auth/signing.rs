//! What the service signs, and how it knows its own signature again.
//!
//! A sealed text is `base64url(key id ‖ fields ‖ HMAC-SHA256)`. The MAC covers the key id and the fields;
//! each field is preceded by its length, so that no two lists of fields have one form. Each purpose has
//! a key of its own, derived from the operator's secret: what was sealed for one purpose is noise to
//! another. The key id is derived from the secret as well, so that it says nothing of it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::limits::{MAX_SIGNING_KEYS, MAX_TOKEN_BYTES, MIN_SIGNING_SECRET_BYTES};

const KEY_ID_BYTES: usize = 8;
const MAC_BYTES: usize = 32;

/// What a text is sealed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::auth) enum Purpose {
    SessionToken,
    Capability,
}

impl Purpose {
    /// The domain of its key: stable for as long as anything sealed with it lives.
    const fn domain(self) -> &'static [u8] {
        match self {
            Self::SessionToken => b"spillbox/1/session-token",
            Self::Capability => b"spillbox/1/capability",
        }
    }
}

/// A secret cannot be signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// Too few bytes to be safe from guessing.
    #[error("a signing secret has at least {MIN_SIGNING_SECRET_BYTES} bytes")]
    TooShort,
    /// None, or more than a rotation needs.
    #[error("1 to {MAX_SIGNING_KEYS} signing secrets, the one that signs first")]
    WrongNumber,
    /// The same secret twice.
    #[error("two signing secrets are the same")]
    Repeated,
}

#[derive(Clone)]
struct SigningKey {
    id: [u8; KEY_ID_BYTES],
    session_token: [u8; MAC_BYTES],
    capability: [u8; MAC_BYTES],
}

/// The keys of a service: the first signs, each of them is believed.
#[derive(Clone)]
pub struct SigningKeys(Vec<SigningKey>);

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.0.iter().map(|key| hex::encode(key.id));
        f.debug_list().entries(ids).finish()
    }
}

impl SigningKeys {
    /// Derives the keys from the operator's secrets.
    ///
    /// # Errors
    /// See [`SigningKeyError`].
    pub fn new<S: AsRef<[u8]>>(secrets: &[S]) -> Result<Self, SigningKeyError> {
        if secrets.is_empty() || secrets.len() > MAX_SIGNING_KEYS {
            return Err(SigningKeyError::WrongNumber);
        }
        let mut keys: Vec<SigningKey> = Vec::with_capacity(secrets.len());
        for secret in secrets {
            let secret = secret.as_ref();
            if secret.len() < MIN_SIGNING_SECRET_BYTES {
                return Err(SigningKeyError::TooShort);
            }
            let mut id = [0; KEY_ID_BYTES];
            id.copy_from_slice(&mac(secret, &[b"spillbox/1/key-id"])[..KEY_ID_BYTES]);
            if keys.iter().any(|other| other.id == id) {
                return Err(SigningKeyError::Repeated);
            }
            keys.push(SigningKey {
                id,
                session_token: mac(secret, &[Purpose::SessionToken.domain()]),
                capability: mac(secret, &[Purpose::Capability.domain()]),
            });
        }
        Ok(Self(keys))
    }

    /// Seals fields under the first key.
    pub(in crate::auth) fn seal(&self, purpose: Purpose, fields: &[&[u8]]) -> String {
        let key = self.0.first().expect("there is at least one key");
        let mut bytes = key.id.to_vec();
        for field in fields {
            let length = u16::try_from(field.len()).expect("fields are short names and numbers");
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(field);
        }
        let mac = mac(key.of(purpose), &[&bytes]);
        bytes.extend_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the `N` fields of a text that one of the keys sealed for this purpose.
    pub(in crate::auth) fn open<const N: usize>(
        &self,
        purpose: Purpose,
        text: &str,
    ) -> Option<[Vec<u8>; N]> {
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, mac) = bytes.split_last_chunk::<MAC_BYTES>()?;
        let (id, mut rest) = signed.split_first_chunk::<KEY_ID_BYTES>()?;
        let key = self.0.iter().find(|key| key.id == *id)?;
        let mut expected = hmac_of(key.of(purpose));
        expected.update(signed);
        expected.verify_slice(mac).ok()?;
        let mut fields = std::array::from_fn(|_| Vec::new());
        for field in &mut fields {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (value, after) = after.split_at_checked(length)?;
            *field = value.to_vec();
            rest = after;
        }
        rest.is_empty().then_some(fields)
    }
}

impl SigningKey {
    fn of(&self, purpose: Purpose) -> &[u8] {
        match purpose {
            Purpose::SessionToken => &self.session_token,
            Purpose::Capability => &self.capability,
        }
    }
}

fn hmac_of(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut mac = hmac_of(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8; 32] = b"old-old-old-old-old-old-old-old-";
    const NEW: &[u8; 32] = b"new-new-new-new-new-new-new-new-";

    fn keys(secrets: &[&[u8; 32]]) -> SigningKeys {
        SigningKeys::new(secrets).unwrap()
    }

    fn is_open(keys: &SigningKeys, purpose: Purpose, text: &str) -> bool {
        keys.open::<2>(purpose, text).is_some()
    }

    #[test]
    fn what_a_live_key_sealed_is_opened_and_nothing_else() {
        let sealed = keys(&[OLD]).seal(Purpose::Capability, &[b"a", b"bc"]);
        let opened = keys(&[OLD]).open(Purpose::Capability, &sealed).unwrap();
        assert_eq!(opened, [b"a".to_vec(), b"bc".to_vec()]);
        // Rotation: the new key signs, the old one is still believed, until it is taken out.
        assert!(is_open(&keys(&[NEW, OLD]), Purpose::Capability, &sealed));
        assert!(!is_open(&keys(&[NEW]), Purpose::Capability, &sealed));
        let newer = keys(&[NEW, OLD]).seal(Purpose::Capability, &[b"a", b"bc"]);
        assert!(!is_open(&keys(&[OLD]), Purpose::Capability, &newer));
        // Another purpose, and another number of fields.
        assert!(!is_open(&keys(&[OLD]), Purpose::SessionToken, &sealed));
        let fewer = keys(&[OLD]).open::<1>(Purpose::Capability, &sealed);
        let more = keys(&[OLD]).open::<3>(Purpose::Capability, &sealed);
        assert!(fewer.is_none() && more.is_none());
    }

    #[test]
    fn no_changed_cut_or_longer_text_is_opened() {
        let keys = keys(&[OLD]);
        let sealed = keys.seal(Purpose::SessionToken, &[b"tenant", b"session"]);
        for place in 0..sealed.len() {
            let mut other = sealed.clone().into_bytes();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert!(!is_open(&keys, Purpose::SessionToken, &other), "{place}");
            assert!(!is_open(&keys, Purpose::SessionToken, &sealed[..place]));
        }
        let longer = format!("{sealed}AAAA");
        assert!(!is_open(&keys, Purpose::SessionToken, &longer));
        assert!(!is_open(&keys, Purpose::SessionToken, &"A".repeat(1 << 16)));
    }

    #[test]
    fn where_a_field_ends_is_signed() {
        let keys = keys(&[OLD]);
        let one = keys.seal(Purpose::Capability, &[b"ab", b"c"]);
        let other = keys.seal(Purpose::Capability, &[b"a", b"bc"]);
        assert_ne!(one, other);
    }

    #[test]
    fn secrets_are_long_few_and_different() {
        let refused = |secrets: &[&[u8]]| SigningKeys::new(secrets).unwrap_err();
        assert_eq!(refused(&[]), SigningKeyError::WrongNumber);
        assert_eq!(
            refused(&[&[0; 32], &[1; 32], &[2; 32]]),
            SigningKeyError::WrongNumber
        );
        assert_eq!(refused(&[&[0; 31]]), SigningKeyError::TooShort);
        assert_eq!(refused(&[&[0; 32], &[0; 32]]), SigningKeyError::Repeated);
    }

    #[test]
    fn the_keys_do_not_show_themselves() {
        let shown = format!("{:?}", keys(&[OLD]));
        assert!(!shown.contains("old") && shown.len() < 30, "{shown}");
    }
}
