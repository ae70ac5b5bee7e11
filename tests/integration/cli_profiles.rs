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
fn a_reader_keeps_the_bounds_of_its_profile() {
    let place = Place::store();
    let mut body = "q".repeat(3_000);
    body.push('\n');
    body.push_str(&"short\n".repeat(9_000));
    let receipt = place.put("log", body.as_bytes());
    let locator = receipt["locator"].as_str().unwrap();
    let page = text(place.ok(&["lines", locator, "--profile", "hermes"]));
    assert!(
        page.len() <= 50_100 && page.lines().count() <= 2_001,
        "{}",
        page.len()
    );
    assert!(page.lines().all(|line| line.len() <= 2_000));
    assert!(page.contains("1000 bytes omitted"), "{page}");
    let last = text(place.ok(&["lines", locator, "--profile", "hermes", "--from-end", "3"]));
    assert_eq!(last, "short\nshort\nshort\n");
    let found = text(place.ok(&["grep", locator, "q", "--profile", "hermes"]));
    assert!(found.lines().all(|line| line.len() <= 2_000), "{found}");
}

#[test]
fn readers_know_the_profiles_of_the_settings() {
    let place = Place::store();
    let receipt = place.put("log", "short\n".repeat(9_000).as_bytes());
    let locator = receipt["locator"].as_str().unwrap();
    let own = |arguments: &[&str]| {
        let mut command = place.command(&[arguments, &["--profile", "mine"]].concat());
        let bounds = "SPILLBOX_PROFILES__MINE__TEXT_BOUNDS";
        command
            .env("SPILLBOX_PROFILES__MINE__BASE", "hermes")
            .env(format!("{bounds}__MAX_BYTES"), "1000")
            .env(format!("{bounds}__MAX_LINES"), "7")
            .env(format!("{bounds}__MAX_LINE_CHARS"), "3")
            .env(format!("{bounds}__KEEP"), "head");
        outcome(command)
    };
    let (status, page, errors) = own(&["lines", locator]);
    assert_eq!(status, 0, "{errors}");
    assert!(text(page).starts_with(&"sho\n".repeat(7)));
    let (status, found, errors) = own(&["grep", locator, "short"]);
    assert_eq!(status, 0, "{errors}");
    let found = text(found);
    assert_eq!(
        found.lines().filter(|line| line.len() == 3).count(),
        7,
        "{found}"
    );
    let unknown = place.command(&["grep", locator, "short", "--profile", "mine"]);
    assert_eq!(outcome(unknown).0, 2);
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

#[test]
fn usage_tells_what_a_service_handed_back_and_that_a_store_cannot_know() {
    let place = Place::service();
    let receipt = place.put("log", "line of a log\n".repeat(9_000).as_bytes());
    let locator = receipt["locator"].as_str().unwrap();
    let usage = || json(place.ok(&["usage", "--json"]));
    let fresh = usage();
    assert_eq!(fresh["read_back_bytes"], 0);
    assert_eq!(place.ok(&["cat", locator]).len(), 126_000);
    let read = usage();
    let since = |usage: &Value| usage["read_back_since"].as_str().unwrap().to_owned();
    assert_eq!(since(&read), since(&fresh));
    assert!(since(&read).parse::<jiff::Timestamp>().is_ok());
    let read_back = read["read_back_bytes"].as_u64().unwrap();
    // `cat` may have asked for a part a second time, never for less than all.
    assert!((126_000..=252_000).contains(&read_back), "{read}");
    let ratio = read_back as f64 / read["saved_bytes"].as_f64().unwrap();
    assert_eq!(read["read_back_ratio"].as_f64(), Some(ratio));
    let (_, shown, said) = outcome(place.command(&["usage"]));
    let shown = text(shown);
    assert!(
        shown.contains(&format!("read back: {read_back} bytes, ")),
        "{shown}"
    );
    assert!(said.contains("the replica that answered"), "{said}");

    let store = Place::store();
    let (exit, shown, said) = outcome(store.command(&["usage", "--json"]));
    let usage: Value = json(shown);
    assert_eq!((exit, &usage["read_back_bytes"]), (0, &Value::Null));
    assert_eq!(usage["read_back_ratio"], Value::Null);
    assert!(said.contains("does not count what is read back"), "{said}");
}

#[test]
fn run_keeps_the_bounds_of_its_profile_and_stores_all() {
    let place = Place::store();
    for (script, whole_bytes) in [
        ("yes short | head -n 2500", 15_000),
        (
            "yes 0123456789012345678901234567890123456789 | head -n 1900",
            77_900,
        ),
        ("head -c 2001 /dev/zero | tr '\\0' q", 2_001),
    ] {
        let run = [
            "run",
            "--profile",
            "hermes",
            "--json",
            "--",
            "sh",
            "-c",
            script,
        ];
        let decision = json(place.ok(&run));
        assert_eq!(decision["stored"], true, "{script}");
        let shown = decision["text"].as_str().unwrap();
        assert!(shown.len() <= 50_000 && shown.lines().count() <= 2_000);
        assert!(shown.lines().all(|line| line.chars().count() <= 2_000));
        let locator = decision["receipt"]["locator"].as_str().unwrap();
        assert_eq!(place.ok(&["cat", locator]).len(), whole_bytes, "{script}");
    }
}
