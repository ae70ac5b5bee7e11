//! What travels: framing, checksums, headers; and a real socket.

use bytes::Bytes;
use spillbox::store::s3::{ChecksumMode, S3Settings, S3Store};
use spillbox::store::{GetOptions, ObjectStore, Payload, PutMode, StoreErrorKind};

use super::meaning::{key, kind_of, read};
use crate::support::s3_server::{Action, BUCKET, Fault, Op, Quirks, S3Server};

fn segmented() -> Payload {
    let mut payload = Payload::default();
    for n in 0..40_u8 {
        payload.push(Bytes::from(vec![n; 1_000]));
    }
    payload
}

#[tokio::test]
async fn no_body_is_ever_framed_as_aws_chunked() {
    for checksum in [ChecksumMode::Header, ChecksumMode::Off] {
        for sign_payload in [false, true] {
            let server = S3Server::start();
            let settings = S3Settings {
                checksum,
                sign_payload: Some(sign_payload),
                ..S3Server::settings()
            };
            let store = server.store_with(&settings);
            let put = store
                .put(&key("k"), segmented(), PutMode::CreateIfAbsent)
                .await;
            put.unwrap();
            assert_eq!(server.bytes("k").unwrap(), segmented().to_bytes());
            let upload = store.create_upload(&key("u")).await.unwrap();
            let part = store.put_part(&upload, 1, segmented()).await.unwrap();
            store.complete_upload(&upload, &[part]).await.unwrap();
            assert_eq!(server.bytes("u").unwrap(), segmented().to_bytes());
            for entry in server.log().entries() {
                if !matches!(entry.seen.op, Op::Put | Op::Part) {
                    continue;
                }
                let headers = &entry.seen.headers;
                assert_eq!(headers["content-length"], "40000");
                assert!(!headers.contains_key("content-encoding"));
                assert!(!headers.contains_key("x-amz-trailer"));
                let has_checksum = headers.contains_key("x-amz-checksum-crc32");
                assert_eq!(has_checksum, checksum == ChecksumMode::Header);
                let is_signed = headers["x-amz-content-sha256"].len() == 64;
                assert_eq!(is_signed, sign_payload);
            }
        }
    }
}

#[tokio::test]
async fn the_log_counts_requests_by_kind_and_key_class() {
    let server = S3Server::start();
    let store = server.store();
    let body = key("v1/t/tenant/b/s/a");
    let manifest = key("v1/t/tenant/a/s/a");
    store
        .put(&body, "x".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    store
        .put(&manifest, "{}".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let log = server.log();
    assert_eq!(
        (log.count("put:b"), log.count("put:a"), log.round_trips()),
        (1, 1, 2)
    );
    log.clear();
    let (a, b) = tokio::join!(store.head(&body), store.head(&manifest));
    a.unwrap();
    b.unwrap();
    assert_eq!((log.count("head:b"), log.round_trips()), (1, 1));
    assert_eq!(log.entries()[0].status, Some(200));
}

#[tokio::test]
async fn a_wrong_checksum_is_refused_by_all_but_the_servers_that_look_away() {
    for quirks in Quirks::ALL {
        let server = S3Server::builder().quirks(quirks).start();
        let put = server
            .client()
            .put_object()
            .bucket(BUCKET)
            .key("k")
            .checksum_crc32("AAAAAA==")
            .body(Bytes::from_static(b"abc").into())
            .send()
            .await;
        assert_eq!(
            put.is_ok(),
            matches!(quirks.name, "ceph16" | "rclone"),
            "{}",
            quirks.name
        );
        let is_stored = server.bytes("k").is_some();
        let name = quirks.name;
        assert_eq!(is_stored, put.is_ok() || name == "s3s-fs", "{name}");
    }
}

#[tokio::test]
async fn a_bit_that_flips_in_the_store_is_seen_by_reading_only() {
    let server = S3Server::start();
    let store = server.store();
    server.fault(Fault::on(Op::Put, Action::Corrupt));
    store
        .put(&key("k"), "abc".into(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let got = read(&store, "k", GetOptions::default()).await.unwrap();
    assert_ne!(got, b"abc");
}

#[tokio::test]
async fn the_same_server_answers_on_a_socket() {
    let server = S3Server::start();
    let endpoint = server.listen().await;
    let settings = S3Settings {
        endpoint: Some(endpoint.clone()),
        ..S3Server::settings()
    };
    let store = server.store_over_socket(&settings);
    store
        .put(&key("k"), segmented(), PutMode::CreateIfAbsent)
        .await
        .unwrap();
    let got = read(&store, "k", GetOptions::default()).await.unwrap();
    assert_eq!(got, segmented().to_bytes());
    assert_eq!(
        kind_of(store.head(&key("none")).await),
        StoreErrorKind::NotFound
    );
    server.fault(Fault::on(Op::Put, Action::LoseReply));
    let put = store
        .put(&key("lost"), segmented(), PutMode::CreateIfAbsent)
        .await;
    assert_eq!(kind_of(put), StoreErrorKind::Ambiguous);
    // Hyper may break the connection before the head was flushed, which is repeated: hit them all.
    let cut = Action::CutBody {
        after_bytes: 20_000,
        is_silent: false,
    };
    server.fault(Fault::on(Op::Get, cut).always());
    let got = read(&store, "k", GetOptions::default()).await;
    assert_eq!(kind_of(got), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn an_endpoint_where_nobody_listens_is_unavailable_even_to_writes() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let server = S3Server::start();
    let settings = S3Settings {
        endpoint: Some(endpoint),
        ..S3Server::settings()
    };
    let store: S3Store = server.store_over_socket(&settings);
    let put = store
        .put(&key("k"), "1".into(), PutMode::CreateIfAbsent)
        .await;
    let error = put.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
    assert!(error.detail.contains("endpoint"), "{error}");
}
