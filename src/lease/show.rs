//! A journal as a person reads it: record by record, believed or not.
//!
//! Nothing is verified here, and nothing is left out: a record that cannot be read has its place and says
//! why. [`crate::lease::verify`] judges.

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::lease::entry::Entry;
use crate::lease::record::{DecodeError, Expected, Record};
use crate::lease::site::Site;
use crate::lease::slot;
use crate::limits::JOURNAL_PARALLEL_READS;
use crate::store::StoreError;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownRecord {
    /// Its place.
    pub seq: u64,
    /// SHA-256 of its stored bytes.
    pub sha256: Sha256Digest,
    /// What it says; none where it cannot be read.
    #[serde(flatten)]
    pub content: Option<ShownContent>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownContent {
    /// What it follows.
    pub prev: Sha256Digest,
    /// The process that wrote it.
    pub writer: Uuid,
    /// The store's date that the writer had seen last, at most ten minutes earlier.
    pub as_of: Option<Timestamp>,
    /// Its entries in order, as they are stored.
    pub entries: Vec<Entry>,
}

/// Some records of a journal, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownPage {
    /// The records.
    pub records: Vec<ShownRecord>,
    /// Where to go on, unless the journal ends here.
    pub next_seq: Option<u64>,
}

/// Reads up to `limit` records from `first` on. Ends at the first place that holds nothing.
///
/// # Errors
/// The store failed.
pub async fn page(site: &Site, first: u64, limit: usize) -> Result<ShownPage, StoreError> {
    let end = first.saturating_add(limit as u64);
    let mut reads = stream::iter(first..end)
        .map(|seq| async move {
            let stored = slot::read(&*site.around().store, &site.record_key(seq)).await;
            stored.map(|stored| (seq, stored))
        })
        .buffered(JOURNAL_PARALLEL_READS);
    let mut page = ShownPage::default();
    while let Some(read) = reads.next().await {
        let (seq, Some(stored)) = read? else {
            return Ok(page);
        };
        page.records.push(show(site, seq, &stored.bytes));
    }
    page.next_seq = Some(end);
    Ok(page)
}

fn show(site: &Site, seq: u64, bytes: &[u8]) -> ShownRecord {
    let (content, unreadable) = match read(site, seq, bytes) {
        Ok(record) => (
            Some(ShownContent {
                prev: record.prev,
                writer: record.writer,
                as_of: record.as_of,
                entries: record.entries,
            }),
            None,
        ),
        Err(error) => (None, Some(error.to_string())),
    };
    ShownRecord {
        seq,
        sha256: Sha256Digest::of(bytes),
        content,
        unreadable,
    }
}

/// Reads a record whatever it follows: links are verification's.
fn read(site: &Site, seq: u64, bytes: &[u8]) -> Result<Record, DecodeError> {
    let mut expected = Expected {
        tenant: site.tenant(),
        session: site.session(),
        seq,
        prev: Sha256Digest::of(b""),
        sha256: None,
    };
    match Record::decode(bytes, &expected) {
        Err(DecodeError::BadLink { actual, .. }) => {
            expected.prev = actual;
            Record::decode(bytes, &expected)
        }
        other => other,
    }
}
