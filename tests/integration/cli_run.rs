//! `spillbox run`: what a tool's caller sees.

use std::fmt::Write as _;

use rstest::rstest;

use crate::support::program::{Place, bare, outcome, succeed, text};

/// Shell words that print `count` numbered lines.
fn numbers(count: u32) -> String {
    format!("seq 1 {count}")
}

fn read_on(replacement: &str) -> &str {
    let line = replacement
        .lines()
        .find_map(|line| line.split_once("to read on: "));
    line.expect("the replacement says how to read on").1
}

fn locator(replacement: &str) -> &str {
    let line = replacement
        .lines()
        .find_map(|line| line.split_once("locator: "));
    line.expect("the replacement names its locator").1
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn a_large_output_becomes_a_replacement_whose_hint_runs_as_printed(#[case] place: Place) {
    let replacement = text(place.ok(&["run", "--", "sh", "-c", &numbers(200_000)]));
    assert!(replacement.len() <= 10_001, "{}", replacement.len());
    assert!(replacement.ends_with('\n') && !replacement.ends_with("\n\n"));
    assert!(replacement.contains("\n1\n2\n3\n") && replacement.contains("\n200000\n"));
    let hint = read_on(&replacement);
    let (head, _) = replacement.split_once(" bytes omitted here").unwrap();
    let last_of_head = head.lines().rev().nth(1).unwrap();
    let first: u64 = last_of_head.parse().unwrap();
    let lines = text(succeed(place.shell(hint)));
    let mut expected = String::new();
    for number in first + 1..=first + 200 {
        writeln!(expected, "{number}").unwrap();
    }
    assert_eq!(lines, expected, "{hint}");
    let whole = place.ok(&["cat", locator(&replacement)]);
    assert_eq!(whole, succeed(place.shell(&numbers(200_000))));
}

#[test]
fn a_store_named_by_a_flag_stands_in_the_hint_from_any_directory() {
    let place = Place::store();
    let run = "spillbox run --store 'local:./a b' -- seq 1 50000";
    let replacement = text(succeed(place.shell(run)));
    let hint = read_on(&replacement);
    assert!(hint.contains("--store 'local:/"), "{hint}");
    let mut elsewhere = place.shell(&format!("cd / && {hint}"));
    elsewhere.env("SPILLBOX_URL", "http://127.0.0.1:1");
    let lines = text(succeed(elsewhere));
    assert_eq!(lines.lines().count(), 200, "{lines}");
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn small_output_passes_unchanged_and_nothing_is_stored(#[case] place: Place) {
    let small = "printf 'a\\tb\\n\\033[31mno end'";
    assert_eq!(
        place.ok(&["run", "--", "sh", "-c", small]),
        b"a\tb\n\x1b[31mno end"
    );
    assert_eq!(
        place.ok(&["run", "--", "true"]),
        b"no output from `true` (0 bytes)\n"
    );
    let at_the_limit = "head -c 30000 /dev/zero | tr '\\0' x";
    assert_eq!(
        place.ok(&["run", "--", "sh", "-c", at_the_limit]),
        [b'x'; 30_000]
    );
    assert_eq!(place.ok(&["ls"]), b"");
    let beyond = "head -c 30001 /dev/zero | tr '\\0' x";
    let replacement = text(place.ok(&["run", "--", "sh", "-c", beyond]));
    assert_eq!(place.ok(&["cat", locator(&replacement)]), [b'x'; 30_001]);
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn bytes_are_stored_whatever_their_size_and_described(#[case] place: Place) {
    let description = text(place.ok(&["run", "--", "printf", "\\211PNG\\377"]));
    assert!(
        description.contains("binary") && description.contains("89504e47"),
        "{description}"
    );
    assert_eq!(place.ok(&["cat", locator(&description)]), b"\x89PNG\xff");
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn the_exit_status_and_the_errors_are_the_commands(#[case] place: Place) {
    for (script, status) in [
        ("echo out; echo err >&2; exit 0", 0),
        ("echo out; echo err >&2; exit 3", 3),
        ("echo out; echo err >&2; kill -9 $$", 137),
        ("echo out; echo err >&2; kill -TERM $$", 143),
    ] {
        let small = place.command(&["run", "--", "sh", "-c", script]);
        assert_eq!(
            outcome(small),
            (status, b"out\n".to_vec(), "err\n".to_owned())
        );
        let script = format!("seq 1 20000; {script}");
        let (large, output, errors) = outcome(place.command(&["run", "--", "sh", "-c", &script]));
        assert_eq!((large, errors.as_str()), (status, "err\n"));
        assert!(text(output).contains("\n20000\nout\n"));
    }
    let (status, _, errors) = outcome(place.command(&["run", "--", "no-such-command"]));
    assert_eq!(status, 127);
    assert!(errors.starts_with("error: no-such-command: ") && errors.contains("\nhint: "));
    let (status, _, _) = outcome(place.command(&["run", "--", "/"]));
    assert_eq!(status, 126);
}

#[test]
fn a_store_that_fails_costs_neither_the_ends_of_the_output_nor_the_status() {
    let place = Place::store();
    for broken in [
        &["--url", "http://127.0.0.1:1"],
        &["--store", "local:/proc/no/store"],
        &["--store", "local:/dev/null"],
    ] {
        let tail = ["--", "sh", "-c", "seq 1 200000; exit 3"];
        let large = place.command(&[&["run"], &broken[..], &tail[..]].concat());
        let (status, output, errors) = outcome(large);
        let output = text(output);
        assert_eq!(status, 3, "{errors}");
        assert!(output.len() <= 10_000, "{}", output.len());
        assert!(output.starts_with("[spillbox] NOT STORED"), "{output}");
        assert!(output.contains("\n1\n2\n") && output.ends_with("\n200000\n"));
        assert!(!output.contains("locator"));
        assert!(
            errors.starts_with("warning: the output was not stored: "),
            "{errors}"
        );
        let tail = ["--", "sh", "-c", "echo fine; exit 4"];
        let small = place.command(&[&["run"], &broken[..], &tail[..]].concat());
        assert_eq!(outcome(small), (4, b"fine\n".to_vec(), String::new()));
    }
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn json_says_what_became_of_the_output(#[case] place: Place) {
    let run = |script: &str| -> serde_json::Value {
        let (_, output, _) = outcome(place.command(&["run", "--json", "--", "sh", "-c", script]));
        serde_json::from_slice(&output).unwrap()
    };
    let inline = run("echo small; exit 5");
    assert_eq!(
        inline,
        serde_json::json!({"action": "inline", "stored": false, "text": "small\n", "exit_status": 5})
    );
    let spilled = run("seq 1 20000");
    assert_eq!(spilled["action"], "spilled");
    assert_eq!(spilled["stored"], true);
    assert_eq!(spilled["exit_status"], 0);
    assert_eq!(spilled["receipt"]["size_bytes"], 108_894);
    let text = spilled["text"].as_str().unwrap();
    assert_eq!(text.trim_end(), spilled["receipt"]["replacement"]);
    let stat: serde_json::Value = serde_json::from_slice(&place.ok(&[
        "stat",
        "--json",
        spilled["receipt"]["locator"].as_str().unwrap(),
    ]))
    .unwrap();
    assert_eq!(stat["provenance"]["tool"], "sh");
    assert_eq!(stat["media_type"], "text/plain; charset=utf-8");
}

#[test]
fn json_of_a_failed_save_names_the_reason() {
    let place = Place::store();
    let arguments = [
        "run",
        "--json",
        "--url",
        "http://127.0.0.1:1",
        "--",
        "seq",
        "1",
        "20000",
    ];
    let (status, output, _) = outcome(place.command(&arguments));
    let decision: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(status, 0);
    assert_eq!(decision["stored"], false);
    assert_eq!(decision["action"], "inline");
    assert_eq!(decision["reason"], "store_unavailable");
    assert!(decision["text"].as_str().unwrap().ends_with("\n20000\n"));
}

#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn the_same_call_again_is_stored_once(#[case] place: Place) {
    let arguments = [
        "run",
        "--call-id",
        "c/1",
        "--session",
        "s 1",
        "--",
        "seq",
        "1",
        "20000",
    ];
    let first = place.ok(&arguments);
    assert_eq!(place.ok(&arguments), first);
    let list: serde_json::Value =
        serde_json::from_slice(&place.ok(&["ls", "--session", "s 1", "--json"])).unwrap();
    assert_eq!(list["artifacts"].as_array().unwrap().len(), 1);
}

/// The upload may hold four parts of 8 MiB; nothing else may grow with the output.
#[rstest]
#[case::store(Place::store())]
#[case::service(Place::service())]
#[case::bucket(Place::bucket())]
fn memory_stays_flat_while_300_mb_pass_through(#[case] place: Place) {
    let script = "yes 'fifty bytes of a line that says nothing of interest' | head -c 300000000
        cat /proc/$PPID/status >&2";
    let mut run = place.command(&["run", "--", "sh", "-c", script]);
    // A signature over the payload, the default without TLS, costs a contiguous copy of each part.
    run.env("SPILLBOX_STORE__SIGN_PAYLOAD", "false");
    let (status, output, memory) = outcome(run);
    assert_eq!(status, 0);
    assert!(text(output).contains("300000000 bytes"));
    let kib = |name: &str| -> u64 {
        let line = memory.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // Pages of the program's own file are no memory of the output.
    let peak_kib = kib("VmHWM:") - kib("RssFile:");
    assert!(peak_kib < 48 << 10, "{peak_kib} KiB");
}

#[test]
fn what_is_wrong_with_the_call_is_said_before_the_command_runs() {
    let place = Place::store();
    let marker = place.file("ran");
    let touch = ["--", "touch", marker.to_str().unwrap()];
    for wrong in [
        &["--url", "http://x", "--store", "memory:"][..],
        &["--session", ""],
        &["--means", "ftp"],
        &["--completeness", "cut"],
        &["--call-id", ""],
    ] {
        let (status, _, errors) = outcome(bare(&[&["run"], wrong, &touch].concat()));
        assert_eq!(status, 2, "{wrong:?}: {errors}");
        assert!(!marker.exists(), "{wrong:?}");
    }
}
