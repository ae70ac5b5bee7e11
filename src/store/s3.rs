//! A bucket of an S3-compatible store, through the AWS SDK.
//!
//! What must hold:
//! * One request per write, and the SDK's retries are off: a repeated conditional write whose first
//!   reply was lost would report the conflict with itself. Reads (GET before its first byte, HEAD,
//!   listings, bucket questions) are repeated here, a bounded number of times.
//! * Bodies are never streams to the SDK: their length is known, their checksum is our own header, so
//!   that nothing is framed as aws-chunked (servers refuse it, or store the framing).
//! * Errors are classified in `classify` and nowhere else; no SDK type leaves this module except the
//!   client that tests bring along.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::config::timeout::TimeoutConfig;

use self::classify::{Call, Site};
use self::settings::Resolved;
pub use self::settings::{ChecksumMode, S3Settings, S3SetupError};
use crate::store::keys::Key;
use crate::store::probe::{BucketFacts, ProbePut};
use crate::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, StoreError, StoreErrorKind, Upload, UploadPage, VersionId,
    VersionPage, Versioning,
};

mod body;
mod classify;
mod listing;
mod object;
mod probe;
mod reply;
mod settings;
mod upload;

/// Waits before the second and third attempt at a read; after them the caller is told.
const READ_BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// Above this a put gets the time of a transfer instead of that of a small request.
const SMALL_PUT_BYTES: u64 = 1 << 20;

/// A bucket. Cheap requests, no state but one flag; share it behind an `Arc`.
#[derive(Debug)]
pub struct S3Store {
    client: Client,
    settings: Resolved,
    /// A write was answered with a version id, so a store that cannot tell its versioning has some.
    saw_version_id: AtomicBool,
}

impl S3Store {
    /// Builds the client from the settings and the default credential chain. Makes no request to the
    /// bucket: whether it can be reached and trusted is found by attestation.
    ///
    /// # Errors
    /// The settings name no bucket, no usable endpoint or no region.
    pub async fn connect(settings: &S3Settings) -> Result<Self, S3SetupError> {
        settings.check()?;
        let (sdk, endpoint) = settings.load().await?;
        let config = settings.configure(Builder::from(&sdk), endpoint.as_deref());
        Ok(Self::with_client(
            Client::from_conf(config.build()),
            settings,
            endpoint.as_deref(),
        ))
    }

    /// Takes a client that was configured by [`S3Settings::configure`], for tests that bring their own
    /// connector.
    pub fn with_client(client: Client, settings: &S3Settings, endpoint: Option<&str>) -> Self {
        Self {
            client,
            settings: settings.resolve(endpoint),
            saw_version_id: AtomicBool::new(false),
        }
    }

    /// Returns the bucket's name.
    pub fn bucket(&self) -> &str {
        &self.settings.bucket
    }

    fn site<'a>(&'a self, call: Call, operation: &'static str, key: &'a str) -> Site<'a> {
        Site {
            call,
            operation,
            key,
            bucket: &self.settings.bucket,
        }
    }

    fn within(timeouts: &TimeoutConfig) -> Builder {
        aws_sdk_s3::Config::builder().timeout_config(timeouts.clone())
    }

    fn small(&self) -> Builder {
        Self::within(&self.settings.request_timeouts)
    }

    fn transfer(&self) -> Builder {
        Self::within(&self.settings.transfer_timeouts)
    }

    /// Notes and converts the version that a write was answered with.
    fn note_version(&self, id: Option<&str>) -> Option<VersionId> {
        let version = id.map(|id| VersionId(id.to_owned()));
        if VersionId::generation(version.as_ref()).is_some() {
            self.saw_version_id.store(true, Ordering::Relaxed);
        }
        version
    }
}

/// Repeats a read that failed for reasons of the moment.
async fn retried<T, F>(attempt: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for wait in READ_BACKOFF {
        match attempt().await {
            Err(error)
                if matches!(
                    error.kind,
                    StoreErrorKind::Throttled | StoreErrorKind::Unavailable
                ) =>
            {
                tokio::time::sleep(wait).await;
            }
            settled => return settled,
        }
    }
    attempt().await
}

#[async_trait]
impl ObjectStore for S3Store {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.put_object(key, &payload, mode).await
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        retried(|| self.get_object(key, &options)).await
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        retried(|| self.head_object(key)).await
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        retried(|| self.list_objects(request)).await
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        self.delete_object(key, fence).await
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        self.create_multipart_upload(key).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        self.upload_part(upload, number, &payload).await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        self.complete_multipart_upload(upload, parts).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        self.abort_multipart_upload(upload).await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        retried(|| self.list_multipart_uploads(continuation)).await
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        retried(|| self.get_bucket_versioning()).await
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        retried(|| self.list_object_versions(prefix, continuation)).await
    }

    async fn put_probe(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.put_probe_object(key, probe, mode).await
    }

    async fn bucket_facts(&self) -> BucketFacts {
        self.read_bucket_facts().await
    }
}
