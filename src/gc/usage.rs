//! What the look of a plan saw of the use of quotas: bytes of live artifacts, by tenant and by session.
//!
//! It lies beside the plan and goes with it: parts of sessions, written while the look goes on, and a root
//! with the tenants, written when the look is over. Only a plan of everything has one. It is advice: nothing
//! is deleted by it, so it has no digests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::artifact::usage::UsageBaseline;
use crate::gc::collector::Collector;
use crate::gc::planner::PlanError;
use crate::gc::planner::write::create;
use crate::ids::{SessionKey, Tenant};
use crate::limits::GC_USAGE_PART_SESSIONS;
use crate::store::keys::Key;
use crate::store::register::read_register;
use crate::store::{StoreError, StoreErrorKind};

/// The version of the encoding; another one is not read.
const USAGE_VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct UsageRoot {
    v: u32,
    /// The store's date when the look began.
    server_date: Timestamp,
    tenants: BTreeMap<Tenant, u64>,
    /// How many parts there are.
    parts: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct UsagePart {
    v: u32,
    sessions: Vec<SessionUse>,
}

/// Fields in the order in which the largest use is the greatest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SessionUse {
    bytes: u64,
    tenant: Tenant,
    session_key: SessionKey,
}

/// Adds up while a plan looks. Sessions come one after the other.
#[derive(Debug, Default)]
pub(in crate::gc) struct UsageTally {
    tenants: BTreeMap<Tenant, u64>,
    sessions: Vec<SessionUse>,
    parts: u64,
}

impl UsageTally {
    /// Adds a live artifact.
    pub(in crate::gc) fn add(&mut self, tenant: &Tenant, session_key: SessionKey, bytes: u64) {
        let sum = self.tenants.entry(tenant.clone()).or_default();
        *sum = sum.saturating_add(bytes);
        match self.sessions.last_mut() {
            Some(last) if last.session_key == session_key && last.tenant == *tenant => {
                last.bytes = last.bytes.saturating_add(bytes);
            }
            Some(_) | None => self.sessions.push(SessionUse {
                bytes,
                tenant: tenant.clone(),
                session_key,
            }),
        }
    }

    /// Writes what has come together, where that is a part; called between two sessions.
    ///
    /// # Errors
    /// It is not written.
    pub(in crate::gc) async fn write_full_part(
        &mut self,
        collector: &Collector,
        plan_id: Uuid,
    ) -> Result<(), PlanError> {
        if self.sessions.len() < GC_USAGE_PART_SESSIONS {
            return Ok(());
        }
        self.write_part(collector, plan_id).await
    }

    async fn write_part(&mut self, collector: &Collector, plan_id: Uuid) -> Result<(), PlanError> {
        let part = UsagePart {
            v: USAGE_VERSION,
            sessions: std::mem::take(&mut self.sessions),
        };
        let key = collector.keys.gc_usage_part(&plan_id, self.parts);
        create(collector, &key, encode(&part)).await?;
        self.parts += 1;
        Ok(())
    }

    /// Writes the rest, the root last.
    ///
    /// # Errors
    /// It is not written.
    pub(in crate::gc) async fn finish(
        mut self,
        collector: &Collector,
        plan_id: Uuid,
        server_date: Timestamp,
    ) -> Result<(), PlanError> {
        if !self.sessions.is_empty() {
            self.write_part(collector, plan_id).await?;
        }
        let root = UsageRoot {
            v: USAGE_VERSION,
            server_date,
            tenants: self.tenants,
            parts: self.parts,
        };
        let key = collector.keys.gc_usage(&plan_id);
        create(collector, &key, encode(&root)).await?;
        Ok(())
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("text, numbers and lists always serialise")
}

/// What a plan saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenUsage {
    /// The plan.
    pub plan_id: Uuid,
    /// The store's date when its look began.
    pub look_began: Timestamp,
    /// The bytes.
    pub baseline: UsageBaseline,
}

impl Collector {
    /// Reads what the newest plan of everything saw, unless that is the plan `known`: all tenants, and the
    /// `most_sessions` largest sessions.
    ///
    /// # Errors
    /// The store fails, or holds something that this version cannot read.
    pub async fn newest_usage(
        &self,
        known: Option<Uuid>,
        most_sessions: usize,
    ) -> Result<Option<SeenUsage>, StoreError> {
        for plan_id in self.plan_ids().await?.into_iter().rev() {
            if known.is_some_and(|known| plan_id <= known) {
                return Ok(None);
            }
            let key = self.keys.gc_usage(&plan_id);
            let Some(root) = self.read_usage::<UsageRoot>(&key).await? else {
                // A plan of a part of the store, or of an older version, or one that is being made.
                continue;
            };
            check_version(root.v, &key)?;
            let mut largest = Largest::new(most_sessions);
            let parts = if most_sessions == 0 { 0 } else { root.parts };
            for part in 0..parts {
                let key = self.keys.gc_usage_part(&plan_id, part);
                let part: Option<UsagePart> = self.read_usage(&key).await?;
                let part = part.ok_or_else(|| unreadable(&key, "is not there"))?;
                check_version(part.v, &key)?;
                part.sessions.into_iter().for_each(|it| largest.add(it));
            }
            return Ok(Some(SeenUsage {
                plan_id,
                look_began: root.server_date,
                baseline: UsageBaseline {
                    tenants: root.tenants.into_iter().collect(),
                    sessions: largest.into_sessions(),
                },
            }));
        }
        Ok(None)
    }

    async fn read_usage<T: DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, StoreError> {
        let Some(found) = read_register(&*self.store, key).await? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&found.bytes);
        value
            .map(Some)
            .map_err(|error| unreadable(key, &error.to_string()))
    }
}

fn check_version(v: u32, key: &Key) -> Result<(), StoreError> {
    if v == USAGE_VERSION {
        return Ok(());
    }
    Err(unreadable(key, &format!("has version {v}")))
}

fn unreadable(key: &Key, detail: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Rejected,
        "get",
        key.as_str(),
        detail.to_owned(),
    )
}

/// The largest of what is added, in bounded memory.
struct Largest {
    most: usize,
    heap: BinaryHeap<Reverse<SessionUse>>,
}

impl Largest {
    fn new(most: usize) -> Self {
        let heap = BinaryHeap::new();
        Self { most, heap }
    }

    fn add(&mut self, session: SessionUse) {
        self.heap.push(Reverse(session));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn into_sessions(self) -> std::collections::HashMap<(Tenant, SessionKey), u64> {
        let sessions = self.heap.into_iter();
        sessions
            .map(|Reverse(it)| ((it.tenant, it.session_key), it.bytes))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_told_apart_and_the_largest_are_kept() {
        let tenant = Tenant::default();
        let key = |name: &str| SessionKey::derive(&tenant, &name.parse().unwrap());
        let mut tally = UsageTally::default();
        for (name, bytes) in [("a", 5), ("a", 6), ("b", 3), ("c", 20), ("d", 1)] {
            tally.add(&tenant, key(name), bytes);
        }
        assert_eq!(tally.tenants[&tenant], 35);
        let mut largest = Largest::new(2);
        tally.sessions.into_iter().for_each(|it| largest.add(it));
        let kept = largest.into_sessions();
        let of = |name: &str| kept.get(&(tenant.clone(), key(name))).copied();
        assert_eq!((kept.len(), of("a"), of("c")), (2, Some(11), Some(20)));
    }
}
