//! Over-long paths and queries are refused as a problem, before the protocol library refuses longer ones
//! with nothing but a status.

use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ErrorCode;
use crate::http::problem::Problem;
use crate::limits::MAX_URI_BYTES;

/// A layer: 414 for a path and query of more than [`MAX_URI_BYTES`].
pub(crate) async fn refuse_long(request: Request, next: Next) -> Response {
    let target = request.uri().path_and_query();
    let size = target.map_or(0, |target| target.as_str().len());
    if size <= MAX_URI_BYTES {
        return next.run(request).await;
    }
    // What the access log and the fallback see is not the megabytes of a hostile caller.
    drop::<Uri>(request.into_parts().0.uri);
    let detail = format!("path and query have {size} bytes, at most {MAX_URI_BYTES} are taken");
    Problem::new(ErrorCode::UriTooLong, detail).into_response()
}
