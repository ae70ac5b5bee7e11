//! Collections over HTTP: plans, their application, reports, and whose they are.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use jiff::SignedDuration;
use serde_json::{Value, json};
use spillbox::auth::{Authenticator, Scope, TokenTable};
use spillbox::error::ErrorCode;
use spillbox::gc::collector::{Collector, Fence};
use spillbox::gc::policy::PolicySettings;
use spillbox::http::app::{AppState, router};
use spillbox::http::request_id::RequestIds;
use spillbox::ids::{SeededIds, Tenant};
use spillbox::lease::journals::Journals;
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;

use crate::http_leases::post;
use crate::support::app::{Backend, Reply, TestApp, request, send_to, shared, token};
use crate::support::crash::refusing;

const GC: &str = "sbx_gc-0123456789-0123456789";
const ADMIN: &str = "sbx_admin-0123456789-0123456789";
const FOREIGN: &str = "sbx_foreign-0123456789-0123456789";

fn at_once() -> PolicySettings {
    PolicySettings {
        settle: Duration::ZERO,
        is_one_host: true,
        ..PolicySettings::default()
    }
}

fn hours(app: &TestApp, hours: i64) {
    app.clock.advance(SignedDuration::from_hours(hours));
}

async fn apply(app: &TestApp, plan: &Value, query: &str) -> Reply {
    let id = plan["plan_id"].as_str().unwrap();
    let path = format!("/v1/gc/plans/{id}/apply{query}");
    app.send(post(&path, &json!({"sha256": plan["sha256"]})))
        .await
}

#[tokio::test]
async fn a_plan_is_made_shown_applied_once_it_is_old_enough_and_reported() {
    for backend in [Backend::Memory, Backend::Local] {
        let app = TestApp::new(backend).await;
        app.state.collect_by(at_once());
        let old = app.put("tool=t", "old and unreferenced\n").await;
        hours(&app, 25);
        let young = app.put("tool=t", "young\n").await;
        let made = app.send(post("/v1/gc/plans", &json!({}))).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        let plan = made.json();
        assert_eq!(plan["counts"]["planned_delete"], 1);
        assert_eq!(plan["counts"]["retained_recent"], 1);
        let id = plan["plan_id"].as_str().unwrap();
        let shown = app.get(&format!("/v1/gc/plans/{id}")).await;
        assert_eq!(shown.json(), plan);
        let none = app.get(&format!("/v1/gc/reports/{id}")).await;
        none.is_problem(ErrorCode::GcReportNotFound);
        apply(&app, &plan, "")
            .await
            .is_problem(ErrorCode::GcPlanTooYoung);
        hours(&app, 1);
        let other = json!({"plan_id": id, "sha256": "0".repeat(64)});
        apply(&app, &other, "")
            .await
            .is_problem(ErrorCode::GcRefused);
        let applied = apply(&app, &plan, "").await;
        assert_eq!(applied.status, StatusCode::OK, "{}", applied.text());
        let report = applied.json();
        assert_eq!(report["counts"]["deleted"], 1);
        assert_eq!(report["is_complete"], true);
        let shown = app.get(&format!("/v1/gc/reports/{id}")).await;
        assert_eq!(shown.json(), report);
        assert_eq!(app.get(&old.path).await.status, StatusCode::GONE);
        assert_eq!(app.get(&young.path).await.status, StatusCode::OK);
        hours(&app, 24 * 7);
        apply(&app, &plan, "")
            .await
            .is_problem(ErrorCode::GcRefused);
    }
}

#[tokio::test]
async fn requests_that_say_something_else_are_refused_and_nothing_is_written() {
    let app = TestApp::new(Backend::Memory).await;
    for bad in [
        json!({"max_share": "1.5"}),
        json!({"max_share": 0.5}),
        json!({"max_deletions": -1}),
        json!({"orphan_ttl_seconds": 0}),
        json!({"orphan_ttl_seconds": 1.5}),
        json!({"dry_run": "yes"}),
        json!({"session": ""}),
    ] {
        let reply = app.send(post("/v1/gc/plans", &bad)).await;
        reply.is_problem(ErrorCode::InvalidBody);
    }
    let short = json!({"orphan_ttl_seconds": 86_399});
    let reply = app.send(post("/v1/gc/plans", &short)).await;
    reply.is_problem(ErrorCode::GcRefused);
    let reply = app
        .send(post("/v1/gc/plans?wait_seconds=51", &json!({})))
        .await;
    reply.is_problem(ErrorCode::InvalidParameter);
    for path in [
        "/v1/gc/plans/no-plan",
        "/v1/gc/plans/019ad0c4-7d5e-7c3b-8a4f-0123456789ab",
    ] {
        app.get(path).await.is_problem(ErrorCode::GcPlanNotFound);
    }
    let report = "/v1/gc/reports/019ad0c4-7d5e-7c3b-8a4f-0123456789ab";
    app.get(&format!("{report}?limit=0"))
        .await
        .is_problem(ErrorCode::InvalidParameter);
    let made = app.send(post("/v1/gc/plans", &json!({}))).await.json();
    let id = made["plan_id"].as_str().unwrap();
    for bad in [json!({}), json!({"sha256": "abc"})] {
        let path = format!("/v1/gc/plans/{id}/apply");
        let reply = app.send(post(&path, &bad)).await;
        reply.is_problem(ErrorCode::InvalidBody);
    }
}

/// The settle time passes on the test's clock only.
#[tokio::test(start_paused = true)]
async fn an_application_that_takes_longer_goes_on_and_is_asked_for() {
    let app = TestApp::new(Backend::Memory).await;
    app.state.collect_by(PolicySettings {
        settle: Duration::from_secs(3_600),
        ..at_once()
    });
    let old = app.put("tool=t", "old\n").await;
    hours(&app, 25);
    let plan = app.send(post("/v1/gc/plans", &json!({}))).await.json();
    hours(&app, 1);
    let begun = apply(&app, &plan, "?wait_seconds=0").await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.text());
    let running = begun.json();
    let ask = running["ask"].as_str().unwrap();
    // Asked again it is the same application.
    let again = apply(&app, &plan, "?wait_seconds=0").await;
    assert_eq!(again.json(), running);
    let still = app.get(ask).await;
    assert_eq!(still.status, StatusCode::ACCEPTED, "{}", still.text());
    assert_eq!(still.json(), running);
    hours(&app, 1);
    tokio::time::sleep(Duration::from_secs(3_601)).await;
    let reply = loop {
        let reply = app.get(ask).await;
        if reply.status != StatusCode::ACCEPTED {
            break reply;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    assert_eq!(reply.json()["run_id"], running["run_id"]);
    assert_eq!(reply.json()["counts"]["deleted"], 1, "{}", reply.text());
    assert_eq!(app.get(&old.path).await.status, StatusCode::GONE);
}

/// A collection that a shutdown cuts off is begun again, and finds everything where it was.
#[tokio::test(start_paused = true)]
async fn a_shutdown_cuts_a_collection_off_and_the_next_one_finishes_it() {
    let app = TestApp::new(Backend::Memory).await;
    app.state.collect_by(PolicySettings {
        settle: Duration::from_secs(3_600),
        ..at_once()
    });
    let old = app.put("tool=t", "old\n").await;
    hours(&app, 25);
    let plan = app.send(post("/v1/gc/plans", &json!({}))).await.json();
    hours(&app, 1);
    let begun = apply(&app, &plan, "?wait_seconds=0").await.json();
    // Until it has condemned and waits.
    tokio::time::sleep(Duration::from_secs(60)).await;
    app.state.drain().await;
    let ask = begun["ask"].as_str().unwrap();
    app.get(ask).await.is_problem(ErrorCode::StoreUnavailable);
    hours(&app, 1);
    let collector = collector_over(&app, &app.store);
    let policy = spillbox::gc::policy::GcPolicy::new(
        &spillbox::gc::policy::PolicyRequest::default(),
        &at_once(),
        DEFAULT_ORPHAN_TTL,
    );
    let scope = spillbox::gc::plan::Scope::All;
    let finished = collector.finish(&scope, policy.unwrap().settle_seconds);
    let finished = finished.await.unwrap();
    assert!(finished.is_complete);
    assert_eq!(finished.artifacts.len(), 1);
    assert_eq!(app.get(&old.path).await.status, StatusCode::GONE);
}

fn collector_over(app: &TestApp, store: &SharedStore) -> Collector {
    let keys = KeySpace::new("").unwrap();
    let ids = Arc::new(SeededIds::new(11));
    let clock = shared(&app.clock);
    let journals = Journals::new(
        Arc::clone(&app.store),
        keys.clone(),
        Arc::clone(&clock),
        Arc::clone(&ids) as spillbox::ids::SharedIds,
    );
    let around = (clock, ids as spillbox::ids::SharedIds);
    let store = Arc::clone(store);
    Collector::new(
        store,
        keys,
        DEFAULT_ORPHAN_TTL,
        journals,
        Fence::None,
        around,
    )
}

/// The same service, which collects through another store.
fn collecting_through(app: &TestApp, store: &SharedStore) -> Router {
    let library = app.state.library().unwrap().clone();
    let journals = Journals::beside(&library);
    let anonymous = Authenticator::anonymous(Tenant::default());
    let state = AppState::starting(anonymous, Vec::new());
    state.collect_by(at_once());
    state.open_collected(library, journals, collector_over(app, store));
    let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(12)));
    router(state, ids)
}

#[tokio::test]
async fn collections_use_the_collectors_credentials_and_say_which_setting_they_lack() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("tool=t", "to be erased\n").await;
    // As a role that may save, and neither overwrite nor plan.
    let denied = |refused| -> SharedStore { refusing(&app.store, refused) };
    let weak = collecting_through(&app, &denied("/a/"));
    let erase = request(Method::DELETE, &saved.path, &[], axum::body::Body::empty());
    let refused = send_to(&weak, erase).await;
    let problem = refused.is_problem(ErrorCode::EraseDenied);
    assert!(
        problem["hint"]
            .as_str()
            .unwrap()
            .contains("store.collector")
    );
    assert_eq!(app.get(&saved.path).await.status, StatusCode::OK);
    let weak = collecting_through(&app, &denied("/gc/"));
    let refused = send_to(&weak, post("/v1/gc/plans", &json!({}))).await;
    let problem = refused.is_problem(ErrorCode::GcDenied);
    assert!(
        problem["hint"]
            .as_str()
            .unwrap()
            .contains("store.collector")
    );
    // With a collector that may, the same replica erases.
    let able = collecting_through(&app, &app.store);
    let erase = request(Method::DELETE, &saved.path, &[], axum::body::Body::empty());
    assert_eq!(send_to(&able, erase).await.status, StatusCode::OK);
    assert_eq!(app.get(&saved.path).await.status, StatusCode::GONE);
}

async fn ask(router: &Router, method: Method, path: &str, who: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {who}");
    let body = if method == Method::GET || method == Method::DELETE {
        String::new()
    } else {
        body.to_string()
    };
    let headers = [("Authorization", bearer.as_str())];
    send_to(router, request(method, path, &headers, body.into())).await
}

fn guarded(app: &TestApp) -> Router {
    let tokens = [
        token(GC, "default", &[Scope::Gc]),
        token(ADMIN, "default", &[Scope::Gc, Scope::Admin]),
        token(FOREIGN, "other", &Scope::ALL),
    ];
    let table = TokenTable::new(&tokens).unwrap();
    let state = AppState::opened(
        app.state.library().unwrap().clone(),
        Authenticator::Tokens(table),
        Vec::new(),
    );
    state.collect_by(at_once());
    let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(13)));
    router(state, ids)
}

#[tokio::test]
async fn a_token_plans_sees_and_collects_its_own_tenant_only() {
    let app = TestApp::new(Backend::Memory).await;
    let old = app.put("tool=t", "the default tenant's\n").await;
    hours(&app, 25);
    let router = guarded(&app);
    let nothing = json!({});
    let made = ask(&router, Method::POST, "/v1/gc/plans", FOREIGN, &nothing).await;
    assert_eq!(made.json()["counts"]["planned_delete"], 0);
    assert_eq!(made.json()["live"], 0);
    assert!(!made.text().contains("default"), "{}", made.text());
    let made = ask(&router, Method::POST, "/v1/gc/plans", GC, &nothing).await;
    let plan = made.json();
    assert_eq!(plan["counts"]["planned_delete"], 1);
    hours(&app, 1);
    let id = plan["plan_id"].as_str().unwrap();
    let digest = json!({"sha256": plan["sha256"]});
    let apply = format!("/v1/gc/plans/{id}/apply");
    let theirs = ask(&router, Method::POST, &apply, FOREIGN, &digest).await;
    theirs.is_problem(ErrorCode::GcPlanNotFound);
    let path = format!("/v1/gc/plans/{id}");
    let theirs = ask(&router, Method::GET, &path, FOREIGN, &nothing).await;
    theirs.is_problem(ErrorCode::GcPlanNotFound);
    assert_eq!(app.get(&old.path).await.status, StatusCode::OK);
    let own = ask(&router, Method::POST, &apply, GC, &digest).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text());
    let path = format!("/v1/gc/reports/{id}");
    let theirs = ask(&router, Method::GET, &path, FOREIGN, &nothing).await;
    theirs.is_problem(ErrorCode::GcReportNotFound);
    assert_eq!(app.get(&old.path).await.status, StatusCode::GONE);
    // A plan of all tenants is the operator's, and no token's.
    let collector = collector_over(&app, &app.store);
    let policy = crate::support::collection::policy_of(&Default::default());
    let all = collector
        .plan(&spillbox::gc::plan::Scope::All, &policy)
        .await;
    let path = format!("/v1/gc/plans/{}", all.unwrap().plan.plan_id);
    for who in [GC, FOREIGN] {
        let reply = ask(&router, Method::GET, &path, who, &nothing).await;
        reply.is_problem(ErrorCode::GcPlanNotFound);
    }
}

#[tokio::test]
async fn a_plan_of_one_session_looks_at_no_other() {
    let app = TestApp::new(Backend::Memory).await;
    app.save("s", "tool=t", &[], "one\n").await;
    app.save("t", "tool=t", &[], "another\n").await;
    let asked = json!({"session": "s"});
    let plan = app.send(post("/v1/gc/plans", &asked)).await.json();
    assert_eq!(plan["live"], 1);
    assert_eq!(plan["scope"]["session"]["session"], "s");
}

/// Only where the chain is broken, only for an administrator, and never past a newer version.
#[tokio::test]
async fn a_forced_erasure_goes_on_without_a_broken_journal_and_not_without_a_newer_one() {
    for backend in [Backend::Memory, Backend::S3Versioned] {
        let app = TestApp::new(backend).await;
        let saved = app.put("tool=t&call_id=c", "secret-5f1b2c\n").await;
        let router = guarded(&app);
        let nothing = json!({});
        let force = format!("{}?force=true", saved.path);
        let hold = json!({"name": "case", "reason": "needed"});
        let held = app.send(post(&saved.at("/hold"), &hold)).await;
        assert_eq!(held.status, StatusCode::CREATED, "{}", held.text());
        // A sound journal is asked, whatever is forced.
        let reply = ask(&router, Method::DELETE, &force, ADMIN, &nothing).await;
        reply.is_problem(ErrorCode::ArtifactLeased);
        let record = app.keys_of('j').await.remove(0);
        let good = app.stored(&record).await;
        let newer = String::from_utf8(good.clone()).unwrap();
        let newer = newer.replacen("\"v\":1", "\"v\":9", 1);
        assert_ne!(newer.as_bytes(), good, "the record names its version");
        app.overwrite(&record, newer).await;
        let reply = ask(&guarded(&app), Method::DELETE, &force, ADMIN, &nothing).await;
        reply.is_problem(ErrorCode::JournalReadOnly);
        app.overwrite(&record, "no record at all").await;
        let router = guarded(&app);
        let plain = ask(&router, Method::DELETE, &saved.path, ADMIN, &nothing).await;
        plain.is_problem(ErrorCode::JournalCorrupt);
        let lacking = ask(&router, Method::DELETE, &force, GC, &nothing).await;
        lacking.is_problem(ErrorCode::InsufficientScope);
        assert_eq!(app.get(&saved.path).await.status, StatusCode::OK);
        let erased = ask(&router, Method::DELETE, &force, ADMIN, &nothing).await;
        assert_eq!(erased.status, StatusCode::OK, "{}", erased.text());
        assert_eq!(erased.json()["reason"], "erased");
        assert_eq!(app.get(&saved.path).await.status, StatusCode::GONE);
        assert!(app.keys_of('b').await.is_empty(), "{backend:?}");
        let again = app
            .save("s", "tool=t&call_id=c", &[], "secret-5f1b2c\n")
            .await;
        assert_eq!(again.status, StatusCode::GONE, "{backend:?}");
        let again = ask(&router, Method::DELETE, &force, ADMIN, &nothing).await;
        assert_eq!(again.status, StatusCode::OK, "{backend:?}");
        // Nothing was written to the journal.
        assert_eq!(app.keys_of('j').await.len(), 1);
    }
}
