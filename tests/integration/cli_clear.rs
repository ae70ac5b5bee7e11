//! Clearing old results on the command line.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::program::bare;

/// Runs `clear` over an input; its exit status and both outputs.
fn clear(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = bare(&[&["clear"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A refused input is not read to its end.
    let _ = stdin.write_all(input);
    drop(stdin);
    let ended = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        ended.status.code().unwrap(),
        text(ended.stdout),
        text(ended.stderr),
    )
}

fn locator(n: usize) -> String {
    format!("spillbox:00000000000000000000000001.000000000000000000000000{n:02}")
}

fn conversation(results: usize) -> String {
    let long = "an old line of a log\n".repeat(100);
    let line = |n| json!({"call_id": format!("c{n}"), "text": long, "locator": locator(n)});
    (0..results).map(|n| format!("{}\n", line(n))).collect()
}

fn parsed(output: &str) -> Vec<Value> {
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn all_but_the_newest_are_replaced_and_doing_it_again_changes_nothing() {
    let input = conversation(8);
    let (exit, output, said) = clear(&[], input.as_bytes());
    assert_eq!((exit, said.as_str()), (0, ""));
    let (before, after) = (parsed(&input), parsed(&output));
    assert_eq!(after.len(), 8);
    for (n, (before, after)) in before.iter().zip(&after).enumerate() {
        assert_eq!(after["call_id"], before["call_id"]);
        assert_eq!(after["locator"], before["locator"]);
        assert_eq!(after["cleared"], n < 2);
        if n < 2 {
            assert!(after["text"].as_str().unwrap().contains(&locator(n)));
        } else {
            assert_eq!(after["text"], before["text"]);
        }
    }
    let (_, all, _) = clear(&["--keep", "8"], input.as_bytes());
    assert!(parsed(&all).iter().all(|result| result["cleared"] == false));
    let again: String = after
        .into_iter()
        .map(|mut result| {
            result.as_object_mut().unwrap().remove("cleared");
            format!("{result}\n")
        })
        .collect();
    assert_eq!(clear(&[], again.as_bytes()).1, output);
}

#[test]
fn what_was_never_stored_stays_whatever_its_size() {
    let input = json!({"call_id": "a", "text": "q".repeat(90_000)}).to_string();
    let (exit, output, _) = clear(&["--keep", "0"], input.as_bytes());
    let results = parsed(&output);
    assert_eq!((exit, results.len()), (0, 1));
    assert_eq!(results[0]["cleared"], false);
    assert_eq!(results[0]["text"].as_str().unwrap().len(), 90_000);
}

#[test]
fn a_bad_line_is_named_and_nothing_is_printed() {
    let long = format!(
        "{{\"call_id\":\"a\",\"text\":\"{}\"}}",
        "q".repeat(17 << 20)
    );
    for bad in [
        "",
        "no json",
        r#"{"call_id":"a"}"#,
        r#"{"call_id":"a","text":"x","locator":"nowhere"}"#,
        long.as_str(),
    ] {
        let input = format!("{}{bad}\n", conversation(2));
        let (exit, output, said) = clear(&["--keep", "0"], input.as_bytes());
        assert_eq!((exit, output.as_str()), (2, ""), "{said}");
        assert!(said.contains("line 3: "), "{said}");
    }
    let (exit, output, _) = clear(&[], b"");
    assert_eq!((exit, output.as_str()), (0, ""));
}
