//! A store that lies as much as the journal's protocol allows: writes fail before, after and instead of
//! taking effect, arrive late, are refused without a reason; reads and listings show older states. One
//! seed, one history. What it never does: let two creates of one key succeed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use spillbox::store::keys::Key;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, SharedStore, StoreError, StoreErrorKind, Upload,
    UploadPage, VersionPage, Versioning,
};

#[derive(Debug)]
pub(crate) struct Chaotic {
    store: SharedStore,
    random: Mutex<u64>,
    late: Mutex<Vec<(Key, Payload)>>,
    is_calm: AtomicBool,
}

impl Chaotic {
    pub(crate) fn new(store: SharedStore, seed: u64) -> Self {
        Self {
            store,
            random: Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            late: Mutex::default(),
            is_calm: AtomicBool::new(false),
        }
    }

    /// From now on everything works at once.
    pub(crate) fn calm(&self) {
        self.is_calm.store(true, Ordering::Relaxed);
    }

    /// A number below `bound` (xorshift).
    pub(crate) fn below(&self, bound: u64) -> u64 {
        let mut x = self.random.lock().unwrap();
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        *x % bound
    }

    fn chance(&self, percent: u64) -> bool {
        !self.is_calm.load(Ordering::Relaxed) && self.below(100) < percent
    }

    /// Applies one write that was held back, perhaps.
    async fn something_late_arrives(&self) {
        if self.below(4) == 0 {
            let late = self.late.lock().unwrap().pop();
            if let Some((key, payload)) = late {
                let _ = self.store.put(&key, payload, PutMode::CreateIfAbsent).await;
            }
        }
    }

    /// Applies everything that was held back.
    pub(crate) async fn apply_late(&self) {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        for (key, payload) in late {
            let _ = self.store.put(&key, payload, PutMode::CreateIfAbsent).await;
        }
    }

    async fn pause(&self) {
        let millis = self.below(30);
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }
}

fn fail<T>(kind: StoreErrorKind, operation: &'static str, key: &str) -> Result<T, StoreError> {
    Err(StoreError::new(kind, operation, key, "chaos"))
}

#[async_trait]
impl ObjectStore for Chaotic {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.something_late_arrives().await;
        self.pause().await;
        if self.chance(25) {
            let name = key.as_str();
            match self.below(7) {
                0 => return fail(StoreErrorKind::Unavailable, "put", name),
                1 => return fail(StoreErrorKind::Conflict, "put", name),
                2 => return fail(StoreErrorKind::Throttled, "put", name),
                3 => return fail(StoreErrorKind::Ambiguous, "put", name),
                4 => return fail(StoreErrorKind::Denied, "put", name),
                5 => {
                    self.late.lock().unwrap().push((key.clone(), payload));
                    return fail(StoreErrorKind::Ambiguous, "put", name);
                }
                _ => {
                    let _ = self.store.put(key, payload, mode).await;
                    return fail(StoreErrorKind::Ambiguous, "put", name);
                }
            }
        }
        let receipt = self.store.put(key, payload, mode).await;
        self.pause().await;
        receipt
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        self.pause().await;
        if self.chance(10) {
            // Unreachable, or an older state in which the key was not there.
            let kinds = [StoreErrorKind::Unavailable, StoreErrorKind::NotFound];
            let kind = kinds[usize::try_from(self.below(2)).unwrap()];
            return fail(kind, "get", key.as_str());
        }
        self.store.get(key, options).await
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        self.store.head(key).await
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        self.pause().await;
        if self.chance(5) {
            return fail(StoreErrorKind::Unavailable, "list", &request.prefix);
        }
        let mut page = self.store.list(request).await?;
        if self.chance(25) {
            let kept = self.below(page.objects.len() as u64 + 1);
            page.objects.truncate(usize::try_from(kept).unwrap());
        }
        Ok(page)
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
