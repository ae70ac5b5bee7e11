//! The words that callers choose in a lease: data, bounded, never part of a key.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::InvalidIdError;
use crate::limits::{
    MAX_HOLD_NAME_BYTES, MAX_OWNER_GENERATION_BYTES, MAX_OWNER_NAME_BYTES, MAX_REASON_BYTES,
    MAX_TRANSACTION_ID_BYTES,
};

macro_rules! bounded_text {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the text as the caller wrote it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidIdError { kind: $kind, rule: $rule })
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

bounded_text!(
    /// The name that an owner gives one lease; with it, the same request again is the same lease.
    TransactionId,
    "transaction_id",
    "1 to 200 bytes of UTF-8 without control characters, not `.` or `..`",
    |text| (1..=MAX_TRANSACTION_ID_BYTES).contains(&text.len())
        && text != "."
        && text != ".."
        && !text.chars().any(char::is_control)
);

bounded_text!(
    /// The memory system that holds the reference.
    OwnerName,
    "owner",
    "must match [a-z0-9][a-z0-9_-]{0,63}",
    |text| (1..=MAX_OWNER_NAME_BYTES).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
);

bounded_text!(
    /// The owner's own name of the state in which it holds the reference.
    OwnerGeneration,
    "owner_generation",
    "1 to 256 bytes of UTF-8 without control characters",
    |text| (1..=MAX_OWNER_GENERATION_BYTES).contains(&text.len())
        && !text.chars().any(char::is_control)
);

bounded_text!(
    /// Why a person did something, in their words.
    Reason,
    "reason",
    "1 to 800 bytes of UTF-8 without control characters",
    |text| (1..=MAX_REASON_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
);

bounded_text!(
    /// The name under which a person holds an artifact.
    HoldName,
    "name",
    "1 to 128 bytes of UTF-8 without control characters",
    |text| (1..=MAX_HOLD_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
);

/// What a hold's transaction id begins with.
const HOLD: &str = "hold:";

impl HoldName {
    /// Returns a transaction id of this name that was never used: `hold:{name}:{fresh}`.
    pub fn transaction_id(&self, fresh: &uuid::Uuid) -> TransactionId {
        TransactionId(format!("{HOLD}{self}:{fresh}").into())
    }

    /// Reads the name off a hold's transaction id; `None` where it has none.
    pub fn of(transaction_id: &TransactionId) -> Option<Self> {
        let rest = transaction_id.as_str().strip_prefix(HOLD)?;
        rest.rsplit_once(':')?.0.parse().ok()
    }
}

impl OwnerName {
    /// The owner of holds; no caller may use it for a lease of its own.
    pub fn hold() -> Self {
        Self("hold".into())
    }

    /// Returns whether this is the owner of holds.
    pub fn is_hold(&self) -> bool {
        &*self.0 == "hold"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holds_transaction_id_gives_its_name_back() {
        let fresh = uuid::Uuid::from_u128(7);
        for name in ["court order 7", "a:b", ":", &"x".repeat(128)] {
            let name: HoldName = name.parse().unwrap();
            let transaction_id = name.transaction_id(&fresh);
            assert_eq!(HoldName::of(&transaction_id), Some(name));
            let again: TransactionId = transaction_id.as_str().parse().unwrap();
            assert_eq!(again, transaction_id);
        }
        assert!("x".repeat(129).parse::<HoldName>().is_err());
        assert_eq!(HoldName::of(&"tx-1".parse().unwrap()), None);
    }

    #[test]
    fn names_are_bounded_and_strict() {
        for good in ["t", "tx-1", "Überweisung 7", "a/b", &"x".repeat(200)] {
            assert_eq!(good.parse::<TransactionId>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "a\nb", "\u{7f}", &"x".repeat(201)] {
            assert!(bad.parse::<TransactionId>().is_err(), "{bad:?}");
        }
        for good in ["memory", "0", "a_b-c", &"o".repeat(64)] {
            assert!(good.parse::<OwnerName>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a.b", "a b", &"o".repeat(65)] {
            assert!(bad.parse::<OwnerName>().is_err(), "{bad}");
        }
        assert!(OwnerName::hold().is_hold() && !"held".parse::<OwnerName>().unwrap().is_hold());
        assert_eq!("hold".parse(), Ok(OwnerName::hold()));
        assert!("17".parse::<OwnerGeneration>().is_ok());
        assert!("x".repeat(257).parse::<OwnerGeneration>().is_err());
        assert!("".parse::<Reason>().is_err() && "x".repeat(801).parse::<Reason>().is_err());
    }
}
