//! A secret word in everything that a caller can say, and then in nothing that the service writes down.
//!
//! Where it may come back: to the caller itself, in the place that it was sent for (bytes, receipts,
//! lists), and in a problem's `detail`, as a short excerpt of the one parameter that has to be corrected.
//! Never in logs at any level, the audit stream, metrics, hints, or errors about something else.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use spillbox::digest::Sha256Digest;

use crate::support::program::{Place, Service, http_get, write};

/// Each use adds where it was said, so that a leak names its way.
const WORD: &str = "kanarienvogel";

/// The codes whose `detail` quotes the caller: what it must correct, up to 80 characters.
const QUOTING: &[&str] = &[
    "invalid_header",
    "invalid_parameter",
    "invalid_pattern",
    "invalid_session",
    "parent_conflict",
    "parent_not_found",
    "route_not_found",
    "method_not_allowed",
];

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// An error: whatever it is, the word stands at most in the detail of a code that quotes.
    #[track_caller]
    fn is_problem(&self, code: &str) {
        let problem: Value = serde_json::from_str(&self.body).expect("a problem");
        assert_eq!(problem["code"], code, "{problem:#}");
        for (name, member) in problem.as_object().unwrap() {
            let may_quote = name == "detail" && QUOTING.contains(&code);
            assert!(
                may_quote || !member.to_string().contains(WORD),
                "{problem:#}"
            );
        }
        assert!(
            problem["detail"].as_str().unwrap().chars().count() < 400,
            "{problem:#}"
        );
        assert!(
            !self.body.contains("kanarienvogel-authorization"),
            "{problem:#}"
        );
        assert!(!self.head.contains(WORD), "{}", self.head);
    }
}

fn ask(service: &Service, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let host = service.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Authorization: Bearer {WORD}-authorization\r\nCookie: {WORD}-cookie\r\n\
         X-Anything: {WORD}-header\r\nReferer: http://{WORD}-referer/\r\nUser-Agent: {WORD}-agent\r\n\
         X-Request-Id: {WORD}-request id with spaces\r\ntraceparent: {WORD}-trace\r\n\
         {headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A refusal may come before the whole body is taken.
    let _ = stream.write_all(body);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn said(place: &str) -> String {
    format!("{WORD}-{place}")
}

fn main_job(service: &Service) -> String {
    let description = [
        "tool",
        "call_id",
        "label",
        "name",
        "title",
        "summary",
        "completeness",
    ]
    .map(|name| match name {
        "completeness" => format!("completeness=upstream_truncated:{}", said("lost")),
        name => format!("{name}={}", said(name)),
    })
    .join("&");
    let target = format!("/v1/sessions/{}/artifacts?{description}", said("session"));
    let body = format!("{}\nerror: {}\n", said("body"), said("line")).repeat(2_000);
    let media = format!("Content-Type: text/plain; x={}\r\n", said("media"));
    let saved = ask(service, "POST", &target, &media, body.as_bytes());
    assert_eq!(saved.status, 201, "{}", saved.body);
    let receipt: Value = serde_json::from_str(&saved.body).unwrap();
    let again = ask(service, "POST", &target, &media, body.as_bytes());
    assert_eq!(again.status, 200, "{}", again.body);
    let large = format!("{}\n", said("large")).repeat(400_000);
    let streamed = ask(service, "PUT", &target, &media, large.as_bytes());
    assert_eq!(streamed.status, 201, "{}", streamed.body);
    let locator = receipt["locator"].as_str().unwrap();
    let path = locator.strip_prefix(&service.url).unwrap().to_owned();
    // The words of the hint are ours; a name of the caller's is in none.
    assert!(!receipt["retrieval_hint"].to_string().contains(WORD));
    let list = target.split('?').next().unwrap();
    for target in [
        path.clone(),
        format!("{path}/lines?limit=3"),
        format!("{path}/grep?pattern={}", said("line")),
        format!(
            "{path}/grep?mode=regex&ignore_case=true&pattern={}.",
            WORD.to_uppercase()
        ),
        format!("{path}/outline"),
        format!("{path}/stat"),
        format!("{path}/reference"),
        format!("{path}/replacement"),
        format!("{list}?tool={}", said("tool")),
    ] {
        let read = ask(service, "GET", &target, "", b"");
        assert_eq!(read.status, 200, "{target}: {}", read.body);
    }
    path
}

fn errors_of_each_kind(service: &Service, path: &str) {
    let artifacts = format!("/v1/sessions/{}/artifacts", said("session"));
    let word = said("wrong");
    let body = said("body");
    let problem = |method: &str, target: &str, headers: &str, code: &str| {
        ask(service, method, target, headers, body.as_bytes()).is_problem(code);
    };
    problem("GET", &format!("/{word}"), "", "route_not_found");
    problem(&word.to_uppercase(), &artifacts, "", "method_not_allowed");
    problem("GET", &format!("/a/{word}"), "", "artifact_not_found");
    problem(
        "GET",
        &format!("/a/{word}/grep?pattern={word}"),
        "",
        "artifact_not_found",
    );
    problem(
        "POST",
        &format!("{artifacts}?{word}={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "POST",
        &format!("{artifacts}?completeness={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "POST",
        &format!("{artifacts}?profile={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "POST",
        &format!("{artifacts}?means={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "POST",
        &format!("{artifacts}?tool={}", word.repeat(100)),
        "",
        "invalid_parameter",
    );
    problem(
        "POST",
        &format!("{artifacts}?parent={word}"),
        "",
        "parent_conflict",
    );
    problem(
        "POST",
        &format!("/v1/sessions/{word}/artifacts?parent={word}x"),
        "",
        "parent_not_found",
    );
    problem(
        "POST",
        &format!("/v1/sessions/{}/artifacts", word.repeat(50)),
        "",
        "invalid_session",
    );
    problem(
        "POST",
        &artifacts,
        &format!("Repr-Digest: sha-256=:{word}:\r\n"),
        "invalid_header",
    );
    problem(
        "POST",
        &artifacts,
        &format!("Content-Encoding: {word}\r\n"),
        "invalid_header",
    );
    let other = "Repr-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\r\n";
    problem("POST", &artifacts, other, "digest_mismatch");
    problem(
        "GET",
        &format!("{path}/grep?mode=regex&pattern=%28{word}"),
        "",
        "invalid_pattern",
    );
    problem(
        "GET",
        &format!("{path}/grep?pattern=x&cursor={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "GET",
        &format!("{path}/lines?offset={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "GET",
        &format!("{artifacts}?cursor={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "GET",
        &format!("{artifacts}?since={word}"),
        "",
        "invalid_parameter",
    );
    problem(
        "GET",
        path,
        "Range: bytes=99999999-\r\n",
        "range_not_satisfiable",
    );
    problem(
        "GET",
        path,
        &format!("If-Match: \"{word}\"\r\n"),
        "precondition_failed",
    );
    problem(
        "GET",
        &format!("/{}", word.repeat(3_300)),
        "",
        "uri_too_long",
    );
    // No request at all, with the word in it.
    for broken in [
        format!("{word}\r\n\r\n"),
        format!("GET /{} HTTP/1.1\r\n\r\n", word.repeat(6_000)),
    ] {
        let mut stream = TcpStream::connect(service.url.strip_prefix("http://").unwrap()).unwrap();
        let _ = stream.write_all(broken.as_bytes());
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        assert!(!reply.contains(WORD), "{reply}");
    }
}

fn nothing_is_written_down(
    place: &Place,
    mut serve: std::process::Command,
    variables: &[(&str, &str)],
) {
    serve.args([
        "--admin-listen",
        "127.0.0.1:0",
        "--audit-log",
        "audit.jsonl",
    ]);
    serve.envs(variables.iter().copied());
    let service = Service::ready(serve);
    let path = main_job(&service);
    errors_of_each_kind(&service, &path);
    let (status, metrics) = http_get(&service.admin.clone().unwrap()).unwrap();
    assert_eq!(status, 200);
    assert!(metrics.contains("spillbox_saves_total"), "{metrics}");
    assert!(!metrics.contains(WORD), "{metrics}");
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
    assert!(
        log.lines().count() > 30,
        "the log is there to be searched: {log}"
    );
    let lower = log.to_lowercase();
    let leaks: Vec<_> = lower.lines().filter(|line| line.contains(WORD)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let audit = std::fs::read_to_string(place.file("audit.jsonl")).unwrap();
    assert!(audit.lines().count() > 30, "{audit}");
    assert!(!audit.to_lowercase().contains(WORD), "{audit}");
    // Encoded it would be as readable: base64 of the word's first twelve bytes, and percent-encoding.
    assert!(
        !lower.contains("a2fuyxjpzw52") && !lower.contains("%6b%61%6e"),
        "{lower}"
    );
}

#[test]
fn logs_at_every_level_metrics_and_errors_hold_nothing_of_the_callers() {
    let place = Place::store();
    let serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    nothing_is_written_down(
        &place,
        serve,
        &[("SPILLBOX_LOG", "trace"), ("RUST_LOG", "trace")],
    );
}

#[test]
fn neither_do_the_client_libraries_of_a_bucket_whatever_filter_is_set() {
    let place = Place::bucket();
    let serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let filter = "trace,hyper=trace,aws_smithy_runtime=trace,aws_sdk_s3=trace,h2=trace";
    nothing_is_written_down(
        &place,
        serve,
        &[("SPILLBOX_LOG", filter), ("RUST_LOG", "trace")],
    );
}

#[test]
fn a_token_is_written_down_as_little_as_what_it_lets_in() {
    let place = Place::store();
    // The token that every request of this suite presents.
    let sha256 = Sha256Digest::of(said("authorization").as_bytes());
    let tokens = format!(
        "[[tokens]]\nsha256 = '{}'\ntenant = 'default'\nscopes = ['read', 'save']\n",
        sha256.to_hex()
    );
    write(&place.file("spillbox.toml"), tokens.as_bytes());
    let config = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "spillbox.toml",
    ];
    let serve = place.command(&config);
    nothing_is_written_down(&place, serve, &[("SPILLBOX_LOG", "trace")]);
}

#[test]
fn a_store_that_fails_tells_the_log_its_keys_and_nothing_of_the_callers() {
    let place = Place::store();
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.env("SPILLBOX_LOG", "trace");
    let service = Service::ready(serve);
    let target = format!(
        "/v1/sessions/{}/artifacts?tool={}",
        said("session"),
        said("tool")
    );
    let saved = ask(&service, "POST", &target, "", said("body").as_bytes());
    let receipt: Value = serde_json::from_str(&saved.body).unwrap();
    let path = receipt["links"]["bytes"]
        .as_str()
        .unwrap()
        .strip_prefix(&service.url)
        .unwrap();
    // Every object becomes something that cannot be read.
    let broken = "find store/v1/t -type f -exec sh -c 'rm \"$1\"; ln -s /dev/null \"$1\"' _ {} ';'";
    crate::support::program::succeed(place.shell(broken));
    let failed = ask(&service, "GET", path, "", b"");
    assert!(failed.status >= 500, "{}", failed.body);
    failed.is_problem("store_denied");
    let failed = ask(&service, "POST", &target, "", said("body").as_bytes());
    assert!(
        failed.status < 300 || !failed.body.contains(WORD),
        "{}",
        failed.body
    );
    service.signal("TERM");
    let (_, log) = service.wait();
    assert!(log.contains("a request failed"), "{log}");
    assert!(!log.contains(WORD), "{log}");
}
