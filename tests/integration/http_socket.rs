//! What only a real connection shows: clients that go away, and refusals that must arrive.

use std::net::SocketAddr;
use std::time::Duration;

use spillbox::server::{DrainOutcome, ServerOptions, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::app::{Backend, TestApp};

const MIB: usize = 1 << 20;

struct Service {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinSet<DrainOutcome>,
}

async fn serve(app: &TestApp) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let options = ServerOptions {
        drain_timeout: Duration::from_millis(200),
        ..ServerOptions::default()
    };
    let shutdown = async {
        let _ = stopped.await;
    };
    let mut running = JoinSet::new();
    running.spawn(run(listener, app.router.clone(), options, shutdown));
    Service {
        address,
        stop,
        running,
    }
}

impl Service {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }
}

/// Begins a chunked upload and sends `mib` chunks of it.
async fn begin_upload(service: &Service, mib: usize) -> TcpStream {
    let mut stream = service.connect().await;
    let head = "POST /v1/sessions/s/artifacts?call_id=c HTTP/1.1\r\nHost: x\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [
        format!("{MIB:x}\r\n").into_bytes(),
        vec![b'x'; MIB],
        b"\r\n".to_vec(),
    ]
    .concat();
    for _ in 0..mib {
        stream.write_all(&chunk).await.unwrap();
    }
    stream
}

/// Waits until the store has parts of an upload, so that the cut falls into it.
async fn wait_for_upload(app: &TestApp) {
    let seen = async {
        while app.open_uploads().await == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), seen).await.unwrap();
}

async fn assert_nothing_is_left(app: &TestApp) {
    let library = app.state.library().unwrap();
    let drained = timeout(Duration::from_secs(5), library.drain()).await;
    drained.expect("the save ends within seconds of its client");
    app.assert_untouched("a cut upload").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_at_60_percent_leaves_nothing() {
    for backend in Backend::ALL {
        let app = TestApp::new(backend).await;
        let service = serve(&app).await;
        // 30 of 50 MB.
        let stream = begin_upload(&service, 30).await;
        wait_for_upload(&app).await;
        drop(stream);
        assert_nothing_is_left(&app).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cuts_an_upload_does_not_take_it_for_whole() {
    let app = TestApp::new(Backend::Memory).await;
    let mut service = serve(&app).await;
    let _stream = begin_upload(&service, 20).await;
    wait_for_upload(&app).await;
    service.stop.send(()).unwrap();
    let outcome = service.running.join_next().await.unwrap().unwrap();
    assert_eq!(outcome, DrainOutcome::Cut);
    assert_nothing_is_left(&app).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_arrives_although_the_client_sends_everything_first() {
    let app = TestApp::with(Backend::Memory, |options| {
        options.max_body_bytes = 9 * MIB as u64;
    })
    .await;
    let service = serve(&app).await;
    let bytes = vec![b'x'; 30 * MIB];
    for (query, status) in [("nonsense=1", "400"), ("", "413")] {
        let mut stream = service.connect().await;
        let head = format!(
            "PUT /v1/sessions/s/artifacts?{query} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        // The connection stays good: the next request on it is answered too.
        let next = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(next.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.contains("\"hint\""), "{reply}");
        assert!(reply.ends_with("ok\n"), "{reply}");
    }
    app.assert_untouched("refused").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_100_continue_is_refused_without_it() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let ask = async |query: &str| {
        let mut stream = service.connect().await;
        let head = format!(
            "PUT /v1/sessions/s/artifacts?{query} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\
             Expect: 100-continue\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        if first == *b"HTTP/1.1 100" {
            stream.write_all(b"abc").await.unwrap();
        }
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        (String::from_utf8(first.to_vec()).unwrap(), rest)
    };
    let (first, rest) = ask("nonsense=1").await;
    assert_eq!(first, "HTTP/1.1 400", "{rest}");
    let (first, rest) = ask("").await;
    assert_eq!(first, "HTTP/1.1 100", "{rest}");
    assert!(rest.contains("HTTP/1.1 201"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_body_ends_the_connection_short() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let mut bytes = vec![b'x'; MIB];
    let saved = app.put("", bytes.clone()).await;
    let body = app.keys_of('b').await.remove(0);
    bytes[MIB - 1] = b'y';
    app.overwrite(&body, bytes).await;
    let mut stream = service.connect().await;
    let head = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", saved.path);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    // Reset or closed: in both cases the client has fewer bytes than were announced.
    let _ = stream.read_to_end(&mut reply).await;
    let head_end = memchr::memmem::find(&reply, b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&reply[..head_end]).to_ascii_lowercase();
    assert!(head.contains(&format!("content-length: {MIB}")), "{head}");
    assert!(reply.len() - head_end - 4 < MIB);
    assert!(!reply.contains(&b'y') || !reply.ends_with(b"y"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_without_a_body_leave_the_connection_in_step() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let saved = app.put("", "abc").await;
    let etag = app.get(&saved.path).await.header("etag").to_owned();
    let mut stream = service.connect().await;
    let path = &saved.path;
    let requests = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nIf-None-Match: {etag}\r\n\r\n\
         HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n\
         HEAD /a/nope HTTP/1.1\r\nHost: x\r\n\r\n\
         GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(requests.as_bytes()).await.unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.unwrap();
    let heads: Vec<_> = replies.split("HTTP/1.1 ").skip(1).collect();
    let statuses: Vec<_> = heads.iter().map(|head| &head[..3]).collect();
    assert_eq!(statuses, ["304", "200", "404", "200"], "{replies}");
    let bodies: Vec<_> = heads
        .iter()
        .map(|head| head.split_once("\r\n\r\n").unwrap().1)
        .collect();
    assert_eq!(bodies, ["", "", "", "abc"]);
}
