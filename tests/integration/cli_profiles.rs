//! Profiles on the command line.

use serde_json::Value;

use crate::support::program::{Place, bare, outcome, text, write};

fn json(bytes: Vec<u8>) -> Value {
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn profiles_are_listed_and_what_is_printed_loads_again() {
    let place = Place::store();
    let table = text(place.ok(&["profiles"]));
    for name in [
        "default",
        "workbuddy",
        "claude-code",
        "tiny-claw",
        "dsh",
        "hermes",
    ] {
        assert!(table.lines().any(|line| line.starts_with(name)), "{table}");
    }
    let toml = text(place.ok(&["profiles", "--toml"]));
    let read: toml::Table = toml::from_str(&toml).unwrap();
    assert_eq!(read["profiles"].as_table().unwrap().len(), 6);
    let json = json(place.ok(&["profiles", "hermes", "--json"]));
    assert_eq!(json["hermes"]["inline_limit"], 100_000);
    let one = text(place.ok(&["profiles", "dsh"]));
    assert!(
        one.contains("[profiles.dsh]\n") && one.contains("inline_limit = 51200\n"),
        "{one}"
    );
}

#[test]
fn an_unknown_profile_and_a_bad_switch_are_wrong_usage() {
    let place = Place::store();
    for args in [
        &["profiles", "none"][..],
        &["run", "--profile", "none", "--", "true"],
    ] {
        let (exit, _, said) = outcome(place.command(args));
        assert_eq!(exit, 2, "{args:?}");
        assert!(said.contains("one of claude-code"), "{args:?}: {said}");
    }
    let mut command = bare(&["profiles"]);
    command.env("BASH_MAX_OUTPUT_LENGTH", "many");
    let (exit, _, said) = outcome(command);
    assert_eq!(exit, 2);
    assert!(said.contains("BASH_MAX_OUTPUT_LENGTH"), "{said}");
}

#[test]
fn run_prints_what_the_profile_leaves_in_the_prompt() {
    let place = Place::store();
    let long = "head -c 40000 /dev/zero | tr '\\0' q";
    let run = |profile: &str| {
        text(place.ok(&[
            "run",
            "--profile",
            profile,
            "--tool",
            "bash",
            "--",
            "sh",
            "-c",
            long,
        ]))
    };
    assert_eq!(run("dsh").len(), 40_000);
    assert!(run("claude-code").starts_with("<persisted-output>\n"));
    assert!(run("workbuddy").starts_with("[spillbox] artifact: "));
    // Bounds of the system's own: 2,000 characters of a line.
    assert!(run("hermes").starts_with("<persisted-output>\n"));
    let lines = text(place.ok(&["run", "--profile", "hermes", "--", "seq", "1", "2000"]));
    assert_eq!(lines.lines().count(), 2_000);
    let lines = text(place.ok(&["run", "--profile", "hermes", "--", "seq", "1", "2001"]));
    assert!(lines.starts_with("<persisted-output>\n"), "{lines}");
}

#[test]
fn put_with_a_profile_decides_and_repeats() {
    let place = Place::store();
    write(&place.file("small"), b"small\n");
    write(
        &place.file("large"),
        "line of a log\n".repeat(9_000).as_bytes(),
    );
    let put = |file: &str, call: &str| {
        json(place.ok(&[
            "put",
            file,
            "--profile",
            "default",
            "--tool",
            "x",
            "--call-id",
            call,
            "--json",
        ]))
    };
    let small = put("small", "a");
    assert_eq!(
        (&small["action"], &small["text"]),
        (&"inline".into(), &"small\n".into())
    );
    let large = put("large", "b");
    assert_eq!(
        (&large["action"], &large["stored"]),
        (&"spilled".into(), &true.into())
    );
    assert_eq!(put("large", "b")["text"], large["text"]);
    let usage = json(place.ok(&["usage", "--json"]));
    assert_eq!(
        (&usage["artifacts"], &usage["stored_bytes"]),
        (&1.into(), &126_000.into())
    );
    let (exit, ..) =
        outcome(place.command(&["put", "small", "--profile", "default", "--label", "x"]));
    assert_eq!(exit, 2);
}
