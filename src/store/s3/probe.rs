//! What attestation asks: a put with a pause or a false checksum, and what the bucket says of itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_bucket_encryption::GetBucketEncryptionOutput;
use aws_sdk_s3::operation::get_public_access_block::GetPublicAccessBlockOutput;
use aws_sdk_s3::primitives::{ByteStream as SdkStream, SdkBody};
use aws_sdk_s3::types::{ExpirationStatus, ObjectLockEnabled};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use super::object::{Outgoing, crc32_header};
use super::{S3Store, body};
use crate::store::keys::Key;
use crate::store::probe::{BucketFacts, Encryption, Hold, ProbePut, PublicAccess};
use crate::store::{PutMode, PutReceipt, StoreError};

/// A body that pauses once. Its length is known from the start, so nothing frames it.
struct Paused {
    first: Option<Bytes>,
    rest: Option<Bytes>,
    reached: Option<oneshot::Sender<()>>,
    release: oneshot::Receiver<()>,
    is_released: bool,
    remaining_bytes: u64,
}

impl Paused {
    fn new(bytes: &Bytes, hold: Hold) -> Self {
        let cut = hold.after_bytes.min(bytes.len());
        Self {
            first: Some(bytes.slice(..cut)),
            rest: Some(bytes.slice(cut..)),
            reached: Some(hold.reached),
            release: hold.release,
            is_released: false,
            remaining_bytes: bytes.len() as u64,
        }
    }
}

impl Body for Paused {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            self.remaining_bytes -= first.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        // Asked for more: what came before is with the connection.
        if let Some(reached) = self.reached.take() {
            let _ = reached.send(());
        }
        if !self.is_released {
            let _ = ready!(self.release.poll_unpin(context));
            self.is_released = true;
        }
        let rest = self.rest.take();
        self.remaining_bytes = 0;
        Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}

impl S3Store {
    /// Always sends the checksum header, whatever the settings: without it the SDK would frame a body
    /// that it cannot read twice, and that body's signature cannot cover it.
    pub(super) async fn put_probe_object(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let crc32 = probe.claimed_crc32.unwrap_or(probe.payload.crc32());
        let is_held = probe.hold.is_some();
        let body = match probe.hold {
            Some(hold) => SdkStream::new(SdkBody::from_body_1_x(Paused::new(
                &probe.payload.to_bytes(),
                hold,
            ))),
            None => body::upload(&probe.payload, true),
        };
        let outgoing = Outgoing {
            size_bytes: probe.payload.size_bytes(),
            crc32: Some(crc32_header(crc32)),
            body,
            signs_payload: self.settings.signs_payload && !is_held,
        };
        self.send_put(key, outgoing, mode).await
    }

    /// Asks all questions at once; one that is refused, unknown to the store or lost has no answer.
    pub(super) async fn read_bucket_facts(&self) -> BucketFacts {
        let (encryption, public_access, object_lock, aborts_stale_uploads) = futures_util::join!(
            Box::pin(self.encryption()),
            Box::pin(self.public_access()),
            Box::pin(self.object_lock()),
            Box::pin(self.aborts_stale_uploads()),
        );
        BucketFacts {
            encryption,
            public_access,
            object_lock,
            aborts_stale_uploads,
        }
    }

    async fn encryption(&self) -> Option<Encryption> {
        let request = self.client.get_bucket_encryption().bucket(self.bucket());
        let sent = request.customize().config_override(self.small());
        match sent.send().await {
            Ok(output) => Some(algorithm(&output).map_or(Encryption::Off, Encryption::On)),
            Err(error) if says(&error, "ServerSideEncryptionConfigurationNotFoundError") => {
                Some(Encryption::Off)
            }
            Err(_) => None,
        }
    }

    async fn public_access(&self) -> Option<PublicAccess> {
        let status = self.client.get_bucket_policy_status().bucket(self.bucket());
        let status = status.customize().config_override(self.small());
        let block = self.client.get_public_access_block().bucket(self.bucket());
        let block = block.customize().config_override(self.small());
        let (status, block) = futures_util::join!(status.send(), block.send());
        let is_public = match status {
            Ok(output) => output.policy_status().and_then(|status| status.is_public()),
            Err(error) if says(&error, "NoSuchBucketPolicy") => Some(false),
            Err(_) => None,
        };
        if is_public == Some(true) {
            return Some(PublicAccess::Public);
        }
        match block {
            Ok(output) if blocks_everything(&output) => Some(PublicAccess::Blocked),
            Ok(_) => Some(PublicAccess::NotBlocked),
            Err(error) if says(&error, "NoSuchPublicAccessBlockConfiguration") => {
                Some(PublicAccess::NotBlocked)
            }
            Err(_) => None,
        }
    }

    async fn object_lock(&self) -> Option<bool> {
        let request = self
            .client
            .get_object_lock_configuration()
            .bucket(self.bucket());
        match request
            .customize()
            .config_override(self.small())
            .send()
            .await
        {
            Ok(output) => {
                let configuration = output.object_lock_configuration()?;
                Some(configuration.object_lock_enabled() == Some(&ObjectLockEnabled::Enabled))
            }
            Err(error) if says(&error, "ObjectLockConfigurationNotFoundError") => Some(false),
            Err(_) => None,
        }
    }

    async fn aborts_stale_uploads(&self) -> Option<bool> {
        let request = self
            .client
            .get_bucket_lifecycle_configuration()
            .bucket(self.bucket());
        match request
            .customize()
            .config_override(self.small())
            .send()
            .await
        {
            Ok(output) => Some(output.rules().iter().any(|rule| {
                let is_on = *rule.status() == ExpirationStatus::Enabled;
                is_on && rule.abort_incomplete_multipart_upload().is_some()
            })),
            Err(error) if says(&error, "NoSuchLifecycleConfiguration") => Some(false),
            Err(_) => None,
        }
    }
}

fn says<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>, code: &str) -> bool {
    error.as_service_error().and_then(|error| error.code()) == Some(code)
}

fn algorithm(output: &GetBucketEncryptionOutput) -> Option<String> {
    let configuration = output.server_side_encryption_configuration()?;
    let rule = configuration.rules().first()?;
    let default = rule.apply_server_side_encryption_by_default()?;
    Some(default.sse_algorithm().as_str().to_owned())
}

fn blocks_everything(output: &GetPublicAccessBlockOutput) -> bool {
    output
        .public_access_block_configuration()
        .is_some_and(|block| {
            [
                block.block_public_acls(),
                block.ignore_public_acls(),
                block.block_public_policy(),
                block.restrict_public_buckets(),
            ]
            .iter()
            .all(|flag| *flag == Some(true))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_paused_body_has_its_length_and_waits_for_its_release() {
        let (reached, mut on_reached) = oneshot::channel();
        let (release, on_release) = oneshot::channel();
        let hold = Hold {
            after_bytes: 2,
            reached,
            release: on_release,
        };
        let mut stream = SdkStream::new(SdkBody::from_body_1_x(Paused::new(
            &Bytes::from_static(b"abcd"),
            hold,
        )));
        assert_eq!(stream.size_hint(), (4, Some(4)));
        assert_eq!(stream.next().await.unwrap().unwrap(), "ab");
        assert!(on_reached.try_recv().is_err());
        {
            let mut next = Box::pin(stream.next());
            assert!(futures_util::poll!(&mut next).is_pending());
            assert!(on_reached.try_recv().is_ok());
            release.send(()).unwrap();
            assert_eq!(next.await.unwrap().unwrap(), "cd");
        }
        assert!(stream.next().await.is_none());
    }
}
