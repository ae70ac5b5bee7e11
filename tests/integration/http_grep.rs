//! Searching and outlines over HTTP: what is found, what it costs, and what cannot stop it.

use std::time::Duration;

use bytes::Bytes;
use rstest::rstest;
use serde_json::{Value, json};
use spillbox::error::ErrorCode;
use spillbox::limits::SEARCH_PART_BYTES;

use crate::support::app::{Backend, Saved, TestApp, escape};

/// Lines of which every thousandth says so.
fn log(size_bytes: usize) -> Vec<u8> {
    let line = |n: u64| {
        let mark = if n.is_multiple_of(1_000) {
            " needle"
        } else {
            ""
        };
        format!("line {n} of a long log{mark}\n")
    };
    let mut log: Vec<u8> = (1..)
        .map(line)
        .scan(0, |size, line| {
            *size += line.len();
            (*size <= size_bytes + 64).then_some(line)
        })
        .collect::<String>()
        .into_bytes();
    log.truncate(size_bytes);
    log
}

fn numbers(page: &Value) -> Vec<u64> {
    let matches = page["matches"].as_array().unwrap();
    let number = |hit: &Value| hit["line_number"].as_u64().unwrap();
    matches.iter().map(number).collect()
}

/// Follows the cursors and returns every line number, and how many pages it took.
async fn follow(app: &TestApp, saved: &Saved, query: &str) -> (Vec<u64>, usize) {
    let (mut found, mut pages) = (Vec::new(), 0);
    let mut path = saved.at(&format!("/grep?{query}"));
    loop {
        let page = app.get(&path).await.json();
        found.extend(numbers(&page));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => path = saved.at(&format!("/grep?{query}&cursor={cursor}")),
            None => return (found, pages),
        }
    }
}

#[tokio::test]
async fn a_hit_says_where_it_is_and_what_is_around_it() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app
        .put("", "one\ntwo\0\na \u{fc}ber Needle\r\nfour\n")
        .await;
    let path = saved.at("/grep?pattern=needle&ignore_case=true&context=1");
    let page = app.get(&path).await.json();
    assert_eq!(
        page,
        json!({
            "matches": [{
                "line_number": 3, "byte_offset": 17, "text": "a \u{fc}ber Needle\r", "text_offset": 9,
                "match_start": 8, "match_end": 14, "clipped": false,
                "context_before": ["two\0"], "context_after": ["four"],
            }],
            "truncated": false, "searched_bytes": 30, "lossy": false,
        })
    );
    let reply = app
        .ask(http::Method::GET, &path, &[("accept", "text/plain")])
        .await;
    assert_eq!(reply.text(), "2-two\0\n3:a \u{fc}ber Needle\r\n4-four\n");
    assert_eq!(reply.header("spillbox-matches"), "1");
    assert_eq!(reply.header("spillbox-next-cursor"), "");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    let none = app.get(&saved.at("/grep?pattern=needle")).await.json();
    assert_eq!(
        (&none["matches"], &none["truncated"]),
        (&json!([]), &json!(false))
    );
    let empty = app.put("", "").await;
    let none = app
        .get(&empty.at("/grep?pattern=x&mode=regex"))
        .await
        .json();
    assert_eq!(
        (&none["matches"], &none["truncated"]),
        (&json!([]), &json!(false))
    );
}

#[rstest]
#[case(Backend::Memory)]
#[case(Backend::Local)]
#[case(Backend::S3)]
#[tokio::test]
async fn whoever_follows_the_cursors_gets_every_hit_once(#[case] backend: Backend) {
    let app = TestApp::new(backend).await;
    let body = log(9 << 20);
    let expected: Vec<u64> = (1..=memchr::memchr_iter(b'\n', &body).count() as u64)
        .filter(|n| n.is_multiple_of(1_000))
        .collect();
    let saved = app.put("", body).await;
    let (found, pages) = follow(&app, &saved, "pattern=needle&limit=100").await;
    assert_eq!(found, expected);
    assert_eq!(pages, expected.len().div_ceil(100));
    let (found, pages) = follow(
        &app,
        &saved,
        "pattern=needle$&mode=regex&context=2&max_bytes=9000",
    )
    .await;
    assert_eq!(found, expected);
    assert!(pages > 4);
    let reply = app.get(&saved.at("/grep?pattern=line&limit=10000")).await;
    assert!(reply.body.len() <= 24_000 && reply.json()["reason"] == "max_bytes");
}

#[tokio::test]
async fn a_search_reads_what_it_needs() {
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("", log(4 * SEARCH_PART_BYTES as usize)).await;
    let s3 = app.s3.as_ref().unwrap();
    s3.log().clear();
    let page = app
        .get(&saved.at("/grep?pattern=needle&limit=3"))
        .await
        .json();
    assert_eq!(numbers(&page), [1_000, 2_000, 3_000]);
    assert!(
        (1..=2).contains(&s3.log().count("get:b")),
        "{:?}",
        s3.log().counts()
    );
    s3.log().clear();
    let page = app.get(&saved.at("/grep?pattern=nothing")).await.json();
    assert_eq!(page["searched_bytes"], 4 * SEARCH_PART_BYTES);
    assert_eq!(s3.log().count("get:b"), 4, "each part once");
    // A page that goes on begins where it is needed.
    let page = app
        .get(&saved.at("/grep?pattern=needle&limit=1000&max_bytes=1000000"))
        .await
        .json();
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    s3.log().clear();
    app.get(&saved.at(&format!("/grep?pattern=needle&limit=1&cursor={cursor}")))
        .await;
    assert!(s3.log().count("get:b") <= 2);
    s3.log().clear();
    app.get(&saved.at("/outline")).await;
    assert_eq!((s3.log().count("get:a"), s3.log().count("get:b")), (1, 0));
}

#[tokio::test]
async fn bad_input_is_refused_by_name() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x\n").await;
    let other = app.put("", "x\nx\n").await;
    let page = app.get(&other.at("/grep?pattern=x&limit=1")).await.json();
    let foreign = format!("pattern=x&cursor={}", page["next_cursor"].as_str().unwrap());
    let long = format!("pattern={}", "x".repeat(1_025));
    for (query, code, part) in [
        ("", ErrorCode::InvalidParameter, "`pattern`: required"),
        ("pattern=", ErrorCode::InvalidPattern, "1 to 1024 bytes"),
        (&long, ErrorCode::InvalidPattern, "1 to 1024 bytes"),
        ("pattern=a%0Ab", ErrorCode::InvalidPattern, "line feed"),
        (
            "pattern=a(b&mode=regex",
            ErrorCode::InvalidPattern,
            "unclosed group",
        ),
        (
            "pattern=a%0Ab&mode=regex",
            ErrorCode::InvalidPattern,
            "not allowed",
        ),
        (
            "pattern=%5Cw%7B900%7D&mode=regex",
            ErrorCode::InvalidPattern,
            "size limit",
        ),
        (
            "pattern=x&mode=glob",
            ErrorCode::InvalidParameter,
            "literal, regex",
        ),
        (
            "pattern=x&ignore_case=1",
            ErrorCode::InvalidParameter,
            "`ignore_case`",
        ),
        (
            "pattern=x&context=101",
            ErrorCode::InvalidParameter,
            "`context`",
        ),
        ("pattern=x&limit=0", ErrorCode::InvalidParameter, "`limit`"),
        (
            "pattern=x&limit=10001",
            ErrorCode::InvalidParameter,
            "`limit`",
        ),
        (
            "pattern=x&max_bytes=0",
            ErrorCode::InvalidParameter,
            "`max_bytes`",
        ),
        (
            "pattern=x&cursor=abc",
            ErrorCode::InvalidParameter,
            "`cursor`",
        ),
        (&foreign, ErrorCode::InvalidParameter, "`cursor`"),
    ] {
        let reply = app.get(&saved.at(&format!("/grep?{query}"))).await;
        let problem = reply.is_problem(code);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{query}: {detail}");
    }
    let unknown = "/a/00000000000000000000000000.00000000000000000000000000";
    for rest in ["/grep?pattern=x", "/outline"] {
        let reply = app.get(&format!("{unknown}{rest}")).await;
        reply.is_problem(ErrorCode::ArtifactNotFound);
    }
}

#[tokio::test]
async fn a_changed_body_is_never_searched_as_good() {
    let app = TestApp::new(Backend::Memory).await;
    let mut body = log(300_000);
    let saved = app.put("", body.clone()).await;
    body[290_000] ^= 1;
    let key = app.keys_of('b').await.remove(0);
    app.overwrite(&key, body).await;
    let reply = app.get(&saved.at("/grep?pattern=nothing")).await;
    reply.is_problem(ErrorCode::BodyCorrupt);
}

/// Printable bytes without an order that an automaton could learn.
fn noise(size_bytes: usize) -> Bytes {
    let mut state = 7_u64;
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b' ' + u8::try_from((state >> 33) % 95).unwrap()
    };
    let mut noise: Vec<u8> = (0..size_bytes).map(byte).collect();
    for line in noise.chunks_mut(2_000) {
        line[0] = b'\n';
    }
    noise.into()
}

const HOSTILE: &str = "[ -~]*[aeiou1357][ -~]{90}[^ -~]";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_pattern_ends_at_the_deadline_while_other_requests_are_answered() {
    let deadline = Duration::from_millis(400);
    let app = TestApp::with(Backend::Memory, |options| {
        options.search_deadline = deadline;
        options.max_concurrent_searches = 1;
    })
    .await;
    let saved = app.put("", noise(12 << 20)).await;
    let path = saved.at(&format!("/grep?mode=regex&pattern={}", escape(HOSTILE)));
    let began = std::time::Instant::now();
    let search = app.get(&path);
    let others = async {
        let mut answered = 0;
        while began.elapsed() < deadline / 2 {
            assert!(app.get(&saved.at("/stat")).await.status.is_success());
            answered += 1;
            tokio::task::yield_now().await;
        }
        answered
    };
    let (reply, answered) = tokio::join!(search, others);
    assert!(answered > 5, "{answered}");
    assert!(began.elapsed() >= deadline, "{:?}", began.elapsed());
    assert!(began.elapsed() < 10 * deadline, "{:?}", began.elapsed());
    let page = reply.json();
    assert_eq!(page["reason"], "deadline");
    let searched = page["searched_bytes"].as_u64().unwrap();
    assert!((1..12 << 20).contains(&searched), "{searched}");
    // It goes on where it was.
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = app.get(&format!("{path}&cursor={cursor}")).await.json();
    assert!(page["searched_bytes"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_frees_its_place() {
    let app = TestApp::with(Backend::Memory, |options| {
        options.search_deadline = Duration::from_secs(600);
        options.max_concurrent_searches = 1;
    })
    .await;
    let saved = app.put("", noise(48 << 20)).await;
    let path = saved.at(&format!("/grep?mode=regex&pattern={}", escape(HOSTILE)));
    let left = tokio::time::timeout(Duration::from_millis(100), app.get(&path)).await;
    assert!(left.is_err(), "the pattern is too fast for this test");
    let page = app.get(&saved.at("/grep?pattern=x&limit=1")).await.json();
    assert_eq!(page["matches"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_outline_names_what_stands_out() {
    let app = TestApp::new(Backend::Memory).await;
    let body = "\
10:00:00 start
     Running unittests src/lib.rs
10:02:00 warning: slow
error: it broke
test result: FAILED. 3 passed; 1 failed
";
    let saved = app.put("tool=cargo", body).await;
    let outline = app.get(&saved.at("/outline")).await.json();
    assert_eq!(outline["line_count"], 5);
    assert_eq!(
        outline["errors"],
        json!({"count": 2, "first": {"line_number": 4, "text": "error: it broke"},
               "last": {"line_number": 5, "text": "test result: FAILED. 3 passed; 1 failed"}})
    );
    assert_eq!(outline["warnings"]["first"]["line_number"], 3);
    assert_eq!(
        outline["gaps"],
        json!([{"gap_ms": 120_000, "from_line": 1, "from": "10:00:00", "to_line": 3, "to": "10:02:00"}])
    );
    assert_eq!(outline["section_count"], 2);
    let stat = app.get(&saved.at("/stat")).await.json();
    assert_eq!(stat["outline"]["errors"], outline["errors"]);
}
