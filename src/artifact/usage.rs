//! What counts as used of a quota: what the newest plan of the collector saw, and what this replica has
//! stored since.
//!
//! The sum is too low by what other replicas stored since that plan, and by a session that this replica
//! has forgotten (it remembers [`COUNTED_SESSIONS`]); it is too high by what was deleted since, and by what
//! was stored in the `PERIOD_SECONDS` before the plan's look began. All of it is right again with the next
//! plan.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use moka::future::Cache;

use crate::artifact::quota::{QuotaExceededError, Quotas, Used};
use crate::ids::{SessionKey, Tenant};
use crate::limits::COUNTED_SESSIONS;

/// What a plan of the collector saw, in bytes of live artifacts. Empty until there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageBaseline {
    /// By tenant.
    pub tenants: HashMap<Tenant, u64>,
    /// By session.
    pub sessions: HashMap<(Tenant, SessionKey), u64>,
}

/// How finely a replica remembers when it stored what it counts: a plan takes over what is older than its
/// look, and is read some time later.
const PERIOD_SECONDS: i64 = 600;

/// Periods of one counter; the oldest ones become one where there are more.
const MAX_PERIODS: usize = 64;

fn period_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(PERIOD_SECONDS)
}

/// What this replica counts of one session or tenant.
#[derive(Debug, Default)]
struct Counted {
    /// Of saves that are not over: no plan can have seen them.
    running: u64,
    /// Of saves that are over, by the period in which that was.
    kept: VecDeque<(i64, u64)>,
}

impl Counted {
    fn total(&self) -> u64 {
        let kept = self.kept.iter().map(|(_, bytes)| bytes);
        kept.fold(self.running, |sum, bytes| sum.saturating_add(*bytes))
    }

    fn keep(&mut self, bytes: u64, period: i64) {
        self.running = self.running.saturating_sub(bytes);
        match self.kept.back_mut() {
            Some((newest, sum)) if *newest >= period => *sum = sum.saturating_add(bytes),
            Some(_) | None => self.kept.push_back((period, bytes)),
        }
        if self.kept.len() > MAX_PERIODS
            && let Some((_, oldest)) = self.kept.pop_front()
            && let Some((_, sum)) = self.kept.front_mut()
        {
            *sum = sum.saturating_add(oldest);
        }
    }

    fn forget_before(&mut self, period: i64) {
        while self.kept.front().is_some_and(|(kept, _)| *kept < period) {
            self.kept.pop_front();
        }
    }
}

type Counter = Arc<Mutex<Counted>>;

fn lock(counter: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts what is stored, and decides what may be.
#[derive(Debug)]
pub struct UsageLedger {
    quotas: Quotas,
    /// What this replica has stored since the baseline, by session; the least used ones fall out.
    sessions: Cache<(Tenant, SessionKey), Counter>,
    /// One decision at a time, so that saves side by side do not pass a quota together.
    totals: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Totals {
    baseline: UsageBaseline,
    /// As [`UsageLedger::sessions`], by tenant: as many as are configured.
    tenants: HashMap<Tenant, Counter>,
}

impl UsageLedger {
    /// Starts with nothing used.
    pub fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            sessions: Cache::new(COUNTED_SESSIONS),
            totals: Mutex::default(),
        }
    }

    /// Takes over what a plan saw whose look began at `look_began`. What this replica stored before that is
    /// part of it, and forgotten; what it stored since, and what it is storing, is counted on.
    pub fn rebase(&self, baseline: UsageBaseline, look_began: Timestamp) {
        let period = period_of(look_began);
        let mut totals = self.totals();
        totals.baseline = baseline;
        for (_, counter) in &self.sessions {
            lock(&counter).forget_before(period);
        }
        for counter in totals.tenants.values() {
            lock(counter).forget_before(period);
        }
    }

    /// Sets `bytes` aside for a save of a session.
    ///
    /// # Errors
    /// A quota would be passed; nothing is set aside.
    pub async fn charge(
        self: &Arc<Self>,
        tenant: &Tenant,
        session: SessionKey,
        bytes: u64,
    ) -> Result<Charge, QuotaExceededError> {
        let mut charge = Charge {
            ledger: Arc::clone(self),
            tenant: tenant.clone(),
            session,
            counters: None,
            bytes: 0,
        };
        if self.quotas.are_unlimited() {
            return Ok(charge);
        }
        let key = (tenant.clone(), session);
        let of_session = self.sessions.get_with(key, async { Arc::default() }).await;
        let of_tenant = Arc::clone(self.totals().tenants.entry(tenant.clone()).or_default());
        charge.counters = Some([of_session, of_tenant]);
        charge.grow_to(bytes)?;
        Ok(charge)
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes set aside for one save; given back when dropped, unless they were [kept](Charge::keep).
#[derive(Debug)]
pub struct Charge {
    ledger: Arc<UsageLedger>,
    tenant: Tenant,
    session: SessionKey,
    /// Of the session and of the tenant; none where there is no quota.
    counters: Option<[Counter; 2]>,
    bytes: u64,
}

impl Charge {
    /// Sets aside `bytes` in all, where that is more than before.
    ///
    /// # Errors
    /// A quota would be passed; what was set aside stays so.
    pub fn grow_to(&mut self, bytes: u64) -> Result<(), QuotaExceededError> {
        let (Some([of_session, of_tenant]), Some(more)) =
            (&self.counters, bytes.checked_sub(self.bytes))
        else {
            return Ok(());
        };
        let totals = self.ledger.totals();
        let baseline = &totals.baseline;
        let known = |map: Option<&u64>| map.copied().unwrap_or(0);
        let key = (self.tenant.clone(), self.session);
        let used = Used {
            session_bytes: known(baseline.sessions.get(&key))
                .saturating_add(lock(of_session).total()),
            tenant_bytes: known(baseline.tenants.get(&self.tenant))
                .saturating_add(lock(of_tenant).total()),
        };
        self.ledger.quotas.check(used, more)?;
        for counter in [of_session, of_tenant] {
            lock(counter).running += more;
        }
        drop(totals);
        self.bytes = bytes;
        Ok(())
    }

    /// Corrects the amount to what was really stored, whatever the quotas say.
    pub fn correct_to(&mut self, bytes: u64) {
        let _totals = self.ledger.totals();
        for counter in self.counters.iter().flatten() {
            let mut counted = lock(counter);
            counted.running = (counted.running + bytes).saturating_sub(self.bytes);
        }
        self.bytes = bytes;
    }

    /// The bytes are stored since `now`.
    pub fn keep(mut self, now: Timestamp) {
        for counter in self.counters.take().iter().flatten() {
            lock(counter).keep(self.bytes, period_of(now));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for counter in self.counters.iter().flatten() {
            let mut counted = lock(counter);
            counted.running = counted.running.saturating_sub(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> (Tenant, SessionKey) {
        let tenant = Tenant::default();
        let session = SessionKey::derive(&tenant, &"s".parse().unwrap());
        (tenant, session)
    }

    /// So many minutes after the beginning.
    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    fn ledger(session_bytes: u64, tenant_bytes: u64) -> Arc<UsageLedger> {
        Arc::new(UsageLedger::new(Quotas {
            session_bytes: Some(session_bytes),
            tenant_bytes: Some(tenant_bytes),
        }))
    }

    #[tokio::test]
    async fn only_what_is_kept_stays_counted() {
        let (tenant, session) = names();
        let ledger = ledger(10, 100);
        let first = ledger.charge(&tenant, session, 6).await.unwrap();
        let beside = ledger.charge(&tenant, session, 6).await.unwrap_err();
        assert_eq!(beside.used_bytes, 6);
        drop(first);
        let mut second = ledger.charge(&tenant, session, 1).await.unwrap();
        assert!(second.grow_to(11).is_err());
        second.grow_to(9).unwrap();
        second.keep(at(0));
        assert!(ledger.charge(&tenant, session, 2).await.is_err());
        // A body of unknown size was larger than there was room.
        let mut third = ledger.charge(&tenant, session, 1).await.unwrap();
        third.correct_to(50);
        third.keep(at(0));
        let refused = ledger.charge(&tenant, session, 1).await.unwrap_err();
        assert_eq!(refused.used_bytes, 59);
    }

    #[tokio::test]
    async fn a_plan_replaces_what_was_counted() {
        let (tenant, session) = names();
        let ledger = ledger(1_000, 10);
        ledger
            .charge(&tenant, session, 10)
            .await
            .unwrap()
            .keep(at(0));
        assert!(ledger.charge(&tenant, session, 1).await.is_err());
        let mut baseline = UsageBaseline::default();
        baseline.tenants.insert(tenant.clone(), 4);
        ledger.rebase(baseline, at(20));
        let refused = ledger.charge(&tenant, session, 7).await.unwrap_err();
        assert_eq!(refused.used_bytes, 4);
        assert!(ledger.charge(&tenant, session, 6).await.is_ok());
    }

    #[tokio::test]
    async fn what_was_stored_after_the_look_of_a_plan_or_is_being_stored_is_counted_on() {
        let (tenant, session) = names();
        let ledger = ledger(1_000, 1_000);
        let charge = async |bytes| ledger.charge(&tenant, session, bytes).await.unwrap();
        let running = charge(1).await;
        charge(10).await.keep(at(0));
        charge(20).await.keep(at(30));
        charge(40).await.keep(at(60));
        let used = async || {
            let refused = ledger.charge(&tenant, session, 1_000).await.unwrap_err();
            refused.used_bytes
        };
        assert_eq!(used().await, 71);
        let mut baseline = UsageBaseline::default();
        baseline.sessions.insert((tenant.clone(), session), 100);
        baseline.tenants.insert(tenant.clone(), 100);
        ledger.rebase(baseline.clone(), at(45));
        assert_eq!(used().await, 141);
        running.keep(at(70));
        ledger.rebase(baseline, at(69));
        // A period is not taken apart: what ended in that of the look is counted on.
        assert_eq!(used().await, 141);
    }

    #[test]
    fn a_counter_has_a_bound_and_loses_nothing() {
        let mut counted = Counted::default();
        for period in 0..1_000 {
            counted.running += 1;
            counted.keep(1, period);
        }
        assert_eq!((counted.kept.len(), counted.total()), (MAX_PERIODS, 1_000));
        counted.forget_before(1_000);
        assert_eq!(counted.total(), 0);
    }

    #[tokio::test]
    async fn without_quotas_nothing_is_counted() {
        let (tenant, session) = names();
        let ledger = Arc::new(UsageLedger::new(Quotas::default()));
        for _ in 0..3 {
            ledger
                .charge(&tenant, session, u64::MAX)
                .await
                .unwrap()
                .keep(at(0));
        }
        assert_eq!(ledger.sessions.iter().count(), 0);
    }
}
