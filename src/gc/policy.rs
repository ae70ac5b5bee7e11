//! What a collection may do: times and limits, checked before anything is listed, and frozen in the plan
//! so that plan and apply never read them apart.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lease::canonical::MAX_INTEGER;
use crate::limits::{DEFAULT_GC_SHARE, GC_MIN_PLAN_AGE, GC_SETTLE, MAX_ORPHAN_TTL, MIN_ORPHAN_TTL};

/// A part of a whole, in ten-thousandths, written as a decimal fraction between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

/// The text is not a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a share is a decimal fraction from 0 to 1 with at most four digits after the point")]
pub struct InvalidShareError;

impl Share {
    /// All of it.
    pub const ALL: Self = Self(10_000);

    /// Returns a share of so many ten-thousandths.
    ///
    /// # Errors
    /// More than 10,000.
    pub const fn of_ten_thousandths(parts: u16) -> Result<Self, InvalidShareError> {
        if parts <= 10_000 {
            Ok(Self(parts))
        } else {
            Err(InvalidShareError)
        }
    }

    /// Returns this share of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.0) / 10_000;
        u64::try_from(share).expect("a part of a u64")
    }
}

impl FromStr for Share {
    type Err = InvalidShareError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let is_well_formed = matches!(whole, "0" | "1") && fraction.len() <= 4;
        if !is_well_formed || !is_digits(fraction) || text.ends_with('.') {
            return Err(InvalidShareError);
        }
        let fraction = format!("{fraction:0<4}").parse::<u16>();
        let parts = fraction.map_err(|_| InvalidShareError)?;
        Self::of_ten_thousandths(parts + if whole == "1" { 10_000 } else { 0 })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What an operator asks of one collection; absent is the default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyRequest {
    /// Grace of an artifact that nothing refers to, in seconds; absent: the store's.
    pub orphan_ttl_seconds: Option<u64>,
    /// At most so many artifacts go; 0 deletes nothing; absent: no limit.
    pub max_deletions: Option<u64>,
    /// At most this share of the live artifacts goes, from 100 of them on; absent: half.
    pub max_share: Option<Share>,
    /// Whether nothing but a plan is made.
    pub dry_run: bool,
}

impl Default for PolicyRequest {
    fn default() -> Self {
        Self {
            orphan_ttl_seconds: None,
            max_deletions: None,
            max_share: None,
            dry_run: true,
        }
    }
}

/// What the settings say of every collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicySettings {
    /// Plans younger than this are not applied: an artifact is seen twice before it goes.
    pub min_plan_age: Duration,
    /// Time between `condemned` and the first delete.
    pub settle: Duration,
    /// Whether times below their floors are allowed (tests, demos).
    pub allow_short_times: bool,
    /// Whether the store serves one host, where the two times above may be 0.
    pub is_one_host: bool,
}

impl Default for PolicySettings {
    fn default() -> Self {
        Self {
            min_plan_age: GC_MIN_PLAN_AGE,
            settle: GC_SETTLE,
            allow_short_times: false,
            is_one_host: false,
        }
    }
}

/// What a plan may do; frozen in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GcPolicy {
    /// Grace of an artifact that nothing refers to.
    pub orphan_ttl_seconds: u64,
    /// At most so many artifacts go.
    pub max_deletions: Option<u64>,
    /// At most this share of the live artifacts goes, from 100 of them on.
    pub max_share: Share,
    /// Earlier the plan is not applied.
    pub min_plan_age_seconds: u64,
    /// Time between `condemned` and the first delete.
    pub settle_seconds: u64,
    /// Whether times below their floors were allowed.
    pub allow_short_times: bool,
}

/// A policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The plan would take what receipts of this store have promised to keep.
    #[error(
        "orphan_ttl: {asked_seconds} s is shorter than the {store_seconds} s that this store's receipts promise"
    )]
    BelowStoreTtl {
        /// What was asked for.
        asked_seconds: u64,
        /// What the store promises.
        store_seconds: u64,
    },
    /// A value is out of its bounds.
    #[error("{key}: {rule}")]
    OutOfBounds {
        /// The setting.
        key: &'static str,
        /// What it may be.
        rule: &'static str,
    },
}

impl GcPolicy {
    /// Puts request, settings and the store's promise together.
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn new(
        request: &PolicyRequest,
        settings: &PolicySettings,
        store_ttl: Duration,
    ) -> Result<Self, PolicyError> {
        let refuse = |key, rule| Err(PolicyError::OutOfBounds { key, rule });
        let store_seconds = store_ttl.as_secs();
        let orphan_ttl_seconds = request.orphan_ttl_seconds.unwrap_or(store_seconds);
        if request.orphan_ttl_seconds == Some(0) {
            let rule = "0 says neither `now` nor `never`; DELETE erases now, a hold keeps for ever";
            return refuse("orphan_ttl", rule);
        }
        if orphan_ttl_seconds < store_seconds {
            return Err(PolicyError::BelowStoreTtl {
                asked_seconds: orphan_ttl_seconds,
                store_seconds,
            });
        }
        if orphan_ttl_seconds > MAX_ORPHAN_TTL.as_secs() {
            return refuse("orphan_ttl", "at most 3650 days");
        }
        if request
            .max_deletions
            .is_some_and(|number| number > MAX_INTEGER)
        {
            return refuse("max_deletions", "at most 2^53 - 1");
        }
        let is_short = settings.allow_short_times;
        if orphan_ttl_seconds < MIN_ORPHAN_TTL.as_secs() && !is_short {
            let rule = "at least 1h, unless gc.allow_short_times is true";
            return refuse("gc.orphan_ttl", rule);
        }
        let may_be_short = is_short || settings.is_one_host;
        if settings.min_plan_age < GC_MIN_PLAN_AGE && !may_be_short {
            let rule = "at least 1h, unless the store is local: or gc.allow_short_times is true";
            return refuse("gc.min_plan_age", rule);
        }
        if settings.settle < GC_SETTLE && !may_be_short {
            let rule = "at least 1m, unless the store is local: or gc.allow_short_times is true";
            return refuse("gc.settle", rule);
        }
        if settings.min_plan_age > MAX_ORPHAN_TTL || settings.settle > MAX_ORPHAN_TTL {
            return refuse("gc.min_plan_age, gc.settle", "at most 3650 days");
        }
        Ok(Self {
            orphan_ttl_seconds,
            max_deletions: request.max_deletions,
            max_share: request.max_share.unwrap_or(Share(DEFAULT_GC_SHARE)),
            min_plan_age_seconds: settings.min_plan_age.as_secs(),
            settle_seconds: settings.settle.as_secs(),
            allow_short_times: is_short,
        })
    }

    /// Returns the grace of an artifact that nothing refers to.
    pub const fn orphan_ttl(&self) -> Duration {
        Duration::from_secs(self.orphan_ttl_seconds)
    }
}

#[cfg(test)]
mod tests;
