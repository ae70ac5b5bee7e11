//! The named servers do what was measured of the servers that they stand for.

use std::pin::Pin;
use std::task::{Context, Poll};

use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, BucketLifecycleConfiguration, ExpirationStatus, LifecycleRule,
    LifecycleRuleFilter,
};
use bytes::Bytes;
use futures_util::future::join_all;
use http_body::{Body, Frame, SizeHint};
use spillbox::store::{
    DeleteFence, ETag, ObjectStore, PutMode, StoreError, StoreErrorKind, VersionId,
};
use tokio::sync::mpsc;

use super::meaning::key;
use crate::support::s3_server::{BUCKET, BucketVersioning, Quirks, S3Server};

fn kind<T>(outcome: Result<T, StoreError>) -> Option<StoreErrorKind> {
    outcome.err().map(|error| error.kind)
}

#[tokio::test]
async fn each_server_treats_sequential_conditions_as_measured() {
    use StoreErrorKind::{AlreadyExists, PreconditionFailed};
    let failed = Some(PreconditionFailed);
    // create on a present key, replace with the right and a wrong ETag, delete with a wrong one
    let table = [
        (Quirks::AWS, Some(AlreadyExists), None, failed, failed),
        (Quirks::MINIO, Some(AlreadyExists), None, failed, None),
        (Quirks::SEAWEEDFS, Some(AlreadyExists), None, failed, failed),
        (Quirks::CEPH16, Some(AlreadyExists), failed, failed, None),
        (Quirks::RCLONE, None, None, None, None),
        (Quirks::S3S_FS, Some(AlreadyExists), None, failed, None),
    ];
    for (quirks, create, right, wrong, delete) in table {
        let server = S3Server::builder().quirks(quirks).start();
        let store = server.store();
        let at = key("k");
        let name = quirks.name;
        let put = |text: &'static str, mode| store.put(&at, text.into(), mode);
        put("0", PutMode::CreateIfAbsent).await.unwrap();
        let again = put("1", PutMode::CreateIfAbsent).await;
        assert_eq!(kind(again), create, "{name}: create");
        let etag = put("2", PutMode::Overwrite).await.unwrap().etag;
        let replace = put("3", PutMode::ReplaceIfMatch(etag)).await;
        assert_eq!(kind(replace), right, "{name}: replace, right");
        let stale = ETag("\"00000000000000000000000000000000\"".into());
        let replace = put("4", PutMode::ReplaceIfMatch(stale.clone())).await;
        assert_eq!(kind(replace), wrong, "{name}: replace, wrong");
        let missing = key("none");
        let mode = PutMode::ReplaceIfMatch(stale.clone());
        let replace = store.put(&missing, "5".into(), mode).await;
        assert_eq!(kind(replace), wrong, "{name}: replace, missing");
        let gone = store.delete(&at, DeleteFence::IfMatch(stale)).await;
        assert_eq!(kind(gone), delete, "{name}: delete, wrong");
        assert_eq!(
            server.bytes("k").is_some(),
            delete.is_some(),
            "{name}: kept"
        );
    }
}

async fn winners(server: &S3Server) -> usize {
    let store = server.store();
    let at = key("raced");
    let puts = (0..8).map(|n| store.put(&at, format!("{n}").into(), PutMode::CreateIfAbsent));
    let results = join_all(puts).await;
    results.iter().filter(|result| result.is_ok()).count()
}

#[tokio::test]
async fn only_a_race_shows_check_then_write() {
    for quirks in [
        Quirks::AWS,
        Quirks::MINIO,
        Quirks::SEAWEEDFS,
        Quirks::CEPH16,
    ] {
        let server = S3Server::builder().quirks(quirks).start();
        assert_eq!(winners(&server).await, 1, "{}", quirks.name);
    }
    for quirks in [Quirks::RCLONE, Quirks::S3S_FS] {
        let server = S3Server::builder().quirks(quirks).start();
        assert!(winners(&server).await > 1, "{}", quirks.name);
    }
}

#[tokio::test]
async fn ceph_is_right_without_versions_and_wrong_with_them() {
    for (quirks, is_exact) in [
        (Quirks::AWS, true),
        (Quirks::MINIO, true),
        (Quirks::SEAWEEDFS, true),
        (Quirks::CEPH16, false),
    ] {
        let versioned = S3Server::builder()
            .quirks(quirks)
            .versioning(BucketVersioning::Enabled)
            .start();
        assert_eq!(winners(&versioned).await == 1, is_exact, "{}", quirks.name);
    }
}

#[tokio::test]
async fn a_version_delete_without_versions_is_the_danger_that_was_measured() {
    for (quirks, is_kept) in [
        (Quirks::AWS, true),
        (Quirks::MINIO, true),
        (Quirks::SEAWEEDFS, false),
        (Quirks::CEPH16, true),
        (Quirks::RCLONE, true),
        (Quirks::S3S_FS, false),
    ] {
        let server = S3Server::builder().quirks(quirks).start();
        server.plant("k", "1");
        let fence = DeleteFence::Version(VersionId("bogus".into()));
        let deleted = server.store().delete(&key("k"), fence).await;
        let refusal = (quirks.name == "rclone").then_some(StoreErrorKind::NotImplemented);
        assert_eq!(kind(deleted), refusal, "{}", quirks.name);
        assert_eq!(server.bytes("k").is_some(), is_kept, "{}", quirks.name);
    }
}

#[tokio::test]
async fn minio_refuses_the_rule_that_aborts_uploads() {
    let rule = LifecycleRule::builder()
        .status(ExpirationStatus::Enabled)
        .filter(LifecycleRuleFilter::builder().prefix("").build())
        .abort_incomplete_multipart_upload(
            AbortIncompleteMultipartUpload::builder()
                .days_after_initiation(1)
                .build(),
        )
        .build()
        .unwrap();
    for (quirks, is_taken) in [(Quirks::AWS, true), (Quirks::MINIO, false)] {
        let server = S3Server::builder().quirks(quirks).start();
        let rules = BucketLifecycleConfiguration::builder()
            .rules(rule.clone())
            .build()
            .unwrap();
        let put = server
            .client()
            .put_bucket_lifecycle_configuration()
            .bucket(BUCKET)
            .lifecycle_configuration(rules)
            .checksum_algorithm(aws_sdk_s3::types::ChecksumAlgorithm::Crc32)
            .send()
            .await;
        assert_eq!(put.is_ok(), is_taken, "{}", quirks.name);
    }
}

/// A body whose bytes come when the test sends them.
struct Trickle {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    size_bytes: u64,
}

impl Body for Trickle {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = std::task::ready!(self.pieces.poll_recv(context));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size_bytes)
    }
}

/// A sends half a body, B creates beside it, A finishes. Answers whether A and B won, and whether B
/// was answered before A was done.
async fn slow_and_fast_writer(server: &S3Server) -> (bool, bool, bool) {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let body = SdkBody::from_body_1_x(Trickle {
        pieces: receiver,
        size_bytes: 4,
    });
    let client = server.client();
    let slow = client
        .put_object()
        .bucket(BUCKET)
        .key("k")
        .if_none_match("*")
        .content_length(4)
        // The checksum of `slow`; with a checksum of its own the body is not framed.
        .checksum_crc32("NQdx3Q==")
        .body(ByteStream::new(body))
        .send();
    let store = server.store();
    let at = key("k");
    let fast = store.put(&at, "fast".into(), PutMode::CreateIfAbsent);
    let mut slow = Box::pin(slow);
    let mut fast = Box::pin(fast);
    pieces
        .send(Bytes::from_static(b"sl"))
        .expect("A is reading");
    let mut early = None;
    for _ in 0..200 {
        let (slow_first, fast_first) = (futures_util::poll!(&mut slow), early.is_none());
        assert!(slow_first.is_pending(), "half a body is no body");
        if fast_first && let Poll::Ready(result) = futures_util::poll!(&mut fast) {
            early = Some(result);
        }
        tokio::task::yield_now().await;
    }
    pieces
        .send(Bytes::from_static(b"ow"))
        .expect("A is reading");
    drop(pieces);
    let is_early = early.is_some();
    let finish = async {
        match early {
            Some(result) => result,
            None => fast.await,
        }
    };
    let (slow, fast) = tokio::join!(slow, finish);
    (slow.is_ok(), fast.is_ok(), is_early)
}

#[tokio::test]
async fn a_slow_writer_meets_a_fast_one_as_measured() {
    for (quirks, want) in [
        (Quirks::AWS, (false, true, true)),
        (Quirks::SEAWEEDFS, (false, true, true)),
        // The slow one holds the key's lock, and the fast one waits for it.
        (Quirks::MINIO, (true, false, false)),
        (Quirks::RCLONE, (true, true, true)),
        (Quirks::S3S_FS, (true, true, true)),
    ] {
        let server = S3Server::builder().quirks(quirks).start();
        assert_eq!(slow_and_fast_writer(&server).await, want, "{}", quirks.name);
    }
}
