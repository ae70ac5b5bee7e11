//! Saving an output, and what comes back.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cli::failure::Failure;
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;

/// A receipt with a replacement in it, or a decision with at most 1 MiB of text, escaped as JSON.
const MAX_RECEIPT_BYTES: usize = 8 << 20;

/// The media type of text.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// The media type of anything else.
pub const BYTES: &str = "application/octet-stream";

/// An output on its way.
#[derive(Debug)]
pub struct Upload {
    /// Where it is saved, with its description.
    pub path: ApiPath,
    /// Its media type.
    pub media_type: &'static str,
    /// Its size, where it is known before the end.
    pub size_bytes: Option<u64>,
    /// Its bytes.
    pub body: Body,
}

/// What a save answered.
#[derive(Debug, Clone)]
pub struct SavedReceipt {
    /// The receipt, as it came.
    pub receipt: Value,
    /// The text for the prompt.
    pub replacement: String,
}

impl Upload {
    /// Sends the output and reads the receipt. When this future is dropped, the body ends with an error,
    /// never as if it were whole: a save in this process goes on reading without us.
    ///
    /// # Errors
    /// Nothing is known to be stored.
    pub async fn send(self, transport: &Transport) -> Result<SavedReceipt, Failure> {
        let body = self.exchange(transport).await?;
        Self::read(&body).ok_or_else(|| Failure::new("the reply is not a receipt"))
    }

    /// Sends the output to be decided, and returns the decision.
    ///
    /// # Errors
    /// Nothing is known to be decided.
    pub async fn decide(self, transport: &Transport) -> Result<Value, Failure> {
        let body = self.exchange(transport).await?;
        let decision = serde_json::from_slice(&body).ok();
        decision
            .filter(|decision: &Value| decision.get("action").is_some())
            .ok_or_else(|| Failure::new("the reply is not a decision"))
    }

    async fn exchange(self, transport: &Transport) -> Result<Bytes, Failure> {
        let given_up = CancellationToken::new();
        let _guard = given_up.clone().drop_guard();
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.path.as_str())
            .header(CONTENT_TYPE, self.media_type);
        if let Some(size_bytes) = self.size_bytes {
            request = request.header(CONTENT_LENGTH, size_bytes);
        }
        let request = request
            .body(until(self.body, given_up))
            .map_err(|error| Failure::usage(format!("the description is too long: {error}")))?;
        let response = transport.ask(request).await?;
        axum::body::to_bytes(response.into_body(), MAX_RECEIPT_BYTES)
            .await
            .map_err(|error| Failure::new(format!("the reply was lost: {error}")).away())
    }

    fn read(body: &Bytes) -> Option<SavedReceipt> {
        let receipt: Value = serde_json::from_slice(body).ok()?;
        let replacement = receipt.get("replacement")?.as_str()?.to_owned();
        Some(SavedReceipt {
            receipt,
            replacement,
        })
    }
}

/// The body, but for an error at its end if the token is cancelled before that.
fn until(body: Body, given_up: CancellationToken) -> Body {
    let pieces = body.into_data_stream().map_err(std::io::Error::other);
    let cut = async move {
        given_up.cancelled_owned().await;
        Err(std::io::Error::other("the save was given up"))
    };
    // Whichever comes first ends the stream, and only the body's own end is a good one.
    let states = stream::unfold(Some((pieces, Box::pin(cut))), |state| async {
        let (mut pieces, mut cut) = state?;
        tokio::select! {
            biased;
            cut = &mut cut => Some((cut, None)),
            piece = pieces.next() => match piece? {
                Ok(piece) => Some((Ok(piece), Some((pieces, cut)))),
                Err(error) => Some((Err(error), None)),
            },
        }
    });
    Body::from_stream(states)
}

/// Returns the media type of bytes that begin with `start`; `is_whole` when there are no more.
pub fn media_type_of(start: &[u8], is_whole: bool) -> &'static str {
    if start.contains(&0) {
        return BYTES;
    }
    match std::str::from_utf8(start) {
        Ok(_) => TEXT,
        // A character that is cut by the end of the sample is no fault.
        Err(error) if error.error_len().is_none() && !is_whole => TEXT,
        Err(_) => BYTES,
    }
}

/// Returns the media type that a file's name says, where it is one that readers care about.
pub fn media_type_of_name(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "json" => "application/json",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_save_that_is_given_up_never_looks_whole() {
        let given_up = CancellationToken::new();
        let endless = stream::once(async { Ok::<_, std::io::Error>(Bytes::from("half")) })
            .chain(stream::pending());
        let mut body = until(Body::from_stream(endless), given_up.clone()).into_data_stream();
        assert_eq!(body.next().await.unwrap().unwrap(), "half");
        given_up.cancel();
        assert!(body.next().await.unwrap().is_err());
        assert!(body.next().await.is_none());
    }

    #[test]
    fn text_is_told_from_bytes_by_its_start() {
        assert_eq!(media_type_of("aé".as_bytes(), true), TEXT);
        assert_eq!(media_type_of(&"aé".as_bytes()[..2], false), TEXT);
        assert_eq!(media_type_of(&"aé".as_bytes()[..2], true), BYTES);
        assert_eq!(media_type_of(b"\x89PNG", false), BYTES);
        assert_eq!(media_type_of(b"a\0b", true), BYTES);
        assert_eq!(media_type_of(b"", true), TEXT);
        assert_eq!(media_type_of_name("a.b.PNG"), Some("image/png"));
        assert_eq!(media_type_of_name("png"), None);
    }
}
