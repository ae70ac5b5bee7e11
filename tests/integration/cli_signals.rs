//! What the commands do when they are told to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use rstest::rstest;

use crate::support::program::{Place, isolated, succeed, text};

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    succeed(isolated("kill", &[&format!("-{name}"), &pid]));
}

/// The tool ends in its own way, and what it printed until then is kept.
#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
fn a_signal_reaches_the_tool_and_its_last_words_are_kept(#[case] place: Place) {
    for name in ["TERM", "HUP", "INT"] {
        let script = format!(
            "trap 'echo the last words; exit 7' {name}; seq 1 20000; echo ready >&2
            while :; do sleep 0.01; done"
        );
        let mut command = place.command(&["run", "--", "sh", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        errors.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{name}");
        let replacement = text(output.stdout);
        assert!(replacement.contains("\nthe last words\n"), "{replacement}");
        assert!(replacement.contains("locator: "), "{replacement}");
    }
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
fn half_an_upload_is_never_stored_as_a_whole_one(#[case] place: Place) {
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let mut command = place.command(&["put"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // More than a pipe and the program's first reads hold: the save has begun.
        stdin.write_all(&vec![b'x'; 12 << 20]).unwrap();
        signal(&child, name);
        let ended = child.wait().unwrap();
        assert_eq!(ended.code(), Some(status), "{name}");
        let mut output = Vec::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut output)
            .unwrap();
        assert_eq!(output, b"");
    }
    assert_eq!(place.ok(&["ls"]), b"");
    if place.file("store").exists() {
        let find = "find store -type f -size +1000c ! -path '*/attest/*'";
        // A service learns of it when the connection ends, which may be a moment later.
        let mut left = text(succeed(place.shell(find)));
        for _ in 0..1_000 {
            if left.is_empty() {
                break;
            }
            std::thread::yield_now();
            left = text(succeed(place.shell(find)));
        }
        assert_eq!(left, "");
    }
}
