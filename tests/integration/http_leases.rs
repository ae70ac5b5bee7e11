//! Leases over HTTP: what an owner and an operator do with them, over every store.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};
use spillbox::artifact::manifest::TombstoneReason;
use spillbox::auth::Scope;
use spillbox::error::ErrorCode;

use crate::support::app::{Backend, Reply, Saved, TestApp, escape, request, send_to, token};

pub(crate) const LEASES: &str = "/v1/sessions/s/leases";

/// The claim of one reference without end.
pub(crate) fn claim(name: &str, saved: &Saved) -> Value {
    json!({
        "transaction_id": name,
        "source_id": saved.receipt["source_id"],
        "content_sha256": saved.receipt["digest"],
        "reference_count": 1,
        "retain_until": null,
    })
}

pub(crate) fn post(path: &str, document: &Value) -> Request<Body> {
    let body = Body::from(document.to_string());
    request(
        Method::POST,
        path,
        &[("content-type", "application/json")],
        body,
    )
}

/// What suites do with leases.
pub(crate) trait AsOwner {
    async fn post(&self, path: &str, document: Value) -> Reply;
    async fn prepare(&self, name: &str, saved: &Saved) -> Reply;
    async fn change(&self, name: &str, verb: &str, document: Value) -> Reply;
}

impl AsOwner for TestApp {
    async fn post(&self, path: &str, document: Value) -> Reply {
        self.send(post(path, &document)).await
    }

    async fn prepare(&self, name: &str, saved: &Saved) -> Reply {
        self.post(LEASES, claim(name, saved)).await
    }

    async fn change(&self, name: &str, verb: &str, document: Value) -> Reply {
        let path = format!("{LEASES}/{}/{verb}", escape(name));
        self.post(&path, document).await
    }
}

#[track_caller]
fn stands(reply: &Reply, status: StatusCode, state: &str) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), "no-store");
    let lease = reply.json();
    assert_eq!(lease["state"], state, "{lease:#}");
    assert_eq!(lease["receipt"]["session"], "s");
    lease
}

fn names(page: &Value) -> Vec<&str> {
    let leases = page["leases"].as_array().unwrap().iter();
    leases
        .map(|lease| lease["transaction_id"].as_str().unwrap())
        .collect()
}

#[rstest]
#[tokio::test]
async fn a_lease_goes_from_prepared_to_released(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let saved = app.put("tool=grep", "what was found").await;
    let mut stated = claim("tx 7/ü", &saved);
    stated["retain_until"] = json!("2027-01-01T02:00:00+02:00");
    stated["reference_count"] = json!(3);
    stated["owner"] = json!("memory");
    let prepared = app.post(LEASES, stated.clone()).await;
    let prepared = stands(&prepared, StatusCode::CREATED, "prepared");
    assert_eq!(prepared["receipt"]["seq"], 0);
    assert_eq!(prepared["retain_until"], "2027-01-01T00:00:00Z");
    assert_eq!(prepared["mode"], "owner_fenced");
    // Again, also by another replica: the same lease, and nothing is written.
    let again = app.post(LEASES, stated.clone()).await;
    stands(&again, StatusCode::OK, "prepared");
    let replica = app.replica("default").await;
    let again = send_to(&replica, post(LEASES, &stated)).await;
    let again = stands(&again, StatusCode::OK, "prepared");
    assert_eq!(again["receipt"], prepared["receipt"]);
    // The same transaction cannot mean something else.
    stated["reference_count"] = json!(4);
    let other = app.post(LEASES, stated).await;
    other.is_problem(ErrorCode::TransactionConflict);

    let generation = json!({"owner_generation": "17"});
    let committed = app.change("tx 7/ü", "commit", generation.clone()).await;
    let committed = stands(&committed, StatusCode::OK, "committed");
    assert_eq!(committed["owner_generation"], "17");
    assert_eq!(committed["receipt"]["seq"], 1);
    let again = app.change("tx 7/ü", "commit", generation).await;
    assert_eq!(again.json()["receipt"], committed["receipt"]);
    let aborted = app.change("tx 7/ü", "abort", json!({})).await;
    aborted.is_problem(ErrorCode::IllegalTransition);

    let end = json!({"retain_until": "2027-06-01T00:00:00Z"});
    let extended = app.change("tx 7/ü", "extend", end.clone()).await;
    let extended = stands(&extended, StatusCode::OK, "committed");
    assert_eq!(extended["retain_until"], "2027-06-01T00:00:00Z");
    let earlier = json!({"retain_until": "2027-05-01T00:00:00Z"});
    let earlier = app.change("tx 7/ü", "extend", earlier).await;
    earlier.is_problem(ErrorCode::RetentionNotExtended);
    let endless = app
        .change("tx 7/ü", "extend", json!({"retain_until": null}))
        .await;
    assert!(stands(&endless, StatusCode::OK, "committed")["retain_until"].is_null());

    let released = app.change("tx 7/ü", "release", json!({})).await;
    let released = stands(&released, StatusCode::OK, "released");
    assert_eq!(released["ended_by"], "removed");
    let again = app.change("tx 7/ü", "release", json!({})).await;
    assert_eq!(again.json()["receipt"], released["receipt"]);
    for verb in ["commit", "abort"] {
        let late = app.change("tx 7/ü", verb, json!({})).await;
        late.is_problem(ErrorCode::TransactionEnded);
    }
    let shown = app.get(&format!("{LEASES}/{}", escape("tx 7/ü"))).await;
    stands(&shown, StatusCode::OK, "released");
    // Five records, and no more.
    assert_eq!(app.keys_of('j').await.len(), 5);
}

#[tokio::test]
async fn lists_are_by_transaction_filtered_and_paged() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x").await;
    let empty = app.get(LEASES).await;
    assert_eq!(empty.json(), json!({"leases": []}));
    for name in ["c", "a", "b"] {
        app.prepare(name, &saved).await;
    }
    let mut foreign = claim("d", &saved);
    foreign["owner"] = json!("memory");
    app.post(LEASES, foreign).await;
    app.change("b", "commit", json!({})).await;
    app.change("c", "abort", json!({})).await;
    let all = app.get(LEASES).await.json();
    assert_eq!(names(&all), ["a", "b", "c", "d"]);
    assert!(all.get("next_cursor").is_none());
    for (query, listed) in [
        ("state=prepared", vec!["a", "d"]),
        ("state=committed", vec!["b"]),
        ("state=aborted", vec!["c"]),
        ("state=released", vec![]),
        ("owner=memory", vec!["d"]),
        ("owner=default&state=prepared", vec!["a"]),
    ] {
        let page = app.get(&format!("{LEASES}?{query}")).await.json();
        assert_eq!(names(&page), listed, "{query}");
    }
    let mut paged = Vec::new();
    let mut next = String::new();
    loop {
        let page = app.get(&format!("{LEASES}?limit=3{next}")).await.json();
        paged.extend(names(&page).into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(paged, ["a", "b", "c", "d"]);
    let unknown = app.get(&format!("{LEASES}/nobody")).await;
    unknown.is_problem(ErrorCode::TransactionUnknown);
}

#[rstest]
#[tokio::test]
async fn a_hold_keeps_and_a_lift_ends_it(
    #[values(
        Backend::Memory,
        Backend::Local,
        Backend::S3,
        Backend::S3Versioned,
        Backend::Minio,
        Backend::MinioVersioned
    )]
    backend: Backend,
) {
    let app = TestApp::new(backend).await;
    let saved = app.put("", "evidence").await;
    let path = saved.at("/hold");
    let hold = |name: &str| json!({"name": name, "reason": "court order 7"});
    let held = app.post(&path, hold("court")).await;
    let held = stands(&held, StatusCode::CREATED, "committed");
    let name = held["transaction_id"].as_str().unwrap();
    assert!(name.starts_with("hold:court:"), "{name}");
    assert_eq!(
        (&held["owner"], &held["reason"]),
        (&json!("hold"), &json!("court order 7"))
    );
    let again = app.post(&path, hold("court")).await;
    let again = stands(&again, StatusCode::OK, "committed");
    assert_eq!(again["transaction_id"], name);
    // Another name is another hold.
    let other = app.post(&path, hold("audit")).await;
    stands(&other, StatusCode::CREATED, "committed");
    let lifted = app
        .ask(Method::DELETE, &format!("{path}?name=court"), &[])
        .await;
    assert_eq!(lifted.json()["lifted"], true, "{}", lifted.text());
    let again = app
        .ask(Method::DELETE, &format!("{path}?name=court"), &[])
        .await;
    assert_eq!(again.json()["lifted"], false);
    let page = app
        .get(&format!("{LEASES}?owner=hold&state=committed"))
        .await
        .json();
    assert_eq!(page["leases"].as_array().unwrap().len(), 1, "{page:#}");
    // Held again after a lift: under a fresh transaction.
    let fresh = app.post(&path, hold("court")).await;
    let fresh = stands(&fresh, StatusCode::CREATED, "committed");
    assert_ne!(fresh["transaction_id"], name);
}

#[tokio::test]
async fn what_is_gone_or_somewhere_else_cannot_be_leased() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x").await;
    let other = app.put("call_id=2", "y").await;
    let records = || app.keys_of('j');

    let mut wrong = claim("t", &saved);
    wrong["content_sha256"] = other.receipt["digest"].clone();
    app.post(LEASES, wrong)
        .await
        .is_problem(ErrorCode::SourceMismatch);
    // The right digest under the source id of other bytes.
    let mut wrong = claim("t", &saved);
    let source = saved.receipt["source_id"].as_str().unwrap();
    wrong["source_id"] = json!(format!("{}000000000000", &source[..source.len() - 12]));
    app.post(LEASES, wrong)
        .await
        .is_problem(ErrorCode::SourceMismatch);
    // In another session, although the artifact is there.
    let elsewhere = app.post("/v1/sessions/t/leases", claim("t", &saved)).await;
    elsewhere.is_problem(ErrorCode::SourceMismatch);
    // By another tenant, whose session of that name has nothing of it.
    let foreign = app.replica("other").await;
    let foreign = send_to(&foreign, post(LEASES, &claim("t", &saved))).await;
    foreign.is_problem(ErrorCode::ArtifactNotFound);
    // Never saved.
    let mut unknown = claim("t", &saved);
    let id = saved.receipt["artifact_id"].as_str().unwrap();
    unknown["source_id"] = json!(source.replace(id, &format!("{:026}", 7)));
    app.post(LEASES, unknown)
        .await
        .is_problem(ErrorCode::ArtifactNotFound);
    // Deleted.
    app.bury(&saved, TombstoneReason::Expired).await;
    let gone = app.prepare("t", &saved).await;
    let problem = gone.is_problem(ErrorCode::ArtifactDeleted);
    assert_eq!(problem["reason"], "expired");
    let hold = json!({"name": "h", "reason": "r"});
    let held = app.post(&saved.at("/hold"), hold).await;
    held.is_problem(ErrorCode::ArtifactDeleted);
    assert!(records().await.is_empty(), "nothing was written");
}

#[tokio::test]
async fn an_owner_publishes_as_it_is_configured() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x").await;
    let with_mode = |name: &str, owner: &str, mode: &str| {
        let mut stated = claim(name, &saved);
        stated["owner"] = json!(owner);
        stated["mode"] = json!(mode);
        stated
    };
    let stated = app
        .post(LEASES, with_mode("a", "memory", "owner_fenced"))
        .await;
    stands(&stated, StatusCode::CREATED, "prepared");
    let other = app
        .post(LEASES, with_mode("b", "memory", "commit_first"))
        .await;
    other.is_problem(ErrorCode::OwnerModeConflict);
    let configured = app.with_owner("notes").await;
    let unstated = {
        let mut stated = claim("c", &saved);
        stated["owner"] = json!("notes");
        stated
    };
    let prepared = send_to(&configured, post(LEASES, &unstated)).await;
    assert_eq!(
        prepared.json()["mode"],
        "commit_first",
        "{}",
        prepared.text()
    );
    let fenced = with_mode("d", "notes", "owner_fenced");
    let fenced = send_to(&configured, post(LEASES, &fenced)).await;
    fenced.is_problem(ErrorCode::OwnerModeConflict);
    let hold = app
        .post(LEASES, with_mode("e", "hold", "owner_fenced"))
        .await;
    hold.is_problem(ErrorCode::OwnerModeConflict);
}

#[tokio::test]
async fn only_an_admin_ends_a_lease_as_operator() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("", "x").await;
    const OWNER: &str = "sbx_owner-0123456789abcdef";
    const ADMIN: &str = "sbx_admin-0123456789abcdef";
    let router = app.guarded(&[
        token(OWNER, "default", &[Scope::Lease, Scope::Read]),
        token(ADMIN, "default", &[Scope::Lease, Scope::Admin]),
    ]);
    app.prepare("a", &saved).await;
    app.prepare("b", &saved).await;
    app.change("b", "commit", json!({})).await;
    for (name, verb, state) in [("a", "abort", "aborted"), ("b", "release", "released")] {
        let path = format!("{LEASES}/{name}/{verb}");
        let ask = |token: &str| {
            let bearer = format!("Bearer {token}");
            let body = Body::from(r#"{"reason":"operator"}"#);
            let headers = [("authorization", bearer.as_str())];
            send_to(&router, request(Method::POST, &path, &headers, body))
        };
        ask(OWNER).await.is_problem(ErrorCode::InsufficientScope);
        let ended = stands(&ask(ADMIN).await, StatusCode::OK, state);
        assert_eq!(ended["ended_by"], "operator");
    }
}

#[tokio::test]
async fn bad_input_is_refused_before_any_request_to_the_store() {
    let app = TestApp::new(Backend::S3).await;
    let saved = app.put("", "x").await;
    let server = app.s3.as_ref().unwrap();
    let before = server.log().entries().len();
    let good = claim("t", &saved);
    let spoilt = |name: &str, value: Value| {
        let mut stated = good.clone();
        stated[name] = value;
        stated
    };
    let without = |name: &str| {
        let mut stated = good.clone();
        stated.as_object_mut().unwrap().remove(name);
        stated
    };
    let long = |n: usize| json!("x".repeat(n));
    let mut claims = vec![
        json!([]),
        json!("t"),
        json!(null),
        json!({}),
        spoilt("more", json!(1)),
    ];
    for name in [
        "transaction_id",
        "source_id",
        "content_sha256",
        "reference_count",
        "retain_until",
    ] {
        claims.push(without(name));
        claims.push(spoilt(name, json!({"a": 1})));
    }
    for (name, values) in [
        (
            "transaction_id",
            vec![
                json!(""),
                json!("."),
                json!(".."),
                json!("a\nb"),
                long(201),
                json!(7),
                json!(null),
            ],
        ),
        (
            "source_id",
            vec![
                json!(""),
                json!("artifact:s:x:a365bdf36416"),
                json!("artifact:s"),
                json!("file:///etc/passwd"),
                long(15_000),
            ],
        ),
        (
            "content_sha256",
            vec![
                json!(""),
                json!("a".repeat(63)),
                json!("g".repeat(64)),
                json!("sha512:aa"),
                json!(1),
            ],
        ),
        (
            "reference_count",
            vec![
                json!(0),
                json!(-1),
                json!(true),
                json!(1.0),
                json!(1.5),
                json!("1"),
                json!(1_u64 << 53),
                json!(u64::MAX),
                json!(null),
            ],
        ),
        (
            "retain_until",
            vec![
                json!("2026-10-01T00:00:00"),
                json!("2026-10-01"),
                json!("soon"),
                json!(1_796_083_200),
                json!(true),
                json!("2026-10-01T00:00:00Z[UTC]"),
            ],
        ),
        (
            "owner",
            vec![json!(""), json!("Memory"), json!("a b"), long(65), json!(1)],
        ),
        ("mode", vec![json!("fenced"), json!(1), json!("")]),
    ] {
        claims.extend(values.into_iter().map(|value| spoilt(name, value)));
    }
    for stated in &claims {
        let reply = app.post(LEASES, stated.clone()).await;
        reply.is_problem(ErrorCode::InvalidLease);
        assert!(reply.body.len() < 1_500, "{}", reply.body.len());
    }
    for (verb, bodies) in [
        (
            "commit",
            vec![
                json!({"owner_generation": ""}),
                json!({"owner_generation": 17}),
                json!({"gen": "1"}),
            ],
        ),
        (
            "abort",
            vec![
                json!({"reason": "timeout"}),
                json!({"reason": "sealed"}),
                json!({"why": 1}),
            ],
        ),
        (
            "release",
            vec![json!({"reason": "expired"}), json!({"reason": true})],
        ),
        (
            "extend",
            vec![
                json!({}),
                json!({"retain_until": "2027-01-01"}),
                json!({"until": null}),
            ],
        ),
        (
            "resolve",
            vec![
                json!({}),
                json!({"seq": 0}),
                json!({"sha256": "a".repeat(64)}),
                json!({"seq": -1, "sha256": "a".repeat(64)}),
                json!({"seq": 0, "sha256": "a"}),
            ],
        ),
    ] {
        for body in bodies {
            let reply = app.change("t", verb, body).await;
            reply.is_problem(ErrorCode::InvalidLease);
        }
    }
    for segment in ["%00", "%ff", "%zz", &"x".repeat(201), "a%0Ab"] {
        let reply = app.get(&format!("{LEASES}/{segment}")).await;
        reply.is_problem(ErrorCode::InvalidLease);
    }
    let hold = saved.at("/hold");
    for body in [
        json!({}),
        json!({"name": "h"}),
        json!({"reason": "r"}),
        json!({"name": "", "reason": "r"}),
        json!({"name": "x".repeat(129), "reason": "r"}),
        json!({"name": "h", "reason": "x".repeat(801)}),
        json!({"name": "h\u{1b}", "reason": "r"}),
    ] {
        app.post(&hold, body)
            .await
            .is_problem(ErrorCode::InvalidLease);
    }
    for query in ["", "?name=", "?name=a%0Ab", "?name=a&reason=b"] {
        let lift = app
            .ask(Method::DELETE, &format!("{hold}{query}"), &[])
            .await;
        lift.is_problem(ErrorCode::InvalidParameter);
    }
    for query in [
        "state=done",
        "owner=A",
        "limit=0",
        "limit=1001",
        "cursor=*",
        "cursor=",
        "after=a",
    ] {
        let reply = app.get(&format!("{LEASES}?{query}")).await;
        reply.is_problem(ErrorCode::InvalidParameter);
    }
    let huge = app.post(LEASES, spoilt("source_id", long(20_000))).await;
    huge.is_problem(ErrorCode::BodyTooLarge);
    for body in ["{", "{\"transaction_id\":\"\\ud800\"}", "\u{feff}{}"] {
        let reply = app
            .send(request(Method::POST, LEASES, &[], Body::from(body)))
            .await;
        reply.is_problem(ErrorCode::InvalidLease);
    }
    let coded = [("content-encoding", "gzip")];
    let reply = app
        .send(request(Method::POST, LEASES, &coded, Body::from("{}")))
        .await;
    reply.is_problem(ErrorCode::InvalidHeader);
    assert_eq!(server.log().entries().len(), before, "the store was asked");
}
