//! The S3 operations over the bucket, with the quirks of the server that is played.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::TryStreamExt;
use jiff::Timestamp;
use s3s::dto::{ETag, ETagCondition, GetObjectInput, GetObjectOutput, StreamingBlob};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};
use spillbox::clock::SharedClock;
use tokio::sync::{Mutex as KeyLock, OwnedMutexGuard};

use super::quirk::{Condition, Quirks, VersionDelete};
use super::state::{Bucket, BucketVersioning, Version, etag_of};

/// What a fault asks the operations to do differently, carried in the request's extensions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Directives {
    /// At most so many keys in a listing, and whether it then says that more follows.
    pub(crate) short_listing: Option<(usize, bool)>,
    /// Store another body than the one that came.
    pub(crate) corrupts: bool,
}

/// Every request answers from here.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: String,
    pub(crate) bucket: Mutex<Bucket>,
    pub(crate) quirks: Quirks,
    pub(crate) clock: SharedClock,
    /// Page size of listings.
    pub(crate) page_keys: usize,
    key_locks: Mutex<HashMap<String, Arc<KeyLock<()>>>>,
}

/// A put, before it is decided.
pub(crate) struct Incoming {
    pub(crate) key: String,
    pub(crate) body: Option<StreamingBlob>,
    pub(crate) crc32: Option<String>,
    pub(crate) if_none_match: Option<ETagCondition>,
    pub(crate) if_match: Option<ETagCondition>,
}

impl Backend {
    pub(crate) fn new(
        name: &str,
        quirks: Quirks,
        versioning: BucketVersioning,
        clock: SharedClock,
        page_keys: usize,
    ) -> Self {
        let bucket = Bucket {
            versioning,
            ..Bucket::default()
        };
        Self {
            name: name.to_owned(),
            bucket: Mutex::new(bucket),
            quirks,
            clock,
            page_keys,
            key_locks: Mutex::default(),
        }
    }

    pub(crate) fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whole seconds, as S3 tells them.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock.now().as_second()).expect("a second of a valid time")
    }

    pub(crate) fn check_bucket(&self, name: &str) -> S3Result<()> {
        if name == self.name {
            Ok(())
        } else {
            Err(s3_error!(
                NoSuchBucket,
                "The specified bucket does not exist"
            ))
        }
    }

    async fn lock_key(&self, key: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self
                .key_locks
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(key.to_owned()).or_default())
        };
        lock.lock_owned().await
    }

    /// Whether the conditions of a put hold now.
    fn check_put(&self, bucket: &Bucket, put: &Incoming, when_versioned: bool) -> S3Result<()> {
        let current = bucket.current(&put.key);
        let applies = |condition: Condition| match condition {
            Condition::Exact | Condition::CheckThenWrite | Condition::NeverMatches => true,
            Condition::Ignored => false,
            Condition::IgnoredWhenVersioned => !when_versioned,
        };
        if put.if_none_match.is_some()
            && applies(self.quirks.put_if_none_match)
            && current.is_some()
        {
            return Err(precondition_failed());
        }
        let Some(wanted) = &put.if_match else {
            return Ok(());
        };
        if !applies(self.quirks.put_if_match) {
            return Ok(());
        }
        match current {
            None if self.quirks.put_if_match_missing == 404 => Err(no_such_key()),
            Some(version)
                if matches(wanted, version)
                    && self.quirks.put_if_match != Condition::NeverMatches =>
            {
                Ok(())
            }
            None | Some(_) => Err(precondition_failed()),
        }
    }

    /// Takes one put, in the order in which the played server does it.
    pub(crate) async fn put(
        &self,
        mut put: Incoming,
        directives: Directives,
    ) -> S3Result<(String, Option<String>)> {
        let is_conditional = put.if_none_match.is_some() || put.if_match.is_some();
        let is_check_first = [self.quirks.put_if_none_match, self.quirks.put_if_match]
            .contains(&Condition::CheckThenWrite);
        let held = if is_conditional && self.quirks.locks_key_during_body {
            Some(self.lock_key(&put.key).await)
        } else {
            None
        };
        if is_check_first {
            let bucket = self.bucket();
            let is_versioned = bucket.versioning != BucketVersioning::Never;
            self.check_put(&bucket, &put, is_versioned)?;
        }
        let body = self.body(put.body.take(), directives).await?;
        let _held = match held {
            Some(held) => held,
            None => self.lock_key(&put.key).await,
        };
        if is_check_first {
            // Other writers get their turn between the check and the write.
            tokio::task::yield_now().await;
        }
        let verdict = self.verify(&body, put.crc32.as_deref(), directives);
        if let Err(error) = verdict.as_ref()
            && !self.quirks.stores_before_verifying
        {
            return Err(S3Error::new(error.code().clone()));
        }
        let mut bucket = self.bucket();
        if !is_check_first {
            let is_versioned = bucket.versioning != BucketVersioning::Never;
            self.check_put(&bucket, &put, is_versioned)?;
        }
        let version = self.version_of(body, put.crc32);
        let etag = version.etag.clone();
        let id = bucket.write(&put.key, version);
        verdict.map(|()| (etag, id))
    }

    pub(crate) fn version_of(&self, bytes: Bytes, crc32: Option<String>) -> Version {
        Version {
            id: String::new(),
            is_marker: false,
            etag: etag_of(&bytes),
            bytes,
            crc32: crc32.filter(|_| self.quirks.keeps_checksums),
            modified: self.now(),
        }
    }

    /// Collects a request's body.
    pub(crate) async fn body(
        &self,
        body: Option<StreamingBlob>,
        directives: Directives,
    ) -> S3Result<Bytes> {
        let Some(body) = body else {
            return Ok(Bytes::new());
        };
        let frames: Vec<Bytes> = body
            .try_collect()
            .await
            .map_err(|error| S3Error::with_source(S3ErrorCode::IncompleteBody, error))?;
        let mut bytes = frames.concat();
        if directives.corrupts {
            match bytes.first_mut() {
                Some(byte) => *byte ^= 1,
                None => bytes.push(0),
            }
        }
        Ok(bytes.into())
    }

    pub(crate) fn verify(
        &self,
        bytes: &[u8],
        crc32: Option<&str>,
        directives: Directives,
    ) -> S3Result<()> {
        let is_wanted = self.quirks.verifies_checksums || self.quirks.stores_before_verifying;
        let Some(claimed) = crc32.filter(|_| is_wanted && !directives.corrupts) else {
            return Ok(());
        };
        if claimed == crc32_of(bytes) {
            Ok(())
        } else {
            Err(s3_error!(
                BadDigest,
                "The CRC32 you specified did not match"
            ))
        }
    }

    pub(crate) fn get(&self, input: &GetObjectInput) -> S3Result<GetObjectOutput> {
        self.check_bucket(&input.bucket)?;
        let bucket = self.bucket();
        let version = match &input.version_id {
            Some(id) => bucket
                .version(&input.key, id)
                .ok_or_else(|| s3_error!(NoSuchVersion))?,
            None => bucket.current(&input.key).ok_or_else(no_such_key)?,
        };
        if version.is_marker {
            return Err(s3_error!(MethodNotAllowed));
        }
        if let Some(wanted) = &input.if_match
            && self.quirks.get_if_match
            && !matches(wanted, version)
        {
            return Err(precondition_failed());
        }
        if let Some(known) = &input.if_none_match
            && self.quirks.get_if_none_match
            && matches(known, version)
        {
            return Err(s3_error!(NotModified));
        }
        let total = version.bytes.len() as u64;
        let range = match input.range.filter(|_| self.quirks.honours_ranges) {
            Some(range) => Some(range.check(total).map_err(|_| s3_error!(InvalidRange))?),
            None => None,
        };
        let content_range = range
            .as_ref()
            .map(|range| format!("bytes {}-{}/{total}", range.start, range.end - 1));
        let bytes = match &range {
            Some(range) => version
                .bytes
                .slice(range.start as usize..range.end as usize),
            None => version.bytes.clone(),
        };
        Ok(GetObjectOutput {
            content_length: i64::try_from(bytes.len()).ok(),
            body: Some(StreamingBlob::from(s3s::Body::from(bytes))),
            content_range,
            e_tag: Some(ETag::Strong(version.etag.clone())),
            last_modified: Some(time(version.modified)),
            checksum_crc32: version.crc32.clone().filter(|_| range.is_none()),
            version_id: self.told_version(&bucket, version),
            ..GetObjectOutput::default()
        })
    }

    fn told_version(&self, bucket: &Bucket, version: &Version) -> Option<String> {
        (bucket.versioning != BucketVersioning::Never).then(|| version.id.clone())
    }

    pub(crate) fn delete(
        &self,
        key: &str,
        version_id: Option<&str>,
        if_match: Option<&ETagCondition>,
    ) -> S3Result<()> {
        let mut bucket = self.bucket();
        if let (Some(_), Some(_), true) = (version_id, if_match, self.quirks.refuses_two_fences) {
            return Err(s3_error!(NotImplemented));
        }
        if let Some(wanted) = if_match.filter(|_| self.quirks.delete_if_match == Condition::Exact) {
            match bucket.current(key) {
                None if self.quirks.delete_if_match_missing == 404 => return Err(no_such_key()),
                Some(version) if matches(wanted, version) => {}
                None | Some(_) => return Err(precondition_failed()),
            }
        }
        let now = self.now();
        match version_id {
            None => bucket.remove(key, now),
            Some(id) if bucket.versioning == BucketVersioning::Never => {
                match self.quirks.version_delete {
                    VersionDelete::Keeps if id != "null" => {}
                    VersionDelete::Keeps | VersionDelete::DeletesCurrent => bucket.remove(key, now),
                    VersionDelete::NotImplemented => return Err(s3_error!(NotImplemented)),
                }
            }
            Some(id) => bucket.remove_version(key, id),
        }
        Ok(())
    }
}

pub(crate) fn crc32_of(bytes: &[u8]) -> String {
    let crc32 = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes);
    let crc32 = u32::try_from(crc32).expect("a CRC-32 has 32 bits");
    STANDARD.encode(crc32.to_be_bytes())
}

pub(crate) fn matches(condition: &ETagCondition, version: &Version) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => etag.value() == version.etag,
    }
}

pub(crate) fn time(at: Timestamp) -> s3s::dto::Timestamp {
    s3s::dto::Timestamp::from(seconds_after_epoch(at))
}

fn seconds_after_epoch(at: Timestamp) -> SystemTime {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(crate) fn no_such_key() -> S3Error {
    s3_error!(NoSuchKey, "The specified key does not exist.")
}

pub(crate) fn precondition_failed() -> S3Error {
    s3_error!(
        PreconditionFailed,
        "At least one of the pre-conditions you specified did not hold"
    )
}
