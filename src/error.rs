//! The closed list of error codes, and what each promises.
//!
//! Every operation has its own error enum; at the edges each of them maps to exactly one
//! [`ErrorCode`]. The code decides the HTTP status, whether a retry is useful
//! ([`ErrorCode::is_retryable`]), whether the failed request can have changed anything
//! ([`ErrorCode::has_no_side_effects`]), and what the caller should do next
//! ([`ErrorCode::hint`]). All four are exhaustive matches: a new code does not compile until each is
//! decided.

use http::StatusCode;
use serde::Serialize;

macro_rules! error_codes {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal ),+ $(,)?) => {
        /// A stable machine name of one kind of failure. Keep this alphabetized.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode { $( $(#[$doc])* $variant, )+ }

        impl ErrorCode {
            /// Every code, in alphabetical order.
            pub const ALL: &'static [ErrorCode] = &[ $( ErrorCode::$variant, )+ ];

            /// Returns the code's name on the wire, stable for ever.
            pub const fn as_str(self) -> &'static str {
                match self { $( ErrorCode::$variant => $name, )+ }
            }
        }
    };
}

error_codes! {
    /// The artifact is condemned: it will be deleted, and no lease can be claimed on it any more.
    ArtifactCondemned = "artifact_condemned",
    /// The artifact existed and was deleted; the reply names when, why, its digest and its size.
    ArtifactDeleted = "artifact_deleted",
    /// Leases protect the artifact.
    ArtifactLeased = "artifact_leased",
    /// No artifact of that name is visible to this caller: unknown, foreign or malformed.
    ArtifactNotFound = "artifact_not_found",
    /// The stored bytes differ from what was saved; nothing of them is served as good.
    BodyCorrupt = "body_corrupt",
    /// The request's body ended early or could not be read.
    BodyIncomplete = "body_incomplete",
    /// The body is larger than this service takes.
    BodyTooLarge = "body_too_large",
    /// The capability in the URL has expired.
    CapabilityExpired = "capability_expired",
    /// The capability in the URL is none of this service for this artifact, or its maker is gone.
    CapabilityInvalid = "capability_invalid",
    /// The body's digest is not the one that the request stated.
    DigestMismatch = "digest_mismatch",
    /// The credentials may not remove everything that an erasure has to remove.
    EraseDenied = "erase_denied",
    /// A service without tokens was asked under a host name that is not its own.
    HostNotAllowed = "host_not_allowed",
    /// The lease is in a state that this operation does not lead out of.
    IllegalTransition = "illegal_transition",
    /// The same output was collected more often than a call record can say.
    IncarnationsExhausted = "incarnations_exhausted",
    /// The token lacks the scope that the operation needs; `detail` names it.
    InsufficientScope = "insufficient_scope",
    /// A defect of the service.
    Internal = "internal",
    /// The request's JSON document is malformed, or contradicts itself.
    InvalidBody = "invalid_body",
    /// A header is malformed.
    InvalidHeader = "invalid_header",
    /// A field of a lease request is missing, malformed or out of bounds.
    InvalidLease = "invalid_lease",
    /// A query parameter is unknown, malformed or out of bounds.
    InvalidParameter = "invalid_parameter",
    /// A search pattern is malformed, or larger than this service takes.
    InvalidPattern = "invalid_pattern",
    /// The session id is empty, too long, not UTF-8, or a dot segment.
    InvalidSession = "invalid_session",
    /// The session's journal is broken: nothing is written to it or deleted on its word, reads go on.
    JournalCorrupt = "journal_corrupt",
    /// The session's journal was written to by a newer version: this one only reads its artifacts.
    JournalReadOnly = "journal_read_only",
    /// The session's journal holds entries without effect: nothing is deleted on its word.
    JournalSuspect = "journal_suspect",
    /// The path exists, but not with this method.
    MethodNotAllowed = "method_not_allowed",
    /// Nothing is minted here: no signing key is set, or the caller presents no configured token.
    MintingUnavailable = "minting_unavailable",
    /// The journal's write may or may not have happened, or may still happen.
    OutcomeUnknown = "outcome_unknown",
    /// The owner is configured with another mode, or may not be named by callers.
    OwnerModeConflict = "owner_mode_conflict",
    /// The session has another parent, or was created without one.
    ParentConflict = "parent_conflict",
    /// The parent session does not exist, or the caller may not read it.
    ParentNotFound = "parent_not_found",
    /// A condition of the request (`If-Match`) is false.
    PreconditionFailed = "precondition_failed",
    /// The replacement's cap does not hold the notice.
    PreviewBudgetTooSmall = "preview_budget_too_small",
    /// The session or the tenant has stored as much as it may.
    QuotaExceeded = "quota_exceeded",
    /// The byte range lies outside the body.
    RangeNotSatisfiable = "range_not_satisfiable",
    /// The caller sends more requests than it may.
    RateLimited = "rate_limited",
    /// The service serves its store read-only.
    ReadOnly = "read_only",
    /// The client sent nothing for too long.
    RequestTimeout = "request_timeout",
    /// The new end is not later than the lease's own.
    RetentionNotExtended = "retention_not_extended",
    /// No such path.
    RouteNotFound = "route_not_found",
    /// Too many uploads or searches are running.
    Saturated = "saturated",
    /// The collector took this save's artifact before it was finished.
    SaveSuperseded = "save_superseded",
    /// The token is limited to another session, or may not do this at all.
    SessionForbidden = "session_forbidden",
    /// The source id or digest is not this session's artifact.
    SourceMismatch = "source_mismatch",
    /// The store refuses this service's credentials.
    StoreDenied = "store_denied",
    /// What the store holds was written by a version that this one cannot read.
    StoreFormatUnsupported = "store_format_unsupported",
    /// The store has no space left.
    StoreFull = "store_full",
    /// The store's reply was lost: the write may or may not have happened.
    StoreOutcomeUnknown = "store_outcome_unknown",
    /// The store asks to slow down.
    StoreThrottled = "store_throttled",
    /// The store cannot be reached or fails.
    StoreUnavailable = "store_unavailable",
    /// The session token has expired.
    TokenExpired = "token_expired",
    /// The transaction id is taken by another intent.
    TransactionConflict = "transaction_conflict",
    /// The lease was aborted or released; that is final.
    TransactionEnded = "transaction_ended",
    /// The session has no lease of that transaction id.
    TransactionUnknown = "transaction_unknown",
    /// The request presents no bearer token, or none of this service.
    Unauthenticated = "unauthenticated",
    /// The path and query are longer than this service takes.
    UriTooLong = "uri_too_long",
}

impl ErrorCode {
    /// Returns the HTTP status that this code is answered with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::OutcomeUnknown => StatusCode::ACCEPTED,
            Self::InvalidLease => StatusCode::BAD_REQUEST,
            Self::ArtifactLeased
            | Self::IllegalTransition
            | Self::JournalSuspect
            | Self::OwnerModeConflict
            | Self::RetentionNotExtended
            | Self::SourceMismatch
            | Self::TransactionConflict
            | Self::TransactionEnded => StatusCode::CONFLICT,
            Self::ArtifactCondemned => StatusCode::GONE,
            Self::JournalCorrupt | Self::JournalReadOnly => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TransactionUnknown => StatusCode::NOT_FOUND,
            Self::ArtifactDeleted => StatusCode::GONE,
            Self::ArtifactNotFound | Self::ParentNotFound | Self::RouteNotFound => {
                StatusCode::NOT_FOUND
            }
            Self::BodyCorrupt | Self::Internal | Self::StoreFormatUnsupported => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::BodyIncomplete
            | Self::DigestMismatch
            | Self::InvalidBody
            | Self::InvalidHeader
            | Self::InvalidParameter
            | Self::InvalidPattern
            | Self::InvalidSession => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::IncarnationsExhausted | Self::ParentConflict => StatusCode::CONFLICT,
            Self::PreviewBudgetTooSmall => StatusCode::UNPROCESSABLE_ENTITY,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::CapabilityExpired
            | Self::CapabilityInvalid
            | Self::InsufficientScope
            | Self::MintingUnavailable
            | Self::ReadOnly
            | Self::SessionForbidden => StatusCode::FORBIDDEN,
            Self::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Self::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Saturated
            | Self::SaveSuperseded
            | Self::EraseDenied
            | Self::StoreDenied
            | Self::StoreOutcomeUnknown
            | Self::StoreThrottled
            | Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::QuotaExceeded | Self::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::TokenExpired | Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
        }
    }

    /// Returns whether the same request may succeed later without a change by the caller.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::BodyIncomplete
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::RequestTimeout
            | Self::Saturated
            | Self::SaveSuperseded
            | Self::EraseDenied
            | Self::StoreDenied
            | Self::StoreFull
            | Self::StoreOutcomeUnknown
            | Self::StoreThrottled
            | Self::StoreUnavailable
            | Self::OutcomeUnknown => true,
            Self::ArtifactDeleted
            | Self::ArtifactNotFound
            | Self::BodyCorrupt
            | Self::BodyTooLarge
            | Self::CapabilityExpired
            | Self::CapabilityInvalid
            | Self::MintingUnavailable
            | Self::SessionForbidden
            | Self::TokenExpired
            | Self::DigestMismatch
            | Self::HostNotAllowed
            | Self::IncarnationsExhausted
            | Self::InsufficientScope
            | Self::Internal
            | Self::InvalidBody
            | Self::InvalidHeader
            | Self::InvalidParameter
            | Self::InvalidPattern
            | Self::InvalidSession
            | Self::MethodNotAllowed
            | Self::ParentConflict
            | Self::ParentNotFound
            | Self::PreconditionFailed
            | Self::PreviewBudgetTooSmall
            | Self::RangeNotSatisfiable
            | Self::ReadOnly
            | Self::RouteNotFound
            | Self::StoreFormatUnsupported
            | Self::Unauthenticated
            | Self::ArtifactCondemned
            | Self::ArtifactLeased
            | Self::IllegalTransition
            | Self::InvalidLease
            | Self::JournalCorrupt
            | Self::JournalReadOnly
            | Self::JournalSuspect
            | Self::OwnerModeConflict
            | Self::RetentionNotExtended
            | Self::SourceMismatch
            | Self::TransactionConflict
            | Self::TransactionEnded
            | Self::TransactionUnknown
            | Self::UriTooLong => false,
        }
    }

    /// Returns whether it is certain that the failed request left no artifact behind: no receipt
    /// exists and none will appear. (Invisible leftovers of a crashed upload are the collector's.)
    pub const fn has_no_side_effects(self) -> bool {
        match self {
            // A save that failed in one of these may have been finished by another saver of the same
            // call, or by the store after its reply was lost.
            Self::Internal
            | Self::SaveSuperseded
            | Self::EraseDenied
            | Self::StoreDenied
            | Self::StoreFull
            | Self::StoreOutcomeUnknown
            | Self::StoreThrottled
            | Self::StoreUnavailable
            | Self::OutcomeUnknown => false,
            Self::ArtifactDeleted
            | Self::ArtifactNotFound
            | Self::BodyCorrupt
            | Self::BodyIncomplete
            | Self::BodyTooLarge
            | Self::CapabilityExpired
            | Self::CapabilityInvalid
            | Self::MintingUnavailable
            | Self::SessionForbidden
            | Self::TokenExpired
            | Self::DigestMismatch
            | Self::HostNotAllowed
            | Self::IncarnationsExhausted
            | Self::InsufficientScope
            | Self::InvalidBody
            | Self::InvalidHeader
            | Self::InvalidParameter
            | Self::InvalidPattern
            | Self::InvalidSession
            | Self::MethodNotAllowed
            | Self::ParentConflict
            | Self::ParentNotFound
            | Self::PreconditionFailed
            | Self::PreviewBudgetTooSmall
            | Self::QuotaExceeded
            | Self::RangeNotSatisfiable
            | Self::RateLimited
            | Self::ReadOnly
            | Self::RequestTimeout
            | Self::RouteNotFound
            | Self::Saturated
            | Self::StoreFormatUnsupported
            | Self::Unauthenticated
            | Self::ArtifactCondemned
            | Self::ArtifactLeased
            | Self::IllegalTransition
            | Self::InvalidLease
            | Self::JournalCorrupt
            | Self::JournalReadOnly
            | Self::JournalSuspect
            | Self::OwnerModeConflict
            | Self::RetentionNotExtended
            | Self::SourceMismatch
            | Self::TransactionConflict
            | Self::TransactionEnded
            | Self::TransactionUnknown
            | Self::UriTooLong => true,
        }
    }

    /// Returns a short title, the same for every occurrence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ArtifactCondemned => "Artifact condemned",
            Self::ArtifactLeased => "Artifact leased",
            Self::IllegalTransition => "Lease in another state",
            Self::InvalidLease => "Invalid lease request",
            Self::JournalCorrupt => "Journal corrupt",
            Self::JournalReadOnly => "Journal not supported",
            Self::JournalSuspect => "Journal suspect",
            Self::OutcomeUnknown => "Outcome unknown",
            Self::OwnerModeConflict => "Owner configured otherwise",
            Self::RetentionNotExtended => "End not later",
            Self::SourceMismatch => "Not this artifact",
            Self::TransactionConflict => "Transaction known with another intent",
            Self::TransactionEnded => "Lease ended",
            Self::TransactionUnknown => "No such lease",
            Self::ArtifactDeleted => "Artifact deleted",
            Self::ArtifactNotFound => "Artifact not found",
            Self::BodyCorrupt => "Stored bytes do not match what was saved",
            Self::BodyIncomplete => "Request body incomplete",
            Self::BodyTooLarge => "Request body too large",
            Self::CapabilityExpired => "Capability expired",
            Self::CapabilityInvalid => "Capability invalid",
            Self::MintingUnavailable => "Nothing is minted here",
            Self::SessionForbidden => "Outside of the credential's session",
            Self::TokenExpired => "Session token expired",
            Self::DigestMismatch => "Digest mismatch",
            Self::EraseDenied => "Erasure not allowed by the store",
            Self::HostNotAllowed => "Host name not allowed",
            Self::IncarnationsExhausted => "Call saved and collected too often",
            Self::InsufficientScope => "Insufficient scope",
            Self::Internal => "Internal error",
            Self::InvalidBody => "Invalid JSON document",
            Self::InvalidHeader => "Invalid header",
            Self::InvalidParameter => "Invalid parameter",
            Self::InvalidPattern => "Invalid search pattern",
            Self::InvalidSession => "Invalid session id",
            Self::MethodNotAllowed => "Method not allowed",
            Self::ParentConflict => "Session has another parent",
            Self::ParentNotFound => "Parent session not found",
            Self::PreconditionFailed => "Precondition failed",
            Self::PreviewBudgetTooSmall => "Preview budget too small",
            Self::QuotaExceeded => "Quota exceeded",
            Self::RangeNotSatisfiable => "Range not satisfiable",
            Self::RateLimited => "Too many requests",
            Self::ReadOnly => "Service is read-only",
            Self::RequestTimeout => "Request timed out",
            Self::RouteNotFound => "No such path",
            Self::Saturated => "Too much at once",
            Self::SaveSuperseded => "Save overtaken by the collector",
            Self::StoreDenied => "Store denied access",
            Self::StoreFormatUnsupported => "Store format not supported",
            Self::StoreFull => "Store full",
            Self::StoreOutcomeUnknown => "Outcome of a store write unknown",
            Self::StoreThrottled => "Store asks to slow down",
            Self::StoreUnavailable => "Store unavailable",
            Self::Unauthenticated => "Authentication needed",
            Self::UriTooLong => "Path and query too long",
        }
    }

    /// Returns what the caller should do next.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::ArtifactCondemned => "run the tool again; the output will not be kept any longer",
            Self::ArtifactLeased => {
                "release the leases that `detail` counts first: GET /v1/sessions/{session}/leases"
            }
            Self::IllegalTransition => {
                "a prepared lease is committed or aborted, a committed one is released or extended; nothing was written"
            }
            Self::InvalidLease => "correct the field named in `detail`; nothing was written",
            Self::JournalCorrupt => {
                "tell the operator: `spillbox journal verify` names what is broken; artifacts can still be read"
            }
            Self::JournalReadOnly => {
                "run a newer version of the service on this store; artifacts can still be read"
            }
            Self::JournalSuspect => {
                "an operator looks at `spillbox journal verify` and ends it with `spillbox journal clear`"
            }
            Self::OutcomeUnknown => {
                "POST /v1/sessions/{session}/leases/{transaction_id}/resolve with the `seq` and `sha256` of this reply before you rely on either outcome"
            }
            Self::OwnerModeConflict => "leave `mode` out, or name another owner",
            Self::RetentionNotExtended => {
                "name a later time, or null for none; the lease keeps the end named in `detail`"
            }
            Self::SourceMismatch => {
                "use `source_id` and `digest` as the artifact's receipt gives them, in the session that owns it"
            }
            Self::TransactionConflict => {
                "use a fresh transaction_id for another artifact, count, end or owner"
            }
            Self::TransactionEnded => "do not publish under this transaction_id; prepare a new one",
            Self::TransactionUnknown => {
                "check the transaction_id, or list the leases: GET /v1/sessions/{session}/leases"
            }
            Self::ArtifactDeleted => "run the tool again; the output is not kept any longer",
            Self::ArtifactNotFound => {
                "check the locator, or list the session's artifacts: GET /v1/sessions/{session}/artifacts"
            }
            Self::BodyCorrupt => {
                "do not use the bytes; tell the operator: the stored object was changed behind the service"
            }
            Self::BodyIncomplete => "send the whole body again; nothing was stored",
            Self::BodyTooLarge => {
                "store a smaller output, or ask the operator to raise limits.max_body_bytes"
            }
            Self::CapabilityExpired => "ask whoever gave you the URL for a fresh one",
            Self::CapabilityInvalid => {
                "take the whole URL as it was given, or ask for a fresh one; it reads one artifact of this service and nothing else"
            }
            Self::MintingUnavailable => {
                "mint with a token of [[tokens]] on a service whose operator set access.signing_keys_from"
            }
            Self::SessionForbidden => {
                "stay in the session that the token was made for, or use a token of [[tokens]]"
            }
            Self::TokenExpired => {
                "ask whoever gave you the token for a fresh one: `spillbox token mint`"
            }
            Self::DigestMismatch => {
                "the bytes changed on the way or the header is of other bytes; send both again; nothing was stored"
            }
            Self::EraseDenied => {
                "nothing was destroyed that can be told gone; the operator allows s3:PutObject and s3:DeleteObject under a/ and b/, s3:GetBucketVersioning, and on a versioned bucket s3:ListBucketVersions and s3:DeleteObjectVersion"
            }
            Self::HostNotAllowed => {
                "ask http://127.0.0.1 or http://localhost with the service's port; for another name the operator sets server.public_url, or tokens"
            }
            Self::IncarnationsExhausted => "save under another call_id",
            Self::InsufficientScope => {
                "use a token that has the scope named in `detail`; the operator grants it in [[tokens]]"
            }
            Self::Internal => "report the request_id to the operator",
            Self::InvalidBody => "correct the JSON document as `detail` says; nothing was stored",
            Self::InvalidHeader => "correct the header named in `detail`; nothing was done",
            Self::InvalidParameter => "correct the parameter named in `detail`; nothing was done",
            Self::InvalidPattern => {
                "correct the pattern as `detail` says; without mode=regex it is searched for as it stands"
            }
            Self::InvalidSession => {
                "a session id is 1 to 512 bytes of UTF-8, percent-encoded as one path segment, and not `.` or `..`"
            }
            Self::MethodNotAllowed => "use a method from the Allow header",
            Self::ParentConflict => {
                "leave `parent` out, or name the parent that the session was created with; start a new session for another parent"
            }
            Self::ParentNotFound => "save something in the parent session first, or check its id",
            Self::PreconditionFailed => "drop If-Match or send the current ETag",
            Self::PreviewBudgetTooSmall => {
                "shorten label, title and session id, or ask the operator for a larger replacement cap"
            }
            Self::QuotaExceeded => {
                "nothing was stored and nothing is evicted; retry after the collector has run, release what is not needed, or ask the operator to raise the limit named in `detail`"
            }
            Self::RangeNotSatisfiable => "ask for a range inside the size given in Content-Range",
            Self::RateLimited => "retry after the time in Retry-After, with fewer requests at once",
            Self::ReadOnly => {
                "save through another service; `spillbox doctor` says why this store is not written to"
            }
            Self::RequestTimeout => "send the request again without long pauses",
            Self::RouteNotFound => "see /openapi.yaml for the paths of this service",
            Self::Saturated => "retry after the time in Retry-After",
            Self::SaveSuperseded => "send the same save again; it gets a fresh artifact id",
            Self::StoreDenied => {
                "tell the operator: the credentials lack a permission on the bucket, or the directory cannot be written; the log names the cause"
            }
            Self::StoreFormatUnsupported => "run a newer version of the service on this store",
            Self::StoreFull => {
                "tell the operator: the store has no space left; retry after space was made"
            }
            Self::StoreOutcomeUnknown => {
                "send the same request again with the same call_id; it finds what the first one stored"
            }
            Self::StoreThrottled => "retry after the time in Retry-After with the same call_id",
            Self::StoreUnavailable => "retry after the time in Retry-After with the same call_id",
            Self::Unauthenticated => {
                "send `Authorization: Bearer TOKEN` with a token of this service; the commands take it from SPILLBOX_TOKEN or --token-file"
            }
            Self::UriTooLong => {
                "shorten the query: a summary is clipped to 240 characters, and a pattern of grep takes 1024 bytes"
            }
        }
    }

    /// Returns the seconds that a `Retry-After` header should state, where one is due.
    pub const fn retry_after_seconds(self) -> Option<u32> {
        match self.status() {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Some(2),
            _ => None,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The 410 facts of a deleted artifact, taken from its tombstone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deletion {
    /// Why it was deleted (`ttl`, `erased`, `upload_abandoned`, …).
    pub reason: String,
    /// When, by the store's clock (RFC 3339), as the tombstone says.
    pub deleted_at: Option<String>,
    /// `sha256:<hex>` of the bytes, where known.
    pub digest: Option<String>,
    /// Size of the bytes, where known.
    pub size_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_alphabetical_unique_snake_case() {
        let names: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        for name in names {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{name}"
            );
        }
    }

    #[test]
    fn a_client_mistake_is_never_retryable_and_changes_nothing() {
        for code in ErrorCode::ALL {
            if code.status().is_client_error()
                && !matches!(
                    code,
                    ErrorCode::BodyIncomplete | ErrorCode::RateLimited | ErrorCode::RequestTimeout
                )
            {
                assert!(!code.is_retryable(), "{code}");
                assert!(code.has_no_side_effects(), "{code}");
            }
            assert!(!code.hint().is_empty() && !code.title().is_empty());
        }
    }
}
