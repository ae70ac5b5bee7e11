//! The tool as a child process: its output in pieces, its exit status, the signals that are its.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::failure::Failure;

/// Bytes of one read, and thereby the size of what is passed on.
const READ_BYTES: usize = 64 << 10;

/// Shells report a command that was not found so.
const EXIT_NOT_FOUND: u8 = 127;
/// Shells report a command that cannot be executed so.
const EXIT_NOT_EXECUTABLE: u8 = 126;
/// Shells report the death by signal N as this plus N.
const EXIT_SIGNAL_BASE: i32 = 128;

/// What a running tool did.
#[derive(Debug)]
pub(super) enum Event {
    /// It printed this.
    Output(Bytes),
    /// Its output cannot be read on.
    Broken(io::Error),
}

/// A running tool.
#[derive(Debug)]
pub(super) struct Tool {
    child: Child,
    stdout: Option<ChildStdout>,
    // Held, so that the signals it forwards keep their handlers until the end.
    forwarding: tokio::task::JoinSet<()>,
}

impl Tool {
    /// Starts the command with our standard input and error.
    ///
    /// # Errors
    /// It is not there (127) or cannot be executed (126).
    pub(super) fn start(command: &[OsString]) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::usage("no command is given"))?;
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::inherit())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut child = started.map_err(|error| {
            let program = program.to_string_lossy();
            if error.kind() == ErrorKind::NotFound {
                Failure::new(format!("{program}: no such command"))
                    .with_hint("a shell's own words need the shell: spillbox run -- sh -c '…'")
                    .with_exit(EXIT_NOT_FOUND)
            } else {
                Failure::new(format!("{program}: {error}")).with_exit(EXIT_NOT_EXECUTABLE)
            }
        })?;
        let mut forwarding = tokio::task::JoinSet::new();
        forward_signals(child.id(), &mut forwarding);
        Ok(Self {
            stdout: child.stdout.take(),
            child,
            forwarding,
        })
    }

    /// Waits for what the tool does next; `None` once its output has ended.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let stdout = self.stdout.as_mut()?;
        let mut piece = BytesMut::with_capacity(READ_BYTES);
        let event = match stdout.read_buf(&mut piece).await {
            Ok(0) => None,
            Ok(_) => return Some(Event::Output(piece.freeze())),
            Err(error) => Some(Event::Broken(error)),
        };
        self.stdout = None;
        event
    }

    /// Waits for the tool's end and returns its status as a shell would.
    ///
    /// # Errors
    /// The operating system does not say how it ended.
    pub(super) async fn wait(mut self) -> Result<u8, Failure> {
        let status = self
            .child
            .wait()
            .await
            .map_err(|error| Failure::new(format!("cannot wait for the command: {error}")))?;
        self.forwarding.abort_all();
        Ok(status_of(status))
    }
}

fn status_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| EXIT_SIGNAL_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Passes on what ends programs, and stays alive to store and report what the tool printed until then.
/// A terminal sends its own Ctrl-C to the tool as well; a second one could be taken for impatience.
fn forward_signals(child: Option<u32>, tasks: &mut tokio::task::JoinSet<()>) {
    let pid = child
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    let at_terminal = io::stdin().is_terminal() || io::stderr().is_terminal();
    let forwarded = [
        (SignalKind::terminate(), Signal::TERM, true),
        (SignalKind::hangup(), Signal::HUP, true),
        (SignalKind::quit(), Signal::QUIT, !at_terminal),
        (SignalKind::interrupt(), Signal::INT, !at_terminal),
    ];
    for (kind, number, is_forwarded) in forwarded {
        let (Some(pid), Ok(mut arrived)) = (pid, signal(kind)) else {
            continue;
        };
        tasks.spawn(async move {
            while arrived.recv().await.is_some() {
                if is_forwarded {
                    // The tool may be gone already.
                    let _ = kill_process(pid, number);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_a_shell_would_say() {
        assert_eq!(status_of(ExitStatus::from_raw(0)), 0);
        assert_eq!(status_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(status_of(ExitStatus::from_raw(9)), 137);
        assert_eq!(status_of(ExitStatus::from_raw(15)), 143);
    }
}
