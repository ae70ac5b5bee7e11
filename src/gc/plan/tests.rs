use rstest::rstest;

use super::*;
use crate::gc::policy::{PolicyRequest, PolicySettings};
use crate::gc::status::Status;
use crate::limits::DEFAULT_ORPHAN_TTL;

const ROOT: &str = "team/v1/";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn id() -> Uuid {
    Uuid::from_u128(7)
}

fn seen(n: u64) -> Seen {
    Seen {
        size_bytes: n,
        etag: format!("\"{n}\""),
        last_modified: time("2026-12-01T00:00:00Z"),
    }
}

fn candidate(n: u64) -> Candidate {
    Candidate {
        artifact_id: ArtifactId::new(n, [0; 10]),
        reason: Reason::ExpiredUnreferencedArtifact,
        manifest: Some(seen(n)),
        body: seen(n + 1),
    }
}

fn session(candidates: u64, pending: u64) -> PlanSession {
    let tenant = Tenant::default();
    let session: SessionId = "s".parse().unwrap();
    PlanSession {
        session_key: SessionKey::derive(&tenant, &session),
        tenant,
        session: Some(session),
        as_of_seq: 3,
        candidates: (0..candidates).map(candidate).collect(),
        pending: (0..pending).map(|n| ArtifactId::new(n, [1; 10])).collect(),
        has_expired_leases: false,
    }
}

fn plan() -> Plan {
    let mut counts = Counts::default();
    counts.add(
        Status::PlannedDelete,
        Reason::ExpiredUnreferencedArtifact,
        5,
    );
    let request = PolicyRequest::default();
    Plan {
        v: PLAN_VERSION,
        plan_id: id(),
        root: ROOT.to_owned(),
        scope: Scope::Tenant(Tenant::default()),
        shard: None,
        server_date: time("2026-12-02T00:00:00Z"),
        policy: GcPolicy::new(&request, &PolicySettings::default(), DEFAULT_ORPHAN_TTL).unwrap(),
        counts,
        live: 9,
        tombstones: 1,
        is_partial: false,
        uploads: vec![],
        alarms: Vec::new(),
        parts: vec![PartRef {
            sha256: Sha256Digest::of(b"part"),
            candidates: 1,
        }],
    }
}

#[test]
fn the_encoding_is_canonical_and_comes_back() {
    let bytes = plan().encode();
    let digest = Sha256Digest::of(&bytes);
    assert_eq!(Plan::decode(&bytes, &digest, id(), ROOT).unwrap(), plan());
    assert!(canonical::decode(&bytes).is_ok());
    let part = PlanPart {
        v: PLAN_VERSION,
        plan_id: id(),
        part: 2,
        sessions: vec![session(2, 1)],
    };
    let bytes = part.encode();
    let digest = Sha256Digest::of(&bytes);
    assert_eq!(PlanPart::decode(&bytes, &digest, id(), 2).unwrap(), part);
    let other_place = PlanPart::decode(&bytes, &digest, id(), 1);
    assert!(matches!(other_place, Err(PlanRefusal::Foreign(_))));
}

#[test]
fn an_altered_or_truncated_plan_is_refused_before_it_is_parsed() {
    let bytes = plan().encode();
    let digest = Sha256Digest::of(&bytes);
    for at in [0, bytes.len() / 2, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let refused = Plan::decode(&altered, &digest, id(), ROOT);
        assert!(matches!(refused, Err(PlanRefusal::Altered { .. })), "{at}");
    }
    let cut = Plan::decode(&bytes[..bytes.len() - 1], &digest, id(), ROOT);
    assert!(matches!(cut, Err(PlanRefusal::Altered { .. })));
}

#[test]
fn a_plan_of_another_place_is_foreign_and_one_of_another_version_unreadable() {
    let bytes = plan().encode();
    let digest = Sha256Digest::of(&bytes);
    for (id, root) in [(Uuid::from_u128(8), ROOT), (id(), "other/v1/")] {
        let refused = Plan::decode(&bytes, &digest, id, root);
        assert!(matches!(refused, Err(PlanRefusal::Foreign(_))));
    }
    let newer = Plan { v: 2, ..plan() }.encode();
    let refused = Plan::decode(&newer, &Sha256Digest::of(&newer), id(), ROOT);
    assert!(matches!(refused, Err(PlanRefusal::Unreadable(_))));
}

#[rstest]
#[case::at_once("2026-12-02T00:00:00Z", "too_young")]
#[case::before_an_hour("2026-12-02T00:59:59Z", "too_young")]
#[case::made_in_the_future("2026-12-01T00:00:00Z", "too_young")]
#[case::an_hour_later("2026-12-02T01:00:00Z", "ok")]
#[case::on_the_seventh_day("2026-12-09T00:00:00Z", "ok")]
#[case::after_seven_days("2026-12-09T00:00:01Z", "expired")]
fn a_plan_has_its_time(#[case] now: &str, #[case] expected: &str) {
    let checked = plan().check_time(time(now), DEFAULT_ORPHAN_TTL);
    let name = match checked {
        Ok(()) => "ok",
        Err(PlanRefusal::TooYoung { .. }) => "too_young",
        Err(PlanRefusal::Expired { .. }) => "expired",
        Err(other) => panic!("{other}"),
    };
    assert_eq!(name, expected);
}

#[test]
fn a_plan_below_the_stores_ttl_is_refused_even_if_it_was_made_so() {
    let now = time("2026-12-02T02:00:00Z");
    let longer = DEFAULT_ORPHAN_TTL + Duration::from_secs(1);
    let refused = plan().check_time(now, longer);
    assert!(matches!(refused, Err(PlanRefusal::BelowStoreTtl { .. })));
}

#[test]
fn parts_are_bounded_and_lose_nothing() {
    let limit = GC_PART_CANDIDATES as u64;
    let sessions = vec![
        session(3, 0),
        session(2 * limit, 5),
        session(0, 0),
        session(0, 2),
    ];
    let parts = cut_into_parts(sessions);
    let count = |part: &Vec<PlanSession>| -> usize {
        let sizes = part
            .iter()
            .map(|session| session.candidates.len() + session.pending.len());
        sizes.sum()
    };
    assert!(
        parts
            .iter()
            .all(|part| (1..=GC_PART_CANDIDATES).contains(&count(part)))
    );
    assert_eq!(
        parts.iter().map(count).sum::<usize>() as u64,
        3 + 2 * limit + 5 + 2
    );
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().flatten().all(|session| session.as_of_seq == 3));
    assert!(cut_into_parts(vec![session(0, 0)]).is_empty());
    let expired = PlanSession {
        has_expired_leases: true,
        ..session(0, 0)
    };
    assert_eq!(cut_into_parts(vec![expired.clone()]), [[expired]]);
}

#[test]
fn the_younger_of_manifest_and_body_is_a_candidates_age() {
    let mut candidate = candidate(1);
    candidate.body.last_modified = time("2026-12-01T05:00:00Z");
    let placed = Placed {
        anchor: Arc::new(Anchor {
            tenant: Tenant::default(),
            session_key: session(0, 0).session_key,
            session: None,
            as_of_seq: 0,
        }),
        candidate,
    };
    assert_eq!(placed.last_modified(), time("2026-12-01T05:00:00Z"));
}
