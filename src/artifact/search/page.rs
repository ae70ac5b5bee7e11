//! One reply of a search: what was found, and where to go on.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::cursor::Place;
use super::hit::{Found, Hit};
use super::query::SearchQuery;
use crate::limits::{CONTEXT_REACH_BYTES, HIT_TEXT_BYTES};

/// What a reply in JSON needs beside the hits.
const FRAME_BYTES: u64 = 256;

/// Why a reply does not hold every hit that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncatedReason {
    /// It has as many hits as were asked for.
    Limit,
    /// The next hit does not fit into it.
    MaxBytes,
    /// The time is over; nothing is wrong with the search.
    Deadline,
}

/// What a search has come to.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) hits: Vec<Hit>,
    /// Up to here everything was searched.
    pub(super) place: Place,
    /// `Some(None)`: the body was searched to its end.
    pub(super) ended: Option<Option<TruncatedReason>>,
}

/// Collects the hits of one reply within its bounds. What it has so far can be seen from outside while
/// the search is inside a slow line.
#[derive(Debug)]
pub(super) struct Page {
    context_lines: usize,
    limit: usize,
    budget_bytes: u64,
    hit_count: usize,
    progress: Arc<Mutex<Progress>>,
}

impl Page {
    pub(super) fn new(query: &SearchQuery, start: Place) -> Self {
        let progress = Progress {
            place: start,
            ..Progress::default()
        };
        Self {
            context_lines: query.context_lines,
            limit: query.limit,
            budget_bytes: query.max_bytes.saturating_sub(FRAME_BYTES),
            hit_count: 0,
            progress: Arc::new(Mutex::new(progress)),
        }
    }

    pub(super) fn progress(&self) -> Arc<Mutex<Progress>> {
        Arc::clone(&self.progress)
    }

    /// Returns how many bytes behind a line must be at hand to show its context.
    pub(super) fn context_reach_bytes(&self) -> usize {
        if self.context_lines == 0 {
            0
        } else {
            CONTEXT_REACH_BYTES
        }
    }

    pub(super) fn room_for_hits(&self) -> usize {
        self.limit - self.hit_count
    }

    /// Adds a hit, after which the search goes on at `next`, or breaks when it does not fit. The first
    /// one is always taken, so that whoever follows the cursors gets on.
    pub(super) fn add(
        &mut self,
        found: &Found,
        bytes: &[u8],
        offset: u64,
        next: Place,
    ) -> ControlFlow<()> {
        let mut hit = Hit::show(found, bytes, offset, HIT_TEXT_BYTES);
        if found.is_whole_line {
            hit.add_context(found, bytes, offset, self.context_lines);
        }
        if hit.cost_bytes() > self.budget_bytes {
            if self.hit_count > 0 {
                return ControlFlow::Break(());
            }
            hit = Hit::squeeze(found, bytes, offset, self.budget_bytes);
        }
        self.budget_bytes = self.budget_bytes.saturating_sub(hit.cost_bytes());
        self.hit_count += 1;
        let mut progress = self.lock();
        progress.hits.push(hit);
        progress.place = next;
        drop(progress);
        ControlFlow::Continue(())
    }

    /// Everything before `place` was searched, and its hits were added.
    pub(super) fn reached(&mut self, place: Place) {
        self.lock().place = place;
    }

    /// Ends the page; `reason` is why there may be more from `place` on.
    pub(super) fn end(&mut self, place: Place, reason: Option<TruncatedReason>) {
        let mut progress = self.lock();
        progress.place = place;
        progress.ended = Some(reason);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }
}

/// A search that panicked is reported as such; what it had found stays readable.
pub(super) fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
