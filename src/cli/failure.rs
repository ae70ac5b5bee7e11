//! What a command says when it could not do what was asked, and the exit status that goes with it.
//!
//! `error: …` says what happened, `hint: …` on a line of its own what to do. Text that came from
//! elsewhere is escaped: a reply must not move the cursor of somebody's terminal.

use std::fmt;

use http::StatusCode;
use serde::Deserialize;

use crate::artifact::escape::escape_field;
use crate::error::ErrorCode;

/// The command did what was asked.
pub const EXIT_DONE: u8 = 0;
/// It failed.
pub const EXIT_FAILURE: u8 = 1;
/// It was called in a way that cannot work; nothing was done.
pub const EXIT_USAGE: u8 = 2;
/// It was done, and there is something that restricts what may follow.
pub const EXIT_RESTRICTED: u8 = 3;
/// A safety check refused.
pub const EXIT_REFUSED: u8 = 4;

/// A failed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The error code of the reply, where there was one.
    pub code: Option<String>,
    /// Whether the service is away, or says that trying again is useful: the same request may succeed later.
    pub is_away: bool,
    /// The exit status.
    pub exit: u8,
}

impl Failure {
    /// Creates a failure with exit status 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: None,
            is_away: false,
            exit: EXIT_FAILURE,
        }
    }

    /// Creates a failure of the call itself, with exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(message).with_exit(EXIT_USAGE)
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says that the same request may succeed later.
    #[must_use]
    pub fn away(mut self) -> Self {
        self.is_away = true;
        self
    }

    /// Returns whether another request of the same caller would be refused as well.
    pub fn is_about_the_caller(&self) -> bool {
        let code = self.code.as_deref();
        let refusals = [ErrorCode::Unauthenticated, ErrorCode::InsufficientScope];
        refusals.iter().any(|known| code == Some(known.as_str()))
    }

    /// Sets the exit status.
    #[must_use]
    pub fn with_exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Reads a reply that is no success: a problem document, or anything else that a proxy sends.
    pub fn of_reply(status: StatusCode, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Problem {
            code: String,
            #[serde(default)]
            detail: String,
            hint: Option<String>,
            request_id: Option<String>,
            retryable: Option<bool>,
        }
        let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
            let failure = Self::new(format!("the server answered {status} without a reason"))
                .with_hint("check that --url or SPILLBOX_URL names a Spillbox service");
            // A proxy answers for a service that is away.
            return Self {
                is_away: status.is_server_error(),
                ..failure
            };
        };
        let mut message = format!(
            "{} ({})",
            escape_field(&problem.detail),
            escape_field(&problem.code)
        );
        if status.is_server_error()
            && let Some(id) = &problem.request_id
        {
            message.push_str(&format!("; request {}", escape_field(id)));
        }
        let hint = match problem.code.as_str() {
            "artifact_not_found" => Some(
                "check the locator and where it is looked up (--url or --store); `spillbox ls` lists a session's artifacts".to_owned(),
            ),
            _ => problem.hint.as_deref().map(escape_field),
        };
        Self {
            message,
            hint,
            code: Some(problem.code),
            is_away: problem
                .retryable
                .unwrap_or_else(|| status.is_server_error()),
            exit: EXIT_FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Why a command ends before its end.
#[derive(Debug)]
pub enum Stop {
    /// It failed.
    Failed(Box<Failure>),
    /// Nobody reads standard output any more (`| head`): no failure.
    OutputClosed,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_becomes_an_error_line_and_a_hint_line() {
        let body = br#"{"code":"store_full","detail":"no\u001b[2J space","hint":"make room","request_id":"r-1"}"#;
        let failure = Failure::of_reply(StatusCode::INSUFFICIENT_STORAGE, body);
        assert_eq!(
            failure.to_string(),
            "error: no␛[2J space (store_full); request r-1\nhint: make room"
        );
        assert_eq!(failure.exit, EXIT_FAILURE);
    }

    #[test]
    fn a_reply_that_is_no_problem_document_says_where_to_look() {
        let failure = Failure::of_reply(StatusCode::BAD_GATEWAY, b"<html>");
        assert!(failure.to_string().contains("502"), "{failure}");
        assert!(failure.to_string().contains("\nhint: "), "{failure}");
    }
}
