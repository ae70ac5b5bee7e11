//! Who won a race for one key: the pure rule.

use bytes::Bytes;

use crate::store::{PutReceipt, StoreError, StoreErrorKind};

/// What a contender was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// "You created it."
    Acknowledged,
    /// "The key is taken."
    Refused,
    /// Anything else (409, 503, a lost reply): it may have won all the same.
    Undecided(String),
}

impl Answer {
    pub(super) fn of(result: &Result<PutReceipt, StoreError>) -> Self {
        match result {
            Ok(_) => Self::Acknowledged,
            Err(error) => match error.kind {
                StoreErrorKind::AlreadyExists | StoreErrorKind::PreconditionFailed => Self::Refused,
                StoreErrorKind::NotFound
                | StoreErrorKind::Conflict
                | StoreErrorKind::Ambiguous
                | StoreErrorKind::Denied
                | StoreErrorKind::Throttled
                | StoreErrorKind::Unavailable
                | StoreErrorKind::NotImplemented
                | StoreErrorKind::InvalidRange
                | StoreErrorKind::Full
                | StoreErrorKind::Rejected => Self::Undecided(error.detail.clone()),
            },
        }
    }
}

/// One contender: bytes that nobody else sent, and what it was told.
#[derive(Debug, Clone)]
pub(super) struct Contender {
    pub(super) body: Bytes,
    pub(super) answer: Answer,
}

/// The verdict on one race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ruling {
    /// One winner, somebody was refused, and the winner's bytes are there.
    Fair,
    /// Data was lost, or would be.
    Unfair(String),
    /// Too few were answered to say.
    Unclear(String),
}

/// Judges a race by what the contenders were told and what is there afterwards. An undecided answer
/// counts as whatever the content says; so does a refusal, since a repeated request meets itself.
pub(super) fn judge(contenders: &[Contender], content: Option<&[u8]>) -> Ruling {
    let told = |wanted: &Answer| contenders.iter().filter(|c| c.answer == *wanted).count();
    let acknowledged = told(&Answer::Acknowledged);
    let total = contenders.len();
    if acknowledged > 1 {
        return Ruling::Unfair(format!(
            "{acknowledged} of {total} writers were told that they created the same key"
        ));
    }
    let unanswered = contenders.iter().find_map(|c| match &c.answer {
        Answer::Undecided(why) => Some(why.clone()),
        Answer::Acknowledged | Answer::Refused => None,
    });
    let Some(content) = content else {
        return match (acknowledged, unanswered) {
            (0, Some(why)) => Ruling::Unclear(format!("no writer was answered: {why}")),
            (0, None) => Ruling::Unfair(format!("all {total} writers were refused a free key")),
            (_, _) => Ruling::Unfair("the object of an acknowledged create is absent".into()),
        };
    };
    let Some(owner) = contenders.iter().position(|c| c.body == content) else {
        return Ruling::Unfair("the object holds bytes that no writer sent".into());
    };
    if acknowledged == 1 && contenders[owner].answer != Answer::Acknowledged {
        return Ruling::Unfair("another writer's bytes replaced those of the winner".into());
    }
    let is_contested = contenders
        .iter()
        .enumerate()
        .any(|(at, c)| at != owner && c.answer == Answer::Refused);
    if is_contested {
        Ruling::Fair
    } else {
        let why = unanswered.unwrap_or_default();
        Ruling::Unclear(format!("no loser was told so: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Answer::{Acknowledged, Refused};
    use super::*;

    fn lost() -> Answer {
        Answer::Undecided("status 409".into())
    }

    #[rstest]
    #[case::one_winner(vec![Acknowledged, Refused, Refused], Some("0"), "fair")]
    #[case::two_winners(vec![Acknowledged, Acknowledged, Refused], Some("0"), "unfair")]
    #[case::winner_replaced(vec![Acknowledged, Refused, Refused], Some("1"), "unfair")]
    #[case::winner_replaced_by_an_undecided(vec![Acknowledged, lost(), Refused], Some("1"), "unfair")]
    #[case::winner_gone(vec![Acknowledged, Refused, Refused], None, "unfair")]
    #[case::foreign_bytes(vec![Acknowledged, Refused, Refused], Some("9"), "unfair")]
    #[case::nobody_got_a_free_key(vec![Refused, Refused, Refused], None, "unfair")]
    #[case::the_winner_heard_nothing(vec![lost(), Refused, Refused], Some("0"), "fair")]
    #[case::the_winner_met_itself(vec![Refused, Refused, Refused], Some("0"), "fair")]
    #[case::conflicts_for_losers(vec![Acknowledged, lost(), Refused], Some("0"), "fair")]
    #[case::nobody_was_answered(vec![lost(), lost(), lost()], None, "unclear")]
    #[case::no_loser_was_answered(vec![Acknowledged, lost(), lost()], Some("0"), "unclear")]
    #[case::alone_refused_by_itself(vec![Refused, lost(), lost()], Some("0"), "unclear")]
    fn a_race_is_judged_by_answers_and_content(
        #[case] answers: Vec<Answer>,
        #[case] content: Option<&str>,
        #[case] want: &str,
    ) {
        let contenders: Vec<_> = answers
            .into_iter()
            .enumerate()
            .map(|(number, answer)| Contender {
                body: number.to_string().into(),
                answer,
            })
            .collect();
        let got = match judge(&contenders, content.map(str::as_bytes)) {
            Ruling::Fair => "fair",
            Ruling::Unfair(_) => "unfair",
            Ruling::Unclear(_) => "unclear",
        };
        assert_eq!(got, want);
    }
}
