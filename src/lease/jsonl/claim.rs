//! A claim as the ancestor states it: by its own rules about ids, digests, counts and times.

use jiff::Timestamp;

use super::canonical::Json;

/// Characters of a session or transaction id.
const MAX_ID_BYTES: usize = 200;

/// A claim breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClaimError {
    /// `source_id` is not `artifact:{session}:{file}:{12 or 64 hex digits}`.
    #[error("`source_id` is not artifact:SESSION:FILE:DIGITS")]
    SourceId,
    /// `content_sha256` is not 64 hexadecimal digits.
    #[error("`content_sha256` is not 64 hexadecimal digits")]
    Digest,
    /// The digest does not begin with the digits of the source id.
    #[error("the digest does not begin with the digits of `source_id`")]
    OtherDigest,
    /// `reference_count` is no integer from 1 on.
    #[error("`reference_count` is no integer from 1 on")]
    Count,
    /// `retain_until` is neither null nor a time with its zone.
    #[error("`retain_until` is neither null nor a time with its zone")]
    RetainUntil,
    /// The claim is for an artifact of another session.
    #[error("the claim is for an artifact of another session")]
    ForeignSession,
    /// It is not an object with these four members.
    #[error("a claim has source_id, content_sha256, reference_count and retain_until")]
    Form,
}

/// A valid claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The session that owns the artifact.
    pub session: String,
    /// The artifact's file.
    pub file: String,
    /// Digest of its bytes, lower-case.
    pub content_sha256: String,
    /// References.
    pub reference_count: u64,
    /// Their end.
    pub retain_until: Option<Timestamp>,
}

impl Claim {
    /// Reads a claim from JSON text.
    ///
    /// # Errors
    /// See [`InvalidClaimError`].
    pub fn parse(text: &str) -> Result<Self, InvalidClaimError> {
        let json = serde_json::from_str(text).map_err(|_| InvalidClaimError::Form)?;
        Self::of(&json)
    }

    pub(super) fn of(json: &Json) -> Result<Self, InvalidClaimError> {
        let members = json.object().ok_or(InvalidClaimError::Form)?;
        let member = |name: &str| members.get(name).ok_or(InvalidClaimError::Form);
        let source_id = member("source_id")?.text();
        let source_id = source_id.ok_or(InvalidClaimError::SourceId)?;
        let (session, file, digits) =
            parse_source_id(source_id).ok_or(InvalidClaimError::SourceId)?;
        let content_sha256 = member("content_sha256")?.text();
        let content_sha256 = content_sha256.filter(|text| text.len() == 64 && is_hex(text));
        let content_sha256 = content_sha256.ok_or(InvalidClaimError::Digest)?;
        let content_sha256 = content_sha256.to_ascii_lowercase();
        if !content_sha256.starts_with(&digits.to_ascii_lowercase()) {
            return Err(InvalidClaimError::OtherDigest);
        }
        let count = member("reference_count")?.integer();
        let count = count.and_then(|count| u64::try_from(count).ok());
        let reference_count = count
            .filter(|count| *count >= 1)
            .ok_or(InvalidClaimError::Count)?;
        let retain_until = member("retain_until")?;
        let retain_until = if *retain_until == Json::Null {
            None
        } else {
            let time = retain_until.text().and_then(zoned);
            Some(time.ok_or(InvalidClaimError::RetainUntil)?)
        };
        Ok(Self {
            session: session.to_owned(),
            file: file.to_owned(),
            content_sha256,
            reference_count,
            retain_until,
        })
    }
}

/// Takes `artifact:{session}:{file}:{digits}` apart, from the right.
fn parse_source_id(text: &str) -> Option<(&str, &str, &str)> {
    let rest = text.strip_prefix("artifact:")?;
    let (rest, digits) = rest.rsplit_once(':')?;
    let (session, file) = rest.rsplit_once(':')?;
    let is_whole =
        is_id(session) && !file.is_empty() && matches!(digits.len(), 12 | 64) && is_hex(digits);
    is_whole.then_some((session, file, digits))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns whether a text is an id of a session or transaction: `[A-Za-z0-9][A-Za-z0-9._-]{0,199}`.
pub(super) fn is_id(text: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Reads a time with its zone.
pub(super) fn zoned(text: &str) -> Option<Timestamp> {
    // Brackets would name a zone beside the offset, which this form does not have.
    text.parse().ok().filter(|_| !text.contains('['))
}
