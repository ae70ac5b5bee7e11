//! The Model Context Protocol over HTTP: one message, one answer, in the caller's name.

use axum::Router;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use spillbox::auth::Scope;
use spillbox::error::ErrorCode;
use spillbox::limits::MAX_MCP_REQUEST_BYTES;

use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to, token};

const AGENT: &str = "sbx_agent-0123456789abcdef";
const READER: &str = "sbx_reader-0123456789abcdef";
const FOREIGN: &str = "sbx_foreign-0123456789abcdef";

async fn guarded() -> (TestApp, Router) {
    let app = TestApp::new(Backend::Memory).await;
    let router = app.guarded(&[
        token(AGENT, "acme", &[Scope::Save, Scope::Read]),
        token(READER, "acme", &[Scope::Read]),
        token(FOREIGN, "other", &[Scope::Save, Scope::Read]),
    ]);
    (app, router)
}

async fn post(router: &Router, who: &str, message: &Value) -> Reply {
    let authorization = format!("Bearer {who}");
    let headers = [("authorization", authorization.as_str())];
    let body = message.to_string().into();
    send_to(router, request(Method::POST, "/mcp", &headers, body)).await
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn call(router: &Router, who: &str, tool: &str, arguments: Value) -> Value {
    let call = message("tools/call", json!({"name": tool, "arguments": arguments}));
    let reply = post(router, who, &call).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()["result"].clone()
}

async fn saved(router: &Router) -> Saved {
    let authorization = format!("Bearer {AGENT}");
    let headers = [("authorization", authorization.as_str())];
    let path = "/v1/sessions/s/artifacts?tool=t";
    let body = "one\ntwo\n".into();
    let reply = send_to(router, request(Method::POST, path, &headers, body)).await;
    Saved::of(&reply)
}

fn first_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_tool_does_what_its_caller_could_do_and_no_more() {
    let (_app, router) = guarded().await;
    let stored = saved(&router).await;
    let locator = json!({"locator": stored.receipt["locator"]});

    let page = call(&router, READER, "artifact_read", locator.clone()).await;
    assert_eq!(first_text(&page), "one\ntwo\n");

    let refused = call(&router, READER, "artifact_save", json!({"content": "x"})).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(
        refused["structuredContent"]["code"],
        ErrorCode::InsufficientScope.as_str()
    );

    let foreign = call(&router, FOREIGN, "artifact_read", locator).await;
    assert_eq!(
        foreign["structuredContent"]["code"],
        ErrorCode::ArtifactNotFound.as_str()
    );

    let nobody = post(
        &router,
        "sbx_unknown-0123456789abcdef",
        &message("ping", json!({})),
    )
    .await;
    nobody.is_problem(ErrorCode::Unauthenticated);
}

#[tokio::test]
async fn only_the_artifact_is_taken_from_a_locator() {
    let (_app, router) = guarded().await;
    let stored = saved(&router).await;
    let id = stored.path.strip_prefix("/a/").unwrap();
    for locator in [
        format!("http://elsewhere.example:1/a/{id}"),
        format!("spillbox:{id}"),
        id.to_owned(),
    ] {
        let page = call(
            &router,
            READER,
            "artifact_read",
            json!({"locator": locator}),
        )
        .await;
        assert_eq!(first_text(&page), "one\ntwo\n", "{locator}");
    }
}

#[tokio::test]
async fn a_message_that_is_none_is_refused_and_nothing_is_left() {
    let (_app, router) = guarded().await;
    for bad in [
        json!([]),
        json!({"id": 1}),
        json!("text"),
        json!({"jsonrpc": "1.0"}),
    ] {
        let reply = post(&router, AGENT, &bad).await;
        assert!(reply.status.is_client_error(), "{bad}: {}", reply.status);
    }
    let unknown = post(&router, AGENT, &message("no/such", json!({}))).await;
    assert_eq!(
        unknown.json()["error"]["code"],
        -32601,
        "{}",
        unknown.text()
    );
    let no_tool = message(
        "tools/call",
        json!({"name": "artifact_rm", "arguments": {}}),
    );
    let no_tool = post(&router, AGENT, &no_tool).await;
    assert!(
        no_tool.json()["error"]["code"].is_number(),
        "{}",
        no_tool.text()
    );

    let long = message("ping", json!({"x": "x".repeat(MAX_MCP_REQUEST_BYTES)}));
    post(&router, AGENT, &long)
        .await
        .is_problem(ErrorCode::BodyTooLarge);
    let page = call(&router, AGENT, "artifact_list", json!({})).await;
    assert_eq!(first_text(&page), "");
}

#[tokio::test]
async fn a_reply_has_its_bound_whatever_stands_in_the_body() {
    let (app, router) = guarded().await;
    let endless = "x".repeat(300_000);
    let authorization = format!("Bearer {AGENT}");
    let headers = [("authorization", authorization.as_str())];
    let path = "/v1/sessions/s/artifacts?tool=t";
    let stored = request(Method::POST, path, &headers, endless.into());
    let stored = Saved::of(&send_to(&router, stored).await);
    let locator = &stored.receipt["locator"];
    for (tool, arguments) in [
        ("artifact_read", json!({"locator": locator})),
        ("artifact_grep", json!({"locator": locator, "pattern": "x"})),
        ("artifact_stat", json!({"locator": locator})),
        ("artifact_outline", json!({"locator": locator})),
    ] {
        let result = call(&router, AGENT, tool, arguments).await;
        let blocks = result["content"].as_array().unwrap();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let bytes: usize = texts.map(str::len).sum();
        assert!(bytes <= 24_000, "{tool}: {bytes}");
    }
    let small = json!({"locator": locator, "max_bytes": 1_000});
    let page = call(&router, AGENT, "artifact_read", small).await;
    assert!(first_text(&page).len() <= 1_000);
    let next = page["structuredContent"]["next_byte"].as_u64().unwrap();
    assert_eq!(next, first_text(&page).len() as u64);
    drop(app);
}
