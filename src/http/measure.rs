//! A layer that measures every request: how it was answered, how fast, and what it read back.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::http::method::known_method;
use crate::http::metrics::Metrics;
use crate::http::problem::Problem;

/// The route of requests that no route takes: their paths are anything.
const UNMATCHED: &str = "unmatched";

/// Begins the routes that lead to artifacts.
const LOCATOR: &str = "/a/";

/// Measures the request when its reply's head is ready, and its body while it is taken.
pub(crate) async fn measure(
    State(metrics): State<Metrics>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = known_method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let response = next.run(request).await;
    let status = response.status();
    metrics.answered(method, route, status.as_u16(), started.elapsed());
    if let Some(problem) = response.extensions().get::<Problem>() {
        metrics.failures(problem.code()).increment(1);
    }
    if !(status.is_success() && route.starts_with(LOCATOR)) {
        return response;
    }
    let counter = metrics.read_back(route);
    counted(response, move |bytes| counter.increment(bytes))
}

/// Calls `count` with the length of every piece that is taken of the body.
pub(crate) fn counted(response: Response, count: impl Fn(u64) + Send + 'static) -> Response {
    let count = Box::new(count);
    response.map(|body| Body::new(CountedBody { body, count }))
}

/// A body that counts what is taken of it.
struct CountedBody {
    body: Body,
    count: Box<dyn Fn(u64) + Send>,
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            (self.count)(data.len() as u64);
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
