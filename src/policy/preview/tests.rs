use super::*;
use proptest::prelude::*;
use rstest::rstest;

fn windows(text: &str) -> Windows {
    Windows::of(text.as_bytes(), 1 << 16)
}

#[rstest]
#[case::behind_the_half(6, LineEnd::BeforeIfPastHalf, "abcd")]
#[case::kept(6, LineEnd::AfterIfPastHalf, "abcd\n")]
#[case::at_the_half_is_not_behind_it(8, LineEnd::BeforeIfPastHalf, "abcd\nefg")]
#[case::at_the_half_is_from_it(8, LineEnd::BeforeIfFromHalf, "abcd")]
#[case::ignored(6, LineEnd::Ignored, "abcd\ne")]
#[case::nothing_more_follows(20, LineEnd::BeforeIfPastHalf, "abcd\nefgh")]
#[case::zero(0, LineEnd::BeforeIfFromHalf, "")]
fn a_head_ends_at_a_line_end_where_that_costs_little(
    #[case] length: u64,
    #[case] line_end: LineEnd,
    #[case] expected: &str,
) {
    let cut = cut_head(
        &windows("abcd\nefgh"),
        length,
        Measure::Characters,
        line_end,
    );
    assert_eq!(cut.head, expected);
}

#[test]
fn units_are_counted_and_no_character_is_split() {
    let text = windows("é🙂界x");
    let head = |length, measure| cut_head(&text, length, measure, LineEnd::Ignored).head;
    assert_eq!(head(2, Measure::Characters), "é🙂");
    assert_eq!(head(2, Measure::Utf16Units), "é");
    assert_eq!(head(3, Measure::Utf16Units), "é🙂");
    assert_eq!(head(5, Measure::Bytes), "é");
    let ends = cut_ends(&text, 1, 2, Measure::Characters);
    assert_eq!((ends.head.as_str(), ends.tail.as_str()), ("é", "界x"));
    assert_eq!(ends.omitted_bytes(), 4);
}

proptest! {
    #[test]
    fn head_omission_and_tail_are_the_whole_text(
        text in "[a-c\n\\[<é界🙂\u{1b}]{0,200}",
        window in 1_usize..300,
        head in 0_u64..90,
        tail in 0_u64..90,
    ) {
        let windows = Windows::of(text.as_bytes(), window);
        for measure in [Measure::Bytes, Measure::Characters, Measure::Utf16Units] {
            let one = cut_head(&windows, head, measure, LineEnd::AfterIfPastHalf);
            let both = cut_ends(&windows, head, tail, measure);
            for cut in [one, both] {
                let (end, start) = (cut.head_end as usize, cut.tail_start as usize);
                prop_assert!(end <= start && start <= text.len());
                prop_assert_eq!(&text[..end], cut.head);
                prop_assert_eq!(&text[start..], cut.tail);
                let units = |text: &str| text.chars().map(|c| measure.of_char(c)).sum::<u64>();
                prop_assert!(units(&text[..end]) <= head && units(&text[start..]) <= tail);
            }
        }
        let budget = (head + tail) as usize;
        let cut = cut_escaped(&windows, budget);
        prop_assert!(cut.head.len() + cut.tail.len() <= budget);
        let (end, start) = (cut.head_end as usize, cut.tail_start as usize);
        prop_assert!(end <= start);
        prop_assert_eq!(Shown::of(&text.as_bytes()[start..]).text, cut.tail);
    }
}
