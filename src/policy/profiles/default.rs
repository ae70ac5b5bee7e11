//! `default`: our own numbers, all in bytes.

use std::collections::BTreeMap;

use super::OWN_READERS;
use crate::artifact::measure::Measure;
use crate::limits::{
    DEFAULT_INLINE_BYTES, DEFAULT_REPLACEMENT_BYTES, DEFAULT_REPLY_BYTES, DEFAULT_TURN_BYTES,
    TURN_RESULT_FLOOR_BYTES,
};
use crate::policy::limit::{Limit, LimitRules, ToolLimit};
use crate::policy::preview::PreviewRule;
use crate::policy::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, TurnRule};

/// Returns the profile.
pub fn default() -> Profile {
    let measure = Measure::Bytes;
    let readers = OWN_READERS.iter().chain(&["Read", "read", "read_file"]);
    let pin = |name: &&str| ((*name).to_owned(), ToolLimit::never(measure));
    Profile {
        name: "default".to_owned(),
        base: "default".to_owned(),
        limits: LimitRules {
            pinned: readers.map(pin).collect(),
            operator: BTreeMap::new(),
            server_ceiling: None,
            prefixes: BTreeMap::new(),
            tools: BTreeMap::new(),
            tools_capped_by_default: false,
            default: ToolLimit::at_most(DEFAULT_INLINE_BYTES, measure),
        },
        scaling: None,
        turn: TurnRule {
            budget: Limit::AtMost(DEFAULT_TURN_BYTES),
            measure,
            result_floor: TURN_RESULT_FLOOR_BYTES,
            counts_replacements: true,
        },
        mixed_parts: MixedParts::SpillText,
        preview: PreviewRule::Fill,
        tool_previews: BTreeMap::new(),
        form: MessageForm::Notice,
        max_replacement_bytes: DEFAULT_REPLACEMENT_BYTES as u64,
        on_save_failure: OnSaveFailure::HeadAndTail,
        means: None,
        max_reply_bytes: DEFAULT_REPLY_BYTES,
        text_bounds: None,
    }
}
