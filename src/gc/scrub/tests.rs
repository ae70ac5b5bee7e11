use std::time::Duration;

use rstest::rstest;
use uuid::Uuid;

use super::body::pause;
use super::sample::Sample;
use super::*;

#[rstest]
#[case::ahead(100, 100, 0, 1_000)]
#[case::on_time(100, 100, 1_000, 0)]
#[case::late(100, 100, 5_000, 0)]
#[case::nothing(0, 100, 0, 0)]
#[case::no_rate(5, 0, 0, 5_000)]
fn a_pace_waits_for_what_it_is_ahead(
    #[case] bytes: u64,
    #[case] per_second: u64,
    #[case] elapsed_ms: u64,
    #[case] expected_ms: u64,
) {
    let waited = pause(bytes, per_second, Duration::from_millis(elapsed_ms));
    assert_eq!(waited, Duration::from_millis(expected_ms));
    assert!(pause(u64::MAX, 1, Duration::ZERO) > Duration::from_secs(1));
}

/// Random bits as a good source gives them.
fn chance(n: u64) -> Uuid {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Uuid::from_u64_pair(n, state ^ (state >> 31))
}

#[test]
fn a_sample_is_of_its_size_and_of_everything() {
    let mut hits = [0_u32; 100];
    for round in 0..1_000 {
        let mut sample = Sample::new(10);
        for item in 0..100_usize {
            sample.offer(item, chance(round * 100 + item as u64));
        }
        assert_eq!(sample.kept.len(), 10);
        for item in sample.kept {
            hits[item] += 1;
        }
    }
    // 100 of each are expected; ten standard deviations are 95.
    assert!(hits.iter().all(|hits| (5..195).contains(hits)), "{hits:?}");
    let mut few = Sample::new(10);
    few.offer(1, chance(1));
    assert_eq!(few.kept, [1]);
    let mut none = Sample::new(0);
    none.offer(1, chance(1));
    assert!(none.kept.is_empty());
}

#[test]
fn what_is_referred_to_and_damaged_is_an_alarm() {
    let finding = |damage, is_referenced| ScrubFinding {
        tenant: Tenant::default(),
        artifact: "x".to_owned(),
        damage,
        is_referenced,
        detail: String::new(),
    };
    for (damage, is_referenced, is_alarm) in [
        (Damage::Corrupt, Some(true), true),
        (Damage::Corrupt, Some(false), false),
        // A journal that cannot be read may hold a lease on it.
        (Damage::Missing, None, true),
        (Damage::Unreadable, None, false),
        (Damage::Unreadable, Some(true), true),
        (Damage::MissingReferenced, Some(true), true),
    ] {
        assert_eq!(
            finding(damage, is_referenced).is_alarm(),
            is_alarm,
            "{damage:?}"
        );
    }
}
