use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Json, Request};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use jiff::Timestamp;
use tower::ServiceExt;

use super::*;
use crate::clock::ManualClock;
use crate::http::problem::PROBLEM_JSON;
use crate::http::request_id::X_REQUEST_ID;
use crate::ids::SeededIds;

fn app() -> Router {
    let clock = Arc::new(ManualClock::new(
        Timestamp::from_second(1_800_000_000).unwrap(),
    ));
    let routes = Router::new()
        .route("/ok", get(|| async { "fine" }))
        .route(
            "/busy",
            get(|| async { Problem::new(ErrorCode::Saturated, "64 uploads are running") }),
        )
        .route("/json", post(|Json(()): Json<()>| async { "never" }))
        .route("/panic", get(panics));
    finish(
        with_fallbacks(routes),
        RequestIds::new(clock, Arc::new(SeededIds::new(1))),
    )
}

async fn panics() -> &'static str {
    panic!("secret content of a request")
}

async fn send(method: &str, path: &str, id: Option<&str>) -> (Response, Vec<u8>) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(id) = id {
        request = request.header(X_REQUEST_ID, id);
    }
    let request = request.body(Body::empty()).unwrap();
    let (parts, body) = app().oneshot(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes().to_vec();
    (Response::from_parts(parts, Body::empty()), bytes)
}

async fn problem(method: &str, path: &str) -> (Response, serde_json::Value) {
    let (response, bytes) = send(method, path, Some("trace-7")).await;
    assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON, "{path}");
    assert_eq!(response.headers()[X_REQUEST_ID], "trace-7");
    let members: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(members["request_id"], "trace-7");
    assert_eq!(members["status"], response.status().as_u16());
    (response, members)
}

#[tokio::test]
async fn an_unknown_path_is_a_problem() {
    let (response, members) = problem("GET", "/nope?token=hidden").await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(members["code"], "route_not_found");
    assert!(!members.to_string().contains("hidden"), "{members}");
}

#[tokio::test]
async fn a_wrong_method_is_a_problem_with_the_allowed_ones() {
    let (response, members) = problem("DELETE", "/ok").await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(members["code"], "method_not_allowed");
    assert_eq!(response.headers()[ALLOW], "GET,HEAD");
}

#[tokio::test]
async fn a_panic_is_an_internal_problem_that_tells_nothing() {
    let (response, members) = problem("GET", "/panic").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(members["code"], "internal");
    assert!(!members.to_string().contains("secret"), "{members}");
}

#[tokio::test]
async fn an_extractors_rejection_is_a_problem() {
    let (response, members) = problem("POST", "/json").await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(members["code"], "invalid_header");
}

#[tokio::test]
async fn a_handlers_problem_keeps_its_detail_and_says_when_to_retry() {
    let (response, members) = problem("GET", "/busy").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(members["detail"], "64 uploads are running");
    assert_eq!(response.headers()[RETRY_AFTER], "2");
}

#[tokio::test]
async fn the_problem_of_a_head_has_the_length_but_no_body() {
    let (get, body) = send("GET", "/busy", Some("t")).await;
    let (head, nothing) = send("HEAD", "/busy", Some("t")).await;
    assert_eq!(head.status(), get.status());
    assert_eq!(head.headers(), get.headers());
    assert_eq!(get.headers()[CONTENT_LENGTH], body.len().to_string());
    assert!(nothing.is_empty());
}

#[tokio::test]
async fn a_request_without_a_usable_id_gets_a_uuid() {
    for id in [None, Some(""), Some("bad id"), Some("x\"y")] {
        let (response, body) = send("GET", "/ok", id).await;
        assert_eq!(body, b"fine");
        let id = response.headers()[X_REQUEST_ID]
            .to_str()
            .unwrap()
            .to_owned();
        let uuid: uuid::Uuid = id.parse().unwrap();
        assert_eq!(uuid.get_version_num(), 7);
    }
}
