//! Looks for newer plans of the collector beside the requests, so that quotas count what all replicas have
//! stored.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use uuid::Uuid;

use crate::artifact::library::Library;
use crate::gc::collector::Collector;
use crate::http::app::AppState;
use crate::limits::COUNTED_SESSIONS;
use crate::store::StoreError;

/// Looks at once and then every `interval`; ends only by being dropped. Where a look fails, what was known
/// counts on.
pub async fn watch(state: &AppState, period: Duration) -> Infallible {
    let (Some(library), Some(collector)) = (state.library(), state.collector()) else {
        return std::future::pending().await;
    };
    if library.options().quotas.are_unlimited() {
        return std::future::pending().await;
    }
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known = None;
    loop {
        ticks.tick().await;
        match refresh(library, collector, known).await {
            Ok(None) => {}
            Ok(Some(plan_id)) => {
                info!(gc.plan_id = %plan_id, "quotas count from the plan `{plan_id}` on");
                known = Some(plan_id);
            }
            Err(error) => warn!(%error, "what quotas are used up could not be read, trying again"),
        }
    }
}

/// Takes over what the newest plan saw; returns the plan where it is another one than `known`.
///
/// # Errors
/// The store's; nothing was taken over.
pub async fn refresh(
    library: &Library,
    collector: &Collector,
    known: Option<Uuid>,
) -> Result<Option<Uuid>, StoreError> {
    let has_session_quota = library.options().quotas.session_bytes.is_some();
    let most_sessions = if has_session_quota {
        usize::try_from(COUNTED_SESSIONS).unwrap_or(usize::MAX)
    } else {
        0
    };
    let Some(seen) = collector.newest_usage(known, most_sessions).await? else {
        return Ok(None);
    };
    library.rebase_usage(seen.baseline, seen.look_began);
    Ok(Some(seen.plan_id))
}
