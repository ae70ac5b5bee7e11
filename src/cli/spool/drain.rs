//! Sending what waits on a spool.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use axum::body::Body;
use serde_json::Value;
use tokio_util::io::ReaderStream;

use super::{Head, REFUSED, Spool, WAITING, blocking, lock};
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::transport::Transport;
use crate::cli::upload::{Upload, media_type_of};
use crate::http::api_path::ApiPath;
use crate::limits::{SPOOL_DRAIN_ENTRIES, SPOOL_DRAIN_TIME};

/// The most of an entry's first line: a path with all that can be said of an output.
const MAX_HEAD_BYTES: u64 = 64 << 10;
/// What decides the media type.
const SAMPLE_BYTES: u64 = 8 << 10;
/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// What became of the entries.
#[derive(Debug, Default)]
pub struct Drained {
    /// Receipts of what is stored now.
    pub receipts: Vec<Value>,
    /// What the service refused; these stay on the spool and are sent again when asked for only.
    pub refused: Vec<(PathBuf, Failure)>,
    /// Entries that another process is sending, or that are for another service.
    pub passed_over: usize,
}

/// Which entries are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those that wait.
    Waiting,
    /// Those that were refused before as well.
    All,
}

/// An entry whose lock is held.
struct Claim {
    path: PathBuf,
    file: File,
    /// `None` where the file is no entry.
    head: Option<Head>,
    head_bytes: u64,
}

impl Claim {
    fn is_for(&self, url: &str) -> bool {
        let named = self.head.as_ref().and_then(|head| head.url.as_ref());
        named.is_none_or(|named| named == url)
    }
}

impl Spool {
    /// Sends up to `most` entries, the oldest first, each under the path that it was kept with.
    ///
    /// # Errors
    /// The service is still away, or does not know the caller; what was not sent stays.
    pub async fn drain(
        &self,
        transport: &Transport,
        which: Which,
        most: usize,
    ) -> Result<Drained, Failure> {
        let kinds: &[&str] = match which {
            Which::Waiting => &[WAITING],
            Which::All => &[WAITING, REFUSED],
        };
        let failed = |error: io::Error| self.failed(&error);
        let mut drained = Drained::default();
        for path in self.entries(kinds).map_err(failed)?.into_iter().take(most) {
            let claim = match claim(&path).map_err(failed)? {
                Some(claim) if claim.is_for(&self.url) => claim,
                Some(_) | None => {
                    drained.passed_over += 1;
                    continue;
                }
            };
            match claim.send(transport).await {
                Ok(receipt) => {
                    self.end(&claim, None).await.map_err(failed)?;
                    drained.receipts.push(receipt);
                }
                Err(failure) if failure.is_away || failure.is_about_the_caller() => {
                    return Err(failure);
                }
                Err(failure) => {
                    let to = claim.path.with_extension(REFUSED);
                    self.end(&claim, Some(to.clone())).await.map_err(failed)?;
                    drained.refused.push((to, failure));
                }
            }
        }
        Ok(drained)
    }

    /// Sends a little of what waits, after a request of another kind has shown that the service is there.
    /// Whoever waits for this command does not wait long for that, and hears only of what changed.
    pub async fn drain_some(&self, transport: &Transport) {
        let drain = self.drain(transport, Which::Waiting, SPOOL_DRAIN_ENTRIES);
        // What was sent and not finished is sent again, under the same call id.
        let Ok(Ok(drained)) = tokio::time::timeout(SPOOL_DRAIN_TIME, drain).await else {
            return;
        };
        if !drained.receipts.is_empty() {
            let count = drained.receipts.len();
            output::say(&format!(
                "note: stored now what waited on the spool: {count}"
            ));
        }
        for (path, failure) in &drained.refused {
            let path = path.display();
            output::say(&format!(
                "warning: {path} was refused and stays: {}",
                failure.message
            ));
        }
    }

    /// Takes a finished entry away, or gives it another name.
    async fn end(&self, claim: &Claim, to: Option<PathBuf>) -> io::Result<()> {
        let (directory, path) = (self.directory.clone(), claim.path.clone());
        blocking(move || {
            let _lock = lock(&directory)?;
            match to {
                Some(to) => std::fs::rename(path, to),
                None => std::fs::remove_file(path),
            }
        })
        .await
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::new(format!("the spool {}: {error}", self.directory.display()))
    }
}

/// Takes an entry, unless another process has it or had it.
fn claim(path: &Path) -> io::Result<Option<Claim>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
        Err(std::fs::TryLockError::Error(error)) => return Err(error),
    }
    // Between the opening and the lock another may have finished it.
    let there = path.symlink_metadata();
    let of_file = file.metadata()?;
    if there.is_err() || there.is_ok_and(|there| there.ino() != of_file.ino()) {
        return Ok(None);
    }
    let mut line = Vec::new();
    BufReader::new(Read::take(&file, MAX_HEAD_BYTES)).read_until(b'\n', &mut line)?;
    Ok(Some(Claim {
        path: path.to_owned(),
        head_bytes: line.len() as u64,
        head: serde_json::from_slice(&line).ok(),
        file,
    }))
}

impl Claim {
    async fn send(&self, transport: &Transport) -> Result<Value, Failure> {
        let failed = |error: io::Error| Failure::new(format!("{}: {error}", self.path.display()));
        let size_bytes = self.file.metadata().map_err(failed)?.len() - self.head_bytes;
        let mut file = self.file.try_clone().map_err(failed)?;
        let mut sample = Vec::new();
        file.seek(SeekFrom::Start(self.head_bytes))
            .and_then(|_| Read::take(&file, SAMPLE_BYTES).read_to_end(&mut sample))
            .and_then(|_| file.seek(SeekFrom::Start(self.head_bytes)))
            .map_err(failed)?;
        let path = self.head.as_ref();
        let path = path.and_then(|head| ApiPath::kept(&head.path));
        let body = ReaderStream::with_capacity(tokio::fs::File::from_std(file), READ_BYTES);
        let upload = Upload {
            path: path.ok_or_else(|| {
                Failure::new(format!("{} is no entry of a spool", self.path.display()))
            })?,
            media_type: media_type_of(&sample, sample.len() as u64 == size_bytes),
            size_bytes: Some(size_bytes),
            body: Body::from_stream(body),
        };
        Ok(upload.send(transport).await?.receipt)
    }
}
