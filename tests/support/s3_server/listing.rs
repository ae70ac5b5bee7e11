//! The listings, by page.

use s3s::S3Result;
use s3s::dto::{
    CommonPrefix, DeleteMarkerEntry, ETag, ListMultipartUploadsInput, ListMultipartUploadsOutput,
    ListObjectVersionsInput, ListObjectVersionsOutput, ListObjectsV2Input, ListObjectsV2Output,
    MultipartUpload, Object, ObjectVersion,
};

use super::service::{Backend, Directives, time};

impl Backend {
    pub(crate) fn list(
        &self,
        input: &ListObjectsV2Input,
        directives: Directives,
    ) -> S3Result<ListObjectsV2Output> {
        self.check_bucket(&input.bucket)?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        // The token is the last key or common prefix of the page before.
        let after = input
            .continuation_token
            .as_deref()
            .or(input.start_after.as_deref());
        let asked = input
            .max_keys
            .and_then(|keys| usize::try_from(keys).ok())
            .unwrap_or(1_000);
        let mut limit = asked.min(self.page_keys);
        let mut is_honest = true;
        if let Some((keys, honest)) = directives.short_listing {
            limit = limit.min(keys);
            is_honest = honest;
        }
        let bucket = self.bucket();
        let mut contents = Vec::new();
        let mut prefixes: Vec<String> = Vec::new();
        let mut last: Option<String> = None;
        let mut is_truncated = false;
        for key in bucket.objects.keys() {
            let Some(version) = bucket.current(key) else {
                continue;
            };
            let Some(rest) = key.strip_prefix(prefix) else {
                continue;
            };
            let rolled = input
                .delimiter
                .as_deref()
                .filter(|delimiter| !delimiter.is_empty())
                .and_then(|delimiter| rest.find(delimiter).map(|at| at + delimiter.len()))
                .map(|end| key[..prefix.len() + end].to_owned());
            let place = rolled.as_ref().unwrap_or(key);
            let is_past = after.is_none_or(|after| {
                place.as_str() > after && !(rolled.is_none() && key.as_str() <= after)
            });
            if !is_past || prefixes.last() == Some(place) {
                continue;
            }
            if contents.len() + prefixes.len() == limit {
                is_truncated = true;
                break;
            }
            last = Some(place.clone());
            match rolled {
                Some(rolled) => prefixes.push(rolled),
                None => contents.push(Object {
                    key: Some(key.clone()),
                    size: i64::try_from(version.bytes.len()).ok(),
                    e_tag: Some(ETag::Strong(version.etag.clone())),
                    last_modified: Some(time(version.modified)),
                    ..Object::default()
                }),
            }
        }
        let is_truncated = is_truncated && is_honest;
        let common = prefixes
            .into_iter()
            .map(|prefix| CommonPrefix {
                prefix: Some(prefix),
            })
            .collect::<Vec<_>>();
        Ok(ListObjectsV2Output {
            key_count: i32::try_from(contents.len() + common.len()).ok(),
            is_truncated: Some(is_truncated),
            next_continuation_token: last.filter(|_| is_truncated),
            contents: Some(contents),
            common_prefixes: Some(common),
            name: Some(self.name.clone()),
            prefix: input.prefix.clone(),
            ..ListObjectsV2Output::default()
        })
    }

    pub(crate) fn list_versions(
        &self,
        input: &ListObjectVersionsInput,
    ) -> S3Result<ListObjectVersionsOutput> {
        self.check_bucket(&input.bucket)?;
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let bucket = self.bucket();
        let mut page = ListObjectVersionsOutput {
            name: Some(self.name.clone()),
            is_truncated: Some(false),
            ..ListObjectVersionsOutput::default()
        };
        let (mut versions, mut markers) = (Vec::new(), Vec::new());
        // The markers name the last entry of the page before; without an id, its whole key is done.
        let mut is_resuming = input.key_marker.is_some();
        let mut last: Option<(String, String)> = None;
        'keys: for (key, all) in &bucket.objects {
            if !key.starts_with(prefix) {
                continue;
            }
            let marker = input.key_marker.as_deref().unwrap_or_default();
            if is_resuming && key.as_str() < marker {
                continue;
            }
            let mut skip_until = match (&input.version_id_marker, key == marker && is_resuming) {
                (None, true) => continue,
                (Some(id), true) => Some(id.as_str()),
                (_, false) => None,
            };
            is_resuming = is_resuming && key.as_str() <= marker;
            for (at, version) in all.iter().enumerate().rev() {
                if let Some(id) = skip_until {
                    if version.id == id {
                        skip_until = None;
                    }
                    continue;
                }
                if versions.len() + markers.len() == self.page_keys {
                    let (key, id) = last.clone().expect("a full page has a last entry");
                    page.is_truncated = Some(true);
                    page.next_key_marker = Some(key);
                    page.next_version_id_marker = Some(id);
                    break 'keys;
                }
                last = Some((key.clone(), version.id.clone()));
                let is_latest = Some(at + 1 == all.len());
                if version.is_marker {
                    markers.push(DeleteMarkerEntry {
                        key: Some(key.clone()),
                        version_id: Some(version.id.clone()),
                        is_latest,
                        last_modified: Some(time(version.modified)),
                        ..DeleteMarkerEntry::default()
                    });
                } else {
                    versions.push(ObjectVersion {
                        key: Some(key.clone()),
                        version_id: Some(version.id.clone()),
                        is_latest,
                        size: i64::try_from(version.bytes.len()).ok(),
                        e_tag: Some(ETag::Strong(version.etag.clone())),
                        last_modified: Some(time(version.modified)),
                        ..ObjectVersion::default()
                    });
                }
            }
        }
        page.versions = Some(versions);
        page.delete_markers = Some(markers);
        Ok(page)
    }

    pub(crate) fn list_uploads(
        &self,
        input: &ListMultipartUploadsInput,
    ) -> S3Result<ListMultipartUploadsOutput> {
        self.check_bucket(&input.bucket)?;
        let bucket = self.bucket();
        let mut all: Vec<_> = bucket
            .uploads
            .iter()
            .map(|(id, upload)| (upload.key.clone(), id.clone(), upload.initiated))
            .collect();
        all.sort();
        let prefix = input.prefix.as_deref().unwrap_or_default();
        let key_marker = input.key_marker.clone().unwrap_or_default();
        let id_marker = input.upload_id_marker.clone();
        let mut rest = all.into_iter().filter(|(key, id, _)| {
            key.starts_with(prefix)
                && match &id_marker {
                    Some(marker) => (key, id) > (&key_marker, marker),
                    None => *key > key_marker,
                }
        });
        let page: Vec<_> = rest.by_ref().take(self.page_keys).collect();
        let is_truncated = rest.next().is_some();
        let last = page.last().cloned().filter(|_| is_truncated);
        let uploads = page
            .into_iter()
            .map(|(key, id, initiated)| MultipartUpload {
                key: Some(key),
                upload_id: Some(id),
                initiated: Some(time(initiated)),
                ..MultipartUpload::default()
            })
            .collect();
        Ok(ListMultipartUploadsOutput {
            uploads: Some(uploads),
            is_truncated: Some(is_truncated),
            next_key_marker: last.as_ref().map(|(key, _, _)| key.clone()),
            next_upload_id_marker: last.map(|(_, id, _)| id),
            ..ListMultipartUploadsOutput::default()
        })
    }
}
