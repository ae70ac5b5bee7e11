//! What the sender says about the bytes that it sent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whether the body is the tool's whole output, as the sender declares it. Never inferred from text:
/// another layer's cut looks like any other line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    /// All that the tool printed.
    Complete,
    /// A layer before this service had already cut it.
    UpstreamTruncated,
    /// The sender stopped at its own cap.
    Capped,
    /// The sender did not say.
    #[default]
    Unknown,
}

impl Completeness {
    /// Every value.
    pub const ALL: [Self; 4] = [
        Self::Complete,
        Self::UpstreamTruncated,
        Self::Capped,
        Self::Unknown,
    ];

    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::UpstreamTruncated => "upstream_truncated",
            Self::Capped => "capped",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "completeness must be complete, unknown, upstream_truncated or capped, the last two with a colon and what is lost where that is known"
)]
pub struct InvalidCompletenessError;

impl FromStr for Completeness {
    type Err = InvalidCompletenessError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|value| value.as_str() == text)
            .ok_or(InvalidCompletenessError)
    }
}

/// Reads `state` or `state:what is known lost`, as in `upstream_truncated:12000 characters`.
///
/// # Errors
/// The part before the first colon names no completeness.
pub fn parse_with_loss(
    text: &str,
) -> Result<(Completeness, Option<&str>), InvalidCompletenessError> {
    match text.split_once(':') {
        Some((state, lost)) => {
            let (state, lost) = (state.parse()?, lost.trim());
            if lost.is_empty() {
                return Ok((state, None));
            }
            match state {
                Completeness::UpstreamTruncated | Completeness::Capped => Ok((state, Some(lost))),
                // Nothing can be known to be lost of what is whole, or of what is not known.
                Completeness::Complete | Completeness::Unknown => Err(InvalidCompletenessError),
            }
        }
        None => Ok((text.parse()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_others_are_refused() {
        for value in Completeness::ALL {
            assert_eq!(value.as_str().parse(), Ok(value));
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(json, format!("\"{value}\""));
        }
        for bad in ["", "Complete", "truncated", "complete "] {
            assert_eq!(bad.parse::<Completeness>(), Err(InvalidCompletenessError));
        }
        assert_eq!(
            parse_with_loss("upstream_truncated: 12000 characters"),
            Ok((Completeness::UpstreamTruncated, Some("12000 characters")))
        );
        assert_eq!(parse_with_loss("capped:"), Ok((Completeness::Capped, None)));
        for bad in ["cut:1", "complete:1", "unknown:1"] {
            assert!(parse_with_loss(bad).is_err(), "{bad}");
        }
    }
}
