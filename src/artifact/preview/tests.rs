use proptest::prelude::*;

use super::*;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        ".{0,4}".prop_map(String::into_bytes),
        Just("界🙂\n".as_bytes().to_vec()),
        Just(b"a line of text\n".to_vec()),
        Just(b"[spillbox] \r".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..5),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn retained_parts_are_exact_and_within_their_budgets(
        body in bytes(), head in 0_usize..60, tail in 0_usize..60,
    ) {
        let windows = Windows::of(&body, head.max(tail));
        let kept = retain(&windows, head, tail);
        let size = body.len() as u64;
        prop_assert_eq!(kept.head_end + kept.omitted_bytes() + (size - kept.tail_start), size);
        if body.len() <= head + tail {
            prop_assert_eq!(kept.text, String::from_utf8_lossy(&body));
        } else {
            prop_assert!(kept.head_end as usize <= head);
            prop_assert!((size - kept.tail_start) as usize <= tail);
            prop_assert!(kept.head_end as usize + 3 >= head);
            prop_assert!((size - kept.tail_start) as usize + 3 >= tail);
            if std::str::from_utf8(&body).is_ok() {
                let parts = [&body[..kept.head_end as usize], &body[kept.tail_start as usize..]];
                prop_assert_eq!(kept.text, String::from_utf8(parts.concat()).unwrap());
            }
        }
    }

    #[test]
    fn excerpts_are_exact_and_within_their_budget(
        body in bytes(), budget in 0_usize..300, window in 0_usize..400,
    ) {
        let windows = Windows::of(&body, window);
        let cut = excerpt(&windows, budget);
        prop_assert!(cut.head.len() <= budget / 2);
        prop_assert!(cut.head.len() + cut.tail.len() <= budget);
        let size = body.len() as u64;
        prop_assert_eq!(cut.head_end + cut.omitted_bytes() + (size - cut.tail_start), size);
        if let Ok(text) = std::str::from_utf8(&body) {
            let head = text.get(..cut.head_end as usize);
            let tail = text.get(cut.tail_start as usize..);
            prop_assert_eq!(head.map(|t| Shown::of(t.as_bytes()).text.len() <= cut.head.len()), Some(true));
            prop_assert_eq!(tail.map(|t| Shown::of(t.as_bytes()).text), Some(cut.tail));
        }
    }
}

#[test]
fn budgets_inside_a_code_point_never_split_it() {
    for (head, text) in [(3, "ab"), (4, "ab"), (5, "ab"), (6, "ab🙂")] {
        let kept = retain(&Windows::of("ab🙂cd".as_bytes(), 8), head, 0);
        assert_eq!(kept.text, text, "{head}");
    }
}

#[test]
fn line_ends_are_preferred_where_they_cost_less_than_half() {
    let body = "0123456\n".repeat(100);
    let cut = excerpt(&Windows::of(body.as_bytes(), 200), 61);
    assert_eq!(cut.head, "0123456\n".repeat(3));
    assert_eq!(cut.tail, "0123456\n".repeat(4));
    // Exactly at a line start already: nothing more is given up.
    let cut = excerpt(&Windows::of(body.as_bytes(), 200), 64);
    assert_eq!((cut.head.len(), cut.tail.len()), (32, 32));
}

#[test]
fn a_long_line_is_cut_by_bytes() {
    let body = format!("{{\"k\":\"{}\"}}", "q".repeat(900_000));
    let cut = excerpt(&Windows::of(body.as_bytes(), 4_096), 1_000);
    assert_eq!((cut.head.len(), cut.tail.len()), (500, 500));
    assert_eq!(cut.omitted_bytes(), body.len() as u64 - 1_000);
}

#[test]
fn omissions_are_told_in_words() {
    assert_eq!(Omission::None.describe("bytes"), "");
    assert_eq!(Omission::Exact(7).describe("bytes"), "7 bytes omitted");
    assert_eq!(
        Omission::Unknown.describe("bytes"),
        "an unknown number of bytes omitted"
    );
}
