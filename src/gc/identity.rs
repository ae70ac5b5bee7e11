//! Whether a stored body is the one that its manifest describes; asked before anything is condemned.

use futures_util::TryStreamExt;

use crate::artifact::manifest::BodyIdentity;
use crate::digest::Sha256Hasher;
use crate::store::keys::Key;
use crate::store::{
    ETag, GetOptions, GetReply, ObjectMeta, ObjectStore, StoreError, StoreErrorKind, VersionId,
};

/// How a stored body compares with its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// It is the one.
    Same,
    /// It is another; what differs.
    Differs(&'static str),
}

/// Compares size, ETag and generation.
fn compare(manifest: &BodyIdentity, meta: &ObjectMeta) -> Identity {
    let recorded = manifest.version_id.clone().map(VersionId);
    let generation = VersionId::generation(recorded.as_ref());
    if manifest.size_bytes != meta.size_bytes {
        Identity::Differs("size")
    } else if manifest.etag != meta.etag.0 {
        Identity::Differs("etag")
    } else if generation != VersionId::generation(meta.version_id.as_ref()) {
        Identity::Differs("generation")
    } else {
        Identity::Same
    }
}

/// Compares a stored body with what its manifest says: size, ETag, generation, and its content by the
/// checksum that the store kept, or by reading it where it kept none.
///
/// # Errors
/// The store's, while the body is read.
pub async fn check(
    store: &dyn ObjectStore,
    key: &Key,
    manifest: &BodyIdentity,
    meta: &ObjectMeta,
) -> Result<Identity, StoreError> {
    let compared = compare(manifest, meta);
    if compared != Identity::Same {
        return Ok(compared);
    }
    match (&manifest.store_checksum, &meta.checksum) {
        (Some(saved), Some(kept)) if saved == kept => Ok(Identity::Same),
        // The same algorithm and another value; another algorithm says nothing.
        (Some(saved), Some(kept)) if algorithm(saved) == algorithm(kept) => {
            Ok(Identity::Differs("checksum"))
        }
        _ => by_reading(store, key, manifest, &meta.etag).await,
    }
}

fn algorithm(checksum: &str) -> Option<&str> {
    checksum.split_once(':').map(|(algorithm, _)| algorithm)
}

async fn by_reading(
    store: &dyn ObjectStore,
    key: &Key,
    manifest: &BodyIdentity,
    etag: &ETag,
) -> Result<Identity, StoreError> {
    let options = GetOptions {
        if_match: Some(etag.clone()),
        ..GetOptions::default()
    };
    let object = match store.get(key, options).await {
        Ok(GetReply::Found(object)) => object,
        Ok(GetReply::NotModified { .. }) => {
            let detail = "304 to a request that allows none";
            return Err(StoreError::new(
                StoreErrorKind::Rejected,
                "get",
                key,
                detail,
            ));
        }
        Err(error) if error.is(StoreErrorKind::PreconditionFailed) => {
            return Ok(Identity::Differs("etag"));
        }
        Err(error) => return Err(error),
    };
    let mut hasher = Sha256Hasher::default();
    let mut body = object.body;
    while let Some(piece) = body.try_next().await? {
        hasher.update(&piece);
    }
    if hasher.finish() == manifest.sha256 {
        Ok(Identity::Same)
    } else {
        Ok(Identity::Differs("sha256"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::clock::SystemClock;
    use crate::digest::Sha256Digest;
    use crate::store::PutMode;
    use crate::store::memory::MemoryStore;

    fn identity(meta: &ObjectMeta, bytes: &[u8]) -> BodyIdentity {
        BodyIdentity {
            size_bytes: meta.size_bytes,
            sha256: Sha256Digest::of(bytes),
            etag: meta.etag.0.clone(),
            version_id: meta.version_id.as_ref().map(|version| version.0.clone()),
            store_checksum: meta.checksum.clone(),
        }
    }

    #[rstest]
    #[case::same(|_: &mut BodyIdentity| {}, Identity::Same)]
    #[case::size(|body: &mut BodyIdentity| body.size_bytes += 1, Identity::Differs("size"))]
    #[case::etag(|body: &mut BodyIdentity| body.etag.push('x'), Identity::Differs("etag"))]
    #[case::generation(
        |body: &mut BodyIdentity| body.version_id = Some("v2".into()),
        Identity::Differs("generation")
    )]
    #[case::null_is_no_generation(
        |body: &mut BodyIdentity| body.version_id = Some("null".into()),
        Identity::Same
    )]
    #[case::checksum(
        |body: &mut BodyIdentity| body.store_checksum = Some("crc32:AAAAAA==".into()),
        Identity::Differs("checksum")
    )]
    #[case::read_where_none_was_kept(
        |body: &mut BodyIdentity| body.store_checksum = None,
        Identity::Same
    )]
    #[case::read_and_other(
        |body: &mut BodyIdentity| {
            body.store_checksum = Some("sha1:x".into());
            body.sha256 = Sha256Digest::of(b"other");
        },
        Identity::Differs("sha256")
    )]
    #[tokio::test]
    async fn every_part_of_the_identity_counts(
        #[case] change: fn(&mut BodyIdentity),
        #[case] expected: Identity,
    ) {
        let store = MemoryStore::new(SystemClock::shared());
        let key = Key::parse("b").unwrap();
        store
            .put(&key, "body".into(), PutMode::CreateIfAbsent)
            .await
            .unwrap();
        let meta = store.head(&key).await.unwrap().meta;
        let mut manifest = identity(&meta, b"body");
        change(&mut manifest);
        let checked = check(&store, &key, &manifest, &meta).await.unwrap();
        assert_eq!(checked, expected);
    }
}
