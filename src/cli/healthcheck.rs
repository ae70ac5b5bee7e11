//! `spillbox healthcheck`: whether the service of this host is ready, for images that hold no shell.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::store::settings;
use crate::http::app::path::READYZ;
use crate::settings::Flag;

/// Whoever watches a container has waited long enough then.
const DEADLINE: Duration = Duration::from_secs(5);

/// More than any reply of `/readyz` has.
const REPLY_BYTES: u64 = 16 << 10;

/// Asks /readyz of the service that these settings describe.
///
/// Exit status: 0 ready, 1 not ready or not there.
#[derive(Debug, clap::Args)]
pub struct HealthcheckArgs {
    /// The address that `serve` was given [default: server.listen of the settings]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// The TOML file with settings that `serve` was given
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// The settings are refused, nobody answers in time, or the answer is no.
pub async fn run(args: &HealthcheckArgs) -> Result<u8, Stop> {
    let listen = args.listen.as_ref().map(|listen| Flag {
        name: "--listen",
        key: "server.listen",
        value: listen.clone(),
    });
    // Nobody asks the store, so its setting may be anywhere: in a flag of `serve`, say.
    let no_store = Flag {
        name: "healthcheck",
        key: "store.url",
        value: "memory:".to_owned(),
    };
    let flags: Vec<_> = listen.into_iter().chain([no_store]).collect();
    let settings = settings(args.config.as_deref(), &flags)?;
    let address = reachable(settings.server.listen);
    let failed = |what: String| Failure::new(format!("http://{address}{READYZ}: {what}"));
    let asked = tokio::time::timeout(DEADLINE, ask(address)).await;
    let reply = asked
        .map_err(|_| failed(format!("no answer within {} s", DEADLINE.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    let Some((status, body)) = parse(&reply) else {
        return Err(failed("the answer is no HTTP".to_owned()).into());
    };
    if status.is_success() {
        Ok(EXIT_DONE)
    } else {
        Err(Failure::of_reply(status, body).into())
    }
}

/// Sends the request and returns the whole reply. By hand, since the clients of the other commands heed
/// proxies of the environment, and nothing may stand between a service and its health.
async fn ask(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {READYZ} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    stream.take(REPLY_BYTES).read_to_end(&mut reply).await?;
    Ok(reply)
}

/// Returns status and body of a reply.
fn parse(reply: &[u8]) -> Option<(StatusCode, &[u8])> {
    let head_end = memchr::memmem::find(reply, b"\r\n\r\n")?;
    let head = reply.strip_prefix(b"HTTP/1.1 ")?;
    let status = StatusCode::from_bytes(head.get(..3)?).ok()?;
    Some((status, &reply[head_end + 4..]))
}

/// Returns where a listener on `listen` is reached from the same host.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_asked_on_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:8787", "127.0.0.1:8787"),
            ("[::]:8787", "[::1]:8787"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            let reached = reachable(listen.parse().unwrap());
            assert_eq!(reached.to_string(), expected);
        }
    }

    #[test]
    fn only_an_http_reply_has_a_status() {
        let reply = b"HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\n{}";
        let parsed = Some((StatusCode::SERVICE_UNAVAILABLE, b"{}".as_slice()));
        assert_eq!(parse(reply), parsed);
        for other in [
            "",
            "HTTP/1.1 200 OK",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 2\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
        ] {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }
}
