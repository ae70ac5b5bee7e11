//! `spillbox hook`: events as the harness sends them, against a real service.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::program::{Place, bare, text};

/// Runs the hook with an event on its standard input.
fn hooked(mut command: Command, event: &[u8]) -> (i32, String, String) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let event = event.to_vec();
    let feeder = std::thread::spawn(move || {
        // A hook that ends before it has read everything is what some tests are about.
        let _ = stdin.write_all(&event);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let status = output.status.code().unwrap();
    (status, text(output.stdout), text(output.stderr))
}

fn event(tool: &str, call: &str, response: &Value) -> Vec<u8> {
    let event = json!({
        "session_id": "2f6c1e0a-run", "transcript_path": "/home/u/.claude/projects/p/t.jsonl",
        "cwd": "/home/u/p", "permission_mode": "default", "hook_event_name": "PostToolUse",
        "tool_name": tool, "tool_input": {"command": "make"}, "tool_response": response,
        "tool_use_id": call, "duration_ms": 1200,
    });
    event.to_string().into_bytes()
}

const HOOK: &[&str] = &["hook", "claude-code"];

/// The output that the hook puts in the place of the original.
fn updated(stdout: &str) -> Value {
    let reply: Value = serde_json::from_str(stdout).unwrap();
    let reply = &reply["hookSpecificOutput"];
    assert_eq!(reply["hookEventName"], "PostToolUse");
    reply["updatedToolOutput"].clone()
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// The one artifact of the session.
fn stored(place: &Place) -> Value {
    let listed = place.ok(&["ls", "--session", "2f6c1e0a-run", "--json"]);
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let artifacts = listed["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1, "{listed}");
    artifacts[0].clone()
}

#[test]
fn a_large_output_is_replaced_in_its_own_shape_and_read_back_by_the_hint() {
    let place = Place::service();
    let whole = lines(120_000);
    assert!(whole.len() > 1 << 20);
    let mut response =
        json!({"stdout": whole, "stderr": "warning: old", "interrupted": false, "isImage": false});
    let event = event("Bash", "toolu_01A", &response);
    let (status, stdout, errors) = hooked(place.command(HOOK), &event);
    assert_eq!((status, errors.as_str()), (0, ""));
    let output = updated(&stdout);
    let shown = output["stdout"].as_str().unwrap().to_owned();
    assert!(shown.len() < 5_000 && shown.contains("line 1\n"), "{shown}");
    response["stdout"] = shown.clone().into();
    assert_eq!(output, response, "nothing else changes");

    let artifact = stored(&place);
    let locator = artifact["locator"].as_str().unwrap();
    assert!(shown.contains(locator), "{shown}");
    assert_eq!(place.ok(&["cat", locator]), whole.as_bytes());
    let hint = shown
        .lines()
        .find_map(|line| line.find("spillbox ").map(|at| &line[at..]))
        .unwrap_or_default();
    assert!(hint.contains(locator), "{shown}");

    let again = hooked(place.command(HOOK), &event);
    assert_eq!(
        again.1, stdout,
        "a call that is repeated is decided as before"
    );
    stored(&place);
}

#[test]
fn what_is_small_exempt_silent_or_no_text_is_left_alone() {
    let place = Place::service();
    let large = lines(20_000);
    let cases = [
        (
            "Bash",
            json!({"stdout": "ok\n", "stderr": "", "interrupted": false, "isImage": false}),
        ),
        (
            "Bash",
            json!({"stdout": large, "stderr": "", "interrupted": false, "isImage": true}),
        ),
        (
            "Read",
            json!({"type": "text", "file": {"filePath": "/a", "content": large, "numLines": 20_000}}),
        ),
        (
            "Write",
            json!({"type": "create", "filePath": "/a", "content": large}),
        ),
        ("Edit", json!({"filePath": "/a", "originalFile": large})),
        (
            "Glob",
            json!({"filenames": [], "durationMs": 1, "numFiles": 0, "truncated": false}),
        ),
        ("Later", json!(null)),
    ];
    for (tool, response) in cases {
        let (status, stdout, errors) =
            hooked(place.command(HOOK), &event(tool, "toolu_02", &response));
        assert_eq!(
            (status, stdout.as_str(), errors.as_str()),
            (0, "", ""),
            "{tool}"
        );
    }
}

#[test]
fn blocks_of_a_server_keep_what_is_no_text_and_both_streams_are_replaced() {
    let place = Place::service();
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let blocks =
        json!([{"type": "text", "text": "a page"}, image, {"type": "text", "text": lines(20_000)}]);
    let (status, stdout, _) = hooked(
        place.command(HOOK),
        &event("mcp__web__get", "toolu_03", &blocks),
    );
    assert_eq!(status, 0);
    let output = updated(&stdout);
    assert_eq!((&output[0], &output[1]), (&blocks[0], &image));
    assert!(output[2]["text"].as_str().unwrap().len() < 5_000);

    let both = json!({"stdout": lines(20_000), "stderr": lines(10_000), "interrupted": false});
    let (_, stdout, _) = hooked(place.command(HOOK), &event("Bash", "toolu_04", &both));
    let output = updated(&stdout);
    for stream in ["stdout", "stderr"] {
        assert!(output[stream].as_str().unwrap().len() < 5_000, "{output}");
    }
}

#[test]
fn sixty_four_mib_go_through_and_more_than_is_read_stays() {
    let place = Place::service();
    let whole = "0123456789abcde\n".repeat(4 << 20);
    assert_eq!(whole.len(), 64 << 20);
    let response = json!({"stdout": whole, "stderr": "", "interrupted": false, "isImage": false});
    let (status, stdout, errors) =
        hooked(place.command(HOOK), &event("Bash", "toolu_05", &response));
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(stdout.len() < 10_000);
    assert_eq!(stored(&place)["size_bytes"], 64 << 20);

    let endless = vec![b' '; spillbox::limits::MAX_HOOK_INPUT_BYTES + 2];
    let (status, stdout, errors) = hooked(place.command(HOOK), &endless);
    assert_eq!((status, stdout.as_str()), (0, ""));
    assert!(errors.contains("the original stays"), "{errors}");
}

#[test]
fn whatever_goes_wrong_the_original_stays_and_the_call_does_not_fail() {
    let place = Place::service();
    let response = json!({"stdout": lines(20_000), "stderr": "", "interrupted": false});
    let good = event("Bash", "toolu_06", &response);
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let with = |more: &[&str]| place.command(&[HOOK, more].concat());
    let away = bare(&["hook", "claude-code", "--url", &nobody]);
    let mut no_id: Value = serde_json::from_slice(&good).unwrap();
    no_id["session_id"] = "..".into();
    let no_id = no_id.to_string().into_bytes();
    let cases = [
        ("away", away, good.as_slice()),
        (
            "no URL",
            bare(&["hook", "claude-code", "--url", "nowhere"]),
            &good,
        ),
        ("no profile", with(&["--profile", "nobodys"]), &good),
        ("no session", with(&[]), &no_id),
        ("no event", with(&[]), b"not JSON"),
        ("no input", with(&[]), b""),
        ("cut", with(&[]), &good[..good.len() / 2]),
    ];
    for (what, command, input) in cases {
        let (status, stdout, errors) = hooked(command, input);
        assert_eq!((status, stdout.as_str()), (0, ""), "{what}: {errors}");
        assert!(
            errors.starts_with("warning: the original stays: "),
            "{what}: {errors}"
        );
    }
    // Status 2 would be an objection to the model.
    let (status, stdout, _) = hooked(with(&["--no-such-option"]), &good);
    assert_eq!((status, stdout.as_str()), (1, ""));
}
