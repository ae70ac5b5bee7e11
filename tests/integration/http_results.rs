//! One result over HTTP: inline or spilled, frozen, replayed.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use rstest::rstest;
use serde_json::Value;
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, Reply, Saved, TestApp, escape, request, send_to};
use crate::support::s3_server::{Action, Fault, Op};

async fn ask_of(router: &Router, session: &str, query: &str, bytes: impl Into<Body>) -> Reply {
    let path = format!("/v1/sessions/{}/results?{query}", escape(session));
    send_to(router, request(Method::POST, &path, &[], bytes.into())).await
}

async fn ask(app: &TestApp, query: &str, bytes: impl Into<Body>) -> Reply {
    ask_of(&app.router, "s", query, bytes).await
}

async fn decided(app: &TestApp, query: &str, bytes: impl Into<Body>) -> Value {
    let reply = ask(app, query, bytes).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

/// What a replay must repeat: all but the retention that runs down.
fn lasting(decision: &Value) -> Value {
    let mut decision = decision.clone();
    if let Some(receipt) = decision.get_mut("receipt").and_then(Value::as_object_mut) {
        receipt.remove("orphan_ttl_seconds");
    }
    decision
}

fn log(lines: usize) -> String {
    (0..lines)
        .map(|n| format!("line {n} of the log\n"))
        .collect()
}

#[rstest]
#[tokio::test]
async fn small_results_stay_and_large_ones_are_stored(
    #[values(Backend::Memory, Backend::Local, Backend::S3, Backend::MinioVersioned)]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let small = decided(&app, "tool=ls&call_id=c1", "a\nb\n").await;
    assert_eq!(small["action"], "inline");
    assert_eq!(
        (&small["text"], &small["stored"]),
        (&"a\nb\n".into(), &false.into())
    );
    assert_eq!(small["reason"], Value::Null);
    assert!(small.get("receipt").is_none());
    assert!(app.keys_of('b').await.is_empty() && app.keys_of('a').await.is_empty());
    let text = log(5_000);
    let large = decided(&app, "tool=grep&call_id=c2", text.clone()).await;
    assert_eq!(
        (&large["action"], &large["stored"]),
        (&"spilled".into(), &true.into())
    );
    assert_eq!(large["text"], large["receipt"]["replacement"]);
    assert!(large["text"].as_str().unwrap().len() <= 10_000);
    let locator = large["receipt"]["locator"].as_str().unwrap();
    let path = locator.split_once("8787").unwrap().1;
    assert_eq!(app.get(path).await.text(), text);
}

#[rstest]
#[tokio::test]
async fn a_decision_is_repeated_by_every_replica_and_under_every_profile(
    #[values(Backend::Memory, Backend::S3Versioned)] backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let text = log(2_500);
    assert!(text.len() > 30_000 && text.len() < 100_000);
    let spilled = decided(&app, "tool=x&call_id=a", text.clone()).await;
    assert_eq!(spilled["action"], "spilled");
    let inline = decided(&app, "tool=x&call_id=b&profile=hermes", text.clone()).await;
    assert_eq!(
        (&inline["action"], &inline["text"]),
        (&"inline".into(), &text.clone().into())
    );
    let replica = app.replica("default").await;
    for router in [&app.router, &replica] {
        for profile in ["default", "hermes", "claude-code", "tiny-claw", "dsh"] {
            for (call, first) in [("a", &spilled), ("b", &inline)] {
                let query = format!("tool=x&call_id={call}&profile={profile}");
                let again = ask_of(router, "s", &query, text.clone()).await.json();
                assert_eq!(lasting(&again), lasting(first), "{query}");
            }
        }
    }
    // The same call with other bytes is another result.
    let other = decided(&app, "tool=x&call_id=b", format!("{text}.")).await;
    assert_eq!(other["action"], "spilled");
}

#[tokio::test]
async fn nothing_to_see_is_a_sentence() {
    let app = TestApp::new(Backend::Memory).await;
    for profile in [
        "default",
        "workbuddy",
        "claude-code",
        "tiny-claw",
        "dsh",
        "hermes",
    ] {
        for (bytes, words) in [
            ("", "no output from `Bash` (0 bytes)"),
            (" \n ", "no visible output"),
        ] {
            let query = format!("tool=Bash&profile={profile}&call_id={profile}");
            let decision = decided(&app, &query, bytes).await;
            assert_eq!(
                (&decision["action"], &decision["stored"]),
                (&"inline".into(), &false.into())
            );
            assert!(
                decision["text"].as_str().unwrap().starts_with(words),
                "{decision}"
            );
            assert_eq!(decided(&app, &query, bytes).await, decision);
        }
    }
    assert!(app.keys_of('b').await.is_empty());
}

#[tokio::test]
async fn bytes_are_stored_whatever_their_size_but_those_of_an_exempt_tool() {
    let app = TestApp::new(Backend::Memory).await;
    let gzip: &[u8] = b"\x1f\x8b\x08\0\xff\xfe";
    let stored = decided(&app, "tool=curl&call_id=c", gzip).await;
    assert_eq!(
        (&stored["action"], &stored["stored"]),
        (&"spilled".into(), &true.into())
    );
    let text = stored["text"].as_str().unwrap();
    assert!(text.contains("DESCRIPTION of binary"), "{text}");
    let exempt = decided(&app, "tool=Read&call_id=r", gzip).await;
    assert_eq!(
        (&exempt["action"], &exempt["stored"]),
        (&"inline".into(), &false.into())
    );
    assert!(exempt.get("text").is_none(), "bytes are not sent back");
    assert_eq!(app.keys_of('b').await.len(), 1);
}

#[tokio::test]
async fn a_reader_is_never_taken_out_and_much_text_is_not_sent_back() {
    let app = TestApp::new(Backend::Memory).await;
    for (lines, is_sent_back) in [(40_000, true), (60_000, false), (600_000, false)] {
        let text = log(lines);
        let decision = decided(&app, "tool=Read&call_id=r", text.clone()).await;
        assert_eq!(
            (&decision["action"], &decision["reason"]),
            (&"inline".into(), &Value::Null)
        );
        assert_eq!(
            decision.get("text").is_some(),
            is_sent_back,
            "{} bytes",
            text.len()
        );
    }
    assert!(app.keys_of('b').await.is_empty() && app.open_uploads().await == 0);
}

#[tokio::test]
async fn limits_come_from_server_and_window_where_the_profile_listens() {
    let app = TestApp::new(Backend::Memory).await;
    let text = "q".repeat(60_000);
    let action = async |query: &str| decided(&app, query, text.clone()).await["action"].clone();
    assert_eq!(action("profile=claude-code&tool=mcp").await, "spilled");
    assert_eq!(
        action("profile=claude-code&tool=mcp&server_max_chars=500000").await,
        "inline"
    );
    assert_eq!(
        action("profile=claude-code&tool=mcp&server_max_chars=59999").await,
        "spilled"
    );
    assert_eq!(action("profile=hermes&tool=x").await, "inline");
    assert_eq!(
        action("profile=hermes&tool=x&context_tokens=8000").await,
        "spilled"
    );
    assert_eq!(action("profile=hermes&tool=mcp_x").await, "spilled");
    assert_eq!(action("profile=tiny-claw&tool=unnamed").await, "inline");
}

#[tokio::test]
async fn each_profile_words_its_own_message() {
    let app = TestApp::new(Backend::Memory).await;
    let text = log(12_000);
    for (profile, start, part) in [
        ("default", "[spillbox] EXCERPT", "to read on: curl"),
        (
            "workbuddy",
            "[spillbox] artifact: ",
            " characters omitted\n",
        ),
        ("claude-code", "<persisted-output>\n", "Preview (the first "),
        (
            "tiny-claw",
            "<persisted-output>\n",
            "KB); all of it is kept at: http",
        ),
        (
            "dsh",
            "line 0 of the log\n",
            " bytes omitted; whole output is kept at: http",
        ),
        (
            "hermes",
            "<persisted-output>\n",
            "Do not ask the remote source",
        ),
    ] {
        let query = format!("tool=bash&profile={profile}&call_id={profile}");
        let decision = decided(&app, &query, text.clone()).await;
        let shown = decision["text"].as_str().unwrap();
        assert!(
            shown.starts_with(start) && shown.contains(part),
            "{profile}: {shown}"
        );
        let locator = decision["receipt"]["locator"].as_str().unwrap();
        assert!(shown.contains(locator), "{profile}");
    }
}

#[tokio::test]
async fn a_collected_result_is_saved_anew_and_an_erased_one_is_a_sentence() {
    let app = TestApp::new(Backend::Memory).await;
    let text = log(5_000);
    let first = decided(&app, "tool=x&call_id=c", text.clone()).await;
    let saved = Saved {
        receipt: first["receipt"].clone(),
        path: String::new(),
    };
    app.bury(&saved, TombstoneReason::Expired).await;
    for router in [app.router.clone(), app.replica("default").await] {
        let again = ask_of(&router, "s", "tool=x&call_id=c&means=http", text.clone())
            .await
            .json();
        assert_eq!(
            (&again["action"], &again["stored"]),
            (&"spilled".into(), &true.into())
        );
        assert_ne!(again["text"], first["text"], "never the old text");
    }
    let again = decided(&app, "tool=x&call_id=c", text.clone()).await;
    let saved = Saved {
        receipt: again["receipt"].clone(),
        path: String::new(),
    };
    app.bury(&saved, TombstoneReason::Erased).await;
    for router in [app.router.clone(), app.replica("default").await] {
        let gone = ask_of(&router, "s", "tool=x&call_id=c", text.clone()).await;
        assert_eq!(gone.status, StatusCode::OK);
        let gone = gone.json();
        assert_eq!(
            (&gone["stored"], &gone["reason"]),
            (&false.into(), &"erased".into())
        );
        let words = gone["text"].as_str().unwrap();
        assert!(
            words.contains("erased") && !words.contains("line "),
            "{words}"
        );
    }
}

#[tokio::test]
async fn a_fork_repeats_what_its_parents_decided() {
    let app = TestApp::new(Backend::Memory).await;
    let text = log(2_500);
    let inline = decided(&app, "tool=x&call_id=i&profile=hermes", text.clone()).await;
    let spilled = decided(&app, "tool=x&call_id=s", text.clone()).await;
    let records = app.keys_of('c').await.len();
    for router in [app.router.clone(), app.replica("default").await] {
        for (call, profile, first) in [("i", "default", &inline), ("s", "hermes", &spilled)] {
            let query = format!("tool=x&call_id={call}&profile={profile}&parent=s");
            let again = ask_of(&router, "child", &query, text.clone()).await;
            assert_eq!(lasting(&again.json()), lasting(first), "{call}");
        }
    }
    assert_eq!(
        app.keys_of('c').await.len(),
        records,
        "nothing is decided twice"
    );
    let own = ask_of(&app.router, "child", "tool=x&call_id=new", text.clone())
        .await
        .json();
    assert_eq!(own["action"], "spilled");
    let of_parent = decided(&app, "tool=x&call_id=new&profile=hermes", text.clone()).await;
    assert_eq!(
        of_parent["action"], "inline",
        "a parent does not read its children"
    );
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_costs_no_result(
    #[values("default", "hermes", "claude-code", "tiny-claw", "dsh", "workbuddy")] profile: &str,
) {
    let app = TestApp::new(Backend::S3).await;
    let server = app.s3.as_ref().unwrap();
    let action = Action::Refuse {
        status: 403,
        code: "AccessDenied",
    };
    server.fault(Fault::on(Op::Put, action).always());
    let text = format!("{}FINAL STATUS: blocked\n", log(30_000));
    let query = format!("tool=bash&call_id=c&profile={profile}");
    let reply = ask(&app, &query, text.clone()).await;
    if profile == "workbuddy" {
        reply.is_problem(ErrorCode::StoreDenied);
        return;
    }
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let decision = reply.json();
    assert_eq!(
        (&decision["action"], &decision["stored"]),
        (&"inline".into(), &false.into())
    );
    assert_eq!(decision["reason"], "store_denied");
    let shown = decision["text"].as_str().unwrap();
    assert!(shown.ends_with("FINAL STATUS: blocked\n"));
    let is_bounded = matches!(profile, "default" | "hermes");
    assert_eq!(shown.len() <= 10_000, is_bounded, "{}", shown.len());
    assert!(is_bounded || shown == text);
    let small = decided(
        &app,
        &format!("tool=bash&call_id=d&profile={profile}"),
        "small",
    )
    .await;
    assert_eq!(
        (&small["text"], &small["reason"]),
        (&"small".into(), &"store_denied".into())
    );
    // Once the store works, the call is decided.
    server.clear_faults();
    let decision = decided(&app, &query, text).await;
    assert_eq!(
        (&decision["action"], &decision["stored"]),
        (&"spilled".into(), &true.into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_under_a_streamed_result_leaves_both_ends() {
    let app = TestApp::new(Backend::S3).await;
    let server = app.s3.as_ref().unwrap();
    let action = Action::Refuse {
        status: 403,
        code: "AccessDenied",
    };
    server.fault(Fault::on(Op::Part, action).always());
    let text = format!("{}FINAL\n", log(900_000));
    assert!(text.len() > 16 << 20);
    let decision = decided(&app, "tool=bash&call_id=c", text.clone()).await;
    assert_eq!(
        (&decision["reason"], &decision["stored"]),
        (&"store_denied".into(), &false.into())
    );
    let shown = decision["text"].as_str().unwrap();
    assert!(shown.contains("\nline 0 of the log\n") && shown.ends_with("FINAL\n"));
    assert_eq!(app.open_uploads().await, 0);
    server.clear_faults();
    let decision = decided(&app, "tool=bash&call_id=c", text).await;
    assert_eq!(
        (&decision["action"], &decision["stored"]),
        (&"spilled".into(), &true.into())
    );
}

#[tokio::test]
async fn over_the_cap_only_the_head_is_shown() {
    let app = TestApp::with(Backend::Memory, |options| options.max_body_bytes = 50_000).await;
    let text = log(9_000);
    let over = decided(&app, "tool=x&call_id=c", text.clone()).await;
    assert_eq!(
        (&over["stored"], &over["reason"]),
        (&false.into(), &"body_too_large".into())
    );
    let shown = over["text"].as_str().unwrap();
    assert!(shown.contains("line 0 of the log") && shown.contains("only its start was read"));
    assert!(!shown.contains("line 8999"));
    let original = decided(&app, "tool=x&call_id=c&profile=dsh", text.clone()).await;
    assert_eq!(
        (&original["action"], &original["stored"]),
        (&"inline".into(), &false.into())
    );
    assert!(
        original.get("text").is_none(),
        "the original stays with the caller"
    );
    let reply = ask(&app, "tool=x&call_id=c&profile=workbuddy", text).await;
    reply.is_problem(ErrorCode::BodyTooLarge);
    assert!(app.keys_of('b').await.is_empty() && app.keys_of('c').await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_saturated_service_decides_small_results_and_shows_the_ends_of_large_ones() {
    let app = TestApp::with(Backend::Memory, |options| {
        options.max_concurrent_uploads = 0
    })
    .await;
    let small = decided(&app, "tool=x&call_id=c", "small").await;
    assert_eq!(
        (&small["text"], &small["reason"]),
        (&"small".into(), &Value::Null)
    );
    let large = decided(&app, "tool=x&call_id=d", log(9_000)).await;
    assert_eq!(
        (&large["stored"], &large["reason"]),
        (&false.into(), &"saturated".into())
    );
    assert!(
        large["text"]
            .as_str()
            .unwrap()
            .ends_with("line 8999 of the log\n")
    );
}

#[tokio::test]
async fn malformed_results_store_nothing() {
    let app = TestApp::new(Backend::Memory).await;
    for query in [
        "profile=none",
        "profile=",
        "server_max_chars=-1",
        "server_max_chars=1.5",
        "context_tokens=x",
        "call_id=",
        "means=ftp",
        "nonsense=1",
        "title=x",
        "tool=%ff",
        "parent=.",
    ] {
        ask(&app, query, "x")
            .await
            .is_problem(ErrorCode::InvalidParameter);
    }
    ask(&app, "parent=nobody", "x")
        .await
        .is_problem(ErrorCode::ParentNotFound);
    let path = "/v1/sessions/s/results?call_id=c";
    for (name, value, code) in [
        ("Content-Encoding", "gzip", ErrorCode::InvalidHeader),
        ("Repr-Digest", "sha-256=:AAAA:", ErrorCode::InvalidHeader),
        ("Content-Length", "7", ErrorCode::BodyIncomplete),
    ] {
        let reply = app
            .send(request(
                Method::POST,
                path,
                &[(name, value)],
                Body::from("x"),
            ))
            .await;
        reply.is_problem(code);
    }
    app.assert_untouched("malformed results").await;
}
