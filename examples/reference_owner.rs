//! A memory system that holds references to artifacts and keeps the contract of `docs/OWNERS.md`: one
//! table, one row for each transaction, every decision one statement.
//!
//! ```text
//! cargo run --example reference_owner -- --listen 127.0.0.1:9090 &
//! spillbox owner check http://127.0.0.1:9090
//! ```
//!
//! `--broken RULE` breaks one rule on purpose, for those who want to see the check find it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use clap::{Parser, ValueEnum};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;
use serde_json::json;

/// The rule that an owner breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Broken {
    /// Says 404 of a transaction that it never heard of.
    NotFound,
    /// Takes ids for the same that are not.
    FoldsNames,
    /// Seals, and its generation stays.
    GenerationStandsStill,
    /// Refuses a second seal.
    SealsOnce,
    /// Does not look at If-Match.
    AnyGeneration,
    /// A second seal at the same time undoes the first.
    SealsToggle,
    /// Shows an old copy.
    OldCopy,
    /// A second publication replaces the first.
    Replaces,
    /// Seals what is published.
    SealsPublished,
    /// Publishes what is sealed.
    LatePublication,
    /// Looks, thinks, and then writes: two statements, with time between them.
    TwoSteps,
    /// Publishes again what was removed.
    PublishesRemoved,
}

/// A reference owner.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:9090")]
    listen: SocketAddr,
    /// The database file; in memory when absent
    #[arg(long)]
    database: Option<PathBuf>,
    /// A rule to break
    #[arg(long)]
    broken: Option<Broken>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let connection = match &arguments.database {
        Some(file) => Connection::open(file)?,
        None => Connection::open_in_memory()?,
    };
    let listener = tokio::net::TcpListener::bind(arguments.listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let owner = Owner::new(connection, arguments.broken)?;
    axum::serve(listener, router(owner)).await?;
    Ok(())
}

/// The memory's references. SQLite takes one writer at a time, so that a statement decides.
#[derive(Debug, Clone)]
pub struct Owner {
    rows: Arc<Mutex<Connection>>,
    broken: Option<Broken>,
}

/// What one transaction came to.
#[derive(Debug, Clone)]
struct Row {
    generation: i64,
    state: String,
    source_id: Option<String>,
    sha256: Option<String>,
}

/// What a memory refers to.
#[derive(Debug, Deserialize)]
struct Reference {
    source_id: String,
    sha256: String,
}

/// The routes of the contract, and the two that only a test endpoint has: an owner publishes and removes
/// in its own way.
pub fn router(owner: Owner) -> Router {
    let transaction = get(look).put(publish).delete(remove);
    Router::new()
        .route("/v1/artifact-references/{transaction}", transaction)
        .route("/v1/artifact-references/{transaction}/seal", put(seal))
        .with_state(owner)
}

async fn look(State(owner): State<Owner>, Path(name): Path<String>) -> Response {
    let row = owner.row(&name);
    match row {
        Ok(None) if owner.is(Broken::NotFound) => StatusCode::NOT_FOUND.into_response(),
        Ok(_) if owner.is(Broken::OldCopy) => answer(&name, StatusCode::OK, &absent()),
        Ok(row) => answer(&name, StatusCode::OK, &row.unwrap_or_else(absent)),
        Err(error) => failed(&error),
    }
}

async fn seal(
    State(owner): State<Owner>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let tag = headers.get(IF_MATCH).and_then(|tag| tag.to_str().ok());
    let generation = tag.and_then(|tag| tag.trim_matches('"').parse().ok());
    match owner.seal(&name, generation).await {
        Ok((status, row)) => answer(&name, status, &row),
        Err(error) => failed(&error),
    }
}

async fn publish(
    State(owner): State<Owner>,
    Path(name): Path<String>,
    Json(reference): Json<Reference>,
) -> Response {
    match owner.publish(&name, &reference).await {
        Ok((status, row)) => answer(&name, status, &row),
        Err(error) => failed(&error),
    }
}

async fn remove(State(owner): State<Owner>, Path(name): Path<String>) -> Response {
    match owner.remove(&name) {
        Ok((status, row)) => answer(&name, status, &row),
        Err(error) => failed(&error),
    }
}

/// The document, and the generation as its ETag.
fn answer(name: &str, status: StatusCode, row: &Row) -> Response {
    let document = json!({
        "transaction_id": name,
        "state": row.state,
        "source_id": row.source_id,
        "sha256": row.sha256,
    });
    let tag = format!("\"{}\"", row.generation);
    (status, [(ETAG, tag)], Json(document)).into_response()
}

/// The caller is told nothing: what it does not know protects.
fn failed(error: &rusqlite::Error) -> Response {
    eprintln!("error: {error}");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// A transaction without a row.
fn absent() -> Row {
    Row {
        generation: 0,
        state: "absent".to_owned(),
        source_id: None,
        sha256: None,
    }
}

type Decided = rusqlite::Result<(StatusCode, Row)>;

impl Owner {
    /// Opens the table.
    pub fn new(connection: Connection, broken: Option<Broken>) -> rusqlite::Result<Self> {
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS artifact_reference (
                 transaction_id TEXT PRIMARY KEY,
                 generation INTEGER NOT NULL,
                 state TEXT NOT NULL CHECK (state IN ('published', 'sealed_absent', 'removed')),
                 source_id TEXT,
                 sha256 TEXT
             ) STRICT",
        )?;
        let rows = Arc::new(Mutex::new(connection));
        Ok(Self { rows, broken })
    }

    fn is(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let rows = self
            .rows
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        work(&rows)
    }

    fn key(&self, name: &str) -> String {
        if self.is(Broken::FoldsNames) {
            name.to_lowercase()
        } else {
            name.to_owned()
        }
    }

    fn row(&self, name: &str) -> rusqlite::Result<Option<Row>> {
        let query = "SELECT generation, state, source_id, sha256 FROM artifact_reference WHERE transaction_id = ?1";
        self.with(|rows| {
            let row = rows.query_row(query, [self.key(name)], |row| {
                Ok(Row {
                    generation: row.get(0)?,
                    state: row.get(1)?,
                    source_id: row.get(2)?,
                    sha256: row.get(3)?,
                })
            });
            row.optional()
        })
    }

    /// A transaction is decided once: the first row stays, whatever it says. This one statement is the
    /// whole race between a publication and a seal.
    fn decide(
        &self,
        name: &str,
        state: &str,
        reference: Option<&Reference>,
    ) -> rusqlite::Result<bool> {
        let source_id = reference.map(|reference| &reference.source_id);
        let sha256 = reference.map(|reference| &reference.sha256);
        let generation =
            i64::from(!(reference.is_none() && self.is(Broken::GenerationStandsStill)));
        let insert = if self.is(Broken::TwoSteps) {
            "INSERT OR REPLACE INTO artifact_reference VALUES (?1, ?2, ?3, ?4, ?5)"
        } else {
            "INSERT INTO artifact_reference VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING"
        };
        let values = params![self.key(name), generation, state, source_id, sha256];
        let changed = self.with(|rows| rows.execute(insert, values))?;
        Ok(changed == 1)
    }

    async fn seal(&self, name: &str, generation: Option<i64>) -> Decided {
        let row = self.row(name)?;
        if let Some(row) = &row
            && row.state == "sealed_absent"
            && self.is(Broken::SealsToggle)
        {
            self.with(|rows| {
                rows.execute(
                    "DELETE FROM artifact_reference WHERE transaction_id = ?1",
                    [name],
                )
            })?;
            return Ok((StatusCode::OK, row.clone()));
        }
        if row.is_none() {
            self.think().await;
            let is_at = generation == Some(0) || self.is(Broken::AnyGeneration);
            if !is_at {
                return Ok((StatusCode::PRECONDITION_FAILED, absent()));
            }
            if self.decide(name, "sealed_absent", None)? {
                let row = self.row(name)?.unwrap_or_else(absent);
                return Ok((StatusCode::CREATED, row));
            }
        }
        let row = self.row(name)?.unwrap_or_else(absent);
        Ok(match row.state.as_str() {
            "sealed_absent" if self.is(Broken::SealsOnce) => (StatusCode::CONFLICT, row),
            // Sealed is sealed, whoever asks, and at whatever generation they saw it absent.
            "sealed_absent" => (StatusCode::OK, row),
            "published" if self.is(Broken::SealsPublished) => {
                if generation != Some(row.generation) {
                    return Ok((StatusCode::PRECONDITION_FAILED, row));
                }
                self.change(name, "sealed_absent")?;
                (StatusCode::OK, self.row(name)?.unwrap_or_else(absent))
            }
            "published" if self.is(Broken::AnyGeneration) && generation == Some(0) => {
                self.change(name, "sealed_absent")?;
                (StatusCode::OK, self.row(name)?.unwrap_or_else(absent))
            }
            _ => (StatusCode::CONFLICT, row),
        })
    }

    async fn publish(&self, name: &str, reference: &Reference) -> Decided {
        let row = self.row(name)?;
        if row.is_none() {
            self.think().await;
            if self.decide(name, "published", Some(reference))? {
                return Ok((StatusCode::CREATED, self.row(name)?.unwrap_or_else(absent)));
            }
        }
        let row = self.row(name)?.unwrap_or_else(absent);
        let is_same = row.source_id.as_deref() == Some(&*reference.source_id)
            && row.sha256.as_deref() == Some(&*reference.sha256);
        let is_taken = match row.state.as_str() {
            "published" => is_same || self.is(Broken::Replaces),
            "sealed_absent" => self.is(Broken::LatePublication),
            _ => self.is(Broken::PublishesRemoved),
        };
        if !is_taken {
            return Ok((StatusCode::CONFLICT, row));
        }
        if !(is_same && row.state == "published") {
            self.with(|rows| {
                rows.execute(
                    "UPDATE artifact_reference SET state = 'published', generation = generation + 1,
                     source_id = ?2, sha256 = ?3 WHERE transaction_id = ?1",
                    params![name, reference.source_id, reference.sha256],
                )
            })?;
        }
        Ok((StatusCode::OK, self.row(name)?.unwrap_or(row)))
    }

    /// To be durable before the memory calls `release`.
    fn remove(&self, name: &str) -> Decided {
        let row = self.row(name)?.unwrap_or_else(absent);
        match row.state.as_str() {
            "published" => self.change(name, "removed")?,
            "removed" => {}
            _ => return Ok((StatusCode::CONFLICT, row)),
        }
        Ok((StatusCode::OK, self.row(name)?.unwrap_or(row)))
    }

    /// Leads a published transaction on.
    fn change(&self, name: &str, state: &str) -> rusqlite::Result<()> {
        let update = "UPDATE artifact_reference SET state = ?2, generation = generation + 1
                      WHERE transaction_id = ?1 AND state = 'published'";
        self.with(|rows| rows.execute(update, [name, state]))?;
        Ok(())
    }

    async fn think(&self) {
        if self.is(Broken::TwoSteps) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
