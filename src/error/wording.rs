//! What a problem document says of each code: a title, and what to do next.

use super::ErrorCode;

impl ErrorCode {
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
            Self::OwnerUnsealed => "Absence not sealed",
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
            Self::DigestMismatch => "Digest mismatch",
            Self::EraseDenied => "Erasure not allowed by the store",
            Self::GcDenied => "Collection not allowed by the store",
            Self::GcPlanNotFound => "Plan not found",
            Self::GcPlanTooYoung => "Plan too young",
            Self::GcRefused => "Collection refused",
            Self::GcReportNotFound => "Report not found",
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
            Self::OwnerUnsealed => {
                "reconcile the lease, or try again when the owner answers; `force` aborts without it, and a reference that it publishes then is not protected"
            }
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
            Self::DigestMismatch => {
                "the bytes changed on the way or the header is of other bytes; send both again; nothing was stored"
            }
            Self::EraseDenied => {
                "nothing was destroyed that can be told gone; the operator sets store.collector to credentials that may, or allows s3:PutObject and s3:DeleteObject under a/ and b/, s3:GetBucketVersioning, and on a versioned bucket s3:ListBucketVersions and s3:DeleteObjectVersion"
            }
            Self::GcDenied => {
                "the operator sets store.collector to credentials that may list and read the bucket, write under a/, gc/ and probe/, and delete there and under b/"
            }
            Self::GcPlanNotFound => {
                "check the name; a plan that is still being made is known only to the replica that makes it, so ask again"
            }
            Self::GcPlanTooYoung => {
                "apply it from the time in `detail` on: an artifact is seen twice before it goes"
            }
            Self::GcRefused => "nothing was done; make a new plan, or correct what `detail` names",
            Self::GcReportNotFound => {
                "apply the plan first, or ask again: an application that runs is known only to its replica"
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
}
