//! The pace of requests, by principal: a client that has gone wild must not take the places of others.
//!
//! Each replica counts for itself, so that a principal that reaches N of them may send N times as much.
//! Why by principal and not by peer address: behind a proxy every client has the same one. Health and
//! metrics have no principal and no limit; callers without a valid token are counted by address
//! ([`super::failed_access`]).

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, HeaderValue};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

use crate::auth::PrincipalId;
use crate::error::ErrorCode;
use crate::http::problem::Problem;

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Time as the runtime sees it, so that tests can stop it.
#[derive(Debug, Clone)]
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// How many requests each principal may send.
pub type RequestLimits = Pace<PrincipalId>;

/// How many requests each `K` may send.
#[derive(Debug)]
pub struct Pace<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, DashMapStateStore<K>, RuntimeClock, NoOpMiddleware<Duration>>,
    clock: RuntimeClock,
    policy: HeaderValue,
}

impl<K: Hash + Eq + Clone> Pace<K> {
    /// Allows each `K` `per_second` requests in the long run, and `burst` at once.
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let clock = RuntimeClock(Instant::now());
        let quota = Quota::per_second(per_second).allow_burst(burst);
        let window = burst.get().div_ceil(per_second.get());
        let policy = format!("\"requests\";q={burst};w={window}");
        Self {
            limiter: RateLimiter::new(quota, DashMapStateStore::default(), clock.clone()),
            clock,
            policy: HeaderValue::try_from(policy)
                .expect("digits and fixed ASCII are a header value"),
        }
    }

    /// Counts a request of `key`.
    ///
    /// # Errors
    /// It comes too early: 429 with the time after which the next one is welcome.
    pub(crate) fn admit(&self, key: &K) -> Result<(), Problem> {
        let Err(early) = self.limiter.check_key(key) else {
            return Ok(());
        };
        let wait = early.wait_time_from(self.clock.now());
        // Whole seconds, rounded up: earlier would only be refused again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        let state = HeaderValue::try_from(format!("\"requests\";r=0;t={seconds}"))
            .expect("digits and fixed ASCII are a header value");
        let detail = "this caller sends more requests than it may";
        Err(Problem::new(ErrorCode::RateLimited, detail)
            .with_header(RETRY_AFTER, seconds.into())
            .with_header(RATELIMIT, state)
            .with_header(RATELIMIT_POLICY, self.policy.clone()))
    }

    /// Forgets those that may send a whole burst again: the same as never having seen them.
    pub fn forget_idle(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    /// Returns how many are remembered.
    pub fn remembered(&self) -> usize {
        self.limiter.len()
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use super::*;

    fn limits(per_second: u32, burst: u32) -> RequestLimits {
        let of = |number| NonZeroU32::new(number).unwrap();
        RequestLimits::new(of(per_second), of(burst))
    }

    fn principal(name: &str) -> PrincipalId {
        name.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_pace_holds() {
        let limits = limits(2, 10);
        let caller = principal("a");
        for _ in 0..10 {
            assert!(limits.admit(&caller).is_ok());
        }
        let refused = limits.admit(&caller).unwrap_err().into_response();
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(refused.headers()["ratelimit"], "\"requests\";r=0;t=1");
        assert_eq!(
            refused.headers()["ratelimit-policy"],
            "\"requests\";q=10;w=5"
        );
        // Another principal is not concerned.
        assert!(limits.admit(&principal("b")).is_ok());
        tokio::time::advance(Duration::from_millis(500)).await;
        assert!(limits.admit(&caller).is_ok());
        assert!(limits.admit(&caller).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_as_told_is_served() {
        let limits = limits(1, 3);
        let caller = principal("a");
        while limits.admit(&caller).is_ok() {}
        let refused = limits.admit(&caller).unwrap_err().into_response();
        let seconds: u64 = refused.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse()
            .unwrap();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert!(limits.admit(&caller).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_principals_are_forgotten() {
        let limits = limits(1, 3);
        for number in 0..100 {
            limits.admit(&principal(&format!("p{number}"))).unwrap();
        }
        assert_eq!(limits.remembered(), 100);
        tokio::time::advance(Duration::from_secs(4)).await;
        limits.admit(&principal("p0")).unwrap();
        limits.forget_idle();
        assert_eq!(limits.remembered(), 1);
    }
}
