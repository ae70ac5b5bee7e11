//! What results, turns and artifacts share: the profile, and what of a decision goes into a reply.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::artifact::hint::{RetrievalMeans, parse_means};
use crate::artifact::receipt::Receipt;
use crate::decision::{Answer, Content};
use crate::http::caller::Caller;
use crate::http::query::{InvalidParameterError, Query};
use crate::policy::frozen::Action;
use crate::policy::profile::Profile;

/// Returns the profile that a request names.
///
/// # Errors
/// There is none of that name.
pub(crate) fn profile(
    caller: &Caller,
    name: Option<&str>,
) -> Result<Arc<Profile>, InvalidParameterError> {
    let Some(name) = name else {
        return Ok(caller.profiles.default_profile());
    };
    caller.profiles.get(name).ok_or_else(|| {
        let known = caller.profiles.names().join(", ");
        InvalidParameterError::new("profile", format!("one of {known}"))
    })
}

/// Returns how the agent reads on: as the request says, else as the profile says, else the usual way.
///
/// # Errors
/// The list names something else.
pub(crate) fn means(
    caller: &Caller,
    profile: &Profile,
    list: Option<&str>,
) -> Result<Vec<RetrievalMeans>, InvalidParameterError> {
    match list {
        Some(list) => {
            parse_means(list).map_err(|rule| InvalidParameterError::new("means", rule.to_string()))
        }
        None => Ok(profile
            .means
            .clone()
            .unwrap_or_else(|| caller.default_means.clone())),
    }
}

/// Returns a count that a request states; absent and 0 mean that it is not known.
///
/// # Errors
/// It is no whole number.
pub(crate) fn count(query: &Query, name: &str) -> Result<Option<u64>, InvalidParameterError> {
    query.number(name, 0..=u64::MAX)
}

/// One result's decision, as it goes over the wire.
#[derive(Debug, Serialize)]
pub(crate) struct Decided {
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Value>>,
    stored: bool,
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl Decided {
    /// Words an answer for the wire.
    pub(crate) fn of(caller: &Caller, answer: Answer) -> Self {
        let (text, parts) = match answer.content {
            Content::Text(text) => (Some(text), None),
            Content::Parts(parts) => (None, Some(parts)),
            Content::AsSent => (None, None),
        };
        let receipt = answer.artifact.map(|found| caller.library.receipt(&found));
        Self {
            action: answer.action,
            text,
            parts,
            stored: receipt.is_some(),
            reason: answer.reason,
            receipt,
        }
    }
}
