//! The call record: which artifact did this call's output become?
//!
//! A register under `c/{skey}/{did}[.{n}]`, content-free. `did` is a hash of question, session, call
//! id and digest, so the same save again meets its own record and gets the same receipt, and the same
//! call id with other bytes is another record. Incarnation `n` is taken after what record `n - 1`
//! names was collected.

use serde::{Deserialize, Serialize};

use crate::artifact::manifest::BodyIdentity;
use crate::ids::ArtifactId;

/// The version of the encoding; another one is not read.
pub const RECORD_VERSION: u32 = 1;

/// One decided record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// [`RECORD_VERSION`].
    pub v: u32,
    /// What was decided.
    #[serde(flatten)]
    pub action: CallAction,
}

/// What became of a call's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum CallAction {
    /// It became, or is becoming, this artifact.
    Saved {
        /// The artifact.
        aid: ArtifactId,
        /// The stored body, where it was streamed before the record was written. Absent where the
        /// body was known in full: whoever finishes that save brings the bytes itself.
        body: Option<BodyIdentity>,
    },
    /// It was erased; final.
    Erased,
}

/// The bytes of a call record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordFormatError {
    /// They are not JSON of the expected shape.
    #[error("not a call record: {0}")]
    Malformed(#[from] serde_json::Error),
    /// They were written by another version of the product.
    #[error("call record version {0} is not readable by this version")]
    UnknownVersion(u32),
}

impl CallRecord {
    /// Builds the record of a save.
    pub fn saved(aid: ArtifactId, body: Option<BodyIdentity>) -> Self {
        Self {
            v: RECORD_VERSION,
            action: CallAction::Saved { aid, body },
        }
    }

    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a struct of strings and numbers always serialises")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// See [`RecordFormatError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordFormatError> {
        let record: Self = serde_json::from_slice(bytes)?;
        if record.v != RECORD_VERSION {
            return Err(RecordFormatError::UnknownVersion(record.v));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Sha256Digest;

    #[test]
    fn the_encoding_is_golden() {
        let aid = ArtifactId::new(0, [0; 10]);
        let known = CallRecord::saved(aid, None);
        assert_eq!(
            String::from_utf8(known.encode()).unwrap(),
            r#"{"v":1,"action":"saved","aid":"7zzzzzzzzz0000000000000000","body":null}"#
        );
        let erased = CallRecord {
            v: 1,
            action: CallAction::Erased,
        };
        assert_eq!(erased.encode(), br#"{"v":1,"action":"erased"}"#);
        let body = BodyIdentity {
            size_bytes: 9,
            sha256: Sha256Digest::of(b""),
            etag: "\"e-2\"".into(),
            version_id: None,
            store_checksum: None,
        };
        for record in [known, erased, CallRecord::saved(aid, Some(body))] {
            assert_eq!(CallRecord::decode(&record.encode()).unwrap(), record);
        }
        assert!(CallRecord::decode(br#"{"v":2,"action":"erased"}"#).is_err());
        assert!(CallRecord::decode(br#"{"v":1,"action":"forgotten"}"#).is_err());
    }
}
