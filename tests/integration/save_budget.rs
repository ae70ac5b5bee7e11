//! Request budgets of saves and reads, counted exactly.

use std::collections::BTreeMap;
use std::sync::Arc;

use rstest::rstest;
use spillbox::digest::Sha256Digest;
use spillbox::ids::Tenant;
use spillbox::limits::PART_BYTES;
use spillbox::store::SharedStore;

use crate::support::library::{body, log, read_all, replica, request};
use crate::support::s3_server::{BucketVersioning, Quirks, S3Server};

fn counts(server: &S3Server) -> BTreeMap<String, usize> {
    server.log().counts()
}

fn expected(labels: &[(&str, usize)]) -> BTreeMap<String, usize> {
    labels
        .iter()
        .map(|(label, n)| ((*label).to_owned(), *n))
        .collect()
}

/// The budgets are the product's: they hold on every server, versioned or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    Aws,
    AwsVersioned,
    Minio,
    MinioVersioned,
}

impl Bucket {
    fn is_versioned(self) -> bool {
        matches!(self, Self::AwsVersioned | Self::MinioVersioned)
    }

    fn open(self) -> (S3Server, SharedStore) {
        let is_minio = matches!(self, Self::Minio | Self::MinioVersioned);
        let versioning = if self.is_versioned() {
            BucketVersioning::Enabled
        } else {
            BucketVersioning::Never
        };
        let server = S3Server::builder()
            .quirks(if is_minio { Quirks::MINIO } else { Quirks::AWS })
            .versioning(versioning)
            .start();
        let store: SharedStore = Arc::new(server.store());
        (server, store)
    }
}

#[rstest]
#[tokio::test]
async fn a_first_save_is_two_puts_and_one_with_a_call_id_three(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    let (server, store) = bucket.open();
    let library = replica(&store);
    for (call, labels) in [
        (None, vec![("put:s", 1), ("put:b", 1), ("put:a", 1)]),
        (None, vec![("put:b", 1), ("put:a", 1)]),
        (Some("c"), vec![("put:c", 1), ("put:b", 1), ("put:a", 1)]),
    ] {
        server.log().clear();
        library
            .save(request("s", call), body(&log(PART_BYTES)))
            .await
            .unwrap();
        assert_eq!(counts(&server), expected(&labels));
        let session_trips = usize::from(labels[0].0 == "put:s");
        assert_eq!(server.log().round_trips(), 2 + session_trips);
    }
}

#[rstest]
#[tokio::test]
async fn a_repeat_puts_no_body_once_the_replica_knows_the_record(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    for size in [1_000, PART_BYTES + 1] {
        let (server, store) = bucket.open();
        let library = replica(&store);
        let bytes = log(size);
        let mut save = request("s", Some("c"));
        save.expected_digest = Some(Sha256Digest::of(&bytes));
        library.save(save.clone(), body(&bytes)).await.unwrap();
        server.log().clear();
        let again = library.save(save, body(&bytes)).await.unwrap();
        assert!(!again.is_new);
        assert_eq!(counts(&server), expected(&[("get:a", 1)]));
    }
    // Known in full, no stated digest: the same.
    let (server, store) = bucket.open();
    let library = replica(&store);
    library
        .save(request("s", Some("c")), body(&log(1_000)))
        .await
        .unwrap();
    server.log().clear();
    library
        .save(request("s", Some("c")), body(&log(1_000)))
        .await
        .unwrap();
    assert_eq!(counts(&server), expected(&[("get:a", 1)]));
}

#[rstest]
#[tokio::test]
async fn a_repeat_with_a_wrong_digest_is_refused_although_the_record_is_known(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    let (_server, store) = bucket.open();
    let library = replica(&store);
    let bytes = log(1_000);
    let mut save = request("s", Some("c"));
    save.expected_digest = Some(Sha256Digest::of(&bytes));
    library.save(save.clone(), body(&bytes)).await.unwrap();
    let error = library.save(save, body(&log(1_001))).await.unwrap_err();
    assert_eq!(error.code(), spillbox::error::ErrorCode::DigestMismatch);
}

#[rstest]
#[tokio::test]
async fn a_replica_that_meets_the_record_takes_its_own_body_back(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    let (server, store) = bucket.open();
    replica(&store)
        .save(request("s", Some("c")), body(&log(1_000)))
        .await
        .unwrap();
    server.log().clear();
    replica(&store)
        .save(request("s", Some("c")), body(&log(1_000)))
        .await
        .unwrap();
    let mut labels = vec![
        ("put:s", 1),
        ("get:s", 1),
        ("put:c", 1),
        ("get:c", 1),
        ("put:b", 1),
        ("get:a", 1),
        ("versioning:-", 1),
        ("delete:b", 1),
    ];
    if bucket.is_versioned() {
        labels.push(("versions:b", 1));
    }
    assert_eq!(counts(&server), expected(&labels));
    let bodies = server
        .keys()
        .iter()
        .filter(|key| key.contains("/b/"))
        .count();
    assert_eq!(bodies, 1);
}

#[rstest]
#[tokio::test]
async fn a_fork_looks_at_its_parents_in_one_round_trip_of_gets(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    let (server, store) = bucket.open();
    let library = replica(&store);
    library
        .save(request("p", None), body(&log(10)))
        .await
        .unwrap();
    let mut fork = request("c", Some("call"));
    fork.parent = Some("p".parse().unwrap());
    library.save(fork.clone(), body(&log(10))).await.unwrap();
    server.log().clear();
    library.save(fork, body(&log(20))).await.unwrap();
    let labels = [("get:c", 2), ("put:c", 1), ("put:b", 1), ("put:a", 1)];
    assert_eq!(counts(&server), expected(&labels));
    assert_eq!(server.log().round_trips(), 3);
}

#[rstest]
#[tokio::test]
async fn a_read_with_a_cached_manifest_is_one_round_trip(
    #[values(
        Bucket::Aws,
        Bucket::AwsVersioned,
        Bucket::Minio,
        Bucket::MinioVersioned
    )]
    bucket: Bucket,
) {
    let (server, store) = bucket.open();
    let library = replica(&store);
    let saved = library
        .save(request("s", None), body(&log(3_000_000)))
        .await
        .unwrap();
    server.log().clear();
    let artifact = saved.manifest.head.artifact_ref();
    let mut read = library
        .open(&Tenant::default(), &artifact, |_| 1_000_000..1_000_020)
        .await
        .unwrap();
    assert_eq!(read.next().await.unwrap().unwrap().len(), 20);
    assert_eq!(counts(&server), expected(&[("get:a", 1), ("get:b", 1)]));
    assert_eq!(server.log().round_trips(), 1);
    let entries = server.log().entries();
    let conditions = |class: &str| {
        let entry = entries
            .iter()
            .find(|entry| entry.seen.class == class)
            .unwrap();
        (entry.seen.conditions.clone(), entry.status)
    };
    assert_eq!(conditions("a"), (vec!["if-none-match"], Some(304)));
    assert_eq!(conditions("b"), (vec!["range"], Some(206)));

    let cold = replica(&store);
    server.log().clear();
    read_all(&cold, &saved).await.unwrap();
    assert_eq!(counts(&server), expected(&[("get:a", 1), ("get:b", 1)]));
}
