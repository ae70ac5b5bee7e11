//! Conditions and ranges of reads.

use std::ops::Range;

use super::{Trial, collect, expect, expect_kind, no_etag};
use crate::store::{GetOptions, GetReply, PutMode, StoreErrorKind};

fn range(range: Range<u64>) -> GetOptions {
    GetOptions {
        range: Some(range),
        ..GetOptions::default()
    }
}

pub(super) async fn conditions_of_a_read_are_honoured(trial: &Trial) {
    let key = trial.key("k");
    let etag = trial.create(&key, "bytes").await.etag;
    let get = |if_match, if_none_match, range| {
        let options = GetOptions {
            range,
            if_match,
            if_none_match,
        };
        trial.store.get(&key, options)
    };
    let is_304 = |reply| matches!(reply, GetReply::NotModified { .. });

    let same = expect(get(None, Some(etag.clone()), None).await, "if_none_match");
    assert!(is_304(same), "the ETag is the same: not modified");
    let other = expect(get(None, Some(no_etag()), None).await, "if_none_match");
    assert!(!is_304(other), "the ETag is another: the object");
    let matched = expect(get(Some(etag.clone()), None, Some(1..3)).await, "if_match");
    let GetReply::Found(object) = matched else {
        panic!("if_match never answers 304");
    };
    assert_eq!(collect(object.body).await, b"yt");
    let failed = StoreErrorKind::PreconditionFailed;
    expect_kind(
        get(Some(no_etag()), None, None).await,
        failed,
        "a wrong if_match",
    );

    trial.overwrite(&key, "other").await;
    expect_kind(
        get(Some(etag.clone()), None, None).await,
        failed,
        "an old if_match",
    );
    let changed = expect(get(None, Some(etag), None).await, "if_none_match");
    assert!(!is_304(changed), "the object has changed");
}

pub(super) async fn ranges_give_exactly_their_bytes(trial: &Trial) {
    let key = trial.key("k");
    let content = "0123456789";
    trial.create(&key, content).await;
    let cases = [
        (0..4, 0..4),
        (3..7, 3..7),
        (6..10, 6..10),
        (0..1, 0..1),
        (9..10, 9..10),
        (0..10, 0..10),
        (8..1_000, 8..10),
        (0..1 << 40, 0..10),
    ];
    for (asked, got) in cases {
        let object = trial.open(&key, range(asked.clone())).await;
        assert_eq!(object.range, got, "asked for {asked:?}");
        assert_eq!(object.meta.size_bytes, 10, "the size is the whole object's");
        let expected = &content.as_bytes()[got.start as usize..got.end as usize];
        assert_eq!(collect(object.body).await, expected, "asked for {asked:?}");
    }
}

pub(super) async fn a_range_past_the_end_is_refused(trial: &Trial) {
    let (key, empty) = (trial.key("k"), trial.key("empty"));
    trial.create(&key, "0123456789").await;
    trial.create(&empty, "").await;
    for (key, asked) in [(&key, 10..11), (&key, 1_000..2_000), (&empty, 0..1)] {
        let get = trial.store.get(key, range(asked.clone())).await;
        expect_kind(
            get,
            StoreErrorKind::InvalidRange,
            &format!("{key} {asked:?}"),
        );
    }
}

pub(super) async fn large_objects_read_back_whole_and_in_part(trial: &Trial) {
    let key = trial.key("large");
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let put = trial
        .store
        .put(&key, content.clone().into(), PutMode::CreateIfAbsent);
    let receipt = expect(put.await, "a put of 1.2 MB");
    let object = trial.open(&key, GetOptions::default()).await;
    assert_eq!(object.meta.etag, receipt.etag);
    assert!(collect(object.body).await == content, "the bytes differ");
    // Across the piece boundaries of the backends, and the last byte.
    let length = content.len() as u64;
    for asked in [262_143..262_145, 1..524_289, length - 1..length] {
        let object = trial.open(&key, range(asked.clone())).await;
        let expected = &content[asked.start as usize..asked.end as usize];
        assert!(collect(object.body).await == expected, "{asked:?} differs");
    }
}
