//! `spillbox hook HARNESS`: called by a harness after each of its tool calls, decides what stands in the
//! prompt for the result.
//!
//! What must hold: the call never fails through us. Whatever goes wrong (no service, a form that we do
//! not know, too much) nothing is printed, so that the original stays; the exit status is 0 and standard
//! error says why.

use std::time::Duration;

use axum::body::Body;
use clap::{Subcommand, value_parser};
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::artifact::escape::escape_field;
use crate::artifact::hint::parse_means;
use crate::cli::connection::{ConnectionArgs, Variables, choose_place};
use crate::cli::failure::{EXIT_DONE, Failure};
use crate::cli::hook::claude_code::{Event, TextPlace};
use crate::cli::output;
use crate::cli::target::Target;
use crate::cli::transport::Transport;
use crate::cli::upload::{TEXT, Upload};
use crate::http::api_path::ApiPath;
use crate::ids::{CallId, SessionId};
use crate::limits::MAX_HOOK_INPUT_BYTES;

pub mod claude_code;

/// The most texts of one result that are replaced.
const MAX_TEXTS: usize = 16;

/// Decides the result of a harness's tool call; reads and prints the harness's own JSON.
#[derive(Debug, clap::Args)]
pub struct HookArgs {
    /// Whose JSON it is.
    #[command(subcommand)]
    pub harness: Harness,
}

/// The harnesses whose form is known.
#[derive(Debug, Subcommand)]
pub enum Harness {
    /// Claude Code's PostToolUse event
    ClaudeCode(ClaudeCodeArgs),
}

/// How results of Claude Code are decided.
#[derive(Debug, clap::Args)]
pub struct ClaudeCodeArgs {
    /// Where to store.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Whose limits and message form hold; `spillbox profiles` lists them
    #[arg(long, value_name = "NAME", default_value = "claude-code")]
    pub profile: String,
    /// How the model can read on: a comma list of cli, http, file, mcp:TOOL; empty for none
    #[arg(long, value_name = "LIST", default_value = "cli", value_parser = means)]
    pub means: String,
    /// The model's context window, which the limits of some profiles follow
    #[arg(long, value_name = "N")]
    pub context_tokens: Option<u64>,
    /// After this many seconds the original stays
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}

fn means(text: &str) -> Result<String, crate::artifact::hint::InvalidMeansError> {
    parse_means(text).map(|_| text.to_owned())
}

/// Runs the command; its status is 0.
pub async fn run(args: &HookArgs, variables: &Variables) -> u8 {
    let Harness::ClaudeCode(args) = &args.harness;
    let limit = Duration::from_secs(args.timeout);
    let answer = match tokio::time::timeout(limit, Box::pin(decide(args, variables))).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::new(format!("no decision in {} s", args.timeout))),
    };
    match answer {
        Ok(None) => {}
        Ok(Some(reply)) => {
            // Nobody there to read it is the harness's own affair.
            let _ = output::write_json(&reply).and_then(|()| output::flush());
        }
        Err(failure) => {
            output::say(&format!("warning: the original stays: {}", failure.message));
            if let Some(hint) = &failure.hint {
                output::say(&format!("hint: {hint}"));
            }
        }
    }
    EXIT_DONE
}

async fn decide(args: &ClaudeCodeArgs, variables: &Variables) -> Result<Option<Value>, Failure> {
    let variables = variables.with_token(&args.connection)?;
    let target = Target::of(choose_place(&args.connection, &variables, None)?)?;
    let mut event = Event::parse(&input().await?)?;
    let places = event.texts();
    if places.is_empty() {
        return Ok(None);
    }
    let path = path(args, &event)?;
    let transport = target.open().await?;
    let replaced = replace(&mut event, places, &path, &transport).await;
    transport.close().await;
    Ok(replaced?.then(|| event.into_reply()))
}

/// Reads standard input, up to its bound.
async fn input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut stdin = tokio::io::stdin().take(MAX_HOOK_INPUT_BYTES as u64 + 1);
    let read = stdin.read_to_end(&mut bytes).await;
    read.map_err(|error| Failure::new(format!("standard input: {error}")))?;
    if bytes.len() > MAX_HOOK_INPUT_BYTES {
        let most = MAX_HOOK_INPUT_BYTES >> 20;
        return Err(Failure::new(format!("the event is over {most} MiB")));
    }
    Ok(bytes)
}

fn path(args: &ClaudeCodeArgs, event: &Event) -> Result<ApiPath, Failure> {
    let wrong = |error: crate::ids::InvalidIdError| Failure::new(error.to_string());
    let session: SessionId = event.session_id.parse().map_err(wrong)?;
    if let Some(call_id) = &event.tool_use_id {
        call_id.parse::<CallId>().map_err(wrong)?;
    }
    Ok(ApiPath::results(&session)
        .with("tool", Some(&event.tool_name))
        .with("call_id", event.tool_use_id.as_ref())
        .with("profile", Some(&args.profile))
        .with("means", Some(&args.means))
        .with("context_tokens", args.context_tokens))
}

/// Has the texts decided, the longest first, until one stays: then the shorter ones would stay as well.
/// Returns whether anything was replaced.
async fn replace(
    event: &mut Event,
    places: Vec<TextPlace>,
    path: &ApiPath,
    transport: &Transport,
) -> Result<bool, Failure> {
    let mut is_replaced = false;
    for place in places.into_iter().take(MAX_TEXTS) {
        let Some(slot) = event.text_mut(&place) else {
            break;
        };
        let upload = Upload {
            path: path.clone(),
            media_type: TEXT,
            size_bytes: Some(slot.len() as u64),
            body: Body::from(slot.clone()),
        };
        let decision = match upload.decide(transport).await {
            Ok(decision) => decision,
            // What was replaced is stored, and the prompt may have it.
            Err(failure) if is_replaced => {
                output::say(&format!("warning: a part stays: {}", failure.message));
                break;
            }
            Err(failure) => return Err(failure),
        };
        if let Some(reason) = decision.get("reason").and_then(Value::as_str) {
            output::say(&format!("warning: not stored: {}", escape_field(reason)));
        }
        match decision.get("text").and_then(Value::as_str) {
            Some(text) if text != slot => {
                text.clone_into(slot);
                is_replaced = true;
            }
            Some(_) | None => break,
        }
    }
    Ok(is_replaced)
}
