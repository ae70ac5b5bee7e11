//! Many processes append to one journal at once, over a directory and over S3: no record is lost, none
//! is there twice, the chain verifies, and every receipt that was handed out is in it.
//!
//! The processes are this test program itself, asked for [`worker`] alone; what they are to do stands in
//! their environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use futures_util::future::join_all;
use rstest::rstest;
use spillbox::clock::SystemClock;
use spillbox::digest::Sha256Digest;
use spillbox::ids::{ArtifactId, SystemIds, Tenant};
use spillbox::lease::entry::Entry;
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journal::Receipt;
use spillbox::lease::record::Record;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::local::LocalStore;
use spillbox::store::register::read_register;
use spillbox::store::s3::{S3Settings, S3Store};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::support::leases::{journals, session};
use crate::support::s3_server::{BUCKET, Quirks, S3Server};

const PROCESSES: u64 = 6;
const APPENDS: u64 = 200;

fn artifact(process: u64, n: u64) -> ArtifactId {
    ArtifactId::new(process * 1_000_000 + n, [3; 10])
}

/// Where the processes meet.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Directory(String),
    Endpoint(String),
    /// A real server, below a prefix; credentials are in the environment.
    Bucket {
        endpoint: String,
        bucket: String,
        prefix: String,
    },
}

impl Place {
    async fn open(&self) -> SharedStore {
        match self {
            Self::Directory(path) => {
                let opened =
                    LocalStore::open(Path::new(path), SystemClock::shared(), SystemIds::shared());
                Arc::new(opened.unwrap())
            }
            Self::Endpoint(endpoint) => {
                let settings = S3Settings {
                    bucket: BUCKET.to_owned(),
                    endpoint: Some(endpoint.clone()),
                    ..S3Settings::default()
                };
                Arc::new(S3Server::start().store_over_socket(&settings))
            }
            Self::Bucket {
                endpoint, bucket, ..
            } => {
                let settings = S3Settings {
                    bucket: bucket.clone(),
                    endpoint: Some(endpoint.clone()),
                    ..S3Settings::default()
                };
                Arc::new(S3Store::connect(&settings).await.unwrap())
            }
        }
    }

    fn keys(&self) -> KeySpace {
        let prefix = match self {
            Self::Bucket { prefix, .. } => prefix,
            Self::Directory(_) | Self::Endpoint(_) => "",
        };
        KeySpace::new(prefix).unwrap()
    }

    fn variables(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Directory(path) => vec![("SPILLBOX_RACE_DIRECTORY", path)],
            Self::Endpoint(endpoint) => vec![("SPILLBOX_RACE_ENDPOINT", endpoint)],
            Self::Bucket {
                endpoint,
                bucket,
                prefix,
            } => vec![
                ("SPILLBOX_RACE_ENDPOINT", endpoint),
                ("SPILLBOX_RACE_BUCKET", bucket),
                ("SPILLBOX_RACE_PREFIX", prefix),
            ],
        }
    }

    fn of_environment() -> Option<Self> {
        let read = |name: &str| std::env::var(name).ok();
        if let Some(path) = read("SPILLBOX_RACE_DIRECTORY") {
            return Some(Self::Directory(path));
        }
        let endpoint = read("SPILLBOX_RACE_ENDPOINT")?;
        Some(match read("SPILLBOX_RACE_BUCKET") {
            None => Self::Endpoint(endpoint),
            Some(bucket) => Self::Bucket {
                endpoint,
                bucket,
                prefix: read("SPILLBOX_RACE_PREFIX").unwrap(),
            },
        })
    }
}

/// One process of a race: appends one entry after the other, four at a time, and prints each receipt.
/// Without the environment of a race there is nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn worker() {
    let Some(place) = Place::of_environment() else {
        return;
    };
    let process: u64 = std::env::var("SPILLBOX_RACE_PROCESS")
        .unwrap()
        .parse()
        .unwrap();
    let journals = journals(&place.open().await, &place.keys());
    let callers = (0..4).map(|caller| {
        let journals = journals.clone();
        async move {
            for n in (caller..APPENDS).step_by(4) {
                let operation = Operation::Touch {
                    artifact_id: artifact(process, n),
                };
                let (tenant, session) = (Tenant::default(), session());
                let answer = journals.submit(&tenant, &session, operation).await.unwrap();
                let receipt = serde_json::to_string(&answer.receipt.unwrap()).unwrap();
                println!("\nreceipt {n} {receipt}");
            }
        }
    });
    join_all(callers).await;
    journals.drain().await;
}

/// Runs the processes and answers their receipts by artifact.
pub(crate) async fn race(place: &Place, processes: u64) -> BTreeMap<ArtifactId, Receipt> {
    let processes = (0..processes).map(|process| async move {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lease_race::worker", "--nocapture"])
            .envs(place.variables())
            .env("SPILLBOX_RACE_PROCESS", process.to_string())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut output).await.unwrap();
        assert!(child.wait().await.unwrap().success(), "{output}");
        let receipts = output.lines().filter_map(|line| {
            let (n, receipt) = line.strip_prefix("receipt ")?.split_once(' ')?;
            let artifact_id = artifact(process, n.parse().ok()?);
            Some((artifact_id, serde_json::from_str(receipt).ok()?))
        });
        receipts.collect::<Vec<(ArtifactId, Receipt)>>()
    });
    join_all(processes).await.into_iter().flatten().collect()
}

/// Reads every record from 0 on, without checkpoints, and compares it with what was handed out.
pub(crate) async fn verify(
    place: &Place,
    processes: u64,
    receipts: &BTreeMap<ArtifactId, Receipt>,
) {
    let store = place.open().await;
    let journals = journals(&store, &place.keys());
    let (tenant, session) = (Tenant::default(), session());
    let site = journals.site(&tenant, &session);
    let mut chain = site.genesis();
    let mut entries = 0;
    let mut seen: BTreeMap<ArtifactId, Receipt> = BTreeMap::new();
    let mut writers = BTreeSet::new();
    loop {
        let seq = chain.next_seq();
        let key = site.record_key(seq);
        let Some(found) = read_register(&*store, &key).await.unwrap() else {
            break;
        };
        let record: Record = chain.push(&found.bytes).unwrap();
        writers.insert(record.writer);
        for entry in &record.entries {
            if let Entry::Touched { artifact_id } = entry {
                entries += 1;
                let receipt = Receipt {
                    session: session.clone(),
                    seq,
                    sha256: Sha256Digest::of(&found.bytes),
                };
                seen.insert(*artifact_id, receipt);
            }
        }
    }
    assert_eq!(entries, processes * APPENDS, "none twice");
    assert_eq!(seen.len() as u64, processes * APPENDS, "none lost");
    assert_eq!(&seen, receipts, "every receipt is on the chain");
    assert_eq!(writers.len() as u64, processes);
    assert!(!chain.state().is_suspect());
    let opened = journals
        .open_double_rooted(&tenant, &session)
        .await
        .unwrap();
    assert!(!opened.is_suspect);
    assert_eq!(opened.opened.chain.head(), chain.head());
    println!("{entries} entries in {} records", chain.next_seq());
}

#[tokio::test(flavor = "multi_thread")]
async fn six_processes_race_on_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::Directory(directory.path().to_str().unwrap().to_owned());
    let receipts = race(&place, PROCESSES).await;
    verify(&place, PROCESSES, &receipts).await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn six_processes_race_on_s3(#[values(Quirks::AWS, Quirks::MINIO)] quirks: Quirks) {
    let server = S3Server::builder().quirks(quirks).start();
    let place = Place::Endpoint(server.listen().await);
    let receipts = race(&place, PROCESSES).await;
    verify(&place, PROCESSES, &receipts).await;
}
