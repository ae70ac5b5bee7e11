//! One delegating store for every store that misbehaves in tests: a hook says what happens before and
//! after each request, and what a listing shows.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use spillbox::store::keys::Key;
use spillbox::store::metered::StoreOperation;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, SharedStore, StoreError, StoreErrorKind, Upload,
    UploadPage, VersionPage, Versioning,
};

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) operation: StoreOperation,
    /// Its key, or the prefix of a listing; empty where it concerns the bucket.
    pub(crate) key: &'a str,
    /// What a put of one object brings.
    pub(crate) put: Option<(&'a Key, &'a Payload)>,
}

impl Ask<'_> {
    /// Fails as a store does.
    pub(crate) fn fail<T>(&self, kind: StoreErrorKind, why: &'static str) -> Result<T, StoreError> {
        Err(StoreError::new(
            kind,
            self.operation.as_str(),
            self.key,
            why,
        ))
    }
}

/// What happens around the requests.
#[async_trait]
pub(crate) trait Hook: Debug + Send + Sync + 'static {
    /// An error here: the request never arrives. The number comes back with the answer.
    async fn before(&self, _store: &SharedStore, _ask: &Ask<'_>) -> Result<usize, StoreError> {
        Ok(0)
    }

    /// An error here: the request took effect, and its answer is lost.
    async fn after(&self, _ask: &Ask<'_>, _number: usize) -> Result<(), StoreError> {
        Ok(())
    }

    /// A page of a listing that the store below is not asked for.
    fn listing(&self, _request: &ListRequest) -> Option<ListPage> {
        None
    }

    /// What of a listing's page is shown.
    fn shown(&self, page: ListPage) -> ListPage {
        page
    }
}

#[derive(Debug)]
struct Hooked<H> {
    store: SharedStore,
    hook: Arc<H>,
}

/// A store with a hook.
pub(crate) fn hooked<H: Hook>(store: &SharedStore, hook: &Arc<H>) -> SharedStore {
    Arc::new(Hooked {
        store: Arc::clone(store),
        hook: Arc::clone(hook),
    })
}

impl<H: Hook> Hooked<H> {
    async fn ask<T>(
        &self,
        ask: Ask<'_>,
        request: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let number = self.hook.before(&self.store, &ask).await?;
        let answer = request.await;
        self.hook.after(&ask, number).await?;
        answer
    }
}

const fn of(operation: StoreOperation, key: &str) -> Ask<'_> {
    Ask {
        operation,
        key,
        put: None,
    }
}

#[async_trait]
impl<H: Hook> ObjectStore for Hooked<H> {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let brought = payload.clone();
        let ask = Ask {
            put: Some((key, &brought)),
            ..of(StoreOperation::Put, key.as_str())
        };
        self.ask(ask, self.store.put(key, payload, mode)).await
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        let ask = of(StoreOperation::Get, key.as_str());
        self.ask(ask, self.store.get(key, options)).await
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        let ask = of(StoreOperation::Head, key.as_str());
        self.ask(ask, self.store.head(key)).await
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        if let Some(page) = self.hook.listing(request) {
            return Ok(page);
        }
        let ask = of(StoreOperation::List, &request.prefix);
        let page = self.ask(ask, self.store.list(request)).await?;
        Ok(self.hook.shown(page))
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        let ask = of(StoreOperation::Delete, key.as_str());
        self.ask(ask, self.store.delete(key, fence)).await
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        let ask = of(StoreOperation::CreateUpload, key.as_str());
        self.ask(ask, self.store.create_upload(key)).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        let ask = of(StoreOperation::PutPart, upload.key.as_str());
        self.ask(ask, self.store.put_part(upload, number, payload))
            .await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        let ask = of(StoreOperation::CompleteUpload, upload.key.as_str());
        self.ask(ask, self.store.complete_upload(upload, parts))
            .await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let ask = of(StoreOperation::AbortUpload, upload.key.as_str());
        self.ask(ask, self.store.abort_upload(upload)).await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        let ask = of(StoreOperation::ListUploads, "");
        self.ask(ask, self.store.list_uploads(continuation)).await
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        let ask = of(StoreOperation::Versioning, "");
        self.ask(ask, self.store.versioning()).await
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        let ask = of(StoreOperation::ListVersions, prefix);
        self.ask(ask, self.store.list_versions(prefix, continuation))
            .await
    }
}
