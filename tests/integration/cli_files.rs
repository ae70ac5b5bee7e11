//! `put`, `cat`, `get`, `lines`, `stat` and `ls`: the same on a store and through a service.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rstest::rstest;
use serde_json::Value;

use crate::support::program::{Place, bare, outcome, succeed, text, write};

const UNKNOWN: &str = "spillbox:00000000000000000000000001.00000000000000000000000002";

fn numbers(count: u32) -> Vec<u8> {
    let lines: Vec<String> = (1..=count).map(|n| format!("{n}\n")).collect();
    lines.concat().into_bytes()
}

fn of<'a>(receipt: &'a Value, name: &str) -> &'a str {
    receipt[name].as_str().unwrap()
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn every_kind_of_bytes_comes_back_as_it_went_in(#[case] place: Place) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let large = numbers(2_000_000);
    for (name, body) in [
        ("empty.log", &b""[..]),
        ("small.txt", b"no line end"),
        ("odd.bin", &every_byte),
        ("large.log", &large),
    ] {
        let receipt = place.put(name, body);
        assert_eq!(receipt["size_bytes"], body.len());
        let locator = of(&receipt, "locator");
        assert!(place.ok(&["cat", locator]) == body, "{name}");
        assert!(place.ok(&["get", locator, "-o", "-"]) == body, "{name}");
        place.ok(&["get", locator, "-o", "copy"]);
        assert!(std::fs::read(place.file("copy")).unwrap() == body, "{name}");
        std::fs::remove_file(place.file("copy")).unwrap();
    }
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn standard_input_is_stored_and_its_replacement_printed(#[case] place: Place) {
    let body = numbers(20_000);
    for arguments in [&["put"][..], &["put", "-"]] {
        let mut command = place.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&body).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let replacement = text(output.stdout);
        assert!(replacement.contains("locator: ") && replacement.contains("\n20000\n"));
    }
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn what_is_said_of_a_file_is_known_of_the_artifact(#[case] place: Place) {
    write(&place.file("ü 1.json"), b"{}");
    let arguments = [
        "put",
        "ü 1.json",
        "--tool",
        "grep -rn",
        "--title",
        "T&T",
        "--label",
        "l=1",
        "--summary",
        "two\nlines",
        "--call-id",
        "a/../b",
        "--completeness",
        "upstream_truncated:9 lines",
        "--session",
        "s/é",
        "--json",
    ];
    let receipt: Value = serde_json::from_slice(&place.ok(&arguments)).unwrap();
    let locator = of(&receipt, "locator");
    let stat: Value = serde_json::from_slice(&place.ok(&["stat", locator, "--json"])).unwrap();
    assert_eq!(stat["media_type"], "application/json");
    assert_eq!(stat["session"], "s/é");
    assert_eq!(stat["summary"], "two lines");
    assert_eq!(stat["completeness"], "upstream_truncated");
    assert_eq!(stat["upstream_loss"], "9 lines");
    let from = &stat["provenance"];
    assert_eq!(from["name"], "ü 1.json");
    assert_eq!(from["tool"], "grep -rn");
    assert_eq!(from["title"], "T&T");
    assert_eq!(from["label"], "l=1");
    assert_eq!(from["call_id"], "a/../b");
    let table = text(place.ok(&["stat", locator]));
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("summary ") && line.ends_with("two lines"))
    );
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn pages_of_lines_are_the_lines_that_were_asked_for(#[case] place: Place) {
    let receipt = place.put("log", &numbers(50_000));
    let locator = of(&receipt, "locator");
    let page = |arguments: &[&str]| {
        let (status, lines, notes) =
            outcome(place.command(&[&["lines", locator], arguments].concat()));
        assert_eq!(status, 0, "{notes}");
        (text(lines), notes)
    };
    assert_eq!(
        page(&["--offset", "40000", "--limit", "2"]),
        ("40001\n40002\n".into(), "".into())
    );
    assert_eq!(page(&["--from-end", "2"]).0, "49999\n50000\n");
    assert_eq!(page(&["--byte-offset", "5", "--limit", "1"]).0, "\n");
    let (none, note) = page(&["--offset", "50000"]);
    assert_eq!(none, "");
    assert!(note.contains("50000 lines"), "{note}");
    // A page that the byte cap cut says so and where to go on, also where no person watches.
    let (cut, note) = page(&["--offset", "10000", "--limit", "2000", "--max-bytes", "600"]);
    assert_eq!(cut.lines().count(), 100);
    assert!(note.contains("--offset 10100"), "{note}");
    let json: Value =
        serde_json::from_slice(&place.ok(&["lines", locator, "--limit", "3", "--json"])).unwrap();
    assert_eq!(json["total_lines"], 50_000);
    assert_eq!(json["next_offset"], 3);
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn one_endless_line_is_read_on_by_bytes(#[case] place: Place) {
    let receipt = place.put("line.json", &vec![b'x'; 100_000]);
    let locator = of(&receipt, "locator");
    let mut whole: Vec<u8> = Vec::new();
    let mut offset = 0_u64;
    while offset < 100_000 {
        let at = offset.to_string();
        let page = place.ok(&["lines", locator, "--byte-offset", &at]);
        assert!(!page.is_empty());
        whole.extend(page.iter().filter(|byte| **byte == b'x'));
        offset = whole.len() as u64;
    }
    assert_eq!(whole.len(), 100_000);
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn a_list_shows_the_newest_first_and_goes_on_by_its_cursor(#[case] place: Place) {
    for name in ["first", "second", "third"] {
        place.put(name, name.as_bytes());
    }
    let table = text(place.ok(&["ls"]));
    let summaries: Vec<_> = table.lines().skip(1).collect();
    assert_eq!(summaries.len(), 3, "{table}");
    assert!(
        summaries[0].contains("third") && summaries[2].contains("first"),
        "{table}"
    );
    let page: Value = serde_json::from_slice(&place.ok(&["ls", "--limit", "2", "--json"])).unwrap();
    assert_eq!(page["artifacts"].as_array().unwrap().len(), 2);
    let cursor = of(&page, "next_cursor");
    let rest: Value =
        serde_json::from_slice(&place.ok(&["ls", "--cursor", cursor, "--json"])).unwrap();
    assert_eq!(rest["artifacts"].as_array().unwrap().len(), 1);
    assert!(rest.get("next_cursor").is_none());
    let other = outcome(place.command(&["ls", "--session", "unused"]));
    assert_eq!((other.0, other.1), (0, vec![]));
}

#[test]
fn a_download_never_takes_the_place_of_a_pipe_or_a_link() {
    let place = Place::store();
    let receipt = place.put("f", b"content");
    let locator = of(&receipt, "locator");
    succeed(place.shell("mkfifo pipe && echo mine > file && ln -s file link"));
    for special in ["pipe", "link"] {
        for force in [&[][..], &["--force"]] {
            let arguments = [&["get", locator, "-o", special][..], force].concat();
            let (status, _, errors) = outcome(place.command(&arguments));
            assert_eq!(status, 1, "{special}");
            assert!(errors.contains("no regular file"), "{errors}");
        }
    }
    let kinds = text(succeed(
        place.shell("test -p pipe && test -L link && cat file"),
    ));
    assert_eq!(kinds, "mine\n");
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn a_download_is_private_whole_and_never_over_another_file(#[case] place: Place) {
    let receipt = place.put("a b.txt", b"content");
    let locator = of(&receipt, "locator");
    place.ok(&["get", locator, "-o", "copy"]);
    let mode = std::fs::metadata(place.file("copy"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    write(&place.file("copy"), b"mine");
    let (status, _, errors) = outcome(place.command(&["get", locator, "-o", "copy"]));
    assert_eq!(status, 1);
    assert!(errors.contains("--force"), "{errors}");
    assert_eq!(std::fs::read(place.file("copy")).unwrap(), b"mine");
    place.ok(&["get", locator, "-o", "copy", "--force"]);
    assert_eq!(std::fs::read(place.file("copy")).unwrap(), b"content");
    std::fs::create_dir(place.file("into")).unwrap();
    place.ok(&["get", locator, "-o", "into"]);
    assert_eq!(
        std::fs::read(place.file("into/a~0020b.txt")).unwrap(),
        b"content"
    );
    let (status, _, _) = outcome(place.command(&["get", locator, "-o", "no/such/dir"]));
    assert_eq!(status, 1);
    let entries = std::fs::read_dir(place.dir.path()).unwrap();
    let left = entries.filter(|e| {
        e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .contains(".part")
    });
    assert_eq!(left.count(), 0);
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn an_unknown_locator_fails_with_a_hint_in_every_command(#[case] place: Place) {
    for (command, more) in [
        ("cat", &[][..]),
        ("get", &["-o", "x"]),
        ("lines", &[]),
        ("stat", &[]),
    ] {
        for (locator, word) in [(UNKNOWN, "artifact_not_found"), ("nonsense", "locator")] {
            let arguments = [&[command, locator], more].concat();
            let (status, output, errors) = outcome(place.command(&arguments));
            assert_eq!((status, output), (1, vec![]), "{command}");
            assert!(
                errors.starts_with("error: ") && errors.contains("\nhint: "),
                "{errors}"
            );
            assert!(errors.contains(word), "{errors}");
        }
    }
    assert!(!place.file("x").exists());
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn a_reader_that_goes_away_is_no_error(#[case] place: Place) {
    let receipt = place.put("log", &numbers(500_000));
    let line = format!("spillbox cat {} | head -n 1", of(&receipt, "locator"));
    let (status, output, errors) = outcome(place.shell(&line));
    assert_eq!(
        (status, text(output).as_str(), errors.as_str()),
        (0, "1\n", "")
    );
}

#[test]
fn a_body_that_was_changed_in_the_store_is_never_good() {
    let place = Place::store();
    let receipt = place.put("log", &numbers(200_000));
    let find = format!("find store -type f -size +{}c", 1_000_000);
    let path = text(succeed(place.shell(&find)));
    let flip = format!(
        "printf X | dd of={} bs=1 seek=700000 conv=notrunc 2>/dev/null",
        path.trim()
    );
    succeed(place.shell(&flip));
    let locator = of(&receipt, "locator");
    let (status, _, errors) = outcome(place.command(&["cat", locator]));
    assert_eq!(status, 1);
    assert!(errors.starts_with("error: "), "{errors}");
    let (status, _, _) = outcome(place.command(&["get", locator, "-o", "copy"]));
    assert_eq!(status, 1);
    assert!(!place.file("copy").exists());
}

#[test]
fn the_default_store_is_private_and_under_the_data_directory() {
    let place = Place::store();
    let mut put = bare(&["put", "--json"]);
    put.env("XDG_DATA_HOME", place.file("data"));
    succeed(put);
    let mut seen = 0;
    let mut open = vec![place.file("data/spillbox")];
    while let Some(path) = open.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        if metadata.is_dir() {
            assert_eq!(mode, 0o700, "{path:?}");
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{path:?}");
            seen += 1;
        }
    }
    assert!(seen >= 3, "format, manifest and body");
}

#[test]
fn a_file_that_cannot_be_stored_is_named() {
    let place = Place::store();
    for (path, word) in [("missing", "missing: No such file"), (".", "directory")] {
        let (status, output, errors) = outcome(place.command(&["put", path]));
        assert_eq!((status, output), (1, vec![]));
        assert!(
            errors.starts_with("error: ") && errors.contains(word),
            "{errors}"
        );
    }
    assert_eq!(place.ok(&["ls"]), b"");
}
