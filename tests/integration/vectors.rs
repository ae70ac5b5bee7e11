//! The case vectors: what four ancestors of this product do, one JSON object per line.
//!
//! Every line of the file is run, or it is listed with the reason why it runs elsewhere or not at all. A line
//! that is neither fails the test, so that no case is forgotten silently. Cases are dispatched by what
//! they are (system, area, `when`), not by id: a further case of a known kind runs without a change
//! here. `SPILLBOX_VECTORS` names another file of the same form.

mod gc;
mod journal;
mod listed;
mod owners;
mod policy;
mod pure;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

/// One line of the file.
#[derive(Debug, Deserialize)]
pub(crate) struct Vector {
    id: String,
    system: String,
    area: String,
    pub(crate) given: Value,
    when: String,
    pub(crate) expect: Value,
}

impl Vector {
    /// A hazard is an ancestor's behaviour that must not be copied: the opposite must hold here.
    fn is_hazard(&self) -> bool {
        self.expect.get("hazard").is_some()
    }
}

/// Reads a body in one of the forms of the file: `text`, `repeat`, `concat`, `hex`, `utf16`.
fn bytes_of(value: &Value) -> anyhow::Result<Vec<u8>> {
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(repeat) = value.get("repeat") {
        let (unit, times) = <(String, usize)>::deserialize(repeat)?;
        return Ok(unit.repeat(times).into_bytes());
    }
    if let Some(parts) = value.get("concat").and_then(Value::as_array) {
        let parts: Vec<_> = parts.iter().map(bytes_of).collect::<Result<_, _>>()?;
        return Ok(parts.concat());
    }
    if let Some(hex) = value.get("hex").and_then(Value::as_str) {
        return Ok(hex::decode(hex)?);
    }
    bail!("no body in {value}")
}

/// Runs a case whose kind is known.
fn run(vector: &Vector) -> Option<anyhow::Result<()>> {
    pure::run(vector)
        .or_else(|| policy::run(vector))
        .or_else(|| journal::run(vector))
        .or_else(|| gc::run(vector))
        .or_else(|| owners::run(vector))
}

fn load() -> anyhow::Result<Vec<Vector>> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors.jsonl");
    let path = std::env::var_os("SPILLBOX_VECTORS").map_or(own, PathBuf::from);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect()
}

/// Returns one case, for the tests that run it elsewhere.
pub(crate) fn vector(id: &str) -> Vector {
    let vectors = load().expect("the file of cases is well formed");
    let found = vectors.into_iter().find(|vector| vector.id == id);
    found.unwrap_or_else(|| panic!("no case {id}"))
}

/// Returns the cases that `read_cases` has to run.
pub(crate) fn ids_for_read_cases() -> BTreeSet<&'static str> {
    let listed = listed::LISTED
        .iter()
        .filter(|entry| entry.run_in == listed::Where::ReadCases);
    listed.flat_map(|entry| entry.ids).copied().collect()
}

#[test]
fn every_case_runs_or_is_listed_with_a_reason() {
    let vectors = load().expect("the file of cases is well formed");
    assert!(!vectors.is_empty());
    let mut ids = BTreeSet::new();
    let mut failures = Vec::new();
    let (mut ran, mut listed) = (0, 0);
    for vector in &vectors {
        if !ids.insert(vector.id.as_str()) {
            failures.push(format!("{}: a duplicate id", vector.id));
        }
        match (run(vector), listed::find(&vector.id)) {
            (Some(_), Some(_)) => {
                failures.push(format!("{}: listed although it runs", vector.id));
            }
            (Some(Ok(())), _) => ran += 1,
            (Some(Err(error)), _) => failures.push(format!("{}: {error:#}", vector.id)),
            (None, Some(_)) => listed += 1,
            (None, None) => failures.push(format!(
                "{}: neither run nor listed ({}, {}, `{}`)",
                vector.id, vector.system, vector.area, vector.when
            )),
        }
    }
    println!("{ran} cases ran, {listed} are listed");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_unknown_case_is_not_passed_over() {
    let unknown = Vector {
        id: "NEW-01".to_owned(),
        system: "dsh".to_owned(),
        area: "preview".to_owned(),
        given: Value::Null,
        when: "something new".to_owned(),
        expect: Value::Null,
    };
    assert!(run(&unknown).is_none());
    assert!(listed::find(&unknown.id).is_none());
}

#[test]
fn a_wrong_expectation_fails() {
    let vector = |head_bytes: u64| Vector {
        id: "NEW-02".to_owned(),
        system: "dsh".to_owned(),
        area: "preview".to_owned(),
        given: serde_json::json!({"bytes": {"hex": "616263"}, "head_bytes": head_bytes, "tail_bytes": 0}),
        when: "a further case of a known kind".to_owned(),
        expect: serde_json::json!({"text": "ab", "omitted_bytes": 1, "truncated": true}),
    };
    assert!(matches!(pure::run(&vector(2)), Some(Ok(()))));
    assert!(matches!(pure::run(&vector(1)), Some(Err(_))));
}

#[test]
fn every_listing_says_why_and_names_no_case_twice() {
    let mut seen = BTreeSet::new();
    for entry in listed::LISTED {
        assert!(!entry.reason.is_empty() && !entry.ids.is_empty());
        for id in entry.ids {
            assert!(seen.insert(id), "{id} is listed twice");
        }
    }
}
