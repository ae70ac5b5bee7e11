//! Short ways to write entries in tests.

use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::Sha256Digest;
use crate::ids::ArtifactId;
use crate::lease::chain::Chain;
use crate::lease::entry::{
    AbortReason, CondemnReason, Condemned, DeleteOutcome, Entry, OwnerMode, Prepared, ReleaseReason,
};
use crate::lease::names::{OwnerName, TransactionId};
use crate::lease::record::Record;

pub(in crate::lease) fn aid(n: u64) -> ArtifactId {
    ArtifactId::new(n, [7; 10])
}

pub(in crate::lease) fn txn(name: &str) -> TransactionId {
    name.parse().unwrap()
}

pub(in crate::lease) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A time of a day, by its hour.
pub(in crate::lease) fn hour(hour: i64) -> Timestamp {
    Timestamp::from_second(1_796_083_200 + hour * 3600).unwrap()
}

pub(in crate::lease) fn intent(name: &str, artifact: u64) -> Prepared {
    Prepared {
        transaction_id: txn(name),
        owner: "memory".parse().unwrap(),
        mode: OwnerMode::OwnerFenced,
        artifact_id: aid(artifact),
        sha256: Sha256Digest::of(b"x"),
        size_bytes: 1,
        etag: "\"e\"".to_owned(),
        version_id: None,
        reference_count: 1,
        retain_until: None,
        reason: None,
    }
}

pub(in crate::lease) fn hold_intent(name: &str, artifact: u64) -> Prepared {
    Prepared {
        owner: OwnerName::hold(),
        reason: Some("court order".parse().unwrap()),
        ..intent(name, artifact)
    }
}

pub(in crate::lease) fn prepared(name: &str, artifact: u64) -> Entry {
    Entry::Prepared(Box::new(intent(name, artifact)))
}

pub(in crate::lease) fn prepared_until(name: &str, artifact: u64, end: Timestamp) -> Entry {
    Entry::Prepared(Box::new(Prepared {
        retain_until: Some(end),
        ..intent(name, artifact)
    }))
}

pub(in crate::lease) fn committed(name: &str) -> Entry {
    Entry::Committed {
        transaction_id: txn(name),
        owner_generation: None,
    }
}

pub(in crate::lease) fn aborted(name: &str, why: AbortReason) -> Entry {
    Entry::Aborted {
        transaction_id: txn(name),
        why,
    }
}

pub(in crate::lease) fn extended(name: &str, retain_until: Option<Timestamp>) -> Entry {
    Entry::Extended {
        transaction_id: txn(name),
        retain_until,
    }
}

pub(in crate::lease) fn released(name: &str, why: ReleaseReason) -> Entry {
    Entry::Released {
        transaction_id: txn(name),
        why,
    }
}

pub(in crate::lease) fn condemnation(artifact: u64) -> Condemned {
    Condemned {
        artifact_id: aid(artifact),
        decision_id: None,
        sha256: None,
        size_bytes: None,
        etag: None,
        version_id: None,
        store_checksum: None,
        manifest_version_id: None,
        why: CondemnReason::Expired,
        server_date: hour(0),
        plan_id: None,
    }
}

pub(in crate::lease) fn condemned(artifact: u64) -> Entry {
    Entry::Condemned(Box::new(condemnation(artifact)))
}

pub(in crate::lease) fn deleted(artifact: u64) -> Entry {
    Entry::Deleted {
        artifact_id: aid(artifact),
        outcome: DeleteOutcome::Deleted,
    }
}

pub(in crate::lease) fn touched(artifact: u64) -> Entry {
    Entry::Touched {
        artifact_id: aid(artifact),
    }
}

pub(in crate::lease) fn cleared(seq: u64) -> Entry {
    Entry::Cleared { seq, reason: None }
}

/// The bytes of the record that follows `chain`; record 0 gets its beginning.
pub(in crate::lease) fn next_record(
    chain: &Chain,
    nonce: u128,
    as_of: Option<Timestamp>,
    mut entries: Vec<Entry>,
) -> Vec<u8> {
    if chain.next_seq() == 0 {
        entries.insert(0, Entry::Genesis { features: vec![] });
    }
    let record = Record {
        tenant: chain.tenant().clone(),
        session: chain.session().clone(),
        seq: chain.next_seq(),
        prev: chain.head(),
        writer: Uuid::nil(),
        nonce: Uuid::from_u128(nonce),
        as_of,
        entries,
    };
    record.encode().unwrap()
}
