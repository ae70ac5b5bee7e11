//! The first and the last bytes of a body: all that a preview may be made of.

use std::borrow::Cow;

/// The head and the tail of a body. They overlap when the body is shorter than both together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    head: Vec<u8>,
    tail: Vec<u8>,
    size_bytes: u64,
}

impl Windows {
    /// Takes the windows of a body that is in memory.
    pub fn of(body: &[u8], window_bytes: usize) -> Self {
        let mut builder = WindowBuilder::new(window_bytes, window_bytes);
        builder.push(body);
        builder.finish()
    }

    /// Returns the first bytes of the body.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the last bytes of the body.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Returns the size of the whole body.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Returns the body offset at which [`Windows::tail`] begins.
    pub fn tail_offset(&self) -> u64 {
        self.size_bytes - self.tail.len() as u64
    }

    /// Returns the whole body where the two windows cover it.
    pub fn whole(&self) -> Option<Cow<'_, [u8]>> {
        let head_len = self.head.len() as u64;
        if head_len == self.size_bytes {
            return Some(Cow::Borrowed(&self.head));
        }
        let overlap = head_len.checked_sub(self.tail_offset())?;
        let overlap = usize::try_from(overlap).ok()?;
        Some(Cow::Owned([&self.head[..], &self.tail[overlap..]].concat()))
    }
}

/// Keeps the windows of a body that streams by.
#[derive(Debug)]
pub struct WindowBuilder {
    head: Vec<u8>,
    head_bytes: usize,
    /// The last bytes seen; up to twice `tail_bytes`, so that it is moved down rarely.
    tail: Vec<u8>,
    tail_bytes: usize,
    size_bytes: u64,
}

impl WindowBuilder {
    /// Creates a builder that keeps the first `head_bytes` and the last `tail_bytes`.
    pub fn new(head_bytes: usize, tail_bytes: usize) -> Self {
        Self {
            head: Vec::new(),
            head_bytes,
            tail: Vec::new(),
            tail_bytes,
            size_bytes: 0,
        }
    }

    /// Adds `piece`.
    pub fn push(&mut self, piece: &[u8]) {
        let missing = self.head_bytes - self.head.len();
        self.head
            .extend_from_slice(&piece[..missing.min(piece.len())]);
        let newest = &piece[piece.len().saturating_sub(self.tail_bytes)..];
        if self.tail.len() + newest.len() > self.tail_bytes.saturating_mul(2) {
            let keep = self.tail_bytes - newest.len();
            let drop = self.tail.len().saturating_sub(keep);
            self.tail.drain(..drop);
        }
        self.tail.extend_from_slice(newest);
        self.size_bytes += piece.len() as u64;
    }

    /// Returns the windows.
    pub fn finish(mut self) -> Windows {
        let surplus = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..surplus);
        Windows {
            head: self.head,
            tail: self.tail,
            size_bytes: self.size_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_are_the_ends_of_the_body_at_any_split(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            window in 0_usize..120,
            piece_bytes in 1_usize..90,
        ) {
            let mut builder = WindowBuilder::new(window, window);
            for piece in body.chunks(piece_bytes) {
                builder.push(piece);
                prop_assert!(builder.tail.len() <= 2 * window);
            }
            let windows = builder.finish();
            prop_assert_eq!(windows.head(), &body[..window.min(body.len())]);
            prop_assert_eq!(windows.tail(), &body[body.len().saturating_sub(window)..]);
            let is_covered = body.len() <= 2 * window;
            let whole = windows.whole();
            prop_assert_eq!(whole.as_deref(), is_covered.then_some(&body[..]));
        }
    }
}
