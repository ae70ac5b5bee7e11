//! What counts as used of a quota: what the newest plan of the collector saw, and what this replica has
//! stored since.
//!
//! The sum is too low by what other replicas stored since that plan, and by a session that this replica
//! has forgotten (it remembers [`COUNTED_SESSIONS`]); it is too high by what was deleted since. All of it
//! is right again with the next plan.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Counts what is stored, and decides what may be.
#[derive(Debug)]
pub struct UsageLedger {
    quotas: Quotas,
    /// What this replica has stored since the baseline, by session; the least used ones fall out.
    sessions: Cache<(Tenant, SessionKey), Arc<AtomicU64>>,
    /// One decision at a time, so that saves side by side do not pass a quota together.
    totals: Mutex<Totals>,
}

#[derive(Debug, Default)]
struct Totals {
    baseline: UsageBaseline,
    /// As [`UsageLedger::sessions`], by tenant: as many as are configured.
    tenants: HashMap<Tenant, Arc<AtomicU64>>,
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

    /// Takes over what a plan saw. What this replica counted before is part of it, and forgotten; what was
    /// stored while the plan listed may be counted by neither, until the next one.
    pub fn rebase(&self, baseline: UsageBaseline) {
        self.sessions.invalidate_all();
        let mut totals = self.totals();
        totals.baseline = baseline;
        totals.tenants.clear();
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
    counters: Option<[Arc<AtomicU64>; 2]>,
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
                .saturating_add(of_session.load(Ordering::Relaxed)),
            tenant_bytes: known(baseline.tenants.get(&self.tenant))
                .saturating_add(of_tenant.load(Ordering::Relaxed)),
        };
        self.ledger.quotas.check(used, more)?;
        for counter in [of_session, of_tenant] {
            counter.fetch_add(more, Ordering::Relaxed);
        }
        drop(totals);
        self.bytes = bytes;
        Ok(())
    }

    /// Corrects the amount to what was really stored, whatever the quotas say.
    pub fn correct_to(&mut self, bytes: u64) {
        let _totals = self.ledger.totals();
        for counter in self.counters.iter().flatten() {
            counter.fetch_add(bytes, Ordering::Relaxed);
            counter.fetch_sub(self.bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// The bytes are stored.
    pub fn keep(mut self) {
        self.counters = None;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        for counter in self.counters.iter().flatten() {
            counter.fetch_sub(self.bytes, Ordering::Relaxed);
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
        second.keep();
        assert!(ledger.charge(&tenant, session, 2).await.is_err());
        // A body of unknown size was larger than there was room.
        let mut third = ledger.charge(&tenant, session, 1).await.unwrap();
        third.correct_to(50);
        third.keep();
        let refused = ledger.charge(&tenant, session, 1).await.unwrap_err();
        assert_eq!(refused.used_bytes, 59);
    }

    #[tokio::test]
    async fn a_plan_replaces_what_was_counted() {
        let (tenant, session) = names();
        let ledger = ledger(1_000, 10);
        ledger.charge(&tenant, session, 10).await.unwrap().keep();
        assert!(ledger.charge(&tenant, session, 1).await.is_err());
        let mut baseline = UsageBaseline::default();
        baseline.tenants.insert(tenant.clone(), 4);
        ledger.rebase(baseline);
        let refused = ledger.charge(&tenant, session, 7).await.unwrap_err();
        assert_eq!(refused.used_bytes, 4);
        assert!(ledger.charge(&tenant, session, 6).await.is_ok());
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
                .keep();
        }
        assert_eq!(ledger.sessions.iter().count(), 0);
    }
}
