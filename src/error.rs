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

mod wording;

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
    /// The credentials that collections use may not do what one needs.
    GcDenied = "gc_denied",
    /// No plan of that name is visible to this caller.
    GcPlanNotFound = "gc_plan_not_found",
    /// The plan may be applied later.
    GcPlanTooYoung = "gc_plan_too_young",
    /// A safety check refuses the collection; `detail` names it.
    GcRefused = "gc_refused",
    /// The plan was not applied, or is not visible to this caller.
    GcReportNotFound = "gc_report_not_found",
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
    /// The owner did not seal its absence, so its lease is not aborted.
    OwnerUnsealed = "owner_unsealed",
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
            | Self::GcPlanTooYoung
            | Self::GcRefused
            | Self::JournalSuspect
            | Self::OwnerModeConflict
            | Self::OwnerUnsealed
            | Self::RetentionNotExtended
            | Self::SourceMismatch
            | Self::TransactionConflict
            | Self::TransactionEnded => StatusCode::CONFLICT,
            Self::ArtifactCondemned => StatusCode::GONE,
            Self::JournalCorrupt | Self::JournalReadOnly => StatusCode::INTERNAL_SERVER_ERROR,
            Self::TransactionUnknown => StatusCode::NOT_FOUND,
            Self::ArtifactDeleted => StatusCode::GONE,
            Self::ArtifactNotFound
            | Self::GcPlanNotFound
            | Self::GcReportNotFound
            | Self::ParentNotFound
            | Self::RouteNotFound => StatusCode::NOT_FOUND,
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
            | Self::GcDenied
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
            | Self::GcDenied
            | Self::GcPlanTooYoung
            | Self::StoreDenied
            | Self::StoreFull
            | Self::StoreOutcomeUnknown
            | Self::StoreThrottled
            | Self::StoreUnavailable
            | Self::OutcomeUnknown
            | Self::OwnerUnsealed => true,
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
            | Self::GcPlanNotFound
            | Self::GcRefused
            | Self::GcReportNotFound
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
            | Self::GcDenied
            | Self::StoreDenied
            | Self::StoreFull
            | Self::StoreOutcomeUnknown
            | Self::StoreThrottled
            | Self::StoreUnavailable
            | Self::OutcomeUnknown
            // The owner may have sealed although its answer was lost.
            | Self::OwnerUnsealed => false,
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
            | Self::GcPlanNotFound
            | Self::GcPlanTooYoung
            | Self::GcRefused
            | Self::GcReportNotFound
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
                    // A plan grows old enough by itself, and an owner may answer later.
                    ErrorCode::BodyIncomplete
                        | ErrorCode::GcPlanTooYoung
                        | ErrorCode::OwnerUnsealed
                        | ErrorCode::RateLimited
                        | ErrorCode::RequestTimeout
                )
            {
                assert!(!code.is_retryable(), "{code}");
                assert!(code.has_no_side_effects(), "{code}");
            }
            assert!(!code.hint().is_empty() && !code.title().is_empty());
        }
    }
}
