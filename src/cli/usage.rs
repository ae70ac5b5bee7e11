//! `spillbox usage`: what a session has stored, and what of it stands in prompts.

use serde_json::{Value, json};

use crate::artifact::escape::escape_field;
use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::SessionArgs;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::stat::fetch_json;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::ids::{ArtifactRef, SessionId};

/// Reports what a session has kept out of prompts.
#[derive(Debug, clap::Args)]
pub struct UsageArgs {
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Which session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Why nothing is known straight on a store.
const STORE_NOTE: &str = "note: saved bytes are the manifests'; a store does not count what is read back, a service does: ask it with --url";

/// What the service has handed back.
#[derive(Debug)]
struct ReadBack {
    bytes: u64,
    since: String,
}

impl ReadBack {
    async fn ask(transport: &Transport, session: &SessionId) -> Result<Self, Failure> {
        let reply = fetch_json(transport, &ApiPath::usage(session)).await?;
        let bytes = reply.get("read_back_bytes").and_then(Value::as_u64);
        let since = reply.get("since").and_then(Value::as_str);
        match (bytes, since) {
            (Some(bytes), Some(since)) => Ok(Self {
                bytes,
                since: since.to_owned(),
            }),
            _ => Err(Failure::new(
                "the reply does not say what was read back and since when",
            )),
        }
    }
}

/// Returns read-back bytes per saved byte; nothing where nothing was saved.
fn ratio(read_back: u64, saved: u64) -> Option<f64> {
    (saved > 0).then(|| read_back as f64 / saved as f64)
}

/// What the manifests of a session say.
#[derive(Debug, Default)]
struct Usage {
    artifacts: u64,
    stored_bytes: u64,
    prompt_bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// The session cannot be read.
pub async fn run(
    args: &UsageArgs,
    variables: &Variables,
    transport: &Transport,
) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    let mut usage = Usage::default();
    let mut cursor: Option<String> = None;
    loop {
        let path = ApiPath::artifacts(&session)
            .with("limit", Some(1_000))
            .with("cursor", cursor.as_ref());
        let page = fetch_json(transport, &path).await?;
        for artifact in page
            .get("artifacts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            add(&mut usage, transport, artifact).await?;
        }
        match page.get("next_cursor").and_then(Value::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let saved_bytes = usage.stored_bytes.saturating_sub(usage.prompt_bytes);
    let read_back = match transport {
        Transport::Service(_) => Some(ReadBack::ask(transport, &session).await?),
        // The router of this process lives as long as the command: its counters say nothing.
        Transport::Store(_) => None,
    };
    let ratio = read_back
        .as_ref()
        .and_then(|read| ratio(read.bytes, saved_bytes));
    if args.json {
        output::write_json(&json!({
            "session": session.as_str(),
            "artifacts": usage.artifacts,
            "stored_bytes": usage.stored_bytes,
            "prompt_bytes": usage.prompt_bytes,
            "saved_bytes": saved_bytes,
            "read_back_bytes": read_back.as_ref().map(|read| read.bytes),
            "read_back_since": read_back.as_ref().map(|read| &read.since),
            "read_back_ratio": ratio,
        }))?;
        if read_back.is_none() {
            output::say(STORE_NOTE);
        }
        return Ok(EXIT_DONE);
    }
    let Usage {
        artifacts,
        stored_bytes,
        prompt_bytes,
    } = usage;
    let percent = |part: u64, whole: u64| part * 100 / whole.max(1);
    let name = escape_field(session.as_str());
    output::write_bytes(
        format!(
            "session {name}: {artifacts} artifacts, {stored_bytes} bytes stored, {prompt_bytes} bytes stand for them, {saved_bytes} bytes saved ({} %)\n",
            percent(saved_bytes, stored_bytes)
        )
        .as_bytes(),
    )?;
    if let Some(read) = &read_back {
        let of_saved = ratio.map_or(String::new(), |ratio| format!(", {ratio:.2} of the saved"));
        let (bytes, since) = (read.bytes, escape_field(&read.since));
        output::write_bytes(
            format!("read back: {bytes} bytes{of_saved}, by this replica since {since}\n")
                .as_bytes(),
        )?;
    }
    output::flush()?;
    output::say(if read_back.is_some() {
        "note: saved bytes are the manifests'; read-back bytes are those of the replica that answered, since it began to count"
    } else {
        STORE_NOTE
    });
    Ok(EXIT_DONE)
}

async fn add(usage: &mut Usage, transport: &Transport, artifact: &Value) -> Result<(), Stop> {
    let locator = artifact
        .get("locator")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(artifact) = crate::artifact::locator::parse_locator(locator) else {
        return Ok(());
    };
    let artifact: ArtifactRef = artifact;
    let stat = fetch_json(transport, &ApiPath::artifact(&artifact, "/stat")).await?;
    let number = |pointer: &str| stat.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    usage.artifacts += 1;
    usage.stored_bytes += number("/body/size_bytes");
    let text = stat.pointer("/replacement/text").and_then(Value::as_str);
    usage.prompt_bytes += text.map_or(0, str::len) as u64;
    Ok(())
}
