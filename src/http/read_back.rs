//! How much of each session's artifacts went back to callers, as this replica knows it.
//!
//! The figures live in memory: they are this replica's, since its start. All of them begin at one time,
//! so a figure is never taken for more than it is: where more sessions are read than there is room for,
//! everything is forgotten and counting begins anew, and the time says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::response::Response;
use jiff::Timestamp;
use serde::Serialize;

use crate::clock::SharedClock;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::http::reply;
use crate::http::session_path::SessionPath;
use crate::ids::{SessionKey, Tenant};
use crate::limits::MAX_COUNTED_SESSIONS;

/// The counters of a replica. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ReadBack {
    counts: Arc<Mutex<Counts>>,
    clock: SharedClock,
}

/// What was read back of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct SessionReadBack {
    /// Bytes of replies that callers took.
    read_back_bytes: u64,
    /// When counting began.
    since: Timestamp,
}

#[derive(Debug)]
struct Counts {
    since: Timestamp,
    most_sessions: usize,
    bytes: HashMap<(Tenant, SessionKey), u64>,
}

impl ReadBack {
    /// Begins to count.
    pub(crate) fn starting(clock: SharedClock) -> Self {
        let counts = Counts::starting(clock.now(), MAX_COUNTED_SESSIONS);
        Self {
            counts: Arc::new(Mutex::new(counts)),
            clock,
        }
    }

    /// Counts bytes that a caller took.
    pub(crate) fn add(&self, tenant: &Tenant, session: SessionKey, bytes: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.add((tenant.clone(), session), bytes, || self.clock.now());
    }

    /// Returns what was read back of a session.
    pub(crate) fn of(&self, tenant: &Tenant, session: SessionKey) -> SessionReadBack {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.of(&(tenant.clone(), session))
    }
}

impl Counts {
    fn starting(since: Timestamp, most_sessions: usize) -> Self {
        Self {
            since,
            most_sessions,
            bytes: HashMap::new(),
        }
    }

    fn add(&mut self, key: (Tenant, SessionKey), bytes: u64, now: impl FnOnce() -> Timestamp) {
        if self.bytes.len() >= self.most_sessions && !self.bytes.contains_key(&key) {
            self.bytes.clear();
            self.since = now();
        }
        let counted = self.bytes.entry(key).or_default();
        *counted = counted.saturating_add(bytes);
    }

    fn of(&self, key: &(Tenant, SessionKey)) -> SessionReadBack {
        SessionReadBack {
            read_back_bytes: self.bytes.get(key).copied().unwrap_or(0),
            since: self.since,
        }
    }
}

/// Says how much of a session this replica has handed back. A session that it never heard of was not
/// read: no store is asked.
pub(crate) async fn usage(
    caller: Caller,
    SessionPath(session): SessionPath,
    _: NoQuery,
) -> Result<Response, Problem> {
    let key = SessionKey::derive(&caller.tenant, &session);
    let found = caller.read_back.of(&caller.tenant, key);
    Ok(reply::json(StatusCode::OK, &found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_apart_and_a_full_table_begins_anew_and_says_so() {
        let tenant = Tenant::default();
        let other: Tenant = "other".parse().unwrap();
        let key = |tenant: &Tenant, session: &str| {
            let session = session.parse().unwrap();
            (tenant.clone(), SessionKey::derive(tenant, &session))
        };
        let (start, later) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let mut counts = Counts::starting(start, 2);
        counts.add(key(&tenant, "a"), 3, || later);
        counts.add(key(&other, "a"), 5, || later);
        counts.add(key(&tenant, "a"), 4, || later);
        let found = |counts: &Counts, key| {
            let found = counts.of(&key);
            (found.read_back_bytes, found.since)
        };
        assert_eq!(found(&counts, key(&tenant, "a")), (7, start));
        assert_eq!(found(&counts, key(&other, "a")), (5, start));
        assert_eq!(found(&counts, key(&tenant, "b")), (0, start));
        counts.add(key(&tenant, "b"), 9, || later);
        assert_eq!(found(&counts, key(&tenant, "b")), (9, later));
        assert_eq!(found(&counts, key(&tenant, "a")), (0, later));
    }
}
