//! A store whose every write takes its time, and that counts them; for budgets under contention, on
//! the paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use spillbox::store::keys::Key;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, SharedStore, StoreError, Upload, UploadPage, VersionPage,
    Versioning,
};

/// Delays each PUT, half of it before it takes effect.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) store: SharedStore,
    pub(crate) put_time: Duration,
    pub(crate) get_time: Duration,
    pub(crate) puts: AtomicUsize,
}

impl Slow {
    pub(crate) fn new(store: SharedStore, put_time: Duration, get_time: Duration) -> Self {
        Self {
            store,
            put_time,
            get_time,
            puts: AtomicUsize::new(0),
        }
    }

    pub(crate) fn puts(&self) -> usize {
        self.puts.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ObjectStore for Slow {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.puts.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.put_time / 2).await;
        let receipt = self.store.put(key, payload, mode).await;
        tokio::time::sleep(self.put_time / 2).await;
        receipt
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        tokio::time::sleep(self.get_time).await;
        self.store.get(key, options).await
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        self.store.head(key).await
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        self.store.list(request).await
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        self.store.delete(key, fence).await
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        self.store.create_upload(key).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        self.store.put_part(upload, number, payload).await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        self.store.complete_upload(upload, parts).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        self.store.abort_upload(upload).await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        self.store.list_uploads(continuation).await
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        self.store.versioning().await
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        self.store.list_versions(prefix, continuation).await
    }
}
