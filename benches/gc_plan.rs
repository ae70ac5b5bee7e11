//! Resident memory and time of a plan over up to a million artifacts in an in-process store that makes
//! its listings up as it is asked. The growth must not follow the number of artifacts; candidates are
//! kept in memory, at most 100,000 of them.
//!
//! `cargo bench --bench gc_plan`

#[path = "../tests/support/hooked.rs"]
#[allow(dead_code, reason = "shared support: the bench fails no request")]
mod hooked;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use spillbox::artifact::session::Sessions;
use spillbox::clock::{Clock, SystemClock};
use spillbox::gc::collector::{Collector, Fence};
use spillbox::gc::plan::Scope;
use spillbox::gc::policy::{GcPolicy, PolicyRequest, PolicySettings, Share};
use spillbox::gc::status::Status;
use spillbox::ids::{ArtifactId, SessionId, SessionKey, SystemIds, Tenant};
use spillbox::lease::journals::Journals;
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::store::keys::KeySpace;
use spillbox::store::memory::MemoryStore;
use spillbox::store::{ETag, ListPage, ListRequest, Listed, SharedStore};

const ARTIFACTS_OF_A_SESSION: usize = 1_000;
const PAGE: usize = 1_000;

/// Makes up both listings; everything else is in the store below.
#[derive(Debug)]
struct MadeUp {
    keys: KeySpace,
    /// In the order of their keys.
    sessions: Vec<SessionKey>,
    /// So many sessions are old.
    old: usize,
    now: Timestamp,
    peak: AtomicU64,
}

impl MadeUp {
    fn listed(&self, prefix: &str, index: usize) -> Listed {
        let (session, number) = (
            index / ARTIFACTS_OF_A_SESSION,
            index % ARTIFACTS_OF_A_SESSION,
        );
        let mut random = [0; 10];
        random[2..].copy_from_slice(&(number as u64).to_be_bytes());
        let age = SignedDuration::from_hours(if session < self.old { 48 } else { 1 });
        Listed {
            key: format!(
                "{prefix}{}/{}",
                self.sessions[session],
                ArtifactId::new(1, random)
            ),
            size_bytes: 100_000,
            etag: ETag("\"0123456789abcdef0123456789abcdef\"".to_owned()),
            last_modified: self.now - age,
        }
    }
}

#[async_trait::async_trait]
impl hooked::Hook for MadeUp {
    fn listing(&self, request: &ListRequest) -> Option<ListPage> {
        let tenant = Tenant::default();
        let prefix = request.prefix.as_str();
        if prefix != self.keys.all_manifests(&tenant) && prefix != self.keys.all_bodies(&tenant) {
            return None;
        }
        self.peak.fetch_max(resident_bytes(), Ordering::Relaxed);
        let from = request.continuation.as_deref().unwrap_or("0");
        let from: usize = from.parse().expect("a token of ours");
        let all = self.sessions.len() * ARTIFACTS_OF_A_SESSION;
        let to = (from + PAGE).min(all);
        Some(ListPage {
            objects: (from..to).map(|index| self.listed(prefix, index)).collect(),
            is_truncated: to < all,
            next: (to < all).then(|| to.to_string()),
            ..ListPage::default()
        })
    }
}

/// Resident memory now, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = kib.and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

async fn plan(sessions: usize, old: usize) {
    let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
    let below: SharedStore = Arc::new(MemoryStore::new(Arc::clone(&clock)));
    let (keys, tenant) = (KeySpace::new("").expect("no prefix"), Tenant::default());
    let now = clock.now();
    let names = (0..sessions).map(|n| format!("session-{n}").parse::<SessionId>());
    let names = names.map(|name| name.expect("a session id"));
    let mut known: Vec<(SessionKey, SessionId)> = names
        .map(|name| (SessionKey::derive(&tenant, &name), name))
        .collect();
    known.sort_by_key(|(key, _)| key.to_string());
    let descriptors = Sessions::new(Arc::clone(&below), keys.clone());
    for (_, name) in &known[..old] {
        let ensured = descriptors.ensure(&tenant, name, None, now).await;
        ensured.expect("a descriptor");
    }
    let made_up = Arc::new(MadeUp {
        keys: keys.clone(),
        sessions: known.into_iter().map(|(key, _)| key).collect(),
        old,
        now,
        peak: AtomicU64::new(0),
    });
    let store = hooked::hooked(&below, &made_up);
    let journals = Journals::new(
        Arc::clone(&store),
        keys.clone(),
        Arc::clone(&clock),
        Arc::clone(&ids),
    );
    let around = (clock, ids);
    let collector = Collector::new(
        store,
        keys,
        DEFAULT_ORPHAN_TTL,
        journals,
        Fence::IfMatch,
        around,
    );
    let request = PolicyRequest {
        max_share: Some(Share::ALL),
        ..PolicyRequest::default()
    };
    let settings = PolicySettings {
        settle: Duration::ZERO,
        is_one_host: true,
        ..PolicySettings::default()
    };
    let policy = GcPolicy::new(&request, &settings, DEFAULT_ORPHAN_TTL).expect("a policy");
    let before = resident_bytes();
    let began = Instant::now();
    let planned = collector.plan(&Scope::All, &policy).await.expect("a plan");
    let took = began.elapsed();
    let listing = made_up.peak.load(Ordering::Relaxed).saturating_sub(before);
    let whole = resident_bytes().saturating_sub(before);
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{:>9} {:>10} {:>14.1} {:>11.1} {:>7.2}",
        planned.plan.live,
        planned.plan.counts.of(Status::PlannedDelete).count,
        mebibytes(listing),
        mebibytes(whole),
        took.as_secs_f64()
    );
}

#[tokio::main]
async fn main() {
    println!("artifacts candidates  listing MiB  written MiB  seconds");
    // The first one brings the code in.
    plan(10, 1).await;
    for sessions in [125, 250, 500, 1_000] {
        plan(sessions, 10).await;
    }
    plan(1_000, 1_000).await;
}
