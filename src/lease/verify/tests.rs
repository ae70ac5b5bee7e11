//! One damaged journal for each name, and the whole ones.

use std::sync::Arc;

use rstest::rstest;
use uuid::Uuid;

use super::checker::{Checker, Seen, Witness};
use super::walk::verify;
use super::*;
use crate::clock::{ManualClock, SystemClock};
use crate::ids::{SeededIds, SessionId, Tenant};
use crate::lease::chain::Chain;
use crate::lease::checkpoint::Checkpoint;
use crate::lease::entry::Entry;
use crate::lease::journal::Receipt;
use crate::lease::journals::Journals;
use crate::lease::record::Record;
use crate::lease::sample::{committed, deleted, prepared, touched};
use crate::lease::site::Site;
use crate::store::keys::KeySpace;
use crate::store::memory::MemoryStore;
use crate::store::{DeleteFence, PutMode, SharedStore};

const A: u128 = 0xa;
const B: u128 = 0xb;

fn names() -> (Tenant, SessionId) {
    (Tenant::default(), "run-7".parse().unwrap())
}

fn genesis() -> Chain {
    let (tenant, session) = names();
    Chain::genesis(tenant, session)
}

/// The bytes of the record after `chain` by one writer.
fn record_of(chain: &Chain, writer: u128, nonce: u128, mut entries: Vec<Entry>) -> Vec<u8> {
    if chain.next_seq() == 0 {
        entries.insert(0, Entry::Genesis { features: vec![] });
    }
    let record = Record {
        tenant: chain.tenant().clone(),
        session: chain.session().clone(),
        seq: chain.next_seq(),
        prev: chain.head(),
        writer: Uuid::from_u128(writer),
        nonce: Uuid::from_u128(nonce),
        as_of: None,
        entries,
    };
    record.encode().unwrap()
}

/// A journal of `n` records, all of writer A, and the chain after each.
fn journal(n: u64) -> (Vec<Vec<u8>>, Vec<Chain>) {
    let (mut records, mut chains, mut chain) = (vec![], vec![], genesis());
    for seq in 0..n {
        let entries = vec![prepared(&format!("t{seq}"), seq)];
        let bytes = record_of(&chain, A, seq.into(), entries);
        chain.push(&bytes).unwrap();
        records.push(bytes);
        chains.push(chain.clone());
    }
    (records, chains)
}

fn checker() -> Checker {
    let (tenant, session) = names();
    Checker::new(tenant, session)
}

fn check_with(records: &[Vec<u8>], receipts: &[(u64, Sha256Digest)]) -> Report {
    let mut checker = checker();
    for (seq, sha256) in receipts {
        let witness = Witness {
            who: "a receipt",
            sha256: *sha256,
            state_sha256: None,
        };
        checker.witness(*seq, witness);
    }
    for bytes in records {
        let seen = if bytes.is_empty() {
            Seen::Missing
        } else {
            Seen::Stored(bytes)
        };
        checker.push(seen);
    }
    checker.finish()
}

/// What was found, without the sentences.
fn found(report: &Report) -> Vec<(FindingKind, u64, u64)> {
    let facts = |f: &Finding| (f.name, f.first_seq, f.last_seq);
    report.findings.iter().map(facts).collect()
}

fn check(records: &[Vec<u8>]) -> Vec<(FindingKind, u64, u64)> {
    found(&check_with(records, &[]))
}

/// Changes one digit of a record's claim; it stays a well-formed record.
fn edited(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let changed = text.replace("\"reference_count\":1", "\"reference_count\":2");
    assert_ne!(changed, text);
    changed.into_bytes()
}

#[test]
fn a_whole_journal_is_ok() {
    let report = check_with(&journal(6).0, &[]);
    assert_eq!(report.status, Status::Ok);
    assert_eq!((report.records, report.head.unwrap().seq), (6, 5));
    let empty = check_with(&[], &[]);
    assert_eq!(
        (empty.status, empty.records, empty.head),
        (Status::Ok, 0, None)
    );
}

#[rstest]
#[case::one(&[2], (2, 2))]
#[case::three(&[1, 2, 3], (1, 3))]
#[case::the_first(&[0], (0, 0))]
fn missing_records_are_a_gap(#[case] missing: &[usize], #[case] named: (u64, u64)) {
    let (mut records, _) = journal(6);
    for seq in missing {
        records[*seq].clear();
    }
    assert_eq!(check(&records), [(FindingKind::Gap, named.0, named.1)]);
}

#[test]
fn a_record_at_a_second_place_is_a_duplicate() {
    let (mut records, _) = journal(6);
    records[4] = records[2].clone();
    assert_eq!(check(&records), [(FindingKind::Duplicate, 4, 4)]);
}

#[test]
fn an_edited_record_has_a_bad_hash() {
    let (mut records, _) = journal(6);
    records[3] = edited(&records[3]);
    assert_eq!(check(&records), [(FindingKind::BadHash, 3, 3)]);
}

#[test]
fn an_edited_last_record_is_found_by_its_receipt_alone() {
    let (mut records, chains) = journal(6);
    records[5] = edited(&records[5]);
    assert_eq!(check(&records), []);
    let report = check_with(&records, &[(5, chains[5].head())]);
    assert_eq!(found(&report), [(FindingKind::BadHash, 5, 5)]);
}

#[test]
fn a_record_that_follows_an_older_one_has_a_bad_link() {
    let (mut records, chains) = journal(6);
    let mut shortened = chains[1].clone();
    // Record 4 as it would be if record 3 had never been.
    shortened.push(&records[2]).unwrap();
    let text = String::from_utf8(records[4].clone()).unwrap();
    let (right, older) = (chains[3].head(), shortened.head());
    records[4] = text.replace(&right.to_string(), &older.to_string()).into();
    records.truncate(5);
    assert_eq!(check(&records), [(FindingKind::BadLink, 4, 4)]);
}

#[test]
fn a_link_that_was_changed_is_a_bad_link_and_its_predecessor_is_not_blamed() {
    let (mut records, chains) = journal(6);
    let text = String::from_utf8(records[3].clone()).unwrap();
    let nobody = Sha256Digest::of(b"nobody's").to_string();
    records[3] = text.replace(&chains[2].head().to_string(), &nobody).into();
    assert_eq!(check(&records), [(FindingKind::BadLink, 3, 3)]);
}

#[test]
fn a_journal_of_another_beginning_has_a_bad_link() {
    let (mut records, _) = journal(1);
    let text = String::from_utf8(records[0].clone()).unwrap();
    let nobody = Sha256Digest::of(b"nobody's").to_string();
    records[0] = text.replace(&genesis().head().to_string(), &nobody).into();
    assert_eq!(check(&records), [(FindingKind::BadLink, 0, 0)]);
}

/// A store that told two writers that slot 3 is theirs kept B's bytes, and A went on from its own.
fn forked() -> (Vec<Vec<u8>>, Sha256Digest, Sha256Digest) {
    let (mut records, chains) = journal(5);
    let of_a = chains[3].head();
    records[3] = record_of(&chains[2], B, 99, vec![touched(9)]);
    let of_b = Sha256Digest::of(&records[3]);
    (records, of_a, of_b)
}

#[test]
fn a_slot_that_two_writers_won_is_a_fork() {
    let (records, of_a, of_b) = forked();
    let fork = [(FindingKind::Fork, 3, 3)];
    assert_eq!(check(&records), fork);
    // Whatever receipts were handed out.
    for receipts in [vec![(3, of_a)], vec![(3, of_b)], vec![(3, of_a), (3, of_b)]] {
        assert_eq!(
            found(&check_with(&records, &receipts)),
            fork,
            "{receipts:?}"
        );
    }
}

#[test]
fn a_receipt_beside_a_chain_that_goes_on_without_it_is_a_fork() {
    let (records, _) = journal(5);
    let other = (2, Sha256Digest::of(b"what another replica was told"));
    let report = check_with(&records, &[other]);
    assert_eq!(found(&report), [(FindingKind::Fork, 2, 2)]);
}

#[test]
fn a_confirmed_record_that_the_same_writer_does_not_follow_is_a_fork() {
    let (mut records, chains) = journal(5);
    let stored = record_of(&chains[1], A, 99, vec![touched(9)]);
    let confirmed = (2, Sha256Digest::of(&stored));
    records[2] = stored;
    assert_eq!(check(&records), [(FindingKind::BadHash, 2, 2)]);
    let report = check_with(&records, &[confirmed]);
    assert_eq!(found(&report), [(FindingKind::Fork, 2, 2)]);
}

#[test]
fn a_record_of_another_session_is_foreign() {
    let (mut records, _) = journal(4);
    let text = String::from_utf8(records[2].clone()).unwrap();
    records[2] = text.replace("\"run-7\"", "\"run-8\"").into();
    assert_eq!(check(&records), [(FindingKind::ForeignSession, 2, 2)]);
}

#[rstest]
#[case::version("\"v\":1", "\"v\":2")]
#[case::entry("\"op\":\"prepared\"", "\"op\":\"promised\"")]
fn what_a_newer_version_wrote_is_an_unknown_schema(#[case] from: &str, #[case] to: &str) {
    let (mut records, _) = journal(4);
    let text = String::from_utf8(records[3].clone()).unwrap();
    records[3] = text.replace(from, to).into();
    let report = check_with(&records, &[]);
    assert_eq!(found(&report), [(FindingKind::UnknownSchema, 3, 3)]);
    assert_eq!(
        report.findings[0].name.severity(),
        crate::lease::finding::Severity::Restricted
    );
}

#[rstest]
#[case::no_json(b"{".to_vec())]
#[case::spaces(b"{ }".to_vec())]
#[case::not_utf8(vec![0xff, 0xfe])]
#[case::huge(vec![b'x'; crate::limits::MAX_RECORD_BYTES + 1])]
fn what_is_no_record_is_unreadable(#[case] bytes: Vec<u8>) {
    let (mut records, _) = journal(5);
    records[2] = bytes;
    assert_eq!(check(&records), [(FindingKind::Unreadable, 2, 2)]);
}

#[test]
fn an_object_that_the_store_cannot_hand_out_is_unreadable() {
    let (records, _) = journal(4);
    let mut checker = checker();
    checker.push(Seen::Stored(&records[0]));
    checker.push(Seen::Damaged("checksum"));
    checker.push(Seen::Stored(&records[2]));
    assert_eq!(found(&checker.finish()), [(FindingKind::Unreadable, 1, 1)]);
}

#[test]
fn an_entry_without_effect_makes_the_journal_suspect() {
    let (mut records, mut chains) = journal(3);
    let mut chain = chains.pop().unwrap();
    let bytes = record_of(&chain, A, 9, vec![deleted(0), committed("t1")]);
    chain.push(&bytes).unwrap();
    records.push(bytes);
    let report = check_with(&records, &[]);
    assert_eq!(found(&report), [(FindingKind::Suspect, 3, 3)]);
    // Cleared: no longer.
    records.push(record_of(
        &chain,
        A,
        10,
        vec![crate::lease::sample::cleared(3)],
    ));
    assert_eq!(check(&records), []);
}

#[test]
fn a_journal_that_lost_its_end_is_a_gap_for_who_holds_a_receipt() {
    let (mut records, chains) = journal(6);
    records.truncate(3);
    assert_eq!(check(&records), []);
    let report = check_with(&records, &[(5, chains[5].head())]);
    assert_eq!(found(&report), [(FindingKind::Gap, 3, 5)]);
}

#[test]
fn several_damages_are_all_named_and_the_worst_is_the_status() {
    let (mut records, _) = journal(12);
    records[2].clear();
    records[5] = edited(&records[5]);
    records[8] = records[7].clone();
    records[10] = b"x".to_vec();
    let report = check_with(&records, &[]);
    assert_eq!(
        found(&report),
        [
            (FindingKind::Gap, 2, 2),
            (FindingKind::BadHash, 5, 5),
            (FindingKind::Duplicate, 8, 8),
            (FindingKind::Unreadable, 10, 10),
        ]
    );
    assert_eq!(report.status, Status::Found(FindingKind::Gap));
}

#[test]
fn findings_are_bounded_and_counted() {
    let records = vec![b"x".to_vec(); crate::limits::MAX_FINDINGS + 5];
    let report = check_with(&records, &[]);
    assert_eq!(report.findings.len(), crate::limits::MAX_FINDINGS);
    assert_eq!(report.findings_total, records.len() as u64);
}

/// NFD, an emoji, a line separator and digits beyond 2^53 are hashed as they are stored.
#[test]
fn text_of_any_kind_verifies_as_it_is_stored() {
    let mut chain = genesis();
    let mut records = Vec::new();
    for name in [
        "e\u{301}",
        "\u{e9}",
        "\u{1f980}",
        "a\u{2028}b",
        "9007199254740993",
    ] {
        let n = records.len();
        let bytes = record_of(&chain, A, n as u128, vec![prepared(name, n as u64)]);
        chain.push(&bytes).unwrap();
        records.push(bytes);
    }
    assert_eq!(check(&records), []);
    // The other normal form is another record.
    let text = String::from_utf8(records[0].clone()).unwrap();
    records[0] = text.replace("e\u{301}", "\u{e9}").into();
    assert_eq!(check(&records), [(FindingKind::BadHash, 0, 0)]);
}

struct Bucket {
    store: SharedStore,
    site: Site,
}

impl Bucket {
    async fn with(records: &[Vec<u8>]) -> Self {
        let clock = Arc::new(ManualClock::new(crate::clock::Clock::now(&SystemClock)));
        let store: SharedStore = Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(&clock)));
        let keys = KeySpace::new("").unwrap();
        let journals = Journals::new(Arc::clone(&store), keys, clock, Arc::new(SeededIds::new(1)));
        let (tenant, session) = names();
        let site = journals.site(&tenant, &session);
        let bucket = Self { store, site };
        for (seq, bytes) in records.iter().enumerate() {
            bucket
                .write(&bucket.site.record_key(seq as u64), bytes)
                .await;
        }
        bucket
    }

    async fn write(&self, key: &crate::store::keys::Key, bytes: &[u8]) {
        let payload = bytes::Bytes::copy_from_slice(bytes).into();
        self.store
            .put(key, payload, PutMode::Overwrite)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_walk_compares_every_record_checkpoint_and_receipt() {
    let (records, chains) = journal(70);
    let bucket = Bucket::with(&records).await;
    for seq in [63, 9] {
        let bytes = Checkpoint::encode(&chains[seq]).unwrap();
        bucket
            .write(&bucket.site.checkpoint_key(seq as u64), &bytes)
            .await;
    }
    let receipt = |session: &str, seq: usize| Receipt {
        session: session.parse().unwrap(),
        seq: seq as u64,
        sha256: chains[seq].head(),
    };
    let receipts = [
        receipt("run-7", 4),
        receipt("run-7", 69),
        receipt("other", 4),
    ];
    let report = verify(&bucket.site, &receipts).await.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.records, report.checkpoints), (70, 2));
    assert_eq!((report.receipts, report.receipts_of_other_sessions), (2, 1));
    assert_eq!(report.head.unwrap().sha256, chains[69].head());
}

#[tokio::test]
async fn a_checkpoint_that_says_something_else_makes_the_journal_suspect() {
    let (records, chains) = journal(70);
    let bucket = Bucket::with(&records).await;
    // The state of the record before, under the hash of this one.
    let lie = Chain::resume(
        chains[63].tenant().clone(),
        chains[63].session().clone(),
        64,
        chains[63].head(),
        Arc::clone(chains[62].state()),
    );
    let bytes = Checkpoint::encode(&lie).unwrap();
    bucket.write(&bucket.site.checkpoint_key(63), &bytes).await;
    bucket.write(&bucket.site.checkpoint_key(9), b"{}").await;
    let report = verify(&bucket.site, &[]).await.unwrap();
    assert_eq!(
        found(&report),
        [(FindingKind::Suspect, 9, 9), (FindingKind::Suspect, 63, 63)]
    );
}

#[tokio::test]
async fn a_checkpoint_knows_of_a_lost_end() {
    let (records, chains) = journal(70);
    let bucket = Bucket::with(&records[..60]).await;
    let bytes = Checkpoint::encode(&chains[63]).unwrap();
    bucket.write(&bucket.site.checkpoint_key(63), &bytes).await;
    let report = verify(&bucket.site, &[]).await.unwrap();
    assert_eq!(found(&report), [(FindingKind::Gap, 60, 63)]);
}

#[tokio::test]
async fn a_deleted_record_is_a_gap_and_an_empty_session_is_ok() {
    let (records, _) = journal(5);
    let bucket = Bucket::with(&records).await;
    let key = bucket.site.record_key(2);
    bucket.store.delete(&key, DeleteFence::None).await.unwrap();
    let report = verify(&bucket.site, &[]).await.unwrap();
    assert_eq!(found(&report), [(FindingKind::Gap, 2, 2)]);
    let empty = Bucket::with(&[]).await;
    assert_eq!(verify(&empty.site, &[]).await.unwrap().status, Status::Ok);
}
