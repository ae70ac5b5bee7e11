//! Every route, tried by everybody who may not: the table of routes is the service's own, so that a new
//! one is tried as well.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use rstest::rstest;
use serde_json::json;
use spillbox::auth::{Scope, TokenEntry};
use spillbox::error::ErrorCode;
use spillbox::http::app::route_table;
use spillbox::http::operation::Operation;
use spillbox::http::route::Guard;

use crate::support::app::{Backend, Reply, Saved, TestApp, request, send_to, token};

const OWN: &str = "sbx_own-0123456789abcdef";
const FOREIGN: &str = "sbx_foreign-0123456789abcdef";
const UNKNOWN: &str = "sbx_unknown-0123456789abcdef";

/// A token with every scope but one.
fn without(scope: Scope) -> String {
    format!("sbx_without-{scope}-0123456789")
}

fn tokens() -> Vec<TokenEntry> {
    let all = Scope::ALL.as_slice();
    let mut tokens = vec![token(OWN, "acme", all), token(FOREIGN, "other", all)];
    for missing in Scope::ALL {
        let rest: Vec<_> = Scope::ALL.into_iter().filter(|s| *s != missing).collect();
        tokens.push(token(&without(missing), "acme", &rest));
    }
    tokens
}

/// A service with tokens, and an artifact of `acme` in it.
struct Guarded {
    app: TestApp,
    router: Router,
    saved: Saved,
}

impl Guarded {
    async fn new(backend: Backend) -> Self {
        let app = TestApp::new(backend).await;
        let router = app.guarded(&tokens());
        let path = "/v1/sessions/s/artifacts?call_id=c&tool=t";
        let reply = ask(&router, Method::POST, path, Some(OWN), &[]).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        let saved = Saved::of(&reply);
        Self { app, router, saved }
    }

    /// Makes a plan of `acme` and puts its name into the path.
    async fn with_plan(&self, path: String) -> String {
        if !path.contains(NO_PLAN) {
            return path;
        }
        let made = self.ask(Method::POST, "/v1/gc/plans", Some(OWN)).await;
        let plan = made.json()["plan_id"].as_str().unwrap().to_owned();
        path.replace(NO_PLAN, &plan)
    }

    async fn ask(&self, method: Method, path: &str, token: Option<&str>) -> Reply {
        ask(&self.router, method, path, token, &[]).await
    }

    /// A path of the template that leads to the artifact, with what its operation cannot do without.
    fn path(&self, template: &str) -> String {
        let locator = self.saved.path.strip_prefix("/a/").unwrap();
        fill(template, locator)
    }

    /// Claims the artifact under `name`.
    async fn prepare(&self, token: &str, name: &str) -> Reply {
        let claim = json!({
            "transaction_id": name,
            "source_id": self.saved.receipt["source_id"],
            "content_sha256": self.saved.receipt["digest"],
            "reference_count": 1,
            "retain_until": null,
        });
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let path = "/v1/sessions/s/leases";
        let body = Body::from(claim.to_string());
        send_to(&self.router, request(Method::POST, path, &headers, body)).await
    }

    /// Prepares the lease that an operation's path names, as far as the operation needs it.
    async fn make_way(&self, operation: Operation) {
        let name = transaction_of(operation);
        let committed = matches!(operation, Operation::Release | Operation::Extend);
        if name == "t" {
            return;
        }
        let prepared = self.prepare(OWN, name).await;
        assert!(prepared.status.is_success(), "{}", prepared.text());
        if committed {
            let path = format!("/v1/sessions/s/leases/{name}/commit");
            let reply = self.ask(Method::POST, &path, Some(OWN)).await;
            assert!(reply.status.is_success(), "{}", reply.text());
        }
    }

    fn store_requests(&self) -> usize {
        let server = self.app.s3.as_ref();
        server.map_or(0, |server| server.log().entries().len())
    }
}

/// A name that no plan has.
const NO_PLAN: &str = "019ad0c4-7d5e-7c3b-8a4f-0123456789ab";

fn fill(template: &str, locator: &str) -> String {
    let path = template
        .replace("{session}", "s")
        .replace("{txn}", "t")
        .replace("{id}", NO_PLAN)
        .replace("{turn}", "t")
        .replace("{locator}", locator);
    assert!(
        !path.contains('{'),
        "a place holder without a value: {path}"
    );
    if template.ends_with("/grep") {
        format!("{path}?pattern=content")
    } else {
        path
    }
}

async fn ask(
    router: &Router,
    method: Method,
    path: &str,
    token: Option<&str>,
    headers: &[(&str, &str)],
) -> Reply {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = headers.to_vec();
    if let Some(bearer) = &bearer {
        headers.push(("Authorization", bearer));
    }
    let body = if let Some(json) = json_of(&method, path) {
        Body::from(json)
    } else if method == Method::POST || method == Method::PUT {
        let whose = if token == Some(FOREIGN) {
            "theirs"
        } else {
            "acme's"
        };
        Body::from(format!("content: {whose}"))
    } else {
        Body::empty()
    };
    send_to(router, request(method, path, &headers, body)).await
}

/// A lease of its own for each operation that ends one.
fn transaction_of(operation: Operation) -> &'static str {
    let named = [
        (Operation::Commit, "t-commit"),
        (Operation::Abort, "t-abort"),
        (Operation::Release, "t-release"),
        (Operation::Extend, "t-extend"),
        (Operation::Erase, "t-erase"),
        (Operation::GetLease, "t-read"),
        (Operation::Reconcile, "t-reconcile"),
        (Operation::Resolve, "t-read"),
    ];
    let found = named.iter().find(|(known, _)| *known == operation);
    found.map_or("t", |(_, name)| name)
}

/// The body of an operation whose request is JSON: one that succeeds for the owner of the lease `t`,
/// whatever was asked before.
fn json_of(method: &Method, path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap();
    let last = path
        .rsplit('/')
        .next()
        .filter(|_| *method == Method::POST)?;
    if path.contains("/turns/") {
        return Some(r#"{"results":[{"call_id":"c","text":"content"}]}"#);
    }
    Some(match last {
        "hold" => r#"{"name":"h","reason":"audit"}"#,
        "tokens" => r#"{"ttl_seconds":60,"scopes":["read"]}"#,
        "capability" => r#"{"ttl_seconds":60}"#,
        "commit" | "abort" | "reconcile" | "release" | "verify" => "{}",
        "extend" => r#"{"retain_until":null}"#,
        "resolve" => {
            r#"{"seq":0,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}"#
        }
        "clear" => r#"{"seq":0,"reason":"looked at it"}"#,
        "mcp" => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        "plans" => "{}",
        "apply" => {
            r#"{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}"#
        }
        _ => return None,
    })
}

/// A hold is lifted by its name.
fn lifting(method: &Method, path: String) -> String {
    match *method == Method::DELETE && path.ends_with("/hold") {
        true => format!("{path}?name=h"),
        false => path,
    }
}

/// Every guarded method of every path; HEAD wherever there is GET.
fn guarded_methods() -> Vec<(Method, &'static str, Operation)> {
    let mut all = Vec::new();
    for (template, methods) in route_table() {
        for (method, guard) in methods {
            let Guard::Needs(operation) = guard else {
                continue;
            };
            if method == Method::GET {
                all.push((Method::HEAD, template, operation));
            }
            all.push((method, template, operation));
        }
    }
    assert!(all.len() >= 18, "{}", all.len());
    all
}

fn challenge(reply: &Reply) -> &str {
    reply.header("www-authenticate")
}

#[rstest]
#[tokio::test]
async fn every_route_lets_in_exactly_who_may(
    #[values(Backend::Memory, Backend::Local, Backend::S3)] backend: Backend,
) {
    let guarded = Guarded::new(backend).await;
    for (method, template, operation) in guarded_methods() {
        let path = guarded.path(template);
        let path = path.replace(
            "/leases/t",
            &format!("/leases/{}", transaction_of(operation)),
        );
        let path = guarded.with_plan(path).await;
        let place = format!("{method} {path}");
        let before = guarded.store_requests();

        let nobody = guarded.ask(method.clone(), &path, None).await;
        assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{place}");
        assert_eq!(challenge(&nobody), "Bearer", "{place}");

        let unknown = guarded.ask(method.clone(), &path, Some(UNKNOWN)).await;
        assert_eq!(unknown.status, StatusCode::UNAUTHORIZED, "{place}");
        assert_eq!(challenge(&unknown), "Bearer error=\"invalid_token\"");

        let scope = operation.scope();
        let lacking = without(scope);
        let lacking = guarded.ask(method.clone(), &path, Some(&lacking)).await;
        assert_eq!(lacking.status, StatusCode::FORBIDDEN, "{place}");
        assert_eq!(
            challenge(&lacking),
            format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"")
        );
        if method != Method::HEAD {
            nobody.is_problem(ErrorCode::Unauthenticated);
            unknown.is_problem(ErrorCode::Unauthenticated);
            let problem = lacking.is_problem(ErrorCode::InsufficientScope);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(&format!("`{scope}`")), "{detail}");
        }
        assert_eq!(guarded.store_requests(), before, "{place}: refused");

        let path = if operation == Operation::Lift {
            format!("{path}?name=h")
        } else {
            path
        };
        guarded.make_way(operation).await;
        let try_as = async |token| {
            if operation == Operation::Prepare {
                guarded.prepare(token, "t").await
            } else {
                guarded.ask(method.clone(), &path, Some(token)).await
            }
        };
        let own = try_as(OWN).await;
        if operation == Operation::Erase {
            // What a lease protects is not erased, whoever asks.
            own.is_problem(ErrorCode::ArtifactLeased);
        } else if operation == Operation::GcApply {
            // Another digest is asked about, and nothing was applied.
            own.is_problem(ErrorCode::GcRefused);
        } else if operation == Operation::GcReport {
            assert_eq!(own.status, StatusCode::NOT_FOUND, "{place}");
        } else {
            assert!(own.status.is_success(), "{place}: {}", own.text());
        }

        let foreign = try_as(FOREIGN).await;
        let names = ["{locator}", "{txn}", "{id}"];
        let names_theirs = names.iter().any(|name| template.contains(name));
        if operation == Operation::Resolve {
            // Nothing names the lease in the question, and the answer has none.
            assert!(foreign.json()["lease"].is_null(), "{place}");
        } else if names_theirs || operation == Operation::Prepare {
            assert_eq!(foreign.status, StatusCode::NOT_FOUND, "{place}");
        } else {
            assert!(foreign.status.is_success(), "{place}");
        }
        assert!(!foreign.text().contains("acme"), "{place}");
    }
}

#[tokio::test]
async fn what_tells_of_no_tenant_needs_no_token() {
    let guarded = Guarded::new(Backend::Memory).await;
    let mut public = Vec::new();
    for (template, methods) in route_table() {
        for (method, guard) in methods {
            if guard == Guard::Public {
                let reply = guarded.ask(method, template, None).await;
                assert_eq!(reply.status, StatusCode::OK, "{template}");
                public.push(template);
            }
        }
    }
    assert_eq!(public, ["/livez", "/healthz", "/readyz", "/openapi.yaml"]);
    // Nor does a path that leads nowhere.
    let nowhere = guarded.ask(Method::GET, "/nope", None).await;
    nowhere.is_problem(ErrorCode::RouteNotFound);
}

/// Requests that the reads of one locator cost the store, and the replies.
async fn priced(guarded: &Guarded, method: &Method, path: &str) -> (usize, Reply) {
    let before = guarded.store_requests();
    let fixed = [("x-request-id", "same")];
    let reply = ask(&guarded.router, method.clone(), path, Some(FOREIGN), &fixed).await;
    (guarded.store_requests() - before, reply)
}

#[tokio::test]
async fn a_foreign_artifact_is_an_unknown_one_in_every_reply_and_at_the_same_price() {
    let guarded = Guarded::new(Backend::S3).await;
    // What another tenant's caller finds cached must not show either.
    for template in ["/a/{locator}", "/a/{locator}/stat"] {
        let own = guarded
            .ask(Method::GET, &guarded.path(template), Some(OWN))
            .await;
        assert_eq!(own.status, StatusCode::OK);
    }
    let unknown = format!("{:026}.{:026}", 1, 2);
    let own_session = guarded.saved.path["/a/".len()..].split('.').next().unwrap();
    let unknown_in_session = format!("{own_session}.{:026}", 3);
    let mut tried = 0;
    for (method, template, _) in guarded_methods() {
        if !template.contains("{locator}") {
            continue;
        }
        let place = lifting(&method, guarded.path(template));
        let (price, reply) = priced(&guarded, &method, &place).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method} {template}");
        for locator in [&unknown, &unknown_in_session] {
            let path = lifting(&method, fill(template, locator));
            let (price_of_unknown, of_unknown) = priced(&guarded, &method, &path).await;
            assert_eq!(reply.body, of_unknown.body, "{method} {template}");
            assert_eq!(reply.headers, of_unknown.headers, "{method} {template}");
            assert_eq!(price, price_of_unknown, "{method} {template}");
        }
        tried += 1;
    }
    assert!(tried >= 14, "{tried}");
}

#[tokio::test]
async fn conditions_and_ranges_do_not_tell_a_foreign_artifact_either() {
    let guarded = Guarded::new(Backend::Memory).await;
    let digest = guarded.saved.receipt["digest"].as_str().unwrap();
    let etag = format!("\"{digest}\"");
    let headers: [&[(&str, &str)]; 5] = [
        &[("Range", "bytes=0-0")],
        &[("Range", "bytes=999999-")],
        &[("If-None-Match", &etag)],
        &[("If-Match", "\"sha256:0\"")],
        &[("Range", "bytes=0-0"), ("If-Range", &etag)],
    ];
    for fields in headers {
        for method in [Method::GET, Method::HEAD] {
            let path = &guarded.saved.path;
            let reply = ask(&guarded.router, method, path, Some(FOREIGN), fields).await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn each_tenant_lists_and_saves_its_own_under_the_same_names() {
    let guarded = Guarded::new(Backend::Memory).await;
    let list = "/v1/sessions/s/artifacts";
    let theirs = guarded.ask(Method::GET, list, Some(FOREIGN)).await;
    assert_eq!(theirs.json(), serde_json::json!({"artifacts": []}));
    let path = format!("{list}?call_id=c&tool=t");
    let saved = guarded.ask(Method::POST, &path, Some(FOREIGN)).await;
    assert_eq!(saved.status, StatusCode::CREATED);
    let id = &saved.json()["artifact_id"];
    assert_ne!(*id, guarded.saved.receipt["artifact_id"]);
    for (token, own) in [(OWN, &guarded.saved.receipt["artifact_id"]), (FOREIGN, id)] {
        let page = guarded.ask(Method::GET, list, Some(token)).await.json();
        let artifacts = page["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0]["artifact_id"], *own);
    }
    let keys = guarded.app.keys_of('b').await;
    assert_eq!(
        keys.iter().filter(|key| key.contains("/t/acme/")).count(),
        1
    );
    assert_eq!(
        keys.iter().filter(|key| key.contains("/t/other/")).count(),
        1
    );
}

#[tokio::test]
async fn a_fork_needs_a_parent_of_its_own_tenant_and_the_right_to_read_it() {
    let guarded = Guarded::new(Backend::Memory).await;
    let fork = "/v1/sessions/fork/artifacts?call_id=c&parent=s";
    let lacking = without(Scope::Read);
    let reply = guarded.ask(Method::POST, fork, Some(&lacking)).await;
    let problem = reply.is_problem(ErrorCode::InsufficientScope);
    assert!(problem["detail"].as_str().unwrap().contains("`read`"));
    // For another tenant it does not exist.
    let foreign = guarded.ask(Method::POST, fork, Some(FOREIGN)).await;
    foreign.is_problem(ErrorCode::ParentNotFound);
    let unknown = "/v1/sessions/fork/artifacts?call_id=c&parent=nowhere";
    let unknown = guarded.ask(Method::POST, unknown, Some(FOREIGN)).await;
    unknown.is_problem(ErrorCode::ParentNotFound);
    assert_eq!(guarded.app.keys_of('s').await.len(), 1);
    let own = guarded.ask(Method::POST, fork, Some(OWN)).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text());
    assert_eq!(
        own.json()["artifact_id"],
        guarded.saved.receipt["artifact_id"]
    );
    // Without the parent's name a token that only saves goes on in the fork.
    let more = "/v1/sessions/fork/artifacts?call_id=d";
    let more = guarded.ask(Method::POST, more, Some(&lacking)).await;
    assert_eq!(more.status, StatusCode::CREATED);
}

#[tokio::test]
async fn who_may_not_learns_nothing_from_malformed_requests() {
    let guarded = Guarded::new(Backend::Memory).await;
    let lacking_read = without(Scope::Read);
    let lacking_save = without(Scope::Save);
    for (method, path, lacking) in [
        (Method::GET, "/a/nonsense?x=1", &lacking_read),
        (Method::GET, "/a/%zz/lines?limit=-1", &lacking_read),
        (Method::GET, "/v1/sessions/%zz/artifacts", &lacking_read),
        (Method::GET, "/a/x/grep", &lacking_read),
        (
            Method::POST,
            "/v1/sessions/../artifacts?tool=a&tool=b",
            &lacking_save,
        ),
        (
            Method::PUT,
            "/v1/sessions/s/artifacts?nonsense=1",
            &lacking_save,
        ),
    ] {
        let nobody = guarded.ask(method.clone(), path, None).await;
        nobody.is_problem(ErrorCode::Unauthenticated);
        let reply = guarded.ask(method, path, Some(lacking)).await;
        reply.is_problem(ErrorCode::InsufficientScope);
    }
}

#[tokio::test]
async fn a_refused_body_is_not_read() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let guarded = Guarded::new(Backend::Memory).await;
    let was_read = Arc::new(AtomicBool::new(false));
    let noticing = Arc::clone(&was_read);
    let body = Body::from_stream(futures_util::stream::poll_fn(move |_| {
        noticing.store(true, Ordering::Relaxed);
        std::task::Poll::Ready(Some(Ok::<_, std::io::Error>("x")))
    }));
    // Who expects a go-ahead gets the refusal instead of it.
    let headers = [("Expect", "100-continue")];
    let path = "/v1/sessions/s/artifacts";
    let reply = send_to(&guarded.router, request(Method::POST, path, &headers, body)).await;
    reply.is_problem(ErrorCode::Unauthenticated);
    tokio::task::yield_now().await;
    assert!(!was_read.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_token_counts_in_the_authorization_header_alone_and_is_never_shown() {
    let guarded = Guarded::new(Backend::Memory).await;
    let path = &guarded.saved.path;
    let bearer = format!("Bearer {OWN}");
    let basic = format!("Basic {OWN}");
    let cookie = format!("token={OWN}; Authorization={OWN}");
    let comma = format!("Bearer {OWN}, Bearer {OWN}");
    let headers: [&[(&str, &str)]; 9] = [
        &[("Authorization", OWN)],
        &[("Authorization", &basic)],
        &[("Authorization", &comma)],
        &[("Authorization", &bearer), ("Authorization", &bearer)],
        &[("Proxy-Authorization", &bearer)],
        &[("X-Api-Key", OWN)],
        &[("Cookie", &cookie)],
        &[("X-Forwarded-User", "acme"), ("X-Tenant", "acme")],
        &[
            ("X-Original-URL", "/livez"),
            ("X-HTTP-Method-Override", "HEAD"),
        ],
    ];
    let mut replies = Vec::new();
    for fields in headers {
        let reply = send_to(
            &guarded.router,
            request(Method::GET, path, fields, Body::empty()),
        );
        replies.push(reply.await);
    }
    for rest in [
        format!("?access_token={OWN}"),
        format!("?token={OWN}"),
        format!("/lines?authorization=Bearer%20{OWN}"),
    ] {
        replies.push(
            guarded
                .ask(Method::GET, &format!("{path}{rest}"), None)
                .await,
        );
    }
    for path in [
        format!("/a/{OWN}"),
        format!("/v1/sessions/{OWN}/artifacts"),
        format!("/a/{OWN}@x/lines"),
    ] {
        replies.push(guarded.ask(Method::GET, &path, None).await);
    }
    for reply in &replies {
        reply.is_problem(ErrorCode::Unauthenticated);
    }
    let nowhere = guarded.ask(Method::GET, &format!("/{OWN}"), None).await;
    nowhere.is_problem(ErrorCode::RouteNotFound);
    replies.push(nowhere);
    replies.push(guarded.ask(Method::GET, path, Some(UNKNOWN)).await);
    for reply in &replies {
        let head = format!("{:?}", reply.headers);
        for token in [OWN, UNKNOWN] {
            assert!(!reply.text().contains(token), "{}", reply.text());
            assert!(!head.contains(token), "{head}");
        }
    }
}

#[tokio::test]
async fn no_spelling_of_a_path_reaches_another_tenant() {
    let guarded = Guarded::new(Backend::Local).await;
    let locator = guarded.saved.path.strip_prefix("/a/").unwrap();
    let (session, artifact) = locator.split_once('.').unwrap();
    let paths = [
        format!("//a/{locator}"),
        format!("/a//{locator}"),
        format!("/a/./{locator}"),
        format!("/a/../a/{locator}"),
        format!("/a/{locator}/"),
        format!("/a/{locator}/../stat"),
        format!("/a/{locator}%2fstat"),
        format!("/a/{locator}%00"),
        format!("/a/acme%2f{locator}"),
        format!("/a/..%2f..%2ft%2facme%2fb%2f{session}%2f{artifact}"),
        format!("/a/{locator};tenant=acme"),
        format!("/a/{locator}?tenant=acme"),
        format!("/a/{locator}?Range=bytes=0-"),
        format!("/A/{locator}"),
        format!("/v1/t/acme/b/{session}/{artifact}"),
        "/v1/sessions/..%2f..%2facme%2fs/artifacts?tenant=acme".to_owned(),
        "/v1/sessions/acme%2Fs/artifacts".to_owned(),
        "/v1/sessions/s%00/artifacts".to_owned(),
        "/v1/sessions/s/artifacts?tool=t%0d%0aX-Tenant:%20acme".to_owned(),
    ];
    for path in paths {
        for method in [Method::GET, Method::HEAD] {
            let reply = guarded.ask(method.clone(), &path, Some(FOREIGN)).await;
            if reply.status.is_success() {
                let is_list =
                    reply.body.is_empty() || reply.json()["artifacts"] == serde_json::json!([]);
                assert!(is_list, "{path}: {}", reply.text());
            } else {
                assert!(reply.status.is_client_error(), "{path}: {}", reply.status);
            }
            assert!(!reply.text().contains("acme's"), "{path}");
        }
    }
}

#[tokio::test]
async fn line_breaks_in_parameters_make_no_header() {
    let guarded = Guarded::new(Backend::Memory).await;
    let evil = "x%0d%0aX-Evil:%201";
    for parameter in ["tool", "label", "name", "title", "summary", "call_id"] {
        let path = format!("/v1/sessions/{evil}/artifacts?{parameter}={evil}");
        let saved = guarded.ask(Method::POST, &path, Some(OWN)).await;
        assert_eq!(saved.status, StatusCode::CREATED, "{}", saved.text());
        let locator = Saved::of(&saved).path;
        for rest in [
            "",
            "/stat",
            "/lines",
            "/reference",
            "/replacement",
            "/outline",
        ] {
            let path = format!("{locator}{rest}");
            let reply = guarded.ask(Method::GET, &path, Some(OWN)).await;
            assert_eq!(reply.status, StatusCode::OK);
            assert!(!reply.headers.contains_key("x-evil"), "{parameter}{rest}");
            for value in reply.headers.values() {
                assert!(!value.as_bytes().contains(&b'\n'), "{parameter}{rest}");
            }
        }
        assert!(!saved.headers.contains_key("x-evil"));
    }
}
