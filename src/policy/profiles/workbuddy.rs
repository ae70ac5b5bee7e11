//! `workbuddy`: the shell counts characters and shows a long tail; every other tool counts bytes and
//! shows a head. Tool names are compared exactly: `Bash` is another tool than `bash`.

use std::collections::BTreeMap;

use super::OWN_READERS;
use crate::artifact::measure::Measure;
use crate::limits::DEFAULT_REPLY_BYTES;
use crate::policy::limit::{Limit, LimitRules, MAX_LIMIT, ToolLimit};
use crate::policy::preview::{LineEnd, PreviewRule};
use crate::policy::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, TurnRule};

/// The one tool with rules of its own.
pub const WORKBUDDY_SHELL: &str = "bash";

/// Returns the profile.
pub fn workbuddy() -> Profile {
    let (bytes, characters) = (Measure::Bytes, Measure::Characters);
    let pin = |name: &&str| ((*name).to_owned(), ToolLimit::never(bytes));
    let shell_limit = ToolLimit::at_most(30_000, characters);
    let shell_preview = PreviewRule::Ends {
        head: 6_144,
        tail: 24_576,
        measure: characters,
    };
    Profile {
        name: "workbuddy".to_owned(),
        base: "workbuddy".to_owned(),
        limits: LimitRules {
            pinned: OWN_READERS.iter().map(pin).collect(),
            operator: BTreeMap::new(),
            server_ceiling: None,
            prefixes: BTreeMap::new(),
            tools: BTreeMap::from([(WORKBUDDY_SHELL.to_owned(), shell_limit)]),
            tools_capped_by_default: false,
            default: ToolLimit::at_most(50 << 10, bytes),
        },
        scaling: None,
        turn: TurnRule {
            budget: Limit::Never,
            measure: bytes,
            result_floor: 0,
            counts_replacements: true,
        },
        mixed_parts: MixedParts::SpillText,
        preview: PreviewRule::Head {
            length: 2_048,
            measure: characters,
            line_end: LineEnd::Ignored,
        },
        tool_previews: BTreeMap::from([(WORKBUDDY_SHELL.to_owned(), shell_preview)]),
        form: MessageForm::Header,
        max_replacement_bytes: MAX_LIMIT,
        on_save_failure: OnSaveFailure::Error,
        means: None,
        max_reply_bytes: DEFAULT_REPLY_BYTES,
        text_bounds: None,
    }
}
