//! SHA-256 digests: one textual form, one streaming hasher, one header form.
//!
//! The text form is `sha256:<64 lower-case hex digits>` (as OCI writes digests); the header form is
//! RFC 9530's `sha-256=:<base64>:`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Wraps 32 raw bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns 64 lower-case hex digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Parses 64 lower-case hex digits.
    pub fn from_hex(text: &str) -> Result<Self, DigestFormatError> {
        let is_lower_hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let mut bytes = [0; 32];
        if !is_lower_hex || hex::decode_to_slice(text, &mut bytes).is_err() {
            return Err(DigestFormatError);
        }
        Ok(Self(bytes))
    }

    /// Returns the RFC 9530 dictionary member `sha-256=:<base64>:`.
    pub fn to_digest_field(&self) -> String {
        format!("sha-256=:{}:", STANDARD.encode(self.0))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.to_hex())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256Digest {
    type Err = DigestFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_hex(text.strip_prefix("sha256:").ok_or(DigestFormatError)?)
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is not a SHA-256 digest in the expected form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 digest (64 lower-case hex digits, or `sha-256=:<base64>:` in a header)")]
pub struct DigestFormatError;

/// Reads the `sha-256` member of a `Repr-Digest` or `Content-Digest` field (RFC 9530).
///
/// Other algorithms are ignored as the RFC allows; `None` means that the field names no SHA-256.
///
/// # Errors
/// The field is not a dictionary of byte sequences, or names two different SHA-256 values.
pub fn parse_digest_field(field: &str) -> Result<Option<Sha256Digest>, DigestFormatError> {
    let mut found = None;
    for member in field.split(',') {
        let (name, value) = member.trim().split_once('=').ok_or(DigestFormatError)?;
        // Parameters (`;…`) may follow the value; RFC 9530 defines none.
        let value = value.split(';').next().unwrap_or(value).trim();
        let encoded = value
            .strip_prefix(':')
            .and_then(|rest| rest.strip_suffix(':'))
            .ok_or(DigestFormatError)?;
        if !name.trim().eq_ignore_ascii_case("sha-256") {
            continue;
        }
        let bytes = STANDARD.decode(encoded).map_err(|_| DigestFormatError)?;
        let digest = Sha256Digest(bytes.try_into().map_err(|_| DigestFormatError)?);
        if found.is_some_and(|earlier| earlier != digest) {
            return Err(DigestFormatError);
        }
        found = Some(digest);
    }
    Ok(found)
}

/// Computes a digest over bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct Sha256Hasher(Sha256);

impl Sha256Hasher {
    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of everything added.
    pub fn finish(self) -> Sha256Digest {
        Sha256Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Sha256Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha256Hasher")
    }
}

/// Hashes a list of byte strings under a domain tag, each prefixed with its length (64 bits, big
/// endian), so that no two lists and no two purposes share an input.
pub fn tagged_hash(tag: &str, fields: &[&[u8]]) -> Sha256Digest {
    let mut hasher = Sha256Hasher::default();
    for field in std::iter::once(&tag.as_bytes()).chain(fields) {
        hasher.update(&(field.len() as u64).to_be_bytes());
        hasher.update(field);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_text_form_round_trips_and_is_strict() {
        let digest = Sha256Digest::of(b"");
        assert_eq!(digest.to_string(), EMPTY);
        assert_eq!(EMPTY.parse(), Ok(digest));
        for bad in [
            "",
            "sha256:",
            &EMPTY.to_uppercase(),
            &EMPTY[7..],
            &EMPTY[..70],
            &format!("{EMPTY}0"),
        ] {
            assert_eq!(bad.parse::<Sha256Digest>(), Err(DigestFormatError), "{bad}");
        }
    }

    #[test]
    fn the_header_form_follows_rfc_9530() {
        let digest = Sha256Digest::of(b"x");
        let field = digest.to_digest_field();
        assert_eq!(parse_digest_field(&field), Ok(Some(digest)));
        assert_eq!(
            parse_digest_field(&format!("md5=:AAAA:, {field}")),
            Ok(Some(digest))
        );
        assert_eq!(parse_digest_field("sha-512=:AAAA:"), Ok(None));
        let other = Sha256Digest::of(b"y").to_digest_field();
        for bad in [
            "",
            "sha-256",
            "sha-256=abc",
            "sha-256=:AAAA:",
            &format!("{field},{other}"),
            "sha-256=:%%%:",
        ] {
            assert_eq!(parse_digest_field(bad), Err(DigestFormatError), "{bad}");
        }
    }

    #[test]
    fn tagged_hashes_separate_fields_and_purposes() {
        assert_ne!(
            tagged_hash("t", &[b"ab", b"c"]),
            tagged_hash("t", &[b"a", b"bc"])
        );
        assert_ne!(tagged_hash("t", &[b"a"]), tagged_hash("u", &[b"a"]));
    }
}
