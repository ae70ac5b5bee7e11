//! The bytes of an object file: its ETag, and reading it in pieces.
//!
//! Why the ETag does not cover large files whole: a listing gives an ETag for every key, and reading
//! every body for it would turn a listing of a few kilobytes into a read of the whole store. Keys are
//! created once, with unique content, so that two versions of one key differ in their first or last
//! 64 KiB or in their size; damage in between is found by the digests that every read is verified
//! with, and before a body is deleted its SHA-256 is compared. The ETag depends on neither time nor
//! inode, so that a copied or restored store has the ETags that its manifests name.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::digest::{Sha256Digest, tagged_hash};
use crate::limits::{LOCAL_ETAG_END_BYTES, LOCAL_PIECE_BYTES};
use crate::store::keys::Key;
use crate::store::local::blocking;
use crate::store::local::fault::Fault;
use crate::store::{ByteStream, ETag, StoreErrorKind};

/// Returns the ETag of a file of `size_bytes`.
pub(super) fn etag_of(file: &File, size_bytes: u64) -> io::Result<ETag> {
    let end = LOCAL_ETAG_END_BYTES as u64;
    let digest = if size_bytes <= 2 * end {
        Sha256Digest::of(&read(file, 0..size_bytes)?)
    } else {
        let head = read(file, 0..end)?;
        let tail = read(file, size_bytes - end..size_bytes)?;
        let fields: [&[u8]; 3] = [&size_bytes.to_be_bytes(), &head, &tail];
        tagged_hash("spillbox local etag v1", &fields)
    };
    Ok(ETag(format!("\"{}\"", &digest.to_hex()[..32])))
}

/// Reads a range that lies inside the file; callers ask for a piece at most.
fn read(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(range.end - range.start).unwrap_or(LOCAL_PIECE_BYTES);
    let mut buffer = vec![0; length];
    file.read_exact_at(&mut buffer, range.start)?;
    Ok(buffer)
}

/// Streams a range of an open file. It keeps to the file that was opened, whatever takes its name.
pub(super) fn stream(key: Key, file: File, range: Range<u64>) -> ByteStream {
    let file = Arc::new(file);
    stream::try_unfold(range, move |rest| {
        let (key, file) = (key.clone(), Arc::clone(&file));
        async move {
            if rest.is_empty() {
                return Ok(None);
            }
            let end = rest.end.min(rest.start + LOCAL_PIECE_BYTES as u64);
            let start = rest.start;
            let work = move || {
                read(&file, start..end).map_err(|error| {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        let detail = "the file became shorter while it was read";
                        return Fault::new(StoreErrorKind::Rejected, detail);
                    }
                    error.into()
                })
            };
            let piece = blocking("get", &key, work).await?;
            Ok(Some((Bytes::from(piece), end..rest.end)))
        }
    })
    .into_stream()
    .boxed()
}
