//! The rules that carry a save's promises. Each can be taken away, to see that it is needed.

/// One rule. A model without it must be caught: the table of `tests/models`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The body is stored before a manifest is sent.
    BodyBeforeManifest,
    /// A 412 on a record is compared before the own record is taken for the winner.
    LostRecordsAreRead,
    /// A 412 on a record is compared before the own body is deleted.
    CompareBeforeOwnDelete,
    /// A 412 on a manifest is read: a tombstone may stand there.
    LostManifestsAreRead,
    /// Manifests are created, never written over what is there.
    ManifestsAreCreated,
    /// A record without a manifest is finished, not passed over, in the own session.
    UnfinishedIsFinished,
    /// A saver deletes its own body as its last act, after its answer is decided.
    OwnDeleteIsLast,
    /// A saver deletes its own body only when every record that it sent for it is decided.
    OwnDeleteWaitsForRecords,
    /// A saver never deletes its own body once a manifest for it was sent.
    OwnDeleteNotAfterManifest,
    /// The key of the record holds the digest: other bytes under one call id are another record.
    DigestsHaveOwnRecords,
    /// A body without a manifest is deleted only beside a tombstone, however old it is.
    OrphansAreBuriedFirst,
    /// The burial's outcome is known before the body goes.
    BurialIsAwaited,
    /// A burial that lost to a manifest is no licence to delete.
    LostBurialIsNoLicence,
    /// A burial creates; it never overwrites.
    BurialCreates,
    /// A save that meets `upload_abandoned` behind a record takes the next one.
    AbandonedMovesOn,
    /// The tombstone stands before the body is deleted.
    TombstoneBeforeDelete,
    /// A collected manifest is overwritten: a create would lose to it, and the body go without it.
    TombstoneOverwrites,
    /// No artifact is condemned while it is leased.
    LeasesBlockCondemned,
    /// A prepare is decided by the journal, after it has read the manifest.
    PrepareReadsJournal,
    /// A manifest key is never free again.
    ManifestKeyStaysTaken,
    /// A body beside a tombstone goes whenever it is seen.
    LateBodiesGo,
    /// The store reads what was written: no GET answers with what stood there before.
    ReadsSeeWrites,
    /// Every use of a cached manifest asks whether it is still live.
    ReadsRevalidate,
    /// An erase writes `erased` into the call's next record.
    EraseEndsTheRecords,
    /// An erase that finds the next record taken goes on with what that one names.
    EraseGoesOn,
    /// An erase condemns what later records name; it does not merely look for a free one.
    EraseTakesLaterRecords,
    /// An erase confirms what earlier records name.
    EraseConfirmsEarlier,
    /// An erase answers 200 when tombstones and body deletes are confirmed, not before.
    EraseConfirms,
    /// A save that meets `erased` answers 410.
    ErasedIsFinal,
    /// A fork looks whether a parent's record decides.
    ParentsAreRead,
    /// A parent's unfinished record is passed over.
    ParentUnfinishedIsPassed,
    /// A parent's collected artifact is passed over.
    ParentCollectedIsPassed,
    /// A parent's `erased` is final for the fork as well.
    ParentErasedIsFinal,
    /// A result record that was lost is read before the call is answered.
    ResultsAreCompared,
    /// A call of `/results` that spills answers once its result record is decided, not before.
    AnswerWaitsForResult,
    /// A fork takes a parent's result as its own, `inline` included.
    ParentResultsAreTaken,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 36] = [
        Self::BodyBeforeManifest,
        Self::LostRecordsAreRead,
        Self::CompareBeforeOwnDelete,
        Self::LostManifestsAreRead,
        Self::ManifestsAreCreated,
        Self::UnfinishedIsFinished,
        Self::OwnDeleteIsLast,
        Self::OwnDeleteWaitsForRecords,
        Self::OwnDeleteNotAfterManifest,
        Self::DigestsHaveOwnRecords,
        Self::OrphansAreBuriedFirst,
        Self::BurialIsAwaited,
        Self::LostBurialIsNoLicence,
        Self::BurialCreates,
        Self::AbandonedMovesOn,
        Self::TombstoneBeforeDelete,
        Self::TombstoneOverwrites,
        Self::LeasesBlockCondemned,
        Self::PrepareReadsJournal,
        Self::ManifestKeyStaysTaken,
        Self::LateBodiesGo,
        Self::ReadsSeeWrites,
        Self::ReadsRevalidate,
        Self::EraseEndsTheRecords,
        Self::EraseGoesOn,
        Self::EraseTakesLaterRecords,
        Self::EraseConfirmsEarlier,
        Self::EraseConfirms,
        Self::ErasedIsFinal,
        Self::ParentsAreRead,
        Self::ParentUnfinishedIsPassed,
        Self::ParentCollectedIsPassed,
        Self::ParentErasedIsFinal,
        Self::ResultsAreCompared,
        Self::AnswerWaitsForResult,
        Self::ParentResultsAreTaken,
    ];
}
