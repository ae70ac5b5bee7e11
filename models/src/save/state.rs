//! One state of the bucket, the wire, the savers, and what the checker remembers.

/// How many savers a world has at most. Saver `i` picks artifact id `i`.
pub const SAVERS: usize = 3;
/// How many records a chain has: an id is recorded once at most, and `erased` comes after them.
pub const RECORDS: usize = 4;
/// How many chains of records: two digests of one call, or a session and its fork.
pub const CHAINS: usize = 2;

/// What a saver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A body known in full: it goes out beside its record.
    Known,
    /// A streamed body: it is complete before its record.
    Streamed,
    /// A body without a call id: no record.
    Bare,
}

/// Why an artifact is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// It was old.
    Ttl,
    /// Somebody asked for it.
    Erased,
    /// A body without a manifest.
    Abandoned,
}

/// A call record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// Not decided.
    Empty,
    /// The call became this artifact.
    Saved(u8),
    /// The call's content was erased.
    Erased,
}

/// What stands at a manifest's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Manifest {
    /// Nothing.
    Absent,
    /// A manifest, made from the body of this generation.
    Live(u8),
    /// A tombstone.
    Tombstone(Why),
}

/// What the journal says of an artifact. The journal's own model is its proof; here it is a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Journal {
    /// Nothing.
    Live,
    /// It will be deleted.
    Condemned(Why),
    /// It was.
    Deleted(Why),
}

/// The lease of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lease {
    /// None.
    None,
    /// `prepare` has read the live manifest and appended nothing yet.
    Seen,
    /// Prepared.
    Leased,
    /// Released.
    Released,
}

/// What `/results` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The text stays.
    Inline,
    /// A replacement stands for it.
    Spilled,
}

/// How far a saver's result record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It has none: the call came to `/artifacts`, or did not begin.
    None,
    /// It looks what the own session and its parent have decided.
    Asking,
    /// It would spill: its record goes out beside the manifest, so that no failed save is frozen.
    Open,
    /// Its record is on the wire.
    Sent,
    /// It is known.
    Known(Action),
}

/// Where a saver stands. `Record`, `Body` and `Manifest` mean that such a PUT is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// It has not begun.
    Idle,
    /// It waits for its result alone.
    Result,
    /// Its body streams.
    Stream,
    /// It looks at the records of its own session, having a parent.
    Own,
    /// It looks at the records of the parent.
    Parent,
    /// Its record is on the wire.
    Record,
    /// It reads the manifest behind another's record.
    Look,
    /// It asks whether the streamed body behind another's record is there.
    Head,
    /// It appends `touched` before it answers from an old manifest.
    Touch,
    /// It buries a recorded body that is not there.
    Bury,
    /// It puts a body.
    Body,
    /// It creates a manifest.
    Manifest,
    /// It answered with a receipt.
    Acknowledged,
    /// It answered that the text stays inline.
    Inline,
    /// It answered 410.
    Gone,
    /// It answered 503.
    Failed,
    /// It found no free record.
    Exhausted,
}

impl Step {
    pub(super) fn is_answered(self) -> bool {
        matches!(
            self,
            Self::Acknowledged | Self::Inline | Self::Gone | Self::Failed | Self::Exhausted
        )
    }
}

/// One saver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Saver {
    /// Where it stands.
    pub step: Step,
    /// The record it is at.
    pub record: u8,
    /// The artifact that it finishes, replays or has acknowledged.
    pub artifact: u8,
    /// The generation of the body in its manifest.
    pub generation: u8,
    /// Its own body PUT was answered 200.
    pub has_own_body: bool,
    /// A manifest for its own artifact was sent.
    pub has_sent_manifest: bool,
    /// Its own body's DELETE was sent.
    pub has_sent_delete: bool,
    /// Its result record.
    pub verdict: Verdict,
    /// For the checker: it began after the erase was acknowledged, and must be answered 410.
    pub is_after_erase: bool,
    /// For the checker: the live artifact of its parent when it began.
    pub inherits: Option<u8>,
    /// For the checker: the result that was frozen when it began.
    pub frozen: Option<Action>,
}

impl Saver {
    pub(super) const fn new() -> Self {
        Self {
            step: Step::Idle,
            record: 0,
            artifact: 0,
            generation: 0,
            has_own_body: false,
            has_sent_manifest: false,
            has_sent_delete: false,
            verdict: Verdict::None,
            is_after_erase: false,
            inherits: None,
            frozen: None,
        }
    }
}

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The call records, by chain.
    pub records: [[Record; RECORDS]; CHAINS],
    /// The result records, by chain.
    pub results: [Option<Action>; CHAINS],
    /// What stands at the manifests' keys.
    pub manifests: [Manifest; SAVERS],
    /// The bodies: 0 is none, else one more than the saver whose PUT made it.
    pub bodies: [u8; SAVERS],
    /// Versioned bucket: the manifest's version still exists under its tombstone.
    pub has_old_version: [bool; SAVERS],
    /// The journal.
    pub journal: [Journal; SAVERS],
    /// The leases.
    pub leases: [Lease; SAVERS],
    /// The savers.
    pub savers: [Saver; SAVERS],
    /// Create-only body PUTs on the wire: per artifact, a bit for each sender.
    pub body_puts: [u8; SAVERS],
    /// A multipart upload was completed; that happens once.
    pub is_streamed: [bool; SAVERS],
    /// A create-only `upload_abandoned` is on the wire.
    pub burials: [bool; SAVERS],
    /// Body DELETEs on the wire that no stable tombstone licenses yet: a bit for each generation, bit 7
    /// for whichever is there.
    pub deletes: [u8; SAVERS],
    /// For the checker: a receipt of the artifact was given.
    pub is_acknowledged: [bool; SAVERS],
    /// The artifact that an erase was asked for.
    pub erase: Option<u8>,
    /// The erase answered 200.
    pub is_erased: bool,
    /// This saver never acts again; what it sent may still land.
    pub dead: Option<u8>,
    /// For the checker: a save that began after the erase's 200 got a receipt.
    pub is_erase_broken: bool,
}

impl State {
    pub(super) const fn new() -> Self {
        Self {
            records: [[Record::Empty; RECORDS]; CHAINS],
            results: [None; CHAINS],
            manifests: [Manifest::Absent; SAVERS],
            bodies: [0; SAVERS],
            has_old_version: [false; SAVERS],
            journal: [Journal::Live; SAVERS],
            leases: [Lease::None; SAVERS],
            savers: [Saver::new(); SAVERS],
            body_puts: [0; SAVERS],
            is_streamed: [false; SAVERS],
            burials: [false; SAVERS],
            deletes: [0; SAVERS],
            is_acknowledged: [false; SAVERS],
            erase: None,
            is_erased: false,
            dead: None,
            is_erase_broken: false,
        }
    }

    /// Returns whether the journal has condemned the artifact.
    pub fn is_condemned(&self, artifact: usize) -> bool {
        self.journal[artifact] != Journal::Live
    }

    /// Returns whether a manifest stands at the artifact's key.
    pub fn is_live(&self, artifact: usize) -> bool {
        matches!(self.manifests[artifact], Manifest::Live(_))
    }

    /// Returns whether a tombstone stands at the artifact's key.
    pub fn is_tombstone(&self, artifact: usize) -> bool {
        matches!(self.manifests[artifact], Manifest::Tombstone(_))
    }

    /// Returns whether a decided record names the artifact.
    pub fn is_recorded(&self, artifact: usize) -> bool {
        let named = Record::Saved(artifact as u8);
        self.records.iter().flatten().any(|record| *record == named)
    }
}
