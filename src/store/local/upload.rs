//! Multipart uploads: a directory per upload, a file per part.
//!
//! `uploads/@{id}/` appears whole (it is made under `tmp/` and renamed), with the file `key` that says
//! what it will become and since when. `key` goes last, so that an upload whose removal was cut short
//! is listed still.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use jiff::Timestamp;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::ids::SharedIds;
use crate::limits::LOCAL_PIECE_BYTES;
use crate::store::keys::Key;
use crate::store::listing::wrong_part;
use crate::store::local::content::etag_of;
use crate::store::local::fault::Fault;
use crate::store::local::publish::{TemporaryFile, publish};
use crate::store::local::tree::{
    ATTEMPTS, MARK, TEMPORARY, Tree, UPLOADS, contended, create_directory, create_file, enter,
    entries, modified, open_file, seal,
};
use crate::store::{ETag, ListedUpload, Part, Payload, PutMode, StoreErrorKind, Upload};

const KEY_FILE: &str = "key";
/// No key is longer; what is, is not ours.
const MAX_KEY_BYTES: u64 = 512;

fn directory_name(upload_id: &str) -> String {
    format!("{MARK}{upload_id}")
}

fn part_name(number: u32) -> String {
    format!("part-{number:05}")
}

fn no_upload(upload: &Upload) -> Fault {
    let detail = format!("no upload `{}`", upload.upload_id);
    Fault::new(StoreErrorKind::NotFound, detail)
}

/// Begins an upload; returns its id.
pub(super) fn begin(
    tree: &Tree,
    ids: &SharedIds,
    key: &Key,
    now: Timestamp,
) -> Result<String, Fault> {
    let temporary = tree.make_directory(TEMPORARY)?;
    let uploads = tree.make_directory(UPLOADS)?;
    for _ in 0..ATTEMPTS {
        let id = ids.uuid(now).simple().to_string();
        let name = directory_name(&id);
        if !create_directory(&temporary, &name)? {
            continue;
        }
        let begun = fill(&temporary, &name, key, now).and_then(|()| {
            match rustix::fs::renameat(&temporary, &name, &uploads, &name) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(false),
                Err(errno) => Err(errno.into()),
            }
        });
        if let Ok(true) = begun {
            rustix::fs::fsync(&uploads)?;
            return Ok(id);
        }
        // What cannot be removed now is swept later.
        let _ = remove(&temporary, &name);
        begun?;
    }
    Err(contended(UPLOADS))
}

fn fill(temporary: &OwnedFd, name: &str, key: &Key, now: Timestamp) -> Result<(), Fault> {
    let directory = enter(temporary, name)?.ok_or_else(|| contended(TEMPORARY))?;
    let mut file = create_file(&directory, KEY_FILE)?.ok_or_else(|| contended(TEMPORARY))?;
    file.write_all(key.as_str().as_bytes())?;
    seal(&mut file, now)?;
    rustix::fs::fsync(&directory)?;
    Ok(())
}

/// Opens an upload's directory, if it is there and is this key's.
fn open(tree: &Tree, upload: &Upload) -> Result<OwnedFd, Fault> {
    // The id comes from outside; only what we make may become part of a path.
    let is_ours = uuid::Uuid::try_parse(&upload.upload_id)
        .is_ok_and(|id| id.simple().to_string() == upload.upload_id);
    let uploads = tree.directory(UPLOADS)?.filter(|_| is_ours);
    let directory = match uploads {
        Some(uploads) => enter(&uploads, &directory_name(&upload.upload_id))?,
        None => None,
    };
    let directory = directory.ok_or_else(|| no_upload(upload))?;
    match read_key(&directory)? {
        Some((key, _)) if key == upload.key.as_str() => Ok(directory),
        Some(_) | None => Err(no_upload(upload)),
    }
}

fn read_key(directory: &OwnedFd) -> Result<Option<(String, Timestamp)>, Fault> {
    let Some((file, stat)) = open_file(directory, KEY_FILE)? else {
        return Ok(None);
    };
    let mut text = String::new();
    file.take(MAX_KEY_BYTES).read_to_string(&mut text)?;
    Ok(Some((text, modified(&stat))))
}

/// Keeps one part, replacing an earlier one of its number.
pub(super) fn put_part(
    tree: &Tree,
    ids: &SharedIds,
    upload: &Upload,
    number: u32,
    payload: &Payload,
    now: Timestamp,
) -> Result<Part, Fault> {
    let directory = open(tree, upload)?;
    let mut temporary = TemporaryFile::create(tree, ids, now)?;
    temporary.write(payload)?;
    let etag = temporary.seal(now)?;
    if !temporary.rename(&directory, &part_name(number))? {
        return Err(no_upload(upload));
    }
    Ok(Part {
        number,
        etag,
        crc32: payload.crc32(),
        size_bytes: payload.size_bytes(),
    })
}

/// Joins the parts into the object and removes the upload; returns the object's ETag.
pub(super) fn complete(
    tree: &Tree,
    ids: &SharedIds,
    upload: &Upload,
    parts: &[Part],
    now: Timestamp,
) -> Result<ETag, Fault> {
    let directory = open(tree, upload)?;
    let mut temporary = TemporaryFile::create(tree, ids, now)?;
    for part in parts {
        let is_same = match open_file(&directory, &part_name(part.number))? {
            Some((file, _)) => append(&mut temporary.file, file, part)?,
            None => false,
        };
        if !is_same {
            let error = wrong_part(upload, part.number);
            return Err(Fault::new(error.kind, error.detail));
        }
    }
    let etag = temporary.seal(now)?;
    publish(tree, &upload.key, temporary, &PutMode::Overwrite)?;
    // The object is there; what is left of the upload is the collector's to abort.
    let _ = abort(tree, upload);
    Ok(etag)
}

/// Copies a part; returns whether it is the one that `expected` names, whole.
fn append(to: &mut File, mut part: File, expected: &Part) -> Result<bool, Fault> {
    let size_bytes = part.metadata()?.len();
    if size_bytes != expected.size_bytes || etag_of(&part, size_bytes)? != expected.etag {
        return Ok(false);
    }
    let mut crc32 = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc);
    let mut buffer = vec![0; LOCAL_PIECE_BYTES];
    let mut copied = 0;
    loop {
        let length = part.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        crc32.update(&buffer[..length]);
        to.write_all(&buffer[..length])?;
        copied += length as u64;
    }
    Ok(copied == expected.size_bytes && crc32.finalize() == u64::from(expected.crc32))
}

/// Removes an upload; an absent one is success.
pub(super) fn abort(tree: &Tree, upload: &Upload) -> Result<(), Fault> {
    match open(tree, upload) {
        Ok(_) => {}
        Err(fault) if fault.is(StoreErrorKind::NotFound) => return Ok(()),
        Err(fault) => return Err(fault),
    }
    let uploads = tree.make_directory(UPLOADS)?;
    remove(&uploads, &directory_name(&upload.upload_id))?;
    rustix::fs::fsync(&uploads)?;
    Ok(())
}

/// Removes a directory of files, `key` last; a part that lands meanwhile is removed too.
pub(super) fn remove(parent: &OwnedFd, name: &str) -> Result<(), Fault> {
    for _ in 0..ATTEMPTS {
        let Some(directory) = enter(parent, name)? else {
            return Ok(());
        };
        let mut names = Vec::new();
        for entry in entries(&directory)? {
            let entry = entry?;
            if entry.file_type() != FileType::Directory {
                names.push(entry.file_name().to_owned());
            }
        }
        names.sort_unstable_by_key(|name| name.as_bytes() == KEY_FILE.as_bytes());
        for name in names {
            ignore_absent(rustix::fs::unlinkat(&directory, &name, AtFlags::empty()))?;
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            result => return ignore_absent(result),
        }
    }
    Err(contended(name))
}

fn ignore_absent(result: Result<(), Errno>) -> Result<(), Fault> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Lists all unfinished uploads, in no order.
pub(super) fn list(tree: &Tree) -> Result<Vec<ListedUpload>, Fault> {
    let mut uploads = Vec::new();
    let Some(parent) = tree.directory(UPLOADS)? else {
        return Ok(uploads);
    };
    for entry in entries(&parent)? {
        let entry = entry?;
        let Some(upload_id) = entry
            .file_name()
            .to_str()
            .ok()
            .and_then(|n| n.strip_prefix(MARK))
        else {
            continue;
        };
        let Some(directory) = enter(&parent, &directory_name(upload_id))? else {
            continue;
        };
        match read_key(&directory)? {
            Some((key, initiated)) => uploads.push(ListedUpload {
                key,
                upload_id: upload_id.to_owned(),
                initiated: Some(initiated),
            }),
            // Its removal was cut short, or is under way, before the last step.
            None => {
                let _ = remove(&parent, &directory_name(upload_id));
            }
        }
    }
    Ok(uploads)
}
