//! Claude Code's `PostToolUse` event and the reply that replaces what a tool returned.
//!
//! A replacement for a built-in tool must have the shape of the tool's own output, else it is ignored (no
//! word of it anywhere); so the whole `tool_response` goes back as it came, with texts exchanged in their
//! places. `docs/HARNESSES.md` says which fields are relied on and where that was read.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::failure::Failure;

/// The event.
const EVENT: &str = "PostToolUse";

/// Tools whose output holds files' content that the model is not shown.
const SILENT_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Write"];

/// Members of an output that are shown to the model as they are.
const TEXT_MEMBERS: &[&str] = &["stdout", "stderr", "content", "result", "output", "text"];

/// One tool call, as far as it matters here. What else the event has is not looked at.
#[derive(Debug, Deserialize)]
pub struct Event {
    hook_event_name: String,
    /// The harness's session, which is ours as well.
    pub session_id: String,
    /// The tool's name, `mcp__SERVER__TOOL` for one of a server.
    pub tool_name: String,
    /// The call's id.
    pub tool_use_id: Option<String>,
    #[serde(default)]
    tool_response: Value,
}

/// Where a text stands in a tool's output: a JSON pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPlace(String);

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    /// It is no event of a finished tool call, or not in the known form.
    pub fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let event: Self = serde_json::from_slice(bytes)
            // Without the text of the error, which repeats what it met.
            .map_err(|error| {
                Failure::new(format!(
                    "standard input is no {EVENT} event (byte {} of line {})",
                    error.column(),
                    error.line()
                ))
                .with_hint("the hook belongs under \"PostToolUse\" in the settings")
            })?;
        if event.hook_event_name == EVENT {
            Ok(event)
        } else {
            Err(Failure::new(format!("the event is not {EVENT}"))
                .with_hint("the hook belongs under \"PostToolUse\" in the settings"))
        }
    }

    /// Returns where the output has text that the model is shown, the longest first.
    pub fn texts(&self) -> Vec<TextPlace> {
        if SILENT_TOOLS.contains(&self.tool_name.as_str()) {
            return Vec::new();
        }
        let mut found = Vec::new();
        collect(&self.tool_response, "", &mut found);
        found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        found.into_iter().map(|(_, place)| place).collect()
    }

    /// Returns the text at a place.
    pub fn text_mut(&mut self, place: &TextPlace) -> Option<&mut String> {
        match self.tool_response.pointer_mut(&place.0) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the reply that puts the output, as it is now, in the place of the original.
    pub fn into_reply(self) -> Value {
        json!({
            "hookSpecificOutput": {
                "hookEventName": EVENT,
                "updatedToolOutput": self.tool_response,
            }
        })
    }
}

/// Looks at the known places: a bare text, members of an output, content blocks, a file that was read.
fn collect(value: &Value, at: &str, found: &mut Vec<(usize, TextPlace)>) {
    match value {
        Value::String(text) if !text.is_empty() => {
            found.push((text.len(), TextPlace(at.to_owned())));
        }
        Value::Array(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                if block.get("type").and_then(Value::as_str) == Some("text")
                    && let Some(text) = block.get("text").filter(|text| text.is_string())
                {
                    collect(text, &format!("{at}/{index}/text"), found);
                }
            }
        }
        Value::Object(members) if !is_kept_elsewhere(value) => {
            for name in TEXT_MEMBERS {
                if let Some(member) = members.get(*name) {
                    let is_shown = member.is_string() || member.is_array();
                    if is_shown {
                        collect(member, &format!("{at}/{name}"), found);
                    }
                }
            }
            if let Some(content) = value.pointer("/file/content").filter(|it| it.is_string()) {
                collect(content, &format!("{at}/file/content"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
    }
}

/// An image in `stdout` is no text; and what the harness itself has put into a file is not whole here.
fn is_kept_elsewhere(output: &Value) -> bool {
    let is_image = output.get("isImage").and_then(Value::as_bool) == Some(true);
    let is_persisted = output
        .get("persistedOutputPath")
        .is_some_and(|path| !path.is_null());
    let is_other_type = output
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind != "text");
    is_image || is_persisted || is_other_type
}

#[cfg(test)]
mod tests;
