//! Nothing raw to a terminal. The terminal is that of `script` (util-linux); without it there is
//! nothing to look at, and the test says so.

use crate::support::program::{Place, isolated, succeed, text};

fn on_a_terminal(place: &Place, line: &str) -> Option<String> {
    let found = isolated("script", &["--version"]).output();
    let is_util_linux = found.is_ok_and(|o| text(o.stdout).contains("util-linux"));
    if !is_util_linux {
        eprintln!("skipped: no `script` of util-linux here");
        return None;
    }
    let line = format!("script -qc '{line}' /dev/null");
    Some(text(succeed(place.shell(&line))))
}

#[test]
fn control_characters_reach_a_terminal_only_with_raw() {
    let place = Place::store();
    let receipt = place.put("escape", b"a\x1b[2Jb\n");
    let locator = receipt["locator"].as_str().unwrap();
    let show = |words: &str| on_a_terminal(&place, &format!("spillbox {words}"));
    let Some(refused) = show(&format!("cat {locator}")) else {
        return;
    };
    assert!(
        refused.starts_with("error: ") && refused.contains("--raw"),
        "{refused}"
    );
    assert!(!refused.contains('\u{1b}'), "{refused:?}");
    for words in [format!("lines {locator}"), "put escape".to_owned()] {
        let shown = show(&words).unwrap();
        assert!(
            shown.contains("a␛[2Jb") && !shown.contains('\u{1b}'),
            "{shown:?}"
        );
        let raw = show(&format!("{words} --raw")).unwrap();
        assert!(raw.contains("a\u{1b}[2Jb"), "{raw:?}");
    }
    assert!(
        show(&format!("cat --raw {locator}"))
            .unwrap()
            .contains("a\u{1b}[2Jb")
    );
}

#[test]
fn a_person_is_told_where_to_go_on() {
    let place = Place::store();
    let body: String = (1..=9).map(|n| format!("{n}\n")).collect();
    let receipt = place.put("log", body.as_bytes());
    let locator = receipt["locator"].as_str().unwrap();
    let page = format!("spillbox lines {locator} --limit 3");
    if let Some(shown) = on_a_terminal(&place, &page) {
        assert!(shown.contains("--offset 3"), "{shown}");
    }
    assert_eq!(succeed(place.shell(&format!("{page} 2>&1"))), b"1\n2\n3\n");
}
