//! How an object appears, changes and goes: at once or not at all, and durably.
//!
//! A file is written under `tmp/`, synced, and then gets its name by one system call: a hard link,
//! which fails where the name is taken, or a rename, which replaces. Everything that changes or takes
//! away a name that exists holds the key's lock meanwhile, so that "compare, then rename" is one step
//! for every process of this host. A creation needs no lock: a link can only succeed where the name
//! is free, and the holder of the lock never leaves it free in between.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use jiff::Timestamp;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::ids::SharedIds;
use crate::store::keys::Key;
use crate::store::local::content::etag_of;
use crate::store::local::fault::Fault;
use crate::store::local::tree::{
    ATTEMPTS, MARK, TEMPORARY, Tree, contended, create_file, open_file, place, seal,
};
use crate::store::{DeleteFence, ETag, Payload, PutMode, StoreErrorKind};

/// A file under `tmp/`; dropping it removes it, so that a failed write leaves nothing.
#[derive(Debug)]
pub(super) struct TemporaryFile {
    directory: OwnedFd,
    name: String,
    pub(super) file: File,
    is_renamed: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            // What cannot be removed now is swept later.
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

impl TemporaryFile {
    pub(super) fn create(tree: &Tree, ids: &SharedIds, now: Timestamp) -> Result<Self, Fault> {
        let directory = tree.make_directory(TEMPORARY)?;
        for _ in 0..ATTEMPTS {
            let name = format!("{MARK}{}", ids.uuid(now).simple());
            if let Some(file) = create_file(&directory, &name)? {
                return Ok(Self {
                    directory,
                    name,
                    file,
                    is_renamed: false,
                });
            }
        }
        Err(contended(TEMPORARY))
    }

    pub(super) fn write(&mut self, payload: &Payload) -> Result<(), Fault> {
        for segment in payload.segments() {
            self.file.write_all(segment)?;
        }
        Ok(())
    }

    /// Ends the writing; returns the ETag of what was written.
    pub(super) fn seal(&mut self, now: Timestamp) -> Result<ETag, Fault> {
        seal(&mut self.file, now)?;
        let size_bytes = self.file.metadata()?.len();
        Ok(etag_of(&self.file, size_bytes)?)
    }

    /// Takes the place of `name`, whatever has it; `false` where the directory itself is gone.
    pub(super) fn rename(&mut self, directory: &OwnedFd, name: &str) -> Result<bool, Fault> {
        match rustix::fs::renameat(&self.directory, &self.name, directory, name) {
            Ok(()) => self.is_renamed = true,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        sync(directory)?;
        Ok(true)
    }
}

/// Makes what was done in a directory last.
fn sync(directory: &OwnedFd) -> Result<(), Fault> {
    rustix::fs::fsync(directory).map_err(|errno| Fault::from(errno).after_publishing())
}

/// Gives a sealed file the key's name, under the condition of `mode`.
pub(super) fn publish(
    tree: &Tree,
    key: &Key,
    temporary: TemporaryFile,
    mode: &PutMode,
) -> Result<(), Fault> {
    match mode {
        PutMode::CreateIfAbsent => create(tree, key, &temporary),
        PutMode::ReplaceIfMatch(etag) => replace(tree, key, temporary, Some(etag)),
        PutMode::Overwrite => replace(tree, key, temporary, None),
    }
}

fn create(tree: &Tree, key: &Key, temporary: &TemporaryFile) -> Result<(), Fault> {
    let (path, name) = place(key);
    for _ in 0..ATTEMPTS {
        let directory = tree.make_directory(path)?;
        let from = (&temporary.directory, &temporary.name);
        match rustix::fs::linkat(from.0, from.1, &directory, &name, AtFlags::empty()) {
            Ok(()) => return sync(&directory),
            Err(Errno::NOENT) => {}
            Err(Errno::EXIST) => {
                let found = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW);
                let is_object = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
                if found.is_ok_and(|stat| !is_object(stat.st_mode)) {
                    return Err(Fault::foreign(&name));
                }
                // The caller will believe what is there, so that must outlast a power failure too,
                // and its writer may not have come so far yet.
                rustix::fs::fsync(&directory)?;
                let kind = StoreErrorKind::AlreadyExists;
                return Err(Fault::new(kind, "the key is taken"));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(contended(path))
}

fn replace(
    tree: &Tree,
    key: &Key,
    mut temporary: TemporaryFile,
    expected: Option<&ETag>,
) -> Result<(), Fault> {
    let (path, name) = place(key);
    let _lock = tree.lock(key)?;
    for _ in 0..ATTEMPTS {
        let directory = match expected {
            Some(_) => tree.directory(path)?.ok_or_else(unmatched)?,
            None => tree.make_directory(path)?,
        };
        // Opened without a condition too: a planted link must not be replaced as if it were ours.
        let current = open_file(&directory, &name)?;
        if let Some(expected) = expected {
            compare(current, expected)?;
        }
        if temporary.rename(&directory, &name)? {
            return Ok(());
        }
    }
    Err(contended(path))
}

/// Takes an object away. Fences by version are refused before this.
pub(super) fn delete(tree: &Tree, key: &Key, fence: &DeleteFence) -> Result<(), Fault> {
    let expected = match fence {
        DeleteFence::None => None,
        DeleteFence::IfMatch(etag) => Some(etag),
        DeleteFence::Version(_) => {
            let detail = "a version cannot be deleted where versioning was never enabled";
            return Err(Fault::new(StoreErrorKind::Rejected, detail));
        }
    };
    let (path, name) = place(key);
    let _lock = tree.lock(key)?;
    let Some(directory) = tree.directory(path)? else {
        return expected.map_or(Ok(()), |_| Err(unmatched()));
    };
    let current = open_file(&directory, &name)?;
    let is_absent = current.is_none();
    if let Some(expected) = expected {
        compare(current, expected)?;
    }
    if is_absent {
        return Ok(());
    }
    rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?;
    sync(&directory)?;
    tree.prune(path);
    Ok(())
}

fn compare(current: Option<(File, rustix::fs::Stat)>, expected: &ETag) -> Result<(), Fault> {
    let (file, _) = current.ok_or_else(unmatched)?;
    let size_bytes = file.metadata()?.len();
    if etag_of(&file, size_bytes)? == *expected {
        return Ok(());
    }
    Err(unmatched())
}

fn unmatched() -> Fault {
    let detail = "the key is absent or its ETag is another";
    Fault::new(StoreErrorKind::PreconditionFailed, detail)
}
