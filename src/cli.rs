//! The command line: one file per command, one way to reach artifacts ([`transport`]).
//!
//! Data goes to standard output, everything else to standard error. Exit status: 0 done, 1 failure,
//! 2 wrong usage, 3 done with restrictions or something left for later, 4 refused by a safety check; `run`
//! has its command's, `scrub` adds 5 for damage to what is referred to.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

use crate::cli::connection::{ConnectionArgs, Variables, choose_place};
use crate::cli::failure::{EXIT_DONE, EXIT_FAILURE, Failure, Stop};
use crate::cli::target::Target;
use crate::cli::transport::Transport;
use crate::ids::SystemIds;
use crate::telemetry::{self, LOG_FORMAT_VARIABLE, LOG_VARIABLE};

pub mod cat;
pub mod clear;
pub mod connection;
pub mod description;
pub mod doctor;
pub mod download;
pub mod drain;
pub mod failure;
pub mod gc;
pub mod get;
pub mod grep;
pub mod healthcheck;
pub mod hook;
pub mod job;
pub mod job_store;
pub mod journal;
pub mod lines;
pub mod ls;
pub mod mcp;
pub mod outline;
pub mod output;
pub mod owner;
pub mod profiles;
pub mod progress;
pub mod put;
pub mod reconcile;
pub mod rm;
pub mod run;
pub mod scrub;
pub mod serve;
pub mod spool;
pub mod stat;
pub mod steady;
pub mod store;
pub mod target;
pub mod token;
pub mod transport;
pub mod upload;
pub mod usage;
pub mod why;

/// Reads that nobody waits for any more (a terminal, say) must not hold up the end of the process.
const RUNTIME_END: Duration = Duration::from_millis(100);

/// Shells report the death by SIGINT so.
const EXIT_INTERRUPTED: u8 = 130;
/// Shells report the death by SIGTERM so.
const EXIT_TERMINATED: u8 = 143;

/// Keeps large tool outputs and hands back what belongs in the prompt.
#[derive(Debug, Parser)]
#[command(name = "spillbox", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service
    Serve(serve::ServeArgs),
    /// Run a command; print its output, or what stands for it when it is large
    Run(run::RunArgs),
    /// Store a file or standard input, and print what stands for it
    Put(put::PutArgs),
    /// Print the bytes of an artifact
    Cat(cat::CatArgs),
    /// Write an artifact into a file
    Get(get::GetArgs),
    /// Print a page of an artifact's lines
    Lines(lines::LinesArgs),
    /// Print the lines of an artifact that match
    Grep(grep::GrepArgs),
    /// Print what stands out in an artifact: errors, warnings, gaps, sections
    Outline(outline::OutlineArgs),
    /// Print what is known of an artifact
    Stat(stat::StatArgs),
    /// List a session's artifacts, newest first
    Ls(ls::LsArgs),
    /// Print the tool result budgets that can be asked for
    Profiles(profiles::ProfilesArgs),
    /// Report what a session has kept out of prompts
    Usage(usage::UsageArgs),
    /// Replace the old results of a conversation by sentences that name where they are kept
    Clear(clear::ClearArgs),
    /// Verify, show or clear the journal of a session's leases
    Journal(journal::JournalArgs),
    /// Erase an artifact now, and for good
    Rm(rm::RmArgs),
    /// Collect what nothing refers to
    Gc(gc::GcArgs),
    /// Say why an artifact stays or goes
    Why(why::WhyArgs),
    /// Read bodies back, and look for leases whose artifact is gone
    Scrub(scrub::ScrubArgs),
    /// Find out what became of leases whose owners did not say so
    Reconcile(Box<reconcile::ReconcileArgs>),
    /// Try a memory system's endpoint against the contract for owners of leases
    Owner(owner::OwnerArgs),
    /// Decide the result of a harness's tool call, in the harness's own JSON
    Hook(hook::HookArgs),
    /// Send what was kept while the service was away
    Drain(drain::DrainArgs),
    /// Serve the tools of the Model Context Protocol over standard input and output
    Mcp(mcp::McpArgs),
    /// Find out by trying whether a store can be trusted
    Doctor(doctor::DoctorArgs),
    /// Ask whether the service of this host is ready: for a container's health check
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Run another command for a scheduler, once or again and again
    Job(job::JobArgs),
    /// Make or hash tokens for the settings of a service
    Token(token::TokenArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && is_hook(std::env::args_os().nth(1)) => {
            let _ = error.print();
            return ExitCode::from(EXIT_FAILURE);
        }
        Err(error) => error.exit(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            output::say(&format!("error: cannot start: {error}"));
            return ExitCode::from(EXIT_FAILURE);
        }
    };
    let ended = runtime.block_on(dispatch(&cli.command));
    let ended = ended.and_then(|exit| output::flush().map(|()| exit));
    runtime.shutdown_timeout(RUNTIME_END);
    ExitCode::from(match ended {
        Ok(exit) => exit,
        Err(Stop::OutputClosed) => EXIT_DONE,
        Err(Stop::Failed(failure)) => {
            output::say(&failure.to_string());
            if matches!(cli.command, Command::Hook(_)) {
                EXIT_FAILURE
            } else {
                failure.exit
            }
        }
    })
}

/// Harnesses take status 2 of a hook as an objection that the model must hear; 1 is a fault of the hook.
fn is_hook(command: Option<std::ffi::OsString>) -> bool {
    command.is_some_and(|command| command == "hook")
}

async fn dispatch(command: &Command) -> Result<u8, Stop> {
    let variables = Variables::of_process()?;
    match command {
        Command::Serve(args) => {
            start_logs(LevelFilter::INFO)?;
            Box::pin(serve::run(args, variables.store.as_deref())).await
        }
        Command::Doctor(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(doctor::run(args, variables.store.as_deref())).await
        }
        Command::Gc(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(gc::run(args, variables.store.as_deref())).await
        }
        Command::Why(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(why::run(args, variables.store.as_deref())).await
        }
        Command::Scrub(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(scrub::run(args, variables.store.as_deref())).await
        }
        Command::Reconcile(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(reconcile::run(args, variables.store.as_deref())).await
        }
        Command::Owner(args) => {
            start_logs(LevelFilter::OFF)?;
            Box::pin(owner::run(args)).await
        }
        Command::Rm(args) => {
            let command = async |transport: &_| rm::run(args, transport).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Healthcheck(args) => {
            start_logs(LevelFilter::OFF)?;
            healthcheck::run(args).await
        }
        Command::Job(args) => {
            start_logs(LevelFilter::INFO)?;
            job::run(args).await
        }
        Command::Token(args) => token::run(args),
        Command::Run(args) => {
            start_logs(LevelFilter::OFF)?;
            // Decided before the tool runs: wrong usage must not cost a run.
            let variables = variables.with_token(&args.connection)?;
            let place = choose_place(&args.connection, &variables, None)?;
            Box::pin(run::run(args, &variables, Target::of(place)?)).await
        }
        Command::Put(args) => {
            let command = async |transport: &_| put::run(args, &variables, transport).await;
            ask(&args.connection, None, &variables, command).await
        }
        Command::Cat(args) => {
            let command = async |transport: &_| cat::run(args, transport).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Get(args) => {
            let ids = SystemIds::shared();
            let command = async |transport: &_| get::run(args, transport, &ids).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Lines(args) => {
            let command = async |transport: &_| lines::run(args, transport).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Grep(args) => {
            let command = async |transport: &_| grep::run(args, transport).await;
            let ended = ask(&args.connection, Some(&args.locator), &variables, command).await;
            ended.map_err(grep::trouble)
        }
        Command::Outline(args) => {
            let command = async |transport: &_| outline::run(args, transport).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Stat(args) => {
            let command = async |transport: &_| stat::run(args, transport).await;
            ask(&args.connection, Some(&args.locator), &variables, command).await
        }
        Command::Profiles(args) => profiles::run(args),
        Command::Drain(args) => {
            let command = async |transport: &_| drain::run(args, &variables, transport).await;
            ask(&args.connection, None, &variables, command).await
        }
        Command::Hook(args) => Ok(hook::run(args, &variables).await),
        Command::Usage(args) => {
            let command = async |transport: &_| usage::run(args, &variables, transport).await;
            ask(&args.connection, None, &variables, command).await
        }
        Command::Clear(args) => clear::run(args),
        Command::Journal(args) => {
            if let Some(file) = args.jsonl() {
                return journal::jsonl::run(file, args.is_json());
            }
            let command = async |transport: &_| journal::run(args, &variables, transport).await;
            ask(args.connection(), None, &variables, command).await
        }
        Command::Mcp(args) => {
            let command = async |transport: &_| mcp::run(args, &variables, transport).await;
            ask(&args.connection, None, &variables, command).await
        }
        Command::Ls(args) => {
            let command = async |transport: &_| ls::run(args, &variables, transport).await;
            ask(&args.connection, None, &variables, command).await
        }
    }
}

/// Runs a command that asks a service or a store. An interrupt ends it with its temporary files and
/// open uploads cleaned up.
async fn ask(
    connection: &ConnectionArgs,
    locator: Option<&str>,
    variables: &Variables,
    command: impl AsyncFnOnce(&Transport) -> Result<u8, Stop>,
) -> Result<u8, Stop> {
    start_logs(LevelFilter::OFF)?;
    let variables = variables.with_token(connection)?;
    let place = choose_place(connection, &variables, locator)?;
    let transport = Target::of(place)?.open().await?;
    let ended = tokio::select! {
        ended = Box::pin(command(&transport)) => ended,
        exit = interruption() => Ok(exit),
    };
    transport.close().await;
    ended
}

/// Resolves at the first SIGINT or SIGTERM with the status that a shell gives it.
async fn interruption() -> u8 {
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (Ok(mut interrupted), Ok(mut terminated)) = (signal(interrupt), signal(terminate)) else {
        // The signals then keep their own way of ending the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupted.recv() => EXIT_INTERRUPTED,
        _ = terminated.recv() => EXIT_TERMINATED,
    }
}

fn start_logs(default_level: LevelFilter) -> Result<(), Failure> {
    let text = |name| std::env::var(name).unwrap_or_default();
    let filter = text(LOG_VARIABLE);
    let filter = (!filter.is_empty()).then_some(filter.as_str());
    let format = text(LOG_FORMAT_VARIABLE).parse();
    format
        .and_then(|format| telemetry::init(format, filter, default_level))
        .map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
