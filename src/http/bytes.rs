//! `GET` and `HEAD /a/{locator}`: the bytes, whole or one range of them.

use std::ops::Range;

use axum::Extension;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use futures_util::TryStreamExt;

use crate::artifact::manifest::Manifest;
use crate::error::ErrorCode;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::condition::{ConditionVerdict, EntityTag, evaluate};
use crate::http::disposition::attachment;
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::http::range::{UnsatisfiableRangeError, content_range, requested_range};
use crate::http::reply::mark_as_artifact;
use crate::http::request_id::RequestId;

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// What of the body the request asks for.
enum Selection {
    /// Condition false: 412.
    Refused,
    /// The caller has it: 304.
    NotModified,
    /// A range outside the body: 416.
    Outside(UnsatisfiableRangeError),
    /// All of it: 200.
    Whole,
    /// A non-empty part: 206.
    Part(Range<u64>),
}

impl Selection {
    fn of(method: &Method, headers: &HeaderMap, manifest: &Manifest) -> Self {
        let body = &manifest.head.body;
        let tag = EntityTag::of(&body.sha256);
        match evaluate(method, headers, &tag) {
            ConditionVerdict::Failed => return Self::Refused,
            ConditionVerdict::NotModified => return Self::NotModified,
            ConditionVerdict::Proceed => {}
        }
        match requested_range(method, headers, &tag, body.size_bytes) {
            Ok(Some(range)) => Self::Part(range),
            Ok(None) => Self::Whole,
            Err(outside) => Self::Outside(outside),
        }
    }

    /// The bytes that the reply carries: of them alone the body is read.
    fn bytes(&self, method: &Method, manifest: &Manifest) -> Range<u64> {
        match self {
            Self::Part(range) => range.clone(),
            Self::Whole if method != Method::HEAD => 0..manifest.head.body.size_bytes,
            Self::Whole | Self::Refused | Self::NotModified | Self::Outside(_) => 0..0,
        }
    }
}

/// Serves the bytes.
///
/// Conditions and range are decided from the manifest inside the read, so that with a cached manifest
/// its confirmation and the body's bytes are asked for at the same time. A reply without body bytes
/// asks the store for the manifest alone.
pub(crate) async fn bytes(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    NoQuery: NoQuery,
    id: Option<Extension<RequestId>>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let read = caller
        .library
        .open(&caller.tenant, &artifact, |manifest| {
            Selection::of(&method, &headers, manifest).bytes(&method, manifest)
        })
        .await?;
    let manifest = &read.manifest;
    let size_bytes = manifest.head.body.size_bytes;
    let mut reply = Response::new(Body::empty());
    let length = match Selection::of(&method, &headers, manifest) {
        Selection::Refused => {
            let detail = "If-Match names another ETag than the artifact's";
            return Err(Problem::new(ErrorCode::PreconditionFailed, detail));
        }
        Selection::Outside(outside) => return Err(outside.into()),
        Selection::NotModified => {
            *reply.status_mut() = StatusCode::NOT_MODIFIED;
            validate(reply.headers_mut(), manifest);
            // A 304 has no body, and a length that it states is that of the 200.
            reply
                .headers_mut()
                .insert(CONTENT_LENGTH, size_bytes.into());
            return Ok(reply);
        }
        Selection::Whole => size_bytes,
        Selection::Part(range) => {
            *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
            let field = content_range(&range, size_bytes);
            reply.headers_mut().insert(CONTENT_RANGE, field);
            range.end - range.start
        }
    };
    describe(reply.headers_mut(), manifest);
    reply.headers_mut().insert(CONTENT_LENGTH, length.into());
    if read.range.is_empty() {
        return Ok(reply);
    }
    // The status is sent by now; ending the connection short of Content-Length is the one way to say
    // that these bytes are not good.
    let stream = read.into_stream().inspect_err(move |error| {
        let request_id = id.as_ref().map_or("", |id| id.as_str());
        tracing::error!(error = %error, request_id, "cut a reply off: its bytes cannot be read");
    });
    *reply.body_mut() = Body::from_stream(stream);
    Ok(reply)
}

/// The headers by which a copy is known to be this artifact, or not.
fn validate(headers: &mut HeaderMap, manifest: &Manifest) {
    let sha256 = &manifest.head.body.sha256;
    headers.insert(ETAG, EntityTag::of(sha256).to_header());
    let digest = HeaderValue::try_from(sha256.to_digest_field())
        .expect("base64 and fixed ASCII are a header value");
    headers.insert(REPR_DIGEST, digest);
    mark_as_artifact(headers);
}

fn describe(headers: &mut HeaderMap, manifest: &Manifest) {
    validate(headers, manifest);
    let media_type = HeaderValue::try_from(&manifest.head.media_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_TYPE, media_type);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let name = manifest.head.provenance.name.as_deref();
    headers.insert(CONTENT_DISPOSITION, attachment(name));
}
