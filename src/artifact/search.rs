//! Searching a body in the store, a page of hits at a time.
//!
//! The body streams from the store in verified pieces to a thread that is allowed to compute; the
//! caller's task only brings the pieces. What bounds it: the places for running searches, a wall-clock
//! deadline that a slow pattern meets as well as a slow store, the hits and bytes of a reply, and
//! memory that no body and no line makes larger. A page that ends early says why and where to go on;
//! whoever follows finds every hit once. A caller that leaves ends its search.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::cursor::Place;
use self::engine::{Engine, Start};
use self::feed::{Fed, Feed, PIECES_AHEAD};
use self::page::{Page, Progress, lock};
use crate::artifact::library::Library;
use crate::artifact::read::ReadError;
use crate::error::ErrorCode;
use crate::ids::{ArtifactRef, Tenant};
use crate::limits::{SEARCH_GRACE, SEARCH_QUEUE_TIMEOUT};

mod cursor;
mod engine;
mod feed;
mod hit;
mod matching_lines;
mod page;
mod pattern;
mod query;

pub use self::hit::Hit;
pub use self::page::TruncatedReason;
pub use self::query::{InvalidSearchError, Needle, SearchMode, SearchQuery};

/// One reply of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchPage {
    /// The hits, in the order of the body.
    pub matches: Vec<Hit>,
    /// Whether there may be more.
    pub truncated: bool,
    /// Why the page ends before the body does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<TruncatedReason>,
    /// Goes on exactly there; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Bytes of the body that this page covers.
    pub searched_bytes: u64,
    /// Whether U+FFFD stands for bytes that are not UTF-8: what is lossy says so.
    pub lossy: bool,
}

/// A search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// What was asked for is out of bounds.
    #[error(transparent)]
    Invalid(#[from] InvalidSearchError),
    /// The body could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Too many searches run at once.
    #[error("{0} search(es) are running already")]
    Saturated(usize),
    /// A defect of this service.
    #[error("the search ended early: {0}")]
    Internal(String),
}

impl SearchError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(
                InvalidSearchError::Pattern(_)
                | InvalidSearchError::PatternLength
                | InvalidSearchError::PatternLineFeed,
            ) => ErrorCode::InvalidPattern,
            Self::Invalid(
                InvalidSearchError::Context
                | InvalidSearchError::Limit
                | InvalidSearchError::MaxBytes
                | InvalidSearchError::Cursor,
            ) => ErrorCode::InvalidParameter,
            Self::Read(error) => error.code(),
            Self::Saturated(_) => ErrorCode::Saturated,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

impl From<JoinError> for SearchError {
    fn from(error: JoinError) -> Self {
        Self::Internal(error.to_string())
    }
}

impl Library {
    /// Searches an artifact's body and returns one page of hits.
    ///
    /// # Errors
    /// See [`SearchError`]; a deadline is none, it ends the page.
    pub async fn search(
        &self,
        tenant: &Tenant,
        artifact: &ArtifactRef,
        query: &SearchQuery,
    ) -> Result<SearchPage, SearchError> {
        query.check()?;
        let place = match &query.cursor {
            Some(cursor) => Place::from_cursor(cursor, artifact, &query.needle)?,
            None => Place::default(),
        };
        let permit = self.search_permit().await?;
        let deadline = Instant::now() + query.deadline;
        let needle = query.needle.clone();
        // Refusing a large pattern takes tens of milliseconds: too long for an async thread.
        let compiling = tokio::task::spawn_blocking(move || (pattern::compile(&needle), permit));
        let (matcher, permit) = compiling.await?;
        let matcher = matcher?;
        let page = Page::new(query, place);
        let progress = page.progress();
        let opening = Feed::open(self, tenant, artifact, Start::input_offset_of(place));
        if let Ok(feed) = timeout_at(deadline, opening).await {
            let feed = feed?;
            let engine = Engine::new(matcher, &feed.start(place), page);
            let search = Running::start(engine, deadline, permit);
            search.run(feed, deadline, &progress, place).await?;
        }
        let progress = std::mem::take(&mut *lock(&progress));
        // What has not ended by itself was left inside a slow line.
        let reason = progress.ended.unwrap_or(Some(TruncatedReason::Deadline));
        Ok(SearchPage {
            lossy: progress.hits.iter().any(|hit| hit.is_lossy),
            matches: progress.hits,
            truncated: reason.is_some(),
            reason,
            next_cursor: reason.map(|_| progress.place.to_cursor(artifact, &query.needle)),
            searched_bytes: progress.place.offset.saturating_sub(place.offset),
        })
    }

    async fn search_permit(&self) -> Result<OwnedSemaphorePermit, SearchError> {
        let waiting = Arc::clone(&self.searches).acquire_owned();
        match timeout(SEARCH_QUEUE_TIMEOUT, waiting).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => {
                Err(SearchError::Saturated(self.options.max_concurrent_searches))
            }
        }
    }
}

/// Between two looks at a search that is late and has found nothing to answer.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A search on its thread.
struct Running {
    worker: JoinHandle<()>,
    to: mpsc::Sender<Fed>,
    /// Dropped with the caller's future: a search that nobody waits for ends.
    _abandon: DropGuard,
}

impl Running {
    fn start(engine: Engine, deadline: Instant, permit: OwnedSemaphorePermit) -> Self {
        let (to, from) = mpsc::channel(PIECES_AHEAD);
        let abandoned = CancellationToken::new();
        let token = abandoned.clone();
        let worker = tokio::task::spawn_blocking(move || {
            search_here(engine, from, deadline, &token);
            // Held to the end of the work, also of one that nobody waits for any longer.
            drop(permit);
        });
        Self {
            worker,
            to,
            _abandon: abandoned.drop_guard(),
        }
    }

    /// Feeds the search until it ends or its time is over.
    async fn run(
        mut self,
        feed: Feed,
        deadline: Instant,
        progress: &Mutex<Progress>,
        start: Place,
    ) -> Result<(), SearchError> {
        tokio::select! {
            biased;
            done = &mut self.worker => return Ok(done?),
            fed = feed.send(&self.to) => fed?,
            () = sleep_until(deadline) => {
                // A full channel wakes the search as well, and then it looks at the clock.
                let _ = self.to.try_send(Fed::Late);
            }
        }
        if let Ok(done) = timeout_at(deadline + SEARCH_GRACE, &mut self.worker).await {
            return Ok(done?);
        }
        // Without any progress the same cursor would only lead here again.
        while lock(progress).place == start {
            if let Ok(done) = timeout(LOOK_AGAIN, &mut self.worker).await {
                return Ok(done?);
            }
        }
        Ok(())
    }
}

fn search_here(
    mut engine: Engine,
    mut from: Receiver<Fed>,
    deadline: Instant,
    abandoned: &CancellationToken,
) {
    let early_end = || {
        let is_over = abandoned.is_cancelled() || Instant::now() >= deadline;
        is_over.then_some(TruncatedReason::Deadline)
    };
    // An empty rest of a body is searched before anything comes.
    let mut flow = engine.push(&[], &early_end);
    while flow.is_continue() {
        match from.blocking_recv() {
            Some(Fed::Pieces(pieces)) => {
                flow = pieces
                    .iter()
                    .try_for_each(|piece| engine.push(piece, &early_end));
            }
            Some(Fed::Late) | None => return,
        }
    }
}
