//! Listing a session's artifacts, newest first, from the heads of their manifests.

use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use crate::artifact::library::Library;
use crate::artifact::manifest::{ListedEntry, ManifestFormatError, ManifestHead};
use crate::artifact::read::ReadError;
use crate::digest::tagged_hash;
use crate::ids::{ArtifactId, ArtifactRef, SessionId, SessionKey, Tenant};
use crate::limits::{MANIFEST_HEAD_BYTES, MAX_MANIFEST_BYTES};
use crate::store::register::collect;
use crate::store::{GetOptions, GetReply, ListRequest, StoreError, StoreErrorKind, paging};

/// Manifest heads that one list request reads at once.
const HEADS_IN_FLIGHT: usize = 16;

/// Which artifacts are wanted.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Keys to look at; tombstones and filtered ones among them make a page shorter.
    pub limit: usize,
    /// Goes on after this artifact.
    pub after: Option<ArtifactId>,
    /// Only outputs of this tool.
    pub tool: Option<String>,
    /// Only outputs stored at this instant or later.
    pub since: Option<Timestamp>,
    /// Only outputs stored before this instant.
    pub until: Option<Timestamp>,
}

/// A page of artifacts.
#[derive(Debug, Clone)]
pub struct ListedArtifacts {
    /// What matches, newest first.
    pub heads: Vec<ManifestHead>,
    /// Where the next page goes on; absent at the end.
    pub next: Option<ArtifactId>,
}

impl Library {
    /// Lists a session's own artifacts. A session that was never used lists nothing.
    ///
    /// # Errors
    /// The store fails or holds a manifest that cannot be read: never a shorter list instead.
    pub async fn list(
        &self,
        tenant: &Tenant,
        session: &SessionId,
        query: &ListQuery,
    ) -> Result<ListedArtifacts, ReadError> {
        let session_key = SessionKey::derive(tenant, session);
        let (ids, next) = self.list_ids(tenant, session_key, query).await?;
        let heads: Vec<_> = stream::iter(ids)
            .map(|artifact_id| {
                self.read_head(
                    tenant,
                    ArtifactRef {
                        session_key,
                        artifact_id,
                    },
                )
            })
            .buffered(HEADS_IN_FLIGHT)
            .try_filter_map(|head| async { Ok(head.filter(|head| matches(head, query))) })
            .try_collect()
            .await?;
        Ok(ListedArtifacts { heads, next })
    }

    async fn list_ids(
        &self,
        tenant: &Tenant,
        session_key: SessionKey,
        query: &ListQuery,
    ) -> Result<(Vec<ArtifactId>, Option<ArtifactId>), StoreError> {
        let prefix = self.keys.manifests(tenant, &session_key);
        // One key more than wanted tells whether a next page exists. Foreign keys are passed over.
        let max_keys = u16::try_from(query.limit + 1).unwrap_or(1_000).min(1_000);
        let request = ListRequest {
            start_after: query.after.map(|after| format!("{prefix}{after}")),
            prefix,
            max_keys: Some(max_keys),
            ..ListRequest::default()
        };
        let mut pages = paging::list(&*self.store, request);
        let mut ids = Vec::new();
        while ids.len() <= query.limit {
            let Some(page) = pages.next_page().await? else {
                break;
            };
            let ours = page.objects.iter().filter_map(|listed| {
                self.keys
                    .artifact_of_manifest(tenant, &session_key, &listed.key)
            });
            ids.extend(ours);
        }
        let next = (ids.len() > query.limit).then(|| ids[query.limit - 1]);
        ids.truncate(query.limit);
        Ok((ids, next))
    }

    /// Reads a manifest's head; `None` for a tombstone, or one that went between list and read.
    async fn read_head(
        &self,
        tenant: &Tenant,
        artifact: ArtifactRef,
    ) -> Result<Option<ManifestHead>, ReadError> {
        for head_bytes in [MANIFEST_HEAD_BYTES, MAX_MANIFEST_BYTES] {
            let options = GetOptions {
                range: Some(0..head_bytes),
                ..GetOptions::default()
            };
            let key = self.keys.manifest(tenant, &artifact);
            let object = match self.store.get(&key, options).await {
                Ok(GetReply::Found(object)) => object,
                Ok(GetReply::NotModified { .. }) => continue,
                Err(error) if error.is(StoreErrorKind::NotFound) => return Ok(None),
                // Even the first byte lies outside.
                Err(error) if error.is(StoreErrorKind::InvalidRange) => {
                    return Err(ManifestFormatError::Inconsistent("an empty manifest").into());
                }
                Err(error) => return Err(error.into()),
            };
            let is_whole = object.range == (0..object.meta.size_bytes);
            let bytes = collect(object.body).await?;
            match ManifestHead::decode(&bytes, is_whole, &artifact)? {
                ListedEntry::Live(head) => return Ok(Some(*head)),
                ListedEntry::Tombstone => return Ok(None),
                ListedEntry::NeedsMore => {}
            }
        }
        let detail = "the manifest's head has no end";
        Err(StoreError::new(StoreErrorKind::Rejected, "get", artifact, detail).into())
    }
}

fn matches(head: &ManifestHead, query: &ListQuery) -> bool {
    let captured_at = head.provenance.captured_at;
    query
        .tool
        .as_ref()
        .is_none_or(|tool| head.provenance.tool.as_ref() == Some(tool))
        && query.since.is_none_or(|since| captured_at >= since)
        && query.until.is_none_or(|until| captured_at < until)
}

/// Writes the cursor that goes on after `artifact`: opaque and self-checking, so that a cursor of
/// another session or a mistyped one is refused instead of skipping artifacts.
pub fn encode_cursor(session: &SessionKey, artifact: &ArtifactId) -> String {
    format!("{artifact}{}", cursor_check(session, artifact))
}

/// Reads a cursor of `session`; `None` for anything else.
pub fn decode_cursor(session: &SessionKey, cursor: &str) -> Option<ArtifactId> {
    let (artifact, check) = cursor.split_at_checked(26)?;
    let artifact = artifact.parse().ok()?;
    (check == cursor_check(session, &artifact)).then_some(artifact)
}

fn cursor_check(session: &SessionKey, artifact: &ArtifactId) -> String {
    let fields = [session.to_string(), artifact.to_string()];
    let hash = tagged_hash(
        "spillbox/list-cursor/v1",
        &[fields[0].as_bytes(), fields[1].as_bytes()],
    );
    hash.to_hex()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_session() {
        let artifact = ArtifactId::new(5, [1; 10]);
        let key = |text: &str| SessionKey::derive(&Tenant::default(), &text.parse().unwrap());
        let cursor = encode_cursor(&key("a"), &artifact);
        assert_eq!(decode_cursor(&key("a"), &cursor), Some(artifact));
        assert_eq!(decode_cursor(&key("b"), &cursor), None);
        for bad in [
            "",
            "x",
            &cursor[1..],
            &cursor[..33],
            &format!("{cursor}0"),
            "é",
        ] {
            assert_eq!(decode_cursor(&key("a"), bad), None, "{bad}");
        }
    }
}
