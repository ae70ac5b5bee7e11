use proptest::prelude::*;

use super::*;

const WINDOW: usize = 200;

fn in_pieces(body: &[u8], pieces: &[usize]) -> BodyFacts {
    let mut scan = BodyScan::new(WINDOW);
    let mut rest = body;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(1).clamp(1, rest.len());
        scan.push(&rest[..length]);
        rest = &rest[length..];
    }
    scan.finish()
}

fn naive_chunks(body: &[u8]) -> Vec<ChunkEntry> {
    let first_line = |at: usize| body[..at].iter().filter(|b| **b == b'\n').count() as u64;
    body.chunks(CHUNK_BYTES)
        .enumerate()
        .map(|(index, chunk)| ChunkEntry {
            sha256: Sha256Digest::of(chunk),
            first_line_index: first_line(index * CHUNK_BYTES),
        })
        .collect()
}

/// A body of a few chunks: lines of all lengths, some of them not UTF-8.
fn large_body() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        (0_usize..3_000).prop_map(|n| vec![b'a'; n]),
        Just("界🙂é".repeat(40).into_bytes()),
        Just(b"an error line".to_vec()),
        Just(b"\xff\xfe".to_vec()),
    ];
    (proptest::collection::vec(line, 1..8), 1_usize..400).prop_map(|(lines, times)| {
        let mut block = Vec::new();
        for line in lines {
            block.extend(line);
            block.push(b'\n');
        }
        let times = times.min(700_000 / block.len().max(1));
        block.repeat(times)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_split_gives_the_facts_of_one_push(
        body in large_body(),
        pieces in proptest::collection::vec(
            prop_oneof![1_usize..9, 1_000_usize..90_000, Just(CHUNK_BYTES)], 1..6),
    ) {
        // Tiny pieces of a large body would only cost time.
        let body = if pieces.iter().all(|n| *n < 9) { &body[..body.len().min(5_000)] } else { &body };
        let whole = BodyFacts::of(body, WINDOW);
        prop_assert_eq!(&in_pieces(body, &pieces), &whole);
        prop_assert_eq!(whole.size_bytes, body.len() as u64);
        prop_assert_eq!(whole.sha256, Sha256Digest::of(body));
        prop_assert_eq!(&whole.chunks, &naive_chunks(body));
        let invalid = std::str::from_utf8(body).err().map(|e| e.valid_up_to() as u64);
        prop_assert_eq!(whole.first_invalid_utf8, invalid);
        let lines = body.split_inclusive(|b| *b == b'\n').count() as u64;
        prop_assert_eq!(whole.line_count, lines);
    }
}

#[test]
fn lines_end_at_lf_and_nowhere_else() {
    for (body, lines) in [
        ("", 0),
        ("\n", 1),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\u{2028}b\nc", 2),
        ("a\r\nb\rc", 2),
        ("\n\n", 2),
    ] {
        assert_eq!(
            BodyFacts::of(body.as_bytes(), 8).line_count,
            lines,
            "{body:?}"
        );
    }
}

#[test]
fn chunk_borders_at_and_around_a_line_end_are_exact() {
    for shift in 0..3 {
        let mut body = vec![b'x'; CHUNK_BYTES - 2 + shift];
        body.push(b'\n');
        body.extend(vec![b'y'; CHUNK_BYTES]);
        assert_eq!(BodyFacts::of(&body, 8).chunks, naive_chunks(&body));
    }
    let exact = vec![b'\n'; 2 * CHUNK_BYTES];
    let facts = BodyFacts::of(&exact, 8);
    assert_eq!(facts.chunks, naive_chunks(&exact));
    assert_eq!(facts.chunks.len(), 2);
}

#[test]
fn binary_means_not_utf8_and_a_nul_is_text() {
    assert!(!BodyFacts::of(b"", 8).is_binary());
    assert!(!BodyFacts::of(b"a\0b", 8).is_binary());
    assert_eq!(BodyFacts::of(b"A\xff\xfeB", 8).first_invalid_utf8, Some(1));
    assert!(BodyFacts::of(b"\x1f\x8b\x08", 8).is_binary());
}

#[test]
fn the_first_line_that_is_not_blank_is_kept_in_part() {
    let first = |body: &[u8]| BodyFacts::of(body, 8).first_line;
    assert_eq!(first(b"\n\n  alpha    beta \ngamma"), b"alpha    beta ");
    assert_eq!(first(b" \n\t\n"), b"");
    assert_eq!(first(&vec![b'k'; 40_000]).len(), FIRST_LINE_BYTES);
    for split in 1..16 {
        let facts = in_pieces(b"\n \n x y \nz", &[split]);
        assert_eq!(facts.first_line, b"x y ");
    }
}

#[test]
fn an_error_far_into_the_body_is_found_with_its_line() {
    let mut body = "compiling\n".repeat(50_000).into_bytes();
    body.extend(b"error[E0308]: mismatched types\nok\n");
    let facts = in_pieces(&body, &[70_001, 3]);
    assert_eq!(facts.late_error.map(|line| line.line_index), Some(50_000));
}
