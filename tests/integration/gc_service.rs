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
        // Where the journal is sound it changes nothing.
        assert_eq!(forced.status, StatusCode::OK);
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

#[test]
fn a_scheduled_run_says_what_it_finished_and_expired() {
    let place = Place::store();
    place.put("a.log", b"a\n");
    run(&place, &["gc", "run"]);
    age(&place, 24 * 20);
    let (exit, ran) = run(&place, &["gc", "run"]);
    assert_eq!(exit, 3, "{ran}");
    assert_eq!(ran["finished"]["is_complete"], true);
    assert_eq!(ran["expired"]["plans"]["count"], 1, "{ran}");
    let (_, dry) = run(&place, &["gc", "run", "--dry-run"]);
    assert!(dry["finished"].is_null() && dry["report"].is_null());
}

#[test]
fn an_inventory_counts_by_class_and_an_explanation_names_examples() {
    let place = Place::store();
    place.put("a.log", b"five\n");
    let (exit, plan) = run(&place, &["gc", "plan", "--inventory", "--explain"]);
    assert_eq!(exit, 0, "{plan}");
    let classes = plan["inventory"]["classes"].as_array().unwrap();
    let body = classes.iter().find(|row| row["class"] == "body").unwrap();
    assert_eq!((&body["count"], &body["bytes"]), (&json!(1), &json!(5)));
    assert_eq!(body["retention"], "collected");
    assert_eq!(plan["expired"]["failed"], 0);
    assert_eq!(plan["examples"][0]["reason"], "orphan_ttl_not_reached");
    assert_eq!(plan["oldest"], json!([]));
    let shown = text(place.ok(&["gc", "plan", "--inventory", "--explain"]));
    assert!(
        shown.contains("journal ") && shown.contains("with the session"),
        "{shown}"
    );
    assert!(shown.contains("example default"), "{shown}");
}

#[test]
fn why_says_from_when_on_an_artifact_may_go_and_what_keeps_it() {
    let place = Place::store();
    let receipt = place.put("a.log", b"a\n");
    let locator = receipt["locator"].as_str().unwrap();
    let (exit, young) = run(&place, &["why", locator]);
    assert_eq!(exit, 0, "{young}");
    assert_eq!(young["status"], "retained_recent");
    assert!(young["eligible_from"].is_string());
    let shown = text(place.ok(&["why", locator]));
    assert!(shown.contains("a plan proposes it from"), "{shown}");
    let unknown = "spillbox:00000000000000000000000001.00000000000000000000000002";
    let (exit, said) = run(&place, &["why", unknown]);
    assert_eq!(exit, 1, "{said}");
    place.ok(&["rm", locator]);
    let (exit, gone) = run(&place, &["why", locator]);
    assert_eq!((exit, &gone["deletion"]["reason"]), (0, &json!("erased")));
    let named = gone["records"].to_string();
    assert!(named.contains("\"op\":\"deleted\""), "{named}");
}

#[test]
fn a_scrub_reads_back_and_its_status_tells_damage() {
    let place = Place::store();
    let receipt = place.put("a.log", b"sound\n");
    let metrics = place.file("scrub.prom");
    let metrics_text = metrics.to_str().unwrap();
    let (exit, sound) = run(&place, &["scrub", "--all", "--metrics", metrics_text]);
    assert_eq!((exit, &sound["sound"]["count"]), (0, &json!(1)), "{sound}");
    let written = std::fs::read_to_string(&metrics).unwrap();
    assert!(written.contains("spillbox_scrub_alarms 0"), "{written}");
    let name = receipt["artifact_id"].as_str().unwrap();
    let mut directories = vec![place.file("store")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.to_str().unwrap().to_owned();
            if path.is_dir() {
                directories.push(path);
            } else if shown.contains("/b/") && shown.contains(name) {
                crate::support::program::write(&path, b"Sound\n");
            }
        }
    }
    let (exit, damaged) = run(&place, &["scrub", "--sample", "5"]);
    assert_eq!(
        (exit, &damaged["counts"]["corrupt"]),
        (3, &json!(1)),
        "{damaged}"
    );
    let (exit, said) = run(&place, &["scrub", "--sample", "5", "--all"]);
    assert_eq!(exit, 2, "{said}");
}

/// The service plans by the settings, through the same store.
#[test]
fn a_collectors_profile_is_looked_up_where_the_settings_say() {
    let place = Place::bucket();
    let receipt = place.put("a.log", b"erase me\n");
    let locator = receipt["locator"].as_str().unwrap();
    let credentials = place.file("credentials");
    let good = (
        crate::support::s3_server::ACCESS_KEY,
        crate::support::s3_server::SECRET_KEY,
    );
    for ((key, secret), exit) in [(("nobody", "wrong"), 1), (good, 0)] {
        let text =
            format!("[collector]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
        crate::support::program::write(&credentials, text.as_bytes());
        let mut command = place.command(&["rm", locator]);
        command
            .env("SPILLBOX_STORE__COLLECTOR__PROFILE", "collector")
            .env("SPILLBOX_STORE__COLLECTOR__CREDENTIALS_PATH", &credentials);
        let (ended, _, stderr) = outcome(command);
        assert_eq!(ended, exit, "{stderr}");
        if exit == 1 {
            assert!(stderr.contains("store.collector"), "{stderr}");
        }
    }
}
