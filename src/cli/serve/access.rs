//! Who may come in, decided before a service listens or touches its store.

use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::artifact::hint::RetrievalMeans;
use crate::audit_log::{AuditTarget, AuditWriter, OpenedAudit};
use crate::auth::{Authenticator, TokenTable};
use crate::cli::failure::Failure;
use crate::cli::store::default_tenant;
use crate::clock::SystemClock;
use crate::http::app::CallerRules;
use crate::http::audit::AuditSink;
use crate::http::host_policy::HostPolicy;
use crate::lease::leases::Owners;
use crate::owner_client::owners;
use crate::settings::Settings;

/// What the settings say of callers, found good.
#[derive(Debug)]
pub(super) struct CheckedAccess {
    tokens: Option<TokenTable>,
    audit: Option<OpenedAudit>,
    owners: Owners,
}

impl CheckedAccess {
    /// Reads the tokens, refuses an address that others reach where there are none, and opens the audit
    /// stream. Nothing else was done then: a service that would be open, or unrecorded, does not begin.
    ///
    /// # Errors
    /// Exit status 2, with the setting that is wrong.
    pub(super) fn of(settings: &Settings) -> Result<Self, Failure> {
        let tokens = settings
            .token_table()
            .map_err(|error| Failure::usage(error.to_string()))?;
        if tokens.is_none() {
            refuse_open_listener(settings.server.listen)?;
        }
        let server = &settings.server;
        if server.listen.ip().is_unspecified() && server.public_url.is_none() {
            warn!(
                "server.public_url is not set: locators will begin with http://{}, which leads nowhere from other hosts",
                server.listen
            );
        }
        let audit = settings.access.audit_log.as_ref().map(open).transpose()?;
        Ok(Self {
            tokens,
            audit,
            owners: owners(settings).map_err(|error| Failure::usage(error.to_string()))?,
        })
    }

    /// Begins the audit stream and builds the rules for callers.
    pub(super) fn begin(self, public_url: &str) -> (CallerRules, Option<AuditWriter>) {
        let means = vec![RetrievalMeans::Http];
        let mut rules = match self.tokens {
            Some(table) => {
                info!(
                    tokens = table.len(),
                    "only callers with a token of the settings come in"
                );
                CallerRules::new(Authenticator::Tokens(table), means)
            }
            None => {
                info!(
                    "no [[tokens]] are set: everybody on this machine may read and write, under loopback names and that of server.public_url"
                );
                let anonymous = Authenticator::anonymous(default_tenant());
                let host_policy = Some(HostPolicy::new(public_url));
                CallerRules {
                    host_policy,
                    ..CallerRules::new(anonymous, means)
                }
            }
        };
        rules.owners = self.owners;
        let writer = self.audit.map(|opened| {
            let (sink, lines) = AuditSink::new(SystemClock::shared());
            rules.audit = Some(sink);
            write(opened, lines)
        });
        (rules, writer)
    }
}

fn write(
    opened: OpenedAudit,
    lines: tokio::sync::mpsc::Receiver<crate::http::audit::AuditEvent>,
) -> AuditWriter {
    let is_file = matches!(opened, OpenedAudit::File(..));
    let writer = AuditWriter::start(opened, lines);
    if is_file {
        match signal(SignalKind::hangup()) {
            Ok(hangup) => writer.reopen_at(hangup),
            Err(error) => warn!(%error, "SIGHUP will not reopen the audit stream"),
        }
    }
    writer
}

fn open(target: &AuditTarget) -> Result<OpenedAudit, Failure> {
    target.open().map_err(|error| {
        Failure::usage(format!("access.audit_log: cannot append to {target}: {error}")).with_hint(
            "name a file that the service can write, or stdout; without --audit-log nothing is recorded",
        )
    })
}

/// Without tokens everybody who reaches the address may read and write.
fn refuse_open_listener(listen: SocketAddr) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "server.listen is {listen}, but no [[tokens]] are set: anybody who reaches it could read everything"
    ))
    .with_hint("listen on 127.0.0.1, or set [[tokens]] in the settings file: `spillbox token hash` makes the lines"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_served_without_tokens() {
        for good in ["127.0.0.1:8787", "127.1.2.3:0", "[::1]:1"] {
            assert!(
                refuse_open_listener(good.parse().unwrap()).is_ok(),
                "{good}"
            );
        }
        for open in [
            "0.0.0.0:8787",
            "[::]:1",
            "192.168.0.1:80",
            "[::ffff:127.0.0.1]:1",
        ] {
            let failure = refuse_open_listener(open.parse().unwrap()).unwrap_err();
            assert_eq!(failure.exit, 2);
            assert!(failure.to_string().contains("tokens"), "{failure}");
        }
    }
}
