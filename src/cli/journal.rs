//! `spillbox journal`: what an operator does with the journal of a session's leases.
//!
//! Exit status of `verify`: 0 ok; 3 `suspect` or `unknown_schema`, nothing is deleted on its word; 4 the
//! chain is broken, no lease either; 1 it could not be read, which says nothing about it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use axum::body::{Body, to_bytes};
use http::Request;
use serde_json::{Value, json};

use crate::artifact::escape::escape_field;
use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::SessionArgs;
use crate::cli::failure::{EXIT_DONE, EXIT_REFUSED, EXIT_RESTRICTED, Failure, Stop};
use crate::cli::output;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::ids::SessionId;
use crate::lease::finding::{FindingKind, Severity};

pub mod jsonl;
mod receipts;
mod show;

/// A report of a thousand findings is far below this.
const MAX_REPORT_BYTES: usize = 4 << 20;

/// Work on the journal of a session's leases.
#[derive(Debug, clap::Args)]
pub struct JournalArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: JournalCommand,
}

/// The commands about journals.
#[derive(Debug, clap::Subcommand)]
pub enum JournalCommand {
    /// Walk the whole journal and name what is wrong with it
    Verify(VerifyArgs),
    /// Print the journal's records: what, who, which artifact, when
    Show(ShowArgs),
    /// End `suspect` for records that somebody has looked at
    Clear(ClearArgs),
}

/// Which journal.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// The session; --session and SPILLBOX_SESSION name it as well
    #[arg(value_name = "SESSION", value_parser = SessionId::from_str, conflicts_with = "session")]
    pub named: Option<SessionId>,
    /// The session, as other commands take it.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

impl PlaceArgs {
    fn session(&self, variables: &Variables) -> Result<SessionId, Failure> {
        match &self.named {
            Some(session) => Ok(session.clone()),
            None => self.session.session(variables),
        }
    }
}

/// `spillbox journal verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Which journal.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Receipts to compare, one JSON object a line, or `-` for standard input; replies that hold a
    /// `receipt` do as well
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    pub receipts: Option<PathBuf>,
    /// Check this file, the JSONL journal of a one-host ancestor, and no store
    #[arg(long, value_name = "FILE", conflicts_with_all = ["named", "session", "url", "store", "token_file"])]
    pub jsonl: Option<PathBuf>,
}

/// `spillbox journal show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Which journal.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The first record
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub from: u64,
    /// Records at most; all when absent
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// `spillbox journal clear`.
#[derive(Debug, clap::Args)]
pub struct ClearArgs {
    /// Which journal.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The last record that was looked at
    #[arg(long, value_name = "SEQ")]
    pub seq: u64,
    /// Why it may be passed over, for who reads the journal later
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

impl JournalArgs {
    fn place(&self) -> &PlaceArgs {
        match &self.command {
            JournalCommand::Verify(args) => &args.place,
            JournalCommand::Show(args) => &args.place,
            JournalCommand::Clear(args) => &args.place,
        }
    }

    /// Returns where to look.
    pub fn connection(&self) -> &ConnectionArgs {
        &self.place().connection
    }

    /// Returns whether JSON is asked for.
    pub fn is_json(&self) -> bool {
        self.place().json
    }

    /// Returns the file of an ancestor, where the command is about one.
    pub fn jsonl(&self) -> Option<&Path> {
        match &self.command {
            JournalCommand::Verify(args) => args.jsonl.as_deref(),
            JournalCommand::Show(_) | JournalCommand::Clear(_) => None,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The journal cannot be read, or the service refuses.
pub async fn run(
    args: &JournalArgs,
    variables: &Variables,
    transport: &Transport,
) -> Result<u8, Stop> {
    let session = args.place().session(variables)?;
    match &args.command {
        JournalCommand::Verify(args) => verify(args, &session, transport).await,
        JournalCommand::Show(args) => show::run(args, &session, transport).await,
        JournalCommand::Clear(args) => clear(args, &session, transport).await,
    }
}

async fn verify(args: &VerifyArgs, session: &SessionId, transport: &Transport) -> Result<u8, Stop> {
    let receipts = match &args.receipts {
        Some(file) => receipts::read(file)?,
        None => Vec::new(),
    };
    let path = ApiPath::journal(session, "/verify");
    let report = ask(transport, &path, &json!({"receipts": receipts})).await?;
    if args.place.json {
        output::write_json(&report)?;
    } else {
        output::write_bytes(summary(&report).as_bytes())?;
    }
    exit_of(&report)
}

async fn clear(args: &ClearArgs, session: &SessionId, transport: &Transport) -> Result<u8, Stop> {
    let path = ApiPath::journal(session, "/clear");
    let stated = json!({"seq": args.seq, "reason": args.reason});
    let journal = ask(transport, &path, &stated).await?;
    if args.place.json {
        output::write_json(&journal)?;
    } else {
        let status = escape_field(journal["status"].as_str().unwrap_or("?"));
        output::write_bytes(format!("the journal is {status}\n").as_bytes())?;
    }
    Ok(EXIT_DONE)
}

async fn ask(transport: &Transport, path: &ApiPath, document: &Value) -> Result<Value, Failure> {
    let request = Request::post(path.as_str())
        .header("content-type", "application/json")
        .body(Body::from(document.to_string()))
        .map_err(|error| Failure::usage(format!("the request is too long: {error}")))?;
    let response = transport.ask(request).await?;
    let is_unknown = response.status() == http::StatusCode::ACCEPTED;
    let body = to_bytes(response.into_body(), MAX_REPORT_BYTES)
        .await
        .map_err(|error| Failure::new(format!("the transfer stopped: {error}")))?;
    if is_unknown {
        return Err(Failure::of_reply(http::StatusCode::ACCEPTED, &body));
    }
    serde_json::from_slice(&body)
        .map_err(|error| Failure::new(format!("the reply is not JSON: {error}")))
}

/// A line for each finding, or one that says what was looked at.
fn summary(report: &Value) -> String {
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    let mut text = String::new();
    let findings = report["findings"].as_array();
    for finding in findings.into_iter().flatten() {
        let word = |name: &str| escape_field(finding[name].as_str().unwrap_or("?"));
        let place = |name: &str| finding[name].as_u64().unwrap_or(0);
        let (first, last) = (place("first_seq"), place("last_seq"));
        let range = if first == last && word("name") != "gap" {
            first.to_string()
        } else {
            format!("{first}..{last}")
        };
        text.push_str(&format!("{}({range}): {}\n", word("name"), word("detail")));
    }
    let listed = findings.map_or(0, Vec::len) as u64;
    if number("findings_total") > listed {
        let more = number("findings_total") - listed;
        text.push_str(&format!("and {more} findings more\n"));
    }
    let head = match report["head"]["sha256"].as_str() {
        Some(sha256) => format!(
            ", the last {} {}",
            report["head"]["seq"],
            escape_field(sha256)
        ),
        None => String::new(),
    };
    text.push_str(&format!(
        "{}: {} records{head}; {} checkpoints and {} receipts compared\n",
        escape_field(report["status"].as_str().unwrap_or("?")),
        number("records"),
        number("checkpoints"),
        number("receipts"),
    ));
    text
}

/// Returns the exit status that goes with a verification.
fn exit_of(report: &Value) -> Result<u8, Stop> {
    let status = report["status"].as_str();
    if status == Some("ok") {
        return Ok(EXIT_DONE);
    }
    let known = FindingKind::ALL.iter();
    match known.copied().find(|kind| Some(kind.as_str()) == status) {
        Some(kind) => Ok(match kind.severity() {
            Severity::Restricted => EXIT_RESTRICTED,
            Severity::Broken => EXIT_REFUSED,
        }),
        // A newer service knows more names; none of them means ok.
        None => Ok(EXIT_REFUSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_exit_status() {
        let exit = |status: &str| exit_of(&json!({"status": status})).unwrap();
        assert_eq!(exit("ok"), EXIT_DONE);
        for kind in FindingKind::ALL {
            let expected = match kind.as_str() {
                "suspect" | "unknown_schema" => 3,
                _ => 4,
            };
            assert_eq!(exit(kind.as_str()), expected, "{kind}");
        }
        assert_eq!(exit("something new"), EXIT_REFUSED);
    }

    #[test]
    fn a_summary_shows_each_finding_and_what_was_looked_at() {
        let report = json!({
            "status": "gap", "findings_total": 3, "records": 4, "checkpoints": 1, "receipts": 2,
            "head": {"seq": 5, "sha256": "sha256:00"},
            "findings": [
                {"name": "gap", "first_seq": 2, "last_seq": 2, "detail": "record 2 is missing"},
                {"name": "fork", "first_seq": 4, "last_seq": 4, "detail": "two\u{1b}[2J"},
            ],
        });
        assert_eq!(
            summary(&report),
            "gap(2..2): record 2 is missing\nfork(4): two␛[2J\nand 1 findings more\n\
             gap: 4 records, the last 5 sha256:00; 1 checkpoints and 2 receipts compared\n"
        );
    }
}
