//! The store's directory, entered one component at a time from one open root.
//!
//! Invariant: no path is ever resolved by name across a symbolic link. Each step is an `openat` of one
//! component with `O_NOFOLLOW`, so a link planted inside the store, as a file or as a directory, can
//! neither be read through nor written through, also when it is planted between two steps.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use crate::digest::Sha256Digest;
use crate::limits::LOCAL_LOCK_STRIPES;
use crate::store::StoreErrorKind;
use crate::store::keys::Key;
use crate::store::local::fault::Fault;

/// Ends the name of every object file. It stands outside the key alphabet, so that no key's directory
/// can be another key's file (`d` is `d@`, `d/e` is `d/e@`). What the store keeps for itself beside
/// objects begins with it, for the same reason.
pub(super) const MARK: char = '@';

/// Files being written; nothing in it is an object yet.
pub(super) const TEMPORARY: &str = "tmp";
/// Lock files, one per stripe of keys; never removed: who holds the lock of a removed file excludes
/// nobody.
const LOCKS: &str = "locks";
/// One directory per unfinished upload.
pub(super) const UPLOADS: &str = "uploads";

const DIRECTORY_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How often a step is tried again because another process took an empty directory away meanwhile.
pub(super) const ATTEMPTS: usize = 256;

/// The open root.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
}

/// Where a key's object is: a directory's path, and the file's name in it.
pub(super) fn place(key: &Key) -> (&str, String) {
    let (directory, name) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
    (directory, format!("{name}{MARK}"))
}

impl Tree {
    /// Opens the root, creating it where it is absent. The root itself may be reached by links: its
    /// path is the operator's.
    pub(super) fn open(root: &Path) -> Result<Self, Fault> {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        let tree = Self { root };
        for name in [TEMPORARY, LOCKS, UPLOADS] {
            tree.make_directory(name)?;
        }
        Ok(tree)
    }

    /// Opens a directory; `None` where it is absent.
    pub(super) fn directory(&self, path: &str) -> Result<Option<OwnedFd>, Fault> {
        let mut at = self.root.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Some(next) = enter(&at, name)? else {
                return Ok(None);
            };
            at = next;
        }
        Ok(Some(at))
    }

    /// Opens a directory, creating what is missing of its path.
    pub(super) fn make_directory(&self, path: &str) -> Result<OwnedFd, Fault> {
        for _ in 0..ATTEMPTS {
            if let Some(directory) = self.try_make_directory(path)? {
                return Ok(directory);
            }
        }
        Err(contended(path))
    }

    /// `None` where a directory on the way was taken away meanwhile.
    fn try_make_directory(&self, path: &str) -> Result<Option<OwnedFd>, Fault> {
        let mut at = self.root.try_clone()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let next = match enter(&at, name)? {
                Some(next) => next,
                None => {
                    match rustix::fs::mkdirat(&at, name, DIRECTORY_MODE) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(Errno::NOENT) => return Ok(None),
                        Err(errno) => return Err(errno.into()),
                    }
                    // Also where another made it: our object must not last less than its directory.
                    rustix::fs::fsync(&at)?;
                    match enter(&at, name)? {
                        Some(next) => next,
                        None => return Ok(None),
                    }
                }
            };
            at = next;
        }
        Ok(Some(at))
    }

    /// Takes away the directories on `path` that are empty, innermost first.
    pub(super) fn prune(&self, path: &str) {
        let mut path = path;
        while !matches!(path, "" | TEMPORARY | LOCKS | UPLOADS) {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let Ok(Some(directory)) = self.directory(parent) else {
                return;
            };
            // Best effort: an empty directory costs nothing but time.
            if rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR).is_err() {
                return;
            }
            path = parent;
        }
    }

    /// Waits for the lock of a key's stripe, which excludes every other process of this host too;
    /// dropping the file frees it.
    pub(super) fn lock(&self, key: &Key) -> Result<File, Fault> {
        let stripe = Sha256Digest::of(key.as_str().as_bytes()).as_bytes()[0] % LOCAL_LOCK_STRIPES;
        let directory = self.make_directory(LOCKS)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{MARK}{stripe:02x}");
        let file = File::from(rustix::fs::openat(&directory, name, flags, FILE_MODE)?);
        file.lock()?;
        Ok(file)
    }
}

/// Somebody else changes the same directories faster than we can follow.
pub(super) fn contended(path: &str) -> Fault {
    let detail = format!("`{path}` keeps disappearing while it is written to");
    Fault::new(StoreErrorKind::Unavailable, detail)
}

/// Opens a directory in a directory; `None` where it is absent.
pub(super) fn enter(at: impl AsFd, name: &str) -> Result<Option<OwnedFd>, Fault> {
    match rustix::fs::openat(at, name, DIRECTORY_FLAGS, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(Fault::foreign(name)),
        Err(errno) => Err(errno.into()),
    }
}

/// Begins to read a directory that was opened; one that was taken away meanwhile has no entries (only
/// an empty one can be).
pub(super) fn entries(
    directory: &OwnedFd,
) -> Result<impl Iterator<Item = Result<DirEntry, Errno>>, Fault> {
    match Dir::read_from(directory) {
        Ok(open) => Ok(Some(open).into_iter().flatten()),
        Err(Errno::NOENT) => Ok(None.into_iter().flatten()),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens a regular file for reading; `None` where it is absent.
pub(super) fn open_file(at: impl AsFd, name: &str) -> Result<Option<(File, Stat)>, Fault> {
    // NONBLOCK: a planted pipe must not hang its reader; regular files do not care.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NXIO) => return Err(Fault::foreign(name)),
        Err(errno) => return Err(errno.into()),
    };
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Fault::foreign(name));
    }
    Ok(Some((file, stat)))
}

/// Creates a file that nobody has; `None` where the name is taken.
pub(super) fn create_file(at: impl AsFd, name: &str) -> Result<Option<File>, Fault> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(at, name, flags, FILE_MODE) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::EXIST) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Creates a directory that nobody has; `false` where the name is taken.
pub(super) fn create_directory(at: impl AsFd, name: &str) -> Result<bool, Fault> {
    match rustix::fs::mkdirat(at, name, DIRECTORY_MODE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Ends the writing of a file: it bears the store's time and is on the disk.
pub(super) fn seal(file: &mut File, now: Timestamp) -> Result<(), Fault> {
    file.flush()?;
    // One clock for dates and ages: the kernel's idea of the time does not count.
    let time = Timespec {
        tv_sec: now.as_second(),
        tv_nsec: now.subsec_nanosecond().max(0).into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(&*file, &times)?;
    file.sync_all()?;
    Ok(())
}

/// Returns when a file was last modified.
pub(super) fn modified(stat: &Stat) -> Timestamp {
    let nanos = i32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Timestamp::new(stat.st_mtime, nanos).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns whether a file was last modified longer than `age` ago.
pub(super) fn is_older(stat: &Stat, now: Timestamp, age: Duration) -> bool {
    Duration::try_from(now.duration_since(modified(stat))).is_ok_and(|passed| passed > age)
}
