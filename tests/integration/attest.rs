//! Attestation of servers that behave as real ones were measured, through the real AWS client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use rstest::rstest;
use spillbox::clock::{Clock, ManualClock, SystemClock};
use spillbox::ids::SystemIds;
use spillbox::store::SharedStore;
use spillbox::store::attest::{
    AttestOptions, Attestation, Cause, CheckName, Endpoint, Fence, FindingCode, Mode, Outcome,
    Severity, Target, Verdict, attest, diagnose,
};
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::probe::{BucketFacts, Encryption, PublicAccess};
use spillbox::store::s3::{S3Settings, S3Store};
use spillbox::store::{ObjectStore, PutMode, StoreErrorKind};

use crate::support::s3_server::{
    ACCESS_KEY, Action, BUCKET, BucketVersioning, Fault, Op, Quirks, S3Server, SECRET_KEY,
};

fn options() -> AttestOptions {
    AttestOptions {
        contenders: 8,
        rounds: 8,
        // A busy machine must not decide what is found.
        deadline: Duration::from_secs(60),
    }
}

fn target(stores: Vec<SharedStore>) -> Target {
    let endpoints = stores.into_iter().map(|store| Endpoint {
        name: "http://in-process.test".into(),
        store,
    });
    Target {
        endpoints: endpoints.collect(),
        store_url: format!("s3://{BUCKET}"),
        keys: KeySpace::new("").unwrap(),
    }
}

async fn attested(server: &S3Server) -> Attestation {
    let stores: Vec<SharedStore> = vec![Arc::new(server.store()), Arc::new(server.store())];
    attest(
        &target(stores),
        &SystemClock,
        &SystemIds::default(),
        options(),
    )
    .await
}

fn assert_nothing_is_left(server: &S3Server, name: &str) {
    assert_eq!(server.total_versions(), 0, "{name}: versions or markers");
    assert_eq!(server.open_uploads(), 0, "{name}: uploads");
}

fn outcome(attestation: &Attestation, check: CheckName) -> Outcome {
    let rows = attestation.checks.iter();
    let mut found = rows.filter(|row| row.check == check);
    found.next().expect("every check has a row").end.outcome
}

fn has(attestation: &Attestation, code: FindingCode) -> bool {
    attestation.findings.iter().any(|f| f.code == code)
}

/// Quirks, versioning, and what must come of it.
#[rstest]
#[case::aws(Quirks::AWS, BucketVersioning::Never, Verdict::Trusted, Fence::IfMatch)]
#[case::aws_versioned(
    Quirks::AWS,
    BucketVersioning::Enabled,
    Verdict::Trusted,
    Fence::VersionId
)]
#[case::aws_suspended(
    Quirks::AWS,
    BucketVersioning::Suspended,
    Verdict::Trusted,
    Fence::VersionId
)]
#[case::minio(
    Quirks::MINIO,
    BucketVersioning::Never,
    Verdict::Restricted,
    Fence::None
)]
#[case::minio_versioned(
    Quirks::MINIO,
    BucketVersioning::Enabled,
    Verdict::Trusted,
    Fence::VersionId
)]
#[case::seaweedfs(
    Quirks::SEAWEEDFS,
    BucketVersioning::Never,
    Verdict::Trusted,
    Fence::IfMatch
)]
#[case::seaweedfs_versioned(
    Quirks::SEAWEEDFS,
    BucketVersioning::Enabled,
    Verdict::Trusted,
    Fence::VersionId
)]
#[case::ceph16(
    Quirks::CEPH16,
    BucketVersioning::Never,
    Verdict::Restricted,
    Fence::None
)]
#[case::rclone(Quirks::RCLONE, BucketVersioning::Never, Verdict::Refused, Fence::None)]
#[case::s3s_fs(Quirks::S3S_FS, BucketVersioning::Never, Verdict::Refused, Fence::None)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_measured_server_gets_its_verdict_and_keeps_nothing(
    #[case] quirks: Quirks,
    #[case] versioning: BucketVersioning,
    #[case] verdict: Verdict,
    #[case] fence: Fence,
) {
    let server = S3Server::builder()
        .quirks(quirks)
        .versioning(versioning)
        .start();
    let attestation = attested(&server).await;
    let name = quirks.name;
    assert_eq!(attestation.verdict, verdict, "{name}: {attestation:#?}");
    assert_eq!(attestation.delete_fence, fence, "{name}: {attestation:#?}");
    assert_nothing_is_left(&server, name);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ceph_with_versions_is_refused_though_it_is_right_without() {
    let server = S3Server::builder()
        .quirks(Quirks::CEPH16)
        .versioning(BucketVersioning::Enabled)
        .start();
    let attestation = attested(&server).await;
    assert_eq!(attestation.verdict, Verdict::Refused);
    assert!(has(&attestation, FindingCode::CreateIgnored));
    assert_nothing_is_left(&server, "ceph16");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3s_fs_passes_one_after_another_and_fails_beside_one_another() {
    let server = S3Server::builder().quirks(Quirks::S3S_FS).start();
    let attestation = attested(&server).await;
    let ends = [
        CheckName::CreateTwice,
        CheckName::CreateRace,
        CheckName::CreateSlowWriter,
    ]
    .map(|check| outcome(&attestation, check));
    assert_eq!(ends, [Outcome::Passed, Outcome::Failed, Outcome::Failed]);
    // It answers 400 to a wrong checksum, and keeps the body.
    assert!(has(&attestation, FindingCode::ChecksumNotVerified));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn minio_is_told_what_versioning_would_give() {
    let server = S3Server::builder().quirks(Quirks::MINIO).start();
    let attestation = attested(&server).await;
    assert_eq!(attestation.exit_code(), 3);
    let graver = attestation.findings.iter();
    let graver: Vec<_> = graver.filter(|f| f.severity > Severity::Note).collect();
    assert_eq!(graver.len(), 1, "{graver:#?}");
    assert_eq!(
        graver[0].what_to_do,
        "enable versioning on the bucket, then the version_id fence is used"
    );
    // The slow writer holds the key's lock: it wins, and the fast one is refused after it.
    assert_eq!(
        outcome(&attestation, CheckName::CreateSlowWriter),
        Outcome::Passed
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_version_is_deleted_in_a_bucket_that_never_had_any() {
    let server = S3Server::builder().quirks(Quirks::SEAWEEDFS).start();
    let attestation = attested(&server).await;
    assert_eq!(attestation.mode, Mode::NeverEnabled);
    let entries = server.log().entries();
    let deletes = entries.iter().filter(|entry| entry.seen.op == Op::Delete);
    assert!(deletes.clone().count() > 0);
    for entry in deletes {
        assert!(!entry.seen.conditions.contains(&"version-id"), "{entry:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_delete_carries_both_fences() {
    let server = S3Server::builder()
        .versioning(BucketVersioning::Enabled)
        .start();
    attested(&server).await;
    let entries = server.log().entries();
    let deletes = entries.iter().filter(|entry| entry.seen.op == Op::Delete);
    let (mut versions, mut etags) = (0, 0);
    for entry in deletes {
        let conditions = &entry.seen.conditions;
        let by = ["version-id", "if-match"].map(|name| conditions.contains(&name));
        assert_ne!(by, [true, true], "{entry:?}");
        versions += usize::from(by[0]);
        etags += usize::from(by[1]);
    }
    assert!(versions > 0 && etags > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_requests_is_bounded() {
    let server = S3Server::builder()
        .versioning(BucketVersioning::Enabled)
        .start();
    attested(&server).await;
    let requests = server.log().entries().len();
    let options = options();
    let bound = options.rounds * (options.contenders + 2) + 350;
    assert!(requests <= bound, "{requests} > {bound}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_probe_is_framed_and_each_has_its_length_and_checksum() {
    let server = S3Server::start();
    attested(&server).await;
    let entries = server.log().entries();
    let puts = entries.iter().filter(|entry| entry.seen.op == Op::Put);
    for entry in puts {
        let headers = &entry.seen.headers;
        assert!(headers.contains_key("content-length"), "{headers:?}");
        assert!(headers.contains_key("x-amz-checksum-crc32"), "{headers:?}");
        assert!(!headers.contains_key("content-encoding"), "{headers:?}");
        assert!(!headers.contains_key("x-amz-trailer"), "{headers:?}");
    }
}

/// A refusal that is an answer, and one that is none.
#[tokio::test]
async fn what_a_bucket_does_not_have_is_told_from_what_it_does_not_say() {
    let facts = async |status, code| {
        let server = S3Server::start();
        let refuse = Action::Refuse { status, code };
        server.fault(Fault::on(Op::Other, refuse).always());
        server.store().bucket_facts().await
    };
    let unknown = BucketFacts::default();
    assert_eq!(facts(403, "AccessDenied").await, unknown);
    assert_eq!(facts(501, "NotImplemented").await, unknown);
    let off = facts(404, "ServerSideEncryptionConfigurationNotFoundError").await;
    assert_eq!(off.encryption, Some(Encryption::Off));
    assert_eq!(off.object_lock, None);
    let open = facts(404, "NoSuchPublicAccessBlockConfiguration").await;
    assert_eq!(open.public_access, Some(PublicAccess::NotBlocked));
    let unlocked = facts(404, "ObjectLockConfigurationNotFoundError").await;
    assert_eq!(unlocked.object_lock, Some(false));
    let ruleless = facts(404, "NoSuchLifecycleConfiguration").await;
    assert_eq!(ruleless.aborts_stale_uploads, Some(false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_moment_are_no_faults_of_the_store() {
    for action in [
        Action::Refuse {
            status: 409,
            code: "ConditionalRequestConflict",
        },
        Action::Refuse {
            status: 503,
            code: "SlowDown",
        },
        Action::LoseReply,
    ] {
        let server = S3Server::start();
        for skip in [1, 20, 60, 90, 120] {
            server.fault(Fault::on(Op::Put, action.clone()).after(skip));
        }
        let attestation = attested(&server).await;
        assert!(attestation.is_writable(), "{action:?}: {attestation:#?}");
        assert_nothing_is_left(&server, "faults");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn principals_that_may_not_list_are_told_which_permission_is_missing() {
    let server = S3Server::start();
    server.hide_missing(true);
    let attestation = attested(&server).await;
    assert_eq!(attestation.exit_code(), 3, "{attestation:#?}");
    let named = attestation.findings.iter();
    let mut named = named.filter(|f| f.code == FindingCode::PermissionDenied);
    assert_eq!(named.next().unwrap().evidence, "s3:ListBucket");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_clock_is_ten_minutes_off_is_restricted() {
    let off = jiff::SignedDuration::from_mins(10);
    let clock = Arc::new(ManualClock::new(SystemClock.now() + off));
    let server = S3Server::builder().clock(clock).start();
    let attestation = attested(&server).await;
    assert_eq!(attestation.exit_code(), 3, "{:#?}", attestation.findings);
    assert!(has(&attestation, FindingCode::ClockDiffers));
}

/// The client signs by the date that the server shows, which this one's signature check does not share:
/// credentials are refused in the middle, which is no missing permission.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signatures_that_are_refused_for_their_date_name_the_clock() {
    let off = jiff::SignedDuration::from_hours(1);
    let clock = Arc::new(ManualClock::new(SystemClock.now() + off));
    let server = S3Server::builder().clock(clock).start();
    let attestation = attested(&server).await;
    assert_eq!(attestation.exit_code(), 1);
    says(&attestation, "NTP");
}

async fn unreachable(store: impl ObjectStore + 'static) -> Attestation {
    let began = Instant::now();
    let target = target(vec![Arc::new(store)]);
    let options = AttestOptions {
        // The silent one would take all of the usual deadline.
        deadline: Duration::from_secs(4),
        ..options()
    };
    let attestation = attest(&target, &SystemClock, &SystemIds::default(), options).await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(attestation.exit_code(), 1, "{attestation:#?}");
    attestation
}

fn says(attestation: &Attestation, setting: &str) {
    let finding = &attestation.findings[0];
    assert_eq!(finding.code, FindingCode::Unreachable);
    let text = format!("{} {}", finding.meaning, finding.what_to_do);
    assert!(text.contains(setting), "{text}: {}", finding.evidence);
}

/// What a first request may meet, and the setting that the sentence must name.
#[rstest]
#[case::key(Action::Refuse { status: 403, code: "InvalidAccessKeyId" }, "AWS_ACCESS_KEY_ID")]
#[case::secret(Action::Refuse { status: 403, code: "SignatureDoesNotMatch" }, "AWS_SECRET_ACCESS_KEY")]
#[case::expired(Action::Refuse { status: 400, code: "ExpiredToken" }, "AWS_SESSION_TOKEN")]
#[case::skewed(Action::Refuse { status: 403, code: "RequestTimeTooSkewed" }, "NTP")]
#[case::bucket(Action::Refuse { status: 404, code: "NoSuchBucket" }, "`store.url`")]
#[case::region(Action::Refuse { status: 301, code: "PermanentRedirect" }, "`store.region`")]
#[case::region_in_signature(Action::Refuse { status: 400, code: "AuthorizationHeaderMalformed" }, "`store.region`")]
#[case::page(Action::WebPage { status: 200 }, "`store.endpoint`")]
#[case::login_page(Action::WebPage { status: 302 }, "`store.endpoint`")]
#[case::gateway(Action::WebPage { status: 502 }, "`store.endpoint`")]
#[case::broken(Action::LoseRequest, "`store.endpoint`")]
#[case::silence(Action::Hang, "`store.endpoint`")]
#[tokio::test]
async fn each_bad_first_answer_ends_in_a_sentence_with_its_setting(
    #[case] action: Action,
    #[case] setting: &str,
) {
    let server = S3Server::start();
    server.fault(Fault::on_any(action).always());
    says(&unreachable(server.store()).await, setting);
}

#[tokio::test]
async fn wrong_credentials_are_told_by_the_server_itself() {
    let server = S3Server::start();
    let endpoint = server.listen().await;
    let settings = S3Settings {
        endpoint: Some(endpoint.clone()),
        ..S3Server::settings()
    };
    for (access_key, secret_key, setting) in [
        (ACCESS_KEY, "another-secret", "AWS_SECRET_ACCESS_KEY"),
        ("UNKNOWNKEY", SECRET_KEY, "AWS_ACCESS_KEY_ID"),
    ] {
        let credentials = Credentials::new(access_key, secret_key, None, None, "test");
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(credentials);
        let config = settings.configure(config, Some(&endpoint)).build();
        let client = Client::from_conf(config);
        let store = S3Store::with_client(client, &settings, Some(&endpoint));
        says(&unreachable(store).await, setting);
    }
}

#[tokio::test]
async fn a_missing_bucket_is_told_by_the_server_itself() {
    let server = S3Server::start();
    let settings = S3Settings {
        bucket: "another".into(),
        ..S3Server::settings()
    };
    let attestation = unreachable(server.store_with(&settings)).await;
    let meanings = attestation.findings.iter().map(|f| f.meaning.as_str());
    assert_eq!(meanings.collect::<Vec<_>>(), ["the bucket does not exist"]);
}

#[tokio::test]
async fn an_endpoint_where_nobody_listens_is_told_as_such() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let settings = S3Settings {
        endpoint: Some(endpoint),
        ..S3Server::settings()
    };
    let store = S3Server::start().store_over_socket(&settings);
    says(&unreachable(store).await, "whether the server runs");
}

#[tokio::test]
async fn something_that_speaks_no_http_is_told_as_such() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let ssh = async {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n").await;
            let _ = socket.read(&mut [0; 1024]).await;
        }
    };
    let settings = S3Settings {
        endpoint: Some(endpoint),
        ..S3Server::settings()
    };
    let store = S3Server::start().store_over_socket(&settings);
    let attestation = tokio::select! {
        attestation = unreachable(store) => attestation,
        () = ssh => unreachable!("the listener outlives the test"),
    };
    says(&attestation, "speaks no S3");
}

#[tokio::test]
async fn a_host_name_that_does_not_exist_is_told_as_such() {
    let settings = S3Settings {
        endpoint: Some("http://no-such-host.invalid:9000".into()),
        ..S3Server::settings()
    };
    let store = S3Server::start().store_over_socket(&settings);
    let key = Key::parse("k").unwrap();
    let error = store
        .put(&key, "x".into(), PutMode::Overwrite)
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert_eq!(diagnose(&error).cause, Cause::HostName, "{error}");
}
