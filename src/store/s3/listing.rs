//! What the bucket holds: keys, versions, unfinished uploads, and whether it keeps versions.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::BucketVersioningStatus;
use jiff::Timestamp;

use super::S3Store;
use super::classify::{Call, Site};
use super::reply::{Probe, timestamp};
use crate::store::{
    ETag, ListPage, ListRequest, Listed, ListedUpload, ListedVersion, StoreError, StoreErrorKind,
    UploadPage, VersionId, VersionPage, Versioning,
};

impl S3Store {
    pub(super) async fn list_objects(&self, request: &ListRequest) -> Result<ListPage, StoreError> {
        let site = self.site(Call::Read, "list", &request.prefix);
        let probe = Probe::default();
        let sent = self
            .client
            .list_objects_v2()
            .bucket(self.bucket())
            .prefix(&request.prefix)
            .set_start_after(request.start_after.clone())
            .set_delimiter(request.delimiter.map(String::from))
            .set_max_keys(request.max_keys.map(i32::from))
            .set_continuation_token(request.continuation.clone())
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = Box::pin(sent.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let objects = output
            .contents()
            .iter()
            .map(|object| {
                Ok(Listed {
                    key: text(site, object.key())?,
                    size_bytes: size(site, object.size())?,
                    etag: ETag(object.e_tag().unwrap_or_default().to_owned()),
                    last_modified: time(site, object.last_modified())?,
                })
            })
            .collect::<Result<_, StoreError>>()?;
        let common_prefixes = output
            .common_prefixes()
            .iter()
            .filter_map(|common| common.prefix().map(str::to_owned))
            .collect();
        Ok(ListPage {
            objects,
            common_prefixes,
            is_truncated: output.is_truncated().unwrap_or(false),
            next: output.next_continuation_token().map(str::to_owned),
            date: probe.date(),
        })
    }

    pub(super) async fn list_multipart_uploads(
        &self,
        continuation: Option<&str>,
    ) -> Result<UploadPage, StoreError> {
        let site = self.site(Call::Read, "list uploads", "");
        let (key_marker, id_marker) = markers(site, continuation)?;
        let probe = Probe::default();
        // No prefix: several servers match it against whole keys only, or not at all.
        let sent = self
            .client
            .list_multipart_uploads()
            .bucket(self.bucket())
            .set_key_marker(key_marker)
            .set_upload_id_marker(id_marker)
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = Box::pin(sent.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let uploads = output
            .uploads()
            .iter()
            .map(|upload| {
                Ok(ListedUpload {
                    key: text(site, upload.key())?,
                    upload_id: text(site, upload.upload_id())?,
                    initiated: upload.initiated().and_then(timestamp),
                })
            })
            .collect::<Result<_, StoreError>>()?;
        Ok(UploadPage {
            uploads,
            is_truncated: output.is_truncated().unwrap_or(false),
            next: next_markers(
                output.is_truncated(),
                output.next_key_marker(),
                output.next_upload_id_marker(),
            ),
            date: probe.date(),
        })
    }

    pub(super) async fn list_object_versions(
        &self,
        prefix: &str,
        continuation: Option<&str>,
    ) -> Result<VersionPage, StoreError> {
        let site = self.site(Call::Read, "list versions", prefix);
        let (key_marker, id_marker) = markers(site, continuation)?;
        let probe = Probe::default();
        let sent = self
            .client
            .list_object_versions()
            .bucket(self.bucket())
            .prefix(prefix)
            .set_key_marker(key_marker)
            .set_version_id_marker(id_marker)
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = Box::pin(sent.send())
            .await
            .map_err(|error| site.fail(probe.reply(), error))?;
        let mut versions = Vec::new();
        for version in output.versions() {
            versions.push(ListedVersion {
                key: text(site, version.key())?,
                version_id: version_id(version.version_id()),
                is_latest: version.is_latest().unwrap_or(false),
                is_delete_marker: false,
                size_bytes: size(site, version.size())?,
                etag: version.e_tag().map(|etag| ETag(etag.to_owned())),
                last_modified: time(site, version.last_modified())?,
            });
        }
        for marker in output.delete_markers() {
            versions.push(ListedVersion {
                key: text(site, marker.key())?,
                version_id: version_id(marker.version_id()),
                is_latest: marker.is_latest().unwrap_or(false),
                is_delete_marker: true,
                size_bytes: 0,
                etag: None,
                last_modified: time(site, marker.last_modified())?,
            });
        }
        // The SDK gives versions and markers as two lists; the sort is stable, so that versions of
        // one second stay in the store's order.
        versions.sort_by(|a, b| {
            (
                a.key.as_str(),
                Reverse(a.is_latest),
                Reverse(a.last_modified),
            )
                .cmp(&(
                    b.key.as_str(),
                    Reverse(b.is_latest),
                    Reverse(b.last_modified),
                ))
        });
        Ok(VersionPage {
            versions,
            is_truncated: output.is_truncated().unwrap_or(false),
            next: next_markers(
                output.is_truncated(),
                output.next_key_marker(),
                output.next_version_id_marker(),
            ),
            date: probe.date(),
        })
    }

    pub(super) async fn get_bucket_versioning(&self) -> Result<Versioning, StoreError> {
        let site = self.site(Call::Read, "get versioning", "");
        let probe = Probe::default();
        let sent = self
            .client
            .get_bucket_versioning()
            .bucket(self.bucket())
            .customize()
            .interceptor(probe.clone())
            .config_override(self.small());
        let output = match Box::pin(sent.send()).await {
            Ok(output) => output,
            Err(error) => {
                let error = site.fail(probe.reply(), error);
                // A store without the question has no versions, unless it has shown us one.
                let has_none = error.is(StoreErrorKind::NotImplemented)
                    && !self.saw_version_id.load(Ordering::Relaxed);
                return if has_none {
                    Ok(Versioning::NeverEnabled)
                } else {
                    Err(error)
                };
            }
        };
        match output.status() {
            None => Ok(Versioning::NeverEnabled),
            Some(BucketVersioningStatus::Enabled) => Ok(Versioning::Enabled),
            Some(BucketVersioningStatus::Suspended) => Ok(Versioning::Suspended),
            // Guessing here would destroy or keep the wrong versions.
            Some(other) => Err(site.error(
                StoreErrorKind::Rejected,
                format!(
                    "unknown versioning status `{}`",
                    other.as_str().escape_debug()
                ),
            )),
        }
    }
}

fn version_id(id: Option<&str>) -> VersionId {
    VersionId(id.unwrap_or("null").to_owned())
}

fn text(site: Site<'_>, text: Option<&str>) -> Result<String, StoreError> {
    text.map(str::to_owned)
        .ok_or_else(|| site.foreign("a listing entry without its key or id"))
}

fn size(site: Site<'_>, size: Option<i64>) -> Result<u64, StoreError> {
    size.and_then(|size| u64::try_from(size).ok())
        .ok_or_else(|| site.foreign("a listing entry without its size"))
}

fn time(site: Site<'_>, time: Option<&DateTime>) -> Result<Timestamp, StoreError> {
    time.and_then(timestamp)
        .ok_or_else(|| site.foreign("a listing entry without its date"))
}

/// Joins the two markers of a next page into one token: `KEY_LENGTH:KEY ID`, since either may hold any
/// character.
fn next_markers(is_truncated: Option<bool>, key: Option<&str>, id: Option<&str>) -> Option<String> {
    let key = key.filter(|_| is_truncated == Some(true))?;
    Some(format!("{}:{key}{}", key.len(), id.unwrap_or_default()))
}

type Markers = (Option<String>, Option<String>);

fn markers(site: Site<'_>, token: Option<&str>) -> Result<Markers, StoreError> {
    let Some(token) = token else {
        return Ok((None, None));
    };
    let split = token.split_once(':').and_then(|(length, rest)| {
        let (key, id) = rest.split_at_checked(length.parse().ok()?)?;
        let id = (!id.is_empty()).then(|| id.to_owned());
        Some((Some(key.to_owned()), id))
    });
    split.ok_or_else(|| {
        site.error(
            StoreErrorKind::Rejected,
            "the continuation token is not ours",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_pairs_survive_the_token() {
        let site = Site {
            call: Call::Read,
            operation: "list",
            key: "",
            bucket: "b",
        };
        for (key, id) in [("a/b", "x"), ("12:é", "3:y"), ("k", ""), ("", "id")] {
            let token = next_markers(Some(true), Some(key), Some(id)).unwrap();
            let (got_key, got_id) = markers(site, Some(&token)).unwrap();
            assert_eq!(got_key.as_deref(), Some(key));
            assert_eq!(got_id.unwrap_or_default(), id);
        }
        assert_eq!(next_markers(Some(false), Some("k"), Some("i")), None);
        for bad in ["", "x", "9:short", "1:é"] {
            assert!(markers(site, Some(bad)).is_err(), "{bad}");
        }
    }
}
