//! What a record of the journal says.

/// How many leases the model has; both are on the one artifact.
pub const LEASES: usize = 2;

/// A lease, by its number.
pub type LeaseId = u8;

/// When a lease ends, on the store's own clock, margin included. [`End::Never`] is later than every
/// date: the order of the variants is the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// At this date.
    At(u8),
    /// Not at all (`retain_until: null`).
    Never,
}

/// One entry. A record of the model holds exactly one; a batch is several records that the same
/// evaluation rule takes in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// The lease claims the artifact until its end.
    Prepared(LeaseId, End),
    /// The owner's reference exists.
    Committed(LeaseId),
    /// The owner's reference will never exist.
    Aborted(LeaseId),
    /// The lease ends later.
    Extended(LeaseId, End),
    /// The owner has removed its reference.
    ReleasedRemoved(LeaseId),
    /// The lease's end has passed; the second field is the store's date that proves it.
    ReleasedExpired(LeaseId, u8),
    /// A receipt of the artifact was given again, or it was read.
    Touched,
    /// The artifact will be deleted; `as_of` is the tail that the deciding plan had seen.
    Condemned {
        /// The first slot that the plan did not see.
        as_of: u8,
    },
    /// The artifact's bytes are gone.
    Deleted,
    /// Nothing; it occupies a slot, which makes an absence final.
    Noop,
    /// Takes a `Condemned` back. No such entry exists; see [`Rule::CondemnedIsForever`].
    ///
    /// [`Rule::CondemnedIsForever`]: super::Rule::CondemnedIsForever
    Rescinded,
    /// Puts bytes under the old key again. No such entry exists; see [`Rule::KeysAreUsedOnce`].
    ///
    /// [`Rule::KeysAreUsedOnce`]: super::Rule::KeysAreUsedOnce
    Recreated,
}

/// One record: an entry and the nonce that makes its bytes unlike any other record's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// What it says.
    pub entry: Entry,
    /// Names the attempt that sent it.
    pub nonce: u8,
}
