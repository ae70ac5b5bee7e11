//! A journal over HTTP: its end, its records, what a walk finds, and what an operator clears.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;

use crate::http_leases::{AsOwner, LEASES};
use crate::support::app::{Backend, Saved, TestApp, request};

const JOURNAL: &str = "/v1/sessions/s/journal";
const VERIFY: &str = "/v1/sessions/s/journal/verify";
const CLEAR: &str = "/v1/sessions/s/journal/clear";

/// A journal of four records, and the receipts of each.
async fn filled(app: &TestApp) -> (Saved, Vec<Value>) {
    let saved = app.put("", "x").await;
    let mut receipts = Vec::new();
    for name in ["a", "b"] {
        receipts.push(app.prepare(name, &saved).await.json()["receipt"].clone());
        let committed = app.change(name, "commit", json!({})).await;
        receipts.push(committed.json()["receipt"].clone());
    }
    (saved, receipts)
}

#[tokio::test]
async fn the_head_is_the_last_receipt_and_records_are_shown_as_they_are() {
    let app = TestApp::new(Backend::Memory).await;
    let empty = app.get(JOURNAL).await.json();
    assert_eq!(
        empty,
        json!({"head": null, "status": "ok", "ineffective": []})
    );
    let (saved, receipts) = filled(&app).await;
    let head = app.get(JOURNAL).await.json();
    assert_eq!(head["head"]["sha256"], receipts[3]["sha256"]);
    assert_eq!(head["head"]["seq"], 3);
    assert!(head.get("records").is_none());
    let page = app
        .get(&format!("{JOURNAL}?limit=3&from_seq=0"))
        .await
        .json();
    assert_eq!(page["next_seq"], 3);
    let rest = app
        .get(&format!("{JOURNAL}?limit=3&from_seq=3"))
        .await
        .json();
    assert!(rest.get("next_seq").is_none());
    let (first, last) = (&page["records"][0], &rest["records"][0]);
    assert_eq!(first["sha256"], receipts[0]["sha256"]);
    assert_eq!(first["entries"][1]["op"], "prepared");
    assert_eq!(
        first["entries"][1]["artifact_id"],
        saved.receipt["artifact_id"]
    );
    assert_eq!(last["prev"], receipts[2]["sha256"]);
    for query in ["limit=0", "limit=65", "from_seq=-1", "seq=0"] {
        let reply = app.get(&format!("{JOURNAL}?{query}")).await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
}

#[tokio::test]
async fn a_walk_is_ok_or_names_what_was_done_to_the_journal() {
    for backend in [Backend::Memory, Backend::Local, Backend::S3Versioned] {
        let app = TestApp::new(backend).await;
        let (_, receipts) = filled(&app).await;
        let asked = json!({"receipts": receipts});
        let report = app.post(VERIFY, asked.clone()).await.json();
        assert_eq!(report["status"], "ok", "{report:#}");
        assert_eq!(
            (&report["records"], &report["receipts"]),
            (&json!(4), &json!(4))
        );
        // Without a body as well.
        let report = app
            .send(request(Method::POST, VERIFY, &[], Body::empty()))
            .await;
        assert_eq!(report.json()["status"], "ok");

        let records = app.keys_of('j').await;
        let stored = String::from_utf8(app.stored(&records[1]).await).unwrap();
        let changed = stored.replace("\"committed\"", "\"aborted\"");
        app.overwrite(&records[1], changed).await;
        let report = app.post(VERIFY, asked).await.json();
        assert_ne!(report["status"], "ok", "{report:#}");
        assert_eq!(report["findings"][0]["first_seq"], 1, "{report:#}");
        // A journal that is broken is said to be, and takes no lease; artifacts are served on.
        let replica = app.replica("default").await;
        let ask = |path: &str| {
            let ask = request(Method::GET, path, &[], Body::empty());
            crate::support::app::send_to(&replica, ask)
        };
        assert_eq!(ask(JOURNAL).await.json()["status"], "corrupt");
        ask(LEASES).await.is_problem(ErrorCode::JournalCorrupt);
        assert_eq!(ask("/v1/sessions/s/artifacts").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_receipt_that_the_journal_does_not_know_is_found() {
    let app = TestApp::new(Backend::Memory).await;
    filled(&app).await;
    let receipt = |seq: u64, session: &str| {
        let sha256 = Sha256Digest::of(b"another history").to_string();
        json!({"session": session, "seq": seq, "sha256": sha256})
    };
    for (seq, name, first) in [(1, "fork", 1), (3, "bad_hash", 3), (9, "gap", 4)] {
        let report = app
            .post(VERIFY, json!({"receipts": [receipt(seq, "s")]}))
            .await
            .json();
        assert_eq!(report["status"], name, "{report:#}");
        assert_eq!(report["findings"][0]["first_seq"], first);
    }
    let report = app
        .post(VERIFY, json!({"receipts": [receipt(1, "elsewhere")]}))
        .await
        .json();
    assert_eq!(report["status"], "ok");
    assert_eq!(report["receipts_of_other_sessions"], 1);
    for bad in [
        json!({"receipts": [{}]}),
        json!({"receipts": 1}),
        json!({"more": []}),
    ] {
        app.post(VERIFY, bad)
            .await
            .is_problem(ErrorCode::InvalidLease);
    }
}

#[tokio::test]
async fn an_operator_clears_what_they_looked_at_and_nothing_that_is_not_there() {
    let app = TestApp::new(Backend::Memory).await;
    filled(&app).await;
    let clear = |seq: u64| app.post(CLEAR, json!({"seq": seq, "reason": "looked at it"}));
    // Nothing is suspect: nothing is written.
    let cleared = clear(3).await;
    assert_eq!(cleared.json()["status"], "ok");
    assert_eq!(app.keys_of('j').await.len(), 4);
    clear(4).await.is_problem(ErrorCode::InvalidParameter);
    for bad in [
        json!({}),
        json!({"seq": 0}),
        json!({"seq": 0, "reason": ""}),
    ] {
        app.post(CLEAR, bad)
            .await
            .is_problem(ErrorCode::InvalidLease);
    }
}

/// S13-J28: a record's place that leads elsewhere is not followed, and takes no lease.
#[tokio::test]
async fn a_link_in_the_place_of_a_record_is_not_followed() {
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("", "x").await;
    app.prepare("a", &saved).await;
    let keys = app.keys_of('j').await;
    let first = spillbox::store::keys::Key::parse(keys[0].as_str()).unwrap();
    let second = keys[0].replace("00000000000000000000", "00000000000000000001");
    let second = spillbox::store::keys::Key::parse(second).unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    crate::support::program::write(outside.path(), b"outside");
    assert!(app.local_path(&first).is_file());
    std::os::unix::fs::symlink(outside.path(), app.local_path(&second)).unwrap();
    let refused = app.prepare("b", &saved).await;
    assert!(
        !refused.status.is_success() || refused.status == StatusCode::ACCEPTED,
        "{}",
        refused.text()
    );
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"outside");
    let listed = app.get(LEASES).await;
    assert!(!listed.status.is_success(), "{}", listed.text());
}
