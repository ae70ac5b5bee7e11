//! A `spillbox serve` process, and requests to it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use serde_json::Value;
use tempfile::TempDir;

use crate::place::PREFIX;

/// The process; it ends with this value.
#[derive(Debug)]
pub(crate) struct Service {
    process: Child,
    client: reqwest::Client,
    url: String,
    _dir: TempDir,
}

impl Service {
    /// Starts it on a free port and waits until its store is attested.
    pub(crate) async fn start(
        endpoint: &str,
        bucket: &str,
        (access_key, secret_key): &(String, String),
    ) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let process = Command::new(env!("CARGO_BIN_EXE_spillbox"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
            .args(["--store", &format!("s3://{bucket}/{PREFIX}")])
            .env("AWS_ENDPOINT_URL", endpoint)
            .env("AWS_ACCESS_KEY_ID", access_key)
            .env("AWS_SECRET_ACCESS_KEY", secret_key)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("SPILLBOX_STORE__SIGN_PAYLOAD", "false")
            .env("SPILLBOX_STORE__CONTENDERS", "3")
            .env("XDG_DATA_HOME", dir.path())
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut service = Self {
            process,
            client: reqwest::Client::builder().no_proxy().build()?,
            url: format!("http://127.0.0.1:{port}"),
            _dir: dir,
        };
        for _ in 0..600 {
            if let Some(status) = service.process.try_wait()? {
                bail!("the service ended: {status}");
            }
            let ready = service.client.get(format!("{}/readyz", service.url)).send();
            if ready.await.is_ok_and(|reply| reply.status().is_success()) {
                return Ok(service);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the service is not ready after a minute")
    }

    /// Saves a body without a call id.
    pub(crate) async fn save(&self, body: Bytes) -> anyhow::Result<Value> {
        let url = format!("{}/v1/sessions/bench/artifacts?tool=bench", self.url);
        let reply = self.client.post(url).body(body).send().await?;
        Ok(reply.error_for_status()?.json().await?)
    }

    /// Reads a path to its end; answers the number of bytes.
    pub(crate) async fn read(&self, path: &str) -> anyhow::Result<u64> {
        let reply = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await?;
        let mut reply = reply.error_for_status()?;
        let mut bytes = 0;
        while let Some(frame) = reply.chunk().await? {
            bytes += frame.len() as u64;
        }
        Ok(bytes)
    }

    /// Reads a JSON reply.
    pub(crate) async fn json(&self, path: &str) -> anyhow::Result<Value> {
        let reply = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await?;
        Ok(reply.error_for_status()?.json().await?)
    }

    /// The path of an artifact, from its receipt.
    pub(crate) fn path_of(&self, receipt: &Value) -> anyhow::Result<String> {
        let locator = receipt["locator"].as_str().context("a locator")?;
        let path = locator
            .strip_prefix(&self.url)
            .context("a locator of this service")?;
        Ok(path.to_owned())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
