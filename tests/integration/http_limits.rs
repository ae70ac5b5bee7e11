//! What a replica takes at once, and what a caller may have: memory, quotas, pace, lengths.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use rstest::rstest;
use spillbox::artifact::quota::Quotas;
use spillbox::artifact::usage::UsageBaseline;
use spillbox::auth::Scope;
use spillbox::error::ErrorCode;
use spillbox::http::failed_access::PeerAddress;
use spillbox::http::rate_limit::RequestLimits;
use spillbox::ids::{SessionKey, Tenant};
use spillbox::limits::{
    BODY_IDLE_TIMEOUT, FAILED_ACCESS_BURST, MAX_URI_BYTES, PART_BYTES, UPLOAD_GROWTH_TIMEOUT,
    UPLOAD_QUEUE_TIMEOUT,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::app::{Backend, Reply, TestApp, request, send_to, token as token_entry};

const MIB: u64 = 1 << 20;

async fn over_memory(budget: u64) -> TestApp {
    TestApp::with(Backend::Memory, |options| {
        options.upload_memory_bytes = budget;
    })
    .await
}

/// A body whose frames the test sends when it likes.
fn open_body() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let frames = stream::unfold(receiver, |mut receiver| async {
        let frame = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(frame), receiver))
    });
    (sender, Body::from_stream(frames))
}

fn begin(app: &TestApp, tasks: &mut JoinSet<Reply>, session: &str, body: Body) {
    let path = format!("/v1/sessions/{session}/artifacts");
    let sent = request(Method::POST, &path, &[], body);
    let router = app.router.clone();
    tasks.spawn(async move { send_to(&router, sent).await });
}

/// Waits until the uploads hold this much.
async fn until_reserved(app: &TestApp, is_enough: impl Fn(u64) -> bool) {
    let library = app.state.library().unwrap();
    while !is_enough(library.load().upload_memory_bytes) {
        tokio::task::yield_now().await;
    }
}

fn unknown() -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::io::Error>("x")]))
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_memory_waits_a_bounded_time_and_small_ones_pass() {
    let app = over_memory(27 * MIB).await;
    let mut first = JoinSet::new();
    let (frames, body) = open_body();
    begin(&app, &mut first, "one", body);
    frames.send("abc".into()).await.unwrap();
    // A tool that prints now and then holds little.
    until_reserved(&app, |bytes| bytes > 0).await;
    assert!(app.state.library().unwrap().load().upload_memory_bytes < 3 * MIB);
    frames
        .send(vec![b'x'; 2 * MIB as usize].into())
        .await
        .unwrap();
    until_reserved(&app, |bytes| bytes == 24 * MIB).await;
    let began = Instant::now();
    let length = [("Content-Length", "9000000")];
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let refused = app.save("two", "", &length, never).await;
    refused.is_problem(ErrorCode::Saturated);
    assert_eq!(refused.header("retry-after"), "2");
    assert_eq!(began.elapsed().as_secs(), UPLOAD_QUEUE_TIMEOUT.as_secs());
    // What says that it is small has room beside it.
    let small = app.save("three", "", &[("Content-Length", "1")], "x").await;
    assert_eq!(small.status, StatusCode::CREATED);
    drop(frames);
    let reply = first.join_next().await.unwrap().unwrap();
    assert_eq!(reply.status, StatusCode::CREATED);
    assert_eq!(app.state.library().unwrap().load().upload_memory_bytes, 0);
    let served = app.save("two", "", &[], unknown()).await;
    assert_eq!(served.status, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_cannot_grow_is_held_back_and_then_sent_away_with_nothing_kept() {
    let app = over_memory(40 * MIB).await;
    let mut large = JoinSet::new();
    let (frames, body) = open_body();
    begin(&app, &mut large, "large", body);
    frames
        .send(vec![b'x'; 2 * MIB as usize].into())
        .await
        .unwrap();
    until_reserved(&app, |bytes| bytes == 24 * MIB).await;
    let began = Instant::now();
    let chunks = stream::repeat(Bytes::from(vec![b'y'; MIB as usize])).take(3);
    let body = Body::from_stream(chunks.map(Ok::<_, std::io::Error>));
    let refused = app.save("second", "call_id=c", &[], body).await;
    refused.is_problem(ErrorCode::Saturated);
    assert_eq!(began.elapsed().as_secs(), UPLOAD_GROWTH_TIMEOUT.as_secs());
    app.assert_untouched("it could not grow").await;
    drop(frames);
    assert_eq!(
        large.join_next().await.unwrap().unwrap().status,
        StatusCode::CREATED
    );
    assert_eq!(app.state.library().unwrap().load().upload_memory_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_side_by_side_stay_within_the_budget_and_all_of_them_end() {
    // Room for two; each of the six needs a second and a third part while others hold theirs.
    let budget = 2 * 24 * MIB;
    let app = over_memory(budget).await;
    let mut uploads = JoinSet::new();
    for number in 0..6 {
        let frame = Bytes::from(vec![b'a' + number; MIB as usize]);
        let frames = stream::repeat(frame).take(17).map(Ok::<_, std::io::Error>);
        begin(
            &app,
            &mut uploads,
            &format!("s{number}"),
            Body::from_stream(frames),
        );
    }
    let mut most = 0;
    loop {
        let load = app.state.library().unwrap().load();
        most = most.max(load.upload_memory_bytes);
        assert!(load.upload_memory_bytes <= budget, "{load:?}");
        match uploads.try_join_next() {
            Some(reply) => {
                let reply = reply.unwrap();
                let is_saturated = reply.status == StatusCode::SERVICE_UNAVAILABLE;
                assert!(
                    reply.status == StatusCode::CREATED || is_saturated,
                    "{}",
                    reply.text()
                );
            }
            None if uploads.is_empty() => break,
            None => tokio::task::yield_now().await,
        }
    }
    assert!(most >= 24 * MIB, "{most}");
    assert_eq!(app.state.library().unwrap().load().upload_memory_bytes, 0);
    assert_eq!(app.open_uploads().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_pauses_too_long_is_a_timeout_and_leaves_nothing() {
    for mib in [0, 1, 20] {
        let app = TestApp::new(Backend::Memory).await;
        let chunk = Bytes::from(vec![b'x'; MIB as usize]);
        let sent = stream::repeat(chunk).take(mib).map(Ok::<_, std::io::Error>);
        let body = Body::from_stream(sent.chain(stream::pending()));
        let began = Instant::now();
        let reply = app.save("s", "call_id=c", &[], body).await;
        reply.is_problem(ErrorCode::RequestTimeout);
        assert_eq!(
            began.elapsed().as_secs(),
            BODY_IDLE_TIMEOUT.as_secs(),
            "{mib} MiB"
        );
        app.state.library().unwrap().drain().await;
        app.assert_untouched("a stalled body").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_only_trickles_ends_at_the_upload_deadline() {
    let app = TestApp::new(Backend::Memory).await;
    // Always a second before the pause would be too long.
    let pace = BODY_IDLE_TIMEOUT - Duration::from_secs(1);
    let trickle = stream::unfold((), move |()| async move {
        tokio::time::sleep(pace).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
    });
    let reply = app.save("s", "", &[], Body::from_stream(trickle)).await;
    reply.is_problem(ErrorCode::RequestTimeout);
    app.assert_untouched("a trickle").await;
}

async fn with_quotas(session: u64, tenant: u64) -> TestApp {
    let quota = |bytes| (bytes > 0).then_some(bytes);
    TestApp::with(Backend::Memory, |options| {
        options.quotas = Quotas {
            session_bytes: quota(session),
            tenant_bytes: quota(tenant),
        };
    })
    .await
}

fn stated(body: &[u8]) -> [(&'static str, String); 1] {
    [("Content-Length", body.len().to_string())]
}

async fn save(app: &TestApp, session: &str, query: &str, body: &[u8]) -> Reply {
    let [(name, length)] = stated(body);
    app.save(session, query, &[(name, &length)], body.to_vec())
        .await
}

/// The same without a length, as a chunked upload comes.
async fn stream_in(app: &TestApp, session: &str, query: &str, body: &[u8]) -> Reply {
    let frames: Vec<_> = body.chunks(1 << 20).map(Bytes::copy_from_slice).collect();
    let body = Body::from_stream(stream::iter(
        frames.into_iter().map(Ok::<_, std::io::Error>),
    ));
    app.save(session, query, &[], body).await
}

#[rstest]
#[case::stated(true)]
#[case::streamed(false)]
#[tokio::test]
async fn a_used_up_quota_refuses_what_is_new_and_answers_repeats(#[case] is_stated: bool) {
    let app = with_quotas(10, 0).await;
    let send = async |session: &str, query: &str, body: &[u8]| {
        if is_stated {
            save(&app, session, query, body).await
        } else {
            stream_in(&app, session, query, body).await
        }
    };
    let first = send("s", "call_id=a", b"12345678").await;
    assert_eq!(first.status, StatusCode::CREATED);
    let keys = app.keys().await;
    for (query, body) in [
        ("call_id=b", &b"123"[..]),
        ("", b"123"),
        ("call_id=a", b"12345679"),
    ] {
        let refused = send("s", query, body).await;
        let problem = refused.is_problem(ErrorCode::QuotaExceeded);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("limits.session_bytes"), "{detail}");
    }
    assert_eq!(app.keys().await, keys, "nothing was stored");
    // A question, not a save: answered, and not counted again.
    for _ in 0..3 {
        let again = send("s", "call_id=a", b"12345678").await;
        assert_eq!(again.status, StatusCode::OK);
        assert_eq!(again.body, first.body);
    }
    assert_eq!(
        send("s", "call_id=c", b"12").await.status,
        StatusCode::CREATED
    );
    send("s", "call_id=d", b"1")
        .await
        .is_problem(ErrorCode::QuotaExceeded);
    // Another session has a quota of its own.
    assert_eq!(send("t", "", b"1").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_child_over_its_quota_still_replays_what_its_parent_has() {
    let app = with_quotas(10, 0).await;
    let first = save(&app, "parent", "call_id=a", b"1234567890").await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(
        save(&app, "child", "parent=parent", b"1234567890")
            .await
            .status,
        201
    );
    let replayed = save(&app, "child", "call_id=a", b"1234567890").await;
    assert_eq!(replayed.status, StatusCode::OK);
    assert_eq!(replayed.json()["locator"], first.json()["locator"]);
    // A child that does not exist yet is not created by the question.
    let tight = with_quotas(5, 5).await;
    save(&tight, "parent", "call_id=a", b"12345").await;
    let descriptors = tight.keys_of('s').await;
    let replayed = save(&tight, "new", "call_id=a&parent=parent", b"12345").await;
    assert_eq!(replayed.status, StatusCode::OK, "{}", replayed.text());
    assert_eq!(tight.keys_of('s').await, descriptors);
}

#[tokio::test]
async fn the_tenants_quota_covers_its_sessions_and_a_large_body_may_overshoot_once() {
    let app = with_quotas(0, 12 * MIB).await;
    let large = vec![b'x'; 13 * MIB as usize];
    // Stated: known to be too much.
    let refused = save(&app, "s", "", &large).await;
    let problem = refused.is_problem(ErrorCode::QuotaExceeded);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("limits.tenant_bytes")
    );
    assert!(app.keys_of('b').await.is_empty());
    // Not stated: what is streamed already is kept, and the next one finds the quota used up.
    assert_eq!(
        stream_in(&app, "s", "", &large).await.status,
        StatusCode::CREATED
    );
    let refused = stream_in(&app, "t", "", b"x").await;
    refused.is_problem(ErrorCode::QuotaExceeded);
    assert_eq!(app.open_uploads().await, 0);
}

#[tokio::test]
async fn a_plan_brings_the_usage_up_to_date_and_nothing_is_evicted() {
    let app = with_quotas(100, 0).await;
    let saved = app.put("call_id=a", vec![b'x'; 90]).await;
    save(&app, "s", "", &[b'y'; 20])
        .await
        .is_problem(ErrorCode::QuotaExceeded);
    let tenant = Tenant::default();
    let session = SessionKey::derive(&tenant, &"s".parse().unwrap());
    let mut baseline = UsageBaseline::default();
    baseline.sessions.insert((tenant, session), 70);
    let library = app.state.library().unwrap();
    library.rebase_usage(baseline, jiff::Timestamp::MAX);
    assert_eq!(
        save(&app, "s", "", &[b'y'; 20]).await.status,
        StatusCode::CREATED
    );
    save(&app, "s", "", &[b'y'; 20])
        .await
        .is_problem(ErrorCode::QuotaExceeded);
    assert_eq!(app.get(&saved.path).await.body.len(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_principal_over_its_pace_is_told_when_to_come_again() {
    let app = TestApp::new(Backend::Memory).await;
    let number = |n| NonZeroU32::new(n).unwrap();
    app.state
        .limit_requests(RequestLimits::new(number(1), number(3)));
    let list = "/v1/sessions/s/artifacts";
    for _ in 0..3 {
        assert_eq!(app.get(list).await.status, StatusCode::OK);
    }
    let refused = app.get(list).await;
    refused.is_problem(ErrorCode::RateLimited);
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("ratelimit-policy"), "\"requests\";q=3;w=3");
    // A save is refused before its body is read.
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    app.save("s", "", &[], never)
        .await
        .is_problem(ErrorCode::RateLimited);
    for free in ["/livez", "/healthz", "/readyz", "/openapi.yaml"] {
        for _ in 0..10 {
            assert_eq!(app.get(free).await.status, StatusCode::OK, "{free}");
        }
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(app.get(list).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn who_has_no_valid_token_is_slowed_down_and_holds_up_nobody_else() {
    let token = "sbx_right-0123456789abcdef";
    let entries = [token_entry(token, "acme", &[Scope::Read])];
    let router = TestApp::new(Backend::Memory).await.guarded(&entries);
    let ask = async |token: Option<&str>, peer: [u8; 4]| {
        let mut request = axum::http::Request::get("/v1/sessions/s/artifacts");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(PeerAddress(peer.into()));
        send_to(&router, request).await
    };
    for n in 0..FAILED_ACCESS_BURST {
        let token = (n % 2 == 0).then_some("sbx_wrong");
        ask(token, [10, 0, 0, 1])
            .await
            .is_problem(ErrorCode::Unauthenticated);
    }
    for token in [None, Some("sbx_wrong")] {
        let refused = ask(token, [10, 0, 0, 1]).await;
        refused.is_problem(ErrorCode::RateLimited);
        assert_eq!(refused.header("retry-after"), "1");
    }
    // Neither a valid token from there nor anybody elsewhere is concerned.
    assert_eq!(ask(Some(token), [10, 0, 0, 1]).await.status, StatusCode::OK);
    ask(None, [10, 0, 0, 2])
        .await
        .is_problem(ErrorCode::Unauthenticated);
    tokio::time::advance(Duration::from_secs(1)).await;
    ask(None, [10, 0, 0, 1])
        .await
        .is_problem(ErrorCode::Unauthenticated);
}

#[tokio::test]
async fn an_over_long_query_is_a_problem_and_a_long_summary_is_none() {
    let app = TestApp::new(Backend::Memory).await;
    let path = "/v1/sessions/s/artifacts?summary=";
    let fill = "x".repeat(MAX_URI_BYTES - path.len());
    let reply = app.save("s", &format!("summary={fill}"), &[], "body").await;
    assert_eq!(reply.status, StatusCode::CREATED);
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let long = app.ask(method, &format!("{path}{fill}x"), &[]).await;
        let problem = long.is_problem(ErrorCode::UriTooLong);
        assert!(problem.to_string().len() < 1_000);
    }
    let unknown = format!("/{}", "y".repeat(MAX_URI_BYTES));
    let reply = app.get(&unknown).await;
    reply.is_problem(ErrorCode::UriTooLong);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Whatever sizes come in whatever order, stated or not: the budget holds and every share comes back.
    #[test]
    fn the_budget_holds_for_any_mix_of_uploads(
        sizes in prop::collection::vec((0..2 * PART_BYTES, any::<bool>()), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let budget = 32 * MIB;
            let app = Arc::new(over_memory(budget).await);
            let mut uploads = JoinSet::new();
            for (at, (size, is_stated)) in sizes.into_iter().enumerate() {
                let app = Arc::clone(&app);
                uploads.spawn(async move {
                    let body = vec![b'x'; size];
                    let session = format!("s{at}");
                    if is_stated {
                        save(&app, &session, "", &body).await.status
                    } else {
                        stream_in(&app, &session, "", &body).await.status
                    }
                });
            }
            while let Some(status) = uploads.join_next().await {
                assert_eq!(status.unwrap(), StatusCode::CREATED);
                assert!(app.state.library().unwrap().load().upload_memory_bytes <= budget);
            }
            assert_eq!(app.state.library().unwrap().load().upload_memory_bytes, 0);
        });
    }
}
