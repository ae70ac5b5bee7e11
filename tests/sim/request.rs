//! Requests and replies as data, so that a request can travel, arrive late, and arrive twice.

use futures_util::FutureExt;
use spillbox::store::keys::Key;
use spillbox::store::memory::MemoryStore;
use spillbox::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, ObjectStore,
    Part, Payload, PutMode, PutReceipt, StoreError, Upload, UploadPage, VersionPage, Versioning,
};

/// A request to the store.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Put(Key, Payload, PutMode),
    Get(Key, GetOptions),
    Head(Key),
    List(ListRequest),
    Delete(Key, DeleteFence),
    CreateUpload(Key),
    PutPart(Upload, u32, Payload),
    CompleteUpload(Upload, Vec<Part>),
    AbortUpload(Upload),
    ListUploads(Option<String>),
    Versioning,
    ListVersions(String, Option<String>),
}

/// What it is answered.
#[derive(Debug)]
pub(crate) enum Reply {
    Put(PutReceipt),
    Get(GetReply),
    Head(Head),
    List(ListPage),
    Delete(DeleteReceipt),
    Upload(Upload),
    Part(Part),
    Aborted,
    Uploads(UploadPage),
    Versioning(Versioning),
    Versions(VersionPage),
}

impl Request {
    /// Whether it may change something.
    pub(crate) fn is_write(&self) -> bool {
        match self {
            Self::Put(..)
            | Self::Delete(..)
            | Self::CreateUpload(_)
            | Self::PutPart(..)
            | Self::CompleteUpload(..)
            | Self::AbortUpload(_) => true,
            Self::Get(..)
            | Self::Head(_)
            | Self::List(_)
            | Self::ListUploads(_)
            | Self::Versioning
            | Self::ListVersions(..) => false,
        }
    }

    /// The object that it is about, where it is about one.
    pub(crate) fn key(&self) -> Option<&Key> {
        match self {
            Self::Put(key, ..)
            | Self::Get(key, _)
            | Self::Head(key)
            | Self::Delete(key, _)
            | Self::CreateUpload(key) => Some(key),
            Self::PutPart(upload, ..)
            | Self::CompleteUpload(upload, _)
            | Self::AbortUpload(upload) => Some(&upload.key),
            Self::List(_) | Self::ListUploads(_) | Self::Versioning | Self::ListVersions(..) => {
                None
            }
        }
    }

    /// The object that it may create, change or remove.
    pub(crate) fn changes(&self) -> Option<&Key> {
        match self {
            Self::Put(key, ..) | Self::Delete(key, _) => Some(key),
            Self::CompleteUpload(upload, _) => Some(&upload.key),
            Self::Get(..)
            | Self::Head(_)
            | Self::List(_)
            | Self::CreateUpload(_)
            | Self::PutPart(..)
            | Self::AbortUpload(_)
            | Self::ListUploads(_)
            | Self::Versioning
            | Self::ListVersions(..) => None,
        }
    }

    /// Its name in traces.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Put(_, _, PutMode::CreateIfAbsent) => "create",
            Self::Put(_, _, PutMode::Overwrite) => "overwrite",
            Self::Put(_, _, PutMode::ReplaceIfMatch(_)) => "replace",
            Self::Get(..) => "get",
            Self::Head(_) => "head",
            Self::List(_) => "list",
            Self::Delete(_, DeleteFence::None) => "delete",
            Self::Delete(_, DeleteFence::IfMatch(_)) => "delete-if-match",
            Self::Delete(_, DeleteFence::Version(_)) => "delete-version",
            Self::CreateUpload(_) => "upload",
            Self::PutPart(..) => "part",
            Self::CompleteUpload(..) => "complete",
            Self::AbortUpload(_) => "abort",
            Self::ListUploads(_) => "list-uploads",
            Self::Versioning => "versioning",
            Self::ListVersions(..) => "list-versions",
        }
    }

    /// Applies it to the store's true state.
    pub(crate) fn apply(self, store: &MemoryStore) -> Result<Reply, StoreError> {
        let applied = async {
            Ok(match self {
                Self::Put(key, payload, mode) => Reply::Put(store.put(&key, payload, mode).await?),
                Self::Get(key, options) => Reply::Get(store.get(&key, options).await?),
                Self::Head(key) => Reply::Head(store.head(&key).await?),
                Self::List(request) => Reply::List(store.list(&request).await?),
                Self::Delete(key, fence) => Reply::Delete(store.delete(&key, fence).await?),
                Self::CreateUpload(key) => Reply::Upload(store.create_upload(&key).await?),
                Self::PutPart(upload, number, payload) => {
                    Reply::Part(store.put_part(&upload, number, payload).await?)
                }
                Self::CompleteUpload(upload, parts) => {
                    Reply::Put(store.complete_upload(&upload, &parts).await?)
                }
                Self::AbortUpload(upload) => {
                    store.abort_upload(&upload).await?;
                    Reply::Aborted
                }
                Self::ListUploads(continuation) => {
                    Reply::Uploads(store.list_uploads(continuation.as_deref()).await?)
                }
                Self::Versioning => Reply::Versioning(store.versioning().await?),
                Self::ListVersions(prefix, continuation) => {
                    let page = store.list_versions(&prefix, continuation.as_deref());
                    Reply::Versions(page.await?)
                }
            })
        };
        applied.now_or_never().expect("memory never waits")
    }
}
