//! The bare requests that the service is held against.

use std::ops::Range;

use anyhow::bail;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use spillbox::limits::{PART_BYTES, PARTS_IN_FLIGHT};
use spillbox::store::keys::Key;
use spillbox::store::{GetOptions, GetReply, Payload, PutMode, SharedStore};

/// One PUT of the whole body.
pub(crate) async fn put(store: &SharedStore, key: &Key, body: &Bytes) -> anyhow::Result<()> {
    let payload = Payload::from(body.clone());
    store.put(key, payload, PutMode::CreateIfAbsent).await?;
    Ok(())
}

/// A multipart upload in parts as the service makes them, as many at once.
pub(crate) async fn put_parts(store: &SharedStore, key: &Key, body: &Bytes) -> anyhow::Result<()> {
    let upload = store.create_upload(key).await?;
    let starts = (0..body.len()).step_by(PART_BYTES).enumerate();
    let parts: Vec<_> = stream::iter(starts)
        .map(|(index, start)| {
            let part = body.slice(start..body.len().min(start + PART_BYTES));
            let number = u32::try_from(index + 1).expect("few parts");
            let upload = &upload;
            async move { store.put_part(upload, number, Payload::from(part)).await }
        })
        .buffered(PARTS_IN_FLIGHT)
        .try_collect()
        .await?;
    store.complete_upload(&upload, &parts).await?;
    Ok(())
}

/// One GET, whole or of a range; answers the number of bytes.
pub(crate) async fn get(
    store: &SharedStore,
    key: &Key,
    range: Option<Range<u64>>,
) -> anyhow::Result<u64> {
    let options = GetOptions {
        range,
        ..GetOptions::default()
    };
    let GetReply::Found(mut object) = store.get(key, options).await? else {
        bail!("an unconditional read answered 304");
    };
    let mut bytes = 0;
    while let Some(frame) = object.body.try_next().await? {
        bytes += frame.len() as u64;
    }
    Ok(bytes)
}
