//! Looks at the store beside the requests, so that `/readyz` knows without asking.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval_at, timeout};
use tracing::{info, warn};

use crate::artifact::library::Library;
use crate::http::readiness::{Look, StoreHealth};
use crate::limits::READY_CHECK_TIMEOUT;
use crate::store::StoreErrorKind;

/// Looks at the store every `interval`; ends only by being dropped. The store was seen to work when it
/// was opened, so the first look comes after one interval.
pub async fn watch(library: &Library, health: &StoreHealth, interval: Duration) -> Infallible {
    let mut ticks = interval_at(tokio::time::Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (look, cause) = look_at(library).await;
        match health.see(look) {
            (None, Some(reason)) => {
                warn!(
                    reason = reason.as_str(),
                    error.cause = cause,
                    "the store does not answer; /readyz says no"
                );
            }
            (Some(_), None) => info!("the store answers again; /readyz says yes"),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

/// One look, and what the log gets of a failed one.
async fn look_at(library: &Library) -> (Look, String) {
    match timeout(READY_CHECK_TIMEOUT, library.probe_store()).await {
        Ok(Ok(())) => (Look::Answered, String::new()),
        Ok(Err(error)) if error.is(StoreErrorKind::Denied) => (Look::Refused, error.to_string()),
        Ok(Err(error)) => (Look::Failed, error.to_string()),
        Err(_) => (Look::Failed, "no answer in time".to_owned()),
    }
}
