//! `tiny-claw`: only the tools that are named have a limit; no limit is no default either.

use std::collections::BTreeMap;

use super::claude_code;
use crate::artifact::measure::Measure;
use crate::policy::limit::{Limit, LimitRules, ToolLimit};
use crate::policy::preview::{LineEnd, PreviewRule};
use crate::policy::profile::{Profile, TurnRule};

/// Returns the profile.
pub fn tiny_claw() -> Profile {
    let measure = Measure::Characters;
    let own = [
        ("bash", 30_000),
        ("shell", 30_000),
        ("fetch", 30_000),
        ("web_fetch", 30_000),
        ("search", 20_000),
        ("grep", 20_000),
    ];
    let tools = own.map(|(name, most)| (name.to_owned(), ToolLimit::at_most(most, measure)));
    Profile {
        name: "tiny-claw".to_owned(),
        base: "tiny-claw".to_owned(),
        limits: LimitRules {
            pinned: BTreeMap::new(),
            operator: BTreeMap::new(),
            server_ceiling: None,
            prefixes: BTreeMap::new(),
            tools: BTreeMap::from(tools),
            tools_capped_by_default: false,
            default: ToolLimit::never(measure),
        },
        turn: TurnRule {
            budget: Limit::Never,
            measure,
            result_floor: 0,
            counts_replacements: true,
        },
        preview: PreviewRule::Head {
            length: 500,
            measure,
            line_end: LineEnd::BeforeIfFromHalf,
        },
        // The message and the rest are those of the system that it follows.
        ..claude_code()
    }
}
