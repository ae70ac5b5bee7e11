//! Reading over HTTP.

use axum::http::{Method, StatusCode};
use rstest::rstest;
use serde_json::Value;
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;
use spillbox::limits::{CHUNK_BYTES, DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES};

use crate::support::app::{Backend, Reply, Saved, TestApp, send_to};

/// Numbered lines over a little more than three chunks.
fn log() -> Vec<u8> {
    let lines = (0..20_000).map(|number| format!("{number}: the quick brown fox, żółw\n"));
    let bytes = lines.collect::<String>().into_bytes();
    assert!(bytes.len() > 2 * CHUNK_BYTES);
    bytes
}

async fn range(app: &TestApp, saved: &Saved, range: &str) -> Reply {
    app.ask(Method::GET, &saved.path, &[("Range", range)]).await
}

#[rstest]
#[tokio::test]
async fn ranges_are_the_bytes_that_they_name(
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
    let bytes = log();
    let size = bytes.len();
    let saved = app.put("", bytes.clone()).await;
    let chunk = CHUNK_BYTES;
    for (first, last) in [
        (0, 0),
        (size - 1, size - 1),
        (chunk - 1, chunk),
        (chunk, 2 * chunk - 1),
        (1, size - 2),
        (0, size - 1),
    ] {
        let reply = range(&app, &saved, &format!("bytes={first}-{last}")).await;
        assert_eq!(reply.status, StatusCode::PARTIAL_CONTENT);
        assert!(reply.body == bytes[first..=last], "{first}-{last}");
        let content_range = format!("bytes {first}-{last}/{size}");
        assert_eq!(reply.header("content-range"), content_range);
        let length = (last - first + 1).to_string();
        assert_eq!(reply.header("content-length"), length);
        let digest = Sha256Digest::of(&bytes).to_digest_field();
        assert_eq!(reply.header("repr-digest"), digest);
    }
    let suffix = range(&app, &saved, "bytes=-100").await;
    assert!(suffix.body == bytes[size - 100..]);
    let open = range(&app, &saved, &format!("bytes={}-", size - 7)).await;
    assert!(open.body == bytes[size - 7..]);
    for ignored in ["bytes=0-1,5-9", "lines=0-1", "bytes=x", "bytes=5-1"] {
        let whole = range(&app, &saved, ignored).await;
        assert_eq!(whole.status, StatusCode::OK, "{ignored}");
        assert!(whole.body == bytes);
    }
    for outside in [format!("bytes={size}-"), "bytes=-0".to_owned()] {
        let reply = range(&app, &saved, &outside).await;
        reply.is_problem(ErrorCode::RangeNotSatisfiable);
        assert_eq!(reply.header("content-range"), format!("bytes */{size}"));
    }
    let etag = format!("\"{}\"", Sha256Digest::of(&bytes));
    for (if_range, status) in [(etag.as_str(), 206), ("\"other\"", 200)] {
        let headers = [("Range", "bytes=0-9"), ("If-Range", if_range)];
        let reply = app.ask(Method::GET, &saved.path, &headers).await;
        assert_eq!(reply.status.as_u16(), status);
    }
}

#[tokio::test]
async fn an_empty_body_has_no_range() {
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("", "").await;
    let whole = app.get(&saved.path).await;
    assert_eq!(whole.status, StatusCode::OK);
    assert_eq!(whole.header("content-length"), "0");
    assert_eq!(range(&app, &saved, "bytes=-5").await.status, StatusCode::OK);
    let first = range(&app, &saved, "bytes=0-0").await;
    first.is_problem(ErrorCode::RangeNotSatisfiable);
    assert_eq!(first.header("content-range"), "bytes */0");
    let page = app.get(&saved.at("/lines")).await.json();
    assert_eq!(page["total_lines"], 0);
    assert_eq!(page["past_end"], true);
}

#[rstest]
#[tokio::test]
async fn a_head_has_the_headers_of_the_get(
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
    let id = [("x-request-id", "same")];
    let saved = app.put("name=a.txt", log()).await;
    let gone = app.put("", "gone").await;
    app.bury(&gone, TombstoneReason::Expired).await;
    for path in [
        saved.path.clone(),
        saved.at("/lines?limit=3"),
        saved.at("/stat"),
        saved.at("/reference"),
        saved.at("/replacement"),
        saved.at("?x=1"),
        gone.path,
        "/a/unknown".to_owned(),
        "/v1/sessions/s/artifacts".to_owned(),
        "/livez".to_owned(),
        "/openapi.yaml".to_owned(),
    ] {
        let get = app.ask(Method::GET, &path, &id).await;
        let head = app.ask(Method::HEAD, &path, &id).await;
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.headers, get.headers, "{path}");
        assert!(head.body.is_empty());
        assert_eq!(get.header("content-length"), get.body.len().to_string());
    }
}

#[tokio::test]
async fn bytes_are_data_whatever_they_look_like() {
    let app = TestApp::new(Backend::Memory).await;
    let headers = [("Content-Type", "text/html")];
    let page = "<script>alert(1)</script>";
    let reply = app.save("s", "name=a%2Fb.html", &headers, page).await;
    let saved = Saved::of(&reply);
    let read = app.get(&saved.path).await;
    assert_eq!(read.header("content-type"), "text/html");
    let disposition = "attachment; filename=\"a_b.html\"";
    assert_eq!(read.header("content-disposition"), disposition);
    assert_eq!(read.header("accept-ranges"), "bytes");
    assert!(!read.headers.contains_key("last-modified"));
    for rest in ["", "/lines", "/stat", "/reference", "/replacement"] {
        let read = app.get(&saved.at(rest)).await;
        assert_eq!(read.header("x-content-type-options"), "nosniff", "{rest}");
        assert_eq!(read.header("content-security-policy"), "sandbox");
        assert_eq!(read.header("cache-control"), "private, no-cache");
    }
}

#[rstest]
#[tokio::test]
async fn a_condition_is_answered_without_the_body_and_never_after_an_erase(
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
    let saved = app.put("", log()).await;
    let replica = app.replica("default").await;
    let etag = app.get(&saved.path).await.header("etag").to_owned();
    for method in [Method::GET, Method::HEAD] {
        let headers = [("If-None-Match", etag.as_str())];
        let reply = app.ask(method.clone(), &saved.path, &headers).await;
        assert_eq!(reply.status, StatusCode::NOT_MODIFIED);
        assert_eq!(reply.header("etag"), etag);
        let size = saved.receipt["size_bytes"].to_string();
        assert_eq!(reply.header("content-length"), size);
        assert!(reply.body.is_empty());
        let headers = [("If-Match", "\"other\"")];
        let reply = app.ask(method, &saved.path, &headers).await;
        assert_eq!(reply.status, StatusCode::PRECONDITION_FAILED);
    }
    if let Some(server) = &app.s3 {
        server.log().clear();
        for headers in [
            ("If-None-Match", etag.as_str()),
            ("If-Match", "\"x\""),
            ("Range", "bytes=-0"),
        ] {
            app.ask(Method::GET, &saved.path, &[headers]).await;
        }
        app.ask(Method::HEAD, &saved.path, &[]).await;
        assert_eq!(server.log().count("get:a"), 4);
        assert_eq!(server.log().count("get:b"), 0);
    }
    // Both services have the manifest cached; the tombstone is seen all the same.
    let ask = |headers: Vec<(&'static str, String)>| {
        let mut request = axum::http::Request::get(&saved.path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(axum::body::Body::empty()).unwrap()
    };
    let first = send_to(&replica, ask(Vec::new())).await;
    assert_eq!(first.status, StatusCode::OK);
    app.bury(&saved, TombstoneReason::Erased).await;
    let conditions = [
        Vec::new(),
        vec![("If-None-Match", etag.clone())],
        vec![("Range", "bytes=0-9".to_owned())],
        vec![("Range", "bytes=-0".to_owned())],
    ];
    for headers in conditions {
        for router in [&app.router, &replica] {
            let reply = send_to(router, ask(headers.clone())).await;
            let problem = reply.is_problem(ErrorCode::ArtifactDeleted);
            assert_eq!(problem["reason"], "erased");
            assert_eq!(problem["deleted_at"], "2027-01-16T08:00:00Z");
            assert_eq!(problem["digest"], saved.receipt["digest"]);
            assert_eq!(problem["size_bytes"], saved.receipt["size_bytes"]);
        }
    }
    for rest in ["/lines", "/stat", "/reference", "/replacement"] {
        let reply = app.get(&saved.at(rest)).await;
        reply.is_problem(ErrorCode::ArtifactDeleted);
    }
}

#[rstest]
#[tokio::test]
async fn a_body_that_was_changed_is_never_served_as_good(
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
    let bytes = log();
    let saved = app.put("", bytes.clone()).await;
    let body = app.keys_of('b').await.remove(0);

    let mut late = bytes.clone();
    *late.last_mut().unwrap() ^= 1;
    app.overwrite(&body, late).await;
    let whole = app.get(&saved.path).await;
    assert!(whole.is_cut, "{}", whole.status);
    let good = range(&app, &saved, "bytes=0-9").await;
    assert!(good.body == bytes[..10]);
    let bad = range(&app, &saved, "bytes=-2").await;
    let problem = bad.is_problem(ErrorCode::BodyCorrupt);
    assert_eq!(problem["retryable"], false);
    let page = app.get(&saved.at("/lines?from_end=1")).await;
    page.is_problem(ErrorCode::BodyCorrupt);
    let page = app.get(&saved.at("/lines?limit=1")).await;
    assert_eq!(page.status, StatusCode::OK);

    let mut early = bytes.clone();
    early[0] ^= 1;
    for changed in [early, bytes[..bytes.len() - 1].to_vec(), Vec::new()] {
        app.overwrite(&body, changed).await;
        let whole = app.get(&saved.path).await;
        whole.is_problem(ErrorCode::BodyCorrupt);
        assert!(!whole.text().contains(&body), "{}", whole.text());
    }
    // What does not need the body is still known.
    let replacement = app.get(&saved.at("/replacement")).await;
    assert_eq!(
        replacement.text(),
        saved.receipt["replacement"].as_str().unwrap()
    );
}

#[tokio::test]
async fn the_replacement_is_the_receipts_and_the_reference_holds_no_content() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=grep&title=T&summary=found%20it", log()).await;
    let replacement = app.get(&saved.at("/replacement")).await;
    let kind = "text/plain; charset=utf-8";
    assert_eq!(replacement.header("content-type"), kind);
    assert_eq!(
        replacement.text(),
        saved.receipt["replacement"].as_str().unwrap()
    );
    let reference = app.get(&saved.at("/reference")).await.json();
    assert_eq!(reference["summary"], "found it");
    assert_eq!(reference["source"]["title"], "T");
    assert_eq!(reference["source"]["source_id"], saved.receipt["source_id"]);
    let digest = saved.receipt["digest"].as_str().unwrap();
    assert_eq!(reference["content_sha256"], digest["sha256:".len()..]);
    let stat = app.get(&saved.at("/stat")).await.json();
    assert_eq!(stat["replacement"]["text"], saved.receipt["replacement"]);
    assert_eq!(stat["locator"], saved.receipt["locator"]);
    assert!(stat.get("chunks").is_none());
}

/// Follows pages until the body is read, and returns what they brought.
async fn follow(app: &TestApp, saved: &Saved, rest: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut start = "offset=0".to_owned();
    for _ in 0..10_000 {
        let path = saved.at(&format!("/lines?{start}{rest}"));
        let text = [("Accept", "text/plain")];
        let page = app.ask(Method::GET, &path, &text).await;
        assert_eq!(page.status, StatusCode::OK);
        assert_eq!(page.header("content-type"), "text/plain; charset=utf-8");
        assert!(page.body.len() as u64 <= DEFAULT_REPLY_BYTES);
        bytes.extend_from_slice(&page.body);
        start = match (
            page.header("spillbox-next-byte"),
            page.header("spillbox-next-offset"),
        ) {
            ("", "") => return bytes,
            ("", offset) => format!("offset={offset}"),
            (byte, _) => format!("byte_offset={byte}"),
        };
    }
    panic!("the pages have no end");
}

#[rstest]
#[tokio::test]
async fn pages_put_together_are_the_body(
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
    let mut endless = vec![b'x'; 3 * CHUNK_BYTES];
    endless.extend_from_slice("\nłast\n".as_bytes());
    let binary: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    for bytes in [
        log(),
        endless,
        binary,
        b"\n\n\n".to_vec(),
        b"a\r\nb\rc".to_vec(),
    ] {
        let saved = app.put("", bytes.clone()).await;
        for rest in ["", "&limit=700"] {
            assert!(follow(&app, &saved, rest).await == bytes);
        }
        let few = [&bytes[..bytes.len().min(600)], b"\n"].concat();
        let saved = app.put("", few.clone()).await;
        assert!(follow(&app, &saved, "&max_bytes=7").await == few);
    }
}

#[tokio::test]
async fn a_json_page_says_where_it_stands() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", log()).await;
    let page = |query: &str| {
        let path = saved.at(&format!("/lines?{query}"));
        let app = &app;
        async move { app.get(&path).await.json() }
    };
    let middle = page("offset=9999&limit=2").await;
    assert_eq!(middle["start_line"], 10_000);
    assert_eq!(middle["end_line"], 10_001);
    assert_eq!(middle["total_lines"], 20_000);
    assert_eq!(middle["next_offset"], 10_001);
    assert_eq!(middle["lines"][0], "9999: the quick brown fox, żółw");
    assert_eq!(middle["lossy"], false);
    let end = page("from_end=3").await;
    assert_eq!(end["start_line"], 19_998);
    assert_eq!(end["lines"].as_array().unwrap().len(), 3);
    assert!(end.get("next_offset").is_none() && end.get("next_byte").is_none());
    let past = page("offset=20000").await;
    assert_eq!(past["past_end"], true);
    assert_eq!(past["lines"].as_array().unwrap().len(), 0);
    assert_eq!(past["total_lines"], 20_000);
    let path = saved.at("/lines?offset=20000");
    let bare = app
        .ask(Method::GET, &path, &[("Accept", "text/plain")])
        .await;
    assert_eq!(bare.header("spillbox-past-end"), "true");
    assert_eq!(bare.header("spillbox-total-lines"), "20000");
    assert!(bare.body.is_empty());
    let byte = page("byte_offset=5&limit=1").await;
    assert_eq!(byte["starts_inside_line"], true);
    assert_eq!(byte["start_byte"], 5);
    // More than 2,000 lines were asked for by their number.
    let many = page("from_end=2500&max_bytes=1048576").await;
    assert_eq!(many["lines"].as_array().unwrap().len(), 2_500);

    let saved = app.put("", &b"caf\xe9\nok\n"[..]).await;
    let lossy = app.get(&saved.at("/lines")).await.json();
    assert_eq!(lossy["lines"], serde_json::json!(["caf\u{fffd}", "ok"]));
    assert_eq!(lossy["lossy"], true);
    let path = saved.at("/lines?offset=0");
    let bare = app
        .ask(Method::GET, &path, &[("Accept", "text/plain")])
        .await;
    assert_eq!(&bare.body[..], b"caf\xe9\nok\n");
}

#[tokio::test]
async fn no_reply_of_lines_is_larger_than_it_may_be() {
    let app = TestApp::new(Backend::Memory).await;
    // What JSON makes longest: six bytes for each.
    let bodies = [
        vec![1_u8; 500_000],
        b"\x01\n".repeat(100_000),
        b"\n".repeat(400_000),
    ];
    for bytes in bodies {
        let saved = app.put("", bytes).await;
        for max in [1_024, 5_000, DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES] {
            for start in ["offset=0", "from_end=100000", "byte_offset=333"] {
                let query = format!("/lines?{start}&limit=1000000&max_bytes={max}");
                let page = app.get(&saved.at(&query)).await;
                assert!(
                    page.body.len() as u64 <= max,
                    "{query}: {}",
                    page.body.len()
                );
                let page = page.json();
                let goes_on = page.get("next_offset").or(page.get("next_byte"));
                assert!(goes_on.is_some() || page["end_byte"] == page["size_bytes"]);
            }
        }
    }
}

#[tokio::test]
async fn a_page_with_the_manifest_cached_is_one_round_trip() {
    let app = TestApp::new(Backend::S3).await;
    let bytes = log().repeat(8);
    let saved = app.put("", bytes).await;
    let server = app.s3.as_ref().unwrap();
    for query in [
        "offset=100000&limit=200",
        "from_end=200",
        "byte_offset=3000000",
    ] {
        server.log().clear();
        let page = app.get(&saved.at(&format!("/lines?{query}"))).await;
        assert_eq!(page.status, StatusCode::OK);
        let entries = server.log().entries();
        assert_eq!(entries.len(), 2, "{query}");
        assert_eq!(server.log().round_trips(), 1, "{query}");
        let manifest = entries.iter().find(|e| e.seen.class == "a").unwrap();
        assert_eq!(manifest.status, Some(304));
        let body = entries.iter().find(|e| e.seen.class == "b").unwrap();
        let range = &body.seen.headers["range"];
        let (first, last) = range["bytes=".len()..].split_once('-').unwrap();
        let length = last.parse::<usize>().unwrap() + 1 - first.parse::<usize>().unwrap();
        assert!(length <= 2 * CHUNK_BYTES, "{range}");
    }
    // Past the end nothing of the body is read.
    server.log().clear();
    app.get(&saved.at("/lines?offset=999999999")).await;
    assert_eq!(server.log().count("get:b"), 0);
}

#[tokio::test]
async fn a_failing_store_is_not_an_absent_artifact() {
    use crate::support::s3_server::{Action, Fault, Op};
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("", "x").await;
    let server = app.s3.as_ref().unwrap();
    for (status, code, expected) in [
        (403, "AccessDenied", ErrorCode::StoreDenied),
        (500, "InternalError", ErrorCode::StoreUnavailable),
        (503, "SlowDown", ErrorCode::StoreThrottled),
    ] {
        let action = Action::Refuse { status, code };
        server.fault(Fault::on(Op::Get, action).times(100));
        for rest in ["", "/lines", "/stat", "/reference", "/replacement"] {
            let problem = app.get(&saved.at(rest)).await.is_problem(expected);
            assert_eq!(problem["retryable"], true);
            let detail: &Value = &problem["detail"];
            assert!(!detail.as_str().unwrap().contains("v1/"), "{detail}");
        }
        server.clear_faults();
    }
    assert_eq!(app.get(&saved.path).await.status, StatusCode::OK);
}
