//! The HTTP side: logs each request, lets faults have their way, adds the `Date`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response, header};
use http_body_util::{BodyExt, StreamBody};
use s3s::Body;
use s3s::service::S3Service;

use super::fault::{Action, FaultPlan};
use super::log::{Op, RequestLog, Seen};
use super::service::{Backend, Directives};

/// Turns that other tasks get while a request is under way.
const YIELDS: usize = 16;

/// The connection broke: there is no reply.
#[derive(Debug, thiserror::Error)]
#[error("connection reset by the fault plan")]
pub(crate) struct Lost;

/// Everything between the wire and the operations.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) service: S3Service,
    pub(crate) backend: Arc<Backend>,
    pub(crate) log: RequestLog,
    pub(crate) faults: FaultPlan,
    pub(crate) hides_missing: AtomicBool,
    late: Mutex<Vec<Request<Bytes>>>,
}

impl Front {
    pub(crate) fn new(service: S3Service, backend: Arc<Backend>) -> Self {
        Self {
            service,
            backend,
            log: RequestLog::default(),
            faults: FaultPlan::default(),
            hides_missing: AtomicBool::new(false),
            late: Mutex::default(),
        }
    }

    /// Serves one request, or breaks its connection.
    pub(crate) async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, Lost> {
        let seen = Seen::of(&request);
        let op = seen.op;
        let action = self.faults.take(&seen);
        let start = self.log.begin(seen);
        // Without a wire nothing here ever waits: requests that are sent side by side must overlap.
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        let outcome = self.act(op, action, request).await;
        let status = outcome.as_ref().ok().map(|reply| reply.status().as_u16());
        self.log.finish(start, status);
        outcome.map(|reply| self.dress(op, reply))
    }

    async fn act(
        &self,
        op: Op,
        action: Option<Action>,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Lost> {
        let Some(action) = action else {
            let reply = self.apply(request).await?;
            return Ok(if self.hides_missing.load(Ordering::Relaxed) {
                deny_missing(reply)
            } else {
                reply
            });
        };
        match action {
            Action::Refuse { status, code } => {
                // The whole body is read first, as a server does that answers on a kept connection.
                let _ = whole(request).await;
                Ok(error_reply(status, code))
            }
            Action::ApplyThenRefuse { status, code } => {
                self.apply(request).await?;
                Ok(error_reply(status, code))
            }
            Action::LoseRequest => Err(Lost),
            Action::LoseReply => {
                self.apply(request).await?;
                Err(Lost)
            }
            Action::ApplyLate => {
                let request = whole(request).await?;
                self.late
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(request);
                Err(Lost)
            }
            Action::ApplyTwice => {
                let request = whole(request).await?;
                self.apply(request.clone().map(Body::from)).await?;
                self.apply(request.map(Body::from)).await
            }
            Action::CutBody {
                after_bytes,
                is_silent,
            } => {
                let (parts, body) = self.apply(request).await?.into_parts();
                let bytes = BodyExt::collect(body).await.map_err(|_| Lost)?.to_bytes();
                let bytes = bytes.slice(..after_bytes.min(bytes.len()));
                Ok(Response::from_parts(parts, cut_body(bytes, is_silent)))
            }
            Action::ErrorInSuccess { code, is_applied } => {
                if is_applied {
                    self.apply(request).await?;
                }
                Ok(error_reply(200, code))
            }
            Action::ShortListing { keys, is_honest } => {
                request.extensions_mut().insert(Directives {
                    short_listing: Some((keys, is_honest)),
                    ..Directives::default()
                });
                self.apply(request).await
            }
            Action::Corrupt => {
                request.extensions_mut().insert(Directives {
                    corrupts: true,
                    ..Directives::default()
                });
                self.apply(request).await
            }
            Action::DenyMissing => self.apply(request).await.map(deny_missing),
            Action::WebPage { status } => Ok(web_page(status)),
            Action::Hang => {
                debug_assert_ne!(
                    op,
                    Op::Other,
                    "a hang of an unknown request hides a mistake"
                );
                std::future::pending().await
            }
        }
    }

    async fn apply(&self, request: Request<Body>) -> Result<Response<Body>, Lost> {
        self.service.call(request).await.map_err(|_| Lost)
    }

    /// Applies what [`Action::ApplyLate`] held back; answers how many there were.
    pub(crate) async fn apply_late(&self) -> usize {
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        let count = late.len();
        for request in late {
            // Its caller is gone: whatever the answer is, nobody hears it.
            let _ = self.apply(request.map(Body::from)).await;
        }
        count
    }

    /// Makes the reply what a server over a wire gives: with a date, and no body where HTTP has none.
    fn dress(&self, op: Op, mut reply: Response<Body>) -> Response<Body> {
        let date = self.backend.now().strftime("%a, %d %b %Y %H:%M:%S GMT");
        let is_bodiless = matches!(op, Op::Head | Op::HeadBucket) || reply.status() == 304;
        let is_success = reply.status().is_success();
        let headers = reply.headers_mut();
        let date = date.to_string().parse().expect("a date is a header value");
        headers.insert(header::DATE, date);
        let id = "0123456789ABCDEF".parse().expect("a header value");
        headers.insert("x-amz-request-id", id);
        if is_bodiless && !is_success {
            headers.remove(header::CONTENT_LENGTH);
        }
        if is_bodiless {
            *reply.body_mut() = Body::empty();
        }
        reply
    }
}

async fn whole(request: Request<Body>) -> Result<Request<Bytes>, Lost> {
    let (parts, body) = request.into_parts();
    let bytes = BodyExt::collect(body).await.map_err(|_| Lost)?.to_bytes();
    Ok(Request::from_parts(parts, bytes))
}

fn cut_body(bytes: Bytes, is_silent: bool) -> Body {
    let broken = (!is_silent).then(|| Err(io::Error::from(io::ErrorKind::ConnectionReset)));
    let frames = stream::iter([Ok(bytes)]).chain(stream::iter(broken));
    Body::http_body_unsync(StreamBody::new(
        frames.map(|frame| frame.map(http_body::Frame::data)),
    ))
}

fn deny_missing(reply: Response<Body>) -> Response<Body> {
    if reply.status() == 404 {
        error_reply(403, "AccessDenied")
    } else {
        reply
    }
}

fn error_reply(status: u16, code: &str) -> Response<Body> {
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>by the fault plan</Message></Error>"
    );
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "application/xml")
        .body(Body::from(xml))
        .expect("a status and a header")
}

fn web_page(status: u16) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/html; charset=utf-8")
        .body(Body::from("<html><body>Sign in</body></html>".to_owned()))
        .expect("a status and a header")
}
