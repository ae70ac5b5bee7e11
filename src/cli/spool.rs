//! A directory for outputs that could not be sent because the service is away.
//!
//! Each entry is one file: a line of JSON that says where it goes, then the bytes. It is sent later under the
//! path and the call id that it was kept with, so that a save whose reply was lost is not made twice.
//! `clients/python/spillbox_client.py` has the same form; the two may share a directory.
//!
//! Invariants: the directory is 0700, files are 0600. Who keeps or removes an entry holds the lock of the
//! directory, so that the cap is looked at and used in one step. Who sends an entry holds the lock of its
//! file, so that each is sent by one process. Locks end with their process.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use crate::cli::connection::Variables;
use crate::clock::{Clock, SystemClock};
use crate::http::api_path::ApiPath;
use crate::ids::{IdSource, SystemIds};
use crate::limits::DEFAULT_SPOOL_BYTES;

pub mod drain;

/// Ends the name of an entry that waits.
const WAITING: &str = "ready";
/// Ends the name of an entry that the service refused for good.
const REFUSED: &str = "refused";
/// An entry that is being written. One is written at a time, so what is there belongs to a process that died.
const PART: &str = "part";

/// Where outputs wait while the service is away.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SpoolArgs {
    /// Where outputs wait while the service is away [env: SPILLBOX_SPOOL]
    /// [default: $XDG_STATE_HOME/spillbox/spool]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// The most that waits there, in bytes; 0 keeps nothing [env: SPILLBOX_SPOOL_BYTES]
    /// [default: 268435456]
    #[arg(long, value_name = "N")]
    pub spool_bytes: Option<u64>,
}

/// The spool of one service.
#[derive(Debug, Clone)]
pub struct Spool {
    directory: PathBuf,
    most_bytes: u64,
    /// The service that its entries are for.
    url: String,
}

/// The first line of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Path and query of the save.
    path: String,
    /// The service; whoever finds none here knows where the directory's entries go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// Nothing was kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There is no room.
    #[error("the spool may hold {most_bytes} bytes, and this would be over")]
    Full {
        /// The cap.
        most_bytes: u64,
    },
    /// The file system's.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Spool {
    /// Returns the spool that a command uses for the service at `url`; `None` where it is turned off, or
    /// where there is no place for one.
    pub fn of(args: &SpoolArgs, variables: &Variables, url: &str) -> Option<Self> {
        let most_bytes = args.spool_bytes.or(variables.spool_bytes);
        let named = args.spool.clone().or_else(|| variables.spool.clone());
        let default = || Some(variables.state_home.as_ref()?.join("spillbox/spool"));
        let spool = Self {
            directory: named.or_else(default)?,
            most_bytes: most_bytes.unwrap_or(DEFAULT_SPOOL_BYTES),
            url: url.to_owned(),
        };
        (spool.most_bytes > 0).then_some(spool)
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps `size_bytes` of a body for the save at `path`. It is durable when this returns.
    ///
    /// # Errors
    /// There is no room, or the directory cannot be used; nothing was kept.
    pub fn keep(
        &self,
        path: &ApiPath,
        body: &mut dyn Read,
        size_bytes: u64,
    ) -> Result<(), KeepError> {
        self.make_directory()?;
        let head = Head {
            path: path.as_str().to_owned(),
            url: Some(self.url.clone()),
        };
        let mut head = serde_json::to_vec(&head).map_err(io::Error::other)?;
        head.push(b'\n');
        let _lock = lock(&self.directory)?;
        let more_bytes = size_bytes.saturating_add(head.len() as u64);
        if !fits(self.used_bytes()?, more_bytes, self.most_bytes) {
            let most_bytes = self.most_bytes;
            return Err(KeepError::Full { most_bytes });
        }
        let part = self.directory.join(PART);
        // Removed and made anew: what lies there may be anything.
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let mut file = create(&part)?;
        file.write_all(&head)?;
        let copied = io::copy(&mut body.take(size_bytes), &mut file)?;
        if copied != size_bytes {
            let _ = std::fs::remove_file(&part);
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        file.sync_all()?;
        std::fs::rename(&part, self.directory.join(entry_name()))?;
        File::open(&self.directory)?.sync_all()?;
        Ok(())
    }

    /// Keeps a body that is in memory.
    ///
    /// # Errors
    /// See [`Spool::keep`].
    pub async fn keep_bytes(&self, path: &ApiPath, body: Vec<u8>) -> Result<(), KeepError> {
        let (spool, path) = (self.clone(), path.clone());
        blocking(move || spool.keep(&path, &mut body.as_slice(), body.len() as u64)).await
    }

    fn make_directory(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        // Fails where it is somebody else's.
        std::fs::set_permissions(&self.directory, Permissions::from_mode(0o700))
    }

    fn used_bytes(&self) -> io::Result<u64> {
        let mut used: u64 = 0;
        for path in self.entries(&[WAITING, REFUSED])? {
            used = used.saturating_add(path.symlink_metadata()?.len());
        }
        Ok(used)
    }

    /// Returns the entries of these kinds, the oldest first; none where there is no directory.
    fn entries(&self, kinds: &[&str]) -> io::Result<Vec<PathBuf>> {
        let listed = match std::fs::read_dir(&self.directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut paths = Vec::new();
        for entry in listed {
            let path = entry?.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            if kind.is_some_and(|kind| kinds.contains(&kind)) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

/// Makes a call id for an output that has none, so that the same save can be tried twice.
pub fn fresh_call_id(command: &str) -> String {
    let id = SystemIds::default().uuid(SystemClock.now());
    format!("{command}-{id}")
}

/// Decides whether an entry may be added.
fn fits(used_bytes: u64, more_bytes: u64, most_bytes: u64) -> bool {
    used_bytes.saturating_add(more_bytes) <= most_bytes
}

/// Names sort by time, so that what waits longest is sent first.
fn entry_name() -> String {
    let now = SystemClock.now();
    let id = SystemIds::default().uuid(now).simple();
    format!("{:020}-{id}.{WAITING}", now.as_nanosecond().max(0))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

/// Takes the lock of a directory, or waits for it; it ends with the returned file.
fn lock(directory: &Path) -> io::Result<File> {
    let file = File::open(directory)?;
    file.lock()?;
    Ok(file)
}

/// Everything of an output that is on its way, for the case that it does not arrive: a file without a
/// name, so that nothing is left of it, however the process ends.
#[derive(Debug)]
pub struct SpoolCopy {
    spool: Spool,
    /// `None` once there is more than the spool may hold, or it could not be written.
    file: Option<tokio::fs::File>,
    size_bytes: u64,
}

impl SpoolCopy {
    /// Begins with nothing. Where the directory cannot be used, nothing will be kept.
    pub fn start(spool: Spool) -> Self {
        let file = spool.make_directory().and_then(|()| {
            let path = spool.directory.join(format!("{}.copy", entry_name()));
            let file = create(&path)?;
            std::fs::remove_file(&path)?;
            Ok(tokio::fs::File::from_std(file))
        });
        Self {
            spool,
            file: file.ok(),
            size_bytes: 0,
        }
    }

    /// Adds the next bytes.
    pub async fn push(&mut self, piece: &[u8]) {
        self.size_bytes += piece.len() as u64;
        let fits = fits(0, self.size_bytes, self.spool.most_bytes);
        let Some(file) = self.file.as_mut().filter(|_| fits) else {
            self.file = None;
            return;
        };
        if file.write_all(piece).await.is_err() {
            self.file = None;
        }
    }

    /// Keeps what was added for the save at `path`.
    ///
    /// # Errors
    /// See [`Spool::keep`].
    pub async fn keep(self, path: ApiPath) -> Result<(), KeepError> {
        let Self {
            spool,
            file,
            size_bytes,
        } = self;
        let most_bytes = spool.most_bytes;
        let Some(mut file) = file else {
            return Err(KeepError::Full { most_bytes });
        };
        file.flush().await?;
        let mut file = file.into_std().await;
        blocking(move || {
            file.seek(SeekFrom::Start(0))?;
            spool.keep(&path, &mut file, size_bytes)
        })
        .await
    }
}

/// Runs what waits for a disk or a lock.
async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}

#[cfg(test)]
mod tests;
