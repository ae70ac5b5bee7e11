//! Bytes on their way to and from the SDK, without a copy.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_sdk_s3::primitives::{ByteStream as SdkStream, SdkBody};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::{Body, Frame, SizeHint};

use crate::store::{ByteStream, Payload, StoreError, StoreErrorKind};

/// A payload as a body of known length that hands its segments on as they are.
struct Segments {
    segments: Arc<[Bytes]>,
    next: usize,
    remaining_bytes: u64,
}

impl Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(segment) = self.segments.get(self.next).cloned() else {
            return Poll::Ready(None);
        };
        self.next += 1;
        self.remaining_bytes -= segment.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        self.next == self.segments.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}

/// Wraps a payload for the SDK. `is_contiguous` gives it one piece of memory, which the SDK needs to
/// sign the payload, and at the price of a copy; a payload of one segment is always so.
pub(super) fn upload(payload: &Payload, is_contiguous: bool) -> SdkStream {
    if is_contiguous || payload.segments().len() <= 1 {
        return SdkStream::from(payload.to_bytes());
    }
    let segments: Arc<[Bytes]> = payload.segments().into();
    let size_bytes = payload.size_bytes();
    SdkStream::new(SdkBody::retryable(move || {
        SdkBody::from_body_1_x(Segments {
            segments: Arc::clone(&segments),
            next: 0,
            remaining_bytes: size_bytes,
        })
    }))
}

/// Which part of a reply's body is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Bytes that the reply announced.
    pub(super) wire_bytes: u64,
    /// Bytes to drop at its beginning; not 0 only where the store ignored a range.
    pub(super) skip_bytes: u64,
    /// Bytes to hand on.
    pub(super) take_bytes: u64,
}

/// Forwards a reply's frames as they come. A body that ends early, or brings more than it announced,
/// is an error after the bytes that came: never a silent short read.
pub(super) fn download(body: SdkStream, window: Window, key: String) -> ByteStream {
    let start = (body, 0_u64, key);
    stream::try_unfold(start, move |(mut body, mut seen_bytes, key)| async move {
        let end = window.skip_bytes + window.take_bytes;
        loop {
            // Past the window of a longer reply there is nothing to check; at the announced end the
            // stream is polled once more, so that surplus bytes are seen.
            if seen_bytes >= end && end < window.wire_bytes {
                return Ok(None);
            }
            let frame = match body.next().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    let cause = super::classify::chain(&error);
                    let detail = format!(
                        "the body broke off after {seen_bytes} of {} bytes: {cause}",
                        window.wire_bytes
                    );
                    return Err(StoreError::new(
                        StoreErrorKind::Unavailable,
                        "get",
                        key,
                        detail,
                    ));
                }
                None if seen_bytes < window.wire_bytes => {
                    let detail = format!(
                        "the body ended after {seen_bytes} of {} bytes",
                        window.wire_bytes
                    );
                    return Err(StoreError::new(
                        StoreErrorKind::Unavailable,
                        "get",
                        key,
                        detail,
                    ));
                }
                None => return Ok(None),
            };
            let from = window.skip_bytes.saturating_sub(seen_bytes);
            let to = end.saturating_sub(seen_bytes);
            seen_bytes += frame.len() as u64;
            if seen_bytes > window.wire_bytes {
                let detail = format!("the body has more than its {} bytes", window.wire_bytes);
                return Err(StoreError::new(
                    StoreErrorKind::Rejected,
                    "get",
                    key,
                    detail,
                ));
            }
            let clip = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(frame.len());
            let wanted = frame.slice(clip(from)..clip(to).max(clip(from)));
            if !wanted.is_empty() {
                return Ok(Some((wanted, (body, seen_bytes, key))));
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    fn frames(parts: &[&'static str]) -> SdkStream {
        let mut payload = Payload::default();
        for part in parts {
            payload.push(Bytes::from_static(part.as_bytes()));
        }
        upload(&payload, false)
    }

    async fn read(parts: &[&'static str], window: Window) -> Result<String, StoreError> {
        let parts: Vec<Bytes> = download(frames(parts), window, "k".into())
            .try_collect()
            .await?;
        Ok(String::from_utf8(parts.concat()).unwrap())
    }

    #[tokio::test]
    async fn segments_travel_unchanged_and_with_a_known_length() {
        let body = frames(&["ab", "cde", "f"]);
        assert_eq!(body.size_hint(), (6, Some(6)));
        assert_eq!(body.collect().await.unwrap().to_vec(), b"abcdef");
    }

    #[tokio::test]
    async fn a_window_is_cut_out_of_a_whole_reply() {
        for (skip_bytes, take_bytes, want) in
            [(0, 6, "abcdef"), (1, 3, "bcd"), (2, 1, "c"), (5, 1, "f")]
        {
            let window = Window {
                wire_bytes: 6,
                skip_bytes,
                take_bytes,
            };
            assert_eq!(read(&["ab", "cde", "f"], window).await.unwrap(), want);
        }
    }

    #[tokio::test]
    async fn short_and_long_bodies_are_errors() {
        let window = |wire_bytes| Window {
            wire_bytes,
            skip_bytes: 0,
            take_bytes: wire_bytes,
        };
        let short = read(&["abc"], window(4)).await.unwrap_err();
        assert_eq!(short.kind, StoreErrorKind::Unavailable);
        let long = read(&["abc", "d"], window(3)).await.unwrap_err();
        assert_eq!(long.kind, StoreErrorKind::Rejected);
    }
}
