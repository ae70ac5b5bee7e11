//! How long a text is, in each of the three units that limits are written in.
//!
//! Our own limits are bytes. The systems whose prompts the profiles reproduce count Unicode scalar
//! values or the UTF-16 units of their host language; a limit never says less than which of them it
//! means.

use serde::{Deserialize, Serialize};

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values.
    Characters,
    /// Units of UTF-16: two for a character outside the basic plane.
    Utf16Units,
}

impl Measure {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
            Self::Utf16Units => "utf16_units",
        }
    }

    /// Returns how much one character counts.
    pub const fn of_char(self, character: char) -> u64 {
        match self {
            Self::Bytes => character.len_utf8() as u64,
            Self::Characters => 1,
            Self::Utf16Units => character.len_utf16() as u64,
        }
    }

    /// Returns the most bytes of UTF-8 that `count` of this unit can take. A character of 4 bytes has
    /// two UTF-16 units, so a unit has 3 at most.
    pub const fn most_bytes(self, count: u64) -> u64 {
        match self {
            Self::Bytes => count,
            Self::Characters => count.saturating_mul(4),
            Self::Utf16Units => count.saturating_mul(3),
        }
    }
}

/// The length of a text in every unit. Of bytes that are not UTF-8 the last two are only counts of what
/// begins like a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measures {
    /// Bytes.
    pub bytes: u64,
    /// Unicode scalar values.
    pub characters: u64,
    /// UTF-16 units.
    pub utf16_units: u64,
}

/// The lowest bit of each of eight bytes.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

impl Measures {
    /// Measures bytes that are in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let mut measures = Self::default();
        measures.push(bytes);
        measures
    }

    /// Adds the next bytes of a text; pieces may end inside a character.
    pub fn push(&mut self, piece: &[u8]) {
        let size = piece.len() as u64;
        self.bytes += size;
        if piece.is_ascii() {
            self.characters += size;
            self.utf16_units += size;
            return;
        }
        let (mut continuations, mut long_leads) = (0_u64, 0_u64);
        let words = piece.chunks_exact(8);
        let mut rest = [0; 8];
        rest[..words.remainder().len()].copy_from_slice(words.remainder());
        // Eight bytes at a time: the zeros that fill up the last word count as neither.
        for word in words.map(word_of).chain([u64::from_le_bytes(rest)]) {
            let (top, next) = (word >> 7, word >> 6);
            continuations += u64::from((top & !next & EACH_BYTE).count_ones());
            let lead = top & next & (word >> 5) & (word >> 4) & EACH_BYTE;
            long_leads += u64::from(lead.count_ones());
        }
        let characters = size - continuations;
        self.characters += characters;
        self.utf16_units += characters + long_leads;
    }

    /// Returns the length in one unit.
    pub const fn get(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Bytes => self.bytes,
            Measure::Characters => self.characters,
            Measure::Utf16Units => self.utf16_units,
        }
    }
}

fn word_of(eight: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(eight);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_unit_is_what_the_language_counts(
            text in "[ -~éß界🙂\u{10ffff}\n]{0,60}",
            cut in 0_usize..200,
        ) {
            let bytes = text.as_bytes();
            let (first, rest) = bytes.split_at(cut.min(bytes.len()));
            let mut measures = Measures::default();
            measures.push(first);
            measures.push(rest);
            prop_assert_eq!(measures.get(Measure::Bytes), text.len() as u64);
            prop_assert_eq!(measures.get(Measure::Characters), text.chars().count() as u64);
            prop_assert_eq!(measures.get(Measure::Utf16Units), text.encode_utf16().count() as u64);
            for measure in [Measure::Bytes, Measure::Characters, Measure::Utf16Units] {
                let sum: u64 = text.chars().map(|c| measure.of_char(c)).sum();
                prop_assert_eq!(measures.get(measure), sum);
                prop_assert!(measure.most_bytes(sum) >= text.len() as u64);
            }
        }
    }
}
