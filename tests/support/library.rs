//! A library over any store, as one replica of the service has it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::read::ReadError;
use spillbox::artifact::receipt::Receipt;
use spillbox::artifact::request::{BodyStream, SaveRequest};
use spillbox::artifact::save::Saved;
use spillbox::clock::{Clock, SystemClock};
use spillbox::ids::{SystemIds, Tenant};
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;

/// A replica with empty caches.
pub(crate) fn replica(store: &SharedStore) -> Library {
    replica_under(store, &KeySpace::new("").unwrap())
}

/// A replica with empty caches whose keys begin with a prefix.
pub(crate) fn replica_under(store: &SharedStore, keys: &KeySpace) -> Library {
    Library::new(
        Arc::clone(store),
        keys.clone(),
        StoreFormat {
            v: 1,
            orphan_ttl_seconds: 86_400,
        },
        SystemClock::shared(),
        SystemIds::shared(),
        LibraryOptions::default(),
    )
}

pub(crate) fn request(session: &str, call: Option<&str>) -> SaveRequest {
    let mut request = SaveRequest::new(Tenant::default(), session.parse().unwrap());
    request.call_id = call.map(|call| call.parse().unwrap());
    request.tool = Some("bash".to_owned());
    request
}

/// A body in pieces, as a socket brings it.
pub(crate) fn body(bytes: &Bytes) -> BodyStream {
    let mut rest = bytes.clone();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        pieces.push(Ok(rest.split_to(rest.len().min(60_000))));
    }
    stream::iter(pieces).boxed()
}

/// A log of numbered lines, exactly `size` bytes.
pub(crate) fn log(size: usize) -> Bytes {
    let lines = (0..).flat_map(|n| format!("line {n} of a log\n").into_bytes());
    lines.take(size).collect::<Vec<_>>().into()
}

/// Everything of an artifact, through the verifying reader.
pub(crate) async fn read_all(library: &Library, saved: &Saved) -> Result<Bytes, ReadError> {
    let artifact = saved.manifest.head.artifact_ref();
    let whole =
        |manifest: &spillbox::artifact::manifest::Manifest| 0..manifest.head.body.size_bytes;
    let read = library.open(&Tenant::default(), &artifact, whole).await?;
    let pieces: Vec<Bytes> = read.into_stream().try_collect().await?;
    Ok(pieces.concat().into())
}

/// The receipt without what may differ between equal saves.
pub(crate) fn receipt(library: &Library, saved: &Saved) -> serde_json::Value {
    let receipt = Receipt::of(&saved.manifest, library.orphan_ttl(), SystemClock.now());
    let mut value = serde_json::to_value(receipt).unwrap();
    let fields = value.as_object_mut().unwrap();
    for volatile in ["orphan_ttl_seconds", "retained_until", "lease"] {
        fields.remove(volatile);
    }
    value
}
