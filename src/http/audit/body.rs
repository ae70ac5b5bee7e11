//! A reply's body that counts what was taken of it for its audit line.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::{AuditLine, Outcome};

/// Lets `line` go when the reply's body ends, is dropped, or has nothing to send.
pub(super) fn follow(reply: Response, mut line: AuditLine) -> Response {
    // Sent with the reply's head: a HEAD, a 304, an empty artifact.
    if reply.body().is_end_stream() {
        line.event.outcome = Outcome::Ok;
        return reply;
    }
    let stated = reply.headers().get(CONTENT_LENGTH);
    let stated = stated.and_then(|length| length.to_str().ok()?.parse().ok());
    let length_bytes = stated.or_else(|| reply.body().size_hint().exact());
    reply.map(|body| {
        Body::new(AuditedBody {
            body,
            line,
            length_bytes,
        })
    })
}

struct AuditedBody {
    body: Body,
    line: AuditLine,
    /// What the reply's head promises, where it does.
    length_bytes: Option<u64>,
}

impl http_body::Body for AuditedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.line.event.bytes_served += bytes.len() as u64;
        }
        // A connection stops asking once it has as many bytes as the head promised.
        let has_all = self.length_bytes == Some(self.line.event.bytes_served);
        if has_all || matches!(polled, Poll::Ready(None)) {
            self.line.event.outcome = Outcome::Ok;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
