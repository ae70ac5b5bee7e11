//! Source ids: under which name a memory refers to an output.

use crate::digest::Sha256Digest;
use crate::ids::{ArtifactId, SessionId};

/// A source id taken apart: `artifact:{session}:{aid}:{hex}`, parsed from the right, because a session
/// id may hold any text. The digest is given by its first 12 digits, or whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceId {
    /// The session that owns the artifact.
    pub session: SessionId,
    /// The artifact.
    pub artifact_id: ArtifactId,
    digits: String,
}

impl SourceId {
    /// Reads a source id; `None` for anything else. Hexadecimal digits may be of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("artifact:")?;
        let (rest, digits) = rest.rsplit_once(':')?;
        let (session, artifact_id) = rest.rsplit_once(':')?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || !matches!(digits.len(), 12 | 64) {
            return None;
        }
        Some(Self {
            session: session.parse().ok()?,
            artifact_id: artifact_id.parse().ok()?,
            digits: digits.to_ascii_lowercase(),
        })
    }

    /// Returns whether the digits are the beginning of this digest.
    pub fn is_of(&self, sha256: &Sha256Digest) -> bool {
        sha256.to_hex().starts_with(&self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::manifest::source_id;

    #[test]
    fn a_source_id_is_read_from_the_right() {
        let artifact_id = ArtifactId::new(5, [1; 10]);
        let digest = Sha256Digest::of(b"x");
        for session in ["run-7", "a:b:c", "artifact:x", "ü ", "::"] {
            let session: SessionId = session.parse().unwrap();
            let text = source_id(&session, &artifact_id, &digest);
            let parsed = SourceId::parse(&text).unwrap();
            assert_eq!(
                (parsed.session.clone(), parsed.artifact_id),
                (session, artifact_id)
            );
            assert!(parsed.is_of(&digest) && !parsed.is_of(&Sha256Digest::of(b"y")));
        }
        let whole = format!(
            "artifact:s:{artifact_id}:{}",
            digest.to_hex().to_uppercase()
        );
        assert!(SourceId::parse(&whole).unwrap().is_of(&digest));
    }

    #[test]
    fn anything_else_is_refused() {
        let aid = ArtifactId::new(5, [1; 10]).to_string();
        for bad in [
            String::new(),
            format!("artifact:{aid}:a365bdf36416"),
            format!("artifact::{aid}:a365bdf36416"),
            format!("artifact:s:{aid}:a365bdf3641"),
            format!("artifact:s:{aid}:a365bdf3641g"),
            format!("artifact:s:{aid}:a365bdf364161"),
            format!("artefact:s:{aid}:a365bdf36416"),
            "artifact:s:tool_result_001.txt:a365bdf36416".to_owned(),
        ] {
            assert_eq!(SourceId::parse(&bad), None, "{bad}");
        }
    }
}
