//! `spillbox mcp`: the tools for an agent whose harness starts servers itself, over standard input and
//! output.
//!
//! Standard output belongs to the protocol: nothing else may be printed there.

use std::sync::Arc;

use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use rmcp::ServiceExt;
use rmcp::transport::stdio;

use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::description::SessionArgs;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::transport::Transport;
use crate::mcp::{ArtifactTools, Ask, NoAnswerError};

/// Serves the tools over standard input and output.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    /// Where artifacts are. A locator's own host is never asked.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Where the tools list and store.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Runs the command until standard input ends.
///
/// # Errors
/// The client does not speak the protocol.
pub async fn run(args: &McpArgs, variables: &Variables, transport: &Transport) -> Result<u8, Stop> {
    let session = args.session.session(variables)?;
    let tools = ArtifactTools::new(Arc::new(transport.clone()), session);
    let server = tools.serve(stdio()).await.map_err(|error| {
        Failure::new(format!(
            "the client did not begin as the protocol asks: {error}"
        ))
        .with_hint(
            "this command is for harnesses: name it as a stdio server in the harness's settings",
        )
    })?;
    let ended = server.waiting().await;
    ended.map_err(|error| Failure::new(format!("the server ended: {error}")))?;
    Ok(EXIT_DONE)
}

impl Ask for Transport {
    fn ask(&self, request: Request<Body>) -> BoxFuture<'_, Result<Response<Body>, NoAnswerError>> {
        async move {
            self.send(request).await.map_err(|failure| NoAnswerError {
                message: failure.message,
                hint: failure.hint,
            })
        }
        .boxed()
    }
}
