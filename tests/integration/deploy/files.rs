//! The shipped files, and what is read out of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The repository.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a shipped file.
pub(super) fn text(path: &str) -> String {
    let file = root().join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A YAML file of one document.
pub(super) fn yaml(path: &str) -> Value {
    parsed(path, &text(path))
}

/// A YAML file of several documents.
pub(super) fn documents(path: &str) -> Vec<Value> {
    let text = text(path);
    text.split("\n---\n").map(|one| parsed(path, one)).collect()
}

/// CloudFormation's and Compose's own tags say what to do with a value, which here stands for itself.
fn parsed(path: &str, text: &str) -> Value {
    let mut text = text.to_owned();
    for tag in ["!GetAtt ", "!Ref ", "!Sub ", "!reset "] {
        text = text.replace(tag, "");
    }
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files below a directory, as paths from the repository's root, in order.
pub(super) fn below(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = vec![root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let relative = path.strip_prefix(root()).unwrap();
                found.push(relative.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{directory} is empty");
    found
}

/// A list of strings, as `command:` and `args:` have them.
pub(super) fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// Compose's `${NAME:-default}`, with no variable set.
pub(super) fn interpolated(text: &str) -> String {
    let mut rest = text;
    let mut result = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}').unwrap();
        result.push_str(before);
        if let Some((_, default)) = inside.split_once(":-") {
            result.push_str(default);
        } else {
            assert!(inside.contains(":+"), "{text} has no default");
        }
        rest = after;
    }
    result + rest
}

#[test]
fn defaults_stand_in_for_variables() {
    for (text, expected) in [
        ("plain", "plain"),
        ("${A:-24h}", "24h"),
        ("http://${A:+minio-}store:8333", "http://store:8333"),
        ("${A:-a}/${B:-b}", "a/b"),
    ] {
        assert_eq!(interpolated(text), expected);
    }
}
