//! A random choice out of a stream of unknown length, each with the same chance.

use uuid::Uuid;

/// At most so many of everything that was offered.
#[derive(Debug)]
pub(super) struct Sample<T> {
    most: usize,
    offered: u64,
    pub(super) kept: Vec<T>,
}

impl<T> Sample<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            offered: 0,
            kept: Vec::new(),
        }
    }

    /// Offers one more; `chance` is fresh for each.
    pub(super) fn offer(&mut self, item: T, chance: Uuid) {
        self.offered += 1;
        if self.kept.len() < self.most {
            self.kept.push(item);
            return;
        }
        // The lower 62 bits of a UUIDv7 are random.
        let random = u64::from_be_bytes(chance.as_bytes()[8..].try_into().expect("eight bytes"));
        let place = (random & (u64::MAX >> 2)) % self.offered;
        if let Some(kept) = usize::try_from(place)
            .ok()
            .and_then(|place| self.kept.get_mut(place))
        {
            *kept = item;
        }
    }
}
