//! `spillbox rm`: erases an artifact now, and for good.

use axum::body::{Body, to_bytes};
use http::Request;

use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;

/// What the reply may be at most.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// Erases an artifact: its bytes, summary and preview, and every copy that its call led to. Refused while
/// a lease protects it. Cannot be undone.
#[derive(Debug, clap::Args)]
pub struct RmArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints what was erased as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact is not there, is leased, or could not be erased to the end.
pub async fn run(args: &RmArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let path = ApiPath::artifact(&artifact, "");
    let request = Request::delete(path.as_str())
        .body(Body::empty())
        .map_err(|error| Failure::usage(format!("the request is too long: {error}")))?;
    let response = transport.ask(request).await?;
    let body = to_bytes(response.into_body(), MAX_REPLY_BYTES).await;
    let body = body.map_err(|error| Failure::new(format!("the reply broke off: {error}")))?;
    let reply: serde_json::Value = serde_json::from_slice(&body)
        .map_err(|error| Failure::new(format!("the reply is no JSON: {error}")))?;
    if args.json {
        output::write_json(&reply)?;
    } else {
        output::say(&format!("erased {artifact}"));
    }
    Ok(EXIT_DONE)
}
