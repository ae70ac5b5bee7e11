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

fn fill(template: &str, locator: &str) -> String {
    let path = template
        .replace("{session}", "s")
        .replace("{txn}", "t")
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
    match operation {
        Operation::Commit => "t-commit",
        Operation::Abort => "t-abort",
        Operation::Release => "t-release",
        Operation::Extend => "t-extend",
        Operation::GetLease | Operation::Resolve => "t-read",
        _ => "t",
    }
}

/// The body of an operation whose request is JSON: one that succeeds for the owner of the lease `t`,
/// whatever was asked before.
fn json_of(method: &Method, path: &str) -> Option<&'static str> {
    let path = path.split('?').next().unwrap();
    let last = path
        .rsplit('/')
        .next()
        .filter(|_| *method == Method::POST)?;
    Some(match last {
        "hold" => r#"{"name":"h","reason":"audit"}"#,
        "commit" | "abort" | "release" | "verify" => "{}",
        "extend" => r#"{"retain_until":null}"#,
        "resolve" => {
            r#"{"seq":0,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}"#
        }
        "clear" => r#"{"seq":0,"reason":"looked at it"}"#,
        _ => return None,
    })
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

        let path = match operation {
            Operation::Lift => format!("{path}?name=h"),
            _ => path,
        };
        guarded.make_way(operation).await;
        let own = match operation {
            Operation::Prepare => guarded.prepare(OWN, "t").await,
            _ => guarded.ask(method.clone(), &path, Some(OWN)).await,
        };
        assert!(own.status.is_success(), "{place}: {}", own.text());

        let foreign = match operation {
            Operation::Prepare => guarded.prepare(FOREIGN, "t").await,
            _ => guarded.ask(method.clone(), &path, Some(FOREIGN)).await,
        };
        let names_theirs = template.contains("{locator}") || template.contains("{txn}");
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
