use proptest::prelude::*;

use super::*;
use crate::artifact::scan::BodyFacts;

/// Cuts a page as the reader does: only the chunks that were asked for are there.
fn page(body: &[u8], facts: &BodyFacts, request: &PageRequest) -> LinePage {
    let shape = BodyShape {
        size_bytes: facts.size_bytes,
        line_count: facts.line_count,
        chunks: &facts.chunks,
    };
    let chunks = request.chunks(&shape);
    let bytes = bytes_of_chunks(&chunks, facts.size_bytes);
    request.cut(
        &shape,
        &chunks,
        &body[bytes.start as usize..bytes.end as usize],
    )
}

fn request(start: PageStart, limit: u64, max_bytes: u64, form: PageForm) -> PageRequest {
    PageRequest::new(start, limit, max_bytes, form).unwrap()
}

fn text_page(body: &[u8], start: PageStart, limit: u64) -> LinePage {
    let request = request(start, limit, 24_000, PageForm::Text);
    page(body, &BodyFacts::of(body, 8), &request)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => ".{0,12}".prop_map(String::into_bytes),
        1 => Just("界🙂é".repeat(30).into_bytes()),
        1 => Just(b"\x80\x81\xff\xe7\x95".to_vec()),
        1 => (0_usize..300_000).prop_map(|n| vec![b'q'; n]),
        1 => Just("🙂".repeat(70_000).into_bytes()),
        1 => Just("x\n".repeat(90_000).into_bytes()),
    ];
    let ends = proptest::collection::vec(prop_oneof![3 => Just("\n"), 1 => Just("")], 8);
    (proptest::collection::vec(line, 0..8), ends).prop_map(|(lines, ends)| {
        let joined = lines
            .iter()
            .zip(ends)
            .map(|(line, end)| [&line[..], end.as_bytes()].concat());
        joined.collect::<Vec<_>>().concat()
    })
}

fn form() -> impl Strategy<Value = PageForm> {
    prop_oneof![Just(PageForm::Text), Just(PageForm::Json)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn following_the_pages_to_the_end_gives_the_body(
        body in body(),
        limit in prop_oneof![Just(1_u64), Just(7), Just(50_000)],
        max_bytes in prop_oneof![Just(700_u64), Just(24_000), Just(1 << 20)],
        form in form(),
    ) {
        // Small pages of a large body would only cost time.
        let body = if limit < 10 || max_bytes < 1_000 { &body[..body.len().min(9_000)] } else { &body };
        let facts = BodyFacts::of(body, 8);
        let mut read = Vec::new();
        let mut next = Some(PageStart::Line(0));
        while let Some(start) = next {
            let page = page(body, &facts, &request(start, limit, max_bytes, form));
            prop_assert_eq!(page.start_byte, read.len() as u64);
            prop_assert!(page.past_end == body.is_empty());
            prop_assert!(page.past_end || !page.bytes.is_empty());
            prop_assert!(page.bytes.len() as u64 <= max_bytes);
            prop_assert!(page.lines.len() as u64 <= limit);
            if form == PageForm::Json {
                let json = serde_json::to_string(&page).unwrap();
                prop_assert!(json.len() as u64 <= max_bytes, "{} {}", json.len(), max_bytes);
            }
            read.extend_from_slice(&page.bytes);
            prop_assert_eq!(page.end_byte, read.len() as u64);
            next = page.next_byte.map(PageStart::Byte)
                .or(page.next_offset.map(PageStart::Line));
        }
        prop_assert_eq!(&read[..], body);
    }

    #[test]
    fn a_page_of_whole_lines_is_what_splitting_the_body_gives(
        lines in proptest::collection::vec("[a-z]{0,6}", 0..30),
        ends_with_lf in any::<bool>(),
        offset in 0_u64..34,
        limit in 1_u64..12,
        from_end in any::<bool>(),
    ) {
        let mut text = lines.join("\n");
        if ends_with_lf && !lines.is_empty() {
            text.push('\n');
        }
        let expected: Vec<&str> = text.split_inclusive('\n').collect();
        let start = if from_end { PageStart::FromEnd(offset + 1) } else { PageStart::Line(offset) };
        let first = if from_end { expected.len().saturating_sub(offset as usize + 1) } else { offset as usize };
        let page = text_page(text.as_bytes(), start, limit);
        let end = expected.len().min(first + limit as usize);
        let expected_lines = expected.get(first..end).unwrap_or_default();
        prop_assert_eq!(String::from_utf8(page.bytes).unwrap(), expected_lines.concat());
        let bare: Vec<_> = expected_lines.iter().map(|l| l.strip_suffix('\n').unwrap_or(l)).collect();
        prop_assert_eq!(&page.lines, &bare);
        prop_assert_eq!(page.past_end, first >= expected.len());
        prop_assert_eq!(page.total_lines, expected.len() as u64);
        if page.past_end {
            prop_assert_eq!((page.start_line, page.end_line, page.next_offset), (None, None, None));
        } else {
            prop_assert_eq!((page.start_line, page.end_line), (Some(first as u64 + 1), Some(end as u64)));
            prop_assert_eq!(page.next_offset, (end < expected.len()).then_some(end as u64));
        }
    }

    #[test]
    fn any_byte_offset_is_aligned_to_a_code_point_and_numbered_right(
        text in "[a-é界🙂\n]{1,60}",
        pad in prop_oneof![Just(0_usize), CHUNK_BYTES - 40..CHUNK_BYTES],
        at in 0_usize..150,
    ) {
        let text = "p".repeat(pad) + &text;
        let at = (pad.saturating_sub(5) + at).min(text.len() - 1);
        let page = text_page(text.as_bytes(), PageStart::Byte(at as u64), 3);
        let start = page.start_byte as usize;
        prop_assert!(start <= at && at < start + 4);
        prop_assert_eq!(start, text.floor_char_boundary(at));
        let lines_before = text[..start].matches('\n').count() as u64;
        prop_assert_eq!(page.start_line, Some(lines_before + 1));
        prop_assert_eq!(page.starts_inside_line, start > 0 && !text[..start].ends_with('\n'));
        prop_assert!(text[start..].starts_with(std::str::from_utf8(&page.bytes).unwrap()));
    }
}

#[test]
fn a_page_of_200_lines_in_a_large_body_needs_at_most_two_chunks() {
    let body: Vec<u8> = (0..200_000)
        .flat_map(|n| format!("{n}: a line of ordinary length for a grep result\n").into_bytes())
        .collect();
    let facts = BodyFacts::of(&body, 8);
    let shape = BodyShape {
        size_bytes: facts.size_bytes,
        line_count: facts.line_count,
        chunks: &facts.chunks,
    };
    for offset in (0..200_000).step_by(617) {
        let request = request(PageStart::Line(offset), 200, 24_000, PageForm::Json);
        assert!(request.chunks(&shape).len() <= 2, "{offset}");
        let page = page(&body, &facts, &request);
        assert!(page.lines[0].starts_with(&format!("{offset}: ")));
    }
}

#[test]
fn an_endless_line_is_read_on_by_bytes() {
    let body = format!("{{\"k\":\"{}\"}}", "q".repeat(900_000));
    let first = text_page(body.as_bytes(), PageStart::Line(0), 10);
    assert_eq!(first.bytes.len(), 24_000);
    assert_eq!((first.next_offset, first.next_byte), (None, Some(24_000)));
    assert!(first.ends_inside_line && !first.starts_inside_line);
    let second = text_page(body.as_bytes(), PageStart::Byte(450_000), 10);
    assert_eq!(second.start_byte, 450_000);
    assert!(second.starts_inside_line);
    assert_eq!((second.start_line, second.end_line), (Some(1), Some(1)));
}

#[test]
fn past_the_end_is_stated_and_reads_nothing() {
    let page = text_page(b"a\nb\nc\nd", PageStart::Line(10), 5);
    assert!(page.past_end && page.lines.is_empty());
    assert_eq!((page.start_line, page.total_lines), (None, 4));
    assert!(text_page(b"", PageStart::Line(0), 5).past_end);
    assert!(text_page(b"", PageStart::FromEnd(1), 5).past_end);
    assert!(text_page(b"abc", PageStart::Byte(3), 5).past_end);
}

#[test]
fn a_page_shorter_than_a_code_point_gives_it_whole() {
    let body = "🙂🙂".as_bytes();
    let facts = BodyFacts::of(body, 8);
    let first = page(
        body,
        &facts,
        &request(PageStart::Line(0), 1, 1, PageForm::Text),
    );
    assert_eq!((first.bytes.len(), first.next_byte), (4, Some(4)));
}

#[test]
fn zero_and_too_much_are_refused() {
    let new = |start, limit, bytes| PageRequest::new(start, limit, bytes, PageForm::Text);
    assert_eq!(new(PageStart::Line(0), 0, 1), Err(InvalidPageError::Limit));
    assert_eq!(
        new(PageStart::FromEnd(0), 1, 1),
        Err(InvalidPageError::Limit)
    );
    assert_eq!(
        new(PageStart::Line(0), 1, 0),
        Err(InvalidPageError::MaxBytes)
    );
    assert_eq!(
        new(PageStart::Line(0), 1, MAX_REPLY_BYTES + 1),
        Err(InvalidPageError::MaxBytes)
    );
    assert!(new(PageStart::Line(u64::MAX), 1, 1).is_ok());
}

#[test]
fn offsets_at_the_edge_of_the_number_range_are_past_the_end() {
    for start in [PageStart::Line(u64::MAX), PageStart::Byte(u64::MAX)] {
        assert!(text_page(b"a\nb", start, 1).past_end);
    }
}

#[test]
fn a_window_that_is_too_short_never_panics() {
    let body = b"a\nb\nc\n";
    let facts = BodyFacts::of(body, 8);
    let shape = BodyShape {
        size_bytes: facts.size_bytes,
        line_count: facts.line_count,
        chunks: &facts.chunks,
    };
    for start in [
        PageStart::Line(2),
        PageStart::Byte(5),
        PageStart::FromEnd(1),
    ] {
        let request = request(start, 5, 100, PageForm::Text);
        for length in 0..body.len() {
            request.cut(&shape, &(0..1), &body[..length]);
        }
    }
}
