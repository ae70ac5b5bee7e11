//! Arbitrary and damaged input to everything that reads what a store, a caller or an operator wrote: no
//! panic, and nothing that comes out is larger than what went in allows. More of it by hand:
//! `PROPTEST_CASES=100000 cargo test --test fuzz`.
#![allow(
    clippy::unwrap_used,
    reason = "what a test cannot set up is a failed test"
)]

use std::io::Write;

use http::{HeaderMap, HeaderValue, Method};
use proptest::prelude::*;
use spillbox::artifact::call_record::CallRecord;
use spillbox::artifact::list::{decode_cursor, encode_cursor};
use spillbox::artifact::locator::parse_locator;
use spillbox::artifact::manifest::{ListedEntry, ManifestEntry, ManifestHead};
use spillbox::digest::Sha256Digest;
use spillbox::gc::plan::{Plan, PlanPart};
use spillbox::gc::report::Report;
use spillbox::http::condition::EntityTag;
use spillbox::http::range::requested_range;
use spillbox::ids::{ArtifactRef, SessionId, Tenant};
use spillbox::lease::chain::Chain;
use spillbox::lease::checkpoint::Checkpoint;
use spillbox::lease::record::{Expected, Record, genesis_hash};
use spillbox::lease::source::SourceId;
use spillbox::policy::frozen::{ResultRecord, TurnRecord};
use spillbox::settings::{Environment, load};

const ARTIFACT: &str = "0123456789abcdefghjkmnpqrs.0123456789abcdefghjkmnpqrt";

/// Texts of the right shape, to begin damaging from.
const RECORD: &str = r#"{"as_of":"2026-11-30T00:00:00Z","entries":[{"features":[],"op":"genesis"},{"aid":"0123456789abcdefghjkmnpqrt","op":"touched"},{"op":"noop"}],"nonce":"01939000-0000-7000-8000-000000000001","prev":"PREV","seq":0,"session":"s","tenant":"default","v":1,"writer":"01939000-0000-7000-8000-000000000002"}"#;
const CALL: &str = r#"{"v":1,"action":"saved","aid":"0123456789abcdefghjkmnpqrt","body":{"size_bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","etag":"\"e\"","version_id":null,"store_checksum":null}}"#;
const TOMBSTONE: &str = r#"{"v":1,"artifact_id":"0123456789abcdefghjkmnpqrt","tombstone":"erased","decision_id":null,"sha256":null,"size_bytes":7,"deleted_at":"2026-11-30T00:00:00Z"}"#;
const MANIFEST: &str = r#"{"v":1,"artifact_id":"0123456789abcdefghjkmnpqrt","tenant":"default","session":"s","session_key":"0123456789abcdefghjkmnpqrs","parent_session":null,"decision_id":null,"body":{"size_bytes":3,"sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","etag":"e","version_id":null,"store_checksum":null},"media_type":"text/plain","binary":false,"first_invalid_utf8":null,"line_count":1,"chunk_bytes":262144,"chunks":[]}"#;
const TURN: &str =
    r#"{"v":1,"template_version":1,"results":{"0123456789abcdefghjkmnpqrt":"inline"}}"#;
const PLAN: &str = r#"{"v":1,"plan_id":"01939000-0000-7000-8000-000000000001","root":"v1/","scope":"all","server_date":"2026-11-30T00:00:00Z","policy":{"orphan_ttl_seconds":86400,"max_deletions":null,"max_share":"0.5","min_plan_age_seconds":0,"settle_seconds":0,"allow_short_times":false},"counts":{},"live":0,"tombstones":0,"is_partial":false,"uploads":[],"parts":[]}"#;
const SETTINGS: &str = "[server]\nlisten = \"127.0.0.1:8787\"\n[store]\nurl = \"memory:\"\n[gc]\nsettle = \"1m\"\n[[tokens]]\nsha256 = \"00\"\ntenant = \"default\"\nscopes = [\"read\"]\n";

/// A damaged text: bytes replaced, cut out, doubled, or nested deeply.
fn damaged(text: String) -> impl Strategy<Value = Vec<u8>> {
    let len = text.len();
    let damage = (0..len, 0..len, any::<u8>(), 0..7_u8);
    proptest::collection::vec(damage, 0..6).prop_map(move |damages| {
        let mut bytes = text.clone().into_bytes();
        for (a, b, byte, kind) in damages {
            let (from, to) = (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
            if bytes.is_empty() {
                break;
            }
            let at = from.min(bytes.len() - 1);
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.drain(from..to.min(from + 40))),
                2 => {
                    let piece = bytes[from..to].to_vec();
                    bytes.splice(from..from, piece);
                }
                3 => bytes.truncate(to),
                4 => drop(bytes.splice(at..at, vec![b'['; 3_000])),
                5 => drop(bytes.splice(at..=at, b"18446744073709551616".iter().copied())),
                _ => drop(bytes.splice(at..=at, b"\\ud800".iter().copied())),
            }
            bytes.truncate(64 << 10);
        }
        bytes
    })
}

fn journal() -> (Tenant, SessionId) {
    (Tenant::default(), "s".parse().unwrap())
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    let (tenant, session) = journal();
    let prev = genesis_hash(&tenant, &session).to_hex();
    let seeds = [CALL, TOMBSTONE, MANIFEST, TURN, PLAN].map(str::to_owned);
    let seeds = seeds.into_iter().chain([RECORD.replace("PREV", &prev)]);
    let seeds: Vec<String> = seeds.collect();
    prop_oneof![
        2 => proptest::collection::vec(any::<u8>(), 0..4_096),
        6 => proptest::sample::select(seeds).prop_flat_map(damaged),
    ]
}

/// What came out, written again, is not much longer than what went in.
fn assert_bounded(written: usize, bytes: &[u8]) {
    assert!(
        written <= bytes.len() * 8 + 4_096,
        "{written} from {}",
        bytes.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60_000)
    ))]

    #[test]
    fn whatever_a_store_holds_is_read_or_refused(bytes in input()) {
        let (tenant, session) = journal();
        let artifact: ArtifactRef = ARTIFACT.parse().unwrap();
        let prev = genesis_hash(&tenant, &session);
        let expected = Expected { tenant: &tenant, session: &session, seq: 0, prev, sha256: None };
        if let Ok(record) = Record::decode(&bytes, &expected) {
            assert_bounded(record.encode().unwrap().len(), &bytes);
        }
        let mut chain = Chain::genesis(tenant.clone(), session.clone());
        if chain.push(&bytes).is_ok() {
            assert_bounded(Checkpoint::encode(&chain).unwrap().len(), &bytes);
        }
        let _ = Checkpoint::decode(&bytes, &tenant, &session, 0);
        match ManifestEntry::decode(&bytes, &artifact) {
            Ok(ManifestEntry::Live(manifest)) => assert_bounded(manifest.encode().len(), &bytes),
            Ok(ManifestEntry::Tombstone(found)) => assert_bounded(found.encode().len(), &bytes),
            Err(_) => {}
        }
        for is_whole in [false, true] {
            if let Ok(ListedEntry::Live(head)) = ManifestHead::decode(&bytes, is_whole, &artifact) {
                assert_bounded(serde_json::to_vec(&head).unwrap().len(), &bytes);
            }
        }
        if let Ok(record) = CallRecord::decode(&bytes) {
            assert_bounded(record.encode().len(), &bytes);
        }
        if let Ok(record) = TurnRecord::decode(&bytes) {
            assert_bounded(record.encode().len(), &bytes);
        }
        if let Ok(record) = ResultRecord::decode(&bytes) {
            assert_bounded(record.encode().len(), &bytes);
        }
        let plan_id = "01939000-0000-7000-8000-000000000001".parse().unwrap();
        let digest = Sha256Digest::of(&bytes);
        if let Ok(plan) = Plan::decode(&bytes, &digest, plan_id, "v1/") {
            assert_bounded(plan.encode().len(), &bytes);
        }
        if let Ok(part) = PlanPart::decode(&bytes, &digest, plan_id, 0) {
            assert_bounded(part.encode().len(), &bytes);
        }
        if let Ok(report) = serde_json::from_slice::<Report>(&bytes) {
            assert_bounded(report.encode().len(), &bytes);
        }
    }

    #[test]
    fn whatever_a_caller_names_is_understood_or_refused(
        text in prop_oneof![
            any::<String>(),
            "(https?://[a-z:/.@%]{0,30}/a/|spillbox:)?[0-9a-z]{20,30}\\.[0-9a-z]{20,30}.{0,3}",
            "artifact:.{0,20}:[0-9a-z]{24,27}:[0-9a-f]{10,64}",
            "[0-9a-z]{20,60}",
        ],
    ) {
        let artifact: ArtifactRef = ARTIFACT.parse().unwrap();
        if let Some(found) = parse_locator(&text) {
            assert!(text.contains(&found.to_string()));
        }
        if let Some(source) = SourceId::parse(&text) {
            assert!(text.contains(source.session.as_str()));
        }
        let session_key = artifact.session_key;
        if let Some(found) = decode_cursor(&session_key, &text) {
            assert_eq!(encode_cursor(&session_key, &found), text);
        }
    }

    #[test]
    fn a_range_lies_in_its_body(
        value in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "(bytes|Bytes|items) ?= ?[0-9]{0,25} ?-? ?[0-9]{0,25}(,[0-9]{0,3}-[0-9]{0,3}){0,3}"
                .prop_map(String::into_bytes),
        ],
        size_bytes in any::<u64>(),
    ) {
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(http::header::RANGE, value)]);
        let tag = EntityTag::of(&Sha256Digest::of(b"x"));
        if let Ok(Some(range)) = requested_range(&Method::GET, &headers, &tag, size_bytes) {
            assert!(range.start < range.end && range.end <= size_bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000)
    ))]

    #[test]
    fn whatever_a_settings_file_says_is_a_setting_or_an_error(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..500),
            damaged(SETTINGS.to_owned()),
        ],
    ) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        if let Err(error) = load(Some(file.path()), &Environment::default(), &[]) {
            assert!(!error.to_string().is_empty());
        }
    }
}
