//! The one place where a failed S3 request becomes a [`StoreError`].
//!
//! By status *and* code: servers agree on neither alone. When in doubt a write is
//! [`StoreErrorKind::Ambiguous`], never failed, and a read is [`StoreErrorKind::Unavailable`], never
//! absent.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use super::reply::Reply;
use crate::store::{StoreError, StoreErrorKind as Kind};

/// What kind of request failed; the same answer means different things to different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// GET of an object, listings, bucket questions.
    Read,
    /// HEAD: its errors have no body, so no code.
    Head,
    /// A put with `If-None-Match: *`.
    Create,
    /// A put with `If-Match`.
    Replace,
    /// Any other write, multipart calls included.
    Write,
    /// A delete without a condition, or of one version.
    Delete,
    /// A delete with `If-Match`.
    DeleteIfMatch,
}

impl Call {
    const fn is_write(self) -> bool {
        !matches!(self, Self::Read | Self::Head)
    }

    /// The kind of a request that was sent and whose outcome is not known.
    const fn lost(self) -> Kind {
        if self.is_write() {
            Kind::Ambiguous
        } else {
            Kind::Unavailable
        }
    }

    const fn condition_failed(self) -> Kind {
        match self {
            Self::Create => Kind::AlreadyExists,
            Self::Read
            | Self::Head
            | Self::Replace
            | Self::Write
            | Self::Delete
            | Self::DeleteIfMatch => Kind::PreconditionFailed,
        }
    }

    const fn missing(self) -> Kind {
        match self {
            Self::Replace | Self::DeleteIfMatch => Kind::PreconditionFailed,
            Self::Read | Self::Head | Self::Create | Self::Write | Self::Delete => Kind::NotFound,
        }
    }
}

/// Decides the kind of an answer with this status and error code (empty: none).
pub(super) fn kind_of(call: Call, status: u16, code: &str) -> Kind {
    match code {
        "NoSuchBucket"
        | "InvalidBucketName"
        | "PermanentRedirect"
        | "AuthorizationHeaderMalformed"
        | "BadDigest"
        | "InvalidDigest"
        | "XAmzContentChecksumMismatch"
        | "XAmzContentSHA256Mismatch"
        | "InvalidPart"
        | "InvalidPartOrder"
        | "EntityTooSmall"
        | "EntityTooLarge"
        | "MalformedXML" => Kind::Rejected,
        "NoSuchUpload" => Kind::NotFound,
        "NoSuchKey" | "NoSuchVersion" | "NotFound" => call.missing(),
        "PreconditionFailed" => call.condition_failed(),
        "ConditionalRequestConflict" | "OperationAborted" => Kind::Conflict,
        "SlowDown"
        | "SlowDownRead"
        | "SlowDownWrite"
        | "ServiceUnavailable"
        | "Busy"
        | "TooManyRequests"
        | "Throttling"
        | "ThrottlingException"
        | "RequestLimitExceeded" => Kind::Throttled,
        "AccessDenied"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "ExpiredToken"
        | "RequestTimeTooSkewed" => Kind::Denied,
        "NotImplemented" | "MethodNotAllowed" => Kind::NotImplemented,
        "InvalidRange" => Kind::InvalidRange,
        "QuotaExceeded" | "InsufficientStorage" | "XMinioStorageFull" | "InsufficientCapacity" => {
            Kind::Full
        }
        // The store waited for the rest of the body in vain: it has taken nothing.
        "RequestTimeout" => Kind::Unavailable,
        "InternalError" => call.lost(),
        _ => kind_of_status(call, status, code),
    }
}

fn kind_of_status(call: Call, status: u16, code: &str) -> Kind {
    match status {
        401 | 403 => Kind::Denied,
        // Without a code it may be anybody's 404: a missing object is claimed only by an S3.
        404 if call == Call::Head => call.missing(),
        405 | 501 => Kind::NotImplemented,
        408 => call.lost(),
        409 => Kind::Conflict,
        412 => call.condition_failed(),
        416 => Kind::InvalidRange,
        429 => Kind::Throttled,
        507 => Kind::Full,
        // An error inside a success (CompleteMultipartUpload) whose code says nothing to us.
        200..300 if !code.is_empty() => call.lost(),
        500.. => call.lost(),
        _ => Kind::Rejected,
    }
}

/// Where a failure happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) call: Call,
    pub(super) operation: &'static str,
    pub(super) key: &'a str,
    pub(super) bucket: &'a str,
}

impl Site<'_> {
    /// Builds an error at this place.
    pub(super) fn error(self, kind: Kind, detail: impl Into<String>) -> StoreError {
        StoreError::new(kind, self.operation, self.key, detail)
    }

    /// Builds the error of a reply that no S3 would give.
    pub(super) fn foreign(self, what: &str) -> StoreError {
        self.error(
            Kind::Rejected,
            format!("the endpoint's reply is not one of S3 ({what}): check the store's `endpoint`"),
        )
    }

    /// Turns what the SDK reports into the store's error; the SDK's error goes no further.
    pub(super) fn fail<E>(
        self,
        reply: Option<Reply>,
        error: SdkError<E, HttpResponse>,
    ) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        if let Some(error) = find::<CredentialsError>(&error) {
            return self.no_credentials(error);
        }
        let reply = reply.unwrap_or_default();
        match &error {
            SdkError::ConstructionFailure(_) => {
                let cause = chain(&error);
                self.error(Kind::Rejected, format!("the request was not sent: {cause}"))
            }
            SdkError::TimeoutError(_) => self.error(self.call.lost(), "no reply in time"),
            SdkError::DispatchFailure(_) => {
                let cause = chain(&error);
                // The only sign of it that reaches us: the pool could not open a connection, so
                // nothing was sent. Not recognised it would be ambiguous, which is the safe side.
                if cause.contains("client error (Connect)") {
                    self.error(
                        Kind::Unavailable,
                        format!("cannot connect to the store's `endpoint`: {cause}"),
                    )
                } else {
                    self.error(self.call.lost(), format!("the connection failed: {cause}"))
                }
            }
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                self.answer(&reply, meta.code(), meta.message())
            }
            // A reply that could not be read, and whatever the SDK adds.
            SdkError::ResponseError(_) | _ => self.unreadable(&reply, &error),
        }
    }

    /// Nothing was sent, for want of a signature.
    fn no_credentials(self, error: &CredentialsError) -> StoreError {
        match error {
            CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_) => {
                self.error(
                    Kind::Denied,
                    "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role",
                )
            }
            // A role or a metadata service that fails now may answer later.
            CredentialsError::ProviderTimedOut(_)
            | CredentialsError::ProviderError(_)
            | CredentialsError::Unhandled(_)
            | _ => self.error(
                Kind::Unavailable,
                format!("the source of credentials fails: {}", chain(error)),
            ),
        }
    }

    fn unreadable<E>(self, reply: &Reply, error: &SdkError<E, HttpResponse>) -> StoreError
    where
        E: Error + Send + Sync + 'static,
    {
        if reply.is_html && reply.status < 500 {
            return self.foreign("a web page");
        }
        let has_whole_body = error
            .raw_response()
            .and_then(|raw| raw.body().bytes())
            .is_some_and(|bytes| !bytes.is_empty());
        let cause = chain(error);
        if has_whole_body && !self.call.is_write() {
            return self.foreign(&format!("status {}: {cause}", reply.status));
        }
        self.error(
            self.call.lost(),
            format!("status {}, unreadable: {cause}", reply.status),
        )
    }

    fn answer(self, reply: &Reply, code: Option<&str>, message: Option<&str>) -> StoreError {
        let status = reply.status;
        let text = code.unwrap_or_default();
        // A HEAD has no body, so the SDK makes its code up from the status.
        let is_uncoded = text.is_empty() || self.call == Call::Head;
        if is_uncoded && reply.is_html && status < 500 && !matches!(status, 401 | 403) {
            return self.foreign(&format!("status {status}, a web page"));
        }
        let kind = kind_of(self.call, status, text);
        let advice = match text {
            "NoSuchBucket" => format!("the bucket `{}` does not exist; ", self.bucket),
            "PermanentRedirect" | "AuthorizationHeaderMalformed" => {
                "the bucket is in another region: set the store's `region`; ".to_owned()
            }
            "RequestTimeTooSkewed" => "this host's clock is wrong; ".to_owned(),
            "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" => {
                "the credentials are wrong; ".to_owned()
            }
            "" if status == 404 => {
                "a 404 without an S3 error code: check the store's `endpoint`; ".to_owned()
            }
            _ => String::new(),
        };
        let code = code.map_or_else(String::new, |code| format!(" {}", clip(code)));
        let said = message.map_or_else(String::new, |message| format!(": {}", clip(message)));
        let id = reply
            .request_id
            .as_deref()
            .map_or_else(String::new, |id| format!(" (request {})", clip(id)));
        self.error(kind, format!("{advice}status {status}{code}{said}{id}"))
    }
}

/// A store's text, fit for a log line.
fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Joins an error and its causes.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text.chars().filter(|c| !c.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests;
