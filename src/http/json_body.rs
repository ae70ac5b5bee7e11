//! Small JSON requests: read whole, bounded, and strict about what they say.

use axum::body::Body;
use axum::http::HeaderMap;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::error::ErrorCode;
use crate::http::problem::{Problem, excerpt};
use crate::http::upload_headers::refuse_encoded_or_partial;

/// Reads a JSON document of at most `most_bytes`; an empty body means `{}`. The declared media type does
/// not matter: `curl -d` declares a form.
///
/// # Errors
/// It is too long, was cut off, is coded, is no JSON, or says something else than `T`; the code of the last
/// two is `malformed`.
pub(crate) async fn read<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    most_bytes: usize,
    malformed: ErrorCode,
) -> Result<T, Problem> {
    refuse_encoded_or_partial(headers)?;
    let bytes = match Limited::new(body, most_bytes).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let detail = format!("the request takes at most {most_bytes} bytes");
            return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
        }
        Err(error) => {
            let detail = "the request's body ended early";
            return Err(Problem::new(ErrorCode::BodyIncomplete, detail).caused_by(error));
        }
    };
    let bytes = if bytes.trim_ascii().is_empty() {
        b"{}"
    } else {
        &*bytes
    };
    serde_json::from_slice(bytes).map_err(|error| {
        // The message may quote what was sent.
        Problem::new(
            malformed,
            format!("the request: {}", excerpt(&error.to_string())),
        )
    })
}
