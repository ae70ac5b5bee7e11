use proptest::prelude::*;

use super::*;
use crate::artifact::error_line::{LOOKED_AT_BYTES, signs};
use crate::artifact::scan::{BodyFacts, BodyScan};

fn outline(body: &str) -> Outline {
    BodyFacts::of(body.as_bytes(), 64).outline
}

/// One line at a time, each on its own.
fn naive(body: &[u8]) -> Outline {
    let mut scan = OutlineScan::default();
    let mut lines: Vec<_> = body.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    for (index, line) in (0..).zip(lines) {
        let line = &line[..line.len().min(LOOKED_AT_BYTES)];
        if let Some(hit) = signs(line).next() {
            scan.sign(hit.severity, index, line);
        }
        scan.line(index, line);
    }
    scan.finish()
}

#[test]
fn errors_and_warnings_are_counted_with_the_first_and_the_last() {
    let body = "ok\nwarning: unused x\nerror[E1]: a\nfine\nerror[E2]: b\nerror[E3]: \u{1b}[31mc\n";
    let outline = outline(body);
    assert_eq!((outline.errors.count, outline.warnings.count), (3, 1));
    let noted = |line: &Option<NotedLine>| {
        let line = line.as_ref().unwrap();
        (line.line_number, line.text.clone())
    };
    assert_eq!(noted(&outline.errors.first), (3, "error[E1]: a".to_owned()));
    assert_eq!(
        noted(&outline.errors.last),
        (6, "error[E3]: ␛[31mc".to_owned())
    );
    assert_eq!(
        noted(&outline.warnings.first),
        (2, "warning: unused x".to_owned())
    );
    assert_eq!(outline.warnings.last, None);
}

#[test]
fn the_longest_gaps_are_named_with_their_lines() {
    let body = "\
2026-01-01T10:00:00Z a
2026-01-01T10:00:00.900Z b
  a stack trace
2026-01-01T10:01:00.900Z c
2026-01-01T10:01:01Z d
2026-01-01T10:01:09Z e
2026-01-01T10:01:11Z f
2026-01-01T10:02:11Z g
";
    let gaps: Vec<_> = outline(body)
        .gaps
        .into_iter()
        .map(|gap| (gap.gap_ms, gap.from_line, gap.to_line))
        .collect();
    assert_eq!(gaps, [(60_000, 2, 4), (60_000, 7, 8), (8_000, 5, 6)]);
    assert_eq!(outline(body).gaps[0].from, "2026-01-01T10:00:00.900Z");
}

#[test]
fn of_many_sections_the_first_and_the_last_are_kept() {
    let body: String = (0..200)
        .map(|n| format!("--- FAIL: Test{n} (0.0s)\n"))
        .collect();
    let outline = outline(&body);
    assert_eq!((outline.sections.len(), outline.section_count), (64, 200));
    let lines: Vec<_> = outline.sections.iter().map(|s| s.line_number).collect();
    assert_eq!(
        (lines[0], lines[31], lines[32], lines[63]),
        (1, 32, 169, 200)
    );
}

#[test]
fn the_largest_outline_leaves_room_in_the_head_of_a_manifest() {
    let line = format!("--- FAIL: error \u{1}{}\n", "\"\u{1b}é".repeat(200));
    let json = serde_json::to_vec(&outline(&line.repeat(300))).unwrap();
    assert!(json.len() < 16_000, "{}", json.len());
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"error: x".to_vec()),
        Just(b"WARNING 0 errors".to_vec()),
        Just(b"\x1b[31mFAIL\x1b[0m".to_vec()),
        Just(b"FAIL src/a.test.ts\r".to_vec()),
        Just(b"=== 1 failed ===".to_vec()),
        Just("é界".repeat(150).into_bytes()),
        Just(b"\xff\xfe 0 failed \xe7".to_vec()),
        (0_u32..86_400).prop_map(|s| {
            format!("{:02}:{:02}:{:02} tick", s / 3_600, s / 60 % 60, s % 60).into_bytes()
        }),
        (0_u32..60, 0_u32..1_000)
            .prop_map(|(s, ms)| format!("2026-01-01T10:00:{s:02}.{ms:03}Z panic: y").into_bytes()),
        (0_usize..1_500).prop_map(|n| vec![b'x'; n]),
        (490_usize..520).prop_map(|n| [&vec![b' '; n][..], b"error"].concat()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_outline_of_one_line_after_the_other(
        lines in proptest::collection::vec(line(), 0..40),
        ends_with_lf in any::<bool>(),
        piece_bytes in 1_usize..300,
    ) {
        let mut body = lines.join(&b'\n');
        if ends_with_lf {
            body.push(b'\n');
        }
        let mut scan = BodyScan::new(64);
        for piece in body.chunks(piece_bytes) {
            scan.push(piece);
        }
        let facts = scan.finish();
        prop_assert_eq!(&facts.outline, &naive(&body));
        let text_fits = |line: &Option<NotedLine>| {
            line.as_ref().is_none_or(|line| line.text.len() <= OUTLINE_TEXT_BYTES)
        };
        prop_assert!(text_fits(&facts.outline.errors.first) && text_fits(&facts.outline.errors.last));
        let json = serde_json::to_vec(&facts.outline).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Outline>(&json).unwrap(), facts.outline);
    }
}
