//! The Python clients' own tests, against the binary under test.

use crate::support::program::{binary, isolated, text};

#[test]
fn the_python_client_passes_its_tests_against_the_program() {
    pass("test_spillbox_client", 14);
}

#[test]
fn the_python_helpers_of_owners_pass_their_tests_against_the_program() {
    pass("test_spillbox_owner", 5);
}

/// Runs a module's tests; a run that finds fewer than `least` has lost some of them.
fn pass(module: &str, least: usize) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python");
    let warnings = "error::ResourceWarning";
    let arguments = ["-W", warnings, "-m", "unittest", module];
    let mut python = isolated("python3", &arguments);
    python
        .current_dir(directory)
        .env("SPILLBOX_BINARY", binary())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.output().expect("python3 is installed");
    let told = text(output.stderr);
    assert!(output.status.success(), "{told}");
    let ran = told.lines().find_map(|line| line.strip_prefix("Ran "));
    let count = ran.and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    assert!(count >= Some(least), "{told}");
    // A skipped test would stand here beside the word.
    assert_eq!(told.trim_end().lines().last(), Some("OK"), "{told}");
}
