//! Clearing old results: all but the newest ones are replaced by a fixed sentence that keeps the
//! locator. What was never stored is never touched: there would be no way back to it.

/// How many of the newest results stay, unless somebody says otherwise.
pub const DEFAULT_KEPT: usize = 6;

/// One result of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clearable<'a> {
    /// Where it is stored; `None` where it is not.
    pub locator: Option<&'a str>,
    /// The length of what stands in the prompt for it.
    pub size_bytes: u64,
}

/// Returns the sentence for each result that is cleared, `None` for each that stays. `results` stand in
/// the order of the conversation, the newest last.
///
/// Doing it again gives the same sentences, and one more result changes only the one that becomes old.
pub fn clear(results: &[Clearable<'_>], kept: usize) -> Vec<Option<String>> {
    let old = results.len().saturating_sub(kept);
    let cleared = |(place, result): (usize, &Clearable<'_>)| {
        let locator = result.locator.filter(|_| place < old)?;
        let sentence = sentence(locator);
        (sentence.len() as u64 <= result.size_bytes).then_some(sentence)
    };
    results.iter().enumerate().map(cleared).collect()
}

/// Returns what stands for a cleared result.
pub fn sentence(locator: &str) -> String {
    format!("[an older tool result was cleared; all of it is kept at {locator}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_old_and_stored_results_are_cleared() {
        let stored = |locator| Clearable {
            locator: Some(locator),
            size_bytes: 5_000,
        };
        let never_stored = Clearable {
            locator: None,
            size_bytes: 90_000,
        };
        let tiny = Clearable {
            locator: Some("spillbox:c.c"),
            size_bytes: 9,
        };
        let mut results = vec![stored("spillbox:a.a"), never_stored, tiny];
        results.extend([stored("spillbox:b.b"); DEFAULT_KEPT]);
        let cleared = clear(&results, DEFAULT_KEPT);
        assert_eq!(cleared[0].as_deref(), Some(&*sentence("spillbox:a.a")));
        assert!(cleared[1..].iter().all(Option::is_none));
        assert!(clear(&results, results.len()).iter().all(Option::is_none));
    }

    proptest! {
        #[test]
        fn a_cleared_result_stays_cleared_as_the_conversation_grows(
            stored in proptest::collection::vec(any::<bool>(), 0..30),
            kept in 0_usize..10,
        ) {
            let results: Vec<_> = stored
                .iter()
                .map(|stored| Clearable { locator: stored.then_some("spillbox:a.b"), size_bytes: 4_000 })
                .collect();
            for end in 0..results.len() {
                let (before, after) = (clear(&results[..end], kept), clear(&results[..=end], kept));
                for (one, two) in before.iter().zip(&after) {
                    prop_assert!(one.is_none() || one == two);
                }
            }
        }
    }
}
