//! Whether bytes come back as they were sent, and what the store does about checksums.

use bytes::Bytes;

use super::Check;
use super::prober::{Prober, Step, fetch, settled};
use crate::store::checksum;
use crate::store::probe::ProbePut;
use crate::store::{GetOptions, Payload, PutMode, StoreError, StoreErrorKind};

/// More than one 64 KiB chunk, so that an upload framed as aws-chunked shows its frames.
const SEGMENT_BYTES: usize = 70_000;
const SEGMENTS: usize = 3;

/// A body of every byte value, in segments, that nobody else sends.
fn binary(prober: &Prober<'_>) -> Payload {
    let mut payload = Payload::from(prober.body());
    for segment in 0..SEGMENTS {
        let bytes: Vec<u8> = (0..SEGMENT_BYTES)
            .map(|at| u8::try_from((at * 7 + at / 251 + segment) % 256).unwrap_or(0))
            .collect();
        payload.push(bytes.into());
    }
    payload
}

/// A binary object comes back whole and in part, through every endpoint.
pub(super) async fn bytes(prober: &Prober<'_>) -> Step {
    let (key, payload) = (prober.key(), binary(prober));
    let want = payload.to_bytes();
    settled(|| {
        prober
            .store(0)
            .put(&key, payload.clone(), PutMode::Overwrite)
    })
    .await
    .map_err(|error| prober.trouble("s3:PutObject", &error))?;
    for turn in 0..prober.target.endpoints.len() {
        let got = prober.read(turn, &key).await?;
        if got.as_ref() != Some(&want) {
            let size = got.map_or(0, |got| got.len());
            return Err(Check::failed(format!(
                "{} bytes were sent, {size} came back, and not the same",
                want.len()
            )));
        }
    }
    let range = 65_000_u64..66_000;
    let options = GetOptions {
        range: Some(range.clone()),
        ..GetOptions::default()
    };
    match fetch(prober.store(0), &key, options).await {
        Ok(Some(part)) if part == want.slice(65_000..66_000) => {}
        Ok(_) => return Err(Check::failed(format!("bytes {range:?} came back wrong"))),
        Err(error)
            if matches!(
                error.kind,
                StoreErrorKind::InvalidRange | StoreErrorKind::Rejected
            ) =>
        {
            let said = error.detail;
            return Err(Check::failed(format!("a read of bytes {range:?}: {said}")));
        }
        Err(error) => return Err(prober.trouble("s3:GetObject", &error)),
    }
    Ok(Check::passed(format!(
        "{} bytes of every value",
        want.len()
    )))
}

/// One upload is completed and read back, another aborted.
pub(super) async fn multipart(prober: &Prober<'_>) -> Step {
    let (key, payload) = (prober.key(), binary(prober));
    let want = payload.to_bytes();
    let store = prober.store(0);
    let writes = |error: StoreError| prober.trouble("s3:PutObject (multipart)", &error);
    let upload = store.create_upload(&key).await.map_err(writes)?;
    prober.note_upload(&upload);
    let part = settled(|| store.put_part(&upload, 1, payload.clone()))
        .await
        .map_err(writes)?;
    store
        .complete_upload(&upload, &[part])
        .await
        .map_err(writes)?;
    prober.forget_upload(&upload);
    if prober.read(1, &key).await?.as_ref() != Some(&want) {
        return Err(Check::failed(
            "a completed upload does not hold its parts' bytes",
        ));
    }
    let aborted = prober.key();
    let upload = store.create_upload(&aborted).await.map_err(writes)?;
    prober.note_upload(&upload);
    settled(|| store.abort_upload(&upload))
        .await
        .map_err(|error| prober.trouble("s3:AbortMultipartUpload", &error))?;
    prober.forget_upload(&upload);
    match store.list_uploads(None).await {
        Ok(page) if page.uploads.iter().any(|u| u.upload_id == upload.upload_id) => {
            Err(Check::unsupported("an aborted upload is still listed"))
        }
        Ok(_) => Ok(Check::passed("completed, read back, aborted")),
        // Only the collector asks; it reports that it cannot.
        Err(error) if error.is(StoreErrorKind::NotImplemented) => Ok(Check::passed(
            "completed, read back, aborted; unfinished uploads cannot be listed",
        )),
        Err(error) => Err(prober.trouble("s3:ListBucketMultipartUploads", &error)),
    }
}

/// A body with another body's checksum: refused, and not stored.
pub(super) async fn wrong_checksum(prober: &Prober<'_>) -> Step {
    let (key, body) = (prober.key(), prober.body());
    let probe = ProbePut {
        payload: body.clone().into(),
        hold: None,
        claimed_crc32: Some(Payload::from(body.clone()).crc32() ^ 1),
    };
    let answer = prober
        .store(0)
        .put_probe(&key, probe, PutMode::Overwrite)
        .await;
    match answer {
        Ok(_) => Err(Check::failed("a body with a wrong checksum was taken")),
        Err(error) if error.is(StoreErrorKind::Rejected) => {
            if prober.read_absent(0, &key).await?.is_some() {
                Err(Check::failed(
                    "a body with a wrong checksum was refused and stored all the same",
                ))
            } else {
                Ok(Check::passed("refused and not stored"))
            }
        }
        Err(error) => Err(prober.trouble("s3:PutObject", &error)),
    }
}

/// HEAD tells a checksum, and it is the one that was sent.
pub(super) async fn kept_checksum(prober: &Prober<'_>) -> Step {
    let (key, body): (_, Bytes) = (prober.key(), prober.body());
    prober.set(0, &key, &body).await?;
    let head = settled(|| prober.store(0).head(&key))
        .await
        .map_err(|error| prober.trouble("s3:GetObject", &error))?;
    let Some(told) = head.meta.checksum else {
        return Err(Check::failed("HEAD tells no checksum"));
    };
    let ours = checksum::of_payload(&Payload::from(body));
    if let Some(why) = checksum::contradiction(Some(&told), &ours) {
        return Err(Check::failed(why));
    }
    Ok(Check::passed(told))
}
