use rstest::rstest;

use super::super::{AttestOptions, ClockReading, Diagnosis, diagnose};
use super::*;
use crate::store::{StoreError, StoreErrorKind};

fn facts_known_good() -> BucketFacts {
    BucketFacts {
        encryption: Some(Encryption::On("AES256".into())),
        public_access: Some(PublicAccess::Blocked),
        object_lock: Some(false),
        aborts_stale_uploads: Some(true),
    }
}

fn clock(ahead_ms: Option<i64>) -> ClockReading {
    ClockReading {
        endpoint: "http://s3.test".into(),
        ahead_ms,
    }
}

/// A store that does everything right, in this mode.
fn good(mode: Mode) -> Observations {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let mut seen = Observations::new("f".into(), AttestOptions::default(), now);
    seen.mode = mode;
    seen.rounds = 20;
    seen.clocks = vec![clock(Some(0))];
    seen.facts = facts_known_good();
    for name in CheckName::ALL {
        seen.note(name, Check::passed("ok"));
    }
    if matches!(mode, Mode::NeverEnabled | Mode::Unknown) {
        seen.checks.remove(&CheckName::DeleteVersion);
    }
    seen
}

fn with(mut seen: Observations, ends: &[(CheckName, Outcome)]) -> Observations {
    for (name, outcome) in ends {
        seen.note(*name, Check::new(*outcome, "seen"));
    }
    seen
}

fn codes(attestation: &Attestation) -> Vec<Code> {
    attestation.findings.iter().map(|f| f.code).collect()
}

#[rstest]
#[case(Mode::NeverEnabled, Fence::IfMatch)]
#[case(Mode::Enabled, Fence::VersionId)]
fn a_store_that_is_right_is_trusted_with_its_strongest_fence(
    #[case] mode: Mode,
    #[case] fence: Fence,
) {
    let attestation = evaluate(&good(mode));
    assert_eq!(attestation.verdict, Verdict::Trusted);
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(attestation.delete_fence, fence);
    assert_eq!(codes(&attestation), []);
    assert_eq!(attestation.checks.len(), CheckName::ALL.len());
}

use CheckName as N;
use Outcome::{Denied, Failed, Skipped, Unknown, Unsupported};

/// Servers as they were measured, by what each check sees.
const MINIO: &[(N, Outcome)] = &[(N::DeleteIfMatch, Failed), (N::DeleteRace, Skipped)];
const CEPH16: &[(N, Outcome)] = &[
    (N::ReplaceIfMatch, Failed),
    (N::ReplaceRace, Skipped),
    (N::DeleteIfMatch, Failed),
    (N::DeleteRace, Skipped),
    (N::ChecksumVerified, Failed),
    (N::ChecksumKept, Failed),
];
const CEPH16_VERSIONED: &[(N, Outcome)] = &[
    (N::CreateTwice, Failed),
    (N::CreateRace, Skipped),
    (N::DeleteIfMatch, Failed),
    (N::DeleteRace, Skipped),
];
const RCLONE: &[(N, Outcome)] = &[
    (N::CreateTwice, Failed),
    (N::CreateRace, Skipped),
    (N::CreateSlowWriter, Failed),
    (N::ReplaceIfMatch, Failed),
    (N::DeleteIfMatch, Failed),
    (N::DeleteRace, Skipped),
];
const S3S_FS: &[(N, Outcome)] = &[
    (N::CreateRace, Failed),
    (N::CreateSlowWriter, Failed),
    (N::DeleteIfMatch, Failed),
    (N::DeleteRace, Skipped),
    (N::ChecksumVerified, Failed),
];
const LOCALSTACK: &[(N, Outcome)] = &[(N::DeleteIfMatch, Unsupported), (N::DeleteRace, Skipped)];

#[rstest]
#[case::minio(Mode::NeverEnabled, MINIO, Verdict::Restricted, Fence::None)]
#[case::minio_versioned(Mode::Enabled, MINIO, Verdict::Trusted, Fence::VersionId)]
#[case::minio_suspended(Mode::Suspended, MINIO, Verdict::Trusted, Fence::VersionId)]
#[case::seaweedfs(Mode::NeverEnabled, &[], Verdict::Trusted, Fence::IfMatch)]
#[case::ceph16(Mode::NeverEnabled, CEPH16, Verdict::Restricted, Fence::None)]
#[case::ceph16_versioned(Mode::Enabled, CEPH16_VERSIONED, Verdict::Refused, Fence::VersionId)]
#[case::rclone(Mode::NeverEnabled, RCLONE, Verdict::Refused, Fence::None)]
#[case::s3s_fs(Mode::NeverEnabled, S3S_FS, Verdict::Refused, Fence::None)]
#[case::localstack(Mode::NeverEnabled, LOCALSTACK, Verdict::Restricted, Fence::None)]
#[case::localstack_versioned(Mode::Enabled, LOCALSTACK, Verdict::Trusted, Fence::VersionId)]
#[case::if_match_wrong_only_in_a_race(Mode::NeverEnabled, &[(N::DeleteRace, Failed)], Verdict::Restricted, Fence::None)]
#[case::version_delete_broken(Mode::Enabled, &[(N::DeleteVersion, Failed)], Verdict::Restricted, Fence::IfMatch)]
#[case::version_delete_denied(Mode::Enabled, &[(N::DeleteVersion, Denied)], Verdict::Restricted, Fence::IfMatch)]
fn measured_servers_are_judged_as_they_behave(
    #[case] mode: Mode,
    #[case] ends: &[(N, Outcome)],
    #[case] verdict: Verdict,
    #[case] fence: Fence,
) {
    let attestation = evaluate(&with(good(mode), ends));
    assert_eq!(attestation.verdict, verdict, "{:?}", attestation.findings);
    assert_eq!(attestation.delete_fence, fence);
}

#[test]
fn minio_without_versions_is_told_to_enable_them() {
    let attestation = evaluate(&with(good(Mode::NeverEnabled), MINIO));
    let finding = &attestation.findings[0];
    assert_eq!(finding.code, Code::NoDeleteFence);
    assert!(finding.meaning.starts_with("DELETE ignores If-Match"));
    assert_eq!(
        finding.what_to_do,
        "enable versioning on the bucket, then the version_id fence is used"
    );
    let versioned = evaluate(&with(good(Mode::Enabled), MINIO));
    assert_eq!(codes(&versioned), [Code::DeleteIgnoresIfMatch]);
}

#[rstest]
#[case(N::CreateTwice, Failed, Verdict::Refused, Some(Code::CreateIgnored))]
#[case(
    N::CreateTwice,
    Unsupported,
    Verdict::Refused,
    Some(Code::CreateUnsupported)
)]
#[case(N::CreateTwice, Denied, Verdict::Refused, Some(Code::WriteDenied))]
#[case(
    N::CreateTwice,
    Unknown,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(
    N::CreateTwice,
    Skipped,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(N::CreateRace, Failed, Verdict::Refused, Some(Code::CreateNotAtomic))]
#[case(
    N::CreateRace,
    Unknown,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(
    N::CreateRace,
    Skipped,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(
    N::CreateRace,
    Denied,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(
    N::CreateSlowWriter,
    Failed,
    Verdict::Refused,
    Some(Code::CreateLosesToSlowWriter)
)]
#[case(
    N::CreateSlowWriter,
    Unsupported,
    Verdict::Trusted,
    Some(Code::SlowWriterNotProbed)
)]
#[case(
    N::CreateSlowWriter,
    Unknown,
    Verdict::Trusted,
    Some(Code::SlowWriterNotProbed)
)]
#[case(N::ReadAfterWrite, Failed, Verdict::Refused, Some(Code::StaleReads))]
#[case(
    N::ReadAfterWrite,
    Unknown,
    Verdict::Unreachable,
    Some(Code::AttestationIncomplete)
)]
#[case(N::ListAfterWrite, Failed, Verdict::Refused, Some(Code::StaleListings))]
#[case(N::ChangedGet, Failed, Verdict::Refused, Some(Code::FalseNotModified))]
#[case(N::ByteFidelity, Failed, Verdict::Refused, Some(Code::BytesAltered))]
#[case(N::Multipart, Failed, Verdict::Refused, Some(Code::BytesAltered))]
#[case(
    N::Multipart,
    Unsupported,
    Verdict::Trusted,
    Some(Code::MultipartBroken)
)]
#[case(N::Multipart, Unknown, Verdict::Trusted, Some(Code::NotDetermined))]
#[case(
    N::ReplaceIfMatch,
    Failed,
    Verdict::Trusted,
    Some(Code::ReplaceNotExact)
)]
#[case(N::ReplaceRace, Failed, Verdict::Trusted, Some(Code::ReplaceNotExact))]
#[case(N::ReplaceRace, Skipped, Verdict::Trusted, None)]
#[case(
    N::ConditionalGet,
    Failed,
    Verdict::Trusted,
    Some(Code::NoConditionalGet)
)]
#[case(
    N::ChecksumVerified,
    Failed,
    Verdict::Trusted,
    Some(Code::ChecksumNotVerified)
)]
#[case(
    N::ChecksumVerified,
    Unsupported,
    Verdict::Trusted,
    Some(Code::ChecksumUnknown)
)]
#[case(
    N::ChecksumVerified,
    Unknown,
    Verdict::Trusted,
    Some(Code::ChecksumUnknown)
)]
#[case(N::ChecksumKept, Failed, Verdict::Trusted, Some(Code::ChecksumNotKept))]
#[case(N::DeletePlain, Failed, Verdict::Restricted, Some(Code::DeleteBroken))]
#[case(
    N::DeleteIfMatch,
    Denied,
    Verdict::Restricted,
    Some(Code::NoDeleteFence)
)]
#[case(
    N::DeleteIfMatch,
    Unknown,
    Verdict::Restricted,
    Some(Code::NoDeleteFence)
)]
#[case(N::DeleteRace, Unknown, Verdict::Restricted, Some(Code::NoDeleteFence))]
fn each_check_alone_has_the_weight_that_it_should(
    #[case] name: N,
    #[case] outcome: Outcome,
    #[case] verdict: Verdict,
    #[case] code: Option<Code>,
) {
    let attestation = evaluate(&with(good(Mode::NeverEnabled), &[(name, outcome)]));
    assert_eq!(attestation.verdict, verdict, "{:?}", attestation.findings);
    assert_eq!(codes(&attestation), Vec::from_iter(code));
}

#[test]
fn no_combination_of_create_checks_is_trusted_unless_both_kinds_passed() {
    let outcomes = [
        Outcome::Passed,
        Failed,
        Unsupported,
        Denied,
        Unknown,
        Skipped,
    ];
    for twice in outcomes {
        for race in outcomes {
            for slow in outcomes {
                for mode in [Mode::NeverEnabled, Mode::Enabled] {
                    let ends = [
                        (N::CreateTwice, twice),
                        (N::CreateRace, race),
                        (N::CreateSlowWriter, slow),
                    ];
                    let attestation = evaluate(&with(good(mode), &ends));
                    let is_exact = twice == Outcome::Passed && race == Outcome::Passed;
                    let may_write = is_exact && slow != Failed;
                    assert_eq!(attestation.is_writable(), may_write, "{ends:?}");
                    let failed = [twice, race, slow].contains(&Failed);
                    if failed {
                        assert_eq!(attestation.verdict, Verdict::Refused, "{ends:?}");
                    }
                }
            }
        }
    }
}

#[rstest]
#[case::exact(&[Some(0)], &[])]
#[case::at_the_bound(&[Some(300_000)], &[])]
#[case::ahead(&[Some(300_001)], &[Code::ClockDiffers])]
#[case::behind(&[Some(-3_600_000)], &[Code::ClockDiffers])]
#[case::apart(&[Some(-200_000), Some(200_000)], &[Code::EndpointClocksDiffer])]
#[case::one_away(&[Some(0), Some(400_000)], &[Code::ClockDiffers, Code::EndpointClocksDiffer])]
#[case::no_date(&[Some(0), None], &[Code::DateMissing])]
#[case::absurd(&[Some(i64::MIN), Some(i64::MAX)], &[Code::ClockDiffers, Code::ClockDiffers, Code::EndpointClocksDiffer])]
fn clocks_that_differ_by_more_than_five_minutes_restrict(
    #[case] ahead: &[Option<i64>],
    #[case] want: &[Code],
) {
    let mut seen = good(Mode::NeverEnabled);
    seen.clocks = ahead.iter().copied().map(clock).collect();
    let attestation = evaluate(&seen);
    assert_eq!(codes(&attestation), want);
    let code = if want.is_empty() { 0 } else { 3 };
    assert_eq!(attestation.exit_code(), code);
}

#[test]
fn a_denied_permission_restricts_and_is_named() {
    let mut seen = good(Mode::NeverEnabled);
    seen.denied.insert("s3:ListBucketMultipartUploads".into());
    let attestation = evaluate(&seen);
    assert_eq!(attestation.exit_code(), 3);
    assert_eq!(attestation.findings[0].code, Code::PermissionDenied);
    assert_eq!(
        attestation.findings[0].evidence,
        "s3:ListBucketMultipartUploads"
    );
}

#[test]
fn an_unknown_versioning_state_leaves_no_fence() {
    let seen = with(good(Mode::Unknown), &[(N::Versioning, Denied)]);
    let attestation = evaluate(&seen);
    assert_eq!(attestation.delete_fence, Fence::None);
    assert_eq!(codes(&attestation), [Code::VersioningUnknown]);
    assert_eq!(attestation.exit_code(), 3);
}

#[test]
fn what_the_bucket_does_not_say_is_said_to_be_unknown_and_restricts_nothing() {
    let mut seen = good(Mode::NeverEnabled);
    seen.facts = BucketFacts::default();
    let attestation = evaluate(&seen);
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(
        codes(&attestation),
        [
            Code::EncryptionUnknown,
            Code::PublicAccessUnknown,
            Code::ObjectLockUnknown,
            Code::StaleUploadsUnknown
        ]
    );
    seen.facts = BucketFacts {
        encryption: Some(Encryption::Off),
        public_access: Some(PublicAccess::Public),
        object_lock: Some(true),
        aborts_stale_uploads: Some(false),
    };
    let attestation = evaluate(&seen);
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(
        codes(&attestation),
        [
            Code::EncryptionOff,
            Code::BucketPublic,
            Code::ObjectLockOn,
            Code::StaleUploadsKept
        ]
    );
}

#[test]
fn an_unreachable_store_is_said_in_its_diagnosis_alone() {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let mut seen = Observations::new("f".into(), AttestOptions::default(), now);
    let error = StoreError::new(
        StoreErrorKind::Rejected,
        "put",
        "k",
        "status 404 NoSuchBucket",
    );
    let diagnosis: Diagnosis = diagnose(&error);
    seen.unreachable = Some(diagnosis);
    let attestation = evaluate(&seen);
    assert_eq!(attestation.exit_code(), 1);
    assert_eq!(codes(&attestation), [Code::Unreachable]);
    assert_eq!(attestation.findings[0].meaning, "the bucket does not exist");
    assert!(attestation.findings[0].what_to_do.contains("`store.url`"));
}

#[test]
fn probes_that_stay_are_told() {
    let mut seen = good(Mode::NeverEnabled);
    seen.left_behind = 3;
    let attestation = evaluate(&seen);
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(codes(&attestation), [Code::ProbesLeft]);
    assert_eq!(attestation.findings[0].evidence, "probes left: 3");
}

#[test]
fn the_gravest_finding_comes_first() {
    let mut seen = with(good(Mode::NeverEnabled), RCLONE);
    seen.facts = BucketFacts::default();
    let attestation = evaluate(&seen);
    let severities: Vec<_> = attestation.findings.iter().map(|f| f.severity).collect();
    assert!(severities.is_sorted_by(|a, b| a >= b), "{severities:?}");
    assert_eq!(severities[0], Severity::Refusal);
}
