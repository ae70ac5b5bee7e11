use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn event(tool: &str, response: Value) -> Event {
    let text = json!({
        "session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/", "permission_mode": "default",
        "hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": {"command": "ls"},
        "tool_response": response, "tool_use_id": "toolu_1", "duration_ms": 12, "unheard_of": [1],
    });
    Event::parse(text.to_string().as_bytes()).unwrap()
}

#[rstest]
#[case::bash("Bash", json!({"stdout": "long out", "stderr": "err", "interrupted": false, "isImage": false}), &["/stdout", "/stderr"])]
#[case::bash_error_first("Bash", json!({"stdout": "o", "stderr": "error"}), &["/stderr", "/stdout"])]
#[case::bash_image("Bash", json!({"stdout": "iVBOR", "stderr": "", "isImage": true}), &[])]
#[case::bash_in_a_file("Bash", json!({"stdout": "head", "persistedOutputPath": "/t/1.txt"}), &[])]
#[case::bash_in_no_file("Bash", json!({"stdout": "all", "persistedOutputPath": null}), &["/stdout"])]
#[case::read("Read", json!({"type": "text", "file": {"filePath": "/a", "content": "x", "numLines": 1}}), &["/file/content"])]
#[case::read_image("Read", json!({"type": "image", "file": {"base64": "iVBOR", "content": "x"}}), &[])]
#[case::grep("Grep", json!({"mode": "content", "numFiles": 0, "filenames": [], "content": "a:1", "numLines": 1}), &["/content"])]
#[case::glob("Glob", json!({"filenames": ["a", "b"], "durationMs": 3, "numFiles": 2}), &[])]
#[case::fetch("WebFetch", json!({"bytes": 9, "code": 200, "result": "page", "url": "u"}), &["/result"])]
#[case::agent("Agent", json!({"content": [{"type": "text", "text": "done"}], "totalTokens": 1}), &["/content/0/text"])]
#[case::blocks("mcp__a__b", json!([{"type": "text", "text": "a"}, {"type": "image", "data": "i", "text": "n"}, {"type": "text", "text": "bcd"}]), &["/2/text", "/0/text"])]
#[case::blocks_within("mcp__a__b", json!({"content": [{"type": "text", "text": "a"}], "isError": false}), &["/content/0/text"])]
#[case::bare("mcp__a__b", json!("text"), &[""])]
#[case::write("Write", json!({"type": "create", "content": "file"}), &[])]
#[case::edit("Edit", json!({"originalFile": "file", "content": "file"}), &[])]
#[case::nothing("Later", json!(null), &[])]
#[case::number("Later", json!({"content": 3, "result": {"stdout": "deep"}, "file": "name"}), &[])]
#[case::empty("Bash", json!({"stdout": "", "stderr": ""}), &[])]
fn texts_are_found_in_the_outputs_of_tools(
    #[case] tool: &str,
    #[case] response: Value,
    #[case] places: &[&str],
) {
    let found = event(tool, response).texts();
    let found: Vec<_> = found.iter().map(|place| place.0.as_str()).collect();
    assert_eq!(found, places);
}

#[test]
fn a_reply_is_the_output_with_a_text_exchanged() {
    let response = json!({"stdout": "long", "stderr": "", "interrupted": false, "new": {"a": [1]}});
    let mut event = event("Bash", response);
    let places = event.texts();
    *event.text_mut(&places[0]).unwrap() = "short".to_owned();
    let output = json!({"stdout": "short", "stderr": "", "interrupted": false, "new": {"a": [1]}});
    let reply = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}});
    assert_eq!(event.into_reply(), reply);
}

#[rstest]
#[case::nothing("")]
#[case::text("hello")]
#[case::list("[]")]
#[case::half(r#"{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Ba"#)]
#[case::no_session(r#"{"hook_event_name":"PostToolUse","tool_name":"Bash"}"#)]
#[case::half_a_pair(r#"{"hook_event_name":"PostToolUse","session_id":"\ud800","tool_name":"B"}"#)]
#[case::other_event(r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash"}"#)]
fn what_is_no_event_is_refused_without_repeating_it(#[case] input: &str) {
    let failure = Event::parse(input.as_bytes()).unwrap_err();
    assert!(failure.message.contains("PostToolUse"), "{failure}");
    assert!(!failure.to_string().contains("hello"), "{failure}");
}

/// Any JSON, often with the names that are looked for.
fn any_output() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "stdout", "content", "file", "type", "text", "isImage", "a/b~c",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(text|image|.{0,6})".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn every_place_is_a_text_and_nothing_else_changes(response in any_output()) {
        let mut event = event("mcp__a__b", response.clone());
        let places = event.texts();
        let originals: Vec<_> = places.iter().map(|at| event.text_mut(at).unwrap().clone()).collect();
        prop_assert!(originals.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
        for place in &places {
            event.text_mut(place).unwrap().push('x');
        }
        for (place, original) in places.iter().zip(originals) {
            *event.text_mut(place).unwrap() = original;
        }
        let mut reply = event.into_reply();
        prop_assert_eq!(reply["hookSpecificOutput"]["updatedToolOutput"].take(), response);
    }
}
