//! Appends to one journal: how many per second, and how long each waits, by the number of replicas that
//! write it and of callers on each of them.
//!
//! A replica is what a `spillbox serve` process keeps of a journal: its own writer, queue and view, over
//! its own connections. Callers append one entry after the other and wait for each receipt, so that
//! nothing is measured but the journal: no HTTP, no manifest. Every row has a journal of its own.
//!
//! `cargo bench --bench journal_appends` runs on the S3 server of the tests, in this process, which takes
//! next to no time for a write; with the variables that `scripts/stores.sh up NAME` prints it runs on that
//! server (`scripts/bench.sh` does both). Raw samples go to `target/bench/journal-appends-STORE.jsonl`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use spillbox::clock::{Clock as _, SystemClock};
use spillbox::ids::{ArtifactId, SessionId, SystemIds, Tenant};
use spillbox::lease::evaluate::Operation;
use spillbox::lease::journals::Journals;
use spillbox::store::SharedStore;
use spillbox::store::keys::KeySpace;
use spillbox::store::s3::{S3Settings, S3Store};

#[path = "../tests/support"]
#[allow(
    unused_imports,
    reason = "shared support: no user of it uses all of it"
)]
mod support {
    pub(crate) mod s3_server;
}

use self::support::s3_server::{BUCKET, S3Server};

/// How long a row is run before it is measured, and then measured.
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURED: Duration = Duration::from_secs(5);

const REPLICAS: [usize; 2] = [1, 2];
const CALLERS: [usize; 3] = [1, 4, 16];

/// The store that is measured.
struct Place {
    name: String,
    endpoint: String,
    bucket: String,
    /// Lives as long as the place; nothing where the store is somebody else's.
    in_process: Option<S3Server>,
}

impl Place {
    /// The endpoint that the environment names, else a server in this process.
    async fn find() -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(endpoint) = variable("SPILLBOX_TEST_ENDPOINT") else {
            let server = S3Server::start();
            return Ok(Self {
                name: "in-process".to_owned(),
                endpoint: server.listen().await,
                bucket: BUCKET.to_owned(),
                in_process: Some(server),
            });
        };
        Ok(Self {
            name: variable("SPILLBOX_TEST_STORE").unwrap_or_else(|| "store".to_owned()),
            endpoint,
            bucket: variable("SPILLBOX_TEST_BUCKET").context("SPILLBOX_TEST_BUCKET is not set")?,
            in_process: None,
        })
    }

    /// A replica with connections and caches of its own.
    async fn replica(&self) -> anyhow::Result<Journals> {
        let settings = S3Settings {
            bucket: self.bucket.clone(),
            endpoint: Some(self.endpoint.clone()),
            region: Some("us-east-1".to_owned()),
            ..S3Settings::default()
        };
        let store: SharedStore = match &self.in_process {
            Some(server) => Arc::new(server.store_over_socket(&settings)),
            None => Arc::new(S3Store::connect(&settings).await?),
        };
        let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
        Ok(Journals::new(store, KeySpace::new("bench")?, clock, ids))
    }
}

/// One row of the table.
struct Row {
    replicas: usize,
    callers: usize,
    /// Records that were written while it was measured.
    records: u64,
    /// How long each append waited for its receipt, in no particular order.
    waits: Vec<Duration>,
    elapsed: Duration,
}

impl Row {
    async fn measure(place: &Place, replicas: usize, callers: usize) -> anyhow::Result<Self> {
        let fresh = SystemIds::shared().uuid(SystemClock.now());
        let session: SessionId = format!("journal-{fresh}").parse()?;
        let mut writers = Vec::new();
        for _ in 0..replicas {
            writers.push(place.replica().await?);
        }
        append_until(&writers, &session, callers, Instant::now() + WARM_UP).await?;
        let before = last_record(&writers, &session).await?;
        let began = Instant::now();
        let waits = append_until(&writers, &session, callers, began + MEASURED).await?;
        let elapsed = began.elapsed();
        let records = last_record(&writers, &session).await? - before;
        for writer in &writers {
            writer.drain().await;
        }
        Ok(Self {
            replicas,
            callers,
            records,
            waits,
            elapsed,
        })
    }

    /// The wait that `part` of the appends did not exceed.
    fn wait(&self, part: f64) -> Duration {
        let mut sorted = self.waits.clone();
        sorted.sort_unstable();
        let place = (part * sorted.len() as f64).ceil() as usize;
        let place = place.clamp(1, sorted.len().max(1)) - 1;
        sorted.get(place).copied().unwrap_or_default()
    }
}

/// Appends from every caller of every replica until the time is up; answers how long each append took.
async fn append_until(
    writers: &[Journals],
    session: &SessionId,
    callers: usize,
    end: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let mut tasks = tokio::task::JoinSet::new();
    for writer in writers {
        for _ in 0..callers {
            let (writer, session) = (writer.clone(), session.clone());
            tasks.spawn(async move {
                let mut waits = Vec::new();
                while Instant::now() < end {
                    let began = Instant::now();
                    let artifact_id = ArtifactId::new(1, [7; 10]);
                    let operation = Operation::Touch { artifact_id };
                    let tenant = Tenant::default();
                    writer.submit(&tenant, &session, operation).await?;
                    waits.push(began.elapsed());
                }
                anyhow::Ok(waits)
            });
        }
    }
    let mut waits = Vec::new();
    while let Some(of_caller) = tasks.join_next().await {
        waits.extend(of_caller??);
    }
    Ok(waits)
}

async fn last_record(writers: &[Journals], session: &SessionId) -> anyhow::Result<u64> {
    let writer = writers.first().context("at least one replica")?;
    let answer = writer
        .submit(&Tenant::default(), session, Operation::Read)
        .await?;
    Ok(answer.receipt.context("records were appended")?.seq)
}

/// The table in Markdown, times in milliseconds.
fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| replicas | callers on each | appends/s | p50 ms | p99 ms | entries per record | appends |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let appends = row.waits.len() as f64;
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.1} | {:.1} | {:.1} | {appends} |",
            row.replicas,
            row.callers,
            appends / row.elapsed.as_secs_f64(),
            row.wait(0.5).as_secs_f64() * 1e3,
            row.wait(0.99).as_secs_f64() * 1e3,
            appends / row.records as f64,
        );
    }
    text
}

/// One JSON object per row: every wait in microseconds.
fn samples(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let waits = row.waits.iter().map(Duration::as_micros);
        let sample = serde_json::json!({
            "replicas": row.replicas,
            "callers": row.callers,
            "records": row.records,
            "elapsed_us": row.elapsed.as_micros() as u64,
            "waits_us": waits.map(|wait| wait as u64).collect::<Vec<_>>(),
        });
        let _ = writeln!(text, "{sample}");
    }
    text
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let place = Place::find().await?;
        let mut rows = Vec::new();
        for replicas in REPLICAS {
            for callers in CALLERS {
                rows.push(Row::measure(&place, replicas, callers).await?);
            }
        }
        println!("store: {}", place.name);
        println!("{}", table(&rows));
        let raw = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/bench");
        std::fs::create_dir_all(&raw)?;
        let raw = raw.join(format!("journal-appends-{}.jsonl", place.name));
        std::fs::File::create(&raw)?.write_all(samples(&rows).as_bytes())?;
        println!("raw samples: {}", raw.display());
        Ok(())
    })
}
