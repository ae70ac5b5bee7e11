//! `spillbox journal` on a real service and its directory: verify, show, clear, and an ancestor's file.

use std::io::{Read, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::program::{Place, outcome, text, write};
use crate::vectors::vector;

/// A plain POST over a fresh connection.
fn post(url: &str, path: &str, document: &Value) -> Value {
    let host = url.strip_prefix("http://").unwrap();
    let body = document.to_string();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 20"), "{reply}");
    serde_json::from_str(body).unwrap()
}

/// Two leases, one of them committed; answers the replies, which hold the receipts.
fn lease(place: &Place) -> Vec<Value> {
    let saved = place.put("out.log", b"what was found\n");
    let claim = |name: &str| {
        json!({
            "transaction_id": name, "source_id": saved["source_id"], "content_sha256": saved["digest"],
            "reference_count": 1, "retain_until": null, "owner": "memory",
        })
    };
    let leases = "/v1/sessions/default/leases";
    vec![
        post(place.url(), leases, &claim("tx-1")),
        post(place.url(), leases, &claim("tx-2")),
        post(place.url(), &format!("{leases}/tx-1/commit"), &json!({})),
    ]
}

/// The file of a record.
fn record_file(place: &Place, seq: u64) -> PathBuf {
    let mut dirs = vec![place.file("store")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_record = path.to_str().unwrap().contains(&format!("/{seq:020}"))
                && path.to_str().unwrap().contains("/j/");
            if path.is_dir() {
                dirs.push(path);
            } else if is_record {
                return path;
            }
        }
    }
    panic!("no file of record {seq}")
}

#[test]
fn verify_says_by_its_status_what_show_shows_to_a_person() {
    let place = Place::service();
    let replies = lease(&place);
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    write(&place.file("receipts.jsonl"), lines.join("\n").as_bytes());

    let verify = |more: &[&str]| {
        let arguments = [&["journal", "verify", "default"], more].concat();
        let (status, output, errors) = outcome(place.command(&arguments));
        (status, text(output), errors)
    };
    let (status, output, errors) = verify(&["--receipts", "receipts.jsonl"]);
    assert_eq!((status, errors.as_str()), (0, ""), "{output}");
    assert!(
        output.starts_with("ok: 3 records, the last 2 sha256:"),
        "{output}"
    );
    assert!(
        output.ends_with("0 checkpoints and 3 receipts compared\n"),
        "{output}"
    );
    let (_, report, _) = verify(&["--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["status"], &report["findings"]),
        (&json!("ok"), &json!([]))
    );

    let shown = text(place.ok(&["journal", "show", "default"]));
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..4], ["SEQ", "WHEN", "WHAT", "WHO"]);
    let artifact = replies[0]["artifact_id"].as_str().unwrap();
    assert!(
        rows.iter()
            .any(|row| row[2..5] == ["prepared", "memory", artifact]),
        "{shown}"
    );
    assert!(
        rows.last().unwrap()[2..5] == ["committed", "memory", artifact],
        "{shown}"
    );
    let page: Value = serde_json::from_str(&text(
        place.ok(&["journal", "show", "--json", "--from", "1"]),
    ))
    .unwrap();
    assert_eq!(page["records"].as_array().unwrap().len(), 2);
    assert_eq!(
        page["records"][1]["sha256"],
        replies[2]["receipt"]["sha256"]
    );

    // Nothing is suspect: cleared means ok, and nothing is written.
    let clear = [
        "journal",
        "clear",
        "default",
        "--seq",
        "2",
        "--reason",
        "looked at it",
    ];
    assert_eq!(text(place.ok(&clear)), "the journal is ok\n");

    // An edit, a missing record, and a receipt that is no receipt.
    let file = record_file(&place, 1);
    let stored = std::fs::read_to_string(&file).unwrap();
    let edited = stored.replace("\"reference_count\":1", "\"reference_count\":2");
    assert_ne!(edited, stored);
    let allow = std::fs::Permissions::clone(&std::fs::metadata(&file).unwrap().permissions());
    std::fs::remove_file(&file).unwrap();
    write(&file, edited.as_bytes());
    std::fs::set_permissions(&file, allow).unwrap();
    let (status, output, _) = verify(&[]);
    assert_eq!(status, 4, "{output}");
    assert!(output.starts_with("bad_hash(1): "), "{output}");
    std::fs::remove_file(&file).unwrap();
    let (status, output, _) = verify(&[]);
    assert_eq!(status, 4, "{output}");
    assert!(
        output.starts_with("gap(1..1): record 1 is missing\n"),
        "{output}"
    );
    write(
        &place.file("receipts.jsonl"),
        b"{\"session\":\"default\"}\n",
    );
    let (status, _, errors) = verify(&["--receipts", "receipts.jsonl"]);
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains("line 1"), "{errors}");
}

#[test]
fn an_ancestors_file_is_checked_without_any_store() {
    let place = Place::store();
    let mut record = vector("S13-J05").given["record"].clone();
    let hash = vector("S13-J05").expect["event_sha256"].clone();
    record["event_sha256"] = hash.clone();
    let line = format!("{record}\n");
    let verify = |bytes: &[u8], more: &[&str]| {
        write(&place.file("leases.jsonl"), bytes);
        let arguments = [&["journal", "verify", "--jsonl", "leases.jsonl"], more].concat();
        let (status, output, _) = outcome(place.command(&arguments));
        (status, text(output))
    };
    assert_eq!(
        verify(line.as_bytes(), &[]),
        (0, "ok: 1 records, 1 of them pending\n".to_owned())
    );
    let (_, report) = verify(line.as_bytes(), &["--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["head"], &report["pending"]),
        (&hash, &json!(["tx-alpha"]))
    );
    let cut = format!("{line}{{\"schema");
    let (status, output) = verify(cut.as_bytes(), &[]);
    assert_eq!(status, 0);
    assert!(
        output.contains("the last 8 bytes are a write that was cut off"),
        "{output}"
    );
    let edited = line.replace("\"reference_count\":1", "\"reference_count\":2");
    let (status, output) = verify(edited.as_bytes(), &[]);
    assert_eq!(status, 4, "{output}");
    assert!(output.starts_with("line unreadable(1): "), "{output}");
    // A link is not followed, an absent file is no empty one.
    std::os::unix::fs::symlink(place.file("leases.jsonl"), place.file("link.jsonl")).unwrap();
    for name in ["link.jsonl", "absent.jsonl", "."] {
        let (status, _, errors) = outcome(place.command(&["journal", "verify", "--jsonl", name]));
        assert_eq!(status, 1, "{name}: {errors}");
    }
}
