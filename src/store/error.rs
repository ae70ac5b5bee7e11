//! How a store request fails, as far as callers can do something about it.

use std::fmt;

/// What a caller can do about a failed request; the text is for people, the kind for code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// No such key, version or upload.
    NotFound,
    /// Create-if-absent met a key that is there (412): decided, but perhaps by our own lost request.
    AlreadyExists,
    /// Another condition was false (412, or 404 where the condition names an ETag).
    PreconditionFailed,
    /// Somebody is writing this key right now (409): undecided, send the same bytes again.
    Conflict,
    /// The request was sent and its reply was lost (timeout, broken connection, 5xx after sending a
    /// write): it may have been applied, may still be applied, or never.
    Ambiguous,
    /// The credentials do not allow it (401, 403). Never means "absent", although S3 hides absence
    /// behind it from principals that may not list.
    Denied,
    /// Slow down (429, 503 SlowDown): undecided for writes.
    Throttled,
    /// The store cannot be reached or fails without having taken the request.
    Unavailable,
    /// The store does not know this operation (501).
    NotImplemented,
    /// The range lies outside the object (416).
    InvalidRange,
    /// No space left (507, ENOSPC, quota).
    Full,
    /// The store refused the request as invalid (400: wrong checksum, malformed), or answered
    /// something that cannot be trusted. Nothing was stored.
    Rejected,
}

impl StoreErrorKind {
    /// Returns whether a write that failed so may have been applied, now or later: the same bytes
    /// must go to the same key again before anything is concluded.
    pub const fn is_undecided(self) -> bool {
        match self {
            Self::Conflict | Self::Ambiguous | Self::Throttled => true,
            Self::NotFound
            | Self::AlreadyExists
            | Self::PreconditionFailed
            | Self::Denied
            | Self::Unavailable
            | Self::NotImplemented
            | Self::InvalidRange
            | Self::Full
            | Self::Rejected => false,
        }
    }

    /// Returns whether the same request may succeed in a moment.
    pub const fn is_transient(self) -> bool {
        self.is_undecided() || matches!(self, Self::Unavailable)
    }
}

/// A failed store request.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation} `{key}`: {detail}")]
pub struct StoreError {
    /// What the caller matches on.
    pub kind: StoreErrorKind,
    /// The operation, for people (`put`, `list`, …).
    pub operation: &'static str,
    /// The key or prefix concerned.
    pub key: String,
    /// What the store said, for the operator.
    pub detail: String,
}

impl StoreError {
    /// Builds an error of `kind`.
    pub fn new(
        kind: StoreErrorKind,
        operation: &'static str,
        key: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            operation,
            key: key.to_string(),
            detail: detail.into(),
        }
    }

    /// Returns whether the kind is `kind`.
    pub fn is(&self, kind: StoreErrorKind) -> bool {
        self.kind == kind
    }
}
