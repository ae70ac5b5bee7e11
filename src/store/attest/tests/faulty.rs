//! A store over the reference store that misbehaves in one way.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each method knows the faults that concern it, and passes the others on"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};

use crate::store::keys::Key;
use crate::store::memory::MemoryStore;
use crate::store::probe::ProbePut;
use crate::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, Object,
    ObjectStore, Part, Payload, PutMode, PutReceipt, StoreError, StoreErrorKind, Upload,
    UploadPage, VersionPage, Versioning,
};

/// What is wrong with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    IgnoresCreate,
    /// Looks, lets others in, writes.
    ChecksThenWrites,
    /// Looks when the head of a request is there, writes when the body is; quick bodies never show it.
    ChecksBeforeTheBody,
    /// One step among the requests of one endpoint, two steps beside those of others.
    IsAtomicPerEndpoint,
    IgnoresDeleteCondition,
    /// Looks, lets others in, deletes.
    DeletesAfterChecking,
    VersionDeleteTakesCurrent,
    /// The first read after a write brings what was there before.
    StaleReads,
    /// The first listing after a write does not have it.
    StaleListings,
    AlwaysUnchanged,
    NeverUnchanged,
    FramesBodies,
    IgnoresChecksums,
    Denies(&'static str),
    Hangs,
    HangsAfter(usize),
    /// Every second loser of a create is told 409.
    ConflictsForLosers,
    /// Every fifth write is applied and its reply lost.
    LosesReplies,
    NoProbes,
    BusyAtFirst,
    PutsAnswer(StoreErrorKind),
}

#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<MemoryStore>,
    fault: Fault,
    pub(super) requests: AtomicUsize,
    pub(super) version_deletes: AtomicUsize,
    writes: AtomicUsize,
    /// What a stale read brings: the content before the last write, once.
    before: Mutex<HashMap<String, Option<Bytes>>>,
    unlisted: Mutex<HashMap<String, ()>>,
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl Faulty {
    pub(super) fn new(inner: Arc<MemoryStore>, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            requests: AtomicUsize::new(0),
            version_deletes: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            before: Mutex::default(),
            unlisted: Mutex::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
        }
    }

    fn error<T>(&self, kind: StoreErrorKind, operation: &'static str) -> Result<T, StoreError> {
        let detail = match kind {
            StoreErrorKind::Denied => "status 403 AccessDenied",
            _ => "by the fault",
        };
        Err(StoreError::new(kind, operation, "", detail))
    }

    /// Every request passes here.
    async fn admit(&self, operation: &'static str) -> Result<(), StoreError> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Denies(denied) if denied == operation => {
                self.error(StoreErrorKind::Denied, operation)
            }
            Fault::Hangs => std::future::pending().await,
            Fault::HangsAfter(limit) if number >= limit => std::future::pending().await,
            Fault::PutsAnswer(kind) if operation == "put" => self.error(kind, operation),
            Fault::BusyAtFirst if number == 0 => self.error(StoreErrorKind::Throttled, operation),
            _ => Ok(()),
        }
    }

    async fn content(&self, key: &Key) -> Option<Bytes> {
        match self.inner.get(key, GetOptions::default()).await {
            Ok(GetReply::Found(object)) => {
                let pieces: Vec<_> = object.body.map(Result::unwrap).collect().await;
                Some(pieces.concat().into())
            }
            _ => None,
        }
    }

    async fn remember(&self, key: &Key) {
        if self.fault == Fault::StaleReads {
            let content = self.content(key).await;
            self.before.lock().unwrap().insert(key.to_string(), content);
        }
        if self.fault == Fault::StaleListings {
            self.unlisted.lock().unwrap().insert(key.to_string(), ());
        }
    }

    async fn write(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.remember(key).await;
        let create = mode == PutMode::CreateIfAbsent;
        let payload = if self.fault == Fault::FramesBodies && payload.size_bytes() > 65_536 {
            Payload::from(
                [
                    b"10000;chunk-signature=0\r\n".as_slice(),
                    &payload.to_bytes(),
                ]
                .concat(),
            )
        } else {
            payload
        };
        let result = match self.fault {
            Fault::IgnoresCreate if create => {
                self.inner.put(key, payload, PutMode::Overwrite).await
            }
            Fault::IsAtomicPerEndpoint if create => {
                let _turn = self.one_at_a_time.lock().await;
                if self.content(key).await.is_some() {
                    return self.error(StoreErrorKind::AlreadyExists, "put");
                }
                tokio::task::yield_now().await;
                self.inner.put(key, payload, PutMode::Overwrite).await
            }
            Fault::ChecksThenWrites if create => {
                if self.content(key).await.is_some() {
                    return self.error(StoreErrorKind::AlreadyExists, "put");
                }
                tokio::task::yield_now().await;
                self.inner.put(key, payload, PutMode::Overwrite).await
            }
            _ => self.inner.put(key, payload, mode).await,
        };
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        match (self.fault, &result) {
            (Fault::ConflictsForLosers, Err(error))
                if error.is(StoreErrorKind::AlreadyExists) && number.is_multiple_of(2) =>
            {
                self.error(StoreErrorKind::Conflict, "put")
            }
            (Fault::LosesReplies, _) if number % 5 == 4 => {
                self.error(StoreErrorKind::Ambiguous, "put")
            }
            _ => result,
        }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.admit("put").await?;
        self.write(key, payload, mode).await
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        self.admit("get").await?;
        let date = None;
        if self.fault == Fault::AlwaysUnchanged && options.if_none_match.is_some() {
            return Ok(GetReply::NotModified { date });
        }
        let stale = self.before.lock().unwrap().remove(key.as_str());
        let options = GetOptions {
            if_none_match: options
                .if_none_match
                .filter(|_| self.fault != Fault::NeverUnchanged),
            ..options
        };
        match (stale, self.inner.get(key, options).await) {
            (Some(None), _) => self.error(StoreErrorKind::NotFound, "get"),
            (Some(Some(bytes)), Ok(GetReply::Found(object))) => Ok(GetReply::Found(Object {
                body: stream::iter([Ok(bytes)]).boxed(),
                ..object
            })),
            (_, reply) => reply,
        }
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        self.admit("head").await?;
        let mut head = self.inner.head(key).await?;
        if self.fault == Fault::IgnoresChecksums {
            head.meta.checksum = None;
        }
        Ok(head)
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        self.admit("list").await?;
        let mut page = self.inner.list(request).await?;
        let mut unlisted = self.unlisted.lock().unwrap();
        page.objects
            .retain(|object| unlisted.remove(&object.key).is_none());
        Ok(page)
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        self.admit("delete").await?;
        self.remember(key).await;
        let fence = match (self.fault, fence) {
            (Fault::IgnoresDeleteCondition, DeleteFence::IfMatch(_)) => DeleteFence::None,
            (Fault::DeletesAfterChecking, DeleteFence::IfMatch(etag)) => {
                let current = self.inner.head(key).await;
                if current.is_err() || current.is_ok_and(|head| head.meta.etag != etag) {
                    return self.error(StoreErrorKind::PreconditionFailed, "delete");
                }
                tokio::task::yield_now().await;
                DeleteFence::None
            }
            (fault, DeleteFence::Version(id)) => {
                self.version_deletes.fetch_add(1, Ordering::Relaxed);
                if fault == Fault::VersionDeleteTakesCurrent {
                    DeleteFence::None
                } else {
                    DeleteFence::Version(id)
                }
            }
            (_, fence) => fence,
        };
        self.inner.delete(key, fence).await
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        self.admit("create upload").await?;
        self.inner.create_upload(key).await
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        self.admit("put part").await?;
        self.inner.put_part(upload, number, payload).await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        self.admit("complete upload").await?;
        self.inner.complete_upload(upload, parts).await
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        self.admit("abort upload").await?;
        self.inner.abort_upload(upload).await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        self.admit("list uploads").await?;
        self.inner.list_uploads(continuation).await
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        self.admit("get versioning").await?;
        self.inner.versioning().await
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        self.admit("list versions").await?;
        self.inner.list_versions(prefix, continuation).await
    }

    async fn put_probe(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        self.admit("put").await?;
        match self.fault {
            Fault::NoProbes => return self.error(StoreErrorKind::NotImplemented, "put"),
            Fault::IgnoresChecksums => {
                return self.inner.put(key, probe.arrive().await, mode).await;
            }
            Fault::ChecksThenWrites | Fault::ChecksBeforeTheBody => {
                if mode == PutMode::CreateIfAbsent && self.content(key).await.is_some() {
                    return self.error(StoreErrorKind::AlreadyExists, "put");
                }
                if !probe.claim_holds() {
                    return self.error(StoreErrorKind::Rejected, "put");
                }
                let payload = probe.arrive().await;
                return self.inner.put(key, payload, PutMode::Overwrite).await;
            }
            _ => {}
        }
        if !probe.claim_holds() {
            return self.error(StoreErrorKind::Rejected, "put");
        }
        let payload = probe.arrive().boxed().await;
        self.write(key, payload, mode).await
    }
}
