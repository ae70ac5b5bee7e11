//! Every metric's name and meaning; `docs/OPERATIONS.md` lists the same.

use metrics::{KeyName, Recorder, Unit};

/// How a metric is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts per bucket, in seconds.
    Seconds,
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident: $kind:ident = $text:literal, $help:literal;)+) => {
        $($(#[$doc])* #[doc = $help] pub const $name: &str = $text;)+

        /// Every metric: name, kind, meaning.
        pub const ALL: &[(&str, Kind, &str)] = &[$(($text, Kind::$kind, $help),)+];
    };
}

metrics! {
    BUILD_INFO: Gauge = "spillbox_build_info", "1; the label is the version";
    FAILURES: Counter = "spillbox_failures_total", "Requests answered with an error, by its code";
    GC_ARTIFACTS: Counter = "spillbox_gc_artifacts_total",
        "Artifacts that applied plans have decided about, by status";
    JOURNALS_UNREADABLE: Gauge = "spillbox_reconciliation_unreadable_journals",
        "Journals that the last reconciliation of the whole store could not read";
    LEASES_MISSING: Gauge = "spillbox_reconciliation_missing_referenced",
        "Leases whose artifact was not there in the last reconciliation of the whole store";
    LEASES_PENDING: Gauge = "spillbox_reconciliation_pending_leases",
        "PREPARED leases that the last reconciliation of the whole store could not decide";
    LEASES_UNPROTECTED: Gauge = "spillbox_reconciliation_published_unprotected",
        "Leases that an operator ended and whose owner still showed the reference then";
    MISSING_REFERENCED: Counter = "spillbox_missing_referenced_total",
        "Leases reconciled by request whose artifact was not there";
    READ_BACK_BYTES: Counter = "spillbox_read_back_bytes_total",
        "Bytes of successful replies below a locator, by route";
    READY: Gauge = "spillbox_ready", "1 while /readyz says yes";
    RECONCILED: Counter = "spillbox_reconciled_total",
        "Leases reconciled by request, by what became of them";
    RECONCILIATION_TIME: Gauge = "spillbox_reconciliation_timestamp_seconds",
        "When the last reconciliation of the whole store ended, since 1970; 0: never";
    REQUEST_DURATION: Seconds = "spillbox_http_request_duration_seconds",
        "Time until a reply's head, by method, route and class of status";
    REQUESTS: Counter = "spillbox_http_requests_total",
        "Requests answered, by method, route and status";
    SAVED_BYTES: Counter = "spillbox_saved_bytes_total", "Bytes of bodies that became artifacts";
    SAVES: Counter = "spillbox_saves_total", "Saves answered with a receipt: new, or a repeat";
    SEARCHES: Gauge = "spillbox_searches_in_flight", "Searches that are running";
    START_TIME: Gauge = "process_start_time_seconds", "When the process started, since 1970";
    STORE_DURATION: Seconds = "spillbox_store_request_duration_seconds",
        "Time until the store's answer, by operation";
    STORE_REQUESTS: Counter = "spillbox_store_requests_total",
        "Requests to the store, by operation and outcome";
    STORE_WRITTEN_BYTES: Counter = "spillbox_store_written_bytes_total",
        "Bytes written to the store and acknowledged, by class of key";
    UPLOAD_MEMORY: Gauge = "spillbox_upload_memory_reserved_bytes",
        "Memory reserved for the bodies of running uploads";
    UPLOAD_MEMORY_LIMIT: Gauge = "spillbox_upload_memory_limit_bytes",
        "Memory that the bodies of running uploads may take";
    UPLOADS: Gauge = "spillbox_uploads_in_flight", "Uploads that are running";
}

pub(super) fn describe_all(recorder: &impl Recorder) {
    for (name, kind, help) in ALL {
        let key = KeyName::from_const_str(name);
        match kind {
            Kind::Counter => recorder.describe_counter(key, None, (*help).into()),
            Kind::Gauge => recorder.describe_gauge(key, None, (*help).into()),
            Kind::Seconds => recorder.describe_histogram(key, Some(Unit::Seconds), (*help).into()),
        }
    }
}
