//! A profile as a table of the settings file: any field of a built-in one, overridden.
//!
//! ```toml
//! [profiles.mine]
//! base = "claude-code"
//! inline_limit = 40000
//! tools.bash = 20000
//! ```
//!
//! What cannot be meant is refused when it is read, with its key: a zero, a negative or fractional
//! number (the type refuses the last two), a budget below a limit that a turn of one result may reach.
//! A profile written as a table reads back as an equal one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limit::{Limit, MAX_LIMIT, ToolLimit};
use super::preview::PreviewRule;
use super::profile::{MessageForm, MixedParts, OnSaveFailure, Profile, Scaling};
use super::profiles::DEFAULT_NAME;
use super::text_bounds::TextBounds;
use crate::artifact::hint::parse_means;
use crate::artifact::measure::Measure;
use crate::limits::MAX_REPLY_BYTES;

/// A profile that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {rule}")]
pub struct InvalidProfileError {
    /// The key, below the profile's name.
    pub key: String,
    /// What is allowed.
    pub rule: String,
}

impl InvalidProfileError {
    pub(super) fn new(key: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            rule: rule.into(),
        }
    }
}

/// A limit as it is written: a number or `"never"` in the unit of the profile, or with a unit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WrittenLimit {
    /// With its unit.
    Full(ToolLimit),
    /// In the profile's.
    Bare(Limit),
}

impl WrittenLimit {
    fn resolve(self, measure: Measure) -> ToolLimit {
        match self {
            Self::Full(limit) => limit,
            Self::Bare(limit) => ToolLimit { limit, measure },
        }
    }
}

/// Written limits by a tool's name or its beginning.
type Limits = BTreeMap<String, WrittenLimit>;

/// The fields of a profile; what is absent is the base's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileTable {
    /// The built-in profile that is overridden; absent: the one of the same name, else `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The unit of `inline_limit` and of every limit without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// Results up to this much stay in the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline_limit: Option<Limit>,
    /// Limits that beat everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Limits>,
    /// An operator's own limits by tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Limits>,
    /// The most that a server may allow its tools; `"never"`: what it says is not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ceiling: Option<Limit>,
    /// Limits by the beginning of a tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<Limits>,
    /// Limits by tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Limits>,
    /// Whether `tools` and `prefixes` may only lower `inline_limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_capped_by_default: Option<bool>,
    /// How limits follow a context window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// What a turn may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_budget: Option<Limit>,
    /// Its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_measure: Option<Measure>,
    /// Results up to this much are left alone by the turn's pass; 0: none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_result_floor: Option<u64>,
    /// Whether replacements count while the turn's pass goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_counts_replacements: Option<bool>,
    /// What becomes of results with parts that are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_parts: Option<MixedParts>,
    /// What of a spilled text is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<PreviewRule>,
    /// The same by tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_previews: Option<BTreeMap<String, PreviewRule>>,
    /// The order of a replacement's parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<MessageForm>,
    /// The largest replacement, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replacement_bytes: Option<u64>,
    /// What stands in the prompt when a save fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_save_failure: Option<OnSaveFailure>,
    /// How the agent reads on: a list of http, cli, file, mcp:TOOL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<Vec<String>>,
    /// The most of one reply of a reader, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_reply_bytes: Option<u64>,
    /// Bounds of a text that a tool shows by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_bounds: Option<TextBounds>,
}

fn written(limits: &BTreeMap<String, ToolLimit>) -> Option<Limits> {
    let full = |(name, limit): (&String, &ToolLimit)| (name.clone(), WrittenLimit::Full(*limit));
    Some(limits.iter().map(full).collect())
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// What a limit map overrides: the named tools; the base's others stay.
fn put_limits(place: &mut BTreeMap<String, ToolLimit>, limits: Option<&Limits>, measure: Measure) {
    for (name, limit) in limits.into_iter().flatten() {
        place.insert(name.clone(), limit.resolve(measure));
    }
}

impl ProfileTable {
    /// Writes a profile with every field.
    pub fn of(profile: &Profile) -> Self {
        let limits = &profile.limits;
        let means = profile.means.as_ref();
        Self {
            base: Some(profile.base.clone()),
            measure: Some(limits.default.measure),
            inline_limit: Some(limits.default.limit),
            pinned: written(&limits.pinned),
            operator: written(&limits.operator),
            server_ceiling: Some(limits.server_ceiling.map_or(Limit::Never, Limit::AtMost)),
            prefixes: written(&limits.prefixes),
            tools: written(&limits.tools),
            tools_capped_by_default: Some(limits.tools_capped_by_default),
            scaling: profile.scaling,
            turn_budget: Some(profile.turn.budget),
            turn_measure: Some(profile.turn.measure),
            turn_result_floor: Some(profile.turn.result_floor),
            turn_counts_replacements: Some(profile.turn.counts_replacements),
            mixed_parts: Some(profile.mixed_parts),
            preview: Some(profile.preview),
            tool_previews: Some(profile.tool_previews.clone()),
            form: Some(profile.form),
            max_replacement_bytes: Some(profile.max_replacement_bytes),
            on_save_failure: Some(profile.on_save_failure),
            means: means.map(|means| means.iter().map(ToString::to_string).collect()),
            max_reply_bytes: Some(profile.max_reply_bytes),
            text_bounds: profile.text_bounds,
        }
    }

    /// Makes the profile `name` of the table over one of `bases`.
    ///
    /// # Errors
    /// See [`InvalidProfileError`].
    pub fn resolve(
        &self,
        name: &str,
        bases: &BTreeMap<String, Profile>,
    ) -> Result<Profile, InvalidProfileError> {
        check_name(name)?;
        // A built-in name without a base changes that profile.
        let own = bases.contains_key(name).then_some(name);
        let base = self.base.as_deref().or(own).unwrap_or(DEFAULT_NAME);
        let mut profile = bases.get(base).cloned().ok_or_else(|| {
            let known: Vec<_> = bases.keys().map(String::as_str).collect();
            InvalidProfileError::new("base", format!("one of {}", known.join(", ")))
        })?;
        profile.name = name.to_owned();
        self.apply(&mut profile)?;
        check(&profile)?;
        Ok(profile)
    }

    fn apply(&self, profile: &mut Profile) -> Result<(), InvalidProfileError> {
        let limits = &mut profile.limits;
        put(&mut limits.default.measure, self.measure);
        put(&mut limits.default.limit, self.inline_limit);
        let measure = limits.default.measure;
        put_limits(&mut limits.pinned, self.pinned.as_ref(), measure);
        put_limits(&mut limits.operator, self.operator.as_ref(), measure);
        put_limits(&mut limits.prefixes, self.prefixes.as_ref(), measure);
        put_limits(&mut limits.tools, self.tools.as_ref(), measure);
        match self.server_ceiling {
            None => {}
            Some(Limit::Never) => limits.server_ceiling = None,
            Some(Limit::AtMost(most)) => limits.server_ceiling = Some(most),
        }
        put(
            &mut limits.tools_capped_by_default,
            self.tools_capped_by_default,
        );
        profile.scaling = self.scaling.or(profile.scaling);
        put(&mut profile.turn.budget, self.turn_budget);
        put(&mut profile.turn.measure, self.turn_measure);
        put(&mut profile.turn.result_floor, self.turn_result_floor);
        put(
            &mut profile.turn.counts_replacements,
            self.turn_counts_replacements,
        );
        put(&mut profile.mixed_parts, self.mixed_parts);
        put(&mut profile.preview, self.preview);
        for (tool, rule) in self.tool_previews.iter().flatten() {
            profile.tool_previews.insert(tool.clone(), *rule);
        }
        put(&mut profile.form, self.form);
        // This form has one number: the replacement keeps the limit that the text was over.
        if let (MessageForm::Trailing, Some(Limit::AtMost(most)), Measure::Bytes) =
            (profile.form, self.inline_limit, measure)
        {
            profile.max_replacement_bytes = most;
        }
        put(
            &mut profile.max_replacement_bytes,
            self.max_replacement_bytes,
        );
        put(&mut profile.on_save_failure, self.on_save_failure);
        if let Some(list) = &self.means {
            let means = parse_means(&list.join(","))
                .map_err(|error| InvalidProfileError::new("means", error.to_string()))?;
            profile.means = Some(means);
        }
        put(&mut profile.max_reply_bytes, self.max_reply_bytes);
        profile.text_bounds = self.text_bounds.or(profile.text_bounds);
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), InvalidProfileError> {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let valid = (1..=32).contains(&name.len())
        && name.bytes().all(|b| is_word(b) || b == b'-')
        && !name.starts_with('-');
    if !valid {
        let rule = "a profile's name matches [a-z0-9][a-z0-9-]{0,31}";
        return Err(InvalidProfileError::new("name", rule));
    }
    Ok(())
}

/// Checks what the types cannot.
fn check(profile: &Profile) -> Result<(), InvalidProfileError> {
    let refuse = |key: &str, rule: &str| Err(InvalidProfileError::new(key, rule));
    let bounds = format!("from 1 to {MAX_LIMIT}, or \"never\"");
    let limits = &profile.limits;
    check_limit("inline_limit", limits.default.limit)?;
    let maps = [
        ("pinned", &limits.pinned),
        ("operator", &limits.operator),
        ("prefixes", &limits.prefixes),
        ("tools", &limits.tools),
    ];
    for (map, limits) in maps {
        for (tool, limit) in limits {
            check_limit(&format!("{map}.{tool}"), limit.limit)?;
        }
    }
    if limits
        .server_ceiling
        .is_some_and(|most| !(1..=MAX_LIMIT).contains(&most))
    {
        return refuse("server_ceiling", &bounds);
    }
    check_turn(profile)?;
    check_scaling(profile)?;
    check_previews(profile)?;
    if !(1..=MAX_LIMIT).contains(&profile.max_replacement_bytes) {
        return refuse("max_replacement_bytes", &format!("from 1 to {MAX_LIMIT}"));
    }
    if !(1..=MAX_REPLY_BYTES).contains(&profile.max_reply_bytes) {
        return refuse("max_reply_bytes", &format!("from 1 to {MAX_REPLY_BYTES}"));
    }
    let has_zero = |bounds: &TextBounds| {
        bounds.max_bytes == 0 || bounds.max_lines == 0 || bounds.max_line_chars == 0
    };
    if profile.text_bounds.as_ref().is_some_and(has_zero) {
        return refuse("text_bounds", "every bound is at least 1");
    }
    Ok(())
}

fn check_limit(key: &str, limit: Limit) -> Result<(), InvalidProfileError> {
    match limit {
        Limit::AtMost(most) if !(1..=MAX_LIMIT).contains(&most) => Err(InvalidProfileError::new(
            key,
            format!("from 1 to {MAX_LIMIT}, or \"never\""),
        )),
        Limit::AtMost(_) | Limit::Never => Ok(()),
    }
}

fn check_turn(profile: &Profile) -> Result<(), InvalidProfileError> {
    let Limit::AtMost(budget) = profile.turn.budget else {
        return Ok(());
    };
    if !(1..=MAX_LIMIT * 10).contains(&budget) {
        let rule = format!("from 1 to {}, or \"never\"", MAX_LIMIT * 10);
        return Err(InvalidProfileError::new("turn_budget", rule));
    }
    if profile.turn.result_floor >= budget {
        let rule = "less than turn_budget: else no result could ever be taken out";
        return Err(InvalidProfileError::new("turn_result_floor", rule));
    }
    // A result that may stay on its own must not be over the turn's budget alone.
    let default = profile.limits.default;
    match default.limit {
        Limit::AtMost(most) if default.measure == profile.turn.measure && most > budget => {
            let rule = format!("at least inline_limit ({most})");
            Err(InvalidProfileError::new("turn_budget", rule))
        }
        Limit::AtMost(_) | Limit::Never => Ok(()),
    }
}

fn check_scaling(profile: &Profile) -> Result<(), InvalidProfileError> {
    let Some(scaling) = &profile.scaling else {
        return Ok(());
    };
    let refuse =
        |key: &str, rule: &str| Err(InvalidProfileError::new(format!("scaling.{key}"), rule));
    if !(1..=16).contains(&scaling.chars_per_token) {
        return refuse("chars_per_token", "from 1 to 16");
    }
    if !(1..=100).contains(&scaling.result_percent) {
        return refuse("result_percent", "from 1 to 100");
    }
    if !(scaling.result_percent..=100).contains(&scaling.turn_percent) {
        return refuse("turn_percent", "from result_percent to 100");
    }
    if !(1..=MAX_LIMIT).contains(&scaling.result_floor) {
        return refuse("result_floor", &format!("from 1 to {MAX_LIMIT}"));
    }
    if !(scaling.result_floor..=MAX_LIMIT).contains(&scaling.turn_floor) {
        return refuse("turn_floor", &format!("from result_floor to {MAX_LIMIT}"));
    }
    Ok(())
}

/// The longest head or tail of a preview: what each upload keeps of both ends of its body.
const MAX_PREVIEW: u64 = 65_536;

fn check_previews(profile: &Profile) -> Result<(), InvalidProfileError> {
    let by_tool = profile.tool_previews.iter();
    let by_tool = by_tool.map(|(tool, rule)| (format!("tool_previews.{tool}"), rule));
    for (key, rule) in by_tool.chain([("preview".to_owned(), &profile.preview)]) {
        let refuse = |rule: String| Err(InvalidProfileError::new(&*key, rule));
        match *rule {
            PreviewRule::Fill => {
                if profile.max_replacement_bytes > MAX_PREVIEW * 4 {
                    let most = MAX_PREVIEW * 4;
                    return refuse(format!("`fill` needs max_replacement_bytes up to {most}"));
                }
            }
            PreviewRule::Head { length, .. } => {
                if !(1..=MAX_PREVIEW).contains(&length) {
                    return refuse(format!("length: from 1 to {MAX_PREVIEW}"));
                }
            }
            PreviewRule::Ends { head, tail, .. } => {
                if head.max(tail) > MAX_PREVIEW || head + tail == 0 {
                    return refuse(format!("head and tail: up to {MAX_PREVIEW}, not both 0"));
                }
            }
        }
    }
    let is_filling = profile.preview == PreviewRule::Fill && profile.tool_previews.is_empty();
    let fills = matches!(profile.form, MessageForm::Notice | MessageForm::Trailing);
    if fills && !is_filling {
        let rule = "the forms `notice` and `trailing` fill their room: preview.kind = \"fill\", no tool_previews";
        return Err(InvalidProfileError::new("preview", rule));
    }
    if !fills && profile.preview == PreviewRule::Fill {
        let rule = "this form needs a preview of kind `head` or `ends`";
        return Err(InvalidProfileError::new("preview", rule));
    }
    Ok(())
}
