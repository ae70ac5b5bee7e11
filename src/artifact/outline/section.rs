//! Lines with which parts of known tools' reports begin.

use std::collections::VecDeque;

use memchr::memchr;

use super::{Section, shown};
use crate::limits::{OUTLINE_SECTION_TEXT_BYTES, OUTLINE_SECTIONS};

/// Returns `line` without the colour codes (`ESC [ … m`) that it begins with.
pub(super) fn without_colour(line: &[u8]) -> &[u8] {
    let mut line = line;
    while let Some(code) = line.strip_prefix(b"\x1b[") {
        let parameters = code
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
            .count();
        match code.get(parameters) {
            Some(b'm') => line = &code[parameters + 1..],
            _ => break,
        }
    }
    line
}

/// Returns the tool that prints such a line at the start of a part of its report.
fn tool_of(line: &[u8]) -> Option<&'static str> {
    let begins = |starts: &[&str]| {
        starts
            .iter()
            .any(|start| line.starts_with(start.as_bytes()))
    };
    match line.first()? {
        b' ' if begins(&["     Running ", "   Doc-tests ", "    Finished "]) => Some("cargo"),
        b' ' if begins(&["  ● "]) => Some("jest"),
        b't' if begins(&["test result: "]) => Some("cargo"),
        b'f' if line == b"failures:" => Some("cargo"),
        b'-' if begins(&["---- "]) && is_cargo_output(line) => Some("cargo"),
        b'-' if begins(&["--- FAIL: "]) => Some("go"),
        b'=' if is_pytest_banner(line) => Some("pytest"),
        b'_' if is_framed(line, b'_') => Some("pytest"),
        b'P' | b'F' if begins(&["PASS ", "FAIL "]) && is_jest_file(&line[5..]) => Some("jest"),
        b'T' if begins(&["Test Suites: ", "Tests:       "]) => Some("jest"),
        b'F' if begins(&["FAIL\t"]) => Some("go"),
        b'o' if begins(&["ok  \t"]) => Some("go"),
        b'm' if is_make(line) => Some("make"),
        _ => None,
    }
}

/// `---- tests::name stdout ----`
fn is_cargo_output(line: &[u8]) -> bool {
    line.ends_with(b" stdout ----") || line.ends_with(b" stderr ----")
}

/// `=== title ===`, of any width, with one of pytest's titles.
fn is_pytest_banner(line: &[u8]) -> bool {
    const TITLES: &[&str] = &[
        "test session starts",
        "FAILURES",
        "ERRORS",
        "PASSES",
        "warnings summary",
        "short test summary info",
    ];
    const COUNTS: &[&str] = &[" passed", " failed", " error", " skipped", "no tests ran"];
    if !is_framed(line, b'=') {
        return false;
    }
    let title = String::from_utf8_lossy(line);
    let title = title.trim_matches('=').trim();
    TITLES.contains(&title) || COUNTS.iter().any(|count| title.contains(count))
}

/// A title between at least three `edge` and a space on each side.
fn is_framed(line: &[u8], edge: u8) -> bool {
    let run = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|b| **b == edge).count();
    let before = run(&mut line.iter());
    let after = run(&mut line.iter().rev());
    let title = line.get(before..line.len().saturating_sub(after));
    before >= 3
        && after >= 3
        && title.is_some_and(|title| {
            title.len() > 2 && title.starts_with(b" ") && title.ends_with(b" ")
        })
}

/// `src/x.test.ts`, perhaps with a time behind it.
fn is_jest_file(rest: &[u8]) -> bool {
    let name = &rest[..memchr(b' ', rest).unwrap_or(rest.len())];
    [".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs"]
        .iter()
        .any(|suffix| name.ends_with(suffix.as_bytes()))
}

/// `make[2]: *** [all] Error 1`, `make: Entering directory …`
fn is_make(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"make") else {
        return false;
    };
    let rest = match rest.strip_prefix(b"[") {
        Some(level) => {
            let digits = level
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            level[digits..].strip_prefix(b"]")
        }
        None => Some(rest),
    };
    rest.is_some_and(|rest| {
        rest.starts_with(b": *** ") || rest.starts_with(b": Entering directory")
    })
}

/// Keeps the first and the last sections: a report begins with what was run and ends with what came of
/// it.
#[derive(Debug, Default)]
pub(super) struct SectionScan {
    first: Vec<Section>,
    last: VecDeque<Section>,
    count: u64,
}

impl SectionScan {
    pub(super) fn line(&mut self, line_index: u64, line: &[u8]) {
        let line = line.trim_ascii_end();
        let Some(tool) = tool_of(line) else {
            return;
        };
        self.count += 1;
        let section = Section {
            tool: tool.to_owned(),
            line_number: line_index + 1,
            text: shown(line.trim_ascii_start(), OUTLINE_SECTION_TEXT_BYTES),
        };
        if self.first.len() < OUTLINE_SECTIONS / 2 {
            self.first.push(section);
            return;
        }
        if self.last.len() == OUTLINE_SECTIONS / 2 {
            self.last.pop_front();
        }
        self.last.push_back(section);
    }

    pub(super) fn finish(mut self) -> (Vec<Section>, u64) {
        self.first.extend(self.last);
        (self.first, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headings_of_known_tools_are_recognised() {
        for (line, tool) in [
            (
                "     Running unittests src/lib.rs (target/debug/deps/x-1)",
                "cargo",
            ),
            ("   Doc-tests x", "cargo"),
            (
                "test result: FAILED. 3 passed; 1 failed; 0 ignored",
                "cargo",
            ),
            ("---- tests::it_works stdout ----", "cargo"),
            ("============ test session starts ============", "pytest"),
            ("=================== FAILURES ===================", "pytest"),
            ("____________ test_login[a b] ____________", "pytest"),
            ("====== 1 failed, 2 passed in 0.12s ======", "pytest"),
            ("FAIL src/app.test.tsx (5.1 s)", "jest"),
            ("Test Suites: 1 failed, 1 total", "jest"),
            ("  ● sums › adds", "jest"),
            ("--- FAIL: TestThing (0.01s)", "go"),
            ("FAIL\texample.com/x\t0.1s", "go"),
            ("ok  \texample.com/y\t0.1s", "go"),
            ("make[2]: *** [Makefile:3: all] Error 1", "make"),
            ("make: Entering directory '/x'", "make"),
        ] {
            assert_eq!(tool_of(line.as_bytes()), Some(tool), "{line}");
        }
    }

    #[test]
    fn ordinary_lines_are_not() {
        for line in [
            "",
            "===",
            "======",
            "=== x",
            "=== RUN   TestThing",
            "==== anything ====",
            "___",
            "______",
            "_ _",
            "---- x",
            "PASS",
            "FAIL",
            "FAIL the build",
            "make it so",
            "make[x]: *** no",
            "make[1",
            "tests: 1",
            " Running",
            "ok",
            "failures",
            "---",
            "- item",
        ] {
            assert_eq!(tool_of(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn colours_are_looked_through() {
        assert_eq!(
            without_colour(b"\x1b[1m\x1b[31;1mFAIL\x1b[0m"),
            b"FAIL\x1b[0m"
        );
        for odd in [&b"\x1b["[..], b"\x1b[31", b"\x1b[2Kx", b"\x1b"] {
            assert_eq!(without_colour(odd), odd);
        }
    }
}
