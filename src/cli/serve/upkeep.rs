//! What a running service does beside answering: the admin listener, and chores on timers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::cli::failure::Failure;
use crate::clock::SharedClock;
use crate::http::admin;
use crate::http::app::AppState;
use crate::http::rate_limit::RequestLimits;
use crate::http::request_id::RequestIds;
use crate::limits::{
    ADMIN_CONNECTIONS, METRICS_UPKEEP_INTERVAL, RATE_UPKEEP_INTERVAL, RECONCILIATION_WATCH_INTERVAL,
};
use crate::server::{self, ServerOptions};
use crate::settings::LimitSettings;
use crate::store::metered::StoreMeter;
use crate::store_metrics::StoreMetrics;

/// Prepares what a service measures and limits.
pub(super) fn equip(
    state: &AppState,
    limits: &LimitSettings,
    clock: &SharedClock,
) -> Arc<dyn StoreMeter> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact for some millions of years"
    )]
    let seconds = clock.now().as_millisecond() as f64 / 1_000.0;
    state.metrics().started_at(seconds);
    let pace = (
        NonZeroU32::new(limits.requests_per_second),
        NonZeroU32::new(limits.requests_burst),
    );
    if let (Some(per_second), Some(burst)) = pace {
        state.limit_requests(RequestLimits::new(per_second, burst));
    }
    Arc::new(StoreMetrics::new(state.metrics().clone()))
}

/// Takes the admin listener's address, where one is set.
///
/// # Errors
/// The address cannot be had.
pub(super) async fn bind_admin(listen: Option<SocketAddr>) -> Result<Option<TcpListener>, Failure> {
    let Some(listen) = listen else {
        return Ok(None);
    };
    let refused = |error: std::io::Error| {
        Failure::new(format!("cannot listen on {listen}: {error}"))
            .with_hint("choose another --admin-listen")
    };
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    info!("metrics on http://{bound}{}", admin::METRICS);
    Ok(Some(listener))
}

/// Answers the admin listener until `stop`, which comes when the API's last request was answered; without
/// one, returns at once.
pub(super) async fn serve_admin(
    listener: Option<TcpListener>,
    state: AppState,
    request_ids: RequestIds,
    stop: CancellationToken,
) {
    let Some(listener) = listener else {
        return;
    };
    let options = ServerOptions {
        max_connections: ADMIN_CONNECTIONS,
        // A scrape takes milliseconds; a scraper that stalls holds no shutdown up.
        drain_timeout: Duration::from_secs(1),
        ..ServerOptions::default()
    };
    let router = admin::router(state, request_ids);
    server::run(listener, router, options, stop.cancelled_owned()).await;
}

/// The chores, and where somebody scrapes, a look at what the last reconciliation left; ends only by being
/// dropped.
pub(super) async fn keep_house(state: &AppState, is_scraped: bool) -> Infallible {
    let watching = async {
        if is_scraped {
            watch_reconciliation(state).await;
        }
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        never = do_chores(state) => never,
        never = watching => never,
    }
}

/// Shows in the metrics what a job elsewhere has written into the store.
async fn watch_reconciliation(state: &AppState) -> Infallible {
    let mut looks = interval(RECONCILIATION_WATCH_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(leases) = state.leases() else {
            continue;
        };
        match leases.last_reconciliation().await {
            Ok(Some(kept)) => state.metrics().last_reconciliation(&kept),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the last reconciliation cannot be read now"),
        }
    }
}

async fn do_chores(state: &AppState) -> Infallible {
    let every = |period| {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let mut metrics = every(METRICS_UPKEEP_INTERVAL);
    let mut pace = every(RATE_UPKEEP_INTERVAL);
    loop {
        tokio::select! {
            _ = metrics.tick() => state.metrics().run_upkeep(),
            _ = pace.tick() => {
                state.failed_access().forget_idle();
                if let Some(limits) = state.request_limits() {
                    limits.forget_idle();
                }
            }
        }
    }
}
