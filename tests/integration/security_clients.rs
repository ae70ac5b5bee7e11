//! Hostile clients on a real connection, and stored bytes that would like to be more than bytes.

use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use spillbox::error::ErrorCode;
use spillbox::limits::{MAX_HEAD_BYTES, REFUSED_BODY_DRAIN_BYTES};
use spillbox::server::{ServerOptions, run};
use spillbox::store::keys::Key;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::app::{Backend, Saved, TestApp, escape};

const MIB: usize = 1 << 20;

struct Service {
    address: std::net::SocketAddr,
    /// Ends with the value.
    _running: JoinSet<()>,
}

async fn serve(app: &TestApp) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServerOptions {
        header_timeout: Duration::from_millis(300),
        ..ServerOptions::default()
    };
    let router = app.router.clone();
    let mut running = JoinSet::new();
    running.spawn(async move {
        run(listener, router, options, std::future::pending()).await;
    });
    Service {
        address,
        _running: running,
    }
}

impl Service {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends raw bytes and reads until the other side closes, well or not.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The other side may close before it has read everything.
        let _ = stream.write_all(bytes).await;
        read_to_close(&mut stream).await
    }

    async fn is_alive(&self) -> bool {
        let ask = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        self.exchange(ask).await.ends_with("ok\n")
    }
}

async fn read_to_close(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let reading = async {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            seen.extend_from_slice(&buffer[..count]);
        }
    };
    let ended = timeout(Duration::from_secs(30), reading).await;
    ended.expect("the service closes the connection");
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_slow_heads_do_not_keep_others_out() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut stream = service.connect().await;
        let head = format!("GET /livez HTTP/1.1\r\nX-{number}: ");
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    assert!(service.is_alive().await);
    for stream in &mut slow {
        // One more byte now and then does not buy time.
        let _ = stream.write_all(b"x").await;
        let seen = read_to_close(stream).await;
        assert!(!seen.contains("200 OK"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_upload_is_told_so_and_then_cut() {
    const CAP: usize = 9 * MIB;
    let app = TestApp::with(Backend::Memory, |options| {
        options.max_body_bytes = CAP as u64;
    })
    .await;
    let service = serve(&app).await;
    let stream = service.connect().await;
    let (mut reader, mut writer) = stream.into_split();
    let reading = async {
        let mut reply = Vec::new();
        let _ = reader.read_to_end(&mut reply).await;
        String::from_utf8_lossy(&reply).into_owned()
    };
    let writing = async {
        let head = "POST /v1/sessions/s/artifacts HTTP/1.1\r\nHost: x\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        writer.write_all(head.as_bytes()).await.unwrap();
        let chunk = [b"100000\r\n".to_vec(), vec![b'x'; MIB], b"\r\n".to_vec()].concat();
        let mut sent = 0;
        while writer.write_all(&chunk).await.is_ok() {
            sent += MIB;
        }
        sent
    };
    let both = async { tokio::join!(reading, writing) };
    let (reply, sent) = timeout(Duration::from_secs(60), both).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains("\"body_too_large\""), "{reply}");
    // The cap, what is read on for clients that look late, and what sockets hold.
    let most = CAP + usize::try_from(REFUSED_BODY_DRAIN_BYTES).unwrap() + 16 * MIB;
    assert!(sent <= most, "{sent}");
    app.state.library().unwrap().drain().await;
    app.assert_untouched("an endless upload").await;
    assert!(service.is_alive().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_request_is_refused_and_the_service_goes_on() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let get = |target: &str, headers: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")
            .into_bytes()
    };
    // An over-long target that the protocol library can hold reaches us and is a problem.
    let reply = service
        .exchange(&get(&format!("/{}", "x".repeat(62_000)), ""))
        .await;
    assert!(reply.starts_with("HTTP/1.1 414 "), "{}", &reply[..200]);
    assert!(reply.contains("application/problem+json"), "{reply}");
    assert!(
        reply.contains("\"uri_too_long\"") && reply.contains("x-request-id"),
        "{reply}"
    );
    // What it cannot hold, or cannot read, it refuses itself: a bare status, and the connection ends.
    let many = (0..200)
        .map(|number| format!("X-{number}: y\r\n"))
        .collect::<String>();
    let huge = format!("X: {}\r\n", "y".repeat(MAX_HEAD_BYTES));
    let bare = [
        (get(&format!("/{}", "x".repeat(70_000)), ""), "414"),
        (get("/livez", &many), "431"),
        (get("/livez", &huge), "431"),
        (b"NONSENSE\r\n\r\n".to_vec(), "400"),
        (get("/livez", "no colon\r\n"), "400"),
        (get("/livez", "A\0B: c\r\n"), "400"),
        (b"GET /livez HTTP/9.9\r\n\r\n".to_vec(), "400"),
    ];
    for (bytes, status) in bare {
        let reply = service.exchange(&bytes).await;
        let start = format!("HTTP/1.1 {status} ");
        assert!(
            reply.starts_with(&start) || reply.is_empty(),
            "{status}: {reply}"
        );
        assert!(
            !reply.contains("xxxx") && !reply.contains("yyyy"),
            "{reply}"
        );
        assert!(service.is_alive().await, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_smuggled_second_request_is_not_served() {
    let app = TestApp::new(Backend::Memory).await;
    let service = serve(&app).await;
    let saving = "POST /v1/sessions/s/artifacts HTTP/1.1\r\nHost: x\r\n";
    let smuggled = "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n";
    for framing in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 5\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
    ] {
        let sent = format!("{saving}{framing}\r\n0\r\n\r\n{smuggled}");
        let reply = service.exchange(sent.as_bytes()).await;
        assert!(!reply.contains("openapi: 3"), "{framing}: {reply}");
        assert!(!reply.contains("201 Created"), "{framing}: {reply}");
    }
    // Both at once: the chunked framing rules (RFC 9112 §6.3), and the length is nobody's next request.
    let both = format!(
        "{saving}Content-Length: 400\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n{smuggled}"
    );
    let reply = service.exchange(both.as_bytes()).await;
    assert!(!reply.contains("openapi: 3"), "{reply}");
    assert!(service.is_alive().await);
}

/// What a browser or a terminal would act on, if it were given the bytes as something to show.
const HOSTILE: &[(&str, &[u8])] = &[
    (
        "text/html",
        b"<script>fetch('/v1/sessions/s/artifacts')</script>",
    ),
    (
        "image/svg+xml",
        b"<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>",
    ),
    ("text/javascript", b"alert(document.domain)"),
    (
        "application/xhtml+xml",
        b"<html xmlns='http://www.w3.org/1999/xhtml'/>",
    ),
    (
        "text/plain",
        b"\x1b]0;title\x07\x1b[2J\x1b]52;c;ZWNobyBoaQ==\x07done\n",
    ),
];

#[tokio::test]
async fn stored_pages_and_escapes_stay_bytes_on_every_route() {
    let app = TestApp::new(Backend::Memory).await;
    let name = escape("\"; filename*=UTF-8''x.html\r\nX-Injected: 1\u{202e}\u{1b}[2J.svg");
    for (kind, body) in HOSTILE {
        let headers = [("Content-Type", *kind)];
        let query = format!("name={name}&title={name}&tool={name}&label={name}&summary={name}");
        let saved = app.save("s", &query, &headers, body.to_vec()).await;
        let saved = Saved::of(&saved);
        let read = app.get(&saved.path).await;
        assert_eq!(read.body, *body);
        let disposition = read.header("content-disposition");
        assert!(disposition.starts_with("attachment"), "{disposition}");
        assert_eq!(
            disposition.matches("filename*=").count(),
            1,
            "{disposition}"
        );
        assert!(!disposition.contains('\u{1b}'), "{disposition}");
        assert!(!read.headers.contains_key("x-injected"));
        let routes = [
            "",
            "/lines",
            "/grep?pattern=a",
            "/outline",
            "/stat",
            "/reference",
            "/replacement",
        ];
        for rest in routes {
            let read = app.get(&saved.at(rest)).await;
            assert_eq!(read.header("x-content-type-options"), "nosniff", "{rest}");
            assert_eq!(read.header("content-security-policy"), "sandbox", "{rest}");
            let kind = read.header("content-type");
            let is_data = kind.starts_with("application/json") || kind.starts_with("text/plain");
            assert!(is_data || rest.is_empty(), "{rest}: {kind}");
            // What is text of ours has no control characters of theirs; the bytes themselves do.
            if kind.starts_with("application/json") {
                assert!(!read.body.contains(&0x1b), "{rest}: {}", read.text());
            }
        }
    }
}

#[tokio::test]
async fn what_stands_in_a_prompt_has_no_control_characters_of_the_body() {
    let app = TestApp::new(Backend::Memory).await;
    let (_, escapes) = HOSTILE.last().unwrap();
    let saved = app
        .put("tool=%1b%5b2J&label=%0d%0a", escapes.repeat(2_000))
        .await;
    assert_eq!(saved.receipt["truncated"], true);
    let text = app.get(&saved.at("/replacement")).await.text();
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    assert!(text.chars().all(is_plain), "{text:?}");
    assert!(text.contains("done"), "{text}");
}

#[tokio::test]
async fn links_planted_in_the_local_store_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    crate::support::program::write(&secret, b"kanarienvogel");
    // Where a body was.
    let app = TestApp::new(Backend::Local).await;
    let saved = app.put("", "x").await;
    let key = Key::parse(app.keys_of('b').await.remove(0)).unwrap();
    let path = app.local_path(&key);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    for rest in ["", "/lines", "/grep?pattern=k"] {
        let read = app.get(&saved.at(rest)).await;
        assert!(
            read.is_cut || !read.status.is_success(),
            "{rest}: {}",
            read.text()
        );
        assert!(!read.text().contains("kanarienvogel"), "{rest}");
    }
    // Where a manifest was, and a whole directory of bodies.
    for class in ['a', 'b'] {
        let app = TestApp::new(Backend::Local).await;
        let saved = app.put("", "x").await;
        let key = Key::parse(app.keys_of(class).await.remove(0)).unwrap();
        let directory = app.local_path(&key).parent().unwrap().to_owned();
        std::fs::rename(&directory, outside.path().join(format!("moved-{class}"))).unwrap();
        std::os::unix::fs::symlink(outside.path(), &directory).unwrap();
        let router = app.replica("default").await;
        let sent = crate::support::app::request(Method::GET, &saved.path, &[], Body::empty());
        let read = crate::support::app::send_to(&router, sent).await;
        assert!(
            read.is_cut || !read.status.is_success(),
            "{class}: {}",
            read.text()
        );
        let refused = app.save("s", "", &[], "new").await;
        assert_eq!(
            refused.is_problem(ErrorCode::StoreDenied)["retryable"],
            true
        );
        let names: Vec<_> = std::fs::read_dir(outside.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name == "secret" || name.starts_with("moved-")),
            "{names:?}"
        );
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"kanarienvogel");
}
