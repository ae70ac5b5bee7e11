//! A part of all sessions, by the beginning of their keys, for collections that share the work.
//!
//! Session keys are hashes, so that parts are of about one size. Each session is in exactly one part: its
//! journal is opened by one plan, and parts may be planned and applied side by side. Keys that are none
//! of ours may begin with anything; only a plan of everything counts all of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::SessionKey;

/// The first character of a session key has three bits, the next one five: this many beginnings of two.
const BEGINNINGS: u16 = 256;

/// Beginnings of one character.
const FIRST: u16 = 8;

/// Crockford's base32, in the order of its values, which is the byte order of its characters.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// One of 2, 4, 8, … 256 parts, written `K/N` with K from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    index: u16,
    of: u16,
}

/// The text is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a shard is K/N, with N one of 2, 4, 8, 16, 32, 64, 128, 256 and K from 1 to N")]
pub struct InvalidShardError;

impl Shard {
    /// Returns part `number`, from 1, of `of`.
    ///
    /// # Errors
    /// `of` is no power of two from 2 to 256, or `number` is not from 1 to `of`.
    pub const fn new(number: u16, of: u16) -> Result<Self, InvalidShardError> {
        let is_possible = of >= 2 && of <= BEGINNINGS && of.is_power_of_two();
        if is_possible && number >= 1 && number <= of {
            let index = number - 1;
            Ok(Self { index, of })
        } else {
            Err(InvalidShardError)
        }
    }

    /// Returns whether it is the first one, which counts what belongs to none.
    pub const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Returns what the keys of its sessions begin with, in order.
    pub fn beginnings(self) -> Vec<String> {
        let first = |n: u16| char::from(DIGITS[usize::from(n)]);
        if self.of <= FIRST {
            let each = FIRST / self.of;
            let ours = self.index * each..(self.index + 1) * each;
            return ours.map(|n| first(n).to_string()).collect();
        }
        let each = BEGINNINGS / self.of;
        let ours = self.index * each..(self.index + 1) * each;
        ours.map(|n| [first(n / 32), first(n % 32)].into_iter().collect())
            .collect()
    }

    /// Returns whether a session is in this part.
    pub fn contains(self, session_key: &SessionKey) -> bool {
        let key = session_key.to_string();
        let beginnings = self.beginnings();
        beginnings
            .iter()
            .any(|beginning| key.starts_with(beginning))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

impl FromStr for Shard {
    type Err = InvalidShardError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let (number, of) = text.split_once('/').ok_or(InvalidShardError)?;
        if !is_plain(number) || !is_plain(of) {
            return Err(InvalidShardError);
        }
        let parse = |part: &str| part.parse().map_err(|_| InvalidShardError);
        Self::new(parse(number)?, parse(of)?)
    }
}

impl Serialize for Shard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SessionId, Tenant};

    #[test]
    fn every_session_is_in_exactly_one_shard() {
        let tenant = Tenant::default();
        for of in [2, 4, 8, 16, 32, 64, 128, 256] {
            let shards: Vec<Shard> = (1..=of).map(|n| Shard::new(n, of).unwrap()).collect();
            let beginnings: Vec<String> = shards.iter().flat_map(|s| s.beginnings()).collect();
            assert!(beginnings.is_sorted(), "{of}");
            for n in 0..300 {
                let session: SessionId = format!("session {n}").parse().unwrap();
                let key = SessionKey::derive(&tenant, &session);
                let homes = shards.iter().filter(|shard| shard.contains(&key)).count();
                assert_eq!(homes, 1, "{of} {key}");
            }
        }
        let all = |of| -> usize {
            let shards = (1..=of).map(|n| Shard::new(n, of).unwrap());
            shards.map(|shard| shard.beginnings().len()).sum()
        };
        assert_eq!((all(2), all(8), all(16), all(256)), (8, 8, 256, 256));
    }

    #[test]
    fn a_shard_is_read_as_it_is_written_and_nothing_else_is() {
        let shard: Shard = "3/8".parse().unwrap();
        assert_eq!(shard.to_string(), "3/8");
        assert_eq!(shard.beginnings(), ["2"]);
        assert_eq!("16/16".parse::<Shard>().unwrap().beginnings()[15], "7z");
        for bad in [
            "", "3", "0/8", "9/8", "1/1", "1/3", "1/512", "+1/8", "1/ 8", "1/8/8",
        ] {
            assert_eq!(bad.parse::<Shard>(), Err(InvalidShardError), "{bad}");
        }
    }
}
