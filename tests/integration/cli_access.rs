//! Tokens, the audit stream and refusals of the real program.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::program::{Place, Service, bare, isolated, outcome, succeed, text, write};

/// Runs a command with something on its standard input.
fn fed(mut command: Command, input: &str) -> (i32, String, String) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let status = output.status.code().unwrap();
    (status, text(output.stdout), text(output.stderr))
}

/// A fresh token, and the settings that let it in.
fn generated(more: &[&str]) -> (String, String) {
    let mut command = bare(&["token", "hash", "--generate"]);
    command.args(more);
    let (status, lines, errors) = outcome(command);
    assert_eq!(status, 0, "{errors}");
    let token = errors.lines().last().unwrap().to_owned();
    assert!(token.starts_with("sbx_"), "{errors}");
    let lines = text(lines);
    assert!(!lines.contains(&token), "{lines}");
    (token, lines)
}

/// A service with tokens over the place's store.
fn guarded(place: &Place, settings: &str, more: &[&str]) -> Service {
    let config = place.file("spillbox.toml");
    write(&config, settings.as_bytes());
    let config = ["--config", config.to_str().unwrap()];
    Service::start(&place.store_url(), &[&config, more].concat())
}

#[test]
fn what_a_token_saved_it_reads_back_also_by_the_hint_as_printed() {
    let place = Place::store();
    let (token, lines) = generated(&[]);
    let service = guarded(&place, &lines, &[]);
    let body: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    write(&place.file("log"), body.as_bytes());
    let with_token = |arguments: &[&str]| {
        let mut command = bare(arguments);
        command
            .env("SPILLBOX_URL", &service.url)
            .env("SPILLBOX_TOKEN", &token)
            .current_dir(place.dir.path());
        command
    };
    let receipt = succeed(with_token(&["put", "log", "--json", "--means", "http"]));
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    assert_eq!(succeed(with_token(&["cat", locator])), body.as_bytes());
    let hint = receipt["retrieval_hint"].as_str().unwrap();
    assert!(hint.contains("$SPILLBOX_TOKEN"), "{hint}");
    let replacement = receipt["replacement"].as_str().unwrap();
    assert!(!receipt.to_string().contains(&token), "{replacement}");
    let mut shell = isolated("sh", &["-c", hint]);
    shell.env("SPILLBOX_TOKEN", &token);
    assert_eq!(text(succeed(shell)).lines().count(), 200, "{hint}");
    // Without it the same words lead nowhere, and say so.
    let (status, output, _) = outcome(isolated("sh", &["-c", hint]));
    assert!(status != 0 && output.is_empty());
    let (status, _, errors) = outcome(bare(&["cat", locator, "--url", &service.url]));
    assert_eq!(status, 1);
    assert!(
        errors.contains("unauthenticated") && errors.contains("hint: "),
        "{errors}"
    );
}

#[test]
fn a_token_file_is_read_and_its_token_goes_to_the_named_service_only() {
    let place = Place::store();
    let (token, lines) = generated(&["--scopes", "read", "--name", "reader"]);
    let service = guarded(&place, &lines, &[]);
    write(&place.file("token"), format!("{token}\n").as_bytes());
    let file = place.file("token");
    let by_flag = [
        "ls",
        "--url",
        &service.url,
        "--token-file",
        file.to_str().unwrap(),
    ];
    assert_eq!(succeed(bare(&by_flag)), b"");
    let mut by_variable = bare(&["ls", "--url", &service.url]);
    by_variable.env("SPILLBOX_TOKEN_FILE", &file);
    assert_eq!(succeed(by_variable), b"");
    // It lacks what a save needs.
    let mut put = bare(&["put", "--url", &service.url]);
    put.env("SPILLBOX_TOKEN_FILE", &file);
    let (status, _, errors) = outcome(put);
    assert_eq!(status, 1);
    assert!(
        errors.contains("insufficient_scope") && errors.contains("`save`"),
        "{errors}"
    );
    // Neither a store nor the host of a locator gets it.
    let locator = "http://127.0.0.1:1/a/00000000000000000000000001.00000000000000000000000002";
    let flag = file.to_str().unwrap();
    for arguments in [
        &["cat", locator, "--token-file", flag][..],
        &["ls", "--token-file", flag],
        &["ls", "--store", "memory:", "--token-file", flag],
    ] {
        let (status, output, errors) = outcome(bare(arguments));
        assert_eq!((status, output), (2, vec![]), "{errors}");
        assert!(!errors.contains(&token), "{errors}");
    }
}

#[test]
fn a_redirect_does_not_get_the_token() {
    let place = Place::store();
    write(&place.file("token"), b"sbx_secret-of-a-file\n");
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let configured = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", configured.local_addr().unwrap());
    let elsewhere = format!("http://{}/", trap.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = configured.accept().unwrap();
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).unwrap();
        let reply =
            format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(reply.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let file = place.file("token");
    let (status, _, errors) = outcome(bare(&[
        "ls",
        "--url",
        &url,
        "--token-file",
        file.to_str().unwrap(),
    ]));
    assert_eq!(status, 1, "{errors}");
    let request = answering.join().unwrap();
    assert!(request.contains("Bearer sbx_secret-of-a-file"), "{request}");
    assert!(!errors.contains("sbx_secret"), "{errors}");
    trap.set_nonblocking(true).unwrap();
    assert!(
        trap.accept().is_err(),
        "nothing may reach the redirect's target"
    );
}

#[test]
fn with_tokens_an_address_that_others_reach_is_served() {
    let place = Place::store();
    let (_, lines) = generated(&[]);
    write(&place.file("tokens.toml"), lines.as_bytes());
    let mut serve = bare(&[
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--store",
        &place.store_url(),
    ]);
    serve.env("SPILLBOX_ACCESS__TOKENS_FROM", place.file("tokens.toml"));
    let service = Service::spawn(serve);
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
    assert!(log.contains("only callers with a token"), "{log}");
    // Its own address is none that others can ask.
    let store = ["--store", "local:/dev/null"];
    let mut serve = bare(&[&["serve", "--listen", "0.0.0.0:0"], &store[..]].concat());
    serve.env("SPILLBOX_ACCESS__TOKENS_FROM", place.file("tokens.toml"));
    let (status, _, log) = outcome(serve);
    assert_eq!(status, 1, "{log}");
    assert!(log.contains("server.public_url is not set"), "{log}");
}

#[test]
fn what_is_wrong_with_access_ends_the_service_before_its_store_is_touched() {
    let place = Place::store();
    let config = place.file("spillbox.toml");
    let refused = |settings: &str, more: &[&str], part: &str| {
        write(&config, settings.as_bytes());
        let config = config.to_str().unwrap();
        let mut serve = place.command(&["serve", "--config", config]);
        serve.args(more);
        if !more.contains(&"--listen") {
            serve.args(["--listen", "127.0.0.1:0"]);
        }
        let (status, _, errors) = outcome(serve);
        assert_eq!(status, 2, "{errors}");
        assert!(errors.contains(part), "{errors}");
        assert!(!place.file("store").exists(), "{part}");
    };
    let (_, lines) = generated(&[]);
    refused(
        &lines.replace("sha256 = \"", "sha256 = \"A"),
        &[],
        "tokens[0].sha256",
    );
    refused(&format!("{lines}{lines}"), &[], "tokens[1].sha256");
    refused(&lines.replace("save", "write"), &[], "tokens[0].scopes");
    refused(
        "[access]\ntokens_from = '/nonexistent/x'\n",
        &[],
        "/nonexistent/x",
    );
    refused(
        "",
        &["--audit-log", "/nonexistent/audit"],
        "access.audit_log",
    );
    refused("[access]\naudit_log = '/'\n", &[], "access.audit_log");
    refused("", &["--listen", "0.0.0.0:0"], "[[tokens]]");
}

#[test]
fn without_tokens_the_service_says_so_and_knows_its_own_names_only() {
    let place = Place::store();
    let service = Service::start(&place.store_url(), &[]);
    let host = service.url.strip_prefix("http://").unwrap();
    let (_, port) = host.rsplit_once(':').unwrap();
    let status = |name: &str, more: &str| {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!(
            "GET /v1/sessions/s/artifacts HTTP/1.1\r\nHost: {name}\r\n{more}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(host, ""), "200");
    assert_eq!(status(&format!("localhost:{port}"), ""), "200");
    assert_eq!(status(&format!("evil.example:{port}"), ""), "421");
    assert_eq!(status(host, "Origin: https://evil.example\r\n"), "421");
    service.signal("TERM");
    let (_, log) = service.wait();
    let said = log
        .lines()
        .filter(|line| line.contains("no [[tokens]] are set"));
    assert_eq!(said.count(), 1, "{log}");
}

#[test]
fn a_token_stands_in_no_log_whatever_place_it_is_put_in() {
    let place = Place::store();
    let (token, lines) = generated(&["--name", "ci"]);
    write(&place.file("spillbox.toml"), lines.as_bytes());
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0", "--audit-log", "audit"]);
    serve
        .args(["--config", "spillbox.toml"])
        .env("SPILLBOX_LOG", "trace");
    let service = Service::ready(serve);
    let host = service.url.strip_prefix("http://").unwrap();
    for (target, header) in [
        (
            "/v1/sessions/s/artifacts".to_owned(),
            format!("Authorization: Bearer {token}"),
        ),
        (
            "/v1/sessions/s/artifacts".to_owned(),
            format!("Authorization: Bearer {token}x"),
        ),
        (
            "/v1/sessions/s/artifacts".to_owned(),
            format!("Authorization: Basic {token}"),
        ),
        (
            "/v1/sessions/s/artifacts".to_owned(),
            format!("Authorization: {token}"),
        ),
        (
            "/v1/sessions/s/artifacts".to_owned(),
            format!("Cookie: t={token}"),
        ),
        (
            format!("/v1/sessions/s/artifacts?access_token={token}"),
            "X: y".to_owned(),
        ),
        (format!("/v1/sessions/{token}/artifacts"), "X: y".to_owned()),
        (format!("/a/{token}"), "X: y".to_owned()),
        (format!("/{token}"), "X: y".to_owned()),
    ] {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head =
            format!("GET {target} HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 "), "{reply}");
        assert!(!reply.contains(&token), "{reply}");
    }
    service.signal("TERM");
    let (status, log) = service.wait();
    assert_eq!(status, 0, "{log}");
    assert!(log.contains("answered a request"), "{log}");
    assert!(!log.contains(&token), "{log}");
    let audit = std::fs::read_to_string(place.file("audit")).unwrap();
    assert!(!audit.contains(&token), "{audit}");
    let outcomes: Vec<String> = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes[0], "ok");
    assert_eq!(outcomes.len(), 8);
    assert!(
        outcomes[1..]
            .iter()
            .all(|outcome| outcome == "unauthenticated")
    );
}

#[test]
fn the_audit_stream_is_complete_when_the_service_has_ended() {
    let place = Place::store();
    let audit = place.file("audit");
    let service = Service::start(
        &place.store_url(),
        &["--audit-log", audit.to_str().unwrap()],
    );
    let mode = audit.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut put = bare(&["put", "--json", "--url", &service.url]);
    put.env("SPILLBOX_SESSION", "s");
    let receipt: Value = serde_json::from_slice(&succeed(put)).unwrap();
    let locator = receipt["locator"].as_str().unwrap();
    succeed(bare(&["stat", locator]));
    // A rotation in between. A line is written soon after its reply, not before it.
    while std::fs::read_to_string(&audit).unwrap().lines().count() < 2 {
        std::thread::yield_now();
    }
    std::fs::rename(&audit, place.file("audit.1")).unwrap();
    service.signal("HUP");
    while !audit.exists() {
        std::thread::yield_now();
    }
    succeed(bare(&["cat", locator]));
    service.signal("TERM");
    assert_eq!(service.wait().0, 0);
    let lines = |path| -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (old, new) = (lines(place.file("audit.1")), lines(audit));
    let words = |lines: &[Value]| -> Vec<String> {
        let word = |line: &Value| line["operation"].as_str().unwrap().to_owned();
        lines.iter().map(word).collect()
    };
    assert_eq!(
        (words(&old), words(&new)),
        (vec!["save".into(), "stat".into()], vec!["read".into()])
    );
    for line in old.iter().chain(&new) {
        assert_eq!(line["artifact_id"], receipt["artifact_id"]);
        assert_eq!(
            (&line["principal"], &line["outcome"]),
            (&"anonymous".into(), &"ok".into())
        );
    }
}

#[test]
fn a_reader_that_leaves_is_recorded_with_what_it_got() {
    const SIZE: usize = 40 << 20;
    let place = Place::store();
    let audit = place.file("audit");
    let service = Service::start(
        &place.store_url(),
        &["--audit-log", audit.to_str().unwrap()],
    );
    write(&place.file("large"), &vec![b'x'; SIZE]);
    let put = ["put", "large", "--json", "--url", &service.url];
    let receipt: Value = serde_json::from_slice(&succeed(place.command(&put))).unwrap();
    let path = receipt["locator"]
        .as_str()
        .unwrap()
        .strip_prefix(&service.url)
        .unwrap();
    let host = service.url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    drop(stream);
    service.signal("TERM");
    assert_eq!(service.wait().0, 0);
    let text = std::fs::read_to_string(&audit).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&line["operation"], &line["outcome"]),
        (&"read".into(), &"cut".into())
    );
    let served = line["bytes_served"].as_u64().unwrap();
    assert!((1..SIZE as u64).contains(&served), "{served}");
}

#[test]
fn the_audit_stream_also_goes_to_standard_output() {
    let place = Place::store();
    let command = "spillbox serve --listen 127.0.0.1:0 --audit-log stdout >out.jsonl";
    let service = Service::ready(place.shell(&format!("exec {command}")));
    succeed(bare(&["ls", "--url", &service.url]));
    service.signal("TERM");
    assert_eq!(service.wait().0, 0);
    let text = std::fs::read_to_string(place.file("out.jsonl")).unwrap();
    let line: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(line["operation"], "list");
}

#[test]
fn a_token_to_hash_comes_from_standard_input_and_must_be_hard_to_guess() {
    let token = "an-operators-own.token~of+32/bytes";
    let (status, lines, _) = fed(
        bare(&[
            "token", "hash", "--tenant", "acme", "--scopes", "read,gc", "--name", "ops",
        ]),
        &format!("{token}\n"),
    );
    assert_eq!(status, 0);
    let digest = spillbox::digest::Sha256Digest::of(token.as_bytes()).to_hex();
    assert_eq!(
        lines,
        format!(
            "[[tokens]]\nname = \"ops\"\nsha256 = \"{digest}\"\ntenant = \"acme\"\nscopes = [\"read\", \"gc\"]\n"
        )
    );
    for (input, part) in [
        ("short\n", "16 bytes"),
        ("", "empty"),
        ("two words of token", "one word"),
    ] {
        let (status, output, errors) = fed(bare(&["token", "hash"]), input);
        assert_eq!((status, output.as_str()), (2, ""), "{errors}");
        assert!(
            errors.contains(part) && errors.contains("hint: "),
            "{errors}"
        );
    }
    // Never as an argument: it would stand in the shell's history and the list of processes.
    let (status, _, _) = outcome(bare(&["token", "hash", token]));
    assert_eq!(status, 2);
}
