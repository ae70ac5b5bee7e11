//! The rules that carry the journal's safety. Each can be taken away, to see that it is needed.

/// One rule. A model without it must be caught: the table of `tests/models`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The store lets one of several creates of a key win.
    OneWinnerPerSlot,
    /// A 412 is compared with what stands there before it is taken for the own success.
    CompareAfterConflict,
    /// A lost slot is folded, and the decision made again, before the next slot is tried.
    FoldEverySlot,
    /// A collector appends `condemned` before it sends a DELETE.
    CondemnBeforeDelete,
    /// No artifact is condemned while a lease is prepared or committed.
    LeasesBlockCondemned,
    /// `condemned` is never taken back: a DELETE may already be on the wire.
    CondemnedIsForever,
    /// The key of a deleted body never gets bytes again: equal bytes have equal ETags.
    KeysAreUsedOnce,
    /// A plan is a list of candidates: an artifact that any entry names after the plan's tail is kept.
    PlansYieldToEntries,
    /// "The owner shows nothing" counts only once the owner has sealed the transaction.
    SealMakesAbsenceFinal,
    /// The seal stands before `aborted` is appended.
    SealBeforeAborted,
    /// The owner removes its reference before `released` is appended.
    RemoveBeforeReleased,
    /// Whether a lease has expired is read from its last `extended`.
    ExpiryReadsExtensions,
    /// No `extended` is effective on a lease without end.
    EndlessStaysEndless,
    /// The date that proves an expiry is the store's, never the host's.
    DatesAreTheStores,
    /// After a 202 an entry lives or dies with the slot that it was sent to.
    UnknownStaysInItsSlot,
    /// A resolve occupies the slot while it is empty, before it says "never".
    ResolveOccupies,
    /// A resolve compares the slot's digest with the 202's before it says "there".
    ResolveCompares,
    /// A resolve writes into the first free slot only.
    ResolveFirstFreeOnly,
    /// Who stalled between a slot and its answer looks whether that slot was truncated since.
    RecheckAfterStall,
    /// Who stalled opens the journal cold instead of asking for the next slot alone.
    ColdOpenAfterStall,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 20] = [
        Self::OneWinnerPerSlot,
        Self::CompareAfterConflict,
        Self::FoldEverySlot,
        Self::CondemnBeforeDelete,
        Self::LeasesBlockCondemned,
        Self::CondemnedIsForever,
        Self::KeysAreUsedOnce,
        Self::PlansYieldToEntries,
        Self::SealMakesAbsenceFinal,
        Self::SealBeforeAborted,
        Self::RemoveBeforeReleased,
        Self::ExpiryReadsExtensions,
        Self::EndlessStaysEndless,
        Self::DatesAreTheStores,
        Self::UnknownStaysInItsSlot,
        Self::ResolveOccupies,
        Self::ResolveCompares,
        Self::ResolveFirstFreeOnly,
        Self::RecheckAfterStall,
        Self::ColdOpenAfterStall,
    ];
}
