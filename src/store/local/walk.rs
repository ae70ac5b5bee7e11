//! The keys of a directory tree in S3's order, from any key on, without visiting what lies before.
//!
//! The order is the one of whole keys as bytes, which is not the one of path components: `d-x` comes
//! before `d/e`, because `-` comes before `/`. So a directory sorts as its name with the slash.

use std::ops::Bound;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::store::keys::Key;
use crate::store::listing::SortedKeys;
use crate::store::local::content::etag_of;
use crate::store::local::fault::Fault;
use crate::store::local::tree::{MARK, Tree, enter, entries, modified, open_file};
use crate::store::{ETag, Listed, StoreError, UNREADABLE_ETAG};

/// A walk over the keys that begin with a prefix.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    prefix: &'a str,
    /// From the outermost directory to the one that is being listed.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    directory: OwnedFd,
    /// Empty, or the directory's path with a slash at its end.
    base: String,
    /// Names still to come, the next one last; a directory's ends in a slash.
    names: Vec<String>,
}

impl<'a> Walk<'a> {
    /// Begins at the innermost directory that the prefix names whole.
    pub(super) fn new(tree: &Tree, prefix: &'a str, lower: &Bound<String>) -> Result<Self, Fault> {
        let mut walk = Self {
            prefix,
            levels: Vec::new(),
        };
        let path = prefix.rsplit_once('/').map_or("", |(path, _)| path);
        let base = &prefix[..prefix.rfind('/').map_or(0, |at| at + 1)];
        let can_exist = base.is_empty() || Key::parse(path).is_ok();
        if can_exist && let Some(directory) = tree.directory(path)? {
            walk.enter(directory, base.to_owned(), lower)?;
        }
        Ok(walk)
    }

    fn enter(
        &mut self,
        directory: OwnedFd,
        base: String,
        lower: &Bound<String>,
    ) -> Result<(), Fault> {
        let mut names = Vec::new();
        for entry in entries(&directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let segment = name.strip_suffix(MARK);
            if Key::parse(segment.unwrap_or(name)).is_err() {
                continue;
            }
            let mut kind = entry.file_type();
            if kind == FileType::Unknown {
                match kind_of(&directory, name)? {
                    Some(found) => kind = found,
                    None => continue,
                }
            }
            let name = match segment {
                Some(_) if kind == FileType::Directory => continue,
                Some(segment) => segment.to_owned(),
                // A link where a directory of ours may stand is tried, and fails the listing: what
                // it hides must not look absent.
                None if matches!(kind, FileType::Directory | FileType::Symlink) => {
                    format!("{name}/")
                }
                None => continue,
            };
            if may_match(self.prefix, &format!("{base}{name}"), lower) {
                names.push(name);
            }
        }
        // Some file systems give a name twice when it is replaced while they are read.
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.dedup();
        self.levels.push(Level {
            directory,
            base,
            names,
        });
        Ok(())
    }

    fn advance(&mut self, lower: &Bound<String>) -> Result<Option<String>, Fault> {
        while let Some(level) = self.levels.last_mut() {
            let Some(name) = level.names.pop() else {
                self.levels.pop();
                continue;
            };
            let text = format!("{}{name}", level.base);
            // Checked again: the bound may have risen since the directory was read.
            if !may_match(self.prefix, &text, lower) {
                continue;
            }
            let Some(name) = name.strip_suffix('/') else {
                return Ok(Some(text));
            };
            // Gone since its parent was read: then it was empty.
            if let Some(directory) = enter(&level.directory, name)? {
                self.enter(directory, text, lower)?;
            }
        }
        Ok(None)
    }

    fn look(&self, key: &str) -> Result<Option<Listed>, Fault> {
        let Some(level) = self.levels.last() else {
            return Ok(None);
        };
        let name = format!("{}{MARK}", key.rsplit('/').next().unwrap_or(key));
        let (size_bytes, etag, stat) = match open_file(&level.directory, &name) {
            Ok(None) => return Ok(None),
            Ok(Some((file, stat))) => {
                let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
                (size_bytes, etag_of(&file, size_bytes)?, stat)
            }
            Err(fault) => {
                let stat =
                    match rustix::fs::statat(&level.directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat)
                            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile =>
                        {
                            stat
                        }
                        Err(Errno::NOENT) => return Ok(None),
                        Ok(_) | Err(_) => return Err(fault),
                    };
                (0, ETag(UNREADABLE_ETAG.to_owned()), stat)
            }
        };
        Ok(Some(Listed {
            key: key.to_owned(),
            size_bytes,
            etag,
            last_modified: modified(&stat),
        }))
    }
}

impl SortedKeys for Walk<'_> {
    fn next(&mut self, lower: &Bound<String>) -> Result<Option<String>, StoreError> {
        self.advance(lower)
            .map_err(|fault| fault.at("list", self.prefix))
    }

    fn describe(&mut self, key: &str) -> Result<Option<Listed>, StoreError> {
        self.look(key).map_err(|fault| fault.at("list", key))
    }
}

/// Returns whether a key, or for a text that ends in a slash any key below it, can be wanted.
fn may_match(prefix: &str, text: &str, lower: &Bound<String>) -> bool {
    let is_directory = text.ends_with('/');
    let in_prefix = text.starts_with(prefix) || (is_directory && prefix.starts_with(text));
    let in_bound = match lower {
        Bound::Unbounded => true,
        Bound::Included(from) | Bound::Excluded(from) if is_directory => {
            text > from.as_str() || from.starts_with(text)
        }
        Bound::Included(from) => text >= from.as_str(),
        Bound::Excluded(from) => text > from.as_str(),
    };
    in_prefix && in_bound
}

fn kind_of(directory: &OwnedFd, name: &str) -> Result<Option<FileType>, Fault> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests;
