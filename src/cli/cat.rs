//! `spillbox cat`: the bytes of an artifact, to standard output.

use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::download::Download;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output::{self, Raw, TerminalGuard};
use crate::cli::transport::Transport;

/// Prints the bytes of an artifact.
#[derive(Debug, clap::Args)]
pub struct CatArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints anything to a terminal, control characters too
    #[arg(long, visible_alias = "force")]
    pub raw: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact cannot be read whole, or must not be shown on a terminal.
pub async fn run(args: &CatArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let mut download = Download::open(transport, &artifact).await?;
    match Raw::for_stdout(args.raw) {
        Raw::Yes => print(&mut download).await?,
        Raw::No => print_to_terminal(&mut download).await?,
    }
    Ok(EXIT_DONE)
}

/// Prints all bytes as they are.
///
/// # Errors
/// They do not all arrive, or nobody takes them.
pub async fn print(download: &mut Download) -> Result<(), Stop> {
    while let Some(piece) = download.next().await? {
        output::write_bytes(&piece)?;
    }
    Ok(())
}

async fn print_to_terminal(download: &mut Download) -> Result<(), Stop> {
    download.hide_progress();
    let mut guard = TerminalGuard::default();
    while let Some(piece) = download.next().await? {
        let text = guard.pass(&piece).ok_or_else(not_for_a_terminal)?;
        output::write_bytes(text.as_bytes())?;
    }
    if guard.is_complete() {
        Ok(())
    } else {
        Err(not_for_a_terminal().into())
    }
}

fn not_for_a_terminal() -> Failure {
    Failure::new("the body holds bytes that would act on the terminal").with_hint(
        "write it into a file with `spillbox get LOCATOR -o FILE`, or print it anyway with --raw",
    )
}
