//! The bucket: a map of keys to versions, behind one mutex of the server.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// Whether the bucket keeps versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum BucketVersioning {
    #[default]
    Never,
    Enabled,
    Suspended,
}

/// One version of an object, or a delete marker.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) id: String,
    pub(crate) is_marker: bool,
    pub(crate) bytes: Bytes,
    /// Without quotes; equal bytes have equal ETags, as on every real server.
    pub(crate) etag: String,
    /// The base64 CRC-32, where the writer sent one.
    pub(crate) crc32: Option<String>,
    pub(crate) modified: Timestamp,
}

#[derive(Debug, Clone)]
pub(crate) struct UploadedPart {
    pub(crate) bytes: Bytes,
    pub(crate) etag: String,
    pub(crate) crc32: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Uploading {
    pub(crate) key: String,
    pub(crate) initiated: Timestamp,
    pub(crate) parts: BTreeMap<i32, UploadedPart>,
}

/// All that the server keeps.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// Newest version last.
    pub(crate) objects: BTreeMap<String, Vec<Version>>,
    pub(crate) uploads: BTreeMap<String, Uploading>,
    pub(crate) versioning: BucketVersioning,
    pub(crate) issued: u64,
}

pub(crate) fn etag_of(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..16])
}

impl Bucket {
    /// Issues an id that sorts by age.
    pub(crate) fn issue(&mut self, kind: char) -> String {
        self.issued += 1;
        format!("{kind}{:010}", self.issued)
    }

    /// The version that a plain read sees.
    pub(crate) fn current(&self, key: &str) -> Option<&Version> {
        let newest = self.objects.get(key)?.last()?;
        (!newest.is_marker).then_some(newest)
    }

    pub(crate) fn version(&self, key: &str, id: &str) -> Option<&Version> {
        self.objects
            .get(key)?
            .iter()
            .find(|version| version.id == id)
    }

    /// Makes `version` the current one; answers its id where the bucket has or had versions.
    pub(crate) fn write(&mut self, key: &str, mut version: Version) -> Option<String> {
        let versioning = self.versioning;
        version.id = match versioning {
            BucketVersioning::Enabled => self.issue('v'),
            BucketVersioning::Never | BucketVersioning::Suspended => "null".to_owned(),
        };
        let id = version.id.clone();
        let versions = self.objects.entry(key.to_owned()).or_default();
        match versioning {
            BucketVersioning::Never => versions.clear(),
            BucketVersioning::Enabled => {}
            BucketVersioning::Suspended => versions.retain(|old| old.id != "null"),
        }
        versions.push(version);
        (versioning != BucketVersioning::Never).then_some(id)
    }

    /// A delete without a version: removes, or puts a marker on top.
    pub(crate) fn remove(&mut self, key: &str, now: Timestamp) {
        if self.versioning == BucketVersioning::Never {
            self.objects.remove(key);
            return;
        }
        let marker = Version {
            id: String::new(),
            is_marker: true,
            bytes: Bytes::new(),
            etag: String::new(),
            crc32: None,
            modified: now,
        };
        self.write(key, marker);
    }

    pub(crate) fn remove_version(&mut self, key: &str, id: &str) {
        let Some(versions) = self.objects.get_mut(key) else {
            return;
        };
        versions.retain(|version| version.id != id);
        if versions.is_empty() {
            self.objects.remove(key);
        }
    }
}
