//! A store through which a save dies half-way: puts of some keys are refused, so that nothing of the
//! client's later work arrives.

use async_trait::async_trait;
use spillbox::store::keys::Key;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, SharedStore, StoreError, StoreErrorKind, Upload,
    UploadPage, VersionPage, Versioning,
};

/// Refuses to put keys that contain a text.
#[derive(Debug)]
pub(crate) struct Crashing {
    pub(crate) store: SharedStore,
    pub(crate) refused: &'static str,
}

#[async_trait]
impl ObjectStore for Crashing {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        if key.as_str().contains(self.refused) {
            let kind = StoreErrorKind::Denied;
            return Err(StoreError::new(kind, "put", key, "the client died here"));
        }
        self.store.put(key, payload, mode).await
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
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
