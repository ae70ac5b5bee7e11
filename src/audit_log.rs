//! Writes the audit stream: JSON lines, appended to a file or to standard output.
//!
//! Lines that are waiting go out together, in one write and, to a file, one fsync: a line is on the disk
//! moments after its reply ended, and a busy service pays one fsync for many lines. A write that fails
//! is tried again from the byte where it stopped; meanwhile the queue fills, and then the service refuses
//! requests instead of losing lines ([`crate::http::audit`], ADR 11).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::signal::unix::Signal;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use crate::http::audit::AuditEvent;
use crate::limits::{AUDIT_BATCH_LINES, AUDIT_END_TIME, AUDIT_RETRY_PAUSE};

mod output;

pub use output::{AuditTarget, OpenedAudit};

/// Where bytes of the stream go. A trait, so that tests have disks that fail.
trait Output: Send + 'static {
    /// Writes some of `bytes`, at least one, and returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes what was written last.
    fn sync(&mut self) -> io::Result<()>;

    /// Goes on with a fresh file under the same name, after a rotation.
    fn reopen(&mut self) -> io::Result<()>;
}

/// A running writer.
#[derive(Debug)]
pub struct AuditWriter {
    tasks: TaskTracker,
    stop: CancellationToken,
    reopen: Arc<Notify>,
    /// Lines that arrived and could not be written so far.
    unwritten: Arc<AtomicUsize>,
}

impl AuditWriter {
    /// Starts to write the lines that arrive.
    pub fn start(opened: OpenedAudit, lines: mpsc::Receiver<AuditEvent>) -> Self {
        Self::start_on(opened, lines)
    }

    fn start_on(output: impl Output, lines: mpsc::Receiver<AuditEvent>) -> Self {
        let writer = Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            reopen: Arc::default(),
            unwritten: Arc::default(),
        };
        let job = Job {
            output: Some(output),
            lines,
            stop: writer.stop.clone(),
            reopen: Arc::clone(&writer.reopen),
            unwritten: Arc::clone(&writer.unwritten),
        };
        writer.tasks.spawn(job.run());
        writer
    }

    /// Goes on with a fresh file under the same name at each of these signals, as programs that rotate
    /// logs send them. Lines that wait already may still go to the old file.
    pub fn reopen_at(&self, mut signals: Signal) {
        let (stop, reopen) = (self.stop.clone(), Arc::clone(&self.reopen));
        self.tasks.spawn(async move {
            let asking = async {
                while signals.recv().await.is_some() {
                    reopen.notify_one();
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = asking => {}
            }
        });
    }

    /// Takes no more lines, and writes those whose requests are over or end soon; gives up after
    /// [`AUDIT_END_TIME`] and says so.
    pub async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        let ended = tokio::time::timeout(AUDIT_END_TIME, self.tasks.wait()).await;
        if ended.is_err() {
            let lines = self.unwritten.load(Ordering::Relaxed);
            error!(
                lines,
                "the audit stream ends incomplete: its last lines could not be written"
            );
        }
    }
}

struct Job<O> {
    /// Away while a blocking thread writes.
    output: Option<O>,
    lines: mpsc::Receiver<AuditEvent>,
    stop: CancellationToken,
    reopen: Arc<Notify>,
    unwritten: Arc<AtomicUsize>,
}

impl<O: Output> Job<O> {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(AUDIT_BATCH_LINES);
        loop {
            let is_open = !self.lines.is_closed();
            tokio::select! {
                count = self.lines.recv_many(&mut batch, AUDIT_BATCH_LINES) => {
                    if count == 0 {
                        return;
                    }
                    self.put(encode(&batch), count).await;
                    batch.clear();
                }
                () = self.stop.cancelled(), if is_open => self.lines.close(),
                () = self.reopen.notified() => self.go_on_with_a_fresh_file().await,
            }
        }
    }

    /// Writes all of `bytes`, which are `count` lines, however long that takes.
    async fn put(&mut self, bytes: Vec<u8>, count: usize) {
        let mut left = bytes;
        let mut failures = 0_u64;
        loop {
            let (rest, written) = self.blocking(move |output| put_once(output, left)).await;
            left = rest;
            match written {
                Ok(()) => {
                    if failures > 0 {
                        info!(failures, "the audit stream is being written again");
                    }
                    self.unwritten.store(0, Ordering::Relaxed);
                    return;
                }
                Err(error) => {
                    // Once when it begins, then once a minute: the log may be on the same disk.
                    if failures.is_multiple_of(60) {
                        error!(%error, "the audit stream cannot be written; requests will be refused until it can");
                    }
                    failures += 1;
                    let waiting = count + self.lines.len();
                    self.unwritten.store(waiting, Ordering::Relaxed);
                    tokio::time::sleep(AUDIT_RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn go_on_with_a_fresh_file(&mut self) {
        match self.blocking(Output::reopen).await {
            Ok(()) => info!("opened the audit stream's file again"),
            Err(error) => {
                error!(%error, "cannot open the audit stream's file again; the old one goes on")
            }
        }
    }

    /// Runs `work` on a thread that may wait for a disk.
    async fn blocking<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut O) -> T + Send + 'static,
    ) -> T {
        let mut output = self.output.take().expect("no work is running");
        let working = tokio::task::spawn_blocking(move || {
            let done = work(&mut output);
            (output, done)
        });
        let (output, done) = working.await.expect("writing does not panic");
        self.output = Some(output);
        done
    }
}

/// Writes what it can and returns the rest with the error that stopped it.
fn put_once<O: Output>(output: &mut O, mut left: Vec<u8>) -> (Vec<u8>, io::Result<()>) {
    let mut written = 0;
    while written < left.len() {
        match output.write(&left[written..]) {
            Ok(0) => {
                return (
                    left.split_off(written),
                    Err(io::ErrorKind::WriteZero.into()),
                );
            }
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (left.split_off(written), Err(error)),
        }
    }
    (Vec::new(), output.sync())
}

fn encode(batch: &[AuditEvent]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in batch {
        serde_json::to_writer(&mut bytes, event).expect("ids, numbers and words are always JSON");
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests;
