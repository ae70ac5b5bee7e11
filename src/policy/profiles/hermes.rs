//! `hermes`: characters, limits that follow the context window, a prefix for tools of MCP servers, a
//! turn budget, and bounds that a tool puts on its own text before all that.

use std::collections::BTreeMap;

use super::OWN_READERS;
use crate::artifact::measure::Measure;
use crate::policy::limit::{Limit, LimitRules, MAX_LIMIT, ToolLimit};
use crate::policy::preview::{LineEnd, PreviewRule};
use crate::policy::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, Scaling, TurnRule};
use crate::policy::text_bounds::{Keep, TextBounds};

/// Returns the profile.
pub fn hermes() -> Profile {
    let measure = Measure::Characters;
    let readers = OWN_READERS.iter().chain(&["read_file"]);
    let pin = |name: &&str| ((*name).to_owned(), ToolLimit::never(measure));
    let servers = ToolLimit::at_most(50_000, measure);
    Profile {
        name: "hermes".to_owned(),
        base: "hermes".to_owned(),
        limits: LimitRules {
            pinned: readers.map(pin).collect(),
            operator: BTreeMap::new(),
            server_ceiling: None,
            prefixes: BTreeMap::from([("mcp_".to_owned(), servers)]),
            tools: BTreeMap::new(),
            tools_capped_by_default: true,
            default: ToolLimit::at_most(100_000, measure),
        },
        scaling: Some(Scaling {
            chars_per_token: 4,
            result_percent: 15,
            turn_percent: 30,
            result_floor: 8_000,
            turn_floor: 16_000,
        }),
        turn: TurnRule {
            budget: Limit::AtMost(200_000),
            measure,
            result_floor: 0,
            counts_replacements: true,
        },
        mixed_parts: MixedParts::SpillText,
        preview: PreviewRule::Head {
            length: 1_500,
            measure,
            line_end: LineEnd::AfterIfPastHalf,
        },
        tool_previews: BTreeMap::new(),
        form: MessageForm::TaggedPaging,
        max_replacement_bytes: MAX_LIMIT,
        on_save_failure: OnSaveFailure::HeadAndTail,
        means: None,
        max_reply_bytes: 50_000,
        text_bounds: Some(TextBounds {
            max_bytes: 50_000,
            max_lines: 2_000,
            max_line_chars: 2_000,
            keep: Keep::Ends,
        }),
    }
}
