//! Limits of tools: how they are written, and which of several counts.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as DeError, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::artifact::measure::{Measure, Measures};

/// The largest finite limit, in any unit. A body above one upload part (8 MiB) has more of every unit,
/// so that such a body may be sent on before it has been counted.
pub const MAX_LIMIT: u64 = 2_000_000;

/// How much may stay in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Everything: such a result is never taken out of the prompt.
    Never,
    /// Up to this much; more is spilled. Zero spills whatever is not empty.
    AtMost(u64),
}

impl Limit {
    /// Returns the smaller of two limits.
    pub fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, limit) | (limit, Self::Never) => limit,
            (Self::AtMost(one), Self::AtMost(two)) => Self::AtMost(one.min(two)),
        }
    }

    /// Returns whether `size` is over; equal is not.
    pub fn is_exceeded_by(self, size: u64) -> bool {
        match self {
            Self::Never => false,
            Self::AtMost(most) => size > most,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::AtMost(most) => write!(f, "{most}"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => serializer.serialize_str("never"),
            Self::AtMost(most) => serializer.serialize_u64(*most),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

struct LimitVisitor;

impl Visitor<'_> for LimitVisitor {
    type Value = Limit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative, or \"never\"")
    }

    fn visit_u64<E: DeError>(self, most: u64) -> Result<Limit, E> {
        Ok(Limit::AtMost(most))
    }

    fn visit_i64<E: DeError>(self, most: i64) -> Result<Limit, E> {
        let refused = |_| E::custom(format!("{most} is negative: {}", "limits count from 0"));
        u64::try_from(most).map(Limit::AtMost).map_err(refused)
    }

    fn visit_f64<E: DeError>(self, most: f64) -> Result<Limit, E> {
        Err(E::custom(format!("{most} is no whole number")))
    }

    fn visit_str<E: DeError>(self, text: &str) -> Result<Limit, E> {
        match text {
            "never" => Ok(Limit::Never),
            other => Err(E::custom(format!(
                "`{other}` is neither a number nor \"never\""
            ))),
        }
    }

    /// JSON's null turns a limit off.
    fn visit_unit<E: DeError>(self) -> Result<Limit, E> {
        Ok(Limit::Never)
    }
}

/// A limit and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolLimit {
    /// How much.
    pub limit: Limit,
    /// Of what.
    pub measure: Measure,
}

impl ToolLimit {
    /// Writes a limit down.
    pub const fn at_most(most: u64, measure: Measure) -> Self {
        Self {
            limit: Limit::AtMost(most),
            measure,
        }
    }

    /// Writes down that a tool's results are never taken out.
    pub const fn never(measure: Measure) -> Self {
        Self {
            limit: Limit::Never,
            measure,
        }
    }

    /// Returns whether a text of this length is over.
    pub fn is_exceeded_by(&self, size: &Measures) -> bool {
        self.limit.is_exceeded_by(size.get(self.measure))
    }
}

/// Where a tool's limit comes from; the first one that is there counts, except that `tools` and
/// `prefixes` may be held down to the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRules {
    /// Beats everything: by a reader that is not to be spilled, or it could never read anything.
    pub pinned: BTreeMap<String, ToolLimit>,
    /// What an operator set for a tool; not held down by anything.
    pub operator: BTreeMap<String, ToolLimit>,
    /// The most that a server may allow its own tools, in the unit of the default; `None`: what a server
    /// says is not looked at.
    pub server_ceiling: Option<u64>,
    /// By the beginning of a tool's name.
    pub prefixes: BTreeMap<String, ToolLimit>,
    /// By a tool's name, compared exactly.
    pub tools: BTreeMap<String, ToolLimit>,
    /// Whether `prefixes` and `tools` may only lower the default.
    pub tools_capped_by_default: bool,
    /// Of every other tool.
    pub default: ToolLimit,
}

impl LimitRules {
    /// Returns the limit of a tool: pinned, then operator, then server or tool, then default.
    ///
    /// `server_max` is what the tool's server declared, `default` the default after scaling.
    pub fn limit_of(&self, tool: &str, server_max: Option<u64>, default: ToolLimit) -> ToolLimit {
        if let Some(limit) = self.pinned.get(tool).or_else(|| self.operator.get(tool)) {
            return *limit;
        }
        if let (Some(most), Some(ceiling)) = (server_max, self.server_ceiling) {
            return ToolLimit::at_most(most.min(ceiling), default.measure);
        }
        let by_prefix = || {
            let known = self.prefixes.iter();
            let mut fitting = known.filter(|(prefix, _)| tool.starts_with(prefix.as_str()));
            fitting.next_back().map(|(_, limit)| limit)
        };
        let Some(limit) = by_prefix().or_else(|| self.tools.get(tool)) else {
            return default;
        };
        let is_capped = self.tools_capped_by_default && limit.limit != Limit::Never;
        if is_capped && limit.measure == default.measure {
            return ToolLimit {
                limit: limit.limit.min(default.limit),
                measure: limit.measure,
            };
        }
        *limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn read(json: &str) -> Result<Limit, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn limits_are_whole_numbers_or_never() {
        assert_eq!(read("0").unwrap(), Limit::AtMost(0));
        assert_eq!(read("51200").unwrap(), Limit::AtMost(51_200));
        assert_eq!(read("\"never\"").unwrap(), Limit::Never);
        assert_eq!(read("null").unwrap(), Limit::Never);
        for bad in [
            "-1",
            "1.5",
            "1e3",
            "\"12\"",
            "true",
            "[]",
            "18446744073709551616",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    fn rules() -> LimitRules {
        let measure = Measure::Characters;
        let table = |name: &str, most| BTreeMap::from([(name.to_owned(), most)]);
        LimitRules {
            pinned: table("read", ToolLimit::never(measure)),
            operator: BTreeMap::from([
                ("read".to_owned(), ToolLimit::at_most(1, measure)),
                ("mcp_big".to_owned(), ToolLimit::at_most(70_000, measure)),
            ]),
            server_ceiling: Some(500),
            prefixes: table("mcp_", ToolLimit::at_most(50_000, measure)),
            tools: table("grep", ToolLimit::at_most(20_000, measure)),
            tools_capped_by_default: true,
            default: ToolLimit::at_most(30_000, measure),
        }
    }

    #[rstest]
    #[case::pinned_beats_an_operator("read", None, Limit::Never)]
    #[case::an_operator_is_not_held_down("mcp_big", Some(100), Limit::AtMost(70_000))]
    #[case::a_server_may_ask_for_less("grep", Some(100), Limit::AtMost(100))]
    #[case::a_server_has_a_ceiling("grep", Some(9_000), Limit::AtMost(500))]
    #[case::a_prefix_is_held_down_to_the_default("mcp_small", None, Limit::AtMost(30_000))]
    #[case::a_tool_has_its_own("grep", None, Limit::AtMost(20_000))]
    #[case::case_matters("Grep", None, Limit::AtMost(30_000))]
    #[case::others_have_the_default("", None, Limit::AtMost(30_000))]
    fn the_first_that_is_there_counts(
        #[case] tool: &str,
        #[case] server_max: Option<u64>,
        #[case] expected: Limit,
    ) {
        let rules = rules();
        let found = rules.limit_of(tool, server_max, rules.default);
        assert_eq!(found.limit, expected);
    }

    #[test]
    fn equal_is_not_over_and_zero_takes_what_is_not_empty() {
        let limit = Limit::AtMost(3);
        assert!(!limit.is_exceeded_by(3) && limit.is_exceeded_by(4));
        assert!(Limit::AtMost(0).is_exceeded_by(1) && !Limit::AtMost(0).is_exceeded_by(0));
        assert!(!Limit::Never.is_exceeded_by(u64::MAX));
    }

    #[test]
    fn a_body_above_one_part_is_over_every_finite_limit() {
        for measure in [Measure::Bytes, Measure::Characters, Measure::Utf16Units] {
            assert!(measure.most_bytes(MAX_LIMIT) <= crate::limits::PART_BYTES as u64);
        }
    }
}
