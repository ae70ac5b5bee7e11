//! `spillbox hook HARNESS`: called by a harness after each of its tool calls, decides what stands in the
//! prompt for the result.
//!
//! What must hold: the call never fails through us. Whatever goes wrong (no service, a form that we do
//! not know, too much) nothing is printed, so that the original stays; the exit status is 0 and standard
//! error says why.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clap::{Subcommand, value_parser};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

use crate::artifact::escape::escape_field;
use crate::artifact::hint::parse_means;
use crate::artifact::measure::Measures;
use crate::cli::connection::{ConnectionArgs, Variables, choose_place};
use crate::cli::failure::{EXIT_DONE, Failure};
use crate::cli::hook::claude_code::{Event, TextPlace};
use crate::cli::output;
use crate::cli::spool::{Spool, SpoolArgs, fresh_call_id};
use crate::cli::target::Target;
use crate::cli::transport::Transport;
use crate::cli::upload::{TEXT, Upload};
use crate::http::api_path::ApiPath;
use crate::ids::{CallId, SessionId};
use crate::limits::MAX_HOOK_INPUT_BYTES;
use crate::policy::profile::{Given, Profile};

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
    /// What to do while the service is away.
    #[command(flatten)]
    pub spool: SpoolArgs,
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
    let deadline = Instant::now() + Duration::from_secs(args.timeout);
    let opening = Box::pin(Decider::open(args, variables, deadline));
    let decider = match timeout_at(deadline, opening).await {
        Ok(decider) => decider,
        Err(_) => Err(too_late(args)),
    };
    let mut decider = match decider {
        Ok(Some(decider)) => decider,
        Ok(None) => return EXIT_DONE,
        Err(failure) => {
            say_original_stays(&failure);
            return EXIT_DONE;
        }
    };
    match decider.replace().await {
        Ok(is_replaced) => {
            let Decider {
                event,
                transport,
                spool,
                ..
            } = decider;
            if is_replaced {
                // Nobody there to read it is the harness's own affair.
                let _ = output::write_json(&event.into_reply()).and_then(|()| output::flush());
            }
            if let Some(spool) = &spool {
                spool.drain_some(&transport).await;
            }
            transport.close().await;
        }
        Err(failure) => say_original_stays(&failure),
    }
    EXIT_DONE
}

fn say_original_stays(failure: &Failure) {
    output::say(&format!("warning: the original stays: {}", failure.message));
    if let Some(hint) = &failure.hint {
        output::say(&format!("hint: {hint}"));
    }
}

fn too_late(args: &ClaudeCodeArgs) -> Failure {
    Failure::new(format!("no decision in {} s", args.timeout)).away()
}

/// One event, and who decides it.
struct Decider<'a> {
    args: &'a ClaudeCodeArgs,
    event: Event,
    deadline: Instant,
    session: SessionId,
    transport: Transport,
    spool: Option<Spool>,
    /// The profile, where it is known here; a service may have others.
    profile: Option<Arc<Profile>>,
}

impl<'a> Decider<'a> {
    /// Reads the event; `None` where nothing of it is decided.
    async fn open(
        args: &'a ClaudeCodeArgs,
        variables: &Variables,
        deadline: Instant,
    ) -> Result<Option<Self>, Failure> {
        let variables = variables.with_token(&args.connection)?;
        let target = Target::of(choose_place(&args.connection, &variables, None)?)?;
        let mut event = Event::parse(&input().await?)?;
        if event.texts().is_empty() {
            return Ok(None);
        }
        let wrong = |error: crate::ids::InvalidIdError| Failure::new(error.to_string());
        let session = event.session_id.parse().map_err(wrong)?;
        if let Some(call_id) = &event.tool_use_id {
            call_id.parse::<CallId>().map_err(wrong)?;
        }
        let profile = target.profile(Some(&args.profile)).ok();
        let transport = target.open().await?;
        let spool = match &transport {
            Transport::Service(service) => Spool::of(&args.spool, &variables, service.url()),
            Transport::Store(_) => None,
        };
        if spool.is_some() && event.tool_use_id.is_none() {
            // A save whose reply was lost must not be made twice.
            event.tool_use_id = Some(fresh_call_id("hook"));
        }
        Ok(Some(Self {
            args,
            event,
            deadline,
            session,
            transport,
            spool,
            profile,
        }))
    }

    /// Adds what is known of the call.
    fn described(&self, path: ApiPath) -> ApiPath {
        path.with("tool", Some(&self.event.tool_name))
            .with("call_id", self.event.tool_use_id.as_ref())
            .with("profile", Some(&self.args.profile))
            .with("means", Some(&self.args.means))
    }

    /// Has the texts decided, the longest first, until one stays: then the shorter ones would stay as
    /// well. Returns whether anything was replaced. What would have been, had the service been there, is
    /// kept to be stored later; the prompt has the original by then.
    async fn replace(&mut self) -> Result<bool, Failure> {
        let path = self
            .described(ApiPath::results(&self.session))
            .with("context_tokens", self.args.context_tokens);
        let mut is_replaced = false;
        let mut places = self.event.texts().into_iter().take(MAX_TEXTS);
        while let Some(place) = places.next() {
            let Some(slot) = self.event.text_mut(&place) else {
                break;
            };
            let upload = Upload {
                path: path.clone(),
                media_type: TEXT,
                size_bytes: Some(slot.len() as u64),
                body: Body::from(slot.clone()),
            };
            let decided = timeout_at(self.deadline, upload.decide(&self.transport)).await;
            let decision = match decided.unwrap_or_else(|_| Err(too_late(self.args))) {
                Ok(decision) => decision,
                Err(failure) => {
                    if failure.is_away {
                        self.keep(std::iter::once(place).chain(places)).await;
                    }
                    if is_replaced {
                        // What was replaced is stored, and the prompt may have it.
                        output::say(&format!("warning: a part stays: {}", failure.message));
                        break;
                    }
                    return Err(failure);
                }
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

    /// Keeps those of the texts that are too large for the prompt.
    async fn keep(&mut self, places: impl Iterator<Item = TextPlace>) {
        let Some(spool) = self.spool.clone() else {
            return;
        };
        let path = self.described(ApiPath::artifacts(&self.session));
        let given = Given {
            server_max: None,
            context_tokens: self.args.context_tokens,
        };
        let limit = self.profile.as_ref();
        let limit = limit.map(|profile| profile.limit_of(&self.event.tool_name, &given));
        for place in places {
            let Some(slot) = self.event.text_mut(&place) else {
                continue;
            };
            let is_kept =
                limit.is_none_or(|limit| limit.is_exceeded_by(&Measures::of(slot.as_bytes())));
            if !is_kept {
                continue;
            }
            let kept = spool.keep_bytes(&path, slot.clone().into_bytes()).await;
            output::say(&match kept {
                Ok(()) => format!(
                    "note: it is kept in {} and sent when the service is back; `spillbox drain` sends it now",
                    spool.directory().display()
                ),
                Err(error) => format!("warning: it is not kept either: {error}"),
            });
        }
    }
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
