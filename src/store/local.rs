//! The store in a directory: durable, for one host, safe for several processes of that host.
//!
//! A key is its relative path, unescaped, with `@` at the end of the file's name, so that the objects
//! `d` and `d/e` coexist (`d@`, `d/e@`). A file holds the object's bytes and nothing else. Beside the
//! objects stand `tmp/@…` (being written), `locks/@…` and `uploads/@…`; no key can have their names.
//!
//! What must hold: an object is visible whole or not at all and, once acknowledged, survives a power
//! failure (`publish.rs`); a symbolic link is never followed (`tree.rs`); a listing is in S3's order
//! and complete (`walk.rs`); the ETag is a function of the bytes alone (`content.rs`).

mod content;
mod fault;
mod publish;
mod tree;
mod upload;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rustix::fs::{AtFlags, FileType};

use crate::clock::SharedClock;
use crate::ids::SharedIds;
use crate::limits::STALE_TEMPORARY;
use crate::store::keys::Key;
use crate::store::listing;
use crate::store::local::fault::Fault;
use crate::store::local::publish::TemporaryFile;
use crate::store::local::tree::{MARK, TEMPORARY, Tree};
use crate::store::local::walk::Walk;
use crate::store::probe::ProbePut;
use crate::store::{
    DeleteFence, DeleteReceipt, GetOptions, GetReply, Head, ListPage, ListRequest, Object,
    ObjectMeta, ObjectStore, Part, Payload, PutMode, PutReceipt, StoreError, StoreErrorKind,
    Upload, UploadPage, VersionPage, Versioning,
};

/// An object store in a directory.
#[derive(Debug, Clone)]
pub struct LocalStore {
    inner: Arc<Inner>,
    root: PathBuf,
}

#[derive(Debug)]
struct Inner {
    tree: Tree,
    clock: SharedClock,
    ids: SharedIds,
}

impl LocalStore {
    /// Opens the store in `root`, creating it (mode 0700) where it is absent, and sweeps what crashed
    /// writers left. Blocks while it does; meant for the start of a process.
    ///
    /// # Errors
    /// The directory cannot be created or entered.
    pub fn open(root: &Path, clock: SharedClock, ids: SharedIds) -> Result<Self, StoreError> {
        let failed = |fault: Fault| fault.at("open", root.display());
        let tree = Tree::open(root).map_err(failed)?;
        // A store that may only be read is a store still.
        if let Err(error) = sweep(&tree, clock.now()).map_err(failed) {
            tracing::warn!("stale temporary files stay: {error}");
        }
        Ok(Self {
            inner: Arc::new(Inner { tree, clock, ids }),
            root: root.to_owned(),
        })
    }

    /// Returns the path of the file that holds an object's bytes, for the operator's eyes; whether it
    /// is there is not looked at.
    pub fn object_path(&self, key: &Key) -> PathBuf {
        let (directory, name) = tree::place(key);
        self.root.join(directory).join(name)
    }

    /// Removes files of writers that crashed more than 24 hours ago; returns how many. To be called
    /// now and then by a process that runs for long.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    pub async fn sweep_temporary(&self) -> Result<u64, StoreError> {
        let now = self.inner.clock.now();
        self.run("sweep", TEMPORARY, move |inner| sweep(&inner.tree, now))
            .await
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: impl std::fmt::Display,
        work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        blocking(operation, key, move || work(&inner)).await
    }

    fn date(&self) -> Option<Timestamp> {
        Some(self.inner.clock.now())
    }
}

/// Runs file work where it may block. Once begun it runs to its end, also when the caller is gone.
async fn blocking<T: Send + 'static>(
    operation: &'static str,
    key: impl std::fmt::Display,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|fault| fault.at(operation, key)),
        Err(error) => {
            let detail = format!("the file work ended early: {error}");
            let kind = StoreErrorKind::Ambiguous;
            Err(StoreError::new(kind, operation, key, detail))
        }
    }
}

fn sweep(tree: &Tree, now: Timestamp) -> Result<u64, Fault> {
    let directory = tree.make_directory(TEMPORARY)?;
    let mut swept = 0;
    for entry in tree::entries(&directory)? {
        let entry = entry?;
        // `tmp` may be a key's first segment too; objects do not begin with the mark.
        let Some(name) = entry
            .file_name()
            .to_str()
            .ok()
            .filter(|n| n.starts_with(MARK))
        else {
            continue;
        };
        let Ok(stat) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        if !tree::is_older(&stat, now, STALE_TEMPORARY) {
            continue;
        }
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            upload::remove(&directory, name)?;
        } else {
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        }
        swept += 1;
    }
    Ok(swept)
}

/// Opens an object and describes it.
fn find(tree: &Tree, key: &Key) -> Result<(std::fs::File, ObjectMeta), Fault> {
    let absent = || Fault::new(StoreErrorKind::NotFound, "no such key");
    let (path, name) = tree::place(key);
    let directory = tree.directory(path)?.ok_or_else(absent)?;
    let (file, stat) = tree::open_file(&directory, &name)?.ok_or_else(absent)?;
    let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
    let meta = ObjectMeta {
        size_bytes,
        etag: content::etag_of(&file, size_bytes)?,
        version_id: None,
        last_modified: tree::modified(&stat),
        checksum: None,
    };
    Ok((file, meta))
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put(
        &self,
        key: &Key,
        payload: Payload,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        let target = key.clone();
        let etag = self
            .run("put", key, move |inner| {
                let now = inner.clock.now();
                let mut temporary = TemporaryFile::create(&inner.tree, &inner.ids, now)?;
                temporary.write(&payload)?;
                let etag = temporary.seal(now)?;
                publish::publish(&inner.tree, &target, temporary, &mode)?;
                Ok(etag)
            })
            .await?;
        Ok(PutReceipt {
            etag,
            version_id: None,
            checksum: None,
            date: self.date(),
        })
    }

    async fn get(&self, key: &Key, options: GetOptions) -> Result<GetReply, StoreError> {
        let target = key.clone();
        let (file, meta) = self
            .run("get", key, move |inner| find(&inner.tree, &target))
            .await?;
        let date = self.date();
        let Some(range) = options.evaluate(key, &meta.etag, meta.size_bytes)? else {
            return Ok(GetReply::NotModified { date });
        };
        Ok(GetReply::Found(Object {
            meta,
            range: range.clone(),
            body: content::stream(key.clone(), file, range),
            date,
        }))
    }

    async fn head(&self, key: &Key) -> Result<Head, StoreError> {
        let target = key.clone();
        let (_, meta) = self
            .run("head", key, move |inner| find(&inner.tree, &target))
            .await?;
        Ok(Head {
            meta,
            date: self.date(),
        })
    }

    async fn list(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        // Before the walk: what is younger may be missing from the page.
        let date = self.date();
        let wanted = request.clone();
        let page = self
            .run("list", &request.prefix, move |inner| {
                let begin = |lower: &_| {
                    Walk::new(&inner.tree, &wanted.prefix, lower)
                        .map_err(|fault| fault.at("list", &wanted.prefix))
                };
                Ok(listing::assemble(&wanted, begin))
            })
            .await??;
        Ok(ListPage { date, ..page })
    }

    async fn delete(&self, key: &Key, fence: DeleteFence) -> Result<DeleteReceipt, StoreError> {
        let target = key.clone();
        self.run("delete", key, move |inner| {
            publish::delete(&inner.tree, &target, &fence)
        })
        .await?;
        Ok(DeleteReceipt { date: self.date() })
    }

    async fn create_upload(&self, key: &Key) -> Result<Upload, StoreError> {
        let target = key.clone();
        let upload_id = self
            .run("create upload", key, move |inner| {
                upload::begin(&inner.tree, &inner.ids, &target, inner.clock.now())
            })
            .await?;
        Ok(Upload {
            key: key.clone(),
            upload_id,
        })
    }

    async fn put_part(
        &self,
        upload: &Upload,
        number: u32,
        payload: Payload,
    ) -> Result<Part, StoreError> {
        listing::check_part_number(upload, number)?;
        let target = upload.clone();
        self.run("put part", &upload.key, move |inner| {
            let (tree, now) = (&inner.tree, inner.clock.now());
            upload::put_part(tree, &inner.ids, &target, number, &payload, now)
        })
        .await
    }

    async fn complete_upload(
        &self,
        upload: &Upload,
        parts: &[Part],
    ) -> Result<PutReceipt, StoreError> {
        listing::check_part_order(upload, parts)?;
        let (target, parts) = (upload.clone(), parts.to_vec());
        let etag = self
            .run("complete upload", &upload.key, move |inner| {
                let now = inner.clock.now();
                upload::complete(&inner.tree, &inner.ids, &target, &parts, now)
            })
            .await?;
        Ok(PutReceipt {
            etag,
            version_id: None,
            checksum: None,
            date: self.date(),
        })
    }

    async fn abort_upload(&self, upload: &Upload) -> Result<(), StoreError> {
        let target = upload.clone();
        self.run("abort upload", &upload.key, move |inner| {
            upload::abort(&inner.tree, &target)
        })
        .await
    }

    async fn list_uploads(&self, continuation: Option<&str>) -> Result<UploadPage, StoreError> {
        let date = self.date();
        let uploads = self
            .run("list uploads", "", |inner| upload::list(&inner.tree))
            .await?;
        let page = listing::assemble_uploads(uploads, continuation)?;
        Ok(UploadPage { date, ..page })
    }

    async fn versioning(&self) -> Result<Versioning, StoreError> {
        Ok(Versioning::NeverEnabled)
    }

    async fn list_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        listing::versions_of_unversioned(self, prefix, continuation).await
    }

    async fn put_probe(
        &self,
        key: &Key,
        probe: ProbePut,
        mode: PutMode,
    ) -> Result<PutReceipt, StoreError> {
        if probe.claimed_crc32.is_some() {
            // Nothing travels, so there is no checksum to verify: reads do that.
            let detail = "a directory takes no checksums";
            let kind = StoreErrorKind::NotImplemented;
            return Err(StoreError::new(kind, "put", key, detail));
        }
        self.put(key, probe.arrive().await, mode).await
    }
}

#[cfg(test)]
mod tests;
