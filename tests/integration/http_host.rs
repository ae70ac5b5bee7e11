//! A service without tokens answers under its own names only, on every route.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use spillbox::artifact::hint::RetrievalMeans;
use spillbox::auth::Authenticator;
use spillbox::error::ErrorCode;
use spillbox::http::app::{AppState, CallerRules, route_table, router};
use spillbox::http::host_policy::HostPolicy;
use spillbox::http::request_id::RequestIds;
use spillbox::ids::{SeededIds, Tenant};

use crate::support::app::{Backend, PUBLIC_URL, Reply, TestApp, request, send_to, shared};

fn on_loopback(app: &TestApp) -> Router {
    let anonymous = Authenticator::anonymous(Tenant::default());
    let rules = CallerRules {
        host_policy: Some(HostPolicy::new(PUBLIC_URL)),
        ..CallerRules::new(anonymous, vec![RetrievalMeans::Http])
    };
    let state = AppState::with_rules(rules);
    state.open(app.state.library().unwrap().clone());
    let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(6)));
    router(state, ids)
}

async fn ask(router: &Router, method: Method, path: &str, headers: &[(&str, &str)]) -> Reply {
    send_to(router, request(method, path, headers, Body::empty())).await
}

#[tokio::test]
async fn every_route_refuses_a_foreign_name_before_anything_is_done() {
    let app = TestApp::new(Backend::Memory).await;
    let router = on_loopback(&app);
    let locator = format!("{:026}.{:026}", 1, 2);
    for (template, methods) in route_table() {
        let path = template
            .replace("{session}", "s")
            .replace("{locator}", &locator);
        for (method, _) in methods {
            for headers in [
                &[("Host", "evil.example:8787")][..],
                &[("Host", "localhost"), ("Origin", "http://evil.example")],
                &[],
            ] {
                let reply = ask(&router, method.clone(), &path, headers).await;
                reply.is_problem(ErrorCode::HostNotAllowed);
            }
            let path = format!("http://evil.example{path}");
            let reply = ask(&router, method, &path, &[("Host", "localhost")]).await;
            reply.is_problem(ErrorCode::HostNotAllowed);
        }
    }
    app.assert_untouched("foreign names").await;
    let nowhere = ask(&router, Method::GET, "/nope", &[("Host", "evil.example")]).await;
    assert_eq!(nowhere.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn its_own_names_are_served_as_http1_and_http2_send_them() {
    let app = TestApp::new(Backend::Memory).await;
    let router = on_loopback(&app);
    let list = "/v1/sessions/s/artifacts";
    for name in ["localhost:1", "127.0.0.1", "[::1]:8787", "spill.test"] {
        let by_header = ask(&router, Method::GET, list, &[("Host", name)]).await;
        assert_eq!(by_header.status, StatusCode::OK, "{name}");
        let target = format!("http://{name}{list}");
        let by_target = ask(&router, Method::GET, &target, &[]).await;
        assert_eq!(by_target.status, StatusCode::OK, "{name}");
    }
}

#[tokio::test]
async fn commands_straight_on_a_store_send_no_host_and_need_none() {
    let app = TestApp::new(Backend::Memory).await;
    let reply = app.get("/v1/sessions/s/artifacts").await;
    assert_eq!(reply.status, StatusCode::OK);
}
