//! Opening a journal cold: the newest checkpoint, and every record after it.
//!
//! A listing only says where to begin and how far to look. Records are read by computed key, so a key
//! that a listing leaves out is no gap, and what is newer than the listing is met when slot *n* is
//! written or probed. A checkpoint that cannot be believed is passed over: the records say all that it
//! says.

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use tracing::warn;

use crate::digest::Sha256Digest;
use crate::lease::chain::Chain;
use crate::lease::checkpoint::{Checkpoint, CheckpointError, Tail};
use crate::lease::record::{DecodeError, Record};
use crate::lease::site::Site;
use crate::lease::slot::{self, Stored};
use crate::limits::{JOURNAL_PARALLEL_READS, MAX_CHECKPOINT_BYTES};
use crate::store::{ListRequest, StoreError, StoreErrorKind, paging};

/// How often a record that has to be there is asked for before its absence is believed: stores may
/// show an older state for a moment.
const READS_OF_A_MISSING_RECORD: usize = 3;

/// A journal cannot be folded.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// The store failed; nothing is known of the journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record is not the one that has to stand there.
    #[error("journal record {seq}: {error}")]
    Broken {
        /// Its place.
        seq: u64,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A record is missing although later ones are there.
    #[error("journal record {seq} is missing, but record {last} is there")]
    Gap {
        /// Its place.
        seq: u64,
        /// A later record.
        last: u64,
    },
}

impl OpenError {
    /// Returns whether a newer version may read the journal.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Broken { error, .. } if error.is_unsupported())
    }
}

/// A freshly folded journal.
#[derive(Debug)]
pub struct Opened {
    /// The prefix.
    pub chain: Chain,
    /// What was folded after the checkpoint.
    pub tail: Tail,
    /// Writers of the last records, oldest first.
    pub writers: Vec<uuid::Uuid>,
    /// The store's date of a reply that showed the tail.
    pub date: Option<Timestamp>,
}

/// Folds a journal from its newest believable checkpoint.
///
/// # Errors
/// See [`OpenError`].
pub async fn open(site: &Site) -> Result<Opened, OpenError> {
    let checkpoints = newest_checkpoints(site).await?;
    for seq in checkpoints {
        let Some(checkpoint) = read_checkpoint(site, seq).await? else {
            continue;
        };
        let size_bytes = checkpoint.size_bytes;
        match fold_from(site, checkpoint.chain, size_bytes).await {
            // Perhaps the checkpoint lies, and not the record: fold without it.
            Err(OpenError::Broken { seq: broken, error })
                if broken == seq + 1 && !error.is_unsupported() =>
            {
                warn!(session = %site.session(), seq, "the record after a checkpoint does not follow it: {error}");
            }
            other => return other,
        }
    }
    fold_from(site, site.genesis(), 0).await
}

/// Folds a journal from the checkpoint before the newest one, through the newest, which must say what
/// the records say.
///
/// # Errors
/// See [`OpenError`]. A checkpoint that says something else makes the journal suspect, which the
/// caller finds in [`Site::has_conflict`].
pub async fn open_double_rooted(site: &Site) -> Result<Opened, OpenError> {
    let checkpoints = newest_checkpoints(site).await?;
    let mut believed = Vec::new();
    for seq in &checkpoints {
        believed.extend(read_checkpoint(site, *seq).await?);
    }
    let newest = believed.first().map(|newest| {
        let through = newest.chain.next_seq();
        (through, newest.chain.head(), newest.state_sha256)
    });
    let root = match believed.get(1) {
        Some(second) => second.chain.clone(),
        None => site.genesis(),
    };
    let mut root = root;
    if let Some((through, head, state_sha256)) = newest {
        while root.next_seq() < through {
            let next = root.next_seq();
            fold_range(
                site,
                &mut root,
                next..through,
                through,
                &mut Tally::default(),
            )
            .await?;
        }
        let folds_to = crate::lease::checkpoint::state_sha256(root.state());
        if root.head() != head || folds_to != state_sha256 {
            warn!(session = %site.session(), seq = through - 1, "a checkpoint says something else than the records: nothing is destroyed in this journal");
            site.note_conflict();
        }
    }
    fold_from(site, root, 0).await
}

/// Writes the checkpoint through the last record of `chain`, and compares one that is there.
pub async fn write_checkpoint(site: &Site, chain: &Chain) {
    let Some(bytes) = Checkpoint::encode(chain) else {
        return;
    };
    site.note_checkpoint_bytes(bytes.len() as u64);
    let seq = chain.next_seq() - 1;
    let store = &*site.around().store;
    let (key, bytes) = (site.checkpoint_key(seq), bytes.into());
    match crate::store::register::decide(store, &key, &bytes).await {
        Ok(crate::store::register::Decision::Won(_)) => {}
        Ok(crate::store::register::Decision::Lost(_)) => {
            warn!(session = %site.session(), seq, "somebody's checkpoint says something else: two versions fold differently, nothing is destroyed in this journal");
            site.note_conflict();
        }
        // The records are all there: the next due writer or opener writes one.
        Err(error) => warn!(session = %site.session(), seq, "checkpoint not written: {error}"),
    }
}

/// Returns the places of the newest two checkpoints, newest first.
async fn newest_checkpoints(site: &Site) -> Result<Vec<u64>, StoreError> {
    let around = site.around();
    let request = ListRequest {
        prefix: around.keys.checkpoints(site.tenant(), site.session_key()),
        max_keys: Some(2),
        ..ListRequest::default()
    };
    let objects = around.store.list(&request).await?.objects;
    let seq_of = |key: &str| {
        around
            .keys
            .seq_of_checkpoint(site.tenant(), site.session_key(), key)
    };
    Ok(objects.iter().filter_map(|o| seq_of(&o.key)).collect())
}

async fn read_checkpoint(site: &Site, seq: u64) -> Result<Option<Checkpoint>, StoreError> {
    let key = site.checkpoint_key(seq);
    let Some(stored) = slot::read(&*site.around().store, &key).await? else {
        return Ok(None);
    };
    if stored.bytes.len() as u64 > MAX_CHECKPOINT_BYTES {
        return Ok(None);
    }
    match Checkpoint::decode(&stored.bytes, site.tenant(), site.session(), seq) {
        Ok(checkpoint) => Ok(Some(checkpoint)),
        Err(error @ CheckpointError::Unsupported(_)) => {
            tracing::debug!(session = %site.session(), seq, "checkpoint passed over: {error}");
            Ok(None)
        }
        Err(error) => {
            warn!(session = %site.session(), seq, "checkpoint passed over: {error}");
            Ok(None)
        }
    }
}

async fn fold_from(
    site: &Site,
    mut chain: Chain,
    checkpoint_bytes: u64,
) -> Result<Opened, OpenError> {
    let first = chain.next_seq();
    let listed = last_listed(site, first).await?;
    let mut tally = Tally::default();
    if let Some(last) = listed.last.filter(|last| *last >= first) {
        // An end that no number follows cannot be listed by us; the fold stops at the gap before it.
        let end = last.saturating_add(1);
        fold_range(site, &mut chain, first..end, last, &mut tally).await?;
    }
    Ok(Opened {
        chain,
        tail: Tail {
            records: tally.records,
            bytes: tally.bytes,
            checkpoint_bytes,
        },
        writers: tally.writers,
        date: tally.date.max(listed.date),
    })
}

struct LastListed {
    last: Option<u64>,
    date: Option<Timestamp>,
}

/// Returns the last record that a listing shows from `first` on.
async fn last_listed(site: &Site, first: u64) -> Result<LastListed, StoreError> {
    let around = site.around();
    let before = first.checked_sub(1);
    let request = ListRequest {
        prefix: around
            .keys
            .journal_records(site.tenant(), site.session_key()),
        start_after: before.map(|seq| site.record_key(seq).as_str().to_owned()),
        ..ListRequest::default()
    };
    let mut pages = paging::list(&*around.store, request);
    let (mut last, mut date) = (None, None);
    while let Some(page) = pages.next_page().await? {
        date = page.date;
        let seqs = page.objects.iter().filter_map(|object| {
            around
                .keys
                .seq_of_journal_record(site.tenant(), site.session_key(), &object.key)
        });
        last = last.max(seqs.max());
    }
    Ok(LastListed { last, date })
}

/// What was met while records were folded.
#[derive(Debug, Default)]
struct Tally {
    records: u64,
    bytes: u64,
    writers: Vec<uuid::Uuid>,
    date: Option<Timestamp>,
}

async fn fold_range(
    site: &Site,
    chain: &mut Chain,
    range: std::ops::Range<u64>,
    last: u64,
    tally: &mut Tally,
) -> Result<(), OpenError> {
    let mut records = stream::iter(range)
        .map(|seq| async move { (seq, read_present(site, seq, last).await) })
        .buffered(JOURNAL_PARALLEL_READS);
    while let Some((seq, stored)) = records.next().await {
        let stored = stored?;
        let record = push(site, chain, seq, &stored).await?;
        tally.records += 1;
        tally.bytes += stored.bytes.len() as u64;
        tally.date = tally.date.max(stored.date);
        tally.writers.push(record.writer);
        if tally.writers.len() > 64 {
            tally.writers.drain(..48);
        }
    }
    Ok(())
}

/// Reads a record that has to be there, because a later one is.
async fn read_present(site: &Site, seq: u64, last: u64) -> Result<Stored, OpenError> {
    for _ in 0..READS_OF_A_MISSING_RECORD {
        let read = slot::read(&*site.around().store, &site.record_key(seq)).await;
        if let Some(stored) = read? {
            return Ok(stored);
        }
    }
    Err(OpenError::Gap { seq, last })
}

/// Appends what was read from slot `seq` to the prefix. Bytes that do not fit are read once more: a
/// reply that was cut short must not count as damage.
///
/// # Errors
/// [`OpenError::Broken`] where the store shows the same bytes again.
pub async fn push(
    site: &Site,
    chain: &mut Chain,
    seq: u64,
    stored: &Stored,
) -> Result<Record, OpenError> {
    let error = match chain.push(&stored.bytes) {
        Ok(record) => return Ok(record),
        Err(error) => error,
    };
    match slot::read(&*site.around().store, &site.record_key(seq)).await? {
        Some(again) if again.bytes != stored.bytes => chain
            .push(&again.bytes)
            .map_err(|error| OpenError::Broken { seq, error }),
        Some(_) => Err(OpenError::Broken { seq, error }),
        None => Err(StoreError::new(
            StoreErrorKind::Unavailable,
            "get",
            site.record_key(seq),
            "there a moment ago, and not any more",
        )
        .into()),
    }
}

/// Returns the hash of record `seq` as it is stored; `None` where there is none.
///
/// # Errors
/// The store's.
pub async fn hash_of(site: &Site, seq: u64) -> Result<Option<Sha256Digest>, StoreError> {
    let stored = slot::read(&*site.around().store, &site.record_key(seq)).await?;
    Ok(stored.map(|stored| Sha256Digest::of(&stored.bytes)))
}

#[cfg(test)]
mod tests;
