//! Multipart uploads.

use bytes::Bytes;
use futures_util::StreamExt;

use super::{Trial, expect, expect_kind, payload};
use crate::limits::PART_BYTES;
use crate::store::{ETag, GetOptions, Part, Payload, StoreErrorKind};

/// S3 refuses smaller parts, but for the last one.
const SMALLEST_PART: usize = 5 << 20;

/// `size` bytes that differ from part to part and at every place of a part.
fn part_content(number: u32, size: usize) -> Bytes {
    let mut content = Vec::with_capacity(size);
    for block in 0..size.div_ceil(4_096) {
        content.extend_from_slice(&number.to_le_bytes());
        content.extend_from_slice(&(block as u64).to_le_bytes());
        content.resize((block * 4_096 + 4_096).min(size), b'.');
    }
    content.into()
}

pub(super) async fn a_64_mib_multipart_reads_back_as_sent(trial: &Trial) {
    let key = trial.key("large");
    let upload = expect(trial.store.create_upload(&key).await, "beginning");
    let mut parts = Vec::new();
    for number in 1..=8 {
        let content = part_content(number, PART_BYTES);
        let mut segments = Payload::default();
        segments.push(content.slice(..1_000));
        segments.push(content.slice(1_000..));
        let part = expect(
            trial.store.put_part(&upload, number, segments).await,
            "a part",
        );
        assert_eq!((part.number, part.size_bytes), (number, PART_BYTES as u64));
        parts.push(part);
    }
    let receipt = expect(
        trial.store.complete_upload(&upload, &parts).await,
        "completing",
    );

    let mut object = trial.open(&key, GetOptions::default()).await;
    assert_eq!(object.meta.size_bytes, 64 << 20);
    assert_eq!(object.meta.etag, receipt.etag, "the completion's ETag");
    let (mut number, mut expected) = (0, Bytes::new());
    while let Some(piece) = object.body.next().await {
        let mut piece = expect(piece, "reading");
        while !piece.is_empty() {
            if expected.is_empty() {
                number += 1;
                expected = part_content(number, PART_BYTES);
            }
            let length = piece.len().min(expected.len());
            let is_same = piece.split_to(length) == expected.split_to(length);
            assert!(is_same, "the bytes of part {number} differ");
        }
    }
    assert_eq!(
        (number, expected.len()),
        (8, 0),
        "all parts and no byte more"
    );
    let seam = PART_BYTES as u64;
    let across = GetOptions {
        range: Some(seam - 2..seam + 4),
        ..GetOptions::default()
    };
    let across = super::collect(trial.open(&key, across).await.body).await;
    assert_eq!(
        across, b"..\x02\0\0\0",
        "a range across the seam of two parts"
    );
    assert!(
        trial.upload_ids().await.is_empty(),
        "nothing is left of the upload"
    );
}

pub(super) async fn a_part_sent_again_replaces_the_first(trial: &Trial) {
    let key = trial.key("k");
    let upload = expect(trial.store.create_upload(&key).await, "beginning");
    let put = |number, content: Bytes| trial.store.put_part(&upload, number, content.into());
    let old = expect(put(1, part_content(9, SMALLEST_PART)).await, "a part");
    expect(put(2, Bytes::from_static(b"old tail")).await, "a part");
    let tail = expect(put(2, Bytes::from_static(b"tail")).await, "a part again");
    let head = expect(put(1, part_content(1, SMALLEST_PART)).await, "a part again");
    assert_ne!(old.etag, head.etag, "other bytes, another ETag");
    let parts = [head, tail];
    let complete = trial.store.complete_upload(&upload, &parts);
    expect(complete.await, "completing");
    let object = trial.open(&key, GetOptions::default()).await;
    let bytes = super::collect(object.body).await;
    assert_eq!(bytes.len(), SMALLEST_PART + 4);
    assert!(
        bytes[..SMALLEST_PART] == part_content(1, SMALLEST_PART),
        "the head"
    );
    assert_eq!(&bytes[SMALLEST_PART..], b"tail");
}

pub(super) async fn an_unfinished_upload_is_listed_and_invisible(trial: &Trial) {
    let key = trial.key("k");
    let one = expect(trial.store.create_upload(&key).await, "beginning");
    let two = expect(trial.store.create_upload(&key).await, "beginning a second");
    assert_ne!(one.upload_id, two.upload_id);
    let part = expect(trial.store.put_part(&one, 1, payload("x")).await, "a part");
    assert!(!trial.exists(&key).await, "no object before the completion");
    assert!(
        trial.list_all().await.is_empty(),
        "no key before the completion"
    );
    let mut ids = trial.upload_ids().await;
    let mut expected = [one.upload_id.clone(), two.upload_id.clone()];
    ids.sort_unstable();
    expected.sort_unstable();
    assert_eq!(ids, expected);
    expect(
        trial.store.complete_upload(&one, &[part]).await,
        "completing",
    );
    assert_eq!(trial.read(&key).await, "x");
    assert_eq!(trial.upload_ids().await, [two.upload_id]);
}

pub(super) async fn an_aborted_upload_leaves_nothing(trial: &Trial) {
    let key = trial.key("k");
    let upload = expect(trial.store.create_upload(&key).await, "beginning");
    let part = expect(
        trial.store.put_part(&upload, 1, payload("x")).await,
        "a part",
    );
    for what in ["aborting", "aborting again"] {
        expect(trial.store.abort_upload(&upload).await, what);
    }
    assert!(trial.upload_ids().await.is_empty(), "no upload is left");
    let gone = StoreErrorKind::NotFound;
    let late = trial.store.put_part(&upload, 2, payload("y")).await;
    expect_kind(late, gone, "a part after the abort");
    let late = trial.store.complete_upload(&upload, &[part]).await;
    expect_kind(late, gone, "a completion after the abort");
    assert!(!trial.exists(&key).await, "no object is left");
}

pub(super) async fn a_completion_that_names_another_part_is_refused(trial: &Trial) {
    let key = trial.key("k");
    let upload = expect(trial.store.create_upload(&key).await, "beginning");
    let sent = expect(
        trial.store.put_part(&upload, 1, payload("sent")).await,
        "a part",
    );
    let absent = Part {
        number: 2,
        ..sent.clone()
    };
    let forged = Part {
        etag: ETag("\"00000000000000000000000000000001\"".to_owned()),
        ..sent.clone()
    };
    let wrong: [(&str, Vec<Part>); 3] = [
        ("no parts", vec![]),
        ("a part never sent", vec![sent.clone(), absent]),
        ("a forged ETag", vec![forged]),
    ];
    for (what, parts) in wrong {
        let result = trial.store.complete_upload(&upload, &parts).await;
        expect_kind(result, StoreErrorKind::Rejected, what);
        assert!(!trial.exists(&key).await, "{what}: no object");
    }
    expect(
        trial.store.complete_upload(&upload, &[sent]).await,
        "the right part",
    );
    assert_eq!(trial.read(&key).await, "sent");
}

pub(super) async fn a_completion_that_names_a_replaced_part_is_refused(trial: &Trial) {
    let key = trial.key("k");
    let upload = expect(trial.store.create_upload(&key).await, "beginning");
    let put = |content| trial.store.put_part(&upload, 1, payload(content));
    let old = expect(put("old").await, "a part");
    let new = expect(put("new").await, "a part");
    let result = trial.store.complete_upload(&upload, &[old]).await;
    expect_kind(result, StoreErrorKind::Rejected, "a replaced part");
    assert!(!trial.exists(&key).await, "no object");
    expect(
        trial.store.complete_upload(&upload, &[new]).await,
        "the right part",
    );
    assert_eq!(trial.read(&key).await, "new");
}
