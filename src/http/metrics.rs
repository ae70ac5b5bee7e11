//! What the service measures, in Prometheus' form.
//!
//! Each service has a recorder of its own instead of the process's global one, so that two services in
//! one process never mix. Labels are words of closed lists (route templates, methods, statuses, codes,
//! operations, classes of keys), so that no caller can make the number of series grow; no id, session,
//! tool or tenant is ever one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::artifact::library::LibraryLoad;
use crate::error::ErrorCode;
use crate::gc::status::Counts;
use crate::lease::owner::Status;
use crate::lease::reconcile::Reconciled;
use crate::lease::reconcile::summary::Kept;

pub mod name;

/// The buckets that OpenTelemetry names for HTTP servers, in seconds, up to 10.
const DURATION_BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

const ORIGIN: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The measurements of one service. Cheap to clone; clones share them.
#[derive(Clone)]
pub struct Metrics {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Starts with nothing measured. Counters of failures exist from the start: a rate needs a zero.
    pub fn new() -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets(&DURATION_BUCKETS)
            .expect("there are buckets")
            .build_recorder();
        let metrics = Self {
            handle: recorder.handle(),
            recorder: Arc::new(recorder),
        };
        name::describe_all(&*metrics.recorder);
        for code in ErrorCode::ALL {
            metrics.failures(*code).increment(0);
        }
        for status in Status::ALL {
            let status = [("status", status.as_str())];
            metrics.counter(name::RECONCILED, &status).increment(0);
        }
        metrics.counter(name::MISSING_REFERENCED, &[]).increment(0);
        // Never, as long as nobody says otherwise: an alert on its age fires where no job runs.
        metrics.gauge(name::RECONCILIATION_TIME, &[]).set(0.0);
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        metrics.gauge(name::BUILD_INFO, &version).set(1.0);
        metrics
    }

    /// Returns a counter; `labels` must be of closed lists.
    pub fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        self.recorder.register_counter(&key(name, labels), &ORIGIN)
    }

    /// Returns a gauge.
    pub fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        self.recorder.register_gauge(&key(name, labels), &ORIGIN)
    }

    /// Returns a histogram of seconds.
    pub fn seconds(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Histogram {
        self.recorder
            .register_histogram(&key(name, labels), &ORIGIN)
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, elapsed: Duration) {
        let code = status.to_string();
        let class = format!("{}xx", status / 100);
        let of = |status| [("method", method), ("route", route), ("status", status)];
        self.counter(name::REQUESTS, &of(&code)).increment(1);
        self.seconds(name::REQUEST_DURATION, &of(&class))
            .record(elapsed);
    }

    /// The failures of one code.
    pub(crate) fn failures(&self, code: ErrorCode) -> Counter {
        self.counter(name::FAILURES, &[("code", code.as_str())])
    }

    /// Counts a save that was answered with a receipt.
    pub(crate) fn saved(&self, size_bytes: u64, is_new: bool) {
        let outcome = if is_new { "new" } else { "repeat" };
        self.counter(name::SAVES, &[("outcome", outcome)])
            .increment(1);
        if is_new {
            self.counter(name::SAVED_BYTES, &[]).increment(size_bytes);
        }
    }

    /// Counts a lease that was reconciled by request.
    pub(crate) fn reconciled(&self, done: &Reconciled) {
        let status = [("status", done.finding.status.as_str())];
        self.counter(name::RECONCILED, &status).increment(1);
        if !done.missing_referenced.is_empty() {
            self.counter(name::MISSING_REFERENCED, &[]).increment(1);
        }
    }

    /// Shows what the last reconciliation of the whole store left behind.
    pub fn last_reconciliation(&self, kept: &Kept) {
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        let set = |name, value: i64| self.gauge(name, &[]).set(value as f64);
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let summary = &kept.summary;
        let unprotected = summary.of(Status::PublishedUnprotected);
        set(name::RECONCILIATION_TIME, kept.ended_at.as_second());
        set(name::LEASES_PENDING, number(summary.pending));
        set(name::LEASES_UNPROTECTED, number(unprotected));
        set(name::LEASES_MISSING, number(summary.missing_referenced));
        set(name::JOURNALS_UNREADABLE, number(summary.unreadable));
    }

    /// The bytes that a route has handed out of artifacts.
    pub(crate) fn read_back(&self, route: &str) -> Counter {
        self.counter(name::READ_BACK_BYTES, &[("route", route)])
    }

    /// Counts what an applied plan has decided.
    pub(crate) fn collected(&self, counts: &Counts) {
        for (status, _, tally) in counts.iter() {
            let label = [("status", status.as_str())];
            self.counter(name::GC_ARTIFACTS, &label)
                .increment(tally.count);
        }
    }

    /// Says when the process started, in seconds since 1970.
    pub fn started_at(&self, seconds: f64) {
        self.gauge(name::START_TIME, &[]).set(seconds);
    }

    /// Writes down what is known only by asking, and returns everything as text.
    pub(crate) fn render(&self, is_ready: bool, load: Option<(LibraryLoad, u64)>) -> String {
        let ready = if is_ready { 1.0 } else { 0.0 };
        self.gauge(name::READY, &[]).set(ready);
        if let Some((load, memory_limit)) = load {
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            let set = |name, value: u64| self.gauge(name, &[]).set(value as f64);
            set(name::UPLOADS, load.uploads as u64);
            set(name::UPLOAD_MEMORY, load.upload_memory_bytes);
            set(name::UPLOAD_MEMORY_LIMIT, memory_limit);
            set(name::SEARCHES, load.searches as u64);
        }
        self.handle.render()
    }

    /// Folds what was measured into the histograms: without it they grow until somebody scrapes.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels = labels.iter();
    let labels: Vec<_> = labels
        .map(|(name, value)| Label::new(*name, (*value).to_owned()))
        .collect();
    Key::from_parts(name, labels)
}

#[cfg(test)]
mod tests;
