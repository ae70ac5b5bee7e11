//! What a caller says when it saves, and how a save fails.

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::artifact::completeness::Completeness;
use crate::artifact::hint::RetrievalMeans;
use crate::artifact::manifest::ManifestFormatError;
use crate::artifact::manifest_access::{CreateManifestError, LookupError};
use crate::artifact::quota::QuotaExceededError;
use crate::artifact::rendering::{DefaultRender, SharedRender};
use crate::artifact::replacement::PreviewBudgetTooSmallError;
use crate::artifact::session::SessionError;
use crate::digest::Sha256Digest;
use crate::error::{Deletion, ErrorCode};
use crate::ids::{CallId, SessionId, Tenant};
use crate::store::register::DecideError;
use crate::store::{StoreError, StoreErrorKind};

/// The body as it arrives.
pub type BodyStream = BoxStream<'static, Result<Bytes, BodyError>>;

/// A save as its caller describes it; everything but the body.
#[derive(Debug, Clone)]
pub struct SaveRequest {
    /// The tenant of the caller.
    pub tenant: Tenant,
    /// The session that the output belongs to; created by its first save.
    pub session: SessionId,
    /// The session that this one forks from, where it is created by this save.
    pub parent: Option<SessionId>,
    /// The tool call; with it the same save again gives the same receipt.
    pub call_id: Option<CallId>,
    /// The tool.
    pub tool: Option<String>,
    /// A label.
    pub label: Option<String>,
    /// A suggested file name.
    pub name: Option<String>,
    /// A title.
    pub title: Option<String>,
    /// A summary; collapsed and clipped, never refused.
    pub summary: Option<String>,
    /// Whether the sender had the whole output.
    pub completeness: Completeness,
    /// What the sender knows to be lost, in its own words.
    pub upstream_loss: Option<String>,
    /// The media type.
    pub media_type: String,
    /// How the reader of the replacement can read on.
    pub means: Vec<RetrievalMeans>,
    /// How the text for the prompt is worded; the first rendering that lands in a manifest stays.
    pub render: SharedRender,
    /// The digest that the caller states; verified.
    pub expected_digest: Option<Sha256Digest>,
    /// The size that the caller states; verified, and checked against the cap before a byte is read.
    pub expected_bytes: Option<u64>,
}

impl SaveRequest {
    /// Builds a request that says nothing but where the output belongs.
    pub fn new(tenant: Tenant, session: SessionId) -> Self {
        Self {
            tenant,
            session,
            parent: None,
            call_id: None,
            tool: None,
            label: None,
            name: None,
            title: None,
            summary: None,
            completeness: Completeness::default(),
            upstream_loss: None,
            media_type: "application/octet-stream".to_owned(),
            means: Vec::new(),
            render: DefaultRender::shared(),
            expected_digest: None,
            expected_bytes: None,
        }
    }
}

/// The request's body could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It ended before its stated length, or its connection broke.
    #[error("the body ended early: {0}")]
    Incomplete(String),
    /// Nothing of it arrived for too long.
    #[error("no byte of the body arrived for {0} s")]
    Stalled(u64),
    /// It is larger than the cap.
    #[error("the body is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The cap.
        limit_bytes: u64,
    },
}

/// There is no place for another upload, and none became free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SaturatedError {
    /// As many are running as may.
    #[error("{0} uploads are running")]
    Uploads(usize),
    /// Those that are running have the memory.
    #[error("the uploads that are running take the {0} bytes of memory that they may")]
    Memory(u64),
}

/// A save failed. Nothing of it is visible unless [`ErrorCode::has_no_side_effects`] says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The body could not be taken.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The bytes are not those that the caller stated.
    #[error("the body's digest is {actual}, the request states {expected}")]
    DigestMismatch {
        /// What the caller stated.
        expected: Sha256Digest,
        /// What arrived.
        actual: Sha256Digest,
    },
    /// The store is served read-only.
    #[error("the service does not write to its store")]
    ReadOnly,
    /// More uploads are running than the service takes.
    #[error(transparent)]
    Saturated(#[from] SaturatedError),
    /// The session or the tenant has stored as much as it may.
    #[error(transparent)]
    Quota(#[from] QuotaExceededError),
    /// The session cannot be used so.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// This output was erased; that is final.
    #[error("this output was erased")]
    Erased(Deletion),
    /// The collector took the artifact before its manifest was there; the next try has a fresh id.
    #[error("the artifact was collected before its save was finished")]
    Superseded,
    /// The call record has no incarnation left.
    #[error("this call's output was collected {0} times")]
    IncarnationsExhausted(u32),
    /// The configured cap of a replacement does not hold the notice.
    #[error(transparent)]
    Preview(#[from] PreviewBudgetTooSmallError),
    /// Other bytes stand where only this save's can.
    #[error("{0}")]
    BodyDiffers(StoreError),
    /// The store left a write open.
    #[error("outcome unknown: {0}")]
    Undecided(StoreError),
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store holds cannot be read.
    #[error("{0}")]
    Format(String),
    /// A defect of the service.
    #[error("{0}")]
    Internal(String),
}

impl From<DecideError> for SaveError {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Failed(error) => Self::Store(error),
            DecideError::Undecided(error) => Self::Undecided(error),
            DecideError::Differs(error) => Self::BodyDiffers(error),
        }
    }
}

impl From<ManifestFormatError> for SaveError {
    fn from(error: ManifestFormatError) -> Self {
        Self::Format(error.to_string())
    }
}

impl From<LookupError> for SaveError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Store(error) => Self::Store(error),
            LookupError::Format(error) => error.into(),
        }
    }
}

impl From<CreateManifestError> for SaveError {
    fn from(error: CreateManifestError) -> Self {
        match error {
            CreateManifestError::Decide(error) => error.into(),
            CreateManifestError::Format(error) => error.into(),
        }
    }
}

/// Returns the code for a store failure that no operation has a better word for.
pub fn code_of_store_error(kind: StoreErrorKind) -> ErrorCode {
    match kind {
        StoreErrorKind::Ambiguous | StoreErrorKind::Conflict => ErrorCode::StoreOutcomeUnknown,
        StoreErrorKind::Denied => ErrorCode::StoreDenied,
        StoreErrorKind::Throttled => ErrorCode::StoreThrottled,
        StoreErrorKind::Full => ErrorCode::StoreFull,
        // The others are no answers to what was asked: the store, or something before it, does not
        // speak S3 as it should.
        StoreErrorKind::Unavailable
        | StoreErrorKind::NotFound
        | StoreErrorKind::AlreadyExists
        | StoreErrorKind::PreconditionFailed
        | StoreErrorKind::NotImplemented
        | StoreErrorKind::InvalidRange
        | StoreErrorKind::Rejected => ErrorCode::StoreUnavailable,
    }
}

impl SaveError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Body(BodyError::Incomplete(_)) => ErrorCode::BodyIncomplete,
            Self::Body(BodyError::Stalled(_)) => ErrorCode::RequestTimeout,
            Self::Body(BodyError::TooLarge { .. }) => ErrorCode::BodyTooLarge,
            Self::DigestMismatch { .. } => ErrorCode::DigestMismatch,
            Self::ReadOnly => ErrorCode::ReadOnly,
            Self::Saturated(_) => ErrorCode::Saturated,
            Self::Quota(_) => ErrorCode::QuotaExceeded,
            Self::Session(SessionError::ParentNotFound(_)) => ErrorCode::ParentNotFound,
            Self::Session(SessionError::ParentConflict { .. }) => ErrorCode::ParentConflict,
            Self::Session(SessionError::Format(_)) | Self::Format(_) => {
                ErrorCode::StoreFormatUnsupported
            }
            Self::Session(SessionError::Store(error)) | Self::Store(error) => {
                code_of_store_error(error.kind)
            }
            Self::Erased(_) => ErrorCode::ArtifactDeleted,
            Self::Preview(_) => ErrorCode::PreviewBudgetTooSmall,
            Self::Superseded => ErrorCode::SaveSuperseded,
            Self::IncarnationsExhausted(_) => ErrorCode::IncarnationsExhausted,
            Self::BodyDiffers(_) => ErrorCode::BodyCorrupt,
            Self::Undecided(_) => ErrorCode::StoreOutcomeUnknown,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }

    /// Returns the 410 facts where the output was erased.
    pub fn deletion(&self) -> Option<&Deletion> {
        if let Self::Erased(deletion) = self {
            Some(deletion)
        } else {
            None
        }
    }
}
