//! The audit stream of a service: which lines a mix of requests leaves, and what never stands in one.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use spillbox::auth::{Authenticator, Scope, TokenTable};
use spillbox::error::ErrorCode;
use spillbox::http::app::{AppState, CallerRules, route_table, router};
use spillbox::http::audit::{AuditEvent, AuditSink};
use spillbox::http::operation::Operation;
use spillbox::http::request_id::RequestIds;
use spillbox::http::route::Guard;
use spillbox::ids::SeededIds;
use tokio::sync::mpsc;

use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to, shared, token};

const OWN: &str = "sbx_CANARYtoken-own";
const READER: &str = "sbx_CANARYtoken-reader";
const FOREIGN: &str = "sbx_CANARYtoken-foreign";

struct Audited {
    app: TestApp,
    router: Router,
    lines: mpsc::Receiver<AuditEvent>,
}

impl Audited {
    async fn with_capacity(capacity: usize) -> Self {
        let app = TestApp::new(Backend::Memory).await;
        let (sink, lines) = AuditSink::with_capacity(shared(&app.clock), capacity);
        let mut own = token(OWN, "acme", &Scope::ALL);
        own.name = Some("ci".to_owned());
        let reader = token(READER, "acme", &[Scope::Read]);
        let foreign = token(FOREIGN, "other", &Scope::ALL);
        let table = TokenTable::new(&[own, reader, foreign]).unwrap();
        let rules = CallerRules {
            audit: Some(sink),
            ..CallerRules::new(Authenticator::Tokens(table), Vec::new())
        };
        let state = AppState::with_rules(rules);
        state.open(app.state.library().unwrap().clone());
        let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(7)));
        let router = router(state, ids);
        Self { app, router, lines }
    }

    async fn new() -> Self {
        Self::with_capacity(100).await
    }

    async fn ask(&self, method: Method, path: &str, token: Option<&str>, body: &str) -> Reply {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers = bearer.iter().map(|value| ("Authorization", value.as_str()));
        let headers: Vec<_> = headers.chain([("x-request-id", "r-1")]).collect();
        let body = Body::from(body.to_owned());
        send_to(&self.router, request(method, path, &headers, body)).await
    }

    /// The one line that was left since the last look.
    #[track_caller]
    fn line(&mut self) -> Value {
        let line = serde_json::to_value(self.lines.try_recv().unwrap()).unwrap();
        assert!(self.lines.try_recv().is_err(), "one line for one request");
        line
    }
}

#[tokio::test]
async fn reads_saves_and_refusals_each_leave_one_line() {
    let mut audited = Audited::new().await;
    let path = "/v1/sessions/s/artifacts?call_id=c";
    let saved = audited.ask(Method::POST, path, Some(OWN), "four").await;
    let saved = Saved::of(&saved);
    let (session, artifact) = saved.path["/a/".len()..].split_once('.').unwrap();
    let line = audited.line();
    let served = line["bytes_served"].as_u64().unwrap();
    assert!(served > 100, "the receipt's bytes: {served}");
    let expected = |operation: &str, outcome: &str, served: u64| {
        json!({
            "time": line["time"],
            "request_id": "r-1",
            "principal": "ci",
            "tenant": "acme",
            "operation": operation,
            "session_key": session,
            "artifact_id": artifact,
            "outcome": outcome,
            "bytes_served": served,
        })
    };
    assert_eq!(line, expected("save", "ok", served));

    audited.ask(Method::GET, &saved.path, Some(OWN), "").await;
    assert_eq!(audited.line(), expected("read", "ok", 4));
    audited.ask(Method::HEAD, &saved.path, Some(OWN), "").await;
    assert_eq!(audited.line(), expected("read", "ok", 0));
    let bad = saved.at("/lines?limit=0");
    audited.ask(Method::GET, &bad, Some(OWN), "").await;
    assert_eq!(audited.line(), expected("lines", "invalid_parameter", 0));

    // Who is not recognised has no name and no tenant.
    audited.ask(Method::GET, &saved.path, None, "").await;
    let mut refused = expected("read", "unauthenticated", 0);
    refused["principal"] = Value::Null;
    refused["tenant"] = Value::Null;
    assert_eq!(audited.line(), refused);

    audited
        .ask(Method::GET, &saved.path, Some(FOREIGN), "")
        .await;
    let foreign = audited.line();
    assert_eq!(foreign["outcome"], "artifact_not_found");
    assert_eq!(foreign["tenant"], "other");
    assert_eq!(foreign["artifact_id"], artifact);

    audited.ask(Method::POST, path, Some(READER), "x").await;
    let lacking = audited.line();
    assert_eq!(lacking["outcome"], "insufficient_scope");
    assert_eq!(lacking["session_key"], session);
    assert_eq!(lacking["artifact_id"], Value::Null);
    assert!(lacking["principal"].as_str().unwrap().starts_with("token-"));
}

#[tokio::test]
async fn every_guarded_route_leaves_its_word_and_public_ones_none() {
    let mut audited = Audited::new().await;
    let locator = format!("{:026}.{:026}", 1, 2);
    let mut words = Vec::new();
    for (template, methods) in route_table() {
        let path = template
            .replace("{session}", "s")
            .replace("{locator}", &locator);
        for (method, guard) in methods {
            audited.ask(method, &path, Some(OWN), "").await;
            match guard {
                Guard::Public => assert!(audited.lines.try_recv().is_err()),
                Guard::Needs(operation) => {
                    assert_eq!(audited.line()["operation"], operation.as_str());
                    words.push(operation);
                }
            }
        }
    }
    for operation in Operation::ALL {
        assert!(words.contains(operation), "{operation:?} has no route");
    }
}

#[tokio::test]
async fn no_line_holds_content_names_queries_sessions_or_tokens() {
    let mut audited = Audited::new().await;
    let path = "/v1/sessions/CANARYsession/artifacts?call_id=CANARYcall&tool=CANARYtool&label=CANARYlabel\
        &name=CANARYname&title=CANARYtitle&summary=CANARYsummary";
    let saved = audited
        .ask(Method::POST, path, Some(OWN), "CANARYcontent\n")
        .await;
    assert_eq!(saved.status, StatusCode::CREATED);
    let locator = Saved::of(&saved).path;
    for path in [
        locator.clone(),
        format!("{locator}/grep?pattern=CANARYpattern"),
        format!("{locator}/lines?CANARYparameter=1"),
        format!("{locator}/stat"),
        "/a/CANARYlocator".to_owned(),
        "/v1/sessions/CANARYsession/artifacts?tool=CANARYtool".to_owned(),
        "/v1/sessions/CANARY%zz/artifacts".to_owned(),
    ] {
        for token in [Some(OWN), Some("sbx_CANARYtoken-unknown"), None] {
            audited.ask(Method::GET, &path, token, "").await;
        }
    }
    let mut count = 0;
    while let Ok(line) = audited.lines.try_recv() {
        let line = serde_json::to_string(&line).unwrap();
        assert!(!line.contains("CANARY"), "{line}");
        count += 1;
    }
    assert_eq!(count, 22);
    let _ = audited.app;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_or_served_while_the_stream_takes_no_line() {
    let mut audited = Audited::with_capacity(1).await;
    let path = "/v1/sessions/s/artifacts";
    let saved = audited.ask(Method::POST, path, Some(OWN), "kept").await;
    assert_eq!(saved.status, StatusCode::CREATED);
    let before = audited.app.keys().await;
    for (method, path) in [(Method::POST, path), (Method::GET, path)] {
        let refused = audited.ask(method, path, Some(OWN), "lost").await;
        refused.is_problem(ErrorCode::Saturated);
        assert_eq!(refused.header("retry-after"), "2");
    }
    assert_eq!(audited.app.keys().await, before);
    assert_eq!(audited.line()["operation"], "save");
    let read = audited.ask(Method::GET, path, Some(OWN), "").await;
    assert_eq!(read.status, StatusCode::OK);
}
