//! The main job on real output: what real tools print goes in over HTTP and comes back byte for byte,
//! whole, by page, by byte range and from the end.

use std::path::{Path, PathBuf};
use std::process::Command;

use axum::http::StatusCode;
use bytes::Bytes;
use rstest::rstest;
use serde_json::Value;
use spillbox::digest::Sha256Digest;
use spillbox::server::{ServerOptions, run};
use tokio::task::JoinSet;

use crate::support::app::{Backend, TestApp};

/// A service on a real socket, and a real client.
struct Service {
    app: TestApp,
    origin: String,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

impl Service {
    async fn start(backend: Backend) -> Self {
        let app = TestApp::new(backend).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        let router = app.router.clone();
        serving.spawn(async move {
            run(
                listener,
                router,
                ServerOptions::default(),
                std::future::pending(),
            )
            .await;
        });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            app,
            origin,
            client,
            _serving: serving,
        }
    }

    async fn save(&self, tool: &str, media_type: &str, bytes: &Bytes) -> Value {
        let url = format!(
            "{}/v1/sessions/main-job/artifacts?tool={tool}&call_id={tool}",
            self.origin
        );
        let sent = self
            .client
            .post(url)
            .header("content-type", media_type)
            .body(bytes.clone());
        let reply = sent.send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::CREATED);
        reply.json().await.unwrap()
    }

    /// The path of an artifact on this service; the public URL of its locator is another's.
    fn path(&self, receipt: &Value, rest: &str) -> String {
        let locator = receipt["locator"].as_str().unwrap();
        let words = locator.rsplit_once("/a/").unwrap().1;
        format!("{}/a/{words}{rest}", self.origin)
    }

    async fn get(&self, url: String, headers: &[(&str, &str)]) -> reqwest::Response {
        let request = headers
            .iter()
            .fold(self.client.get(url), |get, (name, value)| {
                get.header(*name, *value)
            });
        request.send().await.unwrap()
    }

    async fn reads_back(&self, receipt: &Value, bytes: &Bytes) {
        assert_eq!(receipt["size_bytes"], bytes.len());
        assert_eq!(receipt["digest"], Sha256Digest::of(bytes).to_string());
        let whole = self
            .get(self.path(receipt, ""), &[])
            .await
            .bytes()
            .await
            .unwrap();
        assert!(whole == *bytes, "whole");
        let middle = bytes.len() / 2;
        for (range, expected) in [
            (
                format!("bytes={middle}-{}", middle + 99_999),
                &bytes[middle..(middle + 100_000).min(bytes.len())],
            ),
            (
                "bytes=-70000".to_owned(),
                &bytes[bytes.len().saturating_sub(70_000)..],
            ),
            ("bytes=0-0".to_owned(), &bytes[..1]),
        ] {
            let reply = self.get(self.path(receipt, ""), &[("range", &range)]).await;
            assert_eq!(reply.status(), StatusCode::PARTIAL_CONTENT);
            assert!(reply.bytes().await.unwrap() == expected, "{range}");
        }
    }

    /// Follows pages of bare lines until the service says that there are no more.
    async fn pages_from(&self, receipt: &Value, first: &str, max_pages: usize) -> Vec<u8> {
        let mut text = Vec::new();
        let mut query = first.to_owned();
        for _ in 0..max_pages {
            let url = self.path(receipt, &format!("/lines?{query}&max_bytes=1048576"));
            let reply = self.get(url, &[("accept", "text/plain")]).await;
            assert_eq!(reply.status(), StatusCode::OK);
            let header = |name: &str| {
                reply
                    .headers()
                    .get(name)
                    .map(|value| value.to_str().unwrap().to_owned())
            };
            let next = header("spillbox-next-byte")
                .map(|byte| format!("byte_offset={byte}"))
                .or(header("spillbox-next-offset").map(|line| format!("offset={line}")));
            text.extend(reply.bytes().await.unwrap());
            let Some(next) = next else { break };
            query = next;
        }
        text
    }
}

fn output_of(command: &mut Command) -> Bytes {
    let output = command.output().unwrap();
    [output.stdout, output.stderr].concat().into()
}

/// Where cargo keeps the sources of the dependencies that this test was built with.
fn registry_sources() -> (PathBuf, Bytes) {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(rustc).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let metadata = |more: &[&str]| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version=1", "--locked"]);
        cargo.args(["--filter-platform", host, "--manifest-path"]);
        cargo.arg(&manifest).args(more).output().unwrap()
    };
    let mut output = metadata(&["--offline"]);
    if !output.status.success() {
        // Whoever builds only this package lacks those of the models.
        output = metadata(&[]);
    }
    let json = Bytes::from(output.stdout);
    let metadata: Value = serde_json::from_slice(&json).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let serde = packages
        .iter()
        .find(|package| package["name"] == "serde")
        .unwrap();
    let manifest = Path::new(serde["manifest_path"].as_str().unwrap());
    (manifest.ancestors().nth(2).unwrap().to_owned(), json)
}

/// A compiler's own words about a crate with four thousand unused functions.
fn build_log() -> Bytes {
    let directory = tempfile::tempdir().unwrap();
    let source: String = (0..4_000)
        .map(|n| format!("fn unused_{n}() {{ let value = {n}; }}\n"))
        .collect();
    let mut rustc = Command::new("rustc");
    rustc.current_dir(directory.path()).args([
        "--edition=2024",
        "--crate-type=lib",
        "--emit=metadata",
        "-",
    ]);
    let mut child = rustc
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer =
        std::thread::spawn(move || std::io::Write::write_all(&mut stdin, source.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output.stderr.into()
}

fn find_png(root: &Path) -> Bytes {
    let found = output_of(
        Command::new("find")
            .arg(root)
            .args(["-name", "*.png", "-size", "+8k", "-print", "-quit"]),
    );
    let path = std::str::from_utf8(&found).unwrap().trim_end();
    assert!(!path.is_empty(), "a dependency that ships an image");
    std::fs::read(path).unwrap().into()
}

#[rstest]
#[case::directory(Backend::Local)]
#[case::s3_endpoint(Backend::S3)]
#[case::versioned_s3_endpoint(Backend::S3Versioned)]
#[case::minio_endpoint(Backend::Minio)]
#[case::versioned_minio_endpoint(Backend::MinioVersioned)]
#[tokio::test(flavor = "multi_thread")]
async fn real_output_comes_back_byte_for_byte(#[case] backend: Backend) {
    let service = Service::start(backend).await;
    let (sources, json) = registry_sources();

    let grep = output_of(Command::new("grep").args(["-rnI", "let "]).arg(&sources));
    assert!(grep.len() >= 20_000_000, "{} bytes of grep", grep.len());
    let receipt = service.save("grep", "text/plain", &grep).await;
    assert_eq!(receipt["truncated"], true);
    let replacement = receipt["replacement"].as_str().unwrap();
    assert!(
        replacement.len() <= 10_000 && replacement.contains(receipt["locator"].as_str().unwrap())
    );
    service.reads_back(&receipt, &grep).await;
    let paged = service
        .pages_from(&receipt, "offset=0&limit=1000000", 1_000)
        .await;
    assert!(paged == grep, "all pages together");
    let end = service
        .pages_from(&receipt, "from_end=5&limit=5", 1_000)
        .await;
    let lines: Vec<_> = grep.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(end, lines[lines.len() - 5..].concat());
    let page = service
        .pages_from(&receipt, "offset=100000&limit=7", 1)
        .await;
    assert_eq!(page, lines[100_000..100_007].concat());

    let build = build_log();
    assert!(build.len() > 500_000, "{} bytes of build log", build.len());
    let receipt = service.save("rustc", "text/plain", &build).await;
    service.reads_back(&receipt, &build).await;

    assert!(json.len() > 1_000_000 && json.iter().filter(|byte| **byte == b'\n').count() == 1);
    let receipt = service.save("metadata", "application/json", &json).await;
    assert_eq!(receipt["line_count"], 1);
    service.reads_back(&receipt, &json).await;
    let paged = service.pages_from(&receipt, "offset=0", 1_000).await;
    assert!(paged == json, "one endless line, read on by bytes");

    let png = find_png(&sources);
    let receipt = service.save("plot", "image/png", &png).await;
    service.reads_back(&receipt, &png).await;
    let description = receipt["replacement"].as_str().unwrap();
    assert!(description.contains("image/png"), "{description}");
    assert_eq!(service.app.keys_of('a').await.len(), 4);
}
