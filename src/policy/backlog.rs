//! Saves that run beside a program which does not wait for them: how many may be open before the next
//! call has to wait. Values are never held back; what waits is the start of a further call.

/// The bound of open saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Saves that may be open while another call starts.
    pub allowed: usize,
}

impl Backlog {
    /// Returns whether the next call may start while `open` saves are running.
    pub fn may_start(self, open: usize) -> bool {
        open <= self.allowed
    }
}
