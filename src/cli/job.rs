//! `spillbox job -- ARGS…`: one of the jobs, as a scheduler wants it.
//!
//! A job ends with 3 where something is left for its next run, which is how a collection normally ends; an
//! orchestrator would count that as a failure. And where nothing but containers is there, nobody calls
//! again: `--every` does. The job is a process of its own, so that one that dies takes nothing along.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::cli::failure::{EXIT_DONE, EXIT_RESTRICTED, EXIT_USAGE, Failure, Stop};
use crate::server::shutdown_signal;

/// Runs another command of this program for a scheduler: an end with 3 (something is left for the next
/// run) counts as done.
#[derive(Debug, clap::Args)]
pub struct JobArgs {
    /// Run it again and again, this long from one start to the next, until SIGTERM
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub every: Option<Duration>,
    /// With --every: end after so many runs
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// The command, without the program's name: gc run --all
    #[arg(value_name = "ARGS", required = true, last = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

/// Takes a time of at least a second: anything shorter would be a loop that hammers the store.
fn parse_interval(text: &str) -> Result<Duration, String> {
    let time = humantime_serde::re::humantime::parse_duration(text);
    let time = time.map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err("at least 1s".to_owned());
    }
    Ok(time)
}

/// What follows from how a run ended. Pure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// With nothing wrong.
    Well,
    /// With a failure that the next run may not have.
    Badly(u8),
    /// As every further run would.
    Hopelessly,
}

impl Ended {
    fn of(status: u8) -> Self {
        match status {
            EXIT_DONE | EXIT_RESTRICTED => Self::Well,
            EXIT_USAGE => Self::Hopelessly,
            other => Self::Badly(other),
        }
    }

    fn exit(self) -> u8 {
        match self {
            Self::Well => EXIT_DONE,
            Self::Badly(status) => status,
            Self::Hopelessly => EXIT_USAGE,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The program cannot start itself.
pub async fn run(args: &JobArgs) -> Result<u8, Stop> {
    let cannot = |what: &str, error| Failure::new(format!("cannot {what}: {error}"));
    let shutdown = shutdown_signal().map_err(|error| cannot("install signal handlers", error))?;
    tokio::pin!(shutdown);
    let mut runs: u64 = 0;
    loop {
        let began = Instant::now();
        let mut child = start(&args.command).map_err(|error| cannot("start the job", error))?;
        let mut stopped = false;
        let status = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                () = &mut shutdown, if !stopped => {
                    stopped = true;
                    end(&child);
                }
            }
        };
        let status = status.map_err(|error| cannot("wait for the job", error))?;
        // A death by signal has no code.
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        let ended = Ended::of(code.unwrap_or(1));
        runs += 1;
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match ended {
            Ended::Well => info!(status = code, elapsed_ms, "the job ended"),
            Ended::Badly(_) | Ended::Hopelessly => {
                warn!(status = code, elapsed_ms, "the job failed");
            }
        }
        let is_last = args.runs.is_some_and(|most| runs >= most);
        let Some(every) = args.every.filter(|_| !stopped && !is_last) else {
            return Ok(ended.exit());
        };
        if ended == Ended::Hopelessly {
            return Ok(ended.exit());
        }
        tokio::select! {
            () = tokio::time::sleep_until(began + every) => {}
            () = &mut shutdown => return Ok(ended.exit()),
        }
    }
}

fn start(command: &[OsString]) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(command)
        .stdin(Stdio::null())
        .spawn()
}

/// Passes the end on: what a job has begun it leaves for the next run.
fn end(child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // It may be gone already.
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_for_later_is_no_failure_and_wrong_usage_stays_one() {
        for (status, exit) in [(0, 0), (3, 0), (1, 1), (2, 2), (4, 4), (101, 101)] {
            assert_eq!(Ended::of(status).exit(), exit);
        }
        assert_eq!(Ended::of(2), Ended::Hopelessly);
    }

    #[test]
    fn an_interval_is_a_time_of_at_least_a_second() {
        assert_eq!(parse_interval("90s"), Ok(Duration::from_secs(90)));
        for bad in ["", "0s", "999ms", "soon", "-1s"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }
}
