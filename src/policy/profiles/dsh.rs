//! `dsh`: one limit in bytes, which the replacement keeps too; head and tail, then one line.

use std::collections::BTreeMap;

use super::OWN_READERS;
use crate::artifact::measure::Measure;
use crate::limits::DEFAULT_REPLY_BYTES;
use crate::policy::limit::{Limit, LimitRules, ToolLimit};
use crate::policy::preview::PreviewRule;
use crate::policy::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, TurnRule};

/// The limit unless somebody says otherwise.
const MAX_INLINE_BYTES: u64 = 51_200;

/// Returns the profile.
pub fn dsh() -> Profile {
    let measure = Measure::Bytes;
    let readers = OWN_READERS.iter().chain(&["read"]);
    let pin = |name: &&str| ((*name).to_owned(), ToolLimit::never(measure));
    Profile {
        name: "dsh".to_owned(),
        base: "dsh".to_owned(),
        limits: LimitRules {
            pinned: readers.map(pin).collect(),
            operator: BTreeMap::new(),
            server_ceiling: None,
            prefixes: BTreeMap::new(),
            tools: BTreeMap::new(),
            tools_capped_by_default: false,
            default: ToolLimit::at_most(MAX_INLINE_BYTES, measure),
        },
        scaling: None,
        turn: TurnRule {
            budget: Limit::Never,
            measure,
            result_floor: 0,
            counts_replacements: true,
        },
        mixed_parts: MixedParts::Untouched,
        preview: PreviewRule::Fill,
        tool_previews: BTreeMap::new(),
        form: MessageForm::Trailing,
        max_replacement_bytes: MAX_INLINE_BYTES,
        on_save_failure: OnSaveFailure::Original,
        means: None,
        max_reply_bytes: DEFAULT_REPLY_BYTES,
        text_bounds: None,
    }
}
