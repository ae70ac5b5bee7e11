//! The cases of limits, turns, previews by unit, fallbacks and frozen decisions: pure policy.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use spillbox::artifact::completeness::Completeness;
use spillbox::artifact::hint::{HintTarget, ReadOn, RetrievalMeans, hint};
use spillbox::artifact::measure::{Measure, Measures};
use spillbox::artifact::rendering::Render as _;
use spillbox::artifact::replacement::{Rendered, RenderedForm, ReplacementInput};
use spillbox::artifact::scan::BodyFacts;
use spillbox::artifact::windows::Windows;
use spillbox::ids::DecisionId;
use spillbox::policy::backlog::Backlog;
use spillbox::policy::copy_check::CopyVerdict;
use spillbox::policy::decide::{
    Circumstance, Decision, LOG_COPY_LABEL, ResultFacts, decide, is_blank,
};
use spillbox::policy::fallback::{Fallback, Seen, fallback};
use spillbox::policy::frames::grouped;
use spillbox::policy::frozen::{Action, Level, Nearest, TurnRecord, nearest};
use spillbox::policy::limit::{Limit, ToolLimit};
use spillbox::policy::parts::Parts;
use spillbox::policy::preview::{LineEnd, PreviewRule, cut_ends, cut_head};
use spillbox::policy::profile::{Given, OnSaveFailure, Profile, TurnRule};
use spillbox::policy::profiles::{Profiles, built_in};
use spillbox::policy::rendering::trailing;
use spillbox::policy::table::ProfileTable;
use spillbox::policy::template::Templates;
use spillbox::policy::text_bounds::{Keep, TextBounds};
use spillbox::policy::turn::{Standing, TurnItem, TurnPlan, plan};

use super::{Vector, bytes_of};

const LOCATOR: &str = "spillbox:0123456789abcdefghjkmnpqrs.0123456789abcdefghjkmnpqrt";

/// Runs a case of a kind that is known here.
pub(super) fn run(vector: &Vector) -> Option<anyhow::Result<()>> {
    let (given, expect) = (&vector.given, &vector.expect);
    let has = |name: &str| given.get(name).is_some();
    let outcome = match (vector.area.as_str(), vector.system.as_str()) {
        ("threshold", "dsh") if has("cases") => exceptions(vector),
        ("threshold", "dsh") if has("case") => log_copy(vector),
        ("threshold", "dsh") if has("text") => replaced(vector),
        ("threshold", "dsh") if given["max_inline_bytes"].is_array() => loaded(vector),
        ("threshold", "hermes") if has("context_window_tokens") => scaled(vector),
        ("threshold", "hermes") if expect.get("threshold").is_some() => resolved(vector),
        ("threshold", _) if has("blocks") => mixed(vector),
        ("threshold", "opencode") if has("lines") => inside_bounds(vector),
        ("threshold", "deepagents") if has("tools") => exempt_tools(vector),
        ("threshold", _) if has("output") || has("content") || has("content_chars") => {
            over_limit(vector)
        }
        ("preview", "workbuddy-s13") if vector.when == "pointer" => pointer(vector),
        ("preview", _) if expect.get("preview_chars").is_some() => head_preview(vector),
        ("preview", "opencode" | "deepagents") if has("lines") => lines_preview(vector),
        ("turn_budget", _) if has("fresh") => selected(vector),
        ("turn_budget", _) if has("turns") => sequential(vector),
        ("turn_budget", "hermes") if has("results") => enforced(vector),
        ("freeze", _) if expect.get("child_has").is_some() => cloned(vector),
        ("freeze", _) if has("exempt_tool_result") => exempt_of_turn(vector),
        ("freeze", _) if given["seen"].as_array().is_some_and(Vec::is_empty) => first_pass(vector),
        ("freeze", _) if vector.when.contains("saved copy is gone") => return None,
        ("freeze", _) if given["seen"].is_array() => met_again(vector),
        ("preview", "hermes") if vector.when.contains("message") => worded(vector),
        ("fallback", _) if has("size_probe") => probed(vector),
        ("fallback", _) if expect.get("command_chars_max").is_some() => short_command(vector),
        ("fallback", _) if given["store"] == "hangs" => backlog(),
        ("fallback", _) if expect.get("empty_block_sent").is_some() => sentence(vector),
        ("fallback", "workbuddy-s13") if vector.when == "externalize" => lone_surrogate(vector),
        ("fallback", "dsh") if has("failure") => originals(vector),
        ("fallback", "goose") => warned_original(vector),
        ("fallback", "claude-code" | "tiny-claw") if has("content") || has("content_chars") => {
            let text = match given_text(given) {
                Ok(text) => text,
                Err(error) => return Some(Err(error)),
            };
            profile_of(vector).and_then(|profile| original(&profile, &text))
        }
        ("fallback", "hermes") if has("host_write") => both_ends(vector),
        _ => return None,
    };
    Some(outcome)
}

/// The profile that reproduces the vector's system.
fn profile_of(vector: &Vector) -> anyhow::Result<Profile> {
    let name = match vector.system.as_str() {
        "workbuddy-s13" => "workbuddy",
        // No profile reproduces this one: an own one with its numbers does.
        "goose" => {
            return own(
                json!({"base": "claude-code", "measure": "characters", "inline_limit": 200_000, "turn_budget": "never"}),
            );
        }
        name => name,
    };
    let mut known = built_in().into_iter();
    known
        .find(|profile| profile.name == name)
        .with_context(|| format!("no profile {name}"))
}

/// A profile of an operator.
fn own(table: Value) -> anyhow::Result<Profile> {
    let table: ProfileTable = serde_json::from_value(table)?;
    let tables = BTreeMap::from([("own".to_owned(), table)]);
    let profiles = Profiles::load(&tables, &BTreeMap::new())?;
    Ok((*profiles.get("own").context("own")?).clone())
}

fn text_of(value: &Value) -> anyhow::Result<String> {
    Ok(String::from_utf8(bytes_of(value)?)?)
}

fn facts<'a>(tool: &'a str, text: &str) -> ResultFacts<'a> {
    ResultFacts {
        tool,
        size: Measures::of(text.as_bytes()),
        is_binary: false,
        is_blank: is_blank(text),
        is_mixed: false,
        circumstance: Circumstance::Ordinary,
    }
}

fn number(value: &Value, name: &str) -> anyhow::Result<u64> {
    value[name]
        .as_u64()
        .with_context(|| format!("{name} in {value}"))
}

/// Text that is given as such, or by its length.
fn given_text(given: &Value) -> anyhow::Result<String> {
    for name in ["output", "content"] {
        if let Some(value) = given.get(name) {
            return text_of(value);
        }
    }
    Ok("q".repeat(usize::try_from(number(given, "content_chars")?)?))
}

fn over_limit(vector: &Vector) -> anyhow::Result<()> {
    let given = &vector.given;
    let text = given_text(given)?;
    let mut profile = profile_of(vector)?;
    let measure = profile.limits.default.measure;
    let mut circumstances = Given::default();
    for name in ["threshold", "limit", "declared"] {
        let limit = match given.get(name) {
            None => continue,
            Some(Value::String(word)) if word == "infinite" => Limit::Never,
            Some(limit) => Limit::deserialize(limit)?,
        };
        let limits = &mut profile.limits;
        // What a tool declares is held down to the common limit; what a caller says is not.
        let map = if name == "declared" {
            &mut limits.tools
        } else {
            &mut limits.operator
        };
        map.insert("x".to_owned(), ToolLimit { limit, measure });
    }
    if let Some(most) = given.get("server_annotation_max_chars") {
        circumstances.server_max = most.as_u64();
        if let Some(ceiling) = vector.expect.get("ceiling") {
            ensure!(*ceiling == json!(profile.limits.server_ceiling));
        }
    }
    let tool = given["tool"].as_str().unwrap_or("x");
    let decision = decide(&profile, &facts(tool, &text), &circumstances);
    let names = [
        "externalize",
        "persisted",
        "persist",
        "saved",
        "changed",
        "offloaded",
    ];
    let expected = names.iter().find_map(|name| vector.expect[*name].as_bool());
    let expected = expected.context("an expectation")?;
    ensure!((decision == Decision::Spilled) == expected, "{decision:?}");
    if let Some(bytes) = vector.expect.get("utf8_bytes") {
        ensure!(*bytes == text.len());
    }
    if let Some(most) = vector.expect["preview_chars_max"].as_u64() {
        ensure!(matches!(profile.preview, PreviewRule::Head { length, .. } if length == most));
    }
    if let Some(from) = vector.expect["newline_search_from"].as_u64() {
        let PreviewRule::Head {
            length,
            measure,
            line_end,
        } = profile.preview
        else {
            bail!("no head preview")
        };
        // A line end there is taken, one before it is not.
        for (place, expected) in [(from, from), (from - 1, length)] {
            let place = usize::try_from(place)?;
            let text = format!("{}\n{}", "q".repeat(place), "r".repeat(9_000));
            let cut = cut_head(
                &Windows::of(text.as_bytes(), 1 << 16),
                length,
                measure,
                line_end,
            );
            ensure!(cut.head_end == expected, "{} at {place}", cut.head_end);
        }
    }
    Ok(())
}

fn resolved(vector: &Vector) -> anyhow::Result<()> {
    let given = &vector.given;
    let mut profile = profile_of(vector)?;
    let tool = given["tool"].as_str().context("tool")?;
    let measure = profile.limits.default.measure;
    let at_most = |value: &Value| -> anyhow::Result<ToolLimit> {
        let limit = match value.as_str() {
            Some("infinite") => Limit::Never,
            _ => Limit::deserialize(value)?,
        };
        Ok(ToolLimit { limit, measure })
    };
    if let Some(default) = given.get("default") {
        profile.limits.default = at_most(default)?;
    }
    if let Some(limit) = given.get("override") {
        profile
            .limits
            .operator
            .insert(tool.to_owned(), at_most(limit)?);
    }
    if let Some(limit) = given.get("registered") {
        profile
            .limits
            .tools
            .insert(tool.to_owned(), at_most(limit)?);
    }
    let found = profile.limit_of(tool, &Given::default());
    ensure!(found == at_most(&vector.expect["threshold"])?, "{found:?}");
    Ok(())
}

fn scaled(vector: &Vector) -> anyhow::Result<()> {
    let mut profile = profile_of(vector)?;
    if let (Some(scaling), Some(chars)) = (
        &mut profile.scaling,
        vector.given["chars_per_token"].as_u64(),
    ) {
        scaling.chars_per_token = chars;
    }
    let given = Given {
        context_tokens: vector.given["context_window_tokens"]
            .as_i64()
            .and_then(|n| u64::try_from(n).ok()),
        ..Given::default()
    };
    let result = Limit::AtMost(number(&vector.expect, "per_result_chars")?);
    let turn = Limit::AtMost(number(&vector.expect, "per_turn_chars")?);
    ensure!(
        profile.limit_of("x", &given).limit == result,
        "{}",
        profile.limit_of("x", &given).limit
    );
    ensure!(
        profile.turn_budget(&given) == turn,
        "{}",
        profile.turn_budget(&given)
    );
    Ok(())
}

fn replaced(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["text"])?;
    let cap = number(&vector.given, "max_inline_bytes")?;
    let profile = own(json!({"base": "dsh", "inline_limit": cap}))?;
    let decision = decide(&profile, &facts("x", &text), &Given::default());
    let locator = vector.given["locator"].as_str().unwrap_or("spill://s/1");
    let words = vector.given["hint"].as_str().map(str::to_owned);
    let message = (decision == Decision::Spilled)
        .then(|| {
            let cap = usize::try_from(cap).unwrap_or(usize::MAX);
            trailing(&Windows::of(text.as_bytes(), cap), cap, locator, &|_| {
                words.clone()
            })
        })
        .flatten();
    let expect = &vector.expect;
    if expect["result"] != "replaced" {
        // Inline: under the cap, or the notice alone is over it. Nothing is stored then.
        ensure!(message.is_none(), "{message:?}");
        return Ok(());
    }
    let message = message.context("a replacement")?;
    ensure!(message.text.len() as u64 <= cap && message.text.len() < text.len());
    if let Some(bytes) = expect.get("result_bytes") {
        ensure!(*bytes == message.text.len(), "{} bytes", message.text.len());
    }
    if let Some(chars) = expect.get("kept_chars") {
        let kept = format!("{}{}", message.cut.head, message.cut.tail)
            .chars()
            .count();
        ensure!(*chars == kept, "{kept} kept");
    }
    if let Some(omitted) = expect.get("omitted_bytes_stated") {
        ensure!(message.text.contains(&format!(" {omitted} bytes omitted")));
    }
    ensure!(!message.text.contains(char::REPLACEMENT_CHARACTER));
    Ok(())
}

fn loaded(vector: &Vector) -> anyhow::Result<()> {
    let given = vector.given["max_inline_bytes"]
        .as_array()
        .context("values")?;
    for (place, value) in given.iter().enumerate() {
        let outcome = match Limit::deserialize(value) {
            Ok(Limit::Never) => "registers nothing",
            Ok(Limit::AtMost(_)) => "loads",
            Err(_) => "load fails",
        };
        ensure!(
            vector.expect["result"][place] == outcome,
            "{value}: {outcome}"
        );
    }
    Ok(())
}

fn exceptions(vector: &Vector) -> anyhow::Result<()> {
    let profile = profile_of(vector)?;
    let text = "q".repeat(60_000);
    let mut stored = 0;
    for case in vector.given["cases"].as_array().context("cases")? {
        let case = case.as_str().context("a case")?;
        let mut result = facts("x", &text);
        match case {
            case if case.starts_with("tool named read") => result.tool = "read",
            "nested call" => result.circumstance = Circumstance::Nested,
            "a block decision" => result.circumstance = Circumstance::Blocked,
            "content has one non-text block" => result.is_mixed = true,
            "the accepted decision replaces the value" => {
                result.circumstance = Circumstance::Replaced;
            }
            other => bail!("an unknown exception: {other}"),
        }
        let decision = decide(&profile, &result, &Given::default());
        stored += u64::from(decision.is_stored());
    }
    ensure!(vector.expect["saves"] == stored, "{stored} stored");
    ensure!(vector.expect["content_changed"] == stored);
    Ok(())
}

fn log_copy(vector: &Vector) -> anyhow::Result<()> {
    let most = number(&vector.expect, "logged_bytes_max")?;
    let profile = own(json!({"base": "dsh", "inline_limit": most}))?;
    let text = "q".repeat(2_000);
    let mut copy = facts("read", &text);
    // The program gets the value as it is; its copy in the log is bounded, the reader's too.
    ensure!(decide(&profile, &copy, &Given::default()) == Decision::Inline);
    copy.circumstance = Circumstance::LogCopy;
    let decision = decide(&profile, &copy, &Given::default());
    ensure!(vector.expect["saves"] == u64::from(decision == Decision::Spilled));
    ensure!(vector.expect["label"] == LOG_COPY_LABEL);
    let cap = usize::try_from(most)?;
    let message = trailing(&Windows::of(text.as_bytes(), cap), cap, LOCATOR, &|_| None);
    ensure!(message.context("a replacement")?.text.len() <= cap);
    Ok(())
}

/// A hazard there: what has an image could not be saved. Here its text is, and the image stays.
fn mixed(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.is_hazard(), "no rule is known for mixed results");
    let profile = profile_of(vector)?;
    let blocks = vector.given["blocks"].as_array().context("blocks")?;
    let part = |kind: &Value| match kind.as_str() {
        Some("text") => json!({"type": "text", "text": "q".repeat(60_000)}),
        _ => json!({"type": kind, "data": "iVBORw0KGgo"}),
    };
    let parts = Parts::new(blocks.iter().map(part).collect())?;
    let mut result = facts("fetch", "");
    (result.size, result.is_blank, result.is_mixed) =
        (parts.text_size(), parts.is_blank(), parts.is_mixed());
    ensure!(decide(&profile, &result, &Given::default()) == Decision::Spilled);
    let place = parts.largest_text().context("a text part")?;
    let shown = parts.with_text(place, "R".to_owned());
    for (place, (before, after)) in parts.as_values().iter().zip(&shown).enumerate() {
        ensure!(
            before == after || parts.text(place).is_some(),
            "part {place} changed"
        );
    }
    Ok(())
}

fn bounds(max_lines: u64, max_bytes: usize, max_line_chars: usize, keep: Keep) -> TextBounds {
    TextBounds {
        max_bytes,
        max_lines: usize::try_from(max_lines).unwrap_or(usize::MAX),
        max_line_chars,
        keep,
    }
}

/// Limits by lines and bytes: the bounds of a text, with this system's numbers.
fn inside_bounds(vector: &Vector) -> anyhow::Result<()> {
    let lines = number(&vector.given, "lines")?;
    let bytes = vector.given["bytes"].as_u64().unwrap_or(lines);
    let limits = bounds(2_000, 51_200, usize::MAX, Keep::Head);
    let lf = usize::try_from(lines)?;
    let text = format!(
        "{}{}",
        "q".repeat(usize::try_from(bytes)? - lf),
        "\n".repeat(lf)
    );
    ensure!(vector.expect["truncated"] == !limits.admits(&text));
    Ok(())
}

fn exempt_tools(vector: &Vector) -> anyhow::Result<()> {
    let tools = vector.given["tools"].as_array().context("tools")?;
    let most = number(&vector.expect, "limit_chars_for_others")?;
    let names = tools.iter().filter_map(Value::as_str);
    let pinned: BTreeMap<_, _> = names.map(|name| (name, "never")).collect();
    let profile = own(json!({
        "base": "hermes", "inline_limit": most, "pinned": pinned,
    }))?;
    let text = given_text(&vector.given)?;
    let is_spilled =
        |tool: &str| decide(&profile, &facts(tool, &text), &Given::default()) == Decision::Spilled;
    let spilled = pinned.keys().filter(|tool| is_spilled(tool)).count();
    ensure!(vector.expect["offloaded"] == spilled);
    ensure!(is_spilled("other") == (text.chars().count() as u64 > most));
    Ok(())
}

fn head_preview(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["content"])?;
    let PreviewRule::Head {
        measure, line_end, ..
    } = profile_of(vector)?.preview
    else {
        bail!("the profile shows no head")
    };
    let length = match vector.given["max_chars"].as_u64() {
        Some(length) => length,
        None => number(&vector.given, "preview_chars")?,
    };
    let cut = cut_head(
        &Windows::of(text.as_bytes(), 1 << 16),
        length,
        measure,
        line_end,
    );
    let shown = cut.head.chars().count();
    ensure!(vector.expect["preview_chars"] == shown, "{shown} shown");
    ensure!(vector.expect["has_more"] == (cut.omitted_bytes() > 0));
    if let Some(ends) = vector.expect.get("ends_with_newline") {
        ensure!(*ends == cut.head.ends_with('\n'));
    }
    Ok(())
}

fn rendered(profile: &Profile, tool: &str, body: &[u8]) -> anyhow::Result<Rendered> {
    let input = ReplacementInput {
        tool: Some(tool),
        summary: "s",
        completeness: Completeness::Unknown,
        known_lost: None,
        media_type: None,
        source_id: "artifact:s:0123456789abcdefghjkmnpqrt:0123456789ab",
        means: &[],
        target: HintTarget {
            locator: LOCATOR,
            token_variable: None,
            cli_args: &[],
        },
    };
    let facts = BodyFacts::of(body, profile.window_bytes());
    Ok(profile.render(&input, &facts)?)
}

fn pointer(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["output"])?;
    let tool = vector.given["tool"].as_str().context("tool")?;
    let profile = profile_of(vector)?;
    let message = rendered(&profile, tool, text.as_bytes())?;
    if vector.is_hazard() {
        // There the ends overlap and the text grows; here it stays, or it shrinks.
        ensure!(message.head_end <= message.tail_start);
        let is_whole = message.form == RenderedForm::Inline && message.text == text;
        ensure!(is_whole || message.text.len() < text.len());
        return Ok(());
    }
    let windows = Windows::of(text.as_bytes(), profile.window_bytes());
    let cut = match *profile.preview_of(tool) {
        PreviewRule::Head {
            length, measure, ..
        } => cut_head(&windows, length, measure, LineEnd::Ignored),
        PreviewRule::Ends {
            head,
            tail,
            measure,
        } => cut_ends(&windows, head, tail, measure),
        PreviewRule::Fill => bail!("not this system's"),
    };
    ensure!(message.head_end == cut.head_end && message.tail_start == cut.tail_start);
    let chars = |text: &str| text.chars().count() as u64;
    let (head, tail) = (chars(&cut.head), chars(&cut.tail));
    let omitted = chars(&text) - head - tail;
    let facts = [
        ("head_chars", head),
        ("tail_chars", tail),
        ("omitted_chars", omitted),
        ("kept_chars", head + tail),
        ("kept_utf8_bytes", (cut.head.len() + cut.tail.len()) as u64),
    ];
    for (name, found) in facts {
        if let Some(expected) = vector.expect.get(name) {
            ensure!(*expected == found, "{name}: {found}");
        }
    }
    if tail > 0 {
        ensure!(
            message
                .text
                .contains(&format!("{omitted} characters omitted"))
        );
    } else {
        ensure!(
            message
                .text
                .contains(&format!("the first {head} of {} characters", chars(&text)))
        );
    }
    if let Some(start) = vector.expect["head_starts"].as_str() {
        ensure!(cut.head.starts_with(start));
    }
    if let Some(unit) = vector.expect["tail_all"].as_str() {
        ensure!(cut.tail == unit.repeat(cut.tail.len() / unit.len()));
    }
    Ok(())
}

/// Previews by lines: the bounds of a text, with the numbers of these systems.
fn lines_preview(vector: &Vector) -> anyhow::Result<()> {
    let expect = &vector.expect;
    let lines = number(&vector.given, "lines")?;
    let long = usize::try_from(vector.given["line_chars"].as_u64().unwrap_or(8))?;
    let line = |number: u64| format!("{number}{}\n", "q".repeat(long));
    let text: String = (1..=lines).map(line).collect();
    let (limits, numbers) = if vector.system == "deepagents" {
        let most = usize::try_from(number(expect, "chars_per_line_max")?)?;
        let kept = number(expect, "head_lines")? + number(expect, "tail_lines")?;
        (bounds(kept, usize::MAX, most, Keep::Ends), true)
    } else {
        let keep = match vector.given["direction"].as_str() {
            Some("tail") => Keep::Tail,
            _ => Keep::Head,
        };
        (
            bounds(
                number(&vector.given, "max_lines")?,
                usize::MAX,
                usize::MAX,
                keep,
            ),
            false,
        )
    };
    let bounded = limits.apply(&text);
    let facts = [
        ("kept_first_lines", bounded.head_lines),
        ("kept_last_lines", bounded.tail_lines),
        ("head_lines", bounded.head_lines),
        ("tail_lines", bounded.tail_lines),
        ("notice_count", bounded.omitted_lines),
        ("omitted_lines", bounded.omitted_lines),
    ];
    for (name, found) in facts {
        if let Some(expected) = expect.get(name) {
            ensure!(*expected == found, "{name}: {found}");
        }
    }
    let shown = bounded.head.lines().chain(bounded.tail.lines());
    ensure!(
        shown
            .clone()
            .all(|line| line.chars().count() <= limits.max_line_chars)
    );
    if numbers {
        let first = lines - bounded.tail_lines as u64 + 1;
        ensure!(expect["tail_line_numbers"] == format!("{first}-{lines}"));
    }
    Ok(())
}

fn turn_of(profile: &Profile, budget: u64, items: &[TurnItem], price: u64) -> TurnPlan {
    plan(Limit::AtMost(budget), &profile.turn, items, |_| Some(price))
}

fn pairs(value: &Value) -> anyhow::Result<Vec<(String, Value)>> {
    Ok(Vec::<(String, Value)>::deserialize(value)?)
}

fn item(size: u64, standing: Standing) -> TurnItem {
    TurnItem { size, standing }
}

fn selected(vector: &Vector) -> anyhow::Result<()> {
    let thousand = if vector.given["unit"]
        .as_str()
        .is_some_and(|unit| unit.starts_with("thousand"))
    {
        1_000
    } else {
        1
    };
    let mut items = Vec::new();
    let mut names = Vec::new();
    for (name, size) in pairs(&vector.given["fresh"])? {
        items.push(item(
            size.as_u64().context("a size")? * thousand,
            Standing::Fresh,
        ));
        names.push(name);
    }
    let frozen = vector.given["frozen"].as_u64().unwrap_or(0) * thousand;
    items.push(item(frozen, Standing::Frozen));
    let budget = number(&vector.given, "limit")? * thousand;
    let plan = turn_of(&profile_of(vector)?, budget, &items, 0);
    let spilled: Vec<_> = plan
        .spilled
        .iter()
        .map(|place| names[*place].as_str())
        .collect();
    ensure!(vector.expect["selected"] == json!(spilled), "{spilled:?}");
    if let Some(left) = vector.expect["left"].as_u64() {
        ensure!(plan.total == left * thousand, "{} left", plan.total);
    }
    ensure!(plan.is_over_budget == (plan.total > budget));
    Ok(())
}

fn sequential(vector: &Vector) -> anyhow::Result<()> {
    let profile = profile_of(vector)?;
    let (budget, size) = (
        number(&vector.given, "limit")?,
        number(&vector.given, "chars_per_turn")?,
    );
    let turn = [item(size, Standing::Fresh)];
    let turns = 0..number(&vector.given, "turns")?;
    let spilled: usize = turns
        .map(|_| turn_of(&profile, budget, &turn, 100).spilled.len())
        .sum();
    ensure!(vector.expect["replaced"] == spilled);
    Ok(())
}

/// Digits of a sentence like `already a persisted block, 2,300 chars`.
fn said_number(text: &str) -> anyhow::Result<u64> {
    let mut words = text.split([' ', 'k']).rev();
    let word = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let digits = word.context("a number")?.replace(',', "");
    let number: u64 = digits.parse()?;
    Ok(if text.contains(&format!("{digits}k")) {
        number * 1_000
    } else {
        number
    })
}

fn enforced(vector: &Vector) -> anyhow::Result<()> {
    let (given, expect) = (&vector.given, &vector.expect);
    let profile = profile_of(vector)?;
    let budget = number(given, "budget")?;
    let results = pairs(&given["results"])?;
    if expect.get("spilled").is_some() {
        return largest_part(vector, &profile, budget);
    }
    let mut items = Vec::new();
    for (_, size) in &results {
        items.push(match (size.as_u64(), size.as_str()) {
            (Some(size), _) => item(size, Standing::Fresh),
            (None, Some(said)) if said.starts_with("already") => {
                item(said_number(said)?, Standing::Frozen)
            }
            _ => bail!("an unknown result: {size}"),
        });
    }
    let before: u64 = items.iter().map(|item| item.size).sum();
    let rule: &TurnRule = &profile.turn;
    let plan = plan(Limit::AtMost(budget), rule, &items, |place| {
        let text = "q".repeat(usize::try_from(items[place].size).ok()?);
        let message = rendered(&profile, "x", text.as_bytes()).ok()?;
        Some(message.text.chars().count() as u64)
    });
    let spilled: Vec<_> = plan
        .spilled
        .iter()
        .map(|place| results[*place].0.as_str())
        .collect();
    if vector.is_hazard() {
        // There tiny results grow; here nothing is taken out for something larger.
        ensure!(plan.total <= before && spilled.is_empty(), "{spilled:?}");
        ensure!(expect["within_budget_after"] == !plan.is_over_budget);
        return Ok(());
    }
    if let Some(order) = expect.get("spilled_in_order") {
        ensure!(*order == json!(spilled), "{spilled:?}");
    }
    if let Some(within) = expect.get("within_budget_after") {
        ensure!(*within == !plan.is_over_budget, "{}", plan.total);
    }
    for (name, _) in &results {
        for (suffix, expected) in [("changed", "_changed"), ("persisted", "_persisted")] {
            if let Some(said) = expect.get(format!("{name}{expected}")) {
                ensure!(*said == spilled.contains(&name.as_str()), "{name} {suffix}");
            }
        }
        if expect.get(format!("{name}_counts_in_total")) == Some(&json!(true)) {
            ensure!(plan.total >= items[0].size);
        }
    }
    Ok(())
}

/// `parts: image, text 400 chars, text 900 chars`: the largest text is taken, the others stay.
fn largest_part(vector: &Vector, profile: &Profile, budget: u64) -> anyhow::Result<()> {
    let results = pairs(&vector.given["results"])?;
    let said = results[0].1.as_str().context("parts")?;
    let said = said.strip_prefix("parts: ").context("parts")?;
    let mut values = Vec::new();
    for part in said.split(", ") {
        values.push(match part.strip_prefix("text ") {
            Some(size) => {
                let size = usize::try_from(said_number(size)?)?;
                json!({"type": "text", "text": "q".repeat(size)})
            }
            None => json!({"type": part}),
        });
    }
    let parts = Parts::new(values)?;
    let size = parts.text_size().get(profile.turn.measure);
    ensure!(vector.expect["size_counted"] == size, "{size} counted");
    let place = parts.largest_text().context("a text")?;
    let largest = parts.text(place).context("a text")?.chars().count();
    let name = format!("the {largest}-char text part");
    ensure!(vector.expect["spilled"] == name, "{name}");
    ensure!(vector.expect["saved_under"] == format!("{}_part{place}", results[0].0));
    let items = [item(size, Standing::Fresh)];
    ensure!(turn_of(profile, budget, &items, 300).spilled == [0]);
    let shown = parts.with_text(place, String::new());
    for (other, part) in parts.as_values().iter().enumerate() {
        ensure!(other == place || shown[other] == *part);
    }
    Ok(())
}

fn did(name: &str) -> DecisionId {
    use spillbox::digest::Sha256Digest;
    use spillbox::ids::{Question, Tenant};
    let session = "s".parse().expect("a session");
    let call = name.parse().expect("a call id");
    let digest = Sha256Digest::of(name.as_bytes());
    DecisionId::derive(
        Question::Result,
        &Tenant::default(),
        &session,
        &call,
        &digest,
    )
}

fn record(decisions: &[(&str, Action)]) -> TurnRecord {
    let named = decisions.iter().map(|(name, action)| (did(name), *action));
    TurnRecord::new(named.collect(), Templates::default().newest().version)
}

fn first_pass(vector: &Vector) -> anyhow::Result<()> {
    // Two results of which the pass takes out the larger one.
    let items = [item(10, Standing::Fresh), item(90, Standing::Fresh)];
    let plan = turn_of(&profile_of(vector)?, 50, &items, 5);
    let action = |place| {
        if plan.spilled.contains(&place) {
            Action::Spilled
        } else {
            Action::Inline
        }
    };
    let made = record(&[("t1", action(0)), ("t2", action(1))]);
    let read = TurnRecord::decode(&made.encode())?;
    let names = ["t1", "t2"];
    let seen: Vec<_> = names
        .iter()
        .filter(|name| read.results.contains_key(&did(name)))
        .collect();
    ensure!(vector.expect["seen"] == json!(seen));
    let is_spilled = |name: &&&str| read.results.get(&did(name)) == Some(&Action::Spilled);
    let spilled: Vec<_> = names.iter().filter(is_spilled).collect();
    ensure!(vector.expect["replacements"] == json!(spilled));
    Ok(())
}

/// What was seen is met again: as it was decided, whatever the budget is now.
fn met_again(vector: &Vector) -> anyhow::Result<()> {
    let seen = Vec::<String>::deserialize(&vector.given["seen"])?;
    let replacements = &vector.given["replacements"];
    let action = |name: &str| {
        if replacements.get(name).is_some() {
            Action::Spilled
        } else {
            Action::Inline
        }
    };
    let decided: Vec<_> = seen
        .iter()
        .map(|name| (name.as_str(), action(name)))
        .collect();
    let turns = [record(&decided)];
    let items: Vec<_> = seen
        .iter()
        .map(|_| item(90_000, Standing::Frozen))
        .collect();
    let plan = turn_of(&profile_of(vector)?, 1, &items, 5);
    ensure!(plan.spilled.is_empty(), "a decided result was touched");
    for name in &seen {
        let level = Level {
            did: Some(did(name)),
            turns: &turns,
            result: None,
        };
        let Nearest::ByTurn(frozen) = nearest(&[level]) else {
            bail!("{name} is not decided")
        };
        ensure!(frozen.action == action(name), "{name}: {frozen:?}");
        let is_repeated = vector.expect.get(name) == replacements.get(name);
        let is_spilled = frozen.action == Action::Spilled;
        ensure!(!is_spilled || is_repeated, "{name} is not repeated");
    }
    Ok(())
}

/// What a message states, as far as the case gives its words.
fn worded(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["content"])?;
    let message = rendered(&profile_of(vector)?, "x", text.as_bytes())?.text;
    let expect = vector.expect.as_object().context("expectations")?;
    let mut checked = 0;
    for (name, value) in expect {
        let words: Vec<&str> = match value {
            Value::String(word) if name != "why" => vec![word],
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => Vec::new(),
        };
        for word in words {
            ensure!(message.contains(word), "no `{word}` in {message}");
            checked += 1;
        }
    }
    ensure!(checked > 0, "nothing is expected of the words");
    Ok(())
}

fn cloned(vector: &Vector) -> anyhow::Result<()> {
    let parent = [record(&[("t1", Action::Spilled)])];
    let child = [record(&[("t2", Action::Inline)])];
    let is_decided = |name: &str, sessions: &[&[TurnRecord]]| {
        let levels: Vec<_> = sessions
            .iter()
            .map(|turns| Level {
                did: Some(did(name)),
                turns,
                result: None,
            })
            .collect();
        nearest(&levels) != Nearest::Undecided
    };
    let known = |sessions: &[&[TurnRecord]]| -> Vec<&str> {
        ["t1", "t2"]
            .into_iter()
            .filter(|name| is_decided(name, sessions))
            .collect()
    };
    ensure!(vector.expect["child_has"] == json!(known(&[&child, &parent])));
    ensure!(vector.expect["parent_has"] == json!(known(&[&parent])));
    Ok(())
}

fn exempt_of_turn(vector: &Vector) -> anyhow::Result<()> {
    let said = vector.given["exempt_tool_result"]
        .as_str()
        .context("a sentence")?;
    let mut items = vec![item(said_number(said)?, Standing::Exempt)];
    for (_, size) in pairs(&vector.given["fresh"])? {
        items.push(item(size.as_u64().context("a size")?, Standing::Fresh));
    }
    let profile = profile_of(vector)?;
    ensure!(profile.never_externalizes("Read"));
    let plan = turn_of(&profile, number(&vector.given, "limit")?, &items, 2_300);
    ensure!(!plan.spilled.contains(&0) && plan.is_over_budget);
    Ok(())
}

fn probed(vector: &Vector) -> anyhow::Result<()> {
    let size = bytes_of(&vector.given["content"])?.len() as u64;
    let probe = vector.given["size_probe"].as_str().context("probe")?;
    let verdict = CopyVerdict::of(size, probe);
    ensure!(
        vector.expect["accepted"] == verdict.is_accepted(),
        "{verdict:?}"
    );
    if vector.expect["partial_copy"] == "removed" {
        ensure!(verdict == CopyVerdict::Partial);
    }
    Ok(())
}

/// Bodies travel on standard input: no command that is printed grows with them.
fn short_command(vector: &Vector) -> anyhow::Result<()> {
    let body = bytes_of(&vector.given["content"])?;
    let most = usize::try_from(number(&vector.expect, "command_chars_max")?)?;
    let target = HintTarget {
        locator: LOCATOR,
        token_variable: Some("SPILLBOX_TOKEN"),
        cli_args: &["--store".to_owned(), "local:/var/lib/spillbox".to_owned()],
    };
    for means in [
        RetrievalMeans::Http,
        RetrievalMeans::Cli,
        RetrievalMeans::File,
    ] {
        for place in [
            ReadOn::Line(body.len() as u64),
            ReadOn::Byte(body.len() as u64),
            ReadOn::Whole,
        ] {
            let command = hint(std::slice::from_ref(&means), &target, place);
            ensure!(
                command.is_none_or(|command| command.len() <= most),
                "{means}"
            );
        }
    }
    Ok(())
}

fn backlog() -> anyhow::Result<()> {
    let backlog = Backlog { allowed: 1 };
    let (mut open, mut started) = (0, Vec::new());
    for _ in 0..3 {
        started.push(backlog.may_start(open));
        open += 1;
    }
    ensure!(started == [true, true, false], "{started:?}");
    ensure!(backlog.may_start(1), "one save has finished");
    Ok(())
}

fn sentence(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["content"])?;
    let tool = vector.given["tool"].as_str().context("tool")?;
    let decision = decide(&profile_of(vector)?, &facts(tool, &text), &Given::default());
    ensure!(decision == Decision::Sentence && vector.expect["persist"] == decision.is_stored());
    let words = (Templates::default().newest().nothing_printed)(Some(tool), text.len() as u64);
    ensure!(words.contains(tool) && words.contains("no output") && !is_blank(&words));
    Ok(())
}

/// A hazard there: a text with half a character fails after its name was taken. Here such a text is
/// refused as JSON before anything else, and as bytes it is stored like any others.
fn lone_surrogate(vector: &Vector) -> anyhow::Result<()> {
    ensure!(vector.is_hazard());
    let given = &vector.given["output"];
    let pieces = given["concat"].as_array().context("pieces")?;
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece["utf16"].as_str() {
            Some(unit) => {
                let json = format!("\"\\u{unit}\"");
                ensure!(serde_json::from_str::<String>(&json).is_err(), "{json}");
                let unit = u32::from_str_radix(unit, 16)?;
                let low =
                    |shift: u32| u8::try_from(unit >> shift & 0x3f).unwrap_or_default() | 0x80;
                bytes.extend([0xe0 | u8::try_from(unit >> 12)?, low(6), low(0)]);
            }
            None => bytes.extend(bytes_of(piece)?),
        }
    }
    let facts = BodyFacts::of(&bytes, 1 << 16);
    let mut result = self::facts("bash", "x");
    (result.size, result.is_binary) = (facts.measures, facts.is_binary());
    let profile = profile_of(vector)?;
    ensure!(decide(&profile, &result, &Given::default()) == Decision::Described);
    let message = rendered(&profile, "bash", &bytes)?;
    ensure!(message.form == RenderedForm::Description && facts.size_bytes == bytes.len() as u64);
    Ok(())
}

fn original(profile: &Profile, text: &str) -> anyhow::Result<()> {
    let windows = Windows::of(text.as_bytes(), profile.window_bytes());
    ensure!(fallback(profile, &windows, Some("x"), Seen::Whole) == Fallback::Original);
    Ok(())
}

fn originals(vector: &Vector) -> anyhow::Result<()> {
    let text = text_of(&vector.given["text"])?;
    let cap = number(&vector.given, "max_inline_bytes")?;
    let profile = own(json!({"base": "dsh", "inline_limit": cap}))?;
    for _ in vector.given["failure"].as_array().context("failures")? {
        original(&profile, &text)?;
    }
    ensure!(vector.expect["is_error"] == (profile.on_save_failure == OnSaveFailure::Error));
    Ok(())
}

fn warned_original(vector: &Vector) -> anyhow::Result<()> {
    let text = given_text(&vector.given)?;
    let profile = profile_of(vector)?;
    ensure!(decide(&profile, &facts("x", &text), &Given::default()) == Decision::Spilled);
    original(&profile, &text)
}

/// A hazard there: the tail is lost. Here both ends are shown, with the whole size.
fn both_ends(vector: &Vector) -> anyhow::Result<()> {
    let mut text = text_of(&vector.given["content"])?;
    let size = text.chars().count() as u64;
    ensure!(
        vector.expect["text"]
            .as_str()
            .is_some_and(|said| said.contains(&grouped(size)))
    );
    text.truncate(text.len() - 6);
    text.push_str("\nlast\n");
    let profile = profile_of(vector)?;
    let windows = Windows::of(text.as_bytes(), profile.window_bytes());
    let Fallback::Text(shown) = fallback(&profile, &windows, Some("x"), Seen::Whole) else {
        bail!("no text")
    };
    ensure!(vector.is_hazard() && vector.expect["block"] == shown.contains("<persisted-output>"));
    ensure!(
        shown.contains(&size.to_string()) && shown.contains("\nlast\n"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn units_are_not_mixed_up() {
    let profile = built_in().remove(2);
    assert_eq!(profile.name, "claude-code");
    let text = "🙂".repeat(25_001);
    let decision = decide(&profile, &facts("x", &text), &Given::default());
    assert_eq!(
        decision,
        Decision::Spilled,
        "50,002 units, 25,001 characters"
    );
    assert_eq!(profile.limits.default.measure, Measure::Utf16Units);
}
