//! What becomes of a tool's output while it is produced.
//!
//! Small text is held and printed. As soon as there is more, everything goes to the store as it comes,
//! in constant memory; only the two ends are kept beside it, for the case that the store fails.
//!
//! The store is opened when it is needed: a small result neither waits for it nor leaves a trace there.

use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::artifact::measure::Measures;
use crate::artifact::windows::{WindowBuilder, Windows};
use crate::cli::failure::Failure;
use crate::cli::run::child::Event;
use crate::cli::run::hold::{HoldRule, MAX_HELD_BYTES};
use crate::cli::spool::{Spool, SpoolCopy};
use crate::cli::steady::steady;
use crate::cli::target::Target;
use crate::cli::transport::Transport;
use crate::cli::upload::{SavedReceipt, Upload, media_type_of};
use crate::http::api_path::ApiPath;

/// Pieces on their way to the store; with the piece at either end at most some 0.5 MiB.
const PIECES_IN_FLIGHT: usize = 4;

/// A store that takes nothing for this long, or does not answer after it has everything, has failed:
/// the tool's result must not wait for it without end. Longer than the retries of one store request.
const STALL_TIMEOUT: Duration = Duration::from_secs(180);

/// Time for a failed save to take back what it has sent.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// What became of an output.
#[derive(Debug)]
pub(super) enum Captured {
    /// Small text: printed as it is.
    Inline(String),
    /// Stored.
    Stored(SavedReceipt),
    /// Too large to print, and not stored.
    Lost {
        /// Its two ends.
        windows: Windows,
        /// The whole text, where the profile prints it and it was held.
        original: Option<String>,
        /// Why it was not stored.
        failure: Failure,
        /// The spool that all of it is kept on until the service is back.
        kept: Option<PathBuf>,
    },
}

/// An output that is being captured.
#[derive(Debug)]
pub(super) struct Capture {
    target: Target,
    transport: Option<Transport>,
    path: ApiPath,
    rule: HoldRule,
    measures: Measures,
    windows: WindowBuilder,
    /// Everything, where the profile prints the original of what could not be stored.
    original: Option<Vec<u8>>,
    /// Everything, until there is too much to print.
    held: Vec<u8>,
    upload: Option<RunningUpload>,
    failure: Option<Failure>,
    spool: Option<Spool>,
    /// Everything, from the moment that it is sent.
    copy: Option<SpoolCopy>,
}

#[derive(Debug)]
struct RunningUpload {
    /// `None` is the end; a channel that closes without it cuts the body off.
    pieces: mpsc::Sender<Option<Bytes>>,
    answer: JoinSet<Result<SavedReceipt, Failure>>,
}

impl Capture {
    /// Begins with nothing; what is too large to print goes to `path`.
    pub(super) fn new(target: Target, path: ApiPath, rule: HoldRule) -> Self {
        let window_bytes = rule.window_bytes;
        Self {
            target,
            transport: None,
            path,
            measures: Measures::default(),
            windows: WindowBuilder::new(window_bytes, window_bytes),
            original: rule.keeps_original.then(Vec::new),
            rule,
            held: Vec::new(),
            upload: None,
            failure: None,
            spool: None,
            copy: None,
        }
    }

    /// Keeps what the service is not there to take on this spool.
    pub(super) fn keep_on(&mut self, spool: Spool) {
        self.spool = Some(spool);
    }

    /// Takes what the tool did.
    pub(super) async fn take(&mut self, event: Event) {
        match event {
            Event::Output(piece) => self.take_output(piece).await,
            Event::Broken(error) => {
                // Ends the upload as incomplete: half an output must not be stored as a whole one.
                let failure = format!("cannot read the command's output: {error}");
                self.fail(Failure::new(failure));
                (self.spool, self.copy) = (None, None);
            }
        }
    }

    async fn take_output(&mut self, piece: Bytes) {
        self.windows.push(&piece);
        self.measures.push(&piece);
        if let Some(original) = &mut self.original {
            original.extend_from_slice(&piece);
            if original.len() > MAX_HELD_BYTES {
                self.original = None;
            }
        }
        if let Some(copy) = &mut self.copy {
            copy.push(&piece).await;
        }
        if self.upload.is_some() {
            return self.send(Some(piece)).await;
        }
        if self.failure.is_some() {
            return;
        }
        self.held.extend_from_slice(&piece);
        if self.rule.is_exceeded_by(&self.measures) {
            let held = Bytes::from(std::mem::take(&mut self.held));
            self.copy_of(&held).await;
            self.start_upload(&held).await;
            self.send(Some(held)).await;
        }
    }

    /// Begins a copy of what is about to be sent.
    async fn copy_of(&mut self, held: &[u8]) {
        if let Some(spool) = self.spool.clone() {
            let mut copy = SpoolCopy::start(spool);
            copy.push(held).await;
            self.copy = Some(copy);
        }
    }

    /// Opens the place to store at.
    async fn connect(&mut self) -> Result<Transport, Failure> {
        let opened = timeout(STALL_TIMEOUT, self.target.clone().open()).await;
        let transport = opened.unwrap_or_else(|_| Err(stalled()))?;
        self.transport = Some(transport.clone());
        Ok(transport)
    }

    /// Starts to send; the size is not known yet.
    async fn start_upload(&mut self, held: &[u8]) {
        let transport = match self.connect().await {
            Ok(transport) => transport,
            Err(failure) => return self.fail(failure),
        };
        let (pieces, arriving) = mpsc::channel(PIECES_IN_FLIGHT);
        let upload = Upload {
            path: self.path.clone(),
            media_type: media_type_of(held, false),
            size_bytes: None,
            body: body_of(arriving),
        };
        let mut answer = JoinSet::new();
        answer.spawn(async move { upload.send(&transport).await });
        self.upload = Some(RunningUpload { pieces, answer });
    }

    async fn send(&mut self, piece: Option<Bytes>) {
        let Some(upload) = &mut self.upload else {
            return;
        };
        match timeout(STALL_TIMEOUT, upload.pieces.send(piece)).await {
            Ok(Ok(())) => {}
            // Nobody takes the rest: the answer is there, and it cannot be a good one.
            Ok(Err(_)) => {
                let failure = match answer_of(&mut upload.answer).await {
                    Ok(_) => Failure::new("the save ended before the output did"),
                    Err(failure) => failure,
                };
                self.fail(failure);
            }
            Err(_) => self.fail(stalled()),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.upload = None;
        self.held = Vec::new();
        self.failure.get_or_insert(failure);
    }

    /// Decides at the end of the output.
    pub(super) async fn finish(mut self) -> Captured {
        let decided = self.decide().await;
        if let Some(transport) = &self.transport {
            // What a failed save leaves is the collector's, should it not end in time.
            let _ = timeout(CLEANUP_TIMEOUT, transport.close()).await;
        }
        let mut failure = match decided {
            Ok(captured) => return captured,
            Err(failure) => failure,
        };
        let mut kept = None;
        if let (true, Some(copy), Some(spool)) = (failure.is_away, self.copy, self.spool) {
            match copy.keep(self.path).await {
                Ok(()) => kept = Some(spool.directory().to_owned()),
                Err(error) => failure.message.push_str(&format!("; {error}")),
            }
        }
        Captured::Lost {
            windows: self.windows.finish(),
            original: self
                .original
                .and_then(|bytes| String::from_utf8(bytes).ok()),
            failure,
            kept,
        }
    }

    async fn decide(&mut self) -> Result<Captured, Failure> {
        if self.upload.is_none() && self.failure.is_none() {
            return match String::from_utf8(std::mem::take(&mut self.held)) {
                Ok(text) if self.rule.admits(&text) => Ok(Captured::Inline(text)),
                Ok(text) => self.store_whole(text.into_bytes().into()).await,
                // Bytes cannot stand in a prompt, so they are stored whatever their size.
                Err(error) => self.store_whole(error.into_bytes().into()).await,
            };
        }
        self.send(None).await;
        match self.upload.take() {
            Some(mut upload) => answer_of(&mut upload.answer).await.map(Captured::Stored),
            None => Err(self.failure.take().unwrap_or_else(stalled)),
        }
    }

    async fn store_whole(&mut self, body: Bytes) -> Result<Captured, Failure> {
        self.copy_of(&body).await;
        let transport = self.connect().await?;
        let upload = Upload {
            path: self.path.clone(),
            media_type: media_type_of(&body, true),
            size_bytes: Some(body.len() as u64),
            body: Body::from(body),
        };
        let answer = timeout(STALL_TIMEOUT, upload.send(&transport)).await;
        answer
            .unwrap_or_else(|_| Err(stalled()))
            .map(Captured::Stored)
    }
}

/// The body that the pieces make. Half an output must not be stored as a whole one, so only a stated
/// end ends it well.
fn body_of(arriving: mpsc::Receiver<Option<Bytes>>) -> Body {
    let pieces = stream::unfold(Some(arriving), |arriving| async {
        let mut arriving = arriving?;
        match arriving.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(arriving))),
            Some(None) => None,
            None => Some((Err(std::io::Error::other("the output was cut off")), None)),
        }
    });
    Body::from_stream(steady(pieces))
}

async fn answer_of(
    answer: &mut JoinSet<Result<SavedReceipt, Failure>>,
) -> Result<SavedReceipt, Failure> {
    match timeout(STALL_TIMEOUT, answer.join_next()).await {
        Ok(Some(Ok(answer))) => answer,
        Ok(Some(Err(error))) => Err(Failure::new(format!("the save ended early: {error}"))),
        Ok(None) => Err(Failure::new("the save gave no answer")),
        Err(_) => Err(stalled()),
    }
}

fn stalled() -> Failure {
    let seconds = STALL_TIMEOUT.as_secs();
    Failure::new(format!("the store took nothing for {seconds} s")).away()
}

#[cfg(test)]
mod tests;
