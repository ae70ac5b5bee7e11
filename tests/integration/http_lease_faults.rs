//! Every request of prepare, commit and release over HTTP under faults: a receipt that is in the journal, or
//! an error that says what is known; store trouble is never an empty list.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use spillbox::error::ErrorCode;
use tower::ServiceExt;

use crate::http_leases::{AsOwner, LEASES, claim, post};
use crate::support::app::{Backend, Reply, Saved, TestApp, send_to};
use crate::support::s3_server::{Action, Fault, Op};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Commit,
    Release,
}

impl Step {
    const ALL: [Self; 3] = [Self::Prepare, Self::Commit, Self::Release];

    fn request(self, saved: &Saved) -> (String, Value) {
        match self {
            Self::Prepare => (LEASES.to_owned(), claim("t", saved)),
            Self::Commit => (format!("{LEASES}/t/commit"), json!({})),
            Self::Release => (format!("{LEASES}/t/release"), json!({})),
        }
    }

    const fn state(self) -> &'static str {
        match self {
            Self::Prepare => "prepared",
            Self::Commit => "committed",
            Self::Release => "released",
        }
    }

    /// A service whose journal stands right before the step, and a fresh replica that will take it.
    async fn stage(self, backend: Backend) -> (TestApp, Saved, axum::Router) {
        let app = TestApp::new(backend).await;
        let saved = app.put("", "x").await;
        for step in Self::ALL.into_iter().take_while(|step| *step != self) {
            let (path, document) = step.request(&saved);
            let reply = app.post(&path, document).await;
            assert!(reply.status.is_success(), "{}", reply.text());
        }
        let replica = app.replica("default").await;
        (app, saved, replica)
    }
}

fn refuse(status: u16, code: &'static str) -> Action {
    Action::Refuse { status, code }
}

fn actions(op: Op) -> Vec<Action> {
    let mut actions = vec![
        refuse(403, "AccessDenied"),
        refuse(500, "InternalError"),
        refuse(503, "SlowDown"),
        Action::LoseRequest,
        Action::LoseReply,
        Action::ApplyTwice,
        Action::WebPage { status: 502 },
        Action::ApplyThenRefuse {
            status: 500,
            code: "InternalError",
        },
    ];
    if op == Op::Put {
        actions.push(refuse(409, "ConditionalRequestConflict"));
        actions.push(Action::ApplyLate);
    }
    actions
}

/// The requests of a step, by kind and class, each with how often it is sent.
async fn requests_of(step: Step, backend: Backend) -> Vec<(Op, String, usize)> {
    let (app, saved, replica) = step.stage(backend).await;
    let log = app.s3.as_ref().unwrap().log();
    log.clear();
    let (path, document) = step.request(&saved);
    let reply = send_to(&replica, post(&path, &document)).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    let mut found: Vec<(Op, String, usize)> = Vec::new();
    for entry in log.entries() {
        let (op, class) = (entry.seen.op, entry.seen.class.clone());
        match found
            .iter_mut()
            .find(|known| known.0 == op && known.1 == class)
        {
            Some(known) => known.2 += 1,
            None => found.push((op, class, 1)),
        }
    }
    found
}

/// What is known after the answer, and what the same request gives without faults.
async fn check(app: &TestApp, saved: &Saved, step: Step, reply: &Reply, place: &str) {
    let server = app.s3.as_ref().unwrap();
    server.clear_faults();
    server.apply_late().await;
    let (path, document) = step.request(saved);
    let fresh = app.replica("default").await;
    if reply.status == StatusCode::ACCEPTED {
        let unknown = reply.is_problem(ErrorCode::OutcomeUnknown);
        assert_eq!(unknown["transaction_id"], "t", "{place}");
        let resolve = json!({"seq": unknown["seq"], "sha256": unknown["sha256"]});
        let resolve = post(&format!("{LEASES}/t/resolve"), &resolve);
        let resolved = send_to(&fresh, resolve).await.json();
        let state = resolved["lease"]["state"].as_str();
        assert_eq!(
            resolved["landed"] == true,
            state == Some(step.state()),
            "{place}: {resolved:#}"
        );
    } else if !reply.status.is_success() {
        let problem = reply.json();
        assert_eq!(
            problem["no_side_effects"],
            is_settled(&problem),
            "{place}: {problem:#}"
        );
    }
    let again = send_to(&fresh, post(&path, &document)).await;
    assert!(again.status.is_success(), "{place}: {}", again.text());
    assert_eq!(again.json()["state"], step.state(), "{place}");
    if reply.status.is_success() && reply.status != StatusCode::ACCEPTED {
        assert_eq!(again.json()["receipt"], reply.json()["receipt"], "{place}");
    }
    let verified = send_to(&fresh, post("/v1/sessions/s/journal/verify", &json!({}))).await;
    assert_eq!(
        verified.json()["status"],
        "ok",
        "{place}: {}",
        verified.text()
    );
    let listed = send_to(
        &fresh,
        crate::support::app::request(
            axum::http::Method::GET,
            LEASES,
            &[],
            axum::body::Body::empty(),
        ),
    );
    let listed = listed.await.json();
    assert_eq!(
        listed["leases"].as_array().unwrap().len(),
        1,
        "{place}: {listed:#}"
    );
}

/// The codes that the contract marks as certain to have left nothing.
fn is_settled(problem: &Value) -> bool {
    let codes = ErrorCode::ALL.iter();
    let code = codes.copied().find(|code| problem["code"] == code.as_str());
    code.unwrap().has_no_side_effects()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_a_step_may_fail() {
    let mut tried = BTreeSet::new();
    for backend in [Backend::S3, Backend::Minio] {
        for step in Step::ALL {
            for (op, class, times) in requests_of(step, backend).await {
                for action in actions(op) {
                    for nth in 0..times {
                        let (app, saved, replica) = step.stage(backend).await;
                        let fault = Fault::on(op, action.clone()).of_class(&class).after(nth);
                        app.s3.as_ref().unwrap().fault(fault);
                        let (path, document) = step.request(&saved);
                        let reply = send_to(&replica, post(&path, &document)).await;
                        let place =
                            format!("{backend:?} {step:?} {op:?} {class} #{nth} {action:?}");
                        check(&app, &saved, step, &reply, &place).await;
                        tried.insert((format!("{step:?}"), format!("{op:?} {class}")));
                    }
                }
            }
        }
    }
    for step in Step::ALL {
        let place = (format!("{step:?}"), "Put j".to_owned());
        assert!(tried.contains(&place), "{tried:?}");
    }
}

/// The store takes the record and never says so, or never hears of it: 202, and a resolve settles it.
#[tokio::test]
async fn an_outcome_that_stays_unknown_is_202_and_can_be_made_final() {
    for (action, lands) in [(Action::LoseReply, true), (Action::LoseRequest, false)] {
        let (app, saved, replica) = Step::Prepare.stage(Backend::S3).await;
        let server = app.s3.as_ref().unwrap();
        server.fault(Fault::on(Op::Put, action).of_class("j").always());
        // What landed is not to be found either.
        server.fault(
            Fault::on(Op::Get, Action::LoseRequest)
                .of_class("j")
                .after(1)
                .always(),
        );
        let reply = send_to(&replica, post(LEASES, &claim("t", &saved))).await;
        assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text());
        let unknown = reply.is_problem(ErrorCode::OutcomeUnknown);
        assert_eq!(unknown["no_side_effects"], false);
        server.clear_faults();
        let resolve = json!({"seq": unknown["seq"], "sha256": unknown["sha256"]});
        let resolved = app.change("t", "resolve", resolve.clone()).await.json();
        assert_eq!(resolved["landed"], lands, "{resolved:#}");
        assert_eq!(resolved["lease"].is_null(), !lands);
        // Final: the slot is taken, so that record can never land.
        let again = app.change("t", "resolve", resolve).await.json();
        assert_eq!(again["landed"], lands);
        // Beyond the end there is nothing to resolve.
        let beyond = json!({"seq": 99, "sha256": unknown["sha256"]});
        let beyond = app.change("t", "resolve", beyond).await;
        beyond.is_problem(ErrorCode::InvalidParameter);
    }
}

/// No trouble of the store is ever read as "there are no leases".
#[tokio::test]
async fn a_store_in_trouble_answers_no_list_at_all() {
    let reads = [
        LEASES.to_owned(),
        format!("{LEASES}?state=committed"),
        format!("{LEASES}/t"),
        "/v1/sessions/s/journal".to_owned(),
        "/v1/sessions/s/journal?limit=10".to_owned(),
    ];
    for action in [
        refuse(403, "AccessDenied"),
        refuse(500, "InternalError"),
        refuse(503, "SlowDown"),
        Action::LoseRequest,
        Action::WebPage { status: 200 },
        Action::WebPage { status: 404 },
        Action::WebPage { status: 502 },
    ] {
        for (op, class) in [(Op::List, "k"), (Op::List, "j"), (Op::Get, "j")] {
            let (app, _, replica) = Step::Release.stage(Backend::S3).await;
            let server = app.s3.as_ref().unwrap();
            for path in &reads {
                server.fault(Fault::on(op, action.clone()).of_class(class).always());
                let ask = crate::support::app::request(
                    axum::http::Method::GET,
                    path,
                    &[],
                    axum::body::Body::empty(),
                );
                let reply = send_to(&replica, ask).await;
                server.clear_faults();
                let place = format!("{path} {op:?} {class} {action:?}: {}", reply.text());
                if reply.status.is_success() {
                    // What was answered all the same rests on something else that was read.
                    let json = reply.json();
                    let knows = json["leases"]
                        .as_array()
                        .is_some_and(|leases| leases.len() == 1)
                        || json["state"] == "committed"
                        || json["head"]["seq"] == 1
                        || json["status"] == "corrupt";
                    assert!(knows, "{place}");
                } else {
                    assert!(reply.status.is_server_error(), "{place}");
                }
            }
            let verify = post("/v1/sessions/s/journal/verify", &json!({}));
            server.fault(Fault::on(op, action.clone()).of_class(class).always());
            let reply = send_to(&replica, verify).await;
            server.clear_faults();
            let says_ok = reply.status.is_success() && reply.json()["status"] == "ok";
            let read_all = says_ok && reply.json()["records"] == 2;
            assert!(
                !says_ok || read_all,
                "{op:?} {class} {action:?}: {}",
                reply.text()
            );
        }
    }
}

/// A client that hangs up takes its answer away, not its lease.
#[tokio::test]
async fn an_append_outlives_the_client_that_asked_for_it() {
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("", "x").await;
    // The view is warm, so that the next request to the store is the record.
    app.get(LEASES).await;
    let server = app.s3.as_ref().unwrap();
    server.fault(Fault::on(Op::Put, Action::LoseReply).of_class("j").times(2));
    let asked = app
        .router
        .clone()
        .oneshot(post(LEASES, &claim("t", &saved)));
    let dropped = tokio::time::timeout(Duration::from_millis(40), asked).await;
    drop(dropped);
    app.state.drain().await;
    assert_eq!(app.keys_of('j').await.len(), 1, "the record landed");
    let again = app.prepare("t", &saved).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.text());
    assert_eq!(again.json()["receipt"]["seq"], 0);
}
