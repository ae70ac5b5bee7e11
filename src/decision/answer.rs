//! What a decision answers for one result.

use serde_json::Value;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::artifact::measure::Measures;
use crate::limits::MAX_INLINE_TEXT_BYTES;
use crate::policy::frozen::Action;

/// What stands in the prompt for a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// This text.
    Text(String),
    /// These parts.
    Parts(Vec<Value>),
    /// The bytes that the caller sent: they are no text, or too many to be sent back.
    AsSent,
}

/// What a decision answers for one result.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether the result stays, or something stands for it.
    pub action: Action,
    /// What stands in the prompt.
    pub content: Content,
    /// The artifact, where the result is stored.
    pub artifact: Option<ConfirmedManifest>,
    /// Why it is not stored although it should be, or why the decision may be made anew: an error code,
    /// or the reason of a deletion.
    pub reason: Option<String>,
}

impl Answer {
    /// Returns the length of what stands in the prompt; of parts only the text counts. `sent` is that of
    /// what the caller sent.
    pub fn size(&self, sent: Measures) -> Measures {
        match &self.content {
            Content::Text(text) => Measures::of(text.as_bytes()),
            Content::Parts(parts) => {
                let mut size = Measures::default();
                for part in parts {
                    let is_text = part.get("type").and_then(Value::as_str) == Some("text");
                    let text = part.get("text").and_then(Value::as_str);
                    if let Some(text) = text.filter(|_| is_text) {
                        size.push(text.as_bytes());
                    }
                }
                size
            }
            Content::AsSent => sent,
        }
    }

    /// Answers a text that stays.
    pub(super) fn inline(text: Option<&str>) -> Self {
        let content = match text {
            Some(text) if text.len() as u64 <= MAX_INLINE_TEXT_BYTES => {
                Content::Text(text.to_owned())
            }
            Some(_) | None => Content::AsSent,
        };
        Self {
            action: Action::Inline,
            content,
            artifact: None,
            reason: None,
        }
    }

    /// Answers a sentence in the place of a text.
    pub(super) fn sentence(action: Action, text: String) -> Self {
        Self {
            action,
            content: Content::Text(text),
            artifact: None,
            reason: None,
        }
    }

    /// Answers the text that an artifact's manifest holds.
    pub(super) fn spilled(artifact: ConfirmedManifest) -> Self {
        Self {
            action: Action::Spilled,
            content: Content::Text(artifact.head.replacement.text.clone()),
            artifact: Some(artifact),
            reason: None,
        }
    }

    pub(super) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}
