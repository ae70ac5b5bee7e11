//! The tools that read: a page, hits, what is known, what stands out, what there is.

use axum::body::Body;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Request, Response};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::artifact::locator::parse_locator;
use crate::http::api_path::ApiPath;
use crate::ids::{ArtifactRef, SessionId};
use crate::limits::{DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES};
use crate::mcp::answer::{self, Refused, bounded};
use crate::mcp::arguments::{GrepArguments, ListArguments, LocatorArguments, Mode, ReadArguments};
use crate::mcp::ask::Ask;

/// Kept free in a reply for the line that says where to go on; a cursor is the longest thing in it.
const NOTE_BYTES: u64 = 400;

/// A reply's bound when nothing else is asked for.
const REPLY_BYTES: usize = DEFAULT_REPLY_BYTES as usize;

/// A document of the API: a manifest, an outline, a page of a list.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// Artifacts that a list shows, and can show: a row has at most [`ROW_BYTES`].
const DEFAULT_LIST_ROWS: u64 = 20;
const MAX_LIST_ROWS: u64 = 50;
const ROW_BYTES: usize = 440;

type Answer = Result<CallToolResult, Refused>;

/// Reads the artifact off a locator; nothing else of it is used.
pub(super) fn artifact(locator: &str) -> Result<ArtifactRef, Refused> {
    parse_locator(locator).ok_or_else(Refused::no_locator)
}

pub(super) fn session_of(text: Option<&str>, own: &SessionId) -> Result<SessionId, Refused> {
    match text {
        None => Ok(own.clone()),
        Some(text) => text.parse().map_err(|error| {
            Refused::arguments(
                format!("session: {error}"),
                "leave it out for the server's own session",
            )
        }),
    }
}

async fn get(
    ask: &dyn Ask,
    path: &ApiPath,
    accept: &'static str,
) -> Result<Response<Body>, Refused> {
    let request = Request::get(path.as_str())
        .header(ACCEPT, HeaderValue::from_static(accept))
        .body(Body::empty())
        .map_err(|error| Refused::arguments(error.to_string(), "shorten the arguments"))?;
    let reply = ask.ask(request).await;
    answer::success(reply.map_err(|error| Refused::no_answer(&error))?).await
}

/// Bytes of content in a reply, with the rest kept for its note.
fn content_bytes(max_bytes: Option<u64>) -> Result<u64, Refused> {
    let most = max_bytes.unwrap_or(DEFAULT_REPLY_BYTES);
    if !(NOTE_BYTES + 1..=MAX_REPLY_BYTES).contains(&most) {
        let rule = format!("max_bytes: {} to {MAX_REPLY_BYTES}", NOTE_BYTES + 1);
        return Err(Refused::arguments(rule, "leave it out for 24000"));
    }
    Ok(most - NOTE_BYTES)
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// `artifact_read`
pub(super) async fn read(ask: &dyn Ask, wanted: &ReadArguments) -> Answer {
    let artifact = artifact(&wanted.locator)?;
    let path = ApiPath::artifact(&artifact, "/lines")
        .with("offset", wanted.offset)
        .with("limit", wanted.limit)
        .with("from_end", wanted.from_end)
        .with("byte_offset", wanted.byte_offset)
        .with("max_bytes", Some(content_bytes(wanted.max_bytes)?));
    let reply = get(ask, &path, "text/plain").await?;
    let headers = reply.headers().clone();
    let total = number(&headers, "spillbox-total-lines");
    let next_byte = number(&headers, "spillbox-next-byte");
    let next_offset = number(&headers, "spillbox-next-offset");
    let is_past_end = headers.contains_key("spillbox-past-end");
    // What is not UTF-8 is replaced by a character of three bytes for one.
    let page = answer::text(reply, 3 * MAX_REPLY_BYTES as usize).await?;
    let of = total.map_or_else(String::new, |total| format!(" of {total} lines"));
    let note = match (next_byte, next_offset) {
        (Some(byte), _) => {
            format!("[spillbox] the page ends inside a line{of}; to read on: byte_offset={byte}")
        }
        (None, Some(line)) => format!(
            "[spillbox] the page ends before line {}{of}; to read on: offset={line}",
            line + 1
        ),
        (None, None) if is_past_end => format!("[spillbox] nothing is there: past the end{of}"),
        (None, None) => format!("[spillbox] the page ends with the body{of}"),
    };
    let most =
        usize::try_from(wanted.max_bytes.unwrap_or(DEFAULT_REPLY_BYTES)).unwrap_or(REPLY_BYTES);
    let page = bounded(page, most.saturating_sub(note.len()));
    let mut result =
        CallToolResult::success(vec![ContentBlock::text(page), ContentBlock::text(note)]);
    result.structured_content = Some(json!({
        "total_lines": total,
        "next_offset": next_offset.filter(|_| next_byte.is_none()),
        "next_byte": next_byte,
        "past_end": is_past_end,
    }));
    Ok(result)
}

/// `artifact_grep`
pub(super) async fn grep(ask: &dyn Ask, wanted: &GrepArguments) -> Answer {
    let artifact = artifact(&wanted.locator)?;
    let path = ApiPath::artifact(&artifact, "/grep")
        .with("pattern", Some(&wanted.pattern))
        .with("mode", wanted.mode.map(Mode::as_str))
        .with("ignore_case", wanted.ignore_case)
        .with("context", wanted.context)
        .with("limit", wanted.limit)
        .with("cursor", wanted.cursor.as_ref())
        .with("max_bytes", Some(content_bytes(wanted.max_bytes)?));
    let reply = get(ask, &path, "text/plain").await?;
    let headers = reply.headers().clone();
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let matches = number(&headers, "spillbox-matches");
    let reason = header("spillbox-truncated");
    let cursor = header("spillbox-next-cursor");
    let rows = answer::text(reply, 2 * MAX_REPLY_BYTES as usize).await?;
    let found = matches.map_or_else(String::new, |matches| format!(" {matches} hits;"));
    let note = match &cursor {
        Some(cursor) => format!(
            "[spillbox]{found} cut ({}); to go on: cursor={cursor}",
            reason.as_deref().unwrap_or("more follow")
        ),
        None => format!("[spillbox]{found} the search is complete"),
    };
    let mut result =
        CallToolResult::success(vec![ContentBlock::text(rows), ContentBlock::text(note)]);
    result.structured_content = Some(json!({
        "matches": matches,
        "truncated": reason,
        "next_cursor": cursor,
    }));
    Ok(result)
}

/// `artifact_stat`
pub(super) async fn stat(ask: &dyn Ask, wanted: &LocatorArguments) -> Answer {
    let artifact = artifact(&wanted.locator)?;
    let path = ApiPath::artifact(&artifact, "/stat");
    let reply = get(ask, &path, "application/json").await?;
    let mut manifest = answer::json(reply, MAX_DOCUMENT_BYTES).await?;
    let link = answer::link(&manifest);
    if let Some(members) = manifest.as_object_mut() {
        // Both can be long, and have their own tools.
        members.remove("outline");
        if let Some(Value::Object(replacement)) = members.get_mut("replacement") {
            replacement.remove("text");
        }
    }
    Ok(document(&manifest, link))
}

/// `artifact_outline`
pub(super) async fn outline(ask: &dyn Ask, wanted: &LocatorArguments) -> Answer {
    let artifact = artifact(&wanted.locator)?;
    let path = ApiPath::artifact(&artifact, "/outline");
    let reply = get(ask, &path, "application/json").await?;
    let outline = answer::json(reply, MAX_DOCUMENT_BYTES).await?;
    Ok(document(&outline, None))
}

/// Not as structured content too: the prompt would hold it twice.
fn document(document: &Value, link: Option<ContentBlock>) -> CallToolResult {
    let text = serde_json::to_string_pretty(document).unwrap_or_else(|_| document.to_string());
    let shown = ContentBlock::text(bounded(text, REPLY_BYTES));
    CallToolResult::success([Some(shown), link].into_iter().flatten().collect())
}

/// `artifact_list`
pub(super) async fn list(ask: &dyn Ask, own: &SessionId, wanted: &ListArguments) -> Answer {
    let session = session_of(wanted.session.as_deref(), own)?;
    let limit = wanted.limit.unwrap_or(DEFAULT_LIST_ROWS);
    if !(1..=MAX_LIST_ROWS).contains(&limit) {
        let rule = format!("limit: 1 to {MAX_LIST_ROWS}");
        return Err(Refused::arguments(rule, "follow the cursor for more"));
    }
    let path = ApiPath::artifacts(&session)
        .with("limit", Some(limit))
        .with("tool", wanted.tool.as_ref())
        .with("cursor", wanted.cursor.as_ref());
    let reply = get(ask, &path, "application/json").await?;
    let page = answer::json(reply, MAX_DOCUMENT_BYTES).await?;
    let artifacts = page.get("artifacts").and_then(Value::as_array);
    let rows: Vec<String> = artifacts.into_iter().flatten().map(row).collect();
    let cursor = page.get("next_cursor").and_then(Value::as_str);
    let note = match cursor {
        Some(cursor) => format!(
            "[spillbox] {} artifacts; to go on: cursor={cursor}",
            rows.len()
        ),
        None => format!("[spillbox] {} artifacts, and no more", rows.len()),
    };
    let mut result = CallToolResult::success(vec![
        ContentBlock::text(rows.concat()),
        ContentBlock::text(note),
    ]);
    result.structured_content = Some(json!({"next_cursor": cursor}));
    Ok(result)
}

/// One artifact on a line: what a model needs to choose one.
fn row(listed: &Value) -> String {
    let text = |name: &str| listed.get(name).and_then(Value::as_str).unwrap_or("-");
    let count = |name: &str| listed.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut row = format!(
        "{}  {}  {} bytes, {} lines  {}",
        text("locator"),
        text("captured_at"),
        count("size_bytes"),
        count("line_count"),
        text("summary"),
    );
    row.truncate(row.floor_char_boundary(ROW_BYTES));
    row.push('\n');
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_stays_below_a_replys_bound() {
        let listed = json!({
            "locator": "http://h/a/b.c", "captured_at": "2026-12-01T00:00:00Z", "size_bytes": 1,
            "line_count": 1, "summary": "é".repeat(400),
        });
        let rows = row(&listed).len() as u64 * MAX_LIST_ROWS;
        assert!(rows + NOTE_BYTES < DEFAULT_REPLY_BYTES, "{rows}");
    }

    #[test]
    fn a_bound_leaves_room_for_the_note() {
        assert_eq!(
            content_bytes(None).ok(),
            Some(DEFAULT_REPLY_BYTES - NOTE_BYTES)
        );
        assert_eq!(content_bytes(Some(401)).ok(), Some(1));
        for bad in [0, 400, MAX_REPLY_BYTES + 1] {
            assert!(content_bytes(Some(bad)).is_err(), "{bad}");
        }
    }
}
