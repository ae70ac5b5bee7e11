//! The acting part: reads a journal's records in order, several at a time, and hands them to the checker.
//!
//! A listing only says how far to look; records are read by computed key, so a key that a listing leaves
//! out is no gap. **A store that fails ends the walk without a verdict**: what could not be read was not
//! found missing.

use futures_util::{StreamExt, stream};

use crate::lease::checkpoint::{Checkpoint, CheckpointError};
use crate::lease::finding::{Finding, FindingKind};
use crate::lease::journal::Receipt;
use crate::lease::site::Site;
use crate::lease::slot;
use crate::lease::verify::Report;
use crate::lease::verify::checker::{Checker, Seen, Witness};
use crate::limits::JOURNAL_PARALLEL_READS;
use crate::store::keys::Key;
use crate::store::register::Attempts;
use crate::store::{ListRequest, StoreError, StoreErrorKind, paging};

/// How often an absence is asked for before it is believed: stores may show an older state for a moment.
const READS_OF_A_MISSING_RECORD: usize = 3;

/// What stands at a place of the journal.
enum Read {
    Stored(bytes::Bytes),
    Missing,
    Damaged(String),
}

/// Walks the journal of `site` from record 0 and compares every checkpoint and `receipts` with it.
/// Records that are appended meanwhile may be looked at or not.
///
/// # Errors
/// The store failed; nothing is known of the journal then.
pub async fn verify(site: &Site, receipts: &[Receipt]) -> Result<Report, StoreError> {
    let mut checker = Checker::new(site.tenant().clone(), site.session().clone());
    let own = receipts
        .iter()
        .filter(|receipt| receipt.session == *site.session());
    let mut checked = 0;
    for receipt in own {
        checked += 1;
        let witness = Witness {
            who: "a receipt",
            sha256: receipt.sha256,
            state_sha256: None,
        };
        checker.witness(receipt.seq, witness);
    }
    // Listed before the records, so that every checkpoint has its records in this walk.
    let checkpoints = read_checkpoints(site, &mut checker).await?;
    let last = last_listed(site).await?;
    let mut next = 0;
    if let Some(last) = last {
        let mut records = stream::iter(0..=last)
            .map(|seq| read(site, seq, READS_OF_A_MISSING_RECORD))
            .buffered(JOURNAL_PARALLEL_READS);
        while let Some(read) = records.next().await {
            push(&mut checker, &read?);
        }
        next = last.saturating_add(1);
    }
    // What a listing does not show yet.
    loop {
        let read = read(site, next, 1).await?;
        if matches!(read, Read::Missing) {
            break;
        }
        push(&mut checker, &read);
        next += 1;
    }
    Ok(Report {
        checkpoints,
        receipts: checked,
        receipts_of_other_sessions: receipts.len() as u64 - checked,
        ..checker.finish()
    })
}

fn push(checker: &mut Checker, read: &Read) {
    checker.push(match read {
        Read::Stored(bytes) => Seen::Stored(bytes),
        Read::Missing => Seen::Missing,
        Read::Damaged(detail) => Seen::Damaged(detail),
    });
}

async fn read(site: &Site, seq: u64, tries_of_absence: usize) -> Result<Read, StoreError> {
    read_object(site, &site.record_key(seq), tries_of_absence).await
}

/// Reads an object, again where the store was only busy.
async fn read_object(site: &Site, key: &Key, tries_of_absence: usize) -> Result<Read, StoreError> {
    let mut attempts = Attempts::new();
    let mut absences = 0;
    loop {
        match slot::read(&*site.around().store, key).await {
            Ok(Some(stored)) => return Ok(Read::Stored(stored.bytes)),
            Ok(None) => {
                absences += 1;
                if absences >= tries_of_absence {
                    return Ok(Read::Missing);
                }
            }
            // The store itself says that it cannot hand out what was written.
            Err(error) if error.is(StoreErrorKind::Rejected) => {
                return Ok(Read::Damaged(format!(
                    "the store cannot hand it out: {}",
                    error.detail
                )));
            }
            Err(error) if error.kind.is_transient() && attempts.pause().await => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the last record that a listing shows.
async fn last_listed(site: &Site) -> Result<Option<u64>, StoreError> {
    let keys = &site.around().keys;
    let request = ListRequest {
        prefix: keys.journal_records(site.tenant(), site.session_key()),
        ..ListRequest::default()
    };
    let mut pages = paging::list(&*site.around().store, request);
    let mut last = None;
    while let Some(page) = pages.next_page().await? {
        let seq_of = |key: &str| keys.seq_of_journal_record(site.tenant(), site.session_key(), key);
        last = last.max(
            page.objects
                .iter()
                .filter_map(|object| seq_of(&object.key))
                .max(),
        );
    }
    Ok(last)
}

/// Takes every checkpoint for a witness; one that cannot be believed is a finding, although opens pass
/// it over: somebody has to look why it is there.
async fn read_checkpoints(site: &Site, checker: &mut Checker) -> Result<u64, StoreError> {
    let keys = &site.around().keys;
    let request = ListRequest {
        prefix: keys.checkpoints(site.tenant(), site.session_key()),
        ..ListRequest::default()
    };
    let mut pages = paging::list(&*site.around().store, request);
    let mut compared = 0;
    while let Some(page) = pages.next_page().await? {
        for object in &page.objects {
            let Some(seq) = keys.seq_of_checkpoint(site.tenant(), site.session_key(), &object.key)
            else {
                continue;
            };
            let read = read_object(site, &site.checkpoint_key(seq), 1).await?;
            match read {
                Read::Stored(bytes) => {
                    compared += 1;
                    take_checkpoint(site, checker, seq, &bytes);
                }
                // Deleting a checkpoint is always safe.
                Read::Missing => {}
                Read::Damaged(detail) => {
                    let detail = format!("its checkpoint is damaged: {detail}");
                    checker.note(Finding::at(FindingKind::Suspect, seq, detail));
                }
            }
        }
    }
    Ok(compared)
}

fn take_checkpoint(site: &Site, checker: &mut Checker, seq: u64, bytes: &[u8]) {
    match Checkpoint::decode(bytes, site.tenant(), site.session(), seq) {
        Ok(checkpoint) => {
            let witness = Witness {
                who: "the checkpoint",
                sha256: checkpoint.chain.head(),
                state_sha256: Some(checkpoint.state_sha256),
            };
            checker.witness(seq, witness);
        }
        Err(error) => {
            let name = match error {
                CheckpointError::Unsupported(_) => FindingKind::UnknownSchema,
                CheckpointError::Unreadable(_) | CheckpointError::Foreign(_) => {
                    FindingKind::Suspect
                }
            };
            let detail = format!("its checkpoint is passed over: {error}");
            checker.note(Finding::at(name, seq, detail));
        }
    }
}
