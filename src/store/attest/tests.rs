use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};

use self::faulty::{Fault, Faulty};
use super::*;
use crate::clock::{ManualClock, SharedClock, SystemClock};
use crate::ids::{SeededIds, SystemIds};
use crate::store::local::LocalStore;
use crate::store::memory::MemoryStore;
use crate::store::{ListRequest, ObjectStore, PutMode, StoreErrorKind, paging};

mod faulty;

fn options() -> AttestOptions {
    AttestOptions {
        contenders: 8,
        rounds: 6,
        ..AttestOptions::default()
    }
}

fn target_of(stores: Vec<SharedStore>) -> Target {
    let endpoints = stores
        .into_iter()
        .enumerate()
        .map(|(number, store)| Endpoint {
            name: format!("http://s3-{number}.test"),
            store,
        });
    Target {
        endpoints: endpoints.collect(),
        store_url: "s3://bucket/prefix".into(),
        keys: KeySpace::new("prefix").unwrap(),
    }
}

fn share<S: ObjectStore + 'static>(store: &Arc<S>) -> SharedStore {
    Arc::<S>::clone(store)
}

fn memory(versioning: Versioning) -> Arc<MemoryStore> {
    let store = MemoryStore::new(SystemClock::shared());
    match versioning {
        Versioning::NeverEnabled => {}
        Versioning::Enabled => store.enable_versioning(),
        Versioning::Suspended => store.suspend_versioning(),
    }
    Arc::new(store)
}

async fn attested(target: &Target) -> Attestation {
    attest(target, &SystemClock, &SystemIds::default(), options()).await
}

/// Fails unless no object, version, marker or upload is there.
async fn assert_nothing_is_left(store: &dyn ObjectStore) {
    let mut pages = paging::list(store, ListRequest::default());
    while let Some(page) = pages.next_page().await.unwrap() {
        assert!(page.objects.is_empty(), "{:?}", page.objects);
    }
    let mut pages = paging::list_versions(store, "");
    while let Some(page) = pages.next_page().await.unwrap() {
        assert!(page.versions.is_empty(), "{:?}", page.versions);
    }
    let uploads = store.list_uploads(None).await.unwrap();
    assert!(uploads.uploads.is_empty(), "{:?}", uploads.uploads);
}

fn codes(attestation: &Attestation) -> Vec<FindingCode> {
    let findings = attestation.findings.iter();
    findings
        .filter(|finding| finding.severity > Severity::Note)
        .map(|finding| finding.code)
        .collect()
}

fn failed(attestation: &Attestation) -> Vec<CheckName> {
    let rows = attestation.checks.iter();
    rows.filter(|row| row.end.outcome == Outcome::Failed)
        .map(|row| row.check)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_reference_store_is_trusted_in_every_mode_and_left_as_it_was() {
    for (versioning, fence) in [
        (Versioning::NeverEnabled, Fence::IfMatch),
        (Versioning::Enabled, Fence::VersionId),
        (Versioning::Suspended, Fence::VersionId),
    ] {
        let store = memory(versioning);
        let target = target_of(vec![share(&store), share(&store)]);
        let attestation = attested(&target).await;
        assert_eq!(codes(&attestation), [], "{attestation:#?}");
        assert_eq!(attestation.verdict, Verdict::Trusted);
        assert_eq!(attestation.delete_fence, fence);
        assert_eq!(attestation.mode, Mode::from(Some(versioning)));
        assert_eq!(attestation.rounds, 6);
        assert_nothing_is_left(store.as_ref()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_trusted_and_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::open(directory.path(), SystemClock::shared(), SystemIds::shared());
    let store = Arc::new(store.unwrap());
    let attestation = attested(&target_of(vec![share(&store)])).await;
    assert_eq!(codes(&attestation), [], "{attestation:#?}");
    assert_eq!(attestation.verdict, Verdict::Trusted);
    assert_eq!(attestation.delete_fence, Fence::IfMatch);
    assert_nothing_is_left(store.as_ref()).await;
}

/// Attests a store with this fault, in this mode, and checks that nothing stays behind.
async fn faulty(versioning: Versioning, fault: Fault) -> Attestation {
    let inner = memory(versioning);
    let store = Arc::new(Faulty::new(Arc::clone(&inner), fault));
    let attestation = attested(&target_of(vec![store])).await;
    assert_nothing_is_left(inner.as_ref()).await;
    attestation
}

#[tokio::test(start_paused = true)]
async fn a_store_that_ignores_create_is_refused() {
    for versioning in [Versioning::NeverEnabled, Versioning::Enabled] {
        let attestation = faulty(versioning, Fault::IgnoresCreate).await;
        assert_eq!(attestation.exit_code(), 4);
        let found = codes(&attestation);
        assert!(found.contains(&FindingCode::CreateIgnored), "{found:?}");
        assert!(found.contains(&FindingCode::CreateLosesToSlowWriter));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_checks_and_then_writes_is_caught_by_the_races_only() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::ChecksThenWrites).await;
    assert_eq!(attestation.exit_code(), 4);
    assert_eq!(
        failed(&attestation),
        [CheckName::CreateRace, CheckName::CreateSlowWriter]
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_checks_before_the_body_comes_is_caught_by_held_back_bodies() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::ChecksBeforeTheBody).await;
    assert_eq!(attestation.exit_code(), 4);
    let found = failed(&attestation);
    assert!(found.contains(&CheckName::CreateSlowWriter), "{found:?}");
    assert!(!found.contains(&CheckName::CreateTwice), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn ignored_delete_conditions_leave_no_fence_unless_there_are_versions() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::IgnoresDeleteCondition).await;
    assert_eq!(attestation.exit_code(), 3);
    assert_eq!(codes(&attestation), [FindingCode::NoDeleteFence]);
    let attestation = faulty(Versioning::Enabled, Fault::IgnoresDeleteCondition).await;
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(attestation.delete_fence, Fence::VersionId);
}

#[tokio::test(start_paused = true)]
async fn a_delete_condition_that_only_a_race_breaks_is_no_fence() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::DeletesAfterChecking).await;
    assert_eq!(failed(&attestation), [CheckName::DeleteRace]);
    assert_eq!(attestation.delete_fence, Fence::None);
    assert_eq!(attestation.exit_code(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_version_is_deleted_where_versioning_was_never_enabled() {
    let inner = memory(Versioning::NeverEnabled);
    let store = Arc::new(Faulty::new(inner, Fault::VersionDeleteTakesCurrent));
    let attestation = attested(&target_of(vec![share(&store)])).await;
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(store.version_deletes.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_version_delete_that_takes_the_newer_object_is_seen() {
    for versioning in [Versioning::Enabled, Versioning::Suspended] {
        let store = Arc::new(Faulty::new(
            memory(versioning),
            Fault::VersionDeleteTakesCurrent,
        ));
        let attestation = attested(&target_of(vec![store])).await;
        assert_eq!(failed(&attestation), [CheckName::DeleteVersion]);
        assert_eq!(attestation.delete_fence, Fence::IfMatch);
        let found = codes(&attestation);
        assert_eq!(found[0], FindingCode::VersionDeleteBroken, "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stale_reads_and_listings_are_refused() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::StaleReads).await;
    assert_eq!(attestation.exit_code(), 4);
    assert!(codes(&attestation).contains(&FindingCode::StaleReads));
    let attestation = faulty(Versioning::NeverEnabled, Fault::StaleListings).await;
    assert_eq!(attestation.exit_code(), 4);
    assert_eq!(codes(&attestation), [FindingCode::StaleListings]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_says_unchanged_is_refused() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::AlwaysUnchanged).await;
    assert_eq!(codes(&attestation), [FindingCode::FalseNotModified]);
    assert_eq!(attestation.exit_code(), 4);
    let attestation = faulty(Versioning::NeverEnabled, Fault::NeverUnchanged).await;
    assert_eq!(codes(&attestation), [FindingCode::NoConditionalGet]);
    assert_eq!(attestation.exit_code(), 0);
}

#[tokio::test(start_paused = true)]
async fn upload_framing_that_stays_in_the_object_is_refused() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::FramesBodies).await;
    assert!(codes(&attestation).contains(&FindingCode::BytesAltered));
    assert_eq!(attestation.exit_code(), 4);
}

#[tokio::test(start_paused = true)]
async fn unverified_checksums_are_findings_and_no_restriction() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::IgnoresChecksums).await;
    assert_eq!(
        failed(&attestation),
        [CheckName::ChecksumVerified, CheckName::ChecksumKept]
    );
    assert_eq!(attestation.exit_code(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_restricts() {
    let store_clock = Arc::new(ManualClock::new(
        SystemClock.now() - SignedDuration::from_mins(61),
    ));
    let store = Arc::new(MemoryStore::new(store_clock as SharedClock));
    let attestation = attested(&target_of(vec![store])).await;
    assert_eq!(codes(&attestation), [FindingCode::ClockDiffers]);
    assert_eq!(attestation.exit_code(), 3);
    let evidence = &attestation.findings[0].evidence;
    assert!(evidence.contains("is -36"), "{evidence}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_and_the_rest_attested() {
    for (operation, permission) in [
        ("list", "s3:ListBucket"),
        ("list uploads", "s3:ListBucketMultipartUploads"),
        ("get versioning", "s3:GetBucketVersioning"),
        ("abort upload", "s3:AbortMultipartUpload"),
        ("delete", "s3:DeleteObject"),
    ] {
        let store = Arc::new(Faulty::new(
            memory(Versioning::NeverEnabled),
            Fault::Denies(operation),
        ));
        let attestation = attested(&target_of(vec![store])).await;
        assert_eq!(attestation.exit_code(), 3, "{operation}: {attestation:#?}");
        let is_named = attestation
            .findings
            .iter()
            .any(|f| f.code == FindingCode::PermissionDenied && f.evidence == permission);
        assert!(is_named, "{operation}: {:#?}", attestation.findings);
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_may_not_write_leave_reading() {
    let store = Arc::new(Faulty::new(
        memory(Versioning::NeverEnabled),
        Fault::Denies("put"),
    ));
    let attestation = attested(&target_of(vec![store])).await;
    assert_eq!(attestation.exit_code(), 4);
    assert!(codes(&attestation).contains(&FindingCode::WriteDenied));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers_is_told_within_ten_seconds() {
    let began = Instant::now();
    let store = Arc::new(Faulty::new(memory(Versioning::NeverEnabled), Fault::Hangs));
    let attestation = attested(&target_of(vec![store])).await;
    assert!(began.elapsed() <= Duration::from_secs(10));
    assert_eq!(attestation.exit_code(), 1);
    assert_eq!(attestation.findings[0].code, FindingCode::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn looking_for_a_stored_attestation_takes_no_more_time_from_a_dead_start() {
    let began = Instant::now();
    let store = Arc::new(Faulty::new(memory(Versioning::NeverEnabled), Fault::Hangs));
    let target = target_of(vec![store]);
    let ids = SystemIds::default();
    let (attestation, reused) = attest_or_reuse(&target, &SystemClock, &ids, options()).await;
    assert!(!reused);
    assert_eq!(attestation.exit_code(), 1);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn nothing_stays_where_the_versioning_state_may_not_be_read() {
    for versioning in [Versioning::NeverEnabled, Versioning::Enabled] {
        let attestation = faulty(versioning, Fault::Denies("get versioning")).await;
        assert_eq!(attestation.exit_code(), 3);
        assert_eq!(attestation.delete_fence, Fence::None);
        let found = codes(&attestation);
        assert!(!found.contains(&FindingCode::ProbesLeft), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stops_answering_half_way_is_not_trusted() {
    let began = Instant::now();
    let inner = memory(Versioning::NeverEnabled);
    let store = Arc::new(Faulty::new(inner, Fault::HangsAfter(40)));
    let attestation = attested(&target_of(vec![store])).await;
    assert!(began.elapsed() <= Duration::from_secs(10));
    assert_eq!(attestation.exit_code(), 1, "{attestation:#?}");
    assert!(codes(&attestation).contains(&FindingCode::ProbesLeft));
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_throttling_for_losers_are_no_fault() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::ConflictsForLosers).await;
    assert_eq!(attestation.exit_code(), 0, "{attestation:#?}");
    let attestation = faulty(Versioning::NeverEnabled, Fault::LosesReplies).await;
    assert_eq!(attestation.exit_code(), 0, "{attestation:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_without_slow_puts_is_attested_by_races() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::NoProbes).await;
    assert_eq!(attestation.exit_code(), 0);
    assert_eq!(codes(&attestation), [FindingCode::SlowWriterNotProbed]);
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_are_exact_alone_and_not_together_are_refused() {
    let inner = memory(Versioning::NeverEnabled);
    let endpoint =
        || -> SharedStore { Arc::new(Faulty::new(Arc::clone(&inner), Fault::IsAtomicPerEndpoint)) };
    let alone = attested(&target_of(vec![endpoint()])).await;
    assert_eq!(alone.exit_code(), 0, "{alone:#?}");
    let together = attested(&target_of(vec![endpoint(), endpoint()])).await;
    assert_eq!(failed(&together), [CheckName::CreateRace]);
    assert_eq!(together.exit_code(), 4);
    assert_nothing_is_left(inner.as_ref()).await;
}

#[tokio::test(start_paused = true)]
async fn two_endpoints_of_different_stores_are_refused() {
    let stores: Vec<SharedStore> = vec![
        memory(Versioning::NeverEnabled),
        memory(Versioning::NeverEnabled),
    ];
    let attestation = attested(&target_of(stores)).await;
    assert_eq!(attestation.exit_code(), 4);
}

#[tokio::test(start_paused = true)]
async fn no_endpoint_is_unreachable_and_no_panic() {
    let attestation = attested(&target_of(Vec::new())).await;
    assert_eq!(attestation.exit_code(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_are_bounded_by_the_options() {
    let store = Arc::new(Faulty::new(memory(Versioning::Enabled), Fault::None));
    attested(&target_of(vec![share(&store)])).await;
    let requests = store.requests.load(Ordering::Relaxed);
    let options = options();
    // Each race: its writers, one read, and one delete at the end.
    let bound = options.rounds * (options.contenders + 2) + 350;
    assert!(requests <= bound, "{requests} > {bound}");
}

#[tokio::test(start_paused = true)]
async fn an_attestation_is_reused_until_something_changes() {
    let clock = ManualClock::new(SystemClock.now());
    let ids = SeededIds::new(1);
    let inner = memory(Versioning::NeverEnabled);
    let store = Arc::new(Faulty::new(Arc::clone(&inner), Fault::None));
    let target = target_of(vec![share(&store)]);
    let start =
        async |target: &Target, options| attest_or_reuse(target, &clock, &ids, options).await;
    let (first, reused) = start(&target, options()).await;
    assert!(!reused && first.is_writable());
    let before = store.requests.load(Ordering::Relaxed);
    let (second, reused) = start(&target, options()).await;
    assert!(reused);
    assert_eq!(second, first);
    // It is read, the versioning state is, and it is written again: a full or read-only store shows.
    assert_eq!(store.requests.load(Ordering::Relaxed) - before, 3);

    let fewer = AttestOptions {
        contenders: 3,
        ..options()
    };
    assert!(!start(&target, fewer).await.1, "other contenders");
    assert!(!start(&target, options()).await.1, "and back");
    let mut elsewhere = target.clone();
    elsewhere.endpoints[0].name = "http://other.test".into();
    assert!(!start(&elsewhere, options()).await.1, "another endpoint");
    inner.enable_versioning();
    let (third, reused) = start(&target, options()).await;
    assert!(!reused, "another mode");
    assert_eq!(third.delete_fence, Fence::VersionId);
    assert!(start(&target, options()).await.1);
    clock.advance(SignedDuration::from_hours(24) + SignedDuration::from_secs(2));
    assert!(!start(&target, options()).await.1, "a day later");
    // A start that was too busy for the last races knows of no fence; the next one looks again.
    let (mut hasty, _) = start(&target, options()).await;
    hasty.delete_fence = Fence::None;
    let race = hasty.checks.iter_mut();
    let race = race.filter(|row| row.check == CheckName::DeleteVersion);
    race.for_each(|row| row.end = Check::unknown("not answered in time"));
    let store = target.endpoints[0].store.as_ref();
    save(store, &target.keys, &hasty).await.unwrap();
    let (again, reused) = start(&target, options()).await;
    assert!(!reused, "undecided");
    assert_eq!(again.delete_fence, Fence::VersionId);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_trust_in_what_was_stored_before() {
    let (clock, ids) = (SystemClock, SystemIds::default());
    let inner = memory(Versioning::NeverEnabled);
    let good = target_of(vec![share(&inner)]);
    attest_or_reuse(&good, &clock, &ids, options()).await;
    let bad = target_of(vec![Arc::new(Faulty::new(inner, Fault::IgnoresCreate))]);
    let attestation = attest(&bad, &clock, &ids, options()).await;
    save(good.endpoints[0].store.as_ref(), &good.keys, &attestation)
        .await
        .unwrap();
    assert_eq!(load(&good).await.unwrap(), Some(attestation));
    let (_, reused) = attest_or_reuse(&good, &clock, &ids, options()).await;
    assert!(!reused);
}

#[tokio::test(start_paused = true)]
async fn a_stored_attestation_that_cannot_be_read_is_made_again() {
    let store = memory(Versioning::NeverEnabled);
    let target = target_of(vec![share(&store)]);
    let key = target.keys.attestation(&target.fingerprint()).unwrap();
    store
        .put(&key, "{\"format\":99}".into(), PutMode::Overwrite)
        .await
        .unwrap();
    assert_eq!(load(&target).await.unwrap(), None);
    let (_, reused) =
        attest_or_reuse(&target, &SystemClock, &SystemIds::default(), options()).await;
    assert!(!reused);
    assert!(load(&target).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn freshness_ends_after_a_day_and_does_not_begin_tomorrow() {
    let store = memory(Versioning::NeverEnabled);
    let attestation = attested(&target_of(vec![store])).await;
    let day = limits::ATTEST_MAX_AGE;
    let at = |seconds: i64| attestation.measured_at + SignedDuration::from_secs(seconds);
    let fresh = |now: Timestamp, of: &str| attestation.is_fresh(now, day, of);
    let own = attestation.fingerprint.clone();
    assert!(fresh(at(0), &own) && fresh(at(86_400), &own) && fresh(at(-300), &own));
    assert!(!fresh(at(86_401), &own) && !fresh(at(-301), &own));
    assert!(!fresh(at(0), "another"));
}

#[test]
fn a_fingerprint_knows_the_bucket_and_the_set_of_endpoints() {
    let store = memory(Versioning::NeverEnabled);
    let target = target_of(vec![share(&store), share(&store)]);
    let mut reversed = target.clone();
    reversed.endpoints.reverse();
    assert_eq!(target.fingerprint(), reversed.fingerprint());
    assert!(target.keys.attestation(&target.fingerprint()).is_ok());
    let mut other = target.clone();
    other.store_url = "s3://bucket/other".into();
    assert_ne!(target.fingerprint(), other.fingerprint());
    assert_ne!(target.fingerprint(), target_of(vec![store]).fingerprint());
}

#[tokio::test(start_paused = true)]
async fn the_table_says_what_to_do_and_nothing_raw() {
    let store = Arc::new(Faulty::new(
        memory(Versioning::NeverEnabled),
        Fault::IgnoresDeleteCondition,
    ));
    let mut attestation = attested(&target_of(vec![store])).await;
    attestation.checks[0].end.evidence.push_str("\u{1b}[31m\nx");
    let table = render_table(&attestation);
    for part in [
        "verdict       usable with restrictions",
        "delete fence  none",
        "DELETE If-Match is exact            FAILED       a stale If-Match deleted the object",
        "RESTRICTION: no_delete_fence",
        "do:   enable versioning on the bucket, then the version_id fence is used",
        "note: encryption_unknown",
    ] {
        assert!(table.contains(part), "{part} is not in\n{table}");
    }
    assert!(!table.contains('\u{1b}'));
    assert!(table.lines().all(|line| line.len() < 200));
}

#[tokio::test(start_paused = true)]
async fn the_json_has_the_names_that_scripts_read() {
    let attestation = attested(&target_of(vec![memory(Versioning::Enabled)])).await;
    let json = serde_json::to_value(&attestation).unwrap();
    assert_eq!(json["verdict"], "trusted");
    assert_eq!(json["delete_fence"], "version_id");
    assert_eq!(json["mode"], "enabled");
    assert_eq!(json["checks"][0]["check"], "create_twice");
    assert_eq!(json["checks"][0]["outcome"], "passed");
    let back: Attestation = serde_json::from_value(json).unwrap();
    assert_eq!(back, attestation);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_busy_at_first_is_attested_and_a_full_one_is_not() {
    let attestation = faulty(Versioning::NeverEnabled, Fault::BusyAtFirst).await;
    assert_eq!(attestation.exit_code(), 0, "{attestation:#?}");
    let attestation = faulty(
        Versioning::NeverEnabled,
        Fault::PutsAnswer(StoreErrorKind::Full),
    )
    .await;
    assert_eq!(attestation.exit_code(), 1);
    assert!(attestation.findings[0].what_to_do.contains("quota"));
}
