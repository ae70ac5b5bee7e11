//! The accept loop: what a service must do that a plain router does not.
//!
//! A request's head must arrive in time, connections are capped, an accept error never ends the loop,
//! and a shutdown drains running requests inside a deadline and then cuts them. Why not the
//! framework's own loop: it has no header timeout, no cap, and waits for slow clients without limit.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, info, warn};

use crate::http::failed_access::PeerAddress;
use crate::limits;

/// How the accept loop behaves; the defaults are those of [`limits`].
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// A connection whose request head is not complete after this long is closed, an idle one too.
    pub header_timeout: Duration,
    /// Running requests have this long after the shutdown began.
    pub drain_timeout: Duration,
    /// Connections served at once; more wait in the listener's backlog.
    pub max_connections: usize,
    /// Pause after an accept error that is the machine's (no file descriptor left).
    pub accept_retry_pause: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            header_timeout: limits::REQUEST_HEADER_TIMEOUT,
            drain_timeout: limits::DRAIN_TIMEOUT,
            max_connections: limits::MAX_CONNECTIONS,
            accept_retry_pause: limits::ACCEPT_RETRY_PAUSE,
        }
    }
}

/// How a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Every request was answered in full.
    Drained,
    /// Some connections were cut at the deadline.
    Cut,
}

/// Where connections come from.
pub trait Listener: Send {
    /// One connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. Dropping the future loses none.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Connection>> + Send;

    /// Returns the address that a connection comes from, where it has one.
    fn peer(_connection: &Self::Connection) -> Option<IpAddr> {
        None
    }
}

impl Listener for TcpListener {
    type Connection = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // A small reply must not wait for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "could not set TCP_NODELAY");
        }
        Ok(stream)
    }

    fn peer(connection: &TcpStream) -> Option<IpAddr> {
        Some(connection.peer_addr().ok()?.ip())
    }
}

/// Serves `router` on `listener` until `shutdown` resolves, then drains.
pub async fn run<L: Listener>(
    mut listener: L,
    router: Router,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> DrainOutcome {
    let server = Server::new(router, &options);
    let permits = Arc::new(Semaphore::new(options.max_connections));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = next_connection(&mut listener, &permits) => accepted,
        };
        match accepted {
            Ok((connection, permit)) => {
                let peer = L::peer(&connection);
                server.serve(connection, peer, permit);
            }
            Err(error) if is_of_one_connection(&error) => debug!(%error, "a connection failed"),
            Err(error) => {
                warn!(%error, "cannot accept connections, trying again");
                tokio::select! {
                    () = &mut shutdown => break,
                    () = tokio::time::sleep(options.accept_retry_pause) => {}
                }
            }
        }
    }
    // Closed before the drain: who connects now must reach another replica, not our backlog.
    drop(listener);
    server.drain(options.drain_timeout).await
}

async fn next_connection<L: Listener>(
    listener: &mut L,
    permits: &Arc<Semaphore>,
) -> io::Result<(L::Connection, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits)
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    Ok((listener.accept().await?, permit))
}

/// Whether the error concerns only the connection that was being accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Runs connections and HTTP/2 streams as tasks that end with the server.
#[derive(Clone)]
struct Tasks {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl Tasks {
    fn start(&self, task: impl Future + Send + 'static) {
        let cut = self.cut.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                _ = task => {}
            }
        });
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        self.start(task);
    }
}

struct Server {
    builder: Builder<Tasks>,
    tasks: Tasks,
    graceful: GracefulShutdown,
    router: Router,
    header_timeout: Duration,
}

impl Server {
    fn new(router: Router, options: &ServerOptions) -> Self {
        let tasks = Tasks {
            tracker: TaskTracker::new(),
            cut: CancellationToken::new(),
        };
        let mut builder = Builder::new(tasks.clone());
        // Without a timer the header timeout is silently off.
        builder
            .http1()
            .timer(TokioTimer::new())
            .max_buf_size(limits::MAX_HEAD_BYTES)
            .header_read_timeout(options.header_timeout);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(
                u32::try_from(limits::MAX_HEAD_BYTES).expect("a head is far below 4 GiB"),
            )
            .keep_alive_interval(limits::HTTP2_PING_INTERVAL)
            .keep_alive_timeout(options.header_timeout);
        Self {
            builder,
            tasks,
            graceful: GracefulShutdown::new(),
            router,
            header_timeout: options.header_timeout,
        }
    }

    fn serve<C>(&self, connection: C, peer: Option<IpAddr>, permit: OwnedSemaphorePermit)
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let first_request = CancellationToken::new();
        let seen = first_request.clone();
        let router = self.router.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            seen.cancel();
            if let Some(peer) = peer {
                request.extensions_mut().insert(PeerAddress(peer));
            }
            answer(router.clone(), request.map(Body::new))
        });
        let serving = self
            .builder
            .serve_connection(TokioIo::new(connection), service)
            .into_owned();
        let serving = self.graceful.watch(serving);
        let header_timeout = self.header_timeout;
        self.tasks.start(async move {
            let _permit = permit;
            // hyper's own header timeout starts only when it knows the protocol: a client that sends
            // nothing, or the one byte that HTTP/2 and POST share, would hold its place for ever.
            let no_request = async {
                let first = tokio::time::timeout(header_timeout, first_request.cancelled()).await;
                if first.is_ok() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                served = serving => if let Err(error) = served {
                    debug!(%error, "a connection ended early");
                },
                () = no_request => debug!("closed a connection without a request"),
            }
        });
    }

    async fn drain(self, deadline: Duration) -> DrainOutcome {
        info!(connections = self.graceful.count(), "draining");
        let drained = tokio::time::timeout(deadline, self.graceful.shutdown()).await;
        self.tasks.cut.cancel();
        self.tasks.tracker.close();
        self.tasks.tracker.wait().await;
        match drained {
            Ok(()) => DrainOutcome::Drained,
            Err(_) => {
                warn!("cut connections that were still busy at the drain deadline");
                DrainOutcome::Cut
            }
        }
    }
}

async fn answer(router: Router, request: Request) -> Result<Response, Infallible> {
    router.oneshot(request).await
}

/// Resolves at the first SIGTERM or SIGINT.
///
/// # Errors
/// The process may not install signal handlers.
pub fn shutdown_signal() -> io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => info!("SIGTERM: shutting down"),
            _ = interrupt.recv() => info!("SIGINT: shutting down"),
        }
    })
}

#[cfg(test)]
mod tests;
