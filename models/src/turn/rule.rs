//! The rules that keep a turn frozen. Each can be taken away, to see that it is needed.

/// One rule. A model without it must be caught: the table of `tests/models`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// What earlier records name is not decided again.
    EarlierRecordsDecide,
    /// A record that was lost is read before the call is answered.
    LostRecordsAreRead,
    /// After a lost record the rest is decided again, on what won.
    LostRecordsAreDecidedAgain,
    /// A record goes to the first free number.
    FirstFreeNumber,
    /// What `/results` has spilled is no candidate of its turn.
    SpilledIsNoCandidate,
    /// A fork's own records come before its parent's.
    OwnSessionFirst,
    /// A fork takes what its parent's records name.
    ParentsAreRead,
    /// A fork takes its parent's `inline` as well.
    ParentInlineIsTaken,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 8] = [
        Self::EarlierRecordsDecide,
        Self::LostRecordsAreRead,
        Self::LostRecordsAreDecidedAgain,
        Self::FirstFreeNumber,
        Self::SpilledIsNoCandidate,
        Self::OwnSessionFirst,
        Self::ParentsAreRead,
        Self::ParentInlineIsTaken,
    ];
}
