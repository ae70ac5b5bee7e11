//! `/livez` and `/readyz`: what they say while a store fails and comes back.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use spillbox::auth::Authenticator;
use spillbox::error::ErrorCode;
use spillbox::http::app::{AppState, router};
use spillbox::http::readiness::NotReady;
use spillbox::http::request_id::RequestIds;
use spillbox::ids::{SeededIds, Tenant};
use spillbox::limits::{READY_FAILURES, READY_SUCCESSES};
use spillbox::store_watch::watch;

use crate::support::app::{Backend, TestApp, request, send_to, shared};
use crate::support::s3_server::{Action, Fault, Op};

const INTERVAL: Duration = Duration::from_secs(10);

async fn reason(app: &TestApp) -> Option<String> {
    let reply = app.get("/readyz").await;
    assert_eq!(app.get("/livez").await.status, StatusCode::OK);
    if reply.status == StatusCode::OK {
        assert_eq!(reply.text(), "ready\n");
        return None;
    }
    let problem = reply.is_problem(ErrorCode::StoreUnavailable);
    assert!(!reply.header("retry-after").is_empty());
    // Closed words: nothing of what the store said, or is called.
    for internal in [
        "format.json",
        "bucket",
        "HEAD",
        "InternalError",
        "AccessDenied",
    ] {
        assert!(
            !problem["detail"].as_str().unwrap().contains(internal),
            "{problem}"
        );
    }
    Some(problem["reason"].as_str().unwrap().to_owned())
}

/// Lets the watch look so many times.
async fn look(times: u32) {
    tokio::time::sleep(INTERVAL * times).await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_turns_readiness_off_and_a_good_one_on_again() {
    let app = TestApp::new(Backend::S3).await;
    let library = app.state.library().unwrap().clone();
    let watching = watch(&library, app.state.store_health(), INTERVAL);
    let server = app.s3.as_ref().unwrap();
    let broken = || {
        let refuse = Action::Refuse {
            status: 500,
            code: "InternalError",
        };
        Fault::on_any(refuse).always()
    };
    let story = async {
        assert_eq!(reason(&app).await, None);
        // Between two looks, so that one that takes its whole time is over.
        look(1).await;
        tokio::time::sleep(INTERVAL / 2 + Duration::from_secs(1)).await;
        assert_eq!(reason(&app).await, None);
        server.fault(broken());
        look(READY_FAILURES - 1).await;
        assert_eq!(reason(&app).await, None, "not after the first failures");
        look(1).await;
        assert_eq!(reason(&app).await.as_deref(), Some("store_unreachable"));
        // Being not ready is advice to balancers; what arrives is answered all the same.
        server.clear_faults();
        assert_eq!(
            app.save("s", "", &[], "x").await.status,
            StatusCode::CREATED
        );
        assert_eq!(reason(&app).await.as_deref(), Some("store_unreachable"));
        look(READY_SUCCESSES).await;
        assert_eq!(reason(&app).await, None);

        server.fault(
            Fault::on_any(Action::Refuse {
                status: 403,
                code: "AccessDenied",
            })
            .always(),
        );
        look(READY_FAILURES).await;
        assert_eq!(reason(&app).await.as_deref(), Some("store_refuses"));
        server.clear_faults();
        // A store that hangs is no better than one that fails.
        server.fault(Fault::on_any(Action::Hang).always());
        look(READY_FAILURES).await;
        assert_eq!(reason(&app).await.as_deref(), Some("store_unreachable"));
        server.clear_faults();
        look(READY_SUCCESSES).await;
        assert_eq!(reason(&app).await, None);
        app.state.start_draining();
        assert_eq!(reason(&app).await.as_deref(), Some("draining"));
    };
    tokio::select! {
        () = story => {}
        never = watching => match never {},
    }
}

#[tokio::test]
async fn health_asks_nobody() {
    let app = TestApp::new(Backend::S3).await;
    let server = app.s3.as_ref().unwrap();
    server.log().clear();
    server.fault(Fault::on(Op::Other, Action::Hang).always());
    for path in ["/livez", "/healthz", "/readyz"] {
        assert_eq!(app.get(path).await.status, StatusCode::OK, "{path}");
    }
    assert!(server.log().counts().is_empty());
}

#[tokio::test]
async fn without_a_store_it_lives_and_is_not_ready() {
    let app = TestApp::new(Backend::Memory).await;
    let state = AppState::starting(Authenticator::anonymous(Tenant::default()), Vec::new());
    let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(7)));
    let router = router(state, ids);
    let ask = async |path: &str| {
        let sent = request(
            axum::http::Method::GET,
            path,
            &[],
            axum::body::Body::empty(),
        );
        send_to(&router, sent).await
    };
    assert_eq!(ask("/livez").await.status, StatusCode::OK);
    let reply = ask("/readyz").await;
    let problem = reply.is_problem(ErrorCode::StoreUnavailable);
    assert_eq!(problem["reason"], "starting");
}

#[test]
fn the_contract_names_every_reason() {
    let contract = include_str!("../../openapi.yaml");
    for reason in NotReady::ALL {
        assert!(contract.contains(&format!("`{}`", reason.as_str())));
    }
}
