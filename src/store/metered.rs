//! A store that is counted: every request by operation, class of key, outcome and time, and the bytes
//! that were written.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::store::keys::{Key, KeyClass, KeySpace};
use crate::store::probe::{BucketFacts, ProbePut};
use crate::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, SharedStore, StoreError, StoreErrorKind, Upload,
    UploadPage, VersionPage, Versioning,
};

/// What is asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreOperation {
    /// One object written.
    Put,
    /// One object or range opened; the body comes later.
    Get,
    /// One object looked at.
    Head,
    /// One page of keys.
    List,
    /// One object or version deleted.
    Delete,
    /// A multipart upload begun.
    CreateUpload,
    /// One part written.
    PutPart,
    /// A multipart upload completed.
    CompleteUpload,
    /// A multipart upload given up.
    AbortUpload,
    /// One page of unfinished uploads.
    ListUploads,
    /// The bucket's versioning state.
    Versioning,
    /// One page of versions.
    ListVersions,
}

impl StoreOperation {
    /// Returns the operation's word in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Head => "head",
            Self::List => "list",
            Self::Delete => "delete",
            Self::CreateUpload => "create_upload",
            Self::PutPart => "put_part",
            Self::CompleteUpload => "complete_upload",
            Self::AbortUpload => "abort_upload",
            Self::ListUploads => "list_uploads",
            Self::Versioning => "versioning",
            Self::ListVersions => "list_versions",
        }
    }
}

/// One request that was answered, or failed.
#[derive(Debug, Clone, Copy)]
pub struct StoreRequest {
    /// What was asked.
    pub operation: StoreOperation,
    /// Of which class of keys; none where a request concerns the bucket.
    pub class: Option<KeyClass>,
    /// How it failed, if so.
    pub failure: Option<StoreErrorKind>,
    /// Until the answer's head.
    pub elapsed: Duration,
    /// Bytes that were written and acknowledged.
    pub written_bytes: u64,
}

/// Takes the counts.
pub trait StoreMeter: Send + Sync + std::fmt::Debug {
    /// Takes in one request.
    fn record(&self, request: StoreRequest);
}

/// The store, counted.
#[derive(Debug)]
pub struct MeteredStore {
    inner: SharedStore,
    keys: KeySpace,
    meter: Arc<dyn StoreMeter>,
}

impl MeteredStore {
    /// Counts what goes to `inner`, whose keys are those of `keys`.
    pub fn shared(inner: SharedStore, keys: KeySpace, meter: Arc<dyn StoreMeter>) -> SharedStore {
        Arc::new(Self { inner, keys, meter })
    }

    /// Waits for a request and counts it. A request whose caller goes away is not counted: nobody knows
    /// how it ended.
    async fn count<T>(
        &self,
        operation: StoreOperation,
        key: Option<&str>,
        bytes: u64,
        request: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let answer = request.await;
        let failure = answer.as_ref().err().map(|error| error.kind);
        self.meter.record(StoreRequest {
            operation,
            class: key.map(|key| self.keys.class_of(key)),
            failure,
            elapsed: began.elapsed(),
            written_bytes: if failure.is_none() { bytes } else { 0 },
        });
        answer
    }

    async fn count_of<T>(
        &self,
        operation: StoreOperation,
        key: &Key,
        request: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.count(operation, Some(key.as_str()), 0, request).await
    }
}

#[async_trait]
impl ObjectStore for MeteredStore {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let (name, bytes) = (Some(key.as_str()), payload.size_bytes());
        let request = self.inner.put(key, payload, mode);
        self.count(StoreOperation::Put, name, bytes, request).await
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        let request = self.inner.get(key, options);
        self.count_of(StoreOperation::Get, key, request).await
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        let request = self.inner.head(key);
        self.count_of(StoreOperation::Head, key, request).await
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        let prefix = Some(request.prefix.as_str());
        let listing = self.inner.list(request);
        self.count(StoreOperation::List, prefix, 0, listing).await
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        let request = self.inner.delete(key, fence);
        self.count_of(StoreOperation::Delete, key, request).await
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        let request = self.inner.create_upload(key);
        self.count_of(StoreOperation::CreateUpload, key, request)
            .await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        let (name, bytes) = (Some(upload.key.as_str()), payload.size_bytes());
        let request = self.inner.put_part(upload, number, payload);
        self.count(StoreOperation::PutPart, name, bytes, request)
            .await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        let request = self.inner.complete_upload(upload, parts);
        self.count_of(StoreOperation::CompleteUpload, &upload.key, request)
            .await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let request = self.inner.abort_upload(upload);
        self.count_of(StoreOperation::AbortUpload, &upload.key, request)
            .await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        let request = self.inner.list_uploads(continuation);
        self.count(StoreOperation::ListUploads, None, 0, request)
            .await
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        let request = self.inner.versioning();
        self.count(StoreOperation::Versioning, None, 0, request)
            .await
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        let request = self.inner.list_versions(prefix, continuation);
        self.count(StoreOperation::ListVersions, Some(prefix), 0, request)
            .await
    }

    async fn put_probe(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let request = self.inner.put_probe(key, probe, mode);
        self.count_of(StoreOperation::Put, key, request).await
    }

    async fn bucket_facts(&self) -> BucketFacts {
        self.inner.bucket_facts().await
    }
}

#[cfg(test)]
mod tests;
