use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::artifact::search::hit::Hit;
use crate::artifact::search::page::lock;
use crate::artifact::search::pattern::compile;
use crate::artifact::search::query::{Needle, SearchMode, SearchQuery};

fn query(pattern: &str) -> SearchQuery {
    let mut query = SearchQuery::literal(pattern);
    query.needle.mode = SearchMode::Regex;
    query.max_bytes = 1 << 20;
    query.limit = 10_000;
    query
}

fn matcher(needle: &Needle) -> RegexMatcher {
    compile(needle).unwrap()
}

/// One page from `place` on; `None` at the end.
fn page(
    body: &[u8],
    query: &SearchQuery,
    place: Place,
    piece_bytes: usize,
    early_end: EarlyEnd<'_>,
) -> (Vec<Hit>, Option<Place>) {
    let input = Start::input_offset_of(place) as usize;
    let start = Start {
        place,
        input_offset: input as u64,
        input_line_index: memchr_iter(b'\n', &body[..input]).count() as u64,
        size_bytes: body.len() as u64,
    };
    let page = Page::new(query, place);
    let progress = page.progress();
    let mut engine = Engine::new(matcher(&query.needle), &start, page);
    let mut pieces = std::iter::once(&body[..0]).chain(body[input..].chunks(piece_bytes));
    while let Some(piece) = pieces.next()
        && engine.push(piece, early_end).is_continue()
    {
        let most = CONTEXT_REACH_BYTES + CHUNK_BYTES + LONG_LINE_BYTES + WINDOW_OVERLAP_BYTES;
        let reach = engine.page.context_reach_bytes();
        assert!(engine.bytes.len() <= most + reach + 2 * piece_bytes + SEARCH_BLOCK_BYTES);
    }
    let progress = std::mem::take(&mut *lock(&progress));
    let reason = progress.ended.expect("a whole body ends its page");
    (progress.hits, reason.map(|_| progress.place))
}

/// Every hit, over as many pages as it takes.
fn all_pages(
    body: &[u8],
    query: &SearchQuery,
    piece_bytes: usize,
    early_end: EarlyEnd<'_>,
) -> Vec<Hit> {
    let mut place = Place::default();
    let mut hits = Vec::new();
    for _ in 0..5_000 {
        let (found, next) = page(body, query, place, piece_bytes, early_end);
        hits.extend(found);
        match next {
            Some(next) => place = next,
            None => return hits,
        }
    }
    panic!("the pages do not end");
}

/// The same by looking at one line after the other: line number, body offset.
fn naive(body: &[u8], needle: &Needle) -> Vec<(u64, u64)> {
    let matcher = matcher(needle);
    let mut found = Vec::new();
    let mut offset = 0;
    let mut lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    for (index, line) in (1..).zip(lines) {
        let mut from = 0;
        while from <= line.len()
            && let Some(matched) = matcher.find_at(line, from).unwrap()
        {
            found.push((index, (offset + matched.start()) as u64));
            if line.len() <= LONG_LINE_BYTES {
                break;
            }
            from = matched.end().max(matched.start() + 1);
        }
        offset += line.len() + 1;
    }
    found
}

fn places(hits: &[Hit]) -> Vec<(u64, u64)> {
    hits.iter()
        .map(|h| (h.line_number, h.byte_offset))
        .collect()
}

fn never() -> Option<TruncatedReason> {
    None
}

/// Lines of every kind: text, NULs, CRLF, what is not UTF-8, empty, and long ones of some windows.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => Just(&b"needle "[..]),
        4 => Just(&b"hay "[..]),
        2 => Just(&b"\n"[..]),
        1 => Just(&b"\n\n"[..]),
        1 => Just(&b"\r\n"[..]),
        1 => Just(&b"\0\0"[..]),
        1 => Just(&b"\xff\xfe\xe7\x95"[..]),
        1 => Just("界é".as_bytes()),
    ];
    let filler = prop_oneof![
        6 => 0_usize..60,
        2 => 8_000_usize..20_000,
        1 => 60_000_usize..70_000,
        1 => Just(LONG_LINE_BYTES),
        1 => 120_000_usize..300_000,
    ];
    let part = (proptest::collection::vec(word, 0..6), filler);
    proptest::collection::vec(part, 0..12).prop_map(|parts| {
        let mut body = Vec::new();
        for (words, filler) in parts {
            body.extend(words.concat());
            body.extend(std::iter::repeat_n(b'.', filler));
        }
        body
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn following_the_pages_finds_what_a_naive_search_finds_each_hit_once(
        body in body(),
        pattern in prop_oneof![
            Just("needle"), Just("^needle"), Just("\\Aneedle"), Just("needle $"), Just("\\bhay\\b"),
            Just("ne+dle hay"), Just("^$"), Just("\r$"), Just("\\x00+"), Just("界|é"), Just("(?-u)\\xff"),
            Just("[a-z]+ \\.{100,900}"),
        ],
        limit in prop_oneof![Just(1_usize), 2_usize..5, Just(10_000)],
        context_lines in 0_usize..4,
        piece_bytes in prop_oneof![Just(1_000_usize), 10_000_usize..300_000],
        patience in prop_oneof![Just(usize::MAX / 2), 2_usize..20],
    ) {
        let mut query = query(pattern);
        query.context_lines = context_lines;
        let whole = all_pages(&body, &query, CHUNK_BYTES, &never);
        prop_assert_eq!(places(&whole), naive(&body, &query.needle));
        query.limit = limit;
        let asked = Cell::new(0_usize);
        // Far enough apart that what a page must read before its first hit has come.
        let patience = patience + 500_000 / piece_bytes;
        let early_end = || {
            asked.set(asked.get() + 1);
            asked.get().is_multiple_of(patience).then_some(TruncatedReason::Deadline)
        };
        let paged = all_pages(&body, &query, piece_bytes, &early_end);
        prop_assert_eq!(paged, whole);
    }

    #[test]
    fn small_replies_lose_nothing(body in body(), max_bytes in 1_u64..3_000) {
        let mut query = query("needle");
        query.context_lines = 2;
        query.max_bytes = max_bytes;
        let hits = all_pages(&body, &query, CHUNK_BYTES, &never);
        prop_assert_eq!(places(&hits), naive(&body, &query.needle));
        for hit in &hits {
            prop_assert_eq!(&hit.text[hit.match_start..hit.match_end], "needle");
        }
    }
}

#[test]
fn context_is_shown_on_both_sides_and_across_blocks() {
    let body = b"zero\none\r\ntwo\nthe needle\nfour\n\nsix\n";
    let mut query = query("needle");
    query.context_lines = 2;
    let hits = all_pages(body, &query, 5, &never);
    assert_eq!(hits[0].context_before, ["one\r", "two"]);
    assert_eq!(hits[0].context_after, ["four", ""]);
    assert_eq!(
        (hits[0].line_number, hits[0].text.as_str()),
        (4, "the needle")
    );
}

#[test]
fn a_page_is_ended_by_its_limit_only_when_the_body_goes_on() {
    let mut query = query("x");
    query.limit = 2;
    let (hits, next) = page(b"x\nx\n", &query, Place::default(), 64, &never);
    assert_eq!((hits.len(), next), (2, None));
    let (_, next) = page(b"x\nx\nno\n", &query, Place::default(), 64, &never);
    assert_eq!(next.map(|place| place.offset), Some(4));
}

#[test]
fn an_endless_line_is_searched_in_constant_memory() {
    let mut body = vec![b'.'; 20 << 20];
    for at in [0, 65_533, 9_000_000, (20 << 20) - 6] {
        body[at..at + 6].copy_from_slice(b"needle");
    }
    let query = query("needle");
    let hits = all_pages(&body, &query, CHUNK_BYTES, &never);
    let offsets: Vec<_> = hits.iter().map(|hit| hit.byte_offset).collect();
    assert_eq!(offsets, [0, 65_533, 9_000_000, (20 << 20) - 6]);
    assert!(
        hits.iter()
            .all(|hit| hit.line_number == 1 && hit.clipped && hit.text.len() <= 512)
    );
}

#[test]
fn a_slow_pattern_is_left_between_blocks() {
    let body = "a line of text\n".repeat(100_000);
    let query = query("x");
    let asked = Cell::new(0_u64);
    let early_end = || {
        asked.set(asked.get() + 1);
        (asked.get() > 3).then_some(TruncatedReason::Deadline)
    };
    let (_, next) = page(
        body.as_bytes(),
        &query,
        Place::default(),
        CHUNK_BYTES,
        &early_end,
    );
    let searched = next.unwrap().offset;
    assert!(
        (1..=3 * SEARCH_BLOCK_BYTES as u64).contains(&searched),
        "{searched}"
    );
}
