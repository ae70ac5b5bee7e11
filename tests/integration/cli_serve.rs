//! `spillbox serve`: start, refusal, end, and the locators that lead to it.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::program::{
    Place, Service, bare, http_get, isolated, outcome, succeed, text, write,
};

#[test]
fn curl_saves_and_reads_back() {
    let place = Place::service();
    let body: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    write(&place.file("out.log"), body.as_bytes());
    let url = format!("{}/v1/sessions/s/artifacts?tool=grep", place.url());
    let file = place.file("out.log");
    let saved = succeed(isolated(
        "curl",
        &["-fsS", "-T", file.to_str().unwrap(), &url],
    ));
    let receipt: serde_json::Value = serde_json::from_slice(&saved).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    assert!(locator.starts_with(place.url()), "{locator}");
    let range = succeed(isolated("curl", &["-fsS", "-r", "1000-1999", locator]));
    assert_eq!(range, &body.as_bytes()[1000..2000]);
    let tail = succeed(isolated("curl", &["-fsS", "-r", "-7", locator]));
    assert_eq!(tail, b"100000\n");
    // The hint that stands in the replacement of an HTTP caller, as printed.
    let hint = receipt["retrieval_hint"].as_str().unwrap();
    let lines = text(succeed(isolated("sh", &["-c", hint])));
    assert_eq!(lines.lines().count(), 200, "{hint}");
}

#[test]
fn a_locator_is_enough_where_nothing_is_configured() {
    let place = Place::service();
    let receipt = place.put("log", b"content");
    let locator = receipt["locator"].as_str().unwrap();
    assert_eq!(succeed(bare(&["cat", locator])), b"content");
    // A token is only for the service that the user named.
    let mut with_token = bare(&["cat", locator]);
    with_token.env("SPILLBOX_TOKEN", "secret");
    let (status, output, errors) = outcome(with_token);
    assert_eq!((status, output), (2, vec![]));
    assert!(
        errors.contains("SPILLBOX_URL") && !errors.contains("secret"),
        "{errors}"
    );
}

#[test]
fn the_store_and_the_service_over_it_show_the_same_artifacts() {
    let place = Place::service();
    let receipt = place.put("log", b"content");
    let locator = receipt["locator"].as_str().unwrap();
    // Of a foreign locator only the ids are taken.
    let store = place.store_url();
    assert_eq!(
        succeed(bare(&["cat", locator, "--store", &store])),
        b"content"
    );
    let (_, ids) = locator.rsplit_once('/').unwrap();
    assert_eq!(place.ok(&["cat", &format!("spillbox:{ids}")]), b"content");
    assert_eq!(
        place.ok(&["cat", &format!("http://127.0.0.1:1/a/{ids}")]),
        b"content"
    );
}

#[test]
fn a_credential_reaches_the_configured_service_and_a_redirect_is_not_followed() {
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let configured = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", configured.local_addr().unwrap());
    let elsewhere = format!("http://{}/", trap.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = configured.accept().unwrap();
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).unwrap();
        let reply = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(reply.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..read]).to_lowercase()
    });
    let ids = "00000000000000000000000001.00000000000000000000000002";
    let mut cat = bare(&["cat", &format!("http://127.0.0.1:1/a/{ids}"), "--url", &url]);
    cat.env("SPILLBOX_TOKEN", "secret");
    let (status, _, errors) = outcome(cat);
    assert_eq!(status, 1, "{errors}");
    let request = answering.join().unwrap();
    assert!(request.starts_with(&format!("get /a/{ids} ")), "{request}");
    assert!(
        request.contains("authorization: bearer secret"),
        "{request}"
    );
    trap.set_nonblocking(true).unwrap();
    assert!(
        trap.accept().is_err(),
        "nothing may reach the redirect's target"
    );
}

#[test]
fn an_address_that_others_reach_is_refused_before_the_store_is_touched() {
    let place = Place::store();
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let (status, _, errors) = outcome(place.command(&["serve", "--listen", listen]));
        assert_eq!(status, 2, "{errors}");
        assert!(errors.contains("tokens"), "{errors}");
    }
    assert!(!place.file("store").exists());
}

#[test]
fn a_store_that_cannot_be_used_ends_the_service_with_a_reason() {
    let serve = |store: &str| {
        outcome(bare(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--store",
            store,
        ]))
    };
    let (status, _, errors) = serve("local:/dev/null");
    assert_eq!(status, 1, "{errors}");
    assert!(errors.contains("error: local:/dev/null"), "{errors}");
    let place = Place::store();
    place.ok(&["ls"]);
    let format = text(succeed(place.shell("find store -name 'format.json*'")));
    write(
        &place.file(format.trim()),
        br#"{"v":9,"orphan_ttl_seconds":86400}"#,
    );
    let (status, _, errors) = serve(&place.store_url());
    assert_eq!(status, 4, "{errors}");
    assert!(errors.contains("version 9"), "{errors}");
}

#[test]
fn sigterm_lets_running_requests_end_and_new_ones_go_elsewhere() {
    let place = Place::store();
    let service = Service::start(&place.store_url(), &[]);
    assert_eq!(http_get(&format!("{}/livez", service.url)).unwrap().0, 200);
    let host = service.url.strip_prefix("http://").unwrap().to_owned();
    let mut saving = TcpStream::connect(&host).unwrap();
    let head = format!(
        "POST /v1/sessions/s/artifacts HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
    );
    saving.write_all(head.as_bytes()).unwrap();
    // The request is being served once the service asks for its body.
    let mut interim = [0; 12];
    saving.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100");
    service.signal("TERM");
    while TcpStream::connect(&host).is_ok() {
        std::thread::yield_now();
    }
    saving.write_all(b"0123456789").unwrap();
    let mut reply = String::new();
    saving.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("HTTP/1.1 201"), "{reply}");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
    let list: serde_json::Value =
        serde_json::from_slice(&place.ok(&["ls", "--session", "s", "--json"])).unwrap();
    assert_eq!(list["artifacts"][0]["size_bytes"], 10);
}

#[test]
fn a_machine_without_ca_certificates_speaks_plain_http() {
    let place = Place::service();
    let mut ls = place.command(&["ls"]);
    ls.env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent");
    assert_eq!(succeed(ls), b"");
}

#[test]
fn a_body_over_the_cap_is_refused_by_its_name_while_it_is_still_being_sent() {
    let place = Place::store();
    let mut serve = bare(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        &place.store_url(),
    ]);
    serve.env("SPILLBOX_LIMITS__MAX_BODY_BYTES", "100000");
    let service = Service::ready(serve);
    write(&place.file("large"), &vec![b'x'; 20_000_000]);
    for line in ["spillbox put large", "cat large | spillbox put"] {
        let mut put = place.shell(line);
        put.env_remove("SPILLBOX_STORE")
            .env("SPILLBOX_URL", &service.url);
        let (status, output, errors) = outcome(put);
        assert_eq!((status, output), (1, vec![]), "{line}");
        assert!(
            errors.contains("(body_too_large)") && errors.contains("hint: "),
            "{errors}"
        );
    }
    let run = ["run", "--json", "--url", &service.url, "--", "cat", "large"];
    let (status, output, _) = outcome(place.command(&run));
    let decision: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!((status, &decision["reason"]), (0, &"body_too_large".into()));
    assert_eq!(decision["stored"], false);
}

#[test]
fn a_public_url_begins_the_locators() {
    let place = Place::store();
    let public = ["--public-url", "https://spill.example/team"];
    let service = Service::start(&place.store_url(), &public);
    let mut put = bare(&["put", "--json", "--url", &service.url]);
    put.env("SPILLBOX_SESSION", "s");
    let receipt: serde_json::Value = serde_json::from_slice(&succeed(put)).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    assert!(
        locator.starts_with("https://spill.example/team/a/"),
        "{locator}"
    );
    assert_eq!(succeed(bare(&["cat", locator, "--url", &service.url])), b"");
}

#[test]
fn it_listens_at_once_and_is_ready_only_with_its_store() {
    // Takes connections and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let mut command = bare(&["serve", "--listen", "127.0.0.1:0", "--store", "s3://bucket"]);
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ACCESS_KEY_ID", "a")
        .env("AWS_SECRET_ACCESS_KEY", "b");
    let service = Service::spawn(command);
    let status = |path: &str| http_get(&format!("{}{path}", service.url)).unwrap().0;
    assert_eq!(status("/livez"), 200);
    assert_eq!(status("/readyz"), 503);
    assert_eq!(status("/v1/sessions/s/artifacts"), 503);
    service.signal("TERM");
    assert_eq!(service.wait().0, 0);
}
