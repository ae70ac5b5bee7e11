use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::ids::ArtifactId;
use crate::lease::entry::{
    AbortReason, CondemnReason, Condemned, DeleteOutcome, OwnerMode, Prepared, ReleaseReason,
};
use crate::lease::names::OwnerName;

fn aid(n: u64) -> ArtifactId {
    ArtifactId::new(n, [7; 10])
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn every_entry() -> Vec<Entry> {
    let transaction_id: crate::lease::names::TransactionId = "tx-Über-1".parse().unwrap();
    vec![
        Entry::Genesis { features: vec![] },
        Entry::Prepared(Box::new(Prepared {
            transaction_id: transaction_id.clone(),
            owner: "memory".parse().unwrap(),
            mode: OwnerMode::OwnerFenced,
            artifact_id: aid(1),
            sha256: Sha256Digest::of(b"x"),
            size_bytes: 81_234,
            etag: "\"e-1\"".to_owned(),
            version_id: None,
            reference_count: 2,
            retain_until: Some(time("2026-12-01T00:00:00Z")),
            reason: None,
        })),
        Entry::Committed {
            transaction_id: transaction_id.clone(),
            owner_generation: Some("17".parse().unwrap()),
        },
        Entry::Extended {
            transaction_id: transaction_id.clone(),
            retain_until: None,
        },
        Entry::Released {
            transaction_id: transaction_id.clone(),
            why: ReleaseReason::Expired {
                server_date: time("2026-12-01T00:15:00.25Z"),
            },
        },
        Entry::Released {
            transaction_id: transaction_id.clone(),
            why: ReleaseReason::Removed,
        },
        Entry::Aborted {
            transaction_id,
            why: AbortReason::Sealed,
        },
        Entry::Touched {
            artifact_id: aid(1),
        },
        Entry::Condemned(Box::new(Condemned {
            artifact_id: aid(2),
            decision_id: None,
            sha256: Some(Sha256Digest::of(b"y")),
            size_bytes: Some(10),
            etag: Some("\"e\"".to_owned()),
            version_id: Some("v1".to_owned()),
            store_checksum: Some("crc32:AAAAAA==".to_owned()),
            manifest_version_id: None,
            why: CondemnReason::Expired,
            server_date: time("2026-12-02T00:00:00Z"),
            plan_id: Some("p".to_owned()),
        })),
        Entry::Deleted {
            artifact_id: aid(2),
            outcome: DeleteOutcome::AlreadyMissing,
        },
        Entry::Cleared {
            seq: 0,
            reason: Some("looked at it".parse().unwrap()),
        },
        Entry::Noop,
    ]
}

fn record(seq: u64, prev: Sha256Digest, entries: Vec<Entry>) -> Record {
    Record {
        tenant: Tenant::default(),
        session: "run-7".parse().unwrap(),
        seq,
        prev,
        writer: Uuid::nil(),
        nonce: Uuid::max(),
        as_of: Some(time("2026-11-30T10:00:00Z")),
        entries,
    }
}

fn first() -> Record {
    let prev = genesis_hash(&Tenant::default(), &"run-7".parse().unwrap());
    record(0, prev, every_entry())
}

fn expected(record: &Record) -> Expected<'_> {
    Expected {
        tenant: &record.tenant,
        session: &record.session,
        seq: record.seq,
        prev: record.prev,
        sha256: None,
    }
}

/// The bytes of a record with every kind of entry. A change here breaks every journal there is: never
/// change it, make a new version.
#[test]
fn the_encoding_is_golden() {
    let bytes = first().encode().unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert_eq!(text, include_str!("golden.json").trim_end());
    assert_eq!(
        Sha256Digest::of(&bytes).to_string(),
        include_str!("golden.sha256").trim_end()
    );
}

#[test]
fn the_genesis_hash_is_golden_and_separates_domains() {
    let hash = |tenant: &str, session: &str| {
        genesis_hash(&tenant.parse().unwrap(), &session.parse().unwrap())
    };
    assert_eq!(
        hash("default", "run-7").to_string(),
        include_str!("golden_genesis.sha256").trim_end()
    );
    assert_ne!(hash("a", "bc"), hash("ab", "c"));
    assert_ne!(
        hash("default", "run-7").as_bytes()[..16],
        tagged_hash("spillbox/session-key/v1", &[b"default", b"run-7"]).as_bytes()[..16]
    );
}

#[test]
fn every_entry_comes_back_and_its_op_is_listed() {
    let record = first();
    let bytes = record.encode().unwrap();
    assert_eq!(Record::decode(&bytes, &expected(&record)).unwrap(), record);
    let mut seen: Vec<_> = record.entries.iter().map(Entry::op).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, OPS);
}

#[test]
fn the_hash_is_compared_before_anything_is_parsed() {
    let record = first();
    let place = Expected {
        sha256: Some(Sha256Digest::of(b"other")),
        ..expected(&record)
    };
    for bytes in [&record.encode().unwrap()[..], b"{", b""] {
        assert!(matches!(
            Record::decode(bytes, &place),
            Err(DecodeError::BadHash { .. })
        ));
    }
    let bytes = record.encode().unwrap();
    let place = Expected {
        sha256: Some(Sha256Digest::of(&bytes)),
        ..expected(&record)
    };
    assert_eq!(Record::decode(&bytes, &place).unwrap(), record);
}

/// One damage, one name.
#[rstest]
#[case::foreign_tenant("tenant", json!("acme"), "foreign")]
#[case::foreign_session("session", json!("run-8"), "foreign")]
#[case::another_place("seq", json!(4), "sequence")]
#[case::a_broken_link("prev", json!(Sha256Digest::of(b"z")), "link")]
#[case::a_newer_version("v", json!(2), "unsupported")]
#[case::a_newer_entry("entries", json!([{"op": "genesis", "features": []}, {"op": "sealed"}]), "unsupported")]
#[case::a_newer_feature("entries", json!([{"op": "genesis", "features": ["shards"]}]), "unsupported")]
#[case::an_extra_member("note", json!("x"), "unreadable")]
#[case::an_extra_member_of_an_entry("entries", json!([{"op": "genesis", "features": [], "note": 1}]), "unreadable")]
#[case::no_version("v", json!(null), "unreadable")]
#[case::a_version_as_text("v", json!("1"), "unreadable")]
#[case::no_entries("entries", json!([]), "unreadable")]
#[case::no_genesis("entries", json!([{"op": "noop"}]), "unreadable")]
#[case::two_beginnings("entries", json!([{"op": "genesis", "features": []}, {"op": "genesis", "features": []}]), "unreadable")]
#[case::an_entry_without_op("entries", json!([{"op": "genesis", "features": []}, {}]), "unreadable")]
#[case::a_digest_in_upper_case("prev", json!(Sha256Digest::of(b"").to_string().to_uppercase()), "unreadable")]
#[case::a_time_in_another_spelling("as_of", json!("2026-11-30T11:00:00+01:00"), "unreadable")]
#[case::a_time_without_zone("as_of", json!("2026-11-30T11:00:00"), "unreadable")]
#[case::a_nonce_in_another_spelling("nonce", json!("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"), "unreadable")]
fn a_changed_member_is_named(
    #[case] member: &str,
    #[case] value: serde_json::Value,
    #[case] kind: &str,
) {
    let record = first();
    let mut changed: serde_json::Value = serde_json::from_slice(&record.encode().unwrap()).unwrap();
    changed[member] = value;
    let bytes = canonical::encode(&changed).unwrap();
    let error = Record::decode(&bytes, &expected(&record)).unwrap_err();
    let actual = match &error {
        DecodeError::BadHash { .. } => "hash",
        DecodeError::Unreadable(_) => "unreadable",
        DecodeError::ForeignSession { .. } => "foreign",
        DecodeError::WrongSequence { .. } => "sequence",
        DecodeError::BadLink { .. } => "link",
        DecodeError::Unsupported(_) => "unsupported",
    };
    assert_eq!(actual, kind, "{error}");
    assert_eq!(error.is_unsupported(), kind == "unsupported");
}

#[rstest]
#[case::a_boolean_count("true")]
#[case::no_reference("0")]
#[case::a_fraction("1.5")]
#[case::a_negative_count("-1")]
#[case::a_count_as_text("\"1\"")]
#[case::a_count_beyond_2_to_53("9007199254740992")]
fn a_reference_count_is_an_integer_from_1(#[case] count: &str) {
    let record = first();
    let text = String::from_utf8(record.encode().unwrap()).unwrap();
    let changed = text.replace(
        "\"reference_count\":2",
        &format!("\"reference_count\":{count}"),
    );
    assert_ne!(changed, text);
    assert!(matches!(
        Record::decode(changed.as_bytes(), &expected(&record)),
        Err(DecodeError::Unreadable(_))
    ));
}

#[test]
fn genesis_begins_record_0_and_no_other() {
    let later = record(1, Sha256Digest::of(b"0"), every_entry());
    let bytes = later.encode().unwrap();
    assert!(matches!(
        Record::decode(&bytes, &expected(&later)),
        Err(DecodeError::Unreadable(_))
    ));
}

#[test]
fn the_bounds_of_a_record_hold() {
    let prev = Sha256Digest::of(b"0");
    assert_eq!(
        record(1, prev, vec![]).encode(),
        Err(EncodeError::EntryCount(0))
    );
    assert!(record(1, prev, vec![Entry::Noop; 256]).encode().is_ok());
    assert_eq!(
        record(1, prev, vec![Entry::Noop; 257]).encode(),
        Err(EncodeError::EntryCount(257))
    );
    let Entry::Prepared(prepared) = every_entry().remove(1) else {
        unreachable!("the second entry is a lease")
    };
    let long = Prepared {
        etag: "e".repeat(1_100),
        ..*prepared
    };
    let too_large = record(1, prev, vec![Entry::Prepared(Box::new(long.clone())); 256]);
    assert!(matches!(too_large.encode(), Err(EncodeError::TooLarge(_))));
    let too_many = Prepared {
        reference_count: 1 << 53,
        ..long
    };
    assert!(matches!(
        record(1, prev, vec![Entry::Prepared(Box::new(too_many))]).encode(),
        Err(EncodeError::Canonical(_))
    ));
    let oversized = vec![b' '; MAX_RECORD_BYTES + 1];
    assert!(Record::decode(&oversized, &expected(&first())).is_err());
}

/// FB-88: what other serialisers lose or cannot hash.
#[test]
fn awkward_unicode_stays_as_it_was_written() {
    let session = "e\u{301}\u{1f980}\u{2028}\u{feff}9007199254740993";
    let record = Record {
        session: session.parse().unwrap(),
        ..first()
    };
    let bytes = record.encode().unwrap();
    assert!(String::from_utf8(bytes.clone()).unwrap().contains(session));
    assert_eq!(Record::decode(&bytes, &expected(&record)).unwrap(), record);
    let escaped = String::from_utf8(bytes)
        .unwrap()
        .replace('\u{1f980}', "\\ud83e");
    assert!(Record::decode(escaped.as_bytes(), &expected(&record)).is_err());
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000, 0_i32..1_000_000_000)
        .prop_map(|(second, nanosecond)| Timestamp::new(second, nanosecond).unwrap())
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let name = "[^\\p{Cc}.]{1,20}".prop_map(|text| text.parse().unwrap());
    let owner = Just(OwnerName::hold());
    (
        name,
        owner,
        1..MAX_INTEGER,
        prop::option::of(any_time()),
        0..11_usize,
    )
        .prop_map(|(transaction_id, owner, count, retain_until, pick)| {
            let mut entry = every_entry().remove(pick + 1);
            if let Entry::Prepared(prepared) = &mut entry {
                prepared.transaction_id = transaction_id;
                prepared.owner = owner;
                prepared.reference_count = count;
                prepared.retain_until = retain_until;
            } else if let Entry::Extended {
                retain_until: end, ..
            } = &mut entry
            {
                *end = retain_until;
            }
            entry
        })
}

proptest! {
    #[test]
    fn every_record_comes_back(
        entries in prop::collection::vec(any_entry(), 1..20),
        seq in 1..MAX_INTEGER,
        session in "\\PC{1,60}",
        as_of in prop::option::of(any_time()),
        nonce in any::<u128>(),
    ) {
        prop_assume!(session != "." && session != "..");
        let mut record = record(seq, Sha256Digest::of(b"p"), entries);
        record.session = session.parse().unwrap();
        record.as_of = as_of;
        record.nonce = Uuid::from_u128(nonce);
        let bytes = record.encode().unwrap();
        prop_assert_eq!(Record::decode(&bytes, &expected(&record)).unwrap(), record);
    }

    /// A single flipped bit never goes unnoticed where the hash is known, and never panics where it is not.
    #[test]
    fn a_flipped_bit_is_found(place in 0_usize..4_000, bit in 0_u8..8) {
        let record = first();
        let mut bytes = record.encode().unwrap();
        let sha256 = Some(Sha256Digest::of(&bytes));
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        let known = Expected { sha256, ..expected(&record) };
        let is_found = matches!(
            Record::decode(&bytes, &known),
            Err(DecodeError::BadHash { .. })
        );
        prop_assert!(is_found);
        if let Ok(other) = Record::decode(&bytes, &expected(&record)) {
            prop_assert_ne!(other, record);
        }
    }
}
