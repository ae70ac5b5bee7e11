//! The real program, pointed at a store directory of its own, straight or through a running service.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::s3_server::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};

/// Between two looks at `/readyz`.
const READY_POLL: Duration = Duration::from_millis(5);

/// The binary under test.
pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_spillbox")
}

/// A command line of the program with nothing of the tester's own environment in its way.
pub(crate) fn bare(arguments: &[&str]) -> Command {
    isolated(binary(), arguments)
}

/// Any command, with the program under its own name on the PATH. What is kept for a service that is away
/// would outlive the test, so a test of that says where.
pub(crate) fn isolated(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    let directory = Path::new(binary()).parent().unwrap().to_str().unwrap();
    let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
    command
        .args(arguments)
        .env("PATH", path)
        .stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_in_the_way = ["SPILLBOX", "XDG_", "AWS_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || name.to_ascii_lowercase().ends_with("_proxy");
        if is_in_the_way {
            command.env_remove(name);
        }
    }
    command.env("SPILLBOX_SPOOL_BYTES", "0");
    command
}

/// Where the commands of a test look.
pub(crate) struct Place {
    /// Scratch space: the store is in `store`, everything else is the test's.
    pub(crate) dir: TempDir,
    service: Option<Service>,
    s3: Option<Bucket>,
}

/// A bucket of a server in the test's own process.
struct Bucket {
    endpoint: String,
    _server: S3Server,
    _runtime: tokio::runtime::Runtime,
}

impl Bucket {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let server = S3Server::start();
        let endpoint = runtime.block_on(server.listen());
        Self {
            endpoint,
            _server: server,
            _runtime: runtime,
        }
    }

    fn point(&self, command: &mut Command) {
        command
            .env("AWS_ENDPOINT_URL", &self.endpoint)
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .env("AWS_EC2_METADATA_DISABLED", "true");
    }
}

impl Place {
    /// Straight on a store.
    pub(crate) fn store() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            dir,
            service: None,
            s3: None,
        }
    }

    /// Through a service over such a store.
    pub(crate) fn service() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let service = Some(Service::start(&store_in(dir.path()), &[]));
        let s3 = None;
        Self { dir, service, s3 }
    }

    /// Straight on a bucket.
    pub(crate) fn bucket() -> Self {
        let mut place = Self::store();
        place.s3 = Some(Bucket::start());
        place
    }

    /// The store, as `--store` names it.
    pub(crate) fn store_url(&self) -> String {
        match &self.s3 {
            Some(_) => format!("s3://{BUCKET}/team-a"),
            None => store_in(self.dir.path()),
        }
    }

    /// The service's URL.
    pub(crate) fn url(&self) -> &str {
        &self.service.as_ref().unwrap().url
    }

    /// A file of the test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program, told by the environment where to look.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.point(bare(arguments))
    }

    /// A shell line, as an agent runs it.
    pub(crate) fn shell(&self, line: &str) -> Command {
        self.point(isolated("sh", &["-c", line]))
    }

    fn point(&self, mut command: Command) -> Command {
        match &self.service {
            Some(service) => command.env("SPILLBOX_URL", &service.url),
            None => command.env("SPILLBOX_STORE", self.store_url()),
        };
        if let Some(bucket) = &self.s3 {
            bucket.point(&mut command);
        }
        command.current_dir(self.dir.path());
        command
    }

    /// Runs the program and expects success.
    pub(crate) fn ok(&self, arguments: &[&str]) -> Vec<u8> {
        succeed(self.command(arguments))
    }

    /// The receipt of a stored file.
    pub(crate) fn put(&self, name: &str, body: &[u8]) -> serde_json::Value {
        write(&self.file(name), body);
        serde_json::from_slice(&self.ok(&["put", name, "--json"])).unwrap()
    }
}

/// The store of a directory, as `--store` names it.
pub(crate) fn store_in(dir: &Path) -> String {
    format!("local:{}", dir.join("store").display())
}

/// Writes a file of the test.
#[expect(clippy::disallowed_methods, reason = "a fixture, not an object")]
pub(crate) fn write(path: &Path, body: &[u8]) {
    std::fs::write(path, body).unwrap();
}

/// Runs a command, expects success, and returns its output.
pub(crate) fn succeed(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

/// Runs a command and returns its status, output and errors.
pub(crate) fn outcome(mut command: Command) -> (i32, Vec<u8>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    (status.code().unwrap(), stdout, stderr)
}

/// Text of an output.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// A running `spillbox serve`; ends with the value.
pub(crate) struct Service {
    /// Where it listens.
    pub(crate) url: String,
    /// Where its metrics are, where there is an admin listener.
    pub(crate) admin: Option<String>,
    /// The process.
    pub(crate) child: Child,
    /// Reads the log all the time: a service whose log nobody takes stands still.
    log: Option<std::thread::JoinHandle<String>>,
}

impl Service {
    /// Starts on a free port and waits until it is ready.
    pub(crate) fn start(store: &str, more: &[&str]) -> Self {
        let mut command = bare(&["serve", "--listen", "127.0.0.1:0", "--store", store]);
        command.args(more);
        Self::ready(command)
    }

    /// Starts it and waits until it is ready.
    pub(crate) fn ready(command: Command) -> Self {
        let service = Self::spawn(command);
        while !service.is_ready() {
            std::thread::sleep(READY_POLL);
        }
        service
    }

    /// Starts it and waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut seen = String::new();
        let mut admin = None;
        let url_after = |line: &str, words: &str| {
            let (_, rest) = line.split_once(words)?;
            Some(rest.trim().split('"').next()?.to_owned())
        };
        let url = loop {
            let mut line = String::new();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the service ended");
            seen.push_str(&line);
            admin = admin.or_else(|| url_after(&line, "metrics on "));
            if let Some(url) = url_after(&line, "listening on ") {
                break url;
            }
        };
        let log = std::thread::spawn(move || {
            let _ = log.read_to_string(&mut seen);
            seen
        });
        let log = Some(log);
        Self {
            url,
            admin,
            child,
            log,
        }
    }

    /// Whether `/readyz` says yes.
    pub(crate) fn is_ready(&self) -> bool {
        let url = format!("{}/readyz", self.url);
        http_get(&url).is_some_and(|(status, _)| status == 200)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        succeed(isolated("kill", &[&format!("-{name}"), &pid]));
    }

    /// Waits for the end; returns the status and the log.
    pub(crate) fn wait(mut self) -> (i32, String) {
        let rest = self.log.take().unwrap().join().unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), rest)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A plain GET over a fresh connection.
pub(crate) fn http_get(url: &str) -> Option<(u16, String)> {
    use std::io::Write;
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/')?;
    let mut stream = std::net::TcpStream::connect(host).ok()?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let status = reply.split(' ').nth(1)?.parse().ok()?;
    Some((status, reply))
}
