//! Session tokens and capabilities: what they reach, what they do not, and when they end.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::{Value, json};
use spillbox::auth::{Scope, TokenEntry};
use spillbox::error::ErrorCode;
use spillbox::http::app::route_table;
use spillbox::http::operation::Operation;
use spillbox::http::route::Guard;
use spillbox::limits::SIGNED_CLOCK_SKEW;

use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to, token};

const OWN: &str = "sbx_own-0123456789abcdef";
const READER: &str = "sbx_reader-0123456789abcd";
const KEY: &[u8] = b"a signing key of the first month";
const NEXT_KEY: &[u8] = b"a signing key of the second mont";

fn tokens() -> Vec<TokenEntry> {
    vec![
        token(OWN, "acme", &Scope::ALL),
        token(READER, "acme", &[Scope::Read]),
    ]
}

async fn ask(
    router: &Router,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> Reply {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer
        .iter()
        .map(|bearer| ("Authorization", bearer.as_str()))
        .collect();
    let body = Body::from(body.to_owned());
    send_to(router, request(method, path, &headers, body)).await
}

async fn save(router: &Router, session: &str, parent: Option<&str>) -> Saved {
    let parent = parent.map_or(String::new(), |parent| format!("&parent={parent}"));
    let path = format!("/v1/sessions/{session}/artifacts?tool=t{parent}");
    let text = format!("content of {session}");
    let reply = ask(router, Method::POST, &path, Some(OWN), &text).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    Saved::of(&reply)
}

async fn mint_as(router: &Router, minter: &str, session: &str, asked: &Value) -> Reply {
    let path = format!("/v1/sessions/{session}/tokens");
    let asked = asked.to_string();
    ask(router, Method::POST, &path, Some(minter), &asked).await
}

async fn mint(router: &Router, session: &str, scopes: &[&str]) -> String {
    let asked = json!({"ttl_seconds": 600, "scopes": scopes});
    let reply = mint_as(router, OWN, session, &asked).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    reply.json()["token"].as_str().unwrap().to_owned()
}

/// The path and query of a capability for an artifact.
async fn capability(router: &Router, saved: &Saved) -> String {
    let path = format!("{}/capability", saved.path);
    let asked = r#"{"ttl_seconds":600}"#;
    let reply = ask(router, Method::POST, &path, Some(OWN), asked).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let json = reply.json();
    let url = json["url"].as_str().unwrap();
    url[url.find("/a/").unwrap()..].to_owned()
}

fn later(app: &TestApp, seconds: i64) {
    app.clock.advance(SignedDuration::from_secs(seconds));
}

async fn reads(router: &Router, saved: &Saved, token: &str) -> Reply {
    ask(router, Method::GET, &saved.path, Some(token), "").await
}

#[tokio::test]
async fn a_token_reaches_its_own_session_and_no_other_on_any_route() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let own = save(&router, "own", None).await;
    let other = save(&router, "other", None).await;
    let all = ["save", "read", "lease", "gc", "admin"];
    let token = mint(&router, "own", &all).await;
    let mut tried = 0;
    for (template, methods) in route_table() {
        for (method, guard) in methods {
            let Guard::Needs(operation) = guard else {
                continue;
            };
            let path = template
                .replace("{session}", "other")
                .replace("{locator}", other.path.strip_prefix("/a/").unwrap())
                .replace("{txn}", "t")
                .replace("{turn}", "t")
                .replace("{id}", "019ad0c4-7d5e-7c3b-8a4f-0123456789ab");
            if operation == Operation::Mcp {
                // Its tools ask the other routes.
                continue;
            }
            let reply = ask(&router, method.clone(), &path, Some(&token), "{}").await;
            if matches!(operation, Operation::MintToken | Operation::Capability) {
                reply.is_problem(ErrorCode::MintingUnavailable);
            } else if template.contains("{locator}") {
                reply.is_problem(ErrorCode::ArtifactNotFound);
            } else {
                reply.is_problem(ErrorCode::SessionForbidden);
            }
            tried += 1;
        }
    }
    assert!(tried >= 25, "{tried}");
    assert_eq!(reads(&router, &own, &token).await.text(), "content of own");
    let path = "/v1/sessions/own/artifacts?tool=t";
    let saved = ask(&router, Method::POST, path, Some(&token), "from within").await;
    assert_eq!(saved.status, StatusCode::CREATED, "{}", saved.text());
    // What was minted mints nothing, in its own session either.
    let path = "/v1/sessions/own/tokens";
    let asked = r#"{"ttl_seconds":60,"scopes":["read"]}"#;
    let minted = ask(&router, Method::POST, path, Some(&token), asked).await;
    minted.is_problem(ErrorCode::MintingUnavailable);
}

#[tokio::test]
async fn a_fork_reads_what_is_above_it_and_chooses_no_other_parent() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let root = save(&router, "root", None).await;
    save(&router, "middle", Some("root")).await;
    let stranger = save(&router, "stranger", None).await;
    let asked = json!({"ttl_seconds": 600, "scopes": ["read", "save"], "parent": "middle"});
    let reply = mint_as(&router, OWN, "leaf", &asked).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let token = reply.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(
        reads(&router, &root, &token).await.text(),
        "content of root"
    );
    let foreign = reads(&router, &stranger, &token).await;
    foreign.is_problem(ErrorCode::ArtifactNotFound);
    // It lists nothing there, and writes nothing.
    let path = "/v1/sessions/root/artifacts";
    for method in [Method::GET, Method::POST] {
        let refused = ask(&router, method, path, Some(&token), "x").await;
        refused.is_problem(ErrorCode::SessionForbidden);
    }
    let gone = ask(&router, Method::DELETE, &root.path, Some(&token), "").await;
    gone.is_problem(ErrorCode::InsufficientScope);
    // Another parent would open another session to it.
    let free = mint(&router, "free", &["read", "save"]).await;
    for path in [
        "/v1/sessions/free/artifacts?tool=t&parent=stranger",
        "/v1/sessions/free/results?tool=t&call_id=c&parent=stranger",
    ] {
        let refused = ask(&router, Method::POST, path, Some(&free), "x").await;
        refused.is_problem(ErrorCode::ParentNotFound);
    }
    let turn = r#"{"parent":"stranger","results":[{"call_id":"c","text":"x"}]}"#;
    let path = "/v1/sessions/free/turns/1";
    let refused = ask(&router, Method::POST, path, Some(&free), turn).await;
    refused.is_problem(ErrorCode::ParentNotFound);
}

#[tokio::test]
async fn a_token_ends_and_what_is_no_token_of_ours_is_invalid() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let saved = save(&router, "own", None).await;
    let token = mint(&router, "own", &["read"]).await;
    let tampered = {
        let mut bytes = token.clone().into_bytes();
        let place = bytes.len() / 2;
        bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let refused = reads(&router, &saved, &tampered).await;
    refused.is_problem(ErrorCode::Unauthenticated);
    // Another service's key, and a rotation: the new key signs, both are believed, then only the new one.
    let foreign = app.guarded_signed(&tokens(), &[NEXT_KEY]);
    let refused = reads(&foreign, &saved, &token).await;
    refused.is_problem(ErrorCode::Unauthenticated);
    let rotating = app.guarded_signed(&tokens(), &[NEXT_KEY, KEY]);
    let newer = mint(&rotating, "own", &["read"]).await;
    for token in [&token, &newer] {
        assert_eq!(reads(&rotating, &saved, token).await.status, StatusCode::OK);
    }
    assert_eq!(reads(&foreign, &saved, &newer).await.status, StatusCode::OK);
    let refused = reads(&router, &saved, &newer).await;
    refused.is_problem(ErrorCode::Unauthenticated);
    // It ends with the token that made it.
    let without_maker = app.guarded_signed(&tokens()[1..], &[KEY]);
    let refused = reads(&without_maker, &saved, &token).await;
    refused.is_problem(ErrorCode::Unauthenticated);
    // And by itself, a moment after its time, for replicas whose clocks differ.
    let tolerance = i64::try_from(SIGNED_CLOCK_SKEW.as_secs()).unwrap();
    later(&app, 600 + tolerance - 1);
    assert_eq!(reads(&router, &saved, &token).await.status, StatusCode::OK);
    later(&app, 1);
    let expired = reads(&router, &saved, &token).await;
    expired.is_problem(ErrorCode::TokenExpired);
    assert_eq!(
        expired.header("www-authenticate"),
        "Bearer error=\"invalid_token\""
    );
}

#[tokio::test]
async fn nothing_minted_exceeds_its_minter_and_nobody_else_mints() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let read = json!({"ttl_seconds": 60, "scopes": ["read"]});
    let more = json!({"ttl_seconds": 60, "scopes": ["read", "save"]});
    let minted = mint_as(&router, READER, "s", &read).await;
    assert_eq!(minted.status, StatusCode::CREATED);
    let refused = mint_as(&router, READER, "s", &more).await;
    refused.is_problem(ErrorCode::InsufficientScope);
    for wrong in [
        json!({"ttl_seconds": 0, "scopes": ["read"]}),
        json!({"ttl_seconds": 604_801, "scopes": ["read"]}),
        json!({"ttl_seconds": 60, "scopes": []}),
        json!({"ttl_seconds": 60, "scopes": ["write"]}),
        json!({"ttl_seconds": 60}),
        json!({"ttl_seconds": 60, "scopes": ["read"], "tenant": "other"}),
    ] {
        let refused = mint_as(&router, OWN, "s", &wrong).await;
        refused.is_problem(ErrorCode::InvalidBody);
    }
    // A maker that may do less by now: what it made may do less as well.
    let wide = mint(&router, "s", &["read", "save"]).await;
    let narrowed = app.guarded_signed(&[token(OWN, "acme", &[Scope::Read])], &[KEY]);
    let path = "/v1/sessions/s/artifacts?tool=t";
    let refused = ask(&narrowed, Method::POST, path, Some(&wide), "x").await;
    refused.is_problem(ErrorCode::InsufficientScope);
    // Without keys, and without tokens.
    let keyless = app.guarded_signed(&tokens(), &[]);
    let refused = mint_as(&keyless, OWN, "s", &read).await;
    refused.is_problem(ErrorCode::MintingUnavailable);
    let refused = mint_as(&app.router, OWN, "s", &read).await;
    refused.is_problem(ErrorCode::MintingUnavailable);
}

#[tokio::test]
async fn a_capability_reads_its_artifact_until_it_ends_and_does_nothing_else() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let saved = save(&router, "own", None).await;
    let other = save(&router, "own2", None).await;
    let url = capability(&router, &saved).await;
    let text = url.split_once("capability=").unwrap().1;
    let get = async |path: String| ask(&router, Method::GET, &path, None, "").await;
    assert_eq!(get(url.clone()).await.text(), "content of own");
    let below = format!("{}/lines?limit=5&capability={text}", saved.path);
    assert_eq!(get(below).await.status, StatusCode::OK);
    let head = ask(&router, Method::HEAD, &url, None, "").await;
    assert_eq!(head.status, StatusCode::OK);
    // Another artifact, a list, another method, a changed text, and none.
    let elsewhere = format!("{}?capability={text}", other.path);
    get(elsewhere)
        .await
        .is_problem(ErrorCode::CapabilityInvalid);
    let listed = format!("/v1/sessions/own/artifacts?capability={text}");
    get(listed).await.is_problem(ErrorCode::CapabilityInvalid);
    let erased = ask(&router, Method::DELETE, &url, None, "").await;
    erased.is_problem(ErrorCode::InsufficientScope);
    let held = format!("{}/hold?capability={text}", saved.path);
    let held = ask(&router, Method::POST, &held, None, "{}").await;
    held.is_problem(ErrorCode::InsufficientScope);
    let changed = format!("{}?capability=A{}", saved.path, &text[1..]);
    get(changed).await.is_problem(ErrorCode::CapabilityInvalid);
    let empty = format!("{}?capability=", saved.path);
    get(empty).await.is_problem(ErrorCode::CapabilityInvalid);
    let bare = ask(&router, Method::GET, &saved.path, None, "").await;
    bare.is_problem(ErrorCode::Unauthenticated);
    // It is no bearer token, and a token is no capability.
    let refused = reads(&router, &saved, text).await;
    refused.is_problem(ErrorCode::Unauthenticated);
    later(&app, 700);
    get(url).await.is_problem(ErrorCode::CapabilityExpired);
}

/// Neither a token nor a capability stands in anything that is kept or shown.
#[tokio::test]
async fn what_was_minted_stands_in_no_metric_and_no_object() {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded_signed(&tokens(), &[KEY]);
    let saved = save(&router, "own", None).await;
    let token = mint(&router, "own", &["read", "save"]).await;
    let url = capability(&router, &saved).await;
    let secret = url.split_once("capability=").unwrap().1.to_owned();
    ask(&router, Method::GET, &url, None, "").await;
    reads(&router, &saved, &token).await;
    let replacement = format!("{}/replacement?capability={secret}", saved.path);
    let shown = ask(&router, Method::GET, &replacement, None, "").await;
    assert_eq!(shown.status, StatusCode::OK);
    for minted in [&token, &secret] {
        assert!(!shown.text().contains(minted.as_str()));
        assert!(!app.stored_text().await.contains(minted.as_str()));
    }
}
