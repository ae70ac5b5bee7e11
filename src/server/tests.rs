use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use axum::routing::get;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 400;

fn quick() -> ServerOptions {
    ServerOptions {
        header_timeout: Duration::from_millis(200),
        drain_timeout: Duration::from_secs(20),
        max_connections: 8,
        accept_retry_pause: Duration::from_millis(10),
    }
}

/// 25 MiB, more than the sockets' buffers take, so that the client's pace is the download's.
fn routes() -> Router {
    let download = || async {
        let chunk = Bytes::from(vec![b'x'; CHUNK]);
        let chunks = futures_util::stream::repeat(chunk).take(CHUNKS);
        Body::from_stream(chunks.map(Ok::<_, Infallible>))
    };
    Router::new()
        .route("/", get(|| async { "fine" }))
        .route("/download", get(download))
}

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    outcome: JoinHandle<DrainOutcome>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "each test awaits or drops its one server"
)]
async fn start(options: ServerOptions) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let outcome = tokio::spawn(run(listener, routes(), options, shutdown));
    Running {
        address,
        stop,
        outcome,
    }
}

/// Waits for the end of a server; fails after ten seconds.
async fn ended(outcome: JoinHandle<DrainOutcome>) -> DrainOutcome {
    tokio::time::timeout(Duration::from_secs(10), outcome)
        .await
        .expect("the server ends")
        .unwrap()
}

async fn connect(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Reads until the other side closes, well or not; fails after ten seconds.
async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n @ 1..) = stream.read(&mut buffer).await {
            seen.extend_from_slice(&buffer[..n]);
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .expect("the server closes the connection");
    seen
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

async fn is_served(address: SocketAddr) -> bool {
    let seen = read_all(&mut connect(address, GET).await).await;
    seen.starts_with(b"HTTP/1.1 200") && seen.ends_with(b"fine")
}

#[tokio::test]
async fn an_unfinished_request_head_is_closed_after_the_timeout() {
    let server = start(quick()).await;
    for head in [
        "",
        "P",
        "PRI * HTTP/2",
        "GET / HT",
        "GET / HTTP/1.1\r\nhost: x\r\n",
    ] {
        let started = Instant::now();
        let seen = read_all(&mut connect(server.address, head).await).await;
        assert!(!seen.starts_with(b"HTTP/1.1 200"), "{head:?}");
        assert!(started.elapsed() >= Duration::from_millis(150), "{head:?}");
    }
    assert!(is_served(server.address).await);
}

#[tokio::test]
async fn a_connection_that_stays_idle_after_a_reply_is_closed() {
    let server = start(quick()).await;
    let started = Instant::now();
    let keep_alive = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let seen = read_all(&mut connect(server.address, keep_alive).await).await;
    assert!(seen.ends_with(b"fine"));
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn http2_is_served_on_the_same_port() {
    let server = start(quick()).await;
    // Client preface and an empty SETTINGS frame; the answer begins with the server's own SETTINGS.
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0";
    let mut stream = connect(server.address, preface).await;
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "frame type SETTINGS");
}

/// Starts a download and waits for its first bytes.
async fn begin_download(address: SocketAddr) -> (TcpStream, usize) {
    let request = "GET /download HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut stream = connect(address, request).await;
    let mut buffer = [0; 1024];
    let n = stream.read(&mut buffer).await.unwrap();
    assert!(n > 0);
    (stream, n)
}

#[tokio::test]
async fn a_slow_download_is_finished_after_the_shutdown_began() {
    let server = start(quick()).await;
    let (mut stream, first) = begin_download(server.address).await;
    server.stop.send(()).unwrap();
    // New connections are refused as soon as the listener is gone, while the download goes on.
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!server.outcome.is_finished());
    let rest = read_all(&mut stream).await;
    assert!(rest.ends_with(b"0\r\n\r\n"), "the last chunk was sent");
    assert!(first + rest.len() > CHUNK * CHUNKS);
    assert_eq!(ended(server.outcome).await, DrainOutcome::Drained);
}

#[tokio::test]
async fn a_download_that_is_not_read_is_cut_at_the_drain_deadline() {
    let options = ServerOptions {
        drain_timeout: Duration::from_millis(200),
        ..quick()
    };
    let server = start(options).await;
    let (mut stream, _) = begin_download(server.address).await;
    let began = Instant::now();
    server.stop.send(()).unwrap();
    assert_eq!(ended(server.outcome).await, DrainOutcome::Cut);
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(began.elapsed() < Duration::from_secs(5));
    let rest = read_all(&mut stream).await;
    assert!(
        !rest.ends_with(b"0\r\n\r\n"),
        "a cut reply must not look whole"
    );
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_shutdown() {
    let options = ServerOptions {
        header_timeout: Duration::from_secs(60),
        ..quick()
    };
    let server = start(options).await;
    let mut kept = connect(server.address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut buffer = [0; 1024];
    assert!(kept.read(&mut buffer).await.unwrap() > 0);
    let _silent = connect(server.address, "").await;
    let began = Instant::now();
    server.stop.send(()).unwrap();
    assert_eq!(ended(server.outcome).await, DrainOutcome::Drained);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn connections_over_the_cap_wait_until_one_ends() {
    let options = ServerOptions {
        header_timeout: Duration::from_secs(60),
        max_connections: 2,
        ..quick()
    };
    let server = start(options).await;
    let (first, _) = begin_download(server.address).await;
    let (_second, _) = begin_download(server.address).await;
    let mut third = connect(server.address, GET).await;
    let mut byte = [0];
    let waiting = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
    assert!(waiting.is_err(), "a third connection was served beside two");
    drop(first);
    assert!(read_all(&mut third).await.ends_with(b"fine"));
}

/// Fails a few times before each real connection.
struct Flaky {
    inner: TcpListener,
    errors: VecDeque<io::Error>,
}

impl Listener for Flaky {
    type Connection = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        match self.errors.pop_front() {
            Some(error) => Err(error),
            None => Listener::accept(&mut self.inner).await,
        }
    }
}

#[tokio::test]
async fn accept_errors_do_not_end_the_loop() {
    const NO_FILE_DESCRIPTOR: i32 = 24;
    let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = inner.local_addr().unwrap();
    let errors = VecDeque::from([
        io::ErrorKind::ConnectionAborted.into(),
        io::Error::from_raw_os_error(NO_FILE_DESCRIPTOR),
        io::ErrorKind::Other.into(),
    ]);
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    // More errors than permits: a failed accept must give its permit back.
    let options = ServerOptions {
        max_connections: 1,
        ..quick()
    };
    let serving = run(Flaky { inner, errors }, routes(), options, shutdown);
    let asking = async {
        assert!(is_served(address).await);
        stop.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(serving, asking);
    assert_eq!(outcome, DrainOutcome::Drained);
}

#[tokio::test]
async fn sigterm_asks_for_the_shutdown() {
    let shutdown = shutdown_signal().unwrap();
    // The handlers are installed, so that the signal does not end this process.
    let own_process = std::process::id().to_string();
    let kill = tokio::process::Command::new("kill")
        .args(["-TERM", &own_process])
        .status()
        .await;
    assert!(kill.unwrap().success());
    tokio::time::timeout(Duration::from_secs(10), shutdown)
        .await
        .unwrap();
}
