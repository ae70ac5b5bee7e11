//! Writes what a counted store did into the service's metrics.

use crate::http::metrics::{Metrics, name};
use crate::store::StoreErrorKind;
use crate::store::keys::KeyClass;
use crate::store::metered::{StoreMeter, StoreRequest};

/// The meter of a service's store.
#[derive(Debug)]
pub struct StoreMetrics(Metrics);

impl StoreMetrics {
    /// Writes into `metrics`. The bytes of every class exist from the start: a rate needs a zero.
    pub fn new(metrics: Metrics) -> Self {
        for class in KeyClass::ALL {
            written(&metrics, class, 0);
        }
        Self(metrics)
    }
}

impl StoreMeter for StoreMetrics {
    fn record(&self, request: StoreRequest) {
        let Self(metrics) = self;
        let operation = ("operation", request.operation.as_str());
        let outcome = (
            "outcome",
            request.failure.map_or("ok", StoreErrorKind::as_str),
        );
        let counter = metrics.counter(name::STORE_REQUESTS, &[operation, outcome]);
        counter.increment(1);
        metrics
            .seconds(name::STORE_DURATION, &[operation])
            .record(request.elapsed);
        if let Some(class) = request.class.filter(|_| request.written_bytes > 0) {
            written(metrics, class, request.written_bytes);
        }
    }
}

fn written(metrics: &Metrics, class: KeyClass, bytes: u64) {
    let labels = [("key_class", class.as_str())];
    metrics
        .counter(name::STORE_WRITTEN_BYTES, &labels)
        .increment(bytes);
}
