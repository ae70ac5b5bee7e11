//! `spillbox serve` as an operator sets it: limits, readiness, the end of slow clients.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::support::program::{Place, Service, bare, http_get, outcome, succeed, text, write};

/// Between two looks at `/readyz`.
const POLL: Duration = Duration::from_millis(20);

fn serve(place: &Place, variables: &[(&str, &str)]) -> Service {
    let store = place.store_url();
    let mut serve = bare(&["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    serve.envs(variables.iter().copied());
    Service::ready(serve)
}

fn problem_of(reply: &str) -> Value {
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_misspelled_setting_ends_it_with_the_nearest_known_one() {
    let place = Place::store();
    let config = place.file("spillbox.toml");
    write(&config, b"[limits]\nupload_memory = 1\n");
    let in_file = ["serve", "--config", "spillbox.toml"];
    let (status, _, errors) = outcome(place.command(&in_file));
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains("spillbox.toml"), "{errors}");
    assert!(errors.contains("`limits.upload_memory_bytes`"), "{errors}");
    for (name, meant) in [
        ("SPILLBOX_SERVER__ADMINLISTEN", "server.admin_listen"),
        (
            "SPILLBOX_LIMITS_SESSION_BYTES",
            "SPILLBOX_LIMITS__SESSION_BYTES",
        ),
    ] {
        let mut serve = place.command(&["serve"]);
        serve.env(name, "1");
        let (status, _, errors) = outcome(serve);
        assert_eq!(status, 2, "{errors}");
        assert!(errors.contains(name) && errors.contains(meant), "{errors}");
    }
    assert!(!place.file("store").exists());
}

#[test]
fn a_flag_beats_the_environment_and_that_the_file() {
    let place = Place::store();
    write(
        &place.file("spillbox.toml"),
        b"[server]\nadmin_listen = '127.0.0.1:1'\n",
    );
    // Neither the file's nor the variable's address could be had.
    let mut serve = place.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "spillbox.toml",
    ]);
    serve.args(["--admin-listen", "127.0.0.1:0"]);
    serve.env("SPILLBOX_SERVER__ADMIN_LISTEN", "127.0.0.1:2");
    let service = Service::ready(serve);
    let metrics = http_get(service.admin.as_deref().unwrap()).unwrap();
    assert_eq!(metrics.0, 200);
}

#[test]
fn its_limits_are_those_of_the_settings() {
    let place = Place::store();
    let limits = [
        ("SPILLBOX_LIMITS__SESSION_BYTES", "1000"),
        ("SPILLBOX_LIMITS__REQUESTS_PER_SECOND", "1"),
        ("SPILLBOX_LIMITS__REQUESTS_BURST", "3"),
    ];
    let service = serve(&place, &limits);
    write(&place.file("large"), &[b'x'; 2_000]);
    let put = ["put", "large", "--session", "s", "--url", &service.url];
    let (status, _, errors) = outcome(place.command(&put));
    assert_eq!(status, 1, "{errors}");
    assert!(
        errors.contains("(quota_exceeded)") && errors.contains("hint: "),
        "{errors}"
    );
    let list = format!("{}/v1/sessions/s/artifacts", service.url);
    let refused = (0..50)
        .map(|_| http_get(&list).unwrap())
        .find(|(status, _)| *status == 429);
    let (_, reply) = refused.expect("fifty requests take less than fifty seconds");
    assert_eq!(problem_of(&reply)["code"], "rate_limited");
    assert!(reply.contains("retry-after: 1\r\n"), "{reply}");
    assert!(
        reply.contains("ratelimit-policy: \"requests\";q=3;w=3\r\n"),
        "{reply}"
    );
    assert_eq!(http_get(&format!("{}/readyz", service.url)).unwrap().0, 200);
}

#[test]
fn readiness_follows_the_store() {
    let place = Place::store();
    let service = serve(&place, &[("SPILLBOX_SERVER__READY_CHECK_INTERVAL", "1s")]);
    let marker = text(succeed(
        place.shell("find \"$PWD/store\" -name 'format.json*'"),
    ));
    let marker = marker.trim_end();
    let until = |is_reached: &dyn Fn(&str, u16) -> bool| loop {
        let (status, reply) = http_get(&format!("{}/readyz", service.url)).unwrap();
        if is_reached(&reply, status) {
            return reply;
        }
        std::thread::sleep(POLL);
    };
    succeed(place.shell(&format!(
        "mv '{marker}' aside && ln -s /dev/null '{marker}'"
    )));
    let reply = until(&|_, status| status == 503);
    assert_eq!(problem_of(&reply)["reason"], "store_refuses");
    assert_eq!(http_get(&format!("{}/livez", service.url)).unwrap().0, 200);
    succeed(place.shell(&format!("rm '{marker}' && mv aside '{marker}'")));
    until(&|_, status| status == 200);
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
    assert!(
        log.contains("/readyz says no") && log.contains("/readyz says yes"),
        "{log}"
    );
}

#[test]
fn sigterm_lets_a_slow_download_end() {
    let place = Place::store();
    let store = place.store_url();
    let admin = ["--admin-listen", "127.0.0.1:0"];
    let service = Service::start(&store, &admin);
    let body = vec![b'x'; 30_000_000];
    write(&place.file("large"), &body);
    let put = ["put", "large", "--json", "--url", &service.url];
    let receipt: Value = serde_json::from_slice(&place.ok(&put)).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    let host = service.url.strip_prefix("http://").unwrap().to_owned();
    let path = locator.strip_prefix(&service.url).unwrap();
    let mut download = TcpStream::connect(&host).unwrap();
    write!(download, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut first = [0; 1_000];
    download.read_exact(&mut first).unwrap();
    service.signal("TERM");
    while TcpStream::connect(&host).is_ok() {
        std::thread::yield_now();
    }
    // A drain can be watched.
    let (status, metrics) = http_get(service.admin.as_deref().unwrap()).unwrap();
    assert_eq!(status, 200);
    assert!(metrics.contains("\nspillbox_ready 0\n"), "{metrics}");
    // Only now is the rest taken: more than the sockets hold, so that it was still being sent.
    let mut rest = Vec::new();
    download.read_to_end(&mut rest).unwrap();
    let head = memchr::memmem::find(&first, b"\r\n\r\n").unwrap() + 4;
    assert_eq!(first.len() - head + rest.len(), body.len());
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
}
