//! `spillbox drain`: sends what commands kept while the service was away.

use serde_json::json;

use crate::cli::connection::{ConnectionArgs, Variables};
use crate::cli::failure::{EXIT_DONE, EXIT_RESTRICTED, Failure, Stop};
use crate::cli::output;
use crate::cli::spool::drain::Which;
use crate::cli::spool::{Spool, SpoolArgs};
use crate::cli::transport::Transport;

/// Sends what waits on the spool, and prints where it is stored.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 nothing waits any more, 3 the service refused something, which stays."
)]
pub struct DrainArgs {
    /// The service.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// What is sent.
    #[command(flatten)]
    pub spool: SpoolArgs,
    /// Prints {receipts, refused} as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The service is away, or the spool cannot be read.
pub async fn run(
    args: &DrainArgs,
    variables: &Variables,
    transport: &Transport,
) -> Result<u8, Stop> {
    let Transport::Service(service) = transport else {
        return Err(no_spool("only what is for a service waits").into());
    };
    let Some(spool) = Spool::of(&args.spool, variables, service.url()) else {
        return Err(no_spool("there is no spool").into());
    };
    let drained = spool.drain(transport, Which::All, usize::MAX).await?;
    if args.json {
        let refused = drained.refused.iter().map(|(path, failure)| {
            json!({"file": path.to_string_lossy(), "code": failure.code, "detail": failure.message})
        });
        let refused: Vec<_> = refused.collect();
        output::write_json(&json!({"receipts": drained.receipts, "refused": refused}))?;
    } else {
        for receipt in &drained.receipts {
            let locator = receipt.get("locator").and_then(|locator| locator.as_str());
            output::write_bytes(format!("{}\n", locator.unwrap_or_default()).as_bytes())?;
        }
    }
    for (path, failure) in &drained.refused {
        let path = path.display();
        output::say(&format!("warning: {path} stays: {}", failure.message));
    }
    if drained.passed_over > 0 {
        output::say(&format!(
            "note: passed over, since it is for another service or another process sends it: {}",
            drained.passed_over
        ));
    }
    Ok(if drained.refused.is_empty() {
        EXIT_DONE
    } else {
        EXIT_RESTRICTED
    })
}

fn no_spool(what: &str) -> Failure {
    Failure::usage(what).with_hint("name the service with --url or SPILLBOX_URL, and the directory with --spool or SPILLBOX_SPOOL")
}
