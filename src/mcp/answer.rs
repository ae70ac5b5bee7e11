//! Replies of the API as results of tools.
//!
//! What goes wrong is a result with our code in it, not an error of the protocol: models see results only,
//! and can then do what the hint says.

use axum::body::Body;
use http::{Response, StatusCode};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};

use crate::error::ErrorCode;
use crate::mcp::ask::NoAnswerError;

/// A problem document is small; more of a foreign reply is not read.
const MAX_PROBLEM_BYTES: usize = 64 << 10;

/// Why a tool has nothing to show: already in the form of its result.
#[derive(Debug)]
pub struct Refused(pub Box<CallToolResult>);

impl Refused {
    /// Refuses arguments before anything is asked.
    pub fn arguments(detail: impl Into<String>, hint: &str) -> Self {
        Self::with(&json!({
            "code": ErrorCode::InvalidParameter.as_str(),
            "detail": detail.into(),
            "hint": hint,
            "retryable": false,
            "no_side_effects": true,
        }))
    }

    /// Refuses what is no locator, as the API refuses an unknown one.
    pub fn no_locator() -> Self {
        Self::with(&json!({
            "code": ErrorCode::ArtifactNotFound.as_str(),
            "detail": "that is not a locator",
            "hint": "a locator ends in {26 characters}.{26 characters}; artifact_list shows them",
            "retryable": false,
            "no_side_effects": true,
        }))
    }

    /// Tells that no reply came.
    pub fn no_answer(error: &NoAnswerError) -> Self {
        Self::with(&json!({
            "code": ErrorCode::StoreUnavailable.as_str(),
            "detail": error.message,
            "hint": error.hint,
            "retryable": true,
        }))
    }

    /// Tells of a reply that broke off, or is not of the API.
    pub fn odd_reply(detail: &str) -> Self {
        Self::with(&json!({"code": ErrorCode::Internal.as_str(), "detail": detail}))
    }

    fn with(problem: &Value) -> Self {
        let text = |name| problem.get(name).and_then(Value::as_str);
        let code = text("code").unwrap_or("internal");
        let mut told = format!("error: {} ({code})", text("detail").unwrap_or_default());
        if let Some(hint) = text("hint") {
            told.push_str("\nhint: ");
            told.push_str(hint);
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(told)]);
        result.structured_content = Some(problem.clone());
        Self(Box::new(result))
    }
}

/// Returns the reply where it is a success.
///
/// # Errors
/// It says what is wrong, or is not of the API.
pub async fn success(reply: Response<Body>) -> Result<Response<Body>, Refused> {
    let status = reply.status();
    // 202 tells of an unknown outcome, as a problem.
    if status.is_success() && status != StatusCode::ACCEPTED {
        return Ok(reply);
    }
    let body = axum::body::to_bytes(reply.into_body(), MAX_PROBLEM_BYTES).await;
    let problem = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    match problem {
        Some(problem @ Value::Object(_)) => Err(Refused::with(&problem)),
        _ => Err(Refused::odd_reply(&format!(
            "the server answered {status} without a reason"
        ))),
    }
}

/// Returns the text of a reply.
///
/// # Errors
/// It broke off, or is longer than `most` bytes.
pub async fn text(reply: Response<Body>, most: usize) -> Result<String, Refused> {
    let body = axum::body::to_bytes(reply.into_body(), most).await;
    let body = body.map_err(|_| Refused::odd_reply("the reply broke off"))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Returns the document of a reply.
///
/// # Errors
/// It broke off, is longer than `most` bytes, or no JSON.
pub async fn json(reply: Response<Body>, most: usize) -> Result<Value, Refused> {
    let text = text(reply, most).await?;
    serde_json::from_str(&text).map_err(|_| Refused::odd_reply("the reply is no JSON"))
}

/// Cuts a text to `most` bytes on a character, and says so.
pub fn bounded(mut text: String, most: usize) -> String {
    const CUT: &str = "\n[spillbox] cut here: the reply has reached its bound";
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(CUT.len())));
        text.push_str(CUT);
    }
    text
}

/// Makes the link that stands beside what is shown of an artifact; `described` is its receipt or manifest.
pub fn link(described: &Value) -> Option<ContentBlock> {
    let text = |name: &str| described.get(name).and_then(Value::as_str);
    let locator =
        text("locator").or_else(|| described.pointer("/replacement/locator")?.as_str())?;
    let id = text("artifact_id")?;
    let size = described.get("size_bytes").and_then(Value::as_u64);
    let size = size.or_else(|| described.pointer("/body/size_bytes")?.as_u64());
    let name = text("name").or_else(|| described.pointer("/provenance/name")?.as_str());
    let mut resource = Resource::new(locator, name.unwrap_or(id));
    if let Some(title) = described
        .pointer("/provenance/title")
        .and_then(Value::as_str)
    {
        resource = resource.with_title(title);
    }
    if let Some(summary) = text("summary") {
        resource = resource.with_description(summary);
    }
    if let Some(media_type) = text("media_type") {
        resource = resource.with_mime_type(media_type);
    }
    if let Some(size) = size {
        resource = resource.with_size(size);
    }
    Some(ContentBlock::resource_link(resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_on_a_character_and_says_so() {
        assert_eq!(bounded("short".to_owned(), 100), "short");
        let cut = bounded("é".repeat(100), 99);
        assert!(cut.len() <= 99 && cut.ends_with("its bound"), "{cut}");
    }

    #[tokio::test]
    async fn what_is_wrong_is_told_with_code_and_hint() {
        let problem = r#"{"code":"artifact_deleted","detail":"gone","hint":"run it again"}"#;
        let mut reply = Response::new(Body::from(problem));
        *reply.status_mut() = StatusCode::GONE;
        let Err(Refused(result)) = success(reply).await else {
            panic!("410 is no success");
        };
        assert_eq!(result.is_error, Some(true));
        let told = result.content[0].as_text().unwrap();
        assert_eq!(
            told.text,
            "error: gone (artifact_deleted)\nhint: run it again"
        );
        assert_eq!(
            result.structured_content.unwrap()["code"],
            "artifact_deleted"
        );
    }

    #[tokio::test]
    async fn a_reply_that_is_not_of_the_api_is_an_error_too() {
        for (status, body) in [
            (StatusCode::BAD_GATEWAY, "<html>"),
            (StatusCode::FOUND, ""),
            (StatusCode::ACCEPTED, "[]"),
        ] {
            let mut reply = Response::new(Body::from(body));
            *reply.status_mut() = status;
            assert!(success(reply).await.is_err(), "{status}");
        }
    }
}
