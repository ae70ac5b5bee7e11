//! What attestation asks of a store beyond the product's own requests: a put whose last bytes come
//! late, a put that claims a wrong checksum, and what the bucket says of itself.

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::store::keys::Key;
use crate::store::{Payload, StoreError, StoreErrorKind};

/// A put that shows how a store takes it. Only attestation makes one.
#[derive(Debug)]
pub struct ProbePut {
    /// The object.
    pub payload: Payload,
    /// Where to pause while sending.
    pub hold: Option<Hold>,
    /// A CRC-32 to claim instead of the payload's own.
    pub claimed_crc32: Option<u32>,
}

/// A pause in a body: the request is under way and cannot be complete before `release`.
#[derive(Debug)]
pub struct Hold {
    /// Bytes to send before the pause.
    pub after_bytes: usize,
    /// Told when they were handed to the connection.
    pub reached: oneshot::Sender<()>,
    /// Ends the pause; so does dropping its sender.
    pub release: oneshot::Receiver<()>,
}

impl ProbePut {
    /// Waits until the whole payload is there, for stores that take it in one piece: they can
    /// neither check nor write before.
    pub async fn arrive(self) -> Payload {
        if let Some(hold) = self.hold {
            // Nobody may be listening; the pause counts all the same.
            let _ = hold.reached.send(());
            let _ = hold.release.await;
        }
        self.payload
    }

    /// Returns whether the claimed checksum, if any, is the payload's.
    pub fn claim_holds(&self) -> bool {
        self.claimed_crc32
            .is_none_or(|claimed| claimed == self.payload.crc32())
    }

    /// As [`arrive`](Self::arrive), for stores that verify checksums.
    ///
    /// # Errors
    /// [`StoreErrorKind::Rejected`] where the claimed checksum is not the payload's.
    pub async fn verified(self, key: &Key) -> Result<Payload, StoreError> {
        if !self.claim_holds() {
            let detail = "the checksum is not that of the bytes";
            let kind = StoreErrorKind::Rejected;
            return Err(StoreError::new(kind, "put", key, detail));
        }
        Ok(self.arrive().await)
    }
}

/// What a bucket says of itself; `None` is "not known", never "no".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketFacts {
    /// How objects are encrypted when a put says nothing.
    pub encryption: Option<Encryption>,
    /// Whether people without credentials may get in.
    pub public_access: Option<PublicAccess>,
    /// Whether object lock is on; objects under retention cannot be deleted.
    pub object_lock: Option<bool>,
    /// Whether a lifecycle rule aborts stale multipart uploads.
    pub aborts_stale_uploads: Option<bool>,
}

/// A bucket's default encryption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// None is configured.
    Off,
    /// This algorithm, as the store names it.
    On(String),
}

/// Who may get into a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicAccess {
    /// The bucket blocks public policies and lists.
    Blocked,
    /// Nothing blocks them, and no policy was seen that opens the bucket.
    NotBlocked,
    /// A policy makes the bucket public.
    Public,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_held_payload_arrives_when_it_is_released() {
        let (reached, on_reached) = oneshot::channel();
        let (release, on_release) = oneshot::channel();
        let probe = ProbePut {
            payload: "abcd".into(),
            hold: Some(Hold {
                after_bytes: 2,
                reached,
                release: on_release,
            }),
            claimed_crc32: None,
        };
        let mut arriving = Box::pin(probe.arrive());
        assert!(futures_util::poll!(&mut arriving).is_pending());
        on_reached.await.unwrap();
        assert!(futures_util::poll!(&mut arriving).is_pending());
        release.send(()).unwrap();
        assert_eq!(arriving.await.to_bytes(), "abcd");
    }

    #[test]
    fn only_a_claim_can_be_wrong() {
        let probe = |claimed_crc32| ProbePut {
            payload: "abcd".into(),
            hold: None,
            claimed_crc32,
        };
        assert!(probe(None).claim_holds());
        assert!(probe(Some(Payload::from("abcd").crc32())).claim_holds());
        assert!(!probe(Some(Payload::from("abce").crc32())).claim_holds());
    }
}
