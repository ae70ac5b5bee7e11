//! `spillbox token mint`: a token for a sandbox, limited to one session.

use axum::body::{Body, to_bytes};
use http::Request;
use serde_json::{Value, json};

use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::SessionArgs;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;

/// A token and a time.
const MAX_REPLY_BYTES: usize = 64 << 10;

/// `spillbox token mint`.
#[derive(Debug, clap::Args)]
pub struct MintArgs {
    /// The session that the token is limited to
    #[command(flatten)]
    pub session: SessionArgs,
    /// Where the service is, and the configured token that mints
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// What it may do: a comma list of save, read, lease, gc, admin
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "save,read"
    )]
    pub scopes: Vec<String>,
    /// How long it is good for, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub ttl_seconds: u64,
    /// The session from which this one is forked; it may read that one and those above it
    #[arg(long, value_name = "SESSION")]
    pub parent: Option<String>,
    /// Prints JSON, with the time of its end
    #[arg(long)]
    pub json: bool,
}

/// Asks the service for a token and prints it.
///
/// # Errors
/// The service refuses, or cannot be reached.
pub async fn run(
    args: &MintArgs,
    variables: &Variables,
    transport: &Transport,
) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    let mut asked = json!({"ttl_seconds": args.ttl_seconds, "scopes": args.scopes});
    if let Some(parent) = &args.parent {
        asked["parent"] = json!(parent);
    }
    let request = Request::post(ApiPath::tokens(&session).as_str())
        .header("content-type", "application/json")
        .body(Body::from(asked.to_string()))
        .map_err(|error| Failure::usage(format!("the request is too long: {error}")))?;
    let response = transport.ask(request).await?;
    let body = to_bytes(response.into_body(), MAX_REPLY_BYTES)
        .await
        .map_err(|error| Failure::new(format!("the transfer stopped: {error}")))?;
    let minted: Value = serde_json::from_slice(&body)
        .map_err(|error| Failure::new(format!("the reply is not JSON: {error}")))?;
    if args.json {
        output::write_json(&minted)?;
    } else {
        let token = minted["token"]
            .as_str()
            .ok_or_else(|| Failure::new("the reply holds no token".to_owned()))?;
        output::write_bytes(format!("{token}\n").as_bytes())?;
    }
    Ok(EXIT_DONE)
}
