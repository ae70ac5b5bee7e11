//! What the backends that we implement ourselves share: how a page is cut from sorted keys, how its
//! token is written, and how the conditions of a read are evaluated.

use std::ops::{Bound, Range};

use crate::limits::MAX_PARTS;
use crate::store::keys::Key;
use crate::store::{
    ETag, GetOptions, ListPage, ListRequest, Listed, ListedUpload, ListedVersion, ObjectStore,
    Part, StoreError, StoreErrorKind, Upload, UploadPage, VersionId, VersionPage,
};

/// S3's bound of one page.
pub(crate) const MAX_KEYS: usize = 1_000;

impl GetOptions {
    /// Decides a read of an object that is there: the bytes to send, or `None` for "not modified".
    pub(crate) fn evaluate(
        &self,
        key: &Key,
        etag: &ETag,
        size_bytes: u64,
    ) -> Result<Option<Range<u64>>, StoreError> {
        if self.if_match.as_ref().is_some_and(|wanted| wanted != etag) {
            let kind = StoreErrorKind::PreconditionFailed;
            return Err(StoreError::new(kind, "get", key, "the ETag is another"));
        }
        if self.if_none_match.as_ref() == Some(etag) {
            return Ok(None);
        }
        let Some(range) = &self.range else {
            return Ok(Some(0..size_bytes));
        };
        if range.start >= range.end || range.start >= size_bytes {
            let detail = format!(
                "bytes {} to {} of {size_bytes} are none",
                range.start, range.end
            );
            let kind = StoreErrorKind::InvalidRange;
            return Err(StoreError::new(kind, "get", key, detail));
        }
        Ok(Some(range.start..range.end.min(size_bytes)))
    }
}

/// Where the keys of a listing come from.
pub(crate) trait SortedKeys {
    /// Returns the first key that the bound allows; the bounds of one listing only rise.
    fn next(&mut self, lower: &Bound<String>) -> Result<Option<String>, StoreError>;

    /// Describes the key that was returned last; `None` where it has gone meanwhile. Not asked for
    /// keys that are rolled up.
    fn describe(&mut self, key: &str) -> Result<Option<Listed>, StoreError>;
}

/// Cuts one page from keys that come in order. `open` gets the bound that the listing begins with.
pub(crate) fn assemble<S: SortedKeys>(
    request: &ListRequest,
    open: impl FnOnce(&Bound<String>) -> Result<S, StoreError>,
) -> Result<ListPage, StoreError> {
    let limit = request.max_keys.map_or(MAX_KEYS, usize::from).min(MAX_KEYS);
    if limit == 0 || request.delimiter.is_some_and(|c| !c.is_ascii()) {
        return Err(reject(
            "list",
            &request.prefix,
            "`max_keys` is at least 1, a delimiter is one ASCII character",
        ));
    }
    let mut lower = first_bound(request)?;
    let mut keys = open(&lower)?;
    let mut page = ListPage::default();
    let mut token = None;
    while let Some(key) = keys.next(&lower)? {
        let Some(rest) = key.strip_prefix(request.prefix.as_str()) else {
            break;
        };
        if page.objects.len() + page.common_prefixes.len() == limit {
            page.is_truncated = true;
            page.next = token;
            break;
        }
        let cut = request.delimiter.and_then(|delimiter| rest.find(delimiter));
        if let Some(at) = cut {
            let common = key[..=request.prefix.len() + at].to_owned();
            lower = Bound::Included(after_prefix(&common));
            token = Some(format!("p{common}"));
            page.common_prefixes.push(common);
            continue;
        }
        if let Some(listed) = keys.describe(&key)? {
            token = Some(format!("k{key}"));
            page.objects.push(listed);
        }
        lower = Bound::Excluded(key);
    }
    Ok(page)
}

/// The bound that the request's prefix, start and token make together.
fn first_bound(request: &ListRequest) -> Result<Bound<String>, StoreError> {
    let mut lower = Bound::Included(request.prefix.clone());
    let mut raise = |bound: Bound<String>| {
        let is_higher = match (&bound, &lower) {
            (Bound::Excluded(new), Bound::Included(old) | Bound::Excluded(old)) => new >= old,
            (Bound::Included(new), Bound::Included(old) | Bound::Excluded(old)) => new > old,
            (_, Bound::Unbounded) => true,
            (Bound::Unbounded, _) => false,
        };
        if is_higher {
            lower = bound;
        }
    };
    if let Some(start_after) = &request.start_after {
        raise(Bound::Excluded(start_after.clone()));
    }
    if let Some(token) = &request.continuation {
        if let Some(key) = token.strip_prefix('k') {
            raise(Bound::Excluded(key.to_owned()));
        } else if let Some(common) = token.strip_prefix('p').filter(|text| !text.is_empty()) {
            raise(Bound::Included(after_prefix(common)));
        } else {
            return Err(bad_token("list", &request.prefix));
        }
    }
    Ok(lower)
}

/// Returns the smallest text that is greater than every text that begins with `common`: its last
/// character, counted up by one. (UTF-8 sorts as its code points do.)
pub(crate) fn after_prefix(common: &str) -> String {
    let mut text = common.to_owned();
    while let Some(last) = text.pop() {
        if let Some(up) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            text.push(up);
            break;
        }
    }
    text
}

/// A place in a listing that is ordered by key and then by something else.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Marker {
    pub(crate) key: String,
    pub(crate) item: String,
}

impl Marker {
    pub(crate) fn encode(key: &str, item: &str) -> String {
        format!("{key}\n{item}")
    }

    pub(crate) fn parse(
        operation: &'static str,
        scope: &str,
        token: &str,
    ) -> Result<Self, StoreError> {
        let (key, item) = token
            .split_once('\n')
            .ok_or_else(|| bad_token(operation, scope))?;
        Ok(Self {
            key: key.to_owned(),
            item: item.to_owned(),
        })
    }
}

/// Lists the keys of a store without versions as S3 does: each key's one version is `null`.
pub(crate) async fn versions_of_unversioned(
    store: &dyn ObjectStore,
    prefix: &str,
    continuation: Option<&str>,
) -> Result<VersionPage, StoreError> {
    let request = ListRequest {
        prefix: prefix.to_owned(),
        continuation: continuation.map(str::to_owned),
        ..ListRequest::default()
    };
    let page = store.list(&request).await?;
    let version = |listed: Listed| ListedVersion {
        key: listed.key,
        version_id: VersionId("null".to_owned()),
        is_latest: true,
        is_delete_marker: false,
        size_bytes: listed.size_bytes,
        etag: Some(listed.etag),
        last_modified: listed.last_modified,
    };
    Ok(VersionPage {
        versions: page.objects.into_iter().map(version).collect(),
        is_truncated: page.is_truncated,
        next: page.next,
        date: page.date,
    })
}

/// Cuts one page from all unfinished uploads, in the order of their keys and ids.
pub(crate) fn assemble_uploads(
    mut uploads: Vec<ListedUpload>,
    continuation: Option<&str>,
) -> Result<UploadPage, StoreError> {
    if let Some(token) = continuation {
        let after = Marker::parse("list uploads", "", token)?;
        uploads.retain(|u| (&u.key, &u.upload_id) > (&after.key, &after.item));
    }
    uploads.sort_by(|a, b| (&a.key, &a.upload_id).cmp(&(&b.key, &b.upload_id)));
    let is_truncated = uploads.len() > MAX_KEYS;
    uploads.truncate(MAX_KEYS);
    let last = uploads.last().filter(|_| is_truncated);
    let next = last.map(|last| Marker::encode(&last.key, &last.upload_id));
    Ok(UploadPage {
        uploads,
        is_truncated,
        next,
        date: None,
    })
}

/// Refuses a part number outside S3's range.
pub(crate) fn check_part_number(upload: &Upload, number: u32) -> Result<(), StoreError> {
    if (1..=MAX_PARTS).contains(&u64::from(number)) {
        return Ok(());
    }
    let detail = format!("part numbers are 1 to {MAX_PARTS}");
    Err(reject("put part", &upload.key, &detail))
}

/// Refuses a part list that is empty or not in ascending order.
pub(crate) fn check_part_order(upload: &Upload, parts: &[Part]) -> Result<(), StoreError> {
    let ascends = parts.is_sorted_by(|a, b| a.number < b.number);
    if ascends && !parts.is_empty() {
        return Ok(());
    }
    let detail = "the parts must be at least one, in ascending order";
    Err(reject("complete upload", &upload.key, detail))
}

/// The part that a completion names is not the part that is there.
pub(crate) fn wrong_part(upload: &Upload, number: u32) -> StoreError {
    let detail = format!("part {number} is absent or another than the one named");
    reject("complete upload", &upload.key, &detail)
}

fn bad_token(operation: &'static str, scope: &str) -> StoreError {
    reject(
        operation,
        scope,
        "the continuation is not one of this store",
    )
}

fn reject(operation: &'static str, scope: impl std::fmt::Display, detail: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Rejected, operation, scope, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoKeys;

    impl SortedKeys for NoKeys {
        fn next(&mut self, _: &Bound<String>) -> Result<Option<String>, StoreError> {
            Ok(None)
        }
        fn describe(&mut self, _: &str) -> Result<Option<Listed>, StoreError> {
            Ok(None)
        }
    }

    #[test]
    fn the_text_after_a_prefix_is_above_all_that_begin_with_it() {
        assert_eq!(after_prefix("a/"), "a0");
        assert_eq!(after_prefix("a\u{7f}"), "a\u{80}");
        assert_eq!(after_prefix("a\u{d7ff}"), "a\u{e000}");
        assert_eq!(after_prefix("a\u{10ffff}"), "b");
    }

    #[test]
    fn a_range_is_clipped_at_the_end_and_refused_past_it() {
        let key = Key::parse("k").unwrap();
        let etag = ETag("\"x\"".into());
        let evaluate = |range, size| {
            let options = GetOptions {
                range: Some(range),
                ..GetOptions::default()
            };
            options.evaluate(&key, &etag, size)
        };
        assert_eq!(evaluate(0..1, 1).unwrap(), Some(0..1));
        assert_eq!(evaluate(1..u64::MAX, 3).unwrap(), Some(1..3));
        for (range, size) in [(0..1, 0), (3..4, 3), (u64::MAX..u64::MAX, 3), (2..2, 3)] {
            let error = evaluate(range, size).unwrap_err();
            assert!(error.is(StoreErrorKind::InvalidRange), "{error}");
        }
    }

    #[test]
    fn a_foreign_token_is_refused() {
        for token in ["", "x", "p"] {
            let request = ListRequest {
                continuation: Some(token.into()),
                ..ListRequest::default()
            };
            let error = assemble::<NoKeys>(&request, |_| Ok(NoKeys)).unwrap_err();
            assert!(error.is(StoreErrorKind::Rejected), "{token}");
        }
        assert!(assemble_uploads(Vec::new(), Some("no line end")).is_err());
    }
}
