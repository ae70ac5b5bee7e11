//! Who answers the tools' requests.

use std::fmt;

use axum::body::Body;
use futures_util::future::BoxFuture;
use http::{Request, Response};

/// Something that answers requests of the HTTP API whose URI is a path and a query.
pub trait Ask: fmt::Debug + Send + Sync + 'static {
    /// Sends one request.
    ///
    /// # Errors
    /// No reply came. A reply that says what is wrong is no error here.
    fn ask(&self, request: Request<Body>) -> BoxFuture<'_, Result<Response<Body>, NoAnswerError>>;
}

/// No reply came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NoAnswerError {
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}
