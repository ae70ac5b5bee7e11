//! Attestation: finds out by trying whether a store keeps the promises that this product rests on.
//!
//! Servers answer 200 and 204 to conditions that they ignore, and some check a condition and write
//! later, which only a race shows. So nothing here looks at a server's name: scratch objects are
//! written, raced for and deleted over every configured endpoint, in the bucket and the mode that will
//! be used. What was seen ([`Observations`]) becomes an [`Attestation`] by a pure function
//! ([`evaluate`]), which decides whether the store may be written to and which delete fence is used.
//!
//! What must hold: only probe keys are touched, and none of their objects, versions, markers or
//! uploads stays behind; an endpoint that is dead is told within the deadline; a store on which
//! create-if-absent was not seen to be exact is never called usable.

mod check;
mod clean;
mod contact;
mod contest;
mod create;
mod delete;
mod diagnose;
mod finding;
mod integrity;
mod prober;
mod record;
mod replace;
mod table;
mod verdict;
mod visibility;

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

pub use self::check::{Check, CheckName, ClockReading, Mode, Observations, Outcome};
pub use self::diagnose::{Cause, Diagnosis, diagnose};
pub use self::finding::{Finding, FindingCode, Severity};
pub use self::record::{load, save};
pub use self::table::render_table;
pub use self::verdict::{Attestation, Fence, Verdict, evaluate};

use self::contact::Contact;
use self::prober::Prober;
use crate::clock::Clock;
use crate::digest::tagged_hash;
use crate::ids::IdSource;
use crate::limits;
use crate::store::keys::KeySpace;
use crate::store::{SharedStore, Versioning};

/// One way to the bucket.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its URL, or another name for people.
    pub name: String,
    /// The bucket through it.
    pub store: SharedStore,
}

/// What is attested: one bucket and prefix, over all its endpoints.
#[derive(Debug, Clone)]
pub struct Target {
    /// Every configured endpoint of the same bucket.
    pub endpoints: Vec<Endpoint>,
    /// The store as the settings name it (`s3://bucket/prefix`, `local:DIR`).
    pub store_url: String,
    /// Where keys are.
    pub keys: KeySpace,
}

impl Target {
    /// Returns what tells this target from others: 32 hexadecimal digits of its URL and endpoints,
    /// whatever their order.
    pub fn fingerprint(&self) -> String {
        let mut names: Vec<&[u8]> = self.endpoints.iter().map(|e| e.name.as_bytes()).collect();
        names.sort_unstable();
        names.dedup();
        names.insert(0, self.store_url.as_bytes());
        let mut digits = tagged_hash("attested endpoints", &names).to_hex();
        digits.truncate(32);
        digits
    }
}

/// How hard a store is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttestOptions {
    /// Writers of one key, over all endpoints together; at least 2.
    pub contenders: usize,
    /// Keys that are raced for, as far as the time for it reaches; at least 1.
    pub rounds: usize,
    /// Time for everything, cleaning up included.
    pub deadline: Duration,
}

impl Default for AttestOptions {
    fn default() -> Self {
        Self {
            contenders: limits::ATTEST_CONTENDERS,
            rounds: limits::ATTEST_ROUNDS,
            deadline: limits::ATTEST_DEADLINE,
        }
    }
}

impl AttestOptions {
    fn bounded(self) -> Self {
        Self {
            contenders: self.contenders.clamp(2, 64),
            rounds: self.rounds.clamp(1, 100),
            deadline: self.deadline,
        }
    }
}

/// Attests a store and cleans up behind itself. Must not be dropped half-way where probes may not stay;
/// what a killed process leaves is swept by the collector.
pub async fn attest(
    target: &Target,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    options: AttestOptions,
) -> Attestation {
    let options = options.bounded();
    let began = Instant::now();
    let prober = Prober::new(target, clock, ids, options, began);
    let mut seen = Observations::new(target.fingerprint(), options, clock.now());
    Box::pin(observe(&prober, &mut seen)).await;
    seen.left_behind = Box::pin(clean::clean(&prober, seen.mode, began + options.deadline)).await;
    seen.denied = prober.denied();
    seen.unreachable = seen.unreachable.or(prober.rejected());
    seen.elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    evaluate(&seen)
}

/// Reads the stored attestation and attests anew only where it is missing, old, not usable, or of
/// another endpoint, number of contenders or versioning state. Answers whether it was reused.
pub async fn attest_or_reuse(
    target: &Target,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    options: AttestOptions,
) -> (Attestation, bool) {
    let began = Instant::now();
    let reused = tokio::time::timeout(
        limits::ATTEST_CLEANUP_RESERVE,
        record::reusable(target, clock, options.bounded()),
    );
    if let Ok(Some(attestation)) = reused.await
        && is_still_writable(target, &attestation).await
    {
        return (attestation, true);
    }
    let left = AttestOptions {
        deadline: options.deadline.saturating_sub(began.elapsed()),
        ..options
    };
    let attestation = attest(target, clock, ids, left).await;
    if attestation.verdict != Verdict::Unreachable
        && let Some(endpoint) = target.endpoints.first()
    {
        // Without it the next start attests again; that is all that is lost. A refusal is kept too:
        // it ends the trust in what was stored before.
        let save = record::save(endpoint.store.as_ref(), &target.keys, &attestation);
        if !matches!(
            tokio::time::timeout(limits::ATTEST_CLEANUP_RESERVE, save).await,
            Ok(Ok(()))
        ) {
            tracing::warn!("the attestation could not be stored; the next start attests again");
        }
    }
    (attestation, false)
}

/// Writes the reused attestation over itself: a store that has become read-only or full since is not to
/// be taken for a good one.
async fn is_still_writable(target: &Target, attestation: &Attestation) -> bool {
    let Some(endpoint) = target.endpoints.first() else {
        return false;
    };
    let save = record::save(endpoint.store.as_ref(), &target.keys, attestation);
    let saved = tokio::time::timeout(limits::ATTEST_CLEANUP_RESERVE, save).await;
    matches!(saved, Ok(Ok(())))
}

async fn observe(prober: &Prober<'_>, seen: &mut Observations) {
    match contact::contact_all(prober).await {
        Contact::Reached { clocks, date } => {
            seen.clocks = clocks;
            seen.measured_at = date.unwrap_or(seen.measured_at);
        }
        Contact::MayNotWrite(check) => {
            seen.note(CheckName::CreateTwice, check);
            return;
        }
        Contact::Unreachable(diagnosis) => {
            seen.unreachable = Some(diagnosis);
            return;
        }
    }
    let (versioning, check) = contact::versioning(prober).await;
    seen.mode = versioning.into();
    seen.note(CheckName::Versioning, check);
    let facts = prober.facts();
    let one_by_one = futures_util::future::join_all(sequential_checks(prober, versioning));
    let (facts, checks) = futures_util::join!(facts, one_by_one);
    seen.facts = facts;
    for (name, check) in checks {
        seen.note(name, check);
    }
    // Alone, so that the writers really meet.
    if seen.passed(CheckName::CreateTwice) {
        let (check, rounds) = create::race(prober).await;
        seen.rounds = rounds;
        seen.note(CheckName::CreateRace, check);
    }
    let mut races = Vec::new();
    if seen.passed(CheckName::ReplaceIfMatch) {
        races.push(prober.run(CheckName::ReplaceRace, replace::race(prober).boxed()));
    }
    if seen.passed(CheckName::DeleteIfMatch) {
        races.push(prober.run(CheckName::DeleteRace, delete::race(prober).boxed()));
    }
    for (name, check) in futures_util::future::join_all(races).await {
        seen.note(name, check);
    }
}

/// The checks that need no race; each has keys of its own, so they go side by side.
fn sequential_checks<'a>(
    prober: &'a Prober<'_>,
    versioning: Option<Versioning>,
) -> Vec<futures_util::future::BoxFuture<'a, (CheckName, Check)>> {
    let mut checks = vec![
        prober.run(CheckName::CreateTwice, create::twice(prober).boxed()),
        prober.run(
            CheckName::CreateSlowWriter,
            create::slow_writer(prober).boxed(),
        ),
        prober.run(
            CheckName::ReplaceIfMatch,
            replace::one_by_one(prober).boxed(),
        ),
        prober.run(CheckName::DeletePlain, delete::plain(prober).boxed()),
        prober.run(CheckName::DeleteIfMatch, delete::if_match(prober).boxed()),
        prober.run(CheckName::ReadAfterWrite, visibility::read(prober).boxed()),
        prober.run(
            CheckName::ListAfterWrite,
            visibility::list(prober, versioning).boxed(),
        ),
        prober.run(
            CheckName::ConditionalGet,
            visibility::unchanged(prober).boxed(),
        ),
        prober.run(CheckName::ChangedGet, visibility::changed(prober).boxed()),
        prober.run(CheckName::ByteFidelity, integrity::bytes(prober).boxed()),
        prober.run(CheckName::Multipart, integrity::multipart(prober).boxed()),
        prober.run(
            CheckName::ChecksumVerified,
            integrity::wrong_checksum(prober).boxed(),
        ),
        prober.run(
            CheckName::ChecksumKept,
            integrity::kept_checksum(prober).boxed(),
        ),
    ];
    // Never where the bucket never had versions: several servers then delete the current object.
    match versioning {
        Some(Versioning::Enabled) => {
            let check = delete::old_version(prober).boxed();
            checks.push(prober.run(CheckName::DeleteVersion, check));
        }
        Some(Versioning::Suspended) => {
            let check = delete::null_version(prober).boxed();
            checks.push(prober.run(CheckName::DeleteVersion, check));
        }
        Some(Versioning::NeverEnabled) | None => {}
    }
    checks
}

#[cfg(test)]
mod tests;
