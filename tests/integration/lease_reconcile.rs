//! Reconciling one lease over HTTP: what an owner says, and what becomes of the lease, over every kind of
//! store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use spillbox::auth::Scope;
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;
use spillbox::lease::entry::OwnerMode;
use spillbox::lease::leases::Owners;
use spillbox::owner_client::{Endpoint, OwnerClient};
use spillbox::store::DeleteFence;
use spillbox::store::keys::Key;

use crate::http_leases::{AsOwner, LEASES, claim, post};
use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to};
use crate::support::owner::{Broken, Said, Script, memory_at, owners, published, reference, says};

/// A lease of the owner `memory`.
async fn prepared(router: &Router, name: &str, saved: &Saved) -> Value {
    let mut stated = claim(name, saved);
    stated["owner"] = json!("memory");
    let reply = send_to(router, post(LEASES, &stated)).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

async fn change(router: &Router, name: &str, verb: &str, document: Value) -> Reply {
    let path = format!("{LEASES}/{name}/{verb}");
    send_to(router, post(&path, &document)).await
}

async fn reconciled(router: &Router, name: &str) -> Value {
    let reply = change(router, name, "reconcile", json!({})).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    reply.json()
}

#[track_caller]
fn is(done: &Value, status: &str, reason: &str, state: &str) {
    let seen = [&done["status"], &done["reason"], &done["lease"]["state"]];
    assert_eq!(seen, [status, reason, state], "{done:#}");
}

/// The bytes cannot go while the lease protects them.
async fn assert_protected(app: &TestApp, saved: &Saved) {
    let erased = app.ask(Method::DELETE, &saved.path, &[]).await;
    erased.is_problem(ErrorCode::ArtifactLeased);
}

#[rstest]
#[tokio::test]
async fn what_the_owner_decided_is_written_down(
    #[values(Backend::Memory, Backend::Local, Backend::S3Versioned, Backend::Minio)]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let saved = app.put("tool=grep", "what was found").await;
    let source = saved.receipt["source_id"].as_str().unwrap();
    let digest: Sha256Digest = saved.receipt["digest"].as_str().unwrap().parse().unwrap();
    let shown = published(source, &digest);
    let other = published(source, &Sha256Digest::of(b"other"));
    let absent = || says("\"5\"", json!({"state": "absent"}));
    let sealed = |etag| says(etag, json!({"state": "sealed_absent"}));
    let refused = |status| Said::Plainly(status, "", String::new());
    let confirmed = "owner_confirmed_reference";
    for (name, looks, seals, expected) in [
        (
            "shown",
            vec![says("\"7\"", shown.clone())],
            vec![],
            ["committed", confirmed, "committed"],
        ),
        (
            "other",
            vec![says("\"7\"", other)],
            vec![],
            ["pending_conflict", "owner_reference_mismatch", "prepared"],
        ),
        (
            "unknown",
            vec![refused(503)],
            vec![],
            ["pending_unknown", "owner_result_unknown", "prepared"],
        ),
        (
            "absent",
            vec![absent()],
            vec![sealed("\"6\"")],
            ["aborted", "owner_sealed_absence", "aborted"],
        ),
        (
            "sealed",
            vec![sealed("\"6\"")],
            vec![],
            ["aborted", "owner_sealed_absence", "aborted"],
        ),
        (
            "removed",
            vec![says("\"8\"", json!({"state": "removed"}))],
            vec![],
            ["aborted", "owner_removed_reference", "aborted"],
        ),
        (
            "moved",
            vec![absent()],
            vec![refused(412)],
            ["pending_stale", "owner_generation_changed", "prepared"],
        ),
        (
            "published-meanwhile",
            vec![absent(), says("\"6\"", shown)],
            vec![refused(409)],
            ["committed", confirmed, "committed"],
        ),
        (
            "reply-lost",
            vec![absent(), sealed("\"6\"")],
            vec![refused(500)],
            ["aborted", "owner_sealed_absence", "aborted"],
        ),
        (
            "not-sealed",
            vec![absent()],
            vec![refused(500)],
            ["pending_unknown", "owner_absence_not_sealed", "prepared"],
        ),
        (
            "seal-then-silence",
            vec![absent(), refused(503)],
            vec![refused(412)],
            ["pending_stale", "owner_generation_changed", "prepared"],
        ),
        (
            "not-advanced",
            vec![absent()],
            vec![sealed("\"5\"")],
            ["pending_conflict", "owner_absence_not_sealed", "prepared"],
        ),
        (
            "never-advanced",
            vec![absent(), sealed("\"5\"")],
            vec![refused(500)],
            ["pending_conflict", "owner_absence_not_sealed", "prepared"],
        ),
        (
            "another",
            vec![says(
                "\"5\"",
                json!({"state": "absent", "transaction_id": "x"}),
            )],
            vec![],
            ["pending_conflict", "owner_transaction_mismatch", "prepared"],
        ),
        (
            "another-seal",
            vec![absent()],
            vec![says(
                "\"6\"",
                json!({"state": "sealed_absent", "transaction_id": "x"}),
            )],
            ["pending_conflict", "owner_transaction_mismatch", "prepared"],
        ),
    ] {
        let script = Script::new(looks, seals);
        let served = script.serve().await;
        let router = app.with_owners(memory_at(&served.url));
        prepared(&router, name, &saved).await;
        let done = reconciled(&router, name).await;
        let [status, reason, state] = expected;
        is(&done, status, reason, state);
        assert_eq!(done["missing_referenced"], json!([]), "{name}");
        if status == "committed" {
            let generation = if name == "shown" { "7" } else { "6" };
            assert_eq!(done["lease"]["owner_generation"], generation);
        }
        if state == "prepared" {
            assert_protected(&app, &saved).await;
        } else {
            // Again: nothing is asked about what is decided, and nothing written.
            let again = reconciled(&router, name).await;
            let already = if state == "committed" {
                "already_committed"
            } else {
                "already_aborted"
            };
            assert_eq!(again["status"], already, "{again:#}");
            assert_eq!(again["receipt"], done["receipt"]);
        }
        let asked = script.asked.lock().unwrap().clone();
        let seal = asked.iter().find(|(method, ..)| method == Method::PUT);
        if let Some((_, path, tag)) = seal {
            assert_eq!(*path, format!("/v1/artifact-references/{name}/seal"));
            assert_eq!(tag.as_deref(), Some("\"5\""));
        }
        assert!(script.count(&Method::GET) <= 3, "{asked:?}");
    }
}

/// An owner whose every answer is waited for a short time only.
fn impatient(url: &str) -> Owners {
    let name = "memory".parse().unwrap();
    let endpoint = Endpoint::new(&name, url, true).unwrap();
    let endpoints = BTreeMap::from([(name, endpoint.within(Duration::from_millis(200)))]);
    Owners {
        modes: BTreeMap::new(),
        link: Arc::new(OwnerClient::new(endpoints)),
    }
}

#[rstest]
#[tokio::test]
async fn an_owner_that_misbehaves_ends_nothing(
    #[values(Backend::Local, Backend::S3)] backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let saved = app.put("tool=grep", "what was found").await;
    let source = saved.receipt["source_id"].as_str().unwrap();
    let digest: Sha256Digest = saved.receipt["digest"].as_str().unwrap().parse().unwrap();
    // Where a redirect leads, somebody says what would commit the lease.
    let other = Script::new(vec![says("\"1\"", published(source, &digest))], vec![]);
    let elsewhere = other.serve().await;
    let plain = |status, etag, body: &str| Said::Plainly(status, etag, body.to_owned());
    let nesting = "[".repeat(60_000);
    for (name, said, status, detail) in [
        (
            "garbage",
            plain(200, "\"1\"", "<html>hello</html>"),
            "pending_unknown",
            "no such document",
        ),
        (
            "nothing",
            plain(200, "\"1\"", ""),
            "pending_unknown",
            "no such document",
        ),
        (
            "nested",
            plain(200, "\"1\"", &nesting),
            "pending_unknown",
            "no such document",
        ),
        (
            "endless",
            Said::Endlessly,
            "pending_unknown",
            "longer than 65536 bytes",
        ),
        (
            "never",
            Said::Never,
            "pending_unknown",
            "did not answer in time",
        ),
        (
            "elsewhere",
            Said::Elsewhere(elsewhere.url.clone()),
            "pending_unknown",
            "answered 307",
        ),
        (
            "unknown-path",
            plain(404, "\"1\"", r#"{"state":"absent"}"#),
            "pending_unknown",
            "answered 404",
        ),
        (
            "no-tag",
            plain(200, "", r#"{"state":"absent"}"#),
            "pending_unknown",
            "no strong ETag",
        ),
        (
            "weak-tag",
            plain(200, "W/\"1\"", r#"{"state":"absent"}"#),
            "pending_unknown",
            "no strong ETag",
        ),
        (
            "another",
            plain(200, "\"1\"", r#"{"state":"absent","transaction_id":"t"}"#),
            "pending_conflict",
            "",
        ),
    ] {
        let script = Script::new(vec![said], vec![]);
        let served = script.serve().await;
        let owners = if name == "never" {
            impatient(&served.url)
        } else {
            memory_at(&served.url)
        };
        let router = app.with_owners(owners);
        prepared(&router, name, &saved).await;
        let done = reconciled(&router, name).await;
        assert_eq!(done["status"], status, "{name}: {done:#}");
        assert_eq!(done["lease"]["state"], "prepared", "{name}");
        let told = done["detail"].as_str().unwrap_or_default();
        assert!(told.contains(detail), "{name}: {told}");
        assert!(!told.contains("127.0.0.1"), "{name}: {told}");
        assert_eq!(script.count(&Method::PUT), 0, "{name}");
        assert_protected(&app, &saved).await;
    }
    assert!(other.asked.lock().unwrap().is_empty());
    // Nobody there at all.
    let router = app.with_owners(memory_at("http://127.0.0.1:1"));
    prepared(&router, "nobody", &saved).await;
    let done = reconciled(&router, "nobody").await;
    is(&done, "pending_unknown", "owner_result_unknown", "prepared");
    assert_protected(&app, &saved).await;
}

#[tokio::test]
async fn two_reconcilers_commit_once() {
    for round in 0..4 {
        let app = TestApp::new(Backend::S3).await;
        let saved = app.put("tool=grep", "what was found").await;
        let source = saved.receipt["source_id"].as_str().unwrap();
        let digest: Sha256Digest = saved.receipt["digest"].as_str().unwrap().parse().unwrap();
        let script = Script::new(vec![says("\"7\"", published(source, &digest))], vec![]);
        let served = script.serve().await;
        let one = app.with_owners(memory_at(&served.url));
        let other = app.with_owners(memory_at(&served.url));
        prepared(&one, "t", &saved).await;
        let (first, second) = tokio::join!(reconciled(&one, "t"), reconciled(&other, "t"));
        let mut statuses = [&first["status"], &second["status"]].map(|s| s.as_str().unwrap());
        statuses.sort_unstable();
        assert_eq!(
            statuses,
            ["already_committed", "committed"],
            "round {round}"
        );
        let journal = app.get("/v1/sessions/s/journal?limit=10").await.json();
        let ops: Vec<_> = journal["records"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|record| record["entries"].as_array().unwrap())
            .map(|entry| entry["op"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ops, ["genesis", "prepared", "committed"]);
    }
}

#[tokio::test]
async fn a_publication_after_the_seal_is_refused_by_the_owner() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=grep", "what was found").await;
    let owner = reference(None).await;
    let router = app.with_owners(memory_at(&owner.url));
    prepared(&router, "t", &saved).await;
    let done = reconciled(&router, "t").await;
    is(&done, "aborted", "owner_sealed_absence", "aborted");
    assert_eq!(done["lease"]["ended_by"], "sealed");
    assert_eq!(publish(&owner.url, "t", &saved).await, 409);
    let late = change(&router, "t", "commit", json!({})).await;
    late.is_problem(ErrorCode::TransactionEnded);
}

async fn publish(url: &str, name: &str, saved: &Saved) -> u16 {
    let digest = saved.receipt["digest"].as_str().unwrap();
    let reference = json!({
        "source_id": saved.receipt["source_id"],
        "sha256": digest.strip_prefix("sha256:").unwrap(),
    });
    let url = format!("{url}/v1/artifact-references/{name}");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let reply = client.put(url).json(&reference).send().await.unwrap();
    reply.status().as_u16()
}

async fn remove(url: &str, name: &str) {
    let url = format!("{url}/v1/artifact-references/{name}");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    assert!(
        client
            .delete(url)
            .send()
            .await
            .unwrap()
            .status()
            .is_success()
    );
}

#[tokio::test]
async fn a_release_that_was_lost_is_found() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=grep", "what was found").await;
    let owner = reference(None).await;
    let router = app.with_owners(memory_at(&owner.url));
    prepared(&router, "t", &saved).await;
    assert_eq!(publish(&owner.url, "t", &saved).await, 201);
    is(
        &reconciled(&router, "t").await,
        "committed",
        "owner_confirmed_reference",
        "committed",
    );
    is(
        &reconciled(&router, "t").await,
        "already_committed",
        "owner_confirmed_reference",
        "committed",
    );
    remove(&owner.url, "t").await;
    is(
        &reconciled(&router, "t").await,
        "released",
        "owner_removed_reference",
        "released",
    );
    is(
        &reconciled(&router, "t").await,
        "already_released",
        "owner_removed_reference",
        "released",
    );
    // An old copy that shows nothing of a committed lease ends nothing.
    let lost = reference(Some(Broken::OldCopy)).await;
    let router = app.with_owners(memory_at(&lost.url));
    prepared(&router, "u", &saved).await;
    let committed = change(&router, "u", "commit", json!({"owner_generation": "1"})).await;
    assert_eq!(committed.status, StatusCode::OK);
    is(
        &reconciled(&router, "u").await,
        "pending_conflict",
        "owner_reference_mismatch",
        "committed",
    );
    assert_protected(&app, &saved).await;
}

#[tokio::test]
async fn an_operators_abort_seals_first() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=grep", "what was found").await;
    let owner = reference(None).await;
    let router = app.with_owners(memory_at(&owner.url));
    let operator = json!({"reason": "operator"});
    prepared(&router, "absent", &saved).await;
    let aborted = change(&router, "absent", "abort", operator.clone()).await;
    assert_eq!(aborted.json()["ended_by"], "operator", "{}", aborted.text());
    assert_eq!(publish(&owner.url, "absent", &saved).await, 409);
    is(
        &reconciled(&router, "absent").await,
        "already_aborted",
        "owner_sealed_absence",
        "aborted",
    );

    // What is published is not aborted over its owner's head.
    prepared(&router, "shown", &saved).await;
    assert_eq!(publish(&owner.url, "shown", &saved).await, 201);
    let refused = change(&router, "shown", "abort", operator.clone()).await;
    let problem = refused.is_problem(ErrorCode::OwnerUnsealed);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("owner_confirmed_reference")
    );
    let forced = json!({"reason": "operator", "force": true});
    let aborted = change(&router, "shown", "abort", forced.clone()).await;
    assert_eq!(aborted.json()["state"], "aborted", "{}", aborted.text());
    is(
        &reconciled(&router, "shown").await,
        "published_unprotected",
        "owner_confirmed_reference",
        "aborted",
    );
    remove(&owner.url, "shown").await;
    is(
        &reconciled(&router, "shown").await,
        "already_aborted",
        "owner_removed_reference",
        "aborted",
    );

    // A committed lease that an operator released is watched too.
    prepared(&router, "held", &saved).await;
    assert_eq!(publish(&owner.url, "held", &saved).await, 201);
    is(
        &reconciled(&router, "held").await,
        "committed",
        "owner_confirmed_reference",
        "committed",
    );
    let released = change(&router, "held", "release", operator.clone()).await;
    assert_eq!(released.json()["ended_by"], "operator");
    is(
        &reconciled(&router, "held").await,
        "published_unprotected",
        "owner_confirmed_reference",
        "released",
    );

    // An owner that is gone cannot seal.
    let router = app.with_owners(memory_at("http://127.0.0.1:1"));
    prepared(&router, "gone", &saved).await;
    let refused = change(&router, "gone", "abort", operator.clone()).await;
    let problem = refused.is_problem(ErrorCode::OwnerUnsealed);
    assert_eq!(problem["retryable"], true);
    let aborted = change(&router, "gone", "abort", forced).await;
    assert_eq!(aborted.json()["ended_by"], "operator");
    // Without a URL there is nobody to ask; and `force` belongs to an operator.
    let router = app.with_owners(owners(&[("memory", OwnerMode::OwnerFenced, None)]));
    prepared(&router, "nowhere", &saved).await;
    let aside = change(&router, "nowhere", "abort", json!({"force": true})).await;
    aside.is_problem(ErrorCode::InvalidLease);
    let aborted = change(&router, "nowhere", "abort", operator).await;
    assert_eq!(aborted.json()["ended_by"], "operator");
}

#[tokio::test]
async fn an_owner_that_commits_first_is_timed_out_and_never_asked() {
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("tool=grep", "what was found").await;
    let script = Script::default();
    let served = script.serve().await;
    let router = app.with_owners(owners(&[(
        "memory",
        OwnerMode::CommitFirst,
        Some(&served.url),
    )]));
    prepared(&router, "t", &saved).await;
    prepared(&router, "u", &saved).await;
    is(
        &reconciled(&router, "t").await,
        "pending_unknown",
        "commit_awaited",
        "prepared",
    );
    assert_eq!(
        change(&router, "u", "commit", json!({})).await.status,
        StatusCode::OK
    );
    app.clock.advance(SignedDuration::from_hours(2));
    let done = reconciled(&router, "t").await;
    is(&done, "aborted", "commit_timed_out", "aborted");
    assert_eq!(done["lease"]["ended_by"], "timeout");
    let late = change(&router, "t", "commit", json!({})).await;
    late.is_problem(ErrorCode::TransactionEnded);
    is(
        &reconciled(&router, "u").await,
        "already_committed",
        "owner_confirmed_reference",
        "committed",
    );
    assert!(script.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_has_no_owner_to_ask_is_left_alone() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=grep", "what was found").await;
    app.prepare("t", &saved).await;
    let path = format!("{LEASES}/t/reconcile");
    let done = app.send(request(Method::POST, &path, &[], "".into())).await;
    is(
        &done.json(),
        "pending_unknown",
        "owner_not_configured",
        "prepared",
    );
    let held = app
        .post(&saved.at("/hold"), json!({"name": "n", "reason": "r"}))
        .await;
    let name = held.json()["transaction_id"].as_str().unwrap().to_owned();
    let done = app.change(&name, "reconcile", json!({})).await;
    is(&done.json(), "skipped", "hold_has_no_owner", "committed");
    let rejected = app.change("t", "abort", json!({})).await;
    assert_eq!(rejected.status, StatusCode::OK);
    let done = app.change("t", "reconcile", json!({})).await;
    is(&done.json(), "already_aborted", "lease_ended", "aborted");

    let unknown = app.change("nobody", "reconcile", json!({})).await;
    unknown.is_problem(ErrorCode::TransactionUnknown);
    // Where an owner is, a caller cannot say.
    for document in [json!({"base_url": "http://127.0.0.1"}), json!([1])] {
        let refused = app.change("t", "reconcile", document).await;
        refused.is_problem(ErrorCode::InvalidLease);
    }
    let operator = [crate::support::app::token(
        "r",
        "default",
        &[Scope::Read, Scope::Gc],
    )];
    let guarded = app.guarded(&operator);
    let headers = [("authorization", "Bearer r")];
    let refused = send_to(&guarded, request(Method::POST, &path, &headers, "".into())).await;
    refused.is_problem(ErrorCode::InsufficientScope);
}

#[rstest]
#[tokio::test]
async fn what_a_lease_protects_and_is_gone_is_told(
    #[values(Backend::Memory, Backend::Local, Backend::S3Versioned)] backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let saved = app.put("tool=grep", "what was found").await;
    let owner = reference(None).await;
    let router = app.with_owners(memory_at(&owner.url));
    prepared(&router, "t", &saved).await;
    assert_eq!(publish(&owner.url, "t", &saved).await, 201);
    let delete = async |class| {
        for key in app.keys_of(class).await {
            let key = Key::parse(key).unwrap();
            app.store.delete(&key, DeleteFence::None).await.unwrap();
        }
    };
    delete('b').await;
    let done = reconciled(&router, "t").await;
    is(&done, "committed", "owner_confirmed_reference", "committed");
    assert_eq!(done["missing_referenced"], json!(["body"]));
    delete('a').await;
    let done = reconciled(&router, "t").await;
    assert_eq!(done["missing_referenced"], json!(["manifest", "body"]));
    // A lease that has ended protects nothing.
    remove(&owner.url, "t").await;
    assert_eq!(reconciled(&router, "t").await["status"], "released");
    assert_eq!(
        reconciled(&router, "t").await["missing_referenced"],
        json!([])
    );
}

#[tokio::test]
async fn a_list_shows_the_leases_that_nobody_decides() {
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("tool=grep", "what was found").await;
    app.prepare("old", &saved).await;
    app.prepare("done", &saved).await;
    app.change("done", "commit", json!({})).await;
    app.clock.advance(SignedDuration::from_mins(90));
    // By a replica that has just looked at the store's clock.
    let replica = app.replica("default").await;
    let prepared = send_to(&replica, post(LEASES, &claim("new", &saved))).await;
    assert_eq!(prepared.status, StatusCode::CREATED);
    let names = async |query: &str| {
        let listed = app.get(&format!("{LEASES}?{query}")).await;
        let listed = listed.json()["leases"].as_array().unwrap().clone();
        let names = listed.iter().map(|lease| lease["transaction_id"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("stuck_for=1h").await, ["old"]);
    assert_eq!(names("stuck_for=5400").await, ["old"]);
    assert_eq!(names("stuck_for=0").await, ["new", "old"]);
    assert_eq!(names("stuck_for=2h").await, [""; 0]);
    assert_eq!(names("stuck_for=0s&state=committed").await, [""; 0]);
    for bad in ["soon", "-1", ""] {
        let refused = app.get(&format!("{LEASES}?stuck_for={bad}")).await;
        refused.is_problem(ErrorCode::InvalidParameter);
    }
}
