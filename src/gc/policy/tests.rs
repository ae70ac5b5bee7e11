use rstest::rstest;

use super::*;
use crate::limits::DEFAULT_ORPHAN_TTL;

const HOUR: Duration = Duration::from_secs(3600);

fn policy(request: PolicyRequest, settings: PolicySettings) -> Result<GcPolicy, PolicyError> {
    GcPolicy::new(&request, &settings, DEFAULT_ORPHAN_TTL)
}

fn ttl(seconds: u64) -> PolicyRequest {
    PolicyRequest {
        orphan_ttl_seconds: Some(seconds),
        ..PolicyRequest::default()
    }
}

fn key_of(error: &PolicyError) -> String {
    error.to_string().split(':').next().unwrap().to_owned()
}

#[test]
fn the_defaults_are_the_stores_ttl_no_number_and_half() {
    let policy = policy(PolicyRequest::default(), PolicySettings::default()).unwrap();
    assert_eq!(policy.orphan_ttl_seconds, 86_400);
    assert_eq!(policy.max_deletions, None);
    assert_eq!(policy.max_share.to_string(), "0.5");
    assert_eq!(policy.min_plan_age_seconds, 3_600);
    assert_eq!(policy.settle_seconds, 60);
    assert!(!policy.allow_short_times);
    assert!(PolicyRequest::default().dry_run);
}

#[test]
fn a_plan_may_be_more_patient_than_receipts_and_never_less() {
    assert!(policy(ttl(86_400), PolicySettings::default()).is_ok());
    assert!(policy(ttl(86_401), PolicySettings::default()).is_ok());
    let refused = policy(ttl(86_399), PolicySettings::default()).unwrap_err();
    assert!(matches!(refused, PolicyError::BelowStoreTtl { .. }));
    // Not even where short times are allowed: the promise was given.
    let settings = PolicySettings {
        allow_short_times: true,
        ..PolicySettings::default()
    };
    assert!(policy(ttl(86_399), settings).is_err());
}

#[test]
fn a_ttl_of_zero_is_refused_wherever_it_is_asked_for() {
    let settings = PolicySettings {
        allow_short_times: true,
        ..PolicySettings::default()
    };
    let refused = GcPolicy::new(&ttl(0), &settings, Duration::ZERO).unwrap_err();
    assert_eq!(key_of(&refused), "orphan_ttl");
}

#[rstest]
#[case::plan_age(HOUR - Duration::from_secs(1), GC_SETTLE, "gc.min_plan_age")]
#[case::settle(HOUR, Duration::from_secs(59), "gc.settle")]
fn floors_name_their_key_and_are_lifted(
    #[case] min_plan_age: Duration,
    #[case] settle: Duration,
    #[case] key: &str,
) {
    let settings = PolicySettings {
        min_plan_age,
        settle,
        ..PolicySettings::default()
    };
    let refused = policy(PolicyRequest::default(), settings).unwrap_err();
    assert_eq!(key_of(&refused), key);
    for (allow_short_times, is_one_host) in [(true, false), (false, true)] {
        let lifted = PolicySettings {
            allow_short_times,
            is_one_host,
            ..settings
        };
        assert!(policy(PolicyRequest::default(), lifted).is_ok());
    }
}

#[test]
fn a_store_with_a_short_ttl_needs_short_times_to_be_allowed() {
    let mut settings = PolicySettings {
        is_one_host: true,
        ..PolicySettings::default()
    };
    let minute = Duration::from_secs(60);
    let request = PolicyRequest::default();
    let refused = GcPolicy::new(&request, &settings, minute).unwrap_err();
    assert_eq!(key_of(&refused), "gc.orphan_ttl");
    settings.allow_short_times = true;
    let policy = GcPolicy::new(&request, &settings, minute).unwrap();
    assert!(policy.allow_short_times);
}

#[rstest]
#[case::negative_ttl(r#"{"orphan_ttl_seconds":-1}"#)]
#[case::fraction(r#"{"orphan_ttl_seconds":1.5}"#)]
#[case::boolean(r#"{"orphan_ttl_seconds":true}"#)]
#[case::negative_number(r#"{"max_deletions":-1}"#)]
#[case::word(r#"{"dry_run":"yes"}"#)]
#[case::share_over_one(r#"{"max_share":"1.1"}"#)]
#[case::unknown(r#"{"ttl":1}"#)]
fn what_is_not_a_policy_does_not_parse(#[case] text: &str) {
    assert!(serde_json::from_str::<PolicyRequest>(text).is_err());
}

#[test]
fn a_share_is_read_and_written_exactly() {
    for (text, of_1000) in [
        ("0", 0),
        ("0.5", 500),
        ("1", 1000),
        ("0.3333", 333),
        ("1.0", 1000),
    ] {
        let share: Share = text.parse().unwrap();
        assert_eq!(share.of(1000), of_1000, "{text}");
        assert_eq!(share.to_string().parse(), Ok(share));
    }
    for bad in [
        "", ".5", "2", "1.0001", "0.12345", "-0.1", "0,5", "50%", "0.", "0.5x", "+1",
    ] {
        assert!(bad.parse::<Share>().is_err(), "{bad}");
    }
    assert_eq!(Share::ALL.of(u64::MAX), u64::MAX);
}
