//! What can happen next.
//!
//! Nothing is ever made to happen: a PUT that never lands is one whose landing is not chosen, and a
//! saver that takes no further step is dead. A request whose licence never expires (a tombstone after
//! `condemned`, a body's DELETE after a tombstone, the `erased` record) may land at any time from then
//! on: that is every late copy, any number of collectors, and a collector's death at every step.

/// One thing that happens. A bare number is a saver; an `artifact` is named so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A save begins.
    Start(u8),
    /// A saver dies for good; in other worlds it just takes no further step.
    Dies(u8),
    /// Its multipart upload takes effect.
    StreamLands(u8),
    /// It learns so.
    StreamSeen(u8),
    /// It looks what the sessions have decided on this result.
    ResultAsked(u8),
    /// Its result record lands.
    ResultLands(u8),
    /// It learns what the result record says.
    ResultSeen(u8),
    /// It looks at the records of its own session.
    OwnChain(u8),
    /// It looks at the records of the parent.
    ParentChain(u8),
    /// The same; the parent's artifact is older than half the TTL.
    ParentChainOld(u8),
    /// Its call record lands.
    RecordLands(u8),
    /// It learns what the record says.
    RecordSeen(u8),
    /// It takes a 412 for an answer.
    RecordBelieved(u8),
    /// It reads the manifest behind another's record.
    GetManifest(u8),
    /// The same; the artifact is older than half the TTL.
    GetManifestOld(u8),
    /// The GET answers 404, as it once was.
    GetStaleAbsent(u8),
    /// The GET answers with the manifest under the tombstone, as it once was.
    GetStaleLive(u8),
    /// It asks whether the streamed body is there.
    HeadBody(u8),
    /// It appends `touched`.
    Touch(u8),
    /// It buries the recorded body that is not there.
    BuryInstead(u8),
    /// A body PUT lands.
    BodyLands {
        /// Under this id.
        artifact: u8,
        /// Sent by this saver.
        by: u8,
        /// Who gets the answer.
        reply: bool,
    },
    /// It learns that the body is there.
    BodySeen(u8),
    /// It sends the same body again.
    BodyAgain(u8),
    /// Its manifest lands.
    ManifestLands(u8),
    /// It learns what stands at the manifest's key.
    ManifestSeen(u8),
    /// It deletes its own body.
    DeleteOwn(u8),
    /// It passes over an unfinished record.
    SkipAhead(u8),
    /// A body's DELETE lands.
    DeleteLands {
        /// Of this artifact.
        artifact: u8,
        /// On this generation, 7 for whichever is there.
        generation: u8,
    },
    /// `prepare` reads the live manifest of this artifact.
    PrepareReads(u8),
    /// `prepared` is appended.
    Prepared(u8),
    /// `released` is appended.
    Released(u8),
    /// `condemned` is appended.
    Condemned(u8),
    /// The manifest is overwritten by its tombstone.
    TombstoneLands(u8),
    /// A collector sends `upload_abandoned`.
    BurySent(u8),
    /// It lands.
    BuryLands(u8),
    /// A collector deletes the body beside a tombstone.
    SweepBody(u8),
    /// A collector deletes the manifest's version under a tombstone.
    SweepVersion(u8),
    /// `deleted` is appended.
    Deleted(u8),
    /// A collector deletes a body without a licence: only without one of its rules.
    UnlicensedDelete(u8),
    /// An erase of this artifact begins.
    Erase(u8),
    /// The erase condemns an artifact.
    EraseCondemns(u8),
    /// The erase's record lands.
    ErasedRecordLands {
        /// As this record.
        record: u8,
    },
    /// The erase buries an artifact that was recorded and has no manifest.
    EraseBuries(u8),
    /// The erase answers 200.
    EraseAcknowledged,
}
