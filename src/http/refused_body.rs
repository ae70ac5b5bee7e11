//! What becomes of a request body that nobody reads to its end.
//!
//! Many clients send the whole body before they look at the reply. Closing a connection on unread
//! bytes makes the kernel send a reset, which takes the reply with it: the caller would see a broken
//! connection instead of the 4xx that says what to correct. So the rest is read on and thrown away
//! beside the reply, up to a bound of bytes and time.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http_body::{Body as _, Frame, SizeHint};
use tokio_util::task::TaskTracker;

use crate::limits::{REFUSED_BODY_DRAIN_BYTES, REFUSED_BODY_DRAIN_TIME};

/// A layer: from here on a body that is dropped unread is drained.
pub(crate) async fn read_on(
    State(drains): State<TaskTracker>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Who waits for `100 Continue` sends nothing when the refusal comes instead; reading would call
    // the body in.
    let waits_to_send = request.headers().contains_key(EXPECT);
    let request = request.map(|body| {
        Body::new(DrainedBody {
            unread: Some(body),
            waits_to_send,
            drains,
        })
    });
    next.run(request).await
}

struct DrainedBody {
    /// The body until its end or failure.
    unread: Option<Body>,
    waits_to_send: bool,
    drains: TaskTracker,
}

impl http_body::Body for DrainedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.waits_to_send = false;
        let Some(body) = &mut self.unread else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.unread = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.unread.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.unread
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for DrainedBody {
    fn drop(&mut self) {
        let Some(body) = self.unread.take() else {
            return;
        };
        if self.waits_to_send
            || body.is_end_stream()
            || tokio::runtime::Handle::try_current().is_err()
        {
            return;
        }
        let drain = drain(body.into_data_stream());
        self.drains
            .spawn(tokio::time::timeout(REFUSED_BODY_DRAIN_TIME, drain));
    }
}

async fn drain(mut body: BodyDataStream) {
    let mut left = REFUSED_BODY_DRAIN_BYTES;
    while let Some(Ok(frame)) = body.next().await {
        match left.checked_sub(frame.len() as u64) {
            Some(rest) => left = rest,
            None => break,
        }
    }
}
