//! Erasing over HTTP and on the command line, and the collector as an operator runs it.

use std::time::{Duration, SystemTime};

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use spillbox::clock::{Clock as _, SystemClock};

use crate::support::app::{Backend, TestApp};
use crate::support::program::{Place, outcome, text};

#[tokio::test]
async fn an_erased_artifact_is_gone_for_every_reader() {
    for backend in Backend::ALL {
        let app = TestApp::new(backend).await;
        let saved = app.put("tool=bash&call_id=c1", "to be erased\n").await;
        let path = saved.path.clone();
        let reply = app.ask(Method::DELETE, &path, &[]).await;
        assert_eq!(reply.status, StatusCode::OK, "{backend:?} {}", reply.text());
        assert_eq!(reply.json()["reason"], "erased");
        for below in ["", "/lines", "/stat", "/replacement", "/reference"] {
            let reply = app.get(&format!("{path}{below}")).await;
            assert_eq!(reply.status, StatusCode::GONE, "{backend:?} {below}");
        }
        let again = app.ask(Method::DELETE, &path, &[]).await;
        assert_eq!(again.status, StatusCode::OK, "{backend:?}");
        let saved_again = app
            .save("s", "tool=bash&call_id=c1", &[], "to be erased\n")
            .await;
        assert_eq!(saved_again.status, StatusCode::GONE, "{backend:?}");
        let forced = app
            .ask(Method::DELETE, &format!("{path}?force=true"), &[])
            .await;
        assert_eq!(forced.status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn what_is_unknown_is_404_and_what_is_held_is_409() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=bash", "held\n").await;
    let unknown = "/a/00000000000000000000000001.00000000000000000000000002";
    let reply = app.ask(Method::DELETE, unknown, &[]).await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    let hold = json!({"name": "case-7", "reason": "needed"}).to_string();
    let request = axum::http::Request::post(format!("{}/hold", saved.path))
        .header("content-type", "application/json")
        .body(axum::body::Body::from(hold))
        .unwrap();
    assert_eq!(app.send(request).await.status, StatusCode::CREATED);
    let reply = app.ask(Method::DELETE, &saved.path, &[]).await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert_eq!(reply.json()["code"], "artifact_leased");
    assert_eq!(app.get(&saved.path).await.status, StatusCode::OK);
    let lift = format!("{}/hold?name=case-7", saved.path);
    assert_eq!(
        app.ask(Method::DELETE, &lift, &[]).await.status,
        StatusCode::OK
    );
    let reply = app.ask(Method::DELETE, &saved.path, &[]).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
}

/// A time as files have it.
fn file_time(time: jiff::Timestamp) -> SystemTime {
    let seconds = u64::try_from(time.as_second()).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Makes every stored file so many hours old: a directory's times are the store's clock.
pub(crate) fn age(place: &Place, hours: u64) {
    let then = file_time(SystemClock.now()) - Duration::from_secs(hours * 3600);
    let mut directories = vec![place.file("store")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let file = std::fs::File::options().append(true).open(&path).unwrap();
                file.set_modified(then).unwrap();
            }
        }
    }
}

fn run(place: &Place, arguments: &[&str]) -> (i32, Value) {
    let store = place.store_url();
    let mut command = place.command(arguments);
    command.args(["--store", &store, "--json"]);
    command
        .env("SPILLBOX_GC__MIN_PLAN_AGE", "0s")
        .env("SPILLBOX_GC__SETTLE", "0s");
    let (exit, stdout, stderr) = outcome(command);
    let document = serde_json::from_slice(&stdout);
    (exit, document.unwrap_or(Value::String(stderr)))
}

#[test]
fn an_operator_plans_applies_and_reads_the_report() {
    let place = Place::store();
    let old = place.put("old.log", b"old and unreferenced\n");
    age(&place, 30);
    let young = place.put("young.log", b"young\n");
    let (exit, plan) = run(&place, &["gc", "plan"]);
    assert_eq!(exit, 3, "{plan}");
    assert_eq!(plan["counts"]["planned_delete"], 1);
    assert_eq!(plan["counts"]["retained_recent"], 1);
    let id = plan["plan_id"].as_str().unwrap();
    let sha256 = plan["sha256"].as_str().unwrap();
    // A plan deletes nothing, and is not applied under another digest.
    assert_eq!(
        place.ok(&["cat", old["locator"].as_str().unwrap()]).len(),
        21
    );
    let other = "0".repeat(64);
    let (exit, said) = run(&place, &["gc", "apply", id, "--sha256", &other]);
    assert_eq!(exit, 4, "{said}");
    let (exit, report) = run(&place, &["gc", "apply", id, "--sha256", sha256]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(report["counts"]["deleted"], 1);
    let (exit, again) = run(&place, &["gc", "report", id]);
    assert_eq!((exit, &again["artifacts"]), (0, &report["artifacts"]));
    let (exit, _, stderr) = outcome(place.command(&["cat", old["locator"].as_str().unwrap()]));
    assert_eq!(exit, 1);
    assert!(stderr.contains("deleted"), "{stderr}");
    assert_eq!(
        place.ok(&["cat", young["locator"].as_str().unwrap()]),
        b"young\n"
    );
}

#[test]
fn a_scheduled_run_applies_what_the_run_before_has_planned() {
    let place = Place::store();
    let old = place.put("old.log", b"old\n");
    age(&place, 30);
    let (exit, first) = run(&place, &["gc", "run"]);
    assert_eq!(exit, 3, "{first}");
    assert!(first["report"].is_null());
    let (exit, second) = run(&place, &["gc", "run"]);
    assert_eq!(exit, 0, "{second}");
    assert_eq!(second["report"]["counts"]["deleted"], 1);
    let (exit, third) = run(&place, &["gc", "run"]);
    assert_eq!(
        (exit, &third["plan"]["counts"]["planned_delete"]),
        (0, &json!(0))
    );
    let (exit, ..) = outcome(place.command(&["cat", old["locator"].as_str().unwrap()]));
    assert_eq!(exit, 1);
}

#[test]
fn what_would_break_a_promise_is_refused_with_the_key_named() {
    let place = Place::store();
    place.put("a.log", b"a\n");
    let (exit, said) = run(&place, &["gc", "plan", "--orphan-ttl", "23h"]);
    assert_eq!(exit, 4, "{said}");
    assert!(said.as_str().unwrap().contains("orphan_ttl"), "{said}");
    for bad in [
        &["gc", "plan", "--max-share", "1.5"][..],
        &["gc", "plan", "--max-deletions", "-1"],
        &["gc", "plan", "--orphan-ttl", "0s"],
        &["gc", "apply", "00000000-0000-7000-8000-000000000000"],
    ] {
        let (exit, said) = run(&place, bad);
        assert_eq!(exit, 2, "{bad:?} {said}");
    }
}

#[test]
fn rm_erases_on_a_store_and_through_a_service() {
    for place in [Place::store(), Place::service(), Place::bucket()] {
        let receipt = place.put("a.log", b"erase me\n");
        let locator = receipt["locator"].as_str().unwrap();
        let said = text(place.ok(&["rm", locator, "--json"]));
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["reason"], "erased");
        let (exit, _, stderr) = outcome(place.command(&["cat", locator]));
        assert_eq!(exit, 1);
        assert!(stderr.contains("erased"), "{stderr}");
    }
}
