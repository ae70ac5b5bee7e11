//! What happened, one line per request and per step, and its hash.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spillbox::digest::{Sha256Digest, Sha256Hasher};

/// The lines so far.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Vec<String>>);

impl Trace {
    /// Adds a line.
    pub(crate) fn line(&self, at: Duration, host: &str, text: &str) {
        let (s, ms) = (at.as_secs(), at.subsec_millis());
        let (d, h, m, s) = (s / 86_400, s / 3_600 % 24, s / 60 % 60, s % 60);
        let line = format!("{d}d {h:02}:{m:02}:{s:02}.{ms:03} {host:<6} {text}");
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }

    /// The hash of all lines: equal for equal histories.
    pub(crate) fn hash(&self) -> Sha256Digest {
        let mut hasher = Sha256Hasher::default();
        for line in self.lines() {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        hasher.finish()
    }
}
