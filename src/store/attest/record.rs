//! The last attestation, kept in the store itself, so that ten replicas that start together do not
//! each race for keys.

use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use super::prober::fetch;
use super::verdict::{CheckRow, FORMAT};
use super::{AttestOptions, Attestation, CheckName, Fence, Mode, Outcome, Target};
use crate::clock::Clock;
use crate::limits;
use crate::store::keys::KeySpace;
use crate::store::{GetOptions, ObjectStore, Payload, PutMode, StoreError, StoreErrorKind};

impl Attestation {
    /// Returns whether it speaks for this target and is not older than `max_age`. One from the future
    /// was made by another clock and does not count, but for the differences that are allowed.
    pub fn is_fresh(&self, now: Timestamp, max_age: Duration, fingerprint: &str) -> bool {
        let signed = |span: Duration| SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
        let age = now.duration_since(self.measured_at);
        self.fingerprint == fingerprint
            && age <= signed(max_age)
            && age >= -signed(limits::MAX_CLOCK_DIFFERENCE)
    }

    /// Returns whether an attestation made now could say nothing else, as far as is known.
    fn may_be_reused(
        &self,
        now: Timestamp,
        fingerprint: &str,
        options: AttestOptions,
        mode: Mode,
    ) -> bool {
        self.format == FORMAT
            && self.is_writable()
            && self.is_fresh(now, limits::ATTEST_MAX_AGE, fingerprint)
            && self.contenders == options.contenders
            && self.mode == mode
            && mode != Mode::Unknown
            && !self.is_undecided_about_its_fence()
    }

    /// Returns whether there is no delete fence only because a check of one ended without an answer, as
    /// the races do on a machine that is too busy for them.
    fn is_undecided_about_its_fence(&self) -> bool {
        let is_undecided = |row: &CheckRow| {
            matches!(
                row.check,
                CheckName::DeleteIfMatch | CheckName::DeleteRace | CheckName::DeleteVersion
            ) && row.end.outcome == Outcome::Unknown
        };
        self.delete_fence == Fence::None && self.checks.iter().any(is_undecided)
    }
}

/// Stores an attestation over the last one of its target.
///
/// # Errors
/// What the store answers; nothing rests on the record being there.
pub async fn save(
    store: &dyn ObjectStore,
    keys: &KeySpace,
    attestation: &Attestation,
) -> Result<(), StoreError> {
    let invalid = |why: String| {
        StoreError::new(
            StoreErrorKind::Rejected,
            "put",
            &attestation.fingerprint,
            why,
        )
    };
    let key = keys
        .attestation(&attestation.fingerprint)
        .map_err(|error| invalid(error.to_string()))?;
    let json =
        serde_json::to_vec_pretty(attestation).map_err(|error| invalid(error.to_string()))?;
    store
        .put(&key, Payload::from(Bytes::from(json)), PutMode::Overwrite)
        .await
        .map(drop)
}

/// Reads the last attestation of a target; `None` where there is none, or none that this version
/// understands.
///
/// # Errors
/// What the store answers, but for "not found".
pub async fn load(target: &Target) -> Result<Option<Attestation>, StoreError> {
    let fingerprint = target.fingerprint();
    let (Some(endpoint), Ok(key)) = (
        target.endpoints.first(),
        target.keys.attestation(&fingerprint),
    ) else {
        return Ok(None);
    };
    match fetch(&endpoint.store, &key, GetOptions::default()).await {
        Ok(bytes) => Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())),
        Err(error) if error.is(StoreErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The last attestation, if it may still be used: the versioning state is asked again, since it changes
/// the mode that was attested.
pub(super) async fn reusable(
    target: &Target,
    clock: &dyn Clock,
    options: AttestOptions,
) -> Option<Attestation> {
    let attestation = load(target).await.ok().flatten()?;
    let store = &target.endpoints.first()?.store;
    let mode = Mode::from(store.versioning().await.ok());
    attestation
        .may_be_reused(clock.now(), &target.fingerprint(), options, mode)
        .then_some(attestation)
}
