//! `spillbox serve`: the service.
//!
//! It listens at once and answers 503 until its store is open, so that an orchestrator sees a process
//! that lives and is not ready yet instead of a refused connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::artifact::library::Library;
use crate::artifact::locator::LocatorBase;
use crate::cli::failure::{EXIT_DONE, EXIT_REFUSED, Failure, Stop};
use crate::cli::profiles::offered;
use crate::cli::store::{failure_of, settings};
use crate::clock::SystemClock;
use crate::gc::collector::Collector;
use crate::http::app::{AppState, router};
use crate::http::request_id::RequestIds;
use crate::ids::SystemIds;
use crate::lease::journals::Journals;
use crate::limits::USAGE_LOOK_INTERVAL;
use crate::open_store::{
    Access, OpenStoreError, attest_options, attestation_target, collector_over, library_over,
    open_collector_store, open_store,
};
use crate::server::{self, ServerOptions, shutdown_signal};
use crate::settings::{Flag, Settings, StoreSettings, StoreUrl};
use crate::store::SharedStore;
use crate::store::attest::{Attestation, Fence, Verdict, attest_or_reuse};
use crate::store::keys::KeySpace;
use crate::store::metered::{MeteredStore, StoreMeter};
use crate::{store_watch, usage_watch};

mod upkeep;

mod access;

use access::CheckedAccess;

/// How often a running service looks whether its attestation, valid for a day, is still good: two
/// small reads and a write, which also notice that versioning was switched or the store is full.
const ATTESTATION_CHECK: Duration = Duration::from_secs(6 * 3600);

/// Pause between two tries to open a store that does not answer.
const OPEN_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Runs the service.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The address of the API [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Where objects are kept: local:DIR, s3://bucket/prefix or memory:
    /// [env: SPILLBOX_STORE] [default: local:$XDG_DATA_HOME/spillbox]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// The URL that locators begin with [default: http:// and the address]
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,
    /// The address of /metrics; none without it
    #[arg(long, value_name = "ADDR:PORT")]
    pub admin_listen: Option<String>,
    /// A TOML file with settings; deploy/config.example.toml explains them
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Append a JSON line about each read and save to a file, or to stdout [default: nowhere]
    #[arg(long, value_name = "FILE|stdout")]
    pub audit_log: Option<String>,
    /// Serve what is there and write nothing; also works on a store that attestation refuses
    #[arg(long)]
    pub read_only: bool,
}

/// Runs the command until SIGTERM or SIGINT. `store_variable` is what SPILLBOX_STORE says.
///
/// # Errors
/// The settings are refused, the address cannot be had, or the store cannot be used.
pub async fn run(args: &ServeArgs, store_variable: Option<&str>) -> Result<u8, Stop> {
    let settings = settings(args.config.as_deref(), &args.flags(store_variable))?;
    let access = CheckedAccess::of(&settings)?;
    let cannot =
        |what: &str, error: std::io::Error| Failure::new(format!("cannot {what}: {error}"));
    let shutdown = shutdown_signal().map_err(|error| cannot("install signal handlers", error))?;
    let listen = settings.server.listen;
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        cannot(&format!("listen on {listen}"), error).with_hint("choose another --listen")
    })?;
    let bound = listener
        .local_addr()
        .map_err(|error| cannot("read the listener's address", error))?;
    let public_url = settings.server.public_url_at(bound).to_string();
    let base = LocatorBase::service(&public_url)
        .map_err(|error| Failure::usage(format!("server.public_url: {error}")))?;
    let stop = CancellationToken::new();
    let request_ids = RequestIds::new(SystemClock::shared(), SystemIds::shared());
    let is_scraped = settings.server.admin_listen.is_some();
    let admin = upkeep::bind_admin(settings.server.admin_listen).await?;
    info!(public_url, store = %settings.store.url, "listening on http://{bound}");
    let (callers, audit) = access.begin(&public_url);
    let state = AppState::with_rules(callers);
    state.offer(offered(&settings.profiles)?);
    state.collect_by(settings.collections());
    let meter = upkeep::equip(&state, &settings.limits, &SystemClock::shared());
    // Its own end: a drain is worth watching.
    let served = CancellationToken::new();
    let admin = upkeep::serve_admin(admin, state.clone(), request_ids.clone(), served.clone());
    let router = router(state.clone(), request_ids);
    let shutdown = {
        let (stop, state) = (stop.clone(), state.clone());
        async move {
            tokio::select! {
                () = shutdown => {}
                () = stop.cancelled() => {}
            }
            state.start_draining();
            stop.cancel();
        }
    };
    let opening = async {
        let access = if args.read_only {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        };
        let opened = open(&settings, base, access, &meter, &stop).await;
        if opened.is_err() {
            // Nothing can be served: end, with the running requests answered.
            stop.cancel();
        }
        if let Some((library, collector, journals)) = opened? {
            state.open_collected(library.clone(), journals, collector);
            let watch = store_watch::watch(
                &library,
                state.store_health(),
                settings.server.ready_check_interval,
            );
            let usage = usage_watch::watch(&state, USAGE_LOOK_INTERVAL);
            let kept = tokio::select! {
                kept = keep_attested(&settings, access, &stop) => kept,
                never = watch => match never {},
                never = usage => match never {},
            };
            if kept.is_err() {
                stop.cancel();
            }
            kept?;
        }
        Ok::<(), Failure>(())
    };
    let serving = server::run(listener, router, ServerOptions::default(), shutdown);
    let working = async {
        let outcomes = tokio::join!(serving, opening);
        served.cancel();
        outcomes
    };
    let working = async { tokio::join!(working, admin) };
    let ((_, opened), ()) = tokio::select! {
        ended = working => ended,
        never = upkeep::keep_house(&state, is_scraped) => match never {},
    };
    state.drain().await;
    if let Some(audit) = audit {
        audit.finish().await;
    }
    opened?;
    info!("stopped");
    Ok(EXIT_DONE)
}

impl ServeArgs {
    fn flags(&self, store_variable: Option<&str>) -> Vec<Flag> {
        let flag = |name, key, value: Option<&str>| {
            value.map(|value| Flag {
                name,
                key,
                value: value.to_owned(),
            })
        };
        let store = flag("--store", "store.url", self.store.as_deref())
            .or_else(|| flag("SPILLBOX_STORE", "store.url", store_variable));
        [
            flag("--listen", "server.listen", self.listen.as_deref()),
            flag(
                "--admin-listen",
                "server.admin_listen",
                self.admin_listen.as_deref(),
            ),
            store,
            flag("--audit-log", "access.audit_log", self.audit_log.as_deref()),
            flag(
                "--public-url",
                "server.public_url",
                self.public_url.as_deref(),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Attests and opens the store; one that does not answer is tried again until the service ends.
async fn open(
    settings: &Settings,
    base: LocatorBase,
    access: Access,
    meter: &Arc<dyn StoreMeter>,
    stop: &CancellationToken,
) -> Result<Option<(Library, Collector, Journals)>, Failure> {
    loop {
        let opening = attest_and_open(settings, base.clone(), access, meter);
        let opened = tokio::select! {
            opened = Box::pin(opening) => opened?,
            () = stop.cancelled() => return Ok(None),
        };
        if opened.is_some() {
            info!("the store is open");
            return Ok(opened);
        }
        tokio::select! {
            () = tokio::time::sleep(OPEN_RETRY_PAUSE) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

/// One try; `None` when the store does not answer now and another try may help.
async fn attest_and_open(
    settings: &Settings,
    base: LocatorBase,
    access: Access,
    meter: &Arc<dyn StoreMeter>,
) -> Result<Option<(Library, Collector, Journals)>, Failure> {
    let url = &settings.store.url;
    let failed = |error: &OpenStoreError| failure_of(error, url);
    let (store, keys) = open_store(&settings.store)
        .await
        .map_err(|error| failed(&error))?;
    let own = open_collector_store(&settings.store)
        .await
        .map_err(|error| failed(&error))?;
    let metered = |store| MeteredStore::shared(store, keys.clone(), Arc::clone(meter));
    let (own, store) = (own.map(metered), metered(store));
    let opened = (store, keys);
    // Where nothing was tried, nothing is relied on.
    let mut fence = Fence::None;
    if access == Access::ReadWrite && *url != StoreUrl::Memory {
        let attestation = attest(&settings.store, &opened)
            .await
            .map_err(|error| failed(&error))?;
        match attestation.verdict {
            Verdict::Trusted | Verdict::Restricted => {
                fence = attestation.delete_fence;
                report(&attestation);
            }
            Verdict::Refused => return Err(refusal(url, &attestation)),
            Verdict::Unreachable => {
                warn!(
                    reason = summary(&attestation),
                    "the store does not answer, trying again"
                );
                return Ok(None);
            }
        }
    }
    match library_over(opened, settings, base, Vec::new(), access).await {
        Ok((library, journals)) => {
            let collector = collector_over(&library, journals.clone(), fence, own);
            Ok(Some((library, collector, journals)))
        }
        Err(error) if error.is_transient() => {
            warn!(%error, "the store does not answer, trying again");
            Ok(None)
        }
        Err(error) => Err(failed(&error)),
    }
}

/// Looks every few hours whether the attestation is due, until the service ends. A store that has become
/// unsafe to write to ends the service: failing visibly is better than writing on.
///
/// # Errors
/// The store is refused now.
async fn keep_attested(
    settings: &Settings,
    access: Access,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let url = &settings.store.url;
    let is_trusted_anyway = access == Access::ReadOnly || *url == StoreUrl::Memory;
    loop {
        tokio::select! {
            () = tokio::time::sleep(ATTESTATION_CHECK) => {}
            () = stop.cancelled() => return Ok(()),
        }
        if is_trusted_anyway {
            continue;
        }
        let attested = async {
            let opened = open_store(&settings.store).await?;
            attest(&settings.store, &opened).await
        };
        match Box::pin(attested).await {
            Ok(attestation) if attestation.verdict == Verdict::Refused => {
                return Err(refusal(url, &attestation));
            }
            Ok(attestation) => report(&attestation),
            Err(error) => warn!(%error, "the store could not be attested again"),
        }
    }
}

async fn attest(
    settings: &StoreSettings,
    (store, keys): &(SharedStore, KeySpace),
) -> Result<Attestation, OpenStoreError> {
    let target = attestation_target(settings, store, keys).await?;
    let (clock, ids) = (SystemClock, SystemIds::default());
    let (attestation, was_reused) =
        attest_or_reuse(&target, &clock, &ids, attest_options(settings)).await;
    info!(
        verdict = ?attestation.verdict,
        delete_fence = ?attestation.delete_fence,
        reused = was_reused,
        elapsed_ms = attestation.elapsed_ms,
        "attested the store"
    );
    Ok(attestation)
}

fn report(attestation: &Attestation) {
    if attestation.verdict == Verdict::Restricted {
        warn!(
            reason = summary(attestation),
            "the store has restrictions; `spillbox doctor` lists them"
        );
    }
}

/// The gravest finding in one sentence.
fn summary(attestation: &Attestation) -> String {
    attestation
        .findings
        .first()
        .map_or_else(String::new, |finding| {
            format!("{}: {}", finding.meaning, finding.what_to_do)
        })
}

fn refusal(url: &StoreUrl, attestation: &Attestation) -> Failure {
    Failure::new(format!(
        "{url} cannot be written to safely: {}",
        summary(attestation)
    ))
    .with_hint("`spillbox doctor` shows what was seen; --read-only serves what is there")
    .with_exit(EXIT_REFUSED)
}
