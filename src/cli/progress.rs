//! A bar on standard error for transfers that take a while, where a person watches.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// Smaller transfers are over before a bar says anything.
const WORTH_A_BAR_BYTES: u64 = 8 << 20;

/// Shows how much of a transfer is done; nothing away from a terminal.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Begins a transfer of `size_bytes`, if that is known.
    pub fn new(size_bytes: Option<u64>) -> Self {
        let is_long = size_bytes.is_none_or(|size| size >= WORTH_A_BAR_BYTES);
        if !is_long || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (bar, template) = match size_bytes {
            Some(size) => (
                ProgressBar::new(size),
                "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            ),
            None => (ProgressBar::no_length(), "{bytes} {bytes_per_sec}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(Some(bar))
    }

    /// Adds what was moved.
    pub fn add(&self, bytes: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes as u64);
        }
    }

    /// Shows nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
