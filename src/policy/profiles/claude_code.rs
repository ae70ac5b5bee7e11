//! `claude-code`: UTF-16 units, a limit per tool under a common one, a head of 2,000 units between tags,
//! a budget per turn.

use std::collections::BTreeMap;

use super::OWN_READERS;
use crate::artifact::measure::Measure;
use crate::limits::DEFAULT_REPLY_BYTES;
use crate::policy::limit::{Limit, LimitRules, MAX_LIMIT, ToolLimit};
use crate::policy::preview::{LineEnd, PreviewRule};
use crate::policy::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, TurnRule};

/// Returns the profile.
pub fn claude_code() -> Profile {
    let measure = Measure::Utf16Units;
    let readers = OWN_READERS.iter().chain(&["Read", "read"]);
    let pin = |name: &&str| ((*name).to_owned(), ToolLimit::never(measure));
    let own = [
        ("Bash", 30_000),
        ("bash", 30_000),
        ("Grep", 20_000),
        ("grep", 20_000),
    ];
    let tools = own.map(|(name, most)| (name.to_owned(), ToolLimit::at_most(most, measure)));
    Profile {
        name: "claude-code".to_owned(),
        base: "claude-code".to_owned(),
        limits: LimitRules {
            pinned: readers.map(pin).collect(),
            operator: BTreeMap::new(),
            server_ceiling: Some(500_000),
            prefixes: BTreeMap::new(),
            tools: BTreeMap::from(tools),
            tools_capped_by_default: true,
            default: ToolLimit::at_most(50_000, measure),
        },
        scaling: None,
        turn: TurnRule {
            budget: Limit::AtMost(200_000),
            measure,
            result_floor: 0,
            counts_replacements: false,
        },
        mixed_parts: MixedParts::SpillText,
        preview: PreviewRule::Head {
            length: 2_000,
            measure,
            line_end: LineEnd::BeforeIfPastHalf,
        },
        tool_previews: BTreeMap::new(),
        form: MessageForm::Tagged,
        max_replacement_bytes: MAX_LIMIT,
        on_save_failure: OnSaveFailure::Original,
        means: None,
        max_reply_bytes: DEFAULT_REPLY_BYTES,
        text_bounds: None,
    }
}
