use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::lease::entry::{AbortReason, Entry, ReleaseReason};
use crate::lease::sample::{
    aborted, aid, committed, condemned, deleted, extended, hour, next_record, prepared,
    prepared_until, released, touched,
};

fn chain_of(records: &[Vec<Entry>]) -> (Chain, Vec<Vec<u8>>) {
    let mut chain = Chain::genesis(Tenant::default(), "s".parse().unwrap());
    let mut stored = Vec::new();
    for (n, entries) in (0..).zip(records) {
        let bytes = next_record(&chain, n, Some(hour(1)), entries.clone());
        chain.push(&bytes).unwrap();
        stored.push(bytes);
    }
    (chain, stored)
}

fn sample() -> Chain {
    let (chain, _) = chain_of(&[
        vec![prepared_until("a", 1, hour(5)), prepared("b", 2)],
        vec![committed("a"), aborted("b", AbortReason::Sealed)],
        vec![extended("a", None), touched(3), condemned(2)],
        vec![deleted(2), committed("nobody")],
        vec![condemned(4)],
    ]);
    chain
}

fn decode(bytes: &[u8], seq: u64) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::decode(bytes, &Tenant::default(), &"s".parse().unwrap(), seq)
}

#[test]
fn the_encoding_is_golden() {
    let bytes = Checkpoint::encode(&sample()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text, include_str!("golden.json").trim_end());
}

#[test]
fn a_checkpoint_brings_everything_back() {
    let chain = sample();
    let bytes = Checkpoint::encode(&chain).unwrap();
    let read = decode(&bytes, 4).unwrap();
    assert_eq!(read.chain.state(), chain.state());
    assert_eq!(read.chain.next_seq(), 5);
    assert_eq!(read.chain.head(), chain.head());
    assert_eq!(read.state_sha256, state_sha256(chain.state()));
    // What is not stored is found again.
    assert!(read.chain.state().is_protected(aid(1)));
    assert_eq!(read.chain.state().ineffective().collect::<Vec<_>>(), [3]);
}

#[test]
fn an_empty_journal_has_none() {
    let chain = Chain::genesis(Tenant::default(), "s".parse().unwrap());
    assert_eq!(Checkpoint::encode(&chain), None);
}

#[rstest]
#[case::a_newer_version("/v", json!(2))]
#[case::another_tenant("/tenant", json!("acme"))]
#[case::another_session("/session", json!("t"))]
#[case::another_place("/seq", json!(3))]
#[case::another_state("/state/ineffective", json!([]))]
#[case::an_unprotected_artifact("/state/artifacts", json!({}))]
#[case::a_newer_feature("/state/features", json!(["shards"]))]
#[case::no_digest("/state_sha256", json!(null))]
fn a_changed_checkpoint_is_not_believed(#[case] member: &str, #[case] value: serde_json::Value) {
    let bytes = Checkpoint::encode(&sample()).unwrap();
    let mut changed: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    *changed.pointer_mut(member).unwrap() = value;
    assert!(decode(&canonical::encode(&changed).unwrap(), 4).is_err());
    assert!(decode(&bytes[..bytes.len() - 1], 4).is_err());
    assert!(decode(b"[]", 4).is_err());
}

/// Not even one whose digest was made to fit: what protects must be listed as alive.
#[test]
fn a_state_that_contradicts_itself_is_not_believed() {
    let bytes = Checkpoint::encode(&sample()).unwrap();
    let mut changed: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    changed["state"]["artifacts"] = json!({});
    let state = canonical::encode(&changed["state"]).unwrap();
    changed["state_sha256"] = json!(Sha256Digest::of(&state));
    let error = decode(&canonical::encode(&changed).unwrap(), 4).unwrap_err();
    assert!(matches!(error, CheckpointError::Unreadable(_)), "{error}");
}

#[rstest]
#[case::too_few_records(63, 1_000, 0, 63, false)]
#[case::the_first(64, 1_000, 0, 63, true)]
#[case::between_places(65, 1_000, 0, 64, false)]
#[case::a_large_state_waits(64, 1_000, 100_000, 127, false)]
#[case::until_an_eighth(64, 12_500, 100_000, 127, true)]
#[case::or_512_records(512, 1, 100_000_000, 511, true)]
fn a_checkpoint_is_due(
    #[case] records: u64,
    #[case] bytes: u64,
    #[case] checkpoint_bytes: u64,
    #[case] seq: u64,
    #[case] is_due: bool,
) {
    let tail = Tail {
        records,
        bytes,
        checkpoint_bytes,
    };
    assert_eq!(tail.is_due(seq), is_due);
    assert_eq!(tail.is_long(), records > 64);
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let name = prop::sample::select(vec!["a", "b", "c", "d"]);
    (0..8_usize, name, 0..4_u64, prop::option::of(0_i64..3)).prop_map(
        |(pick, name, artifact, end)| match pick {
            0 => prepared(name, artifact),
            1 => prepared_until(name, artifact, hour(end.unwrap_or(0))),
            2 => committed(name),
            3 => extended(name, end.map(hour)),
            4 => released(name, ReleaseReason::Removed),
            5 => condemned(artifact),
            6 => deleted(artifact),
            _ => touched(artifact),
        },
    )
}

proptest! {
    /// The checkpoint through any record and the records after it fold to the same state, and to the
    /// same next checkpoint, as the records from 0 on.
    #[test]
    fn checkpoint_and_tail_equal_genesis(
        records in prop::collection::vec(prop::collection::vec(any_entry(), 1..4), 1..24),
        cut in any::<prop::sample::Index>(),
    ) {
        let cut = cut.index(records.len()) + 1;
        let (whole, stored) = chain_of(&records);
        let (prefix, _) = chain_of(&records[..cut]);
        let bytes = Checkpoint::encode(&prefix).unwrap();
        let mut resumed = decode(&bytes, cut as u64 - 1).unwrap().chain;
        for record in &stored[cut..] {
            resumed.push(record).unwrap();
        }
        prop_assert_eq!(resumed.state(), whole.state());
        prop_assert_eq!(Checkpoint::encode(&resumed), Checkpoint::encode(&whole));
    }
}
