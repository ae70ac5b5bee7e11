//! The results of one turn over HTTP.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to};
use crate::support::s3_server::{Action, Fault, Op};

async fn ask_of(router: &Router, session: &str, turn: &str, document: impl Into<Body>) -> Reply {
    let path = format!("/v1/sessions/{session}/turns/{turn}");
    let headers = [("Content-Type", "application/json")];
    send_to(
        router,
        request(Method::POST, &path, &headers, document.into()),
    )
    .await
}

async fn decided(app: &TestApp, turn: &str, document: &Value) -> Value {
    decided_by(&app.router, "s", turn, document).await
}

async fn decided_by(router: &Router, session: &str, turn: &str, document: &Value) -> Value {
    let reply = ask_of(router, session, turn, document.to_string()).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

fn text(tool: &str, kib: usize) -> String {
    let line = format!("{tool} {}\n", "q".repeat(1_022 - tool.len()));
    line.repeat(kib)
}

fn result(call: &str, tool: &str, text: &str) -> Value {
    json!({"call_id": call, "tool": tool, "text": text})
}

fn actions(turn: &Value) -> Vec<&str> {
    let results = turn["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["action"].as_str().unwrap())
        .collect()
}

/// The prompt that a harness would build of it.
fn prompt(turn: &Value) -> Value {
    let results = turn["results"].as_array().unwrap();
    let shown = |result: &Value| json!([result["call_id"], result["text"], result["parts"]]);
    results.iter().map(shown).collect()
}

/// Ten results of 29 KiB, each small enough by itself.
fn crowded() -> Value {
    let results: Vec<_> = (0..10)
        .map(|n| result(&format!("c{n}"), "grep", &text(&format!("t{n}"), 29)))
        .collect();
    json!({"profile": "default", "results": results})
}

#[rstest]
#[tokio::test]
async fn a_turn_is_made_to_fit_and_stays_as_it_was_decided(
    #[values(Backend::Memory, Backend::Local, Backend::S3, Backend::MinioVersioned)]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let first = decided(&app, "t", &crowded()).await;
    assert_eq!(first["budget"], 200_000);
    assert_eq!(
        (&first["unit"], &first["over_budget"]),
        (&"bytes".into(), &false.into())
    );
    assert!(first["total"].as_u64().unwrap() <= 200_000);
    let expected = ["spilled", "spilled", "spilled", "spilled", "spilled"];
    assert_eq!(
        actions(&first)[..5],
        expected,
        "equal ones in the order of their calls"
    );
    assert!(
        actions(&first)[5..]
            .iter()
            .all(|action| *action == "inline")
    );
    let replica = app.replica("default").await;
    for router in [&app.router, &replica] {
        let again = decided_by(router, "s", "t", &crowded()).await;
        assert_eq!(prompt(&again), prompt(&first));
        let mut smaller = crowded();
        smaller["profile"] = json!("hermes");
        smaller["context_tokens"] = json!(8_000);
        let again = decided_by(router, "s", "t", &smaller).await;
        assert_eq!(
            prompt(&again),
            prompt(&first),
            "another budget changes nothing"
        );
        assert_eq!(again["over_budget"], true);
    }
    assert_eq!(app.keys_of('d').await.len(), 1);
}

#[tokio::test]
async fn later_results_are_decided_beside_the_earlier_ones() {
    let app = TestApp::new(Backend::Memory).await;
    let first = decided(&app, "t", &crowded()).await;
    let mut more = crowded();
    let results = more["results"].as_array_mut().unwrap();
    results.push(result("late", "grep", &text("late", 28)));
    results.push(result("tiny", "grep", "tiny"));
    let second = decided(&app, "t", &more).await;
    assert_eq!(
        prompt(&second).as_array().unwrap()[..10],
        prompt(&first).as_array().unwrap()[..]
    );
    assert_eq!(actions(&second)[11], "inline");
    assert_eq!(app.keys_of('d').await.len(), 2);
    let replica = app.replica("default").await;
    assert_eq!(
        prompt(&decided_by(&replica, "s", "t", &more).await),
        prompt(&second)
    );
    assert_eq!(app.keys_of('d').await.len(), 2);
}

#[tokio::test]
async fn two_replicas_that_decide_at_once_agree() {
    for _ in 0..8 {
        let app = TestApp::new(Backend::S3).await;
        let replica = app.replica("default").await;
        let (mine, mut other) = (crowded(), crowded());
        other["profile"] = json!("tiny-claw");
        let (one, two) = tokio::join!(
            decided_by(&app.router, "s", "t", &mine),
            decided_by(&replica, "s", "t", &other),
        );
        assert_eq!(prompt(&one), prompt(&two));
        assert_eq!(app.keys_of('d').await.len(), 1);
    }
}

#[tokio::test]
async fn exempt_and_named_results_count_and_stay() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("call_id=a&tool=grep", text("saved", 300)).await;
    let id = &saved.receipt["artifact_id"];
    let document = json!({"results": [
        result("r", "Read", &text("reader", 290)),
        {"call_id": "a", "tool": "grep", "artifact_id": id},
        result("s", "grep", &text("small", 12)),
        result("u", "grep", &text("under", 9)),
    ]});
    let turn = decided(&app, "t", &document).await;
    assert_eq!(actions(&turn), ["inline", "spilled", "spilled", "inline"]);
    assert_eq!(turn["results"][1]["text"], saved.receipt["replacement"]);
    assert_eq!(turn["over_budget"], true);
    assert!(turn["total"].as_u64().unwrap() > 290 << 10);
}

#[tokio::test]
async fn what_results_decided_is_kept_and_what_it_left_is_a_candidate() {
    let app = TestApp::new(Backend::Memory).await;
    let path = |call: &str, profile: &str| {
        format!("/v1/sessions/s/results?tool=grep&call_id={call}&profile={profile}")
    };
    let long = text("long", 60);
    let post =
        |path: String, text: &str| request(Method::POST, &path, &[], Body::from(text.to_owned()));
    let spilled = app.send(post(path("c0", "default"), &long)).await.json();
    let inline = app.send(post(path("c1", "hermes"), &long)).await.json();
    assert_eq!(
        (&spilled["action"], &inline["action"]),
        (&"spilled".into(), &"inline".into())
    );
    // Alone both stay as they were decided.
    let alone = json!({"results": [result("c0", "grep", &long), result("c1", "grep", &long)]});
    let turn = decided(&app, "alone", &alone).await;
    assert_eq!(actions(&turn), ["spilled", "inline"]);
    assert_eq!(turn["results"][0]["text"], spilled["text"]);
    // In a full turn the one that was left is taken out.
    let mut full = crowded();
    full["results"][1] = result("c1", "grep", &long);
    let turn = decided(&app, "full", &full).await;
    assert_eq!(turn["results"][1]["action"], "spilled");
}

#[tokio::test]
async fn parts_that_are_no_text_stay_and_the_largest_text_goes() {
    let app = TestApp::new(Backend::Memory).await;
    let image = json!({"type": "image", "data": "i".repeat(70_000), "media_type": "image/png"});
    let parts = json!([{"type": "text", "text": "q".repeat(400)}, image, {"type": "text", "text": text("t", 50)}]);
    let document = json!({"results": [{"call_id": "m", "tool": "shot", "parts": parts}]});
    let turn = decided(&app, "t", &document).await;
    let shown = &turn["results"][0];
    assert_eq!(
        (&shown["action"], &shown["stored"]),
        (&"spilled".into(), &true.into())
    );
    assert_eq!(shown["parts"][0], parts[0]);
    assert_eq!(shown["parts"][1], parts[1]);
    assert_eq!(shown["parts"][2]["text"], shown["receipt"]["replacement"]);
    assert_eq!(prompt(&decided(&app, "t", &document).await), prompt(&turn));
    // Under this profile such a result is left alone.
    let mut untouched = document.clone();
    untouched["profile"] = json!("dsh");
    let turn = decided(&app, "u", &untouched).await;
    assert_eq!(turn["results"][0]["parts"], parts);
    let blank = json!({"results": [{"call_id": "b", "tool": "x", "parts": [{"type": "text", "text": "\n"}]}]});
    let turn = decided(&app, "b", &blank).await;
    let words = turn["results"][0]["parts"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("no visible output from `x`"), "{words}");
}

#[tokio::test]
async fn a_fork_repeats_the_turn_and_reads_through() {
    let app = TestApp::new(Backend::Memory).await;
    let first = decided(&app, "t", &crowded()).await;
    let mut fork = crowded();
    fork["parent"] = json!("s");
    fork["profile"] = json!("tiny-claw");
    let replica = app.replica("default").await;
    for router in [&app.router, &replica] {
        let again = decided_by(router, "child", "t", &fork).await;
        assert_eq!(prompt(&again), prompt(&first));
    }
    assert_eq!(app.keys_of('d').await.len(), 1, "nothing is decided twice");
    // The child's own additions are its own.
    fork["results"]
        .as_array_mut()
        .unwrap()
        .push(result("own", "grep", "own"));
    decided_by(&replica, "child", "t", &fork).await;
    assert_eq!(app.keys_of('d').await.len(), 2);
    let parent = decided(&app, "t", &crowded()).await;
    assert_eq!(prompt(&parent), prompt(&first));
}

#[tokio::test]
async fn a_turn_whose_artifact_is_gone_never_shows_its_old_text() {
    let app = TestApp::new(Backend::Memory).await;
    let first = decided(&app, "t", &crowded()).await;
    let gone = |place: usize| Saved {
        receipt: first["results"][place]["receipt"].clone(),
        path: String::new(),
    };
    app.bury(&gone(0), TombstoneReason::Expired).await;
    app.bury(&gone(1), TombstoneReason::Erased).await;
    for router in [app.router.clone(), app.replica("default").await] {
        let again = decided_by(&router, "s", "t", &crowded()).await;
        let (collected, erased) = (&again["results"][0], &again["results"][1]);
        assert_eq!(
            (&collected["action"], &collected["stored"]),
            (&"spilled".into(), &true.into())
        );
        assert_ne!(collected["text"], first["results"][0]["text"]);
        assert_eq!(
            (&erased["stored"], &erased["reason"]),
            (&false.into(), &"erased".into())
        );
        assert!(!erased["text"].as_str().unwrap().contains("qqq"));
        assert_eq!(prompt(&again)[2], prompt(&first)[2]);
    }
    // A bare name brings no bytes.
    for (place, reason) in [(0, "expired"), (1, "erased")] {
        let id = &gone(place).receipt["artifact_id"];
        let document = json!({"results": [{"call_id": "x", "tool": "grep", "artifact_id": id}]});
        let turn = decided(&app, reason, &document).await;
        let shown = &turn["results"][0];
        assert_eq!(
            (&shown["stored"], &shown["reason"]),
            (&false.into(), &reason.into())
        );
        assert!(shown["text"].as_str().unwrap().contains(reason));
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_costs_no_turn(
    #[values("default", "claude-code", "workbuddy")] profile: &str,
) {
    let app = TestApp::new(Backend::S3).await;
    let server = app.s3.as_ref().unwrap();
    let action = Action::Refuse {
        status: 403,
        code: "AccessDenied",
    };
    server.fault(Fault::on(Op::Put, action).always());
    let long = format!("{}LAST\n", text("x", 80));
    let document = json!({"profile": profile, "results": [result("a", "grep", &long), result("b", "grep", "small")]});
    let reply = ask_of(&app.router, "s", "t", document.to_string()).await;
    if profile == "workbuddy" {
        reply.is_problem(ErrorCode::StoreDenied);
        return;
    }
    let turn = reply.json();
    assert_eq!(turn["results"][1]["text"], "small");
    let shown = &turn["results"][0];
    assert_eq!(
        (&shown["stored"], &shown["reason"]),
        (&false.into(), &"store_denied".into())
    );
    assert!(shown["text"].as_str().unwrap().ends_with("LAST\n"));
    server.clear_faults();
    let turn = decided(&app, "t", &document).await;
    assert_eq!(actions(&turn), ["spilled", "inline"]);
}

#[tokio::test]
async fn an_empty_turn_and_a_repeated_call_are_answered() {
    let app = TestApp::new(Backend::Memory).await;
    let turn = decided(&app, "t", &json!({"results": []})).await;
    assert_eq!((&turn["results"], &turn["total"]), (&json!([]), &json!(0)));
    assert!(app.keys_of('d').await.is_empty());
    let twice = json!({"results": [result("c", "x", "one"), result("c", "x", "one")]});
    assert_eq!(
        decided(&app, "t", &twice).await["results"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn malformed_turns_store_nothing() {
    let app = TestApp::new(Backend::Memory).await;
    let many: Vec<_> = (0..10_000)
        .map(|n| result(&format!("c{n}"), "x", "y"))
        .collect();
    let documents = [
        String::new(),
        "[]".to_owned(),
        "{\"results\":".to_owned(),
        json!({"results": many}).to_string(),
        json!({"results": [result("c", "x", "one"), result("c", "x", "two")]}).to_string(),
        json!({"profile": "none", "results": []}).to_string(),
        json!({"results": [], "colour": 1}).to_string(),
        json!({"results": [], "context_tokens": -1}).to_string(),
        json!({"results": [], "context_tokens": 1.5}).to_string(),
        json!({"results": [], "means": "ftp"}).to_string(),
        json!({"results": [], "parent": "."}).to_string(),
        json!({"results": [{"call_id": "c", "text": "x", "depth": 1}]}).to_string(),
        json!({"results": [{"call_id": "c"}]}).to_string(),
        json!({"results": [{"call_id": "", "text": "x"}]}).to_string(),
        json!({"results": [{"text": "x"}]}).to_string(),
        json!({"results": [{"call_id": "c", "text": "x", "parts": []}]}).to_string(),
        json!({"results": [{"call_id": "c", "parts": ["x"]}]}).to_string(),
        json!({"results": [{"call_id": "c", "artifact_id": "x"}]}).to_string(),
        json!({"results": [{"call_id": "c", "tool": "t".repeat(1_025), "text": "x"}]}).to_string(),
        r#"{"results":[{"call_id":"c","text":"\udcff"}]}"#.to_owned(),
        r#"{"results":[{"call_id":"c","text":"\ud800x"}]}"#.to_owned(),
        format!("{{\"results\":{}", "[".repeat(5_000)),
    ];
    for document in documents {
        let shown: String = document.chars().take(80).collect();
        let reply = ask_of(&app.router, "s", "t", document).await;
        assert!(reply.body.len() < 1_500, "{shown}");
        reply.is_problem(ErrorCode::InvalidBody);
    }
    let no_utf8 = b"{\"results\":[{\"call_id\":\"c\",\"text\":\"\xff\xfe\"}]}".to_vec();
    ask_of(&app.router, "s", "t", no_utf8)
        .await
        .is_problem(ErrorCode::InvalidBody);
    let unknown = json!({"results": [
        result("a", "x", &"q".repeat(90_000)),
        {"call_id": "c", "artifact_id": "00000000000000000000000000"},
    ]});
    let reply = ask_of(&app.router, "s", "t", unknown.to_string()).await;
    reply.is_problem(ErrorCode::ArtifactNotFound);
    let no_parent = json!({"parent": "nobody", "results": [result("a", "x", "y")]});
    let reply = ask_of(&app.router, "s", "t", no_parent.to_string()).await;
    reply.is_problem(ErrorCode::ParentNotFound);
    for turn in [".", "%2e", "%zz", "%ff", &"x".repeat(513)] {
        let reply = ask_of(&app.router, "s", turn, "{\"results\":[]}").await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
    let reply = ask_of(&app.router, "s", "t", vec![b' '; (24 << 20) + 1]).await;
    reply.is_problem(ErrorCode::BodyTooLarge);
    app.assert_untouched("malformed turns").await;
}
