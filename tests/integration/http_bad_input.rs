//! Malformed input: a 4xx with a code and a hint, nothing stored, nothing left behind.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use rstest::rstest;
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, TestApp, request, send_to, shared};

const LIMIT: u64 = 9 << 20;

async fn app(backend: Backend) -> TestApp {
    TestApp::with(backend, |options| options.max_body_bytes = LIMIT).await
}

#[rstest]
#[tokio::test]
async fn a_malformed_save_stores_nothing(
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
    let app = app(backend).await;
    let long = |name: &str, bytes: usize| format!("{name}={}", "x".repeat(bytes));
    let queries = [
        "nonsense=1".to_owned(),
        "tool=a&tool=b".to_owned(),
        "tool=%zz".to_owned(),
        "tool=%ff".to_owned(),
        "tool=%".to_owned(),
        "call_id=".to_owned(),
        "call_id=%c3%28".to_owned(),
        long("call_id", 4_097),
        long("tool", 1_025),
        long("label", 1_025),
        long("name", 1_025),
        long("title", 1_025),
        "completeness=done".to_owned(),
        "completeness=Complete".to_owned(),
        "profile=Hermes".to_owned(),
        "profile=".to_owned(),
        "parent=".to_owned(),
        "parent=..".to_owned(),
        long("parent", 513),
        "means=ftp".to_owned(),
        "means=http,".to_owned(),
        "means=mcp:".to_owned(),
        "means=mcp:a%0Ab".to_owned(),
    ];
    for query in &queries {
        let reply = app.save("s", query, &[], "x").await;
        let problem = reply.is_problem(ErrorCode::InvalidParameter);
        let name = query.split('=').next().unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(name));
        assert!(reply.body.len() < 1_500, "{}", reply.body.len());
    }
    let digest = Sha256Digest::of(b"x").to_digest_field();
    let other = Sha256Digest::of(b"y").to_digest_field();
    let long_type = format!("text/{}", "x".repeat(600));
    let headers: [&[(&str, &str)]; 16] = [
        &[("Content-Type", "text")],
        &[("Content-Type", "text/plain, text/html")],
        &[("Content-Type", &long_type)],
        &[("Content-Type", "a/b"), ("Content-Type", "c/d")],
        &[("Content-Encoding", "gzip")],
        &[("Content-Encoding", "identity, br")],
        &[("Content-Range", "bytes 0-0/1")],
        &[("Content-Length", "-1")],
        &[("Content-Length", "1e3")],
        &[("Repr-Digest", "")],
        &[("Repr-Digest", "sha-256=abc")],
        &[("Repr-Digest", "sha-256=:AAAA:")],
        &[("Repr-Digest", "sha-256=:!!!!:")],
        &[("Content-Digest", "nonsense")],
        &[("Repr-Digest", &digest), ("Content-Digest", &other)],
        &[("Repr-Digest", &digest), ("Repr-Digest", &other)],
    ];
    for fields in headers {
        let reply = app.save("s", "", fields, "x").await;
        let problem = reply.is_problem(ErrorCode::InvalidHeader);
        let name = fields[0].0.to_ascii_lowercase();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&name) || fields.len() > 1, "{detail}");
    }
    for segment in [
        ".",
        "..",
        "%2e",
        "%2E%2e",
        "%ff",
        "%zz",
        "%4",
        &"x".repeat(513),
    ] {
        let path = format!("/v1/sessions/{segment}/artifacts");
        for method in [Method::POST, Method::PUT, Method::GET] {
            let reply = app.send(request(method, &path, &[], Body::from("x"))).await;
            reply.is_problem(ErrorCode::InvalidSession);
        }
    }
    app.assert_untouched("malformed saves").await;
}

#[rstest]
#[tokio::test]
async fn bytes_that_are_not_the_stated_ones_are_not_stored(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
    #[values(3, 9 << 20)] size: usize,
) {
    let app = app(backend).await;
    let other = Sha256Digest::of(b"other bytes").to_digest_field();
    for name in ["Repr-Digest", "Content-Digest"] {
        let headers = [(name, other.as_str())];
        let reply = app.save("s", "call_id=c", &headers, vec![b'x'; size]).await;
        reply.is_problem(ErrorCode::DigestMismatch);
    }
    // The client said more, or less, than it sent.
    for stated in [size - 1, size + 1] {
        if stated as u64 > LIMIT {
            continue;
        }
        let length = stated.to_string();
        let pieces = vec![Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; size]))];
        let body = Body::from_stream(stream::iter(pieces));
        let headers = [("Content-Length", length.as_str())];
        let reply = app.save("s", "", &headers, body).await;
        reply.is_problem(ErrorCode::BodyIncomplete);
    }
    app.state.library().unwrap().drain().await;
    app.assert_untouched("refused bodies").await;
}

#[rstest]
#[tokio::test]
async fn a_body_above_the_cap_is_refused_by_its_length_and_by_its_bytes(
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
    let app = app(backend).await;
    let stated = (LIMIT + 1).to_string();
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let headers = [("Content-Length", stated.as_str())];
    let reply = app.save("s", "", &headers, never).await;
    reply.is_problem(ErrorCode::BodyTooLarge);
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let endless = stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
    let reply = app
        .save("s", "call_id=c", &[], Body::from_stream(endless))
        .await;
    reply.is_problem(ErrorCode::BodyTooLarge);
    app.assert_untouched("too large").await;
}

#[rstest]
#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
    #[values(1, 10)] pieces: usize,
) {
    let app = TestApp::new(backend).await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let sent = (0..pieces).map(move |_| Ok(piece.clone()));
    let broken = std::iter::once(Err(std::io::Error::other("connection reset")));
    let body = Body::from_stream(stream::iter(sent.chain(broken)));
    let reply = app.save("s", "call_id=c", &[], body).await;
    let problem = reply.is_problem(ErrorCode::BodyIncomplete);
    assert_eq!(problem["retryable"], true);
    app.assert_untouched("broken off").await;
}

#[tokio::test]
async fn malformed_lists_and_pages_are_refused_before_any_request_to_the_store() {
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("", "a\nb\n").await;
    let log = app.s3.as_ref().unwrap().log();
    let before = log.entries().len();
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "cursor=",
        "cursor=abc",
        "since=yesterday",
        "since=2026-11-30",
        "since=2026-11-30T12:00:00",
        "until=1",
        "offset=0",
        "limit=1&limit=1",
    ] {
        let reply = app.get(&format!("/v1/sessions/s/artifacts?{query}")).await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
    for query in [
        "offset=-1",
        "offset=1.5",
        "offset=99999999999999999999",
        "limit=0",
        "limit=1000001",
        "from_end=0",
        "from_end=-3",
        "byte_offset=-1",
        "max_bytes=0",
        "max_bytes=1048577",
        "offset=1&from_end=1",
        "offset=1&byte_offset=1",
        "from_end=1&byte_offset=1",
        "lines=3",
    ] {
        let reply = app.get(&saved.at(&format!("/lines?{query}"))).await;
        let problem = reply.is_problem(ErrorCode::InvalidParameter);
        let name = query.split('=').next().unwrap();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(name), "{detail}");
    }
    for rest in ["?x=1", "/stat?x=1", "/reference?x", "/replacement?offset=1"] {
        let reply = app.get(&saved.at(rest)).await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
    assert_eq!(log.entries().len(), before);
}

#[tokio::test]
async fn malformed_unknown_and_foreign_locators_look_alike() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x").await;
    let own = saved.path.strip_prefix("/a/").unwrap();
    let foreign = app.replica("other").await;
    let id = [("x-request-id", "same")];
    let unknown = format!("{:026}.{:026}", 1, 2);
    let mut replies = Vec::new();
    for rest in ["", "/lines", "/stat", "/reference", "/replacement"] {
        let malformed = [
            "x",
            ".",
            "..",
            "a.b",
            "%00",
            "%ff",
            "%zz",
            "%2e%2e%2f",
            "..%2f..%2fetc%2fpasswd",
            &own[1..],
            &own.to_uppercase(),
            &format!("{own}x"),
            &own.replace('.', ""),
            &unknown,
        ]
        .map(|segment| format!("/a/{segment}{rest}"));
        for path in malformed {
            replies.push(app.ask(Method::GET, &path, &id).await);
        }
        let there = request(Method::GET, &saved.at(rest), &id, Body::empty());
        replies.push(send_to(&foreign, there).await);
    }
    for reply in &replies {
        reply.is_problem(ErrorCode::ArtifactNotFound);
        assert_eq!(reply.body, replies[0].body);
        assert_eq!(reply.headers, replies[0].headers);
    }
}

#[tokio::test]
async fn another_tenant_sees_nothing_by_any_way() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("call_id=c", "secret").await;
    let foreign = app.replica("other").await;
    let digest = saved.receipt["digest"].as_str().unwrap();
    let etag = format!("\"{digest}\"");
    let headers: [&[(&str, &str)]; 4] = [
        &[],
        &[("Range", "bytes=0-0")],
        &[("If-None-Match", &etag)],
        &[("If-Match", "*")],
    ];
    for fields in headers {
        for method in [Method::GET, Method::HEAD] {
            let ask = request(method, &saved.path, fields, Body::empty());
            let reply = send_to(&foreign, ask).await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{fields:?}");
        }
    }
    let list = "/v1/sessions/s/artifacts";
    let page = send_to(&foreign, request(Method::GET, list, &[], Body::empty())).await;
    assert_eq!(page.json(), serde_json::json!({"artifacts": []}));
    // The same session, call and bytes are another artifact there.
    let path = format!("{list}?call_id=c");
    let save = request(Method::POST, &path, &[], Body::from("secret"));
    let own = send_to(&foreign, save).await;
    assert_eq!(own.status, StatusCode::CREATED);
    assert_ne!(own.json()["artifact_id"], saved.receipt["artifact_id"]);
    assert_eq!(app.keys_of('b').await.len(), 2);
}

#[tokio::test]
async fn a_service_without_its_store_says_so() {
    use spillbox::http::app::{AppState, router};
    use spillbox::http::request_id::RequestIds;

    let app = TestApp::new(Backend::Memory).await;
    let state = AppState::starting(
        spillbox::auth::Authenticator::anonymous(spillbox::ids::Tenant::default()),
        Vec::new(),
    );
    let ids = std::sync::Arc::new(spillbox::ids::SeededIds::new(7));
    let starting = router(state.clone(), RequestIds::new(shared(&app.clock), ids));
    let ask = |path: &'static str| {
        let request = request(Method::GET, path, &[], Body::empty());
        send_to(&starting, request)
    };
    for alive in ["/livez", "/healthz"] {
        assert_eq!(ask(alive).await.status, StatusCode::OK);
    }
    ask("/readyz").await.is_problem(ErrorCode::StoreUnavailable);
    let list = "/v1/sessions/s/artifacts";
    let reply = ask(list).await;
    reply.is_problem(ErrorCode::StoreUnavailable);
    assert_eq!(reply.header("retry-after"), "2");
    state.open(app.state.library().unwrap().clone());
    assert_eq!(ask("/readyz").await.status, StatusCode::OK);
    assert_eq!(ask(list).await.status, StatusCode::OK);
    state.start_draining();
    ask("/readyz").await.is_problem(ErrorCode::StoreUnavailable);
    assert_eq!(ask(list).await.status, StatusCode::OK);
}
