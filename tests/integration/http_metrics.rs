//! `/metrics`: what is counted, on a listener of its own, and that no caller makes it grow.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use http_body_util::BodyExt;
use spillbox::http::admin;
use spillbox::http::request_id::RequestIds;
use spillbox::ids::SeededIds;
use tower::ServiceExt;

use crate::support::app::{Backend, Saved, TestApp, escape, request, shared};
use crate::support::program::{Place, Service, bare, http_get, isolated, succeed, write};

fn admin_of(app: &TestApp) -> Router {
    let ids = RequestIds::new(shared(&app.clock), Arc::new(SeededIds::new(8)));
    admin::router(app.state.clone(), ids)
}

async fn scrape(app: &TestApp) -> String {
    let sent = request(Method::GET, "/metrics", &[], Body::empty());
    let reply = admin_of(app).oneshot(sent).await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
    let kind = reply.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(text.to_vec()).unwrap()
}

#[track_caller]
fn shows(text: &str, line: &str) {
    assert!(text.lines().any(|known| known == line), "{line}\n{text}");
}

fn series(text: &str) -> BTreeSet<&str> {
    let samples = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    samples
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect()
}

#[tokio::test]
async fn saves_reads_and_failures_are_counted() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.put("call_id=a", "12345").await;
    app.put("call_id=a", "12345").await;
    app.get(&saved.path).await;
    app.ask(Method::GET, &saved.path, &[("Range", "bytes=0-1")])
        .await;
    app.ask(Method::HEAD, &saved.path, &[]).await;
    app.get("/a/nothing").await;
    app.get(&saved.at("?x=1")).await;
    let text = scrape(&app).await;
    shows(&text, "spillbox_saves_total{outcome=\"new\"} 1");
    shows(&text, "spillbox_saves_total{outcome=\"repeat\"} 1");
    shows(&text, "spillbox_saved_bytes_total 5");
    shows(
        &text,
        "spillbox_read_back_bytes_total{route=\"/a/{locator}\"} 7",
    );
    shows(
        &text,
        "spillbox_failures_total{code=\"artifact_not_found\"} 1",
    );
    shows(
        &text,
        "spillbox_failures_total{code=\"invalid_parameter\"} 1",
    );
    let of = |route: &str, method: &str, status: u16, count: u32| {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        shows(
            &text,
            &format!("spillbox_http_requests_total{{{labels}}} {count}"),
        );
    };
    of("/v1/sessions/{session}/artifacts", "POST", 201, 1);
    of("/v1/sessions/{session}/artifacts", "POST", 200, 1);
    of("/a/{locator}", "GET", 200, 1);
    of("/a/{locator}", "GET", 206, 1);
    of("/a/{locator}", "HEAD", 200, 1);
    of("/a/{locator}", "GET", 404, 1);
    of("/a/{locator}", "GET", 400, 1);
    shows(&text, "spillbox_ready 1");
    shows(&text, "spillbox_uploads_in_flight 0");
    app.state.start_draining();
    shows(&scrape(&app).await, "spillbox_ready 0");
}

#[tokio::test]
async fn hostile_paths_methods_and_ids_make_no_series() {
    let app = TestApp::new(Backend::Memory).await;
    let ask = async |method: &str, path: &str| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let sent = request(method, path, &[], Body::empty());
        // Past the contract on purpose: most of these are no operation of it.
        app.router.clone().oneshot(sent).await.unwrap()
    };
    let round = async |number: usize| {
        let name = format!("hostile{number}");
        for path in [
            format!("/{name}"),
            format!("/a/{name}"),
            format!("/a/{name}/lines"),
            format!("/a/{name}/{name}"),
            format!("/v1/sessions/{name}/artifacts?tool={name}"),
            format!("/v1/sessions/{}/artifacts?{name}=1", escape("a\"b\\c\nd{}")),
        ] {
            for method in ["GET", "HEAD", "DELETE", &format!("M{number}"), "{\"}"] {
                if Method::from_bytes(method.as_bytes()).is_ok() {
                    ask(method, &path).await;
                }
            }
        }
        app.save(
            &name,
            &format!("tool={name}&call_id={name}"),
            &[],
            name.clone(),
        )
        .await;
    };
    round(0).await;
    let first = scrape(&app).await;
    for number in 1..50 {
        round(number).await;
    }
    let last = scrape(&app).await;
    assert_eq!(series(&last), series(&first));
    assert!(
        !last.contains("hostile") && !last.contains("M1\""),
        "{last}"
    );
    shows(&last, "spillbox_saves_total{outcome=\"new\"} 50");
}

#[tokio::test]
async fn the_metrics_are_not_on_the_apis_listener_and_nothing_else_is_on_theirs() {
    let app = TestApp::new(Backend::Memory).await;
    assert_eq!(app.get("/metrics").await.status, StatusCode::NOT_FOUND);
    let saved = app.put("", "secret").await;
    let router = admin_of(&app);
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        (saved.path.as_str(), 404),
        ("/v1/sessions/s/artifacts", 404),
        ("/openapi.yaml", 404),
    ] {
        let sent = request(Method::GET, path, &[], Body::empty());
        let reply = router.clone().oneshot(sent).await.unwrap();
        assert_eq!(reply.status(), status, "{path}");
    }
}

#[test]
fn a_running_service_counts_what_its_store_was_asked_for_by_class_of_key() {
    let place = Place::store();
    let store = place.store_url();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--store", &store];
    let mut serve = bare(&listen);
    serve.args(["--admin-listen", "127.0.0.1:0"]);
    let service = Service::ready(serve);
    let large = vec![b'x'; 9_000_000];
    write(&place.file("large"), &large);
    let url = format!("{}/v1/sessions/s/artifacts?call_id=c", service.url);
    let file = place.file("large");
    succeed(isolated(
        "curl",
        &["-fsS", "-T", file.to_str().unwrap(), &url],
    ));
    let admin = service.admin.clone().unwrap();
    let (status, text) = http_get(&admin).unwrap();
    assert_eq!(status, 200);
    shows(
        &text,
        "spillbox_store_written_bytes_total{key_class=\"body\"} 9000000",
    );
    shows(
        &text,
        "spillbox_store_written_bytes_total{key_class=\"foreign\"} 0",
    );
    // Attestation sends parts and completes uploads too.
    for (operation, least) in [("put_part", 2), ("complete_upload", 1)] {
        let series =
            format!("spillbox_store_requests_total{{operation=\"{operation}\",outcome=\"ok\"}} ");
        let count = text.lines().find_map(|line| line.strip_prefix(&series));
        assert!(count.unwrap().parse::<u64>().unwrap() >= least, "{text}");
    }
    for class in [
        "format",
        "session",
        "manifest",
        "call_record",
        "attest",
        "probe",
    ] {
        let zero = format!("spillbox_store_written_bytes_total{{key_class=\"{class}\"}} 0");
        let line = zero.strip_suffix('0').unwrap();
        assert!(
            text.contains(line) && !text.lines().any(|known| known == zero),
            "{class}"
        );
    }
    let start = text
        .lines()
        .find(|line| line.starts_with("process_start_time_seconds "));
    let start: f64 = start.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!(start > 1.7e9, "{start}");
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
}

#[test]
fn an_admin_address_that_is_taken_ends_the_service_with_a_reason() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::store();
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.args(["--admin-listen", &taken.local_addr().unwrap().to_string()]);
    let (status, _, errors) = crate::support::program::outcome(serve);
    assert_eq!(status, 1, "{errors}");
    assert!(errors.contains("--admin-listen"), "{errors}");
}

#[tokio::test]
async fn a_session_is_told_what_of_its_content_was_taken() {
    let app = TestApp::new(Backend::Memory).await;
    let saved = app.save("s-1", "call_id=a", &[], "12345").await;
    let saved = Saved::of(&saved);
    let usage = async |session: &str| {
        let reply = app.get(&format!("/v1/sessions/{session}/usage")).await;
        reply.json()["read_back_bytes"].as_u64().unwrap()
    };
    app.get(&saved.path).await;
    app.ask(Method::GET, &saved.path, &[("Range", "bytes=0-1")])
        .await;
    assert_eq!(usage("s-1").await, 7);
    // Neither heads, descriptions nor refusals are content.
    app.ask(Method::HEAD, &saved.path, &[]).await;
    app.get(&saved.at("/stat")).await;
    app.get(&saved.at("?x=1")).await;
    assert_eq!(usage("s-1").await, 7);
    let mut taken = 7;
    for reader in ["/lines", "/grep?pattern=3", "/outline", "/replacement"] {
        taken += app.get(&saved.at(reader)).await.body.len() as u64;
        assert_eq!(usage("s-1").await, taken, "{reader}");
    }
    assert_eq!(usage("s-2").await, 0);
}
