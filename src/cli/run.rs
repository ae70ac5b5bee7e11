//! `spillbox run -- CMD…`: runs a tool and prints what belongs in the prompt.
//!
//! Its output is printed as it is where it is small text, and stored and replaced otherwise. The tool's
//! exit status is ours. What must hold: a good tool result never becomes an error, so a store that
//! fails costs the middle of a large output (and says so), never its end, nor the status.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use crate::artifact::windows::Windows;
use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::{DescriptionArgs, SessionArgs};
use crate::cli::failure::Stop;
use crate::cli::output;
use crate::cli::run::capture::{Capture, Captured};
use crate::cli::run::child::Tool;
use crate::cli::run::hold::HoldRule;
use crate::cli::spool::{Spool, SpoolArgs, fresh_call_id};
use crate::cli::target::Target;
use crate::cli::transport::Transport;
use crate::error::ErrorCode;
use crate::policy::decide::is_blank;
use crate::policy::fallback::{Fallback, Seen, ends, fallback};
use crate::policy::profile::{Given, Profile};
use crate::policy::template::Templates;

mod capture;
mod child;
mod hold;

/// Runs a command; prints its output, or what stands for it when it is large.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Where to store.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Its session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// What it is; the tool's name is the command's unless --tool says otherwise.
    #[command(flatten)]
    pub description: DescriptionArgs,
    /// Prints {action, text, stored, exit_status, …} as JSON
    #[arg(long)]
    pub json: bool,
    /// What to do while the service is away.
    #[command(flatten)]
    pub spool: SpoolArgs,
    /// The model's context window, which the limits of some profiles follow
    #[arg(long, value_name = "N")]
    pub context_tokens: Option<u64>,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, last = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

/// Runs the command; what is too large to print is stored at `target`.
///
/// # Errors
/// The command cannot be run, or its output cannot be printed.
pub async fn run(args: &RunArgs, variables: &Variables, target: Target) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    let mut description = args.description.clone();
    if description.tool.is_none() {
        description.tool = tool_name(&args.command);
    }
    if description.completeness.is_none() {
        // A capture that breaks off is never stored, so what is stored is all that the tool printed.
        description.completeness = Some("complete".to_owned());
    }
    let tool_shown = description.tool.clone().unwrap_or_default();
    let profile = target.profile(description.profile.as_deref())?;
    let given = Given {
        server_max: None,
        context_tokens: args.context_tokens,
    };
    let rule = HoldRule::new(&profile, &tool_shown, &given);
    let spool = match &target {
        Target::Open(Transport::Service(service)) => {
            Spool::of(&args.spool, variables, service.url())
        }
        Target::Open(Transport::Store(_)) | Target::Store { .. } => None,
    };
    if spool.is_some() && description.call_id.is_none() {
        // A save whose reply was lost must not be made twice.
        description.call_id = Some(fresh_call_id("run"));
    }
    let mut tool = Tool::start(&args.command)?;
    let mut capture = Capture::new(target.clone(), description.path(&session), rule);
    if let Some(spool) = spool.clone() {
        capture.keep_on(spool);
    }
    while let Some(event) = tool.next().await {
        capture.take(event).await;
    }
    let captured = capture.finish().await;
    let exit_status = tool.wait().await?;
    let is_there = matches!(captured, Captured::Stored(_));
    match print(args, captured, &profile, &tool_shown, exit_status) {
        // The tool's status counts, also when nobody reads on.
        Ok(()) | Err(Stop::OutputClosed) => {}
        Err(stop) => return Err(stop),
    }
    if let (true, Some(spool), Target::Open(transport)) = (is_there, &spool, &target) {
        spool.drain_some(transport).await;
    }
    Ok(exit_status)
}

fn tool_name(command: &[OsString]) -> Option<String> {
    let name = Path::new(command.first()?).file_name()?;
    Some(name.to_string_lossy().into_owned())
}

fn print(
    args: &RunArgs,
    captured: Captured,
    profile: &Profile,
    tool: &str,
    exit_status: u8,
) -> Result<(), Stop> {
    let (decision, text) = match captured {
        Captured::Inline(text) if is_blank(&text) => {
            // A model's provider refuses an empty text.
            let words = Templates::default().newest().nothing_printed;
            let text = words(Some(tool), text.len() as u64);
            let decision = json!({"action": "inline", "stored": false, "text": text});
            (decision, ended(text))
        }
        Captured::Inline(text) => {
            let decision = json!({"action": "inline", "stored": false, "text": text});
            (decision, text)
        }
        Captured::Stored(saved) => {
            let is_truncated = saved.receipt.get("truncated").and_then(|v| v.as_bool());
            let action = if is_truncated == Some(false) {
                "inline"
            } else {
                "spilled"
            };
            let text = saved.replacement;
            let decision =
                json!({"action": action, "stored": true, "text": text, "receipt": saved.receipt});
            (decision, ended(text))
        }
        Captured::Lost {
            windows,
            original,
            failure,
            kept,
        } => {
            output::say(&format!(
                "warning: the output was not stored: {}",
                failure.message
            ));
            if let Some(hint) = &failure.hint {
                output::say(&format!("hint: {hint}"));
            }
            let seen = match &kept {
                Some(directory) => {
                    let directory = directory.display();
                    output::say(&format!(
                        "note: it is kept in {directory} and sent when the service is back; `spillbox drain` sends it now"
                    ));
                    Seen::Kept
                }
                None => Seen::Whole,
            };
            let text = unsaved(profile, &windows, original, tool, seen);
            // Where there was no reply, there was no store.
            let reason = failure.code.as_deref();
            let reason = reason.unwrap_or(ErrorCode::StoreUnavailable.as_str());
            let kept = kept.is_some();
            let decision = json!({"action": "inline", "stored": false, "text": text, "reason": reason, "kept": kept});
            (decision, ended(text))
        }
    };
    if args.json {
        let mut decision = decision;
        decision["exit_status"] = exit_status.into();
        output::write_json(&decision)?;
    } else {
        output::write_bytes(text.as_bytes())?;
    }
    output::flush()
}

/// Returns what is printed of an output that could not be stored. We are the adapter here, so where the
/// original stays with the adapter it is printed, as far as it was held.
fn unsaved(
    profile: &Profile,
    windows: &Windows,
    original: Option<String>,
    tool: &str,
    seen: Seen,
) -> String {
    match (fallback(profile, windows, Some(tool), seen), original) {
        (Fallback::Text(text), _) => text,
        (Fallback::Original | Fallback::Error, Some(original)) => original,
        (Fallback::Original | Fallback::Error, None) => ends(windows, tool, usize::MAX, seen),
    }
}

/// A replacement ends with its line, so that what is printed next begins on its own.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
