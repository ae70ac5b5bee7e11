//! Whether requests are welcome here, from what is known without asking anybody.
//!
//! The store is looked at beside the requests (`store_watch.rs`), and [`Hysteresis`] decides what a series
//! of looks means: a single lost packet must not take a replica out, nor a single good answer of a store
//! that is failing bring it back.

use std::sync::{Mutex, PoisonError};

use crate::limits::{READY_FAILURES, READY_SUCCESSES};

/// Why requests are not welcome; the words of `reason` in the reply of `/readyz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// A shutdown has begun.
    Draining,
    /// The store is not open yet.
    Starting,
    /// The store answered that this service may not ask it.
    StoreRefuses,
    /// The store does not answer.
    StoreUnreachable,
}

impl NotReady {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::Draining,
        Self::Starting,
        Self::StoreRefuses,
        Self::StoreUnreachable,
    ];

    /// Returns the reason's word, stable for ever.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Starting => "starting",
            Self::StoreRefuses => "store_refuses",
            Self::StoreUnreachable => "store_unreachable",
        }
    }

    /// Returns a sentence for people; nothing in it comes from the store.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::Draining => "the service is shutting down",
            Self::Starting => "the service has not opened its store yet",
            Self::StoreRefuses => "the store refused the last checks",
            Self::StoreUnreachable => "the store has not answered the last checks",
        }
    }
}

/// What one look at the store found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It answered.
    Answered,
    /// It refused the credentials.
    Refused,
    /// It failed or took too long.
    Failed,
}

/// What a series of looks means. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hysteresis {
    verdict: Option<NotReady>,
    /// Looks in a row that contradict the verdict.
    contradicting: u32,
}

impl Hysteresis {
    /// Returns the state after one more look.
    #[must_use]
    pub fn after(self, look: Look) -> Self {
        let found = match look {
            Look::Answered => None,
            Look::Refused => Some(NotReady::StoreRefuses),
            Look::Failed => Some(NotReady::StoreUnreachable),
        };
        if found.is_some() == self.verdict.is_some() {
            // The newest reason is the one to look into.
            return Self {
                verdict: found,
                contradicting: 0,
            };
        }
        let contradicting = self.contradicting + 1;
        let needed = match found {
            Some(_) => READY_FAILURES,
            None => READY_SUCCESSES,
        };
        if contradicting < needed {
            return Self {
                contradicting,
                ..self
            };
        }
        Self {
            verdict: found,
            contradicting: 0,
        }
    }

    /// Returns why the store is not to be relied on, if so.
    pub fn verdict(self) -> Option<NotReady> {
        self.verdict
    }
}

/// The newest state of the store, shared between the watch and the requests.
#[derive(Debug, Default)]
pub struct StoreHealth(Mutex<Hysteresis>);

impl StoreHealth {
    /// Takes in one look; returns the verdict before and after.
    pub fn see(&self, look: Look) -> (Option<NotReady>, Option<NotReady>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.verdict();
        *state = state.after(look);
        (before, state.verdict())
    }

    /// Returns why the store is not to be relied on, if so.
    pub fn verdict(&self) -> Option<NotReady> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.verdict()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const A: Look = Look::Answered;
    const R: Look = Look::Refused;
    const F: Look = Look::Failed;

    #[rstest]
    #[case::untouched(&[], None)]
    #[case::two_failures(&[F, F], None)]
    #[case::three_failures(&[F, F, F], Some(NotReady::StoreUnreachable))]
    #[case::interrupted_failures(&[F, F, A, F, F], None)]
    #[case::refusals_are_failures(&[F, F, R], Some(NotReady::StoreRefuses))]
    #[case::the_newest_reason(&[F, F, F, R], Some(NotReady::StoreRefuses))]
    #[case::one_answer_is_not_back(&[F, F, F, A], Some(NotReady::StoreUnreachable))]
    #[case::two_answers_are(&[F, F, F, A, A], None)]
    #[case::flapping_stays_out(&[F, F, F, A, F, A, F, A], Some(NotReady::StoreUnreachable))]
    fn a_series_of_looks_has_one_meaning(
        #[case] looks: &[Look],
        #[case] expected: Option<NotReady>,
    ) {
        let state = looks
            .iter()
            .fold(Hysteresis::default(), |state, look| state.after(*look));
        assert_eq!(state.verdict(), expected);
    }

    proptest! {
        /// The last looks alone decide, once they agree for long enough.
        #[test]
        fn agreeing_looks_decide_whatever_was_before(
            before in prop::collection::vec(prop_oneof![Just(A), Just(R), Just(F)], 0..20),
            is_good: bool,
        ) {
            let last = if is_good { [A; 3] } else { [F; 3] };
            let looks = before.iter().chain(&last);
            let state = looks.fold(Hysteresis::default(), |state, look| state.after(*look));
            prop_assert_eq!(state.verdict().is_none(), is_good);
        }
    }
}
