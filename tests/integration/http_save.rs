//! Saving over HTTP.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::Value;
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, Saved, TestApp, escape, request, send_to};
use crate::support::s3_server::{Action, Fault, Op};

/// 20 MiB of lines, every one different.
fn long_output() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut number = 0_u64;
    while bytes.len() < 20 << 20 {
        bytes
            .extend_from_slice(format!("src/file_{number}.rs:{number}: fn main() {{\n").as_bytes());
        number += 1;
    }
    bytes
}

/// A body without a length, as a pipe sends it.
fn chunked(bytes: &[u8]) -> Body {
    let pieces: Vec<_> = bytes
        .chunks(70_001)
        .map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece)))
        .collect();
    Body::from_stream(stream::iter(pieces))
}

fn without_retention(receipt: &Value) -> Value {
    let mut receipt = receipt.clone();
    for member in ["orphan_ttl_seconds", "retained_until", "lease"] {
        receipt.as_object_mut().unwrap().remove(member);
    }
    receipt
}

#[rstest]
#[tokio::test]
async fn what_was_saved_is_read_back_byte_for_byte(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let bodies: [&[u8]; 5] = [
        b"",
        b"\n",
        b"no line end",
        b"\0\xff\xfe\r\n\x1b[31m",
        "żółw\n".as_bytes(),
    ];
    for bytes in bodies {
        let reply = app.save("s", "", &[], bytes.to_vec()).await;
        assert_eq!(reply.status, StatusCode::CREATED);
        let saved = Saved::of(&reply);
        let digest = Sha256Digest::of(bytes);
        assert_eq!(saved.receipt["digest"], digest.to_string());
        assert_eq!(saved.receipt["size_bytes"], bytes.len());
        assert_eq!(reply.header("location"), saved.receipt["locator"]);
        assert_eq!(reply.header("etag"), format!("\"{digest}\""));
        let read = app.get(&saved.path).await;
        assert_eq!(read.status, StatusCode::OK);
        assert_eq!(read.body, bytes);
    }
    assert_eq!(app.keys_of('b').await.len(), bodies.len());
    assert_eq!(app.keys_of('c').await.len(), 0);
}

#[rstest]
#[tokio::test]
async fn a_body_above_one_part_is_streamed_and_leaves_no_upload(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let bytes = long_output();
    let digest = Sha256Digest::of(&bytes).to_digest_field();
    let query = "call_id=c-1&tool=grep";
    let headers = [("Repr-Digest", digest.as_str())];
    let reply = app.save("s", query, &headers, chunked(&bytes)).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let saved = Saved::of(&reply);
    assert_eq!(app.open_uploads().await, 0);
    let read = app.get(&saved.path).await;
    assert!(!read.is_cut && read.body == bytes);
    let again = app.save("s", query, &headers, chunked(&bytes)).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.body, reply.body);
    assert_eq!(app.keys_of('b').await.len(), 1);
    assert_eq!(app.open_uploads().await, 0);
}

#[rstest]
#[tokio::test]
async fn the_same_save_again_gets_the_same_receipt(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let first = app.save("s", "call_id=c&tool=ls", &[], "one\n").await;
    assert_eq!(first.status, StatusCode::CREATED);
    app.clock.advance(SignedDuration::from_hours(1));
    let query = "call_id=c&tool=other&summary=other";
    let again = app.save("s", query, &[], "one\n").await;
    assert_eq!(again.status, StatusCode::OK);
    for header in ["location", "etag"] {
        assert_eq!(again.header(header), first.header(header));
    }
    let (first, again) = (first.json(), again.json());
    assert_eq!(without_retention(&first), without_retention(&again));
    let seconds = |receipt: &Value| receipt["orphan_ttl_seconds"].as_u64().unwrap();
    assert!(seconds(&first) > seconds(&again));
    // A replica that has seen nothing of it answers the same.
    let replica = app.replica("default").await;
    let path = "/v1/sessions/s/artifacts?call_id=c";
    let elsewhere = request(Method::PUT, path, &[], Body::from("one\n"));
    let elsewhere = send_to(&replica, elsewhere).await;
    assert_eq!(elsewhere.status, StatusCode::OK);
    assert_eq!(
        without_retention(&elsewhere.json()),
        without_retention(&first)
    );
    assert_eq!(app.keys_of('a').await.len(), 1);
    assert_eq!(app.keys_of('b').await.len(), 1);
    // The same call with other bytes is another artifact, and so is no call id at all.
    for query in ["call_id=c", "", ""] {
        let other = app.save("s", query, &[], "two\n").await;
        assert_eq!(other.status, StatusCode::CREATED, "{query}");
    }
    assert_eq!(app.keys_of('a').await.len(), 4);
}

#[rstest]
#[tokio::test]
async fn five_of_the_same_save_at_once_leave_one_artifact(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let save = || app.save("s", "call_id=c", &[], vec![b'x'; 200_000]);
    let (a, b, c, d, e) = tokio::join!(save(), save(), save(), save(), save());
    let receipts: Vec<_> = [a, b, c, d, e].iter().map(|reply| reply.json()).collect();
    assert!(receipts.iter().all(|receipt| *receipt == receipts[0]));
    app.state.library().unwrap().drain().await;
    assert_eq!(app.keys_of('a').await.len(), 1);
    assert_eq!(app.keys_of('b').await.len(), 1);
}

#[rstest]
#[tokio::test]
async fn call_ids_and_sessions_are_any_text(
    #[values(Backend::Memory, Backend::Local)] backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let long = "call/../".repeat(188)[..1_500].to_owned();
    let calls = [
        long.as_str(),
        "..",
        ".",
        "/",
        "a/../b",
        "\0",
        "🎉",
        "%2e",
        "a b+c&d=e",
        "x\r\ny",
    ];
    for call in calls {
        let query = format!("call_id={}", escape(call));
        let first = app.save("s", &query, &[], "same").await;
        assert_eq!(first.status, StatusCode::CREATED, "{call:?}");
        let again = app.save("s", &query, &[], "same").await;
        assert_eq!(again.status, StatusCode::OK, "{call:?}");
        let stat = app.get(&Saved::of(&first).at("/stat")).await.json();
        assert_eq!(stat["provenance"]["call_id"], call);
    }
    let sessions = [
        "a/b",
        "\0",
        "🎉",
        "a/../b",
        "...",
        "%2F",
        "s?x#y",
        &"x".repeat(512),
    ];
    for session in sessions {
        let reply = app.save(session, "", &[], "same").await;
        assert_eq!(reply.status, StatusCode::CREATED, "{session:?}");
        let saved = Saved::of(&reply);
        let source = format!("artifact:{session}:");
        let source_id = saved.receipt["source_id"].as_str().unwrap();
        assert!(source_id.starts_with(&source));
        assert!(saved.receipt["locator"].as_str().unwrap().len() <= 120);
        let path = format!("/v1/sessions/{}/artifacts", escape(session));
        let list = app.get(&path).await.json();
        assert_eq!(list["artifacts"].as_array().unwrap().len(), 1);
    }
    let is_plain = |key: &String| {
        key.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"/._-".contains(&b))
    };
    assert!(app.keys().await.iter().all(is_plain));
}

#[tokio::test]
async fn what_the_caller_says_of_the_output_is_kept() {
    let app = TestApp::new(Backend::Memory).await;
    let query = "tool=gr%C4%99p&label=l&name=n.txt&title=t&summary=a%20%0A%20b\
        &completeness=upstream_truncated:12000%20characters&profile=default&means=";
    let headers = [("Content-Type", "text/x-log; charset=utf-8")];
    let reply = app.save("s", query, &headers, "x".repeat(50_000)).await;
    let saved = Saved::of(&reply);
    assert_eq!(saved.receipt["completeness"], "upstream_truncated");
    assert_eq!(saved.receipt["retrieval_hint"], Value::Null);
    assert_eq!(saved.receipt["truncated"], true);
    let stat = app.get(&saved.at("/stat")).await.json();
    let from = &stat["provenance"];
    assert_eq!(from["tool"], "gręp");
    assert_eq!(from["label"], "l");
    assert_eq!(from["name"], "n.txt");
    assert_eq!(from["title"], "t");
    assert_eq!(stat["summary"], "a b");
    assert_eq!(stat["upstream_loss"], "12000 characters");
    assert_eq!(stat["media_type"], "text/x-log; charset=utf-8");
    // Names that say nothing are absent, not empty.
    let saved = app.put("tool=&label=&summary=", "x").await;
    let stat = app.get(&saved.at("/stat")).await.json();
    assert_eq!(stat["provenance"]["tool"], Value::Null);
}

#[tokio::test]
async fn curls_default_content_type_is_not_what_the_bytes_are() {
    let app = TestApp::new(Backend::Memory).await;
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let saved = Saved::of(&app.save("s", "", &headers, "x").await);
    let read = app.get(&saved.path).await;
    assert_eq!(read.header("content-type"), "application/octet-stream");
}

#[tokio::test]
async fn the_hint_is_made_of_the_declared_means() {
    let app = TestApp::new(Backend::Memory).await;
    let body = || "line\n".repeat(10_000);
    for (query, start) in [
        ("", "curl "),
        ("means=cli,http", "spillbox lines "),
        ("means=mcp:artifact_read", "call the tool artifact_read "),
    ] {
        let saved = app.put(query, body()).await;
        let hint = saved.receipt["retrieval_hint"].as_str().unwrap();
        assert!(hint.starts_with(start), "{hint}");
        assert!(
            saved.receipt["replacement"]
                .as_str()
                .unwrap()
                .contains(hint)
        );
    }
}

#[tokio::test]
async fn put_means_the_same_as_post() {
    let app = TestApp::new(Backend::Memory).await;
    let path = "/v1/sessions/s/artifacts?call_id=c";
    let put = app
        .send(request(Method::PUT, path, &[], Body::from("x")))
        .await;
    assert_eq!(put.status, StatusCode::CREATED);
    let post = app
        .send(request(Method::POST, path, &[], Body::from("x")))
        .await;
    assert_eq!(post.status, StatusCode::OK);
    assert_eq!(post.body, put.body);
}

#[tokio::test]
async fn a_fork_names_its_parent_once() {
    let app = TestApp::new(Backend::Memory).await;
    let first = app.save("parent", "call_id=c", &[], "x").await;
    let fork = app.save("child", "call_id=c&parent=parent", &[], "x").await;
    assert_eq!(fork.status, StatusCode::OK);
    assert_eq!(fork.body, first.body);
    let own = app.save("child", "call_id=d", &[], "y").await;
    assert_eq!(own.status, StatusCode::CREATED);
    let stat = app.get(&Saved::of(&own).at("/stat")).await.json();
    assert_eq!(stat["parent_session"], "parent");
    let other = app.save("child", "parent=elsewhere", &[], "z").await;
    other.is_problem(ErrorCode::ParentConflict);
    let late = app.save("parent", "parent=child", &[], "z").await;
    late.is_problem(ErrorCode::ParentConflict);
    let unknown = app.save("third", "parent=elsewhere", &[], "z").await;
    unknown.is_problem(ErrorCode::ParentNotFound);
    assert_eq!(app.keys_of('a').await.len(), 2);
    assert_eq!(app.keys_of('b').await.len(), 2);
}

#[tokio::test]
async fn an_erased_output_is_not_saved_again() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("call_id=c", "secret").await;
    app.bury(&saved, TombstoneReason::Erased).await;
    let again = app.save("s", "call_id=c", &[], "secret").await;
    let problem = again.is_problem(ErrorCode::ArtifactDeleted);
    assert_eq!(problem["reason"], "erased");
    assert_eq!(problem["digest"], saved.receipt["digest"]);
    assert_eq!(problem["size_bytes"], 6);
    // An expired one is: its caller has the bytes again.
    let saved = app.put("call_id=d", "log").await;
    app.bury(&saved, TombstoneReason::Expired).await;
    let again = app.save("s", "call_id=d", &[], "log").await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_ne!(again.json()["artifact_id"], saved.receipt["artifact_id"]);
}

#[tokio::test]
async fn a_failing_store_is_a_retryable_503_without_a_locator() {
    let refuse = |status, code| Action::Refuse { status, code };
    for (action, code) in [
        (refuse(403, "AccessDenied"), ErrorCode::StoreDenied),
        (refuse(507, "InsufficientStorage"), ErrorCode::StoreFull),
        // A write that was told to slow down may have been applied all the same.
        (refuse(503, "SlowDown"), ErrorCode::StoreOutcomeUnknown),
    ] {
        for class in ["a", "b"] {
            let app = TestApp::new(Backend::S3).await;
            let server = app.s3.as_ref().unwrap();
            let fault = Fault::on(Op::Put, action.clone()).of_class(class);
            server.fault(fault.times(1_000));
            let reply = app.save("s", "", &[], "x").await;
            let problem = reply.is_problem(code);
            assert_eq!(problem["retryable"], true);
            let is_busy = reply.status == StatusCode::SERVICE_UNAVAILABLE;
            assert_eq!(!reply.header("retry-after").is_empty(), is_busy);
            let text = reply.text();
            let (manifests, bodies) = (app.keys_of('a').await, app.keys_of('b').await);
            assert_eq!(manifests.len(), 0);
            // What the client is told names no key of the store.
            for key in bodies {
                let id = key.rsplit('/').next().unwrap();
                assert!(!text.contains(id), "{text}");
            }
            server.clear_faults();
            let again = app.save("s", "", &[], "x").await;
            assert_eq!(again.status, StatusCode::CREATED);
        }
    }
}

#[tokio::test]
async fn too_many_uploads_at_once_are_sent_away() {
    let app = TestApp::with(Backend::Memory, |options| {
        options.max_concurrent_uploads = 0;
    })
    .await;
    let reply = app.save("s", "", &[], "x").await;
    reply.is_problem(ErrorCode::Saturated);
    assert_eq!(reply.header("retry-after"), "2");
    app.assert_untouched("saturated").await;
}
