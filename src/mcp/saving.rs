//! The tool that stores.

use axum::body::Body;
use http::Request;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::http::api_path::ApiPath;
use crate::ids::SessionId;
use crate::limits::{DEFAULT_REPLY_BYTES, MAX_REPLY_BYTES};
use crate::mcp::answer::{self, Refused, bounded};
use crate::mcp::arguments::SaveArguments;
use crate::mcp::ask::Ask;
use crate::mcp::reading::session_of;

/// A model's argument is in memory whole, several times; larger outputs have the command line.
const MAX_CONTENT_BYTES: usize = 1 << 20;

/// A receipt with a replacement in it, escaped as JSON.
const MAX_RECEIPT_BYTES: usize = 8 << 20;

/// What stands before the preview.
const NOTE_BYTES: u64 = 400;

/// The retrieval means that a caller of a tool has: the tool beside it.
const MEANS: &str = "mcp:artifact_read";

/// `artifact_save`
pub(super) async fn save(
    ask: &dyn Ask,
    own: &SessionId,
    wanted: SaveArguments,
) -> Result<CallToolResult, Refused> {
    if wanted.content.len() > MAX_CONTENT_BYTES {
        return Err(Refused::arguments(
            format!("content: at most {MAX_CONTENT_BYTES} bytes of UTF-8"),
            "send larger outputs with `spillbox put` or `spillbox run`",
        ));
    }
    let session = session_of(wanted.session.as_deref(), own)?;
    let path = ApiPath::artifacts(&session)
        .with("tool", wanted.tool)
        .with("call_id", wanted.call_id)
        .with("name", wanted.name)
        .with("title", wanted.title)
        .with("summary", wanted.summary)
        .with("means", Some(MEANS));
    let request = Request::post(path.as_str())
        .header(CONTENT_TYPE, "text/plain; charset=utf-8")
        .header(CONTENT_LENGTH, wanted.content.len())
        .body(Body::from(wanted.content))
        .map_err(|error| Refused::arguments(error.to_string(), "shorten the arguments"))?;
    let reply = ask.ask(request).await;
    let reply = answer::success(reply.map_err(|error| Refused::no_answer(&error))?).await?;
    let mut receipt = answer::json(reply, MAX_RECEIPT_BYTES).await?;
    let note = told(&receipt);
    let is_preview = receipt.get("truncated").and_then(Value::as_bool) == Some(true);
    let replacement = receipt
        .as_object_mut()
        .and_then(|receipt| receipt.remove("replacement"));
    let preview = replacement
        .as_ref()
        .and_then(Value::as_str)
        .filter(|_| is_preview);
    let most = usize::try_from((DEFAULT_REPLY_BYTES - NOTE_BYTES).min(MAX_REPLY_BYTES));
    let preview = preview.map(|text| bounded(text.to_owned(), most.unwrap_or(0)));
    let mut content = vec![ContentBlock::text(note)];
    content.extend(preview.map(ContentBlock::text));
    content.extend(answer::link(&receipt));
    Ok(CallToolResult::success(content))
}

/// What became of the text, in a line.
fn told(receipt: &Value) -> String {
    let text = |name: &str| receipt.get(name).and_then(Value::as_str).unwrap_or("-");
    let count = |name: &str| receipt.get(name).and_then(Value::as_u64).unwrap_or(0);
    format!(
        "[spillbox] stored: {} bytes, {} lines; locator: {}; source_id: {}",
        count("size_bytes"),
        count("line_count"),
        text("locator"),
        text("source_id"),
    )
}
