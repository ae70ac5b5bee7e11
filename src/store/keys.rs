//! The only place where keys are built, and the table of what each holds and how long it stays.
//!
//! | Key (after the configured prefix) | Holds | Written | Goes |
//! |---|---|---|---|
//! | `v1/format.json` | format marker, the store's orphan TTL | once | never |
//! | `v1/probe/{random}` | scratch of attestation and clock probes | once | by its writer, else the collector |
//! | `v1/attest/{endpoint_fp}.json` | last attestation | overwritten | never |
//! | `v1/t/{tenant}/s/{skey}` | session descriptor | once | with the session's retirement |
//! | `v1/t/{tenant}/b/{skey}/{aid}` | body: the bytes | once | collected, erased |
//! | `v1/t/{tenant}/a/{skey}/{aid}` | manifest | once, then its tombstone | the tombstone with the session's retirement |
//! | `v1/t/{tenant}/c/{skey}/{did}[.{n}]` | call record | once | with the session's retirement |
//! | `v1/t/{tenant}/d/{skey}/{turn_hash}[.{n}]` | turn decision | once | with the session's retirement |
//! | `v1/t/{tenant}/j/{skey}/{seq:020}` | journal record | once | with the session's retirement |
//! | `v1/t/{tenant}/k/{skey}/{u64::MAX-seq:020}` | checkpoint | once | with the session's retirement |
//! | `v1/gc/plans/{plan_id}/…` | a collection's plan | once | expired by the collector |
//! | `v1/gc/reports/{plan_id}/{run_id}.json` | what an application did | once | expired by the collector |
//! | `v1/gc/reconciliation.json` | what the last reconciliation of all leases left | overwritten | never |
//!
//! No caller text but the tenant (strict pattern) ever stands in a key: no path can be injected, no
//! name can be too long, and no key is a prefix of another key's path.

use std::fmt;

mod class;
mod retention;

pub use class::KeyClass;
pub use retention::Retention;

use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SessionKey, Tenant, TurnHash};

/// A key: `/`-separated segments of `[a-z0-9._-]`, each under 200 bytes; what every store that was
/// measured keeps and lists unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

/// The text is not a key that this product may write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid key `{0}`: segments of [a-z0-9._-] under 200 bytes, none empty, `.` or `..`, at most 400 bytes in all"
)]
pub struct InvalidKeyError(String);

impl Key {
    /// Checks `text`; listings may bring keys that are not ours.
    ///
    /// # Errors
    /// The text is not of our alphabet or shape.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidKeyError> {
        let text = text.into();
        let is_safe = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let segment_ok = |segment: &str| {
            (1..200).contains(&segment.len())
                && segment != "."
                && segment != ".."
                && segment.bytes().all(is_safe)
        };
        if text.len() <= 400 && text.split('/').all(segment_ok) {
            Ok(Self(text))
        } else {
            Err(InvalidKeyError(text))
        }
    }

    /// Returns the key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Builds the keys under one prefix of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpace {
    /// Empty, or segments that end in `/`.
    prefix: String,
}

impl KeySpace {
    /// Takes the configured prefix, with or without slashes at its ends.
    ///
    /// # Errors
    /// A segment is not of the key alphabet.
    pub fn new(prefix: &str) -> Result<Self, InvalidKeyError> {
        let trimmed = prefix.trim_matches('/');
        if trimmed.is_empty() {
            return Ok(Self {
                prefix: String::new(),
            });
        }
        if trimmed.len() > 150 {
            return Err(InvalidKeyError(trimmed.to_owned()));
        }
        Ok(Self {
            prefix: format!("{}/", Key::parse(trimmed)?),
        })
    }

    fn build(&self, rest: fmt::Arguments<'_>) -> Key {
        let text = format!("{}v1/{rest}", self.prefix);
        debug_assert!(Key::parse(text.as_str()).is_ok(), "{text}");
        Key(text)
    }

    /// The prefix of every key of ours.
    pub fn root(&self) -> String {
        format!("{}v1/", self.prefix)
    }

    /// The format marker.
    pub fn format(&self) -> Key {
        self.build(format_args!("format.json"))
    }

    /// A scratch object.
    pub fn probe(&self, random: &uuid::Uuid) -> Key {
        self.build(format_args!("probe/{random}"))
    }

    /// The prefix of all scratch objects.
    pub fn probes(&self) -> String {
        format!("{}v1/probe/", self.prefix)
    }

    /// The last attestation of an endpoint, by its fingerprint (lower-case hex).
    ///
    /// # Errors
    /// The fingerprint is not of the key alphabet.
    pub fn attestation(&self, endpoint_fingerprint: &str) -> Result<Key, InvalidKeyError> {
        Key::parse(format!(
            "{}v1/attest/{endpoint_fingerprint}.json",
            self.prefix
        ))
    }

    /// A session's descriptor.
    pub fn session(&self, tenant: &Tenant, session: &SessionKey) -> Key {
        self.build(format_args!("t/{tenant}/s/{session}"))
    }

    /// An artifact's body.
    pub fn body(&self, tenant: &Tenant, artifact: &ArtifactRef) -> Key {
        let ArtifactRef {
            session_key,
            artifact_id,
        } = artifact;
        self.build(format_args!("t/{tenant}/b/{session_key}/{artifact_id}"))
    }

    /// An artifact's manifest, later its tombstone.
    pub fn manifest(&self, tenant: &Tenant, artifact: &ArtifactRef) -> Key {
        let ArtifactRef {
            session_key,
            artifact_id,
        } = artifact;
        self.build(format_args!("t/{tenant}/a/{session_key}/{artifact_id}"))
    }

    /// The prefix of all manifests of a session; a listing gives the newest artifact first.
    pub fn manifests(&self, tenant: &Tenant, session: &SessionKey) -> String {
        format!("{}v1/t/{tenant}/a/{session}/", self.prefix)
    }

    /// The prefix of all bodies of a session.
    pub fn bodies(&self, tenant: &Tenant, session: &SessionKey) -> String {
        format!("{}v1/t/{tenant}/b/{session}/", self.prefix)
    }

    /// The prefix under which every tenant has its own.
    pub fn tenants(&self) -> String {
        format!("{}v1/t/", self.prefix)
    }

    /// The prefix of all manifests of a tenant.
    pub fn all_manifests(&self, tenant: &Tenant) -> String {
        format!("{}v1/t/{tenant}/a/", self.prefix)
    }

    /// The prefix of all bodies of a tenant.
    pub fn all_bodies(&self, tenant: &Tenant) -> String {
        format!("{}v1/t/{tenant}/b/", self.prefix)
    }

    /// The prefix of all journals of a tenant, one common prefix for each session that has one.
    pub fn all_journals(&self, tenant: &Tenant) -> String {
        format!("{}v1/t/{tenant}/j/", self.prefix)
    }

    /// What the last reconciliation of the whole store left behind.
    pub fn reconciliation(&self) -> Key {
        self.build(format_args!("gc/reconciliation.json"))
    }

    /// Reads tenant and artifact off a body key; `None` for a key that is not one.
    pub fn artifact_of_body(&self, key: &str) -> Option<(Tenant, ArtifactRef)> {
        let rest = key.strip_prefix(&self.tenants())?;
        let (tenant, rest) = rest.split_once("/b/")?;
        let (session_key, artifact_id) = rest.split_once('/')?;
        let artifact = ArtifactRef {
            session_key: session_key.parse().ok()?,
            artifact_id: artifact_id.parse().ok()?,
        };
        Some((tenant.parse().ok()?, artifact))
    }

    /// The root of a collection's plan.
    pub fn gc_plan(&self, plan_id: &uuid::Uuid) -> Key {
        self.build(format_args!("gc/plans/{plan_id}/plan.json"))
    }

    /// Part `part` of a collection's plan.
    pub fn gc_plan_part(&self, plan_id: &uuid::Uuid, part: u64) -> Key {
        self.build(format_args!("gc/plans/{plan_id}/{part:05}.json"))
    }

    /// What the look of a collection's plan saw of the use of quotas.
    pub fn gc_usage(&self, plan_id: &uuid::Uuid) -> Key {
        self.build(format_args!("gc/plans/{plan_id}/usage.json"))
    }

    /// Part `part` of it: sessions.
    pub fn gc_usage_part(&self, plan_id: &uuid::Uuid, part: u64) -> Key {
        self.build(format_args!("gc/plans/{plan_id}/usage-{part:05}.json"))
    }

    /// The prefix of all plans; their names sort by time.
    pub fn gc_plans(&self) -> String {
        format!("{}v1/gc/plans/", self.prefix)
    }

    /// The report of one application of a plan.
    pub fn gc_report(&self, plan_id: &uuid::Uuid, run_id: &uuid::Uuid) -> Key {
        self.build(format_args!("gc/reports/{plan_id}/{run_id}.json"))
    }

    /// The prefix of everything that collections write about themselves.
    pub fn gc_documents(&self) -> String {
        format!("{}v1/gc/", self.prefix)
    }

    /// The prefix of a plan's reports; their names sort by time.
    pub fn gc_reports(&self, plan_id: &uuid::Uuid) -> String {
        format!("{}v1/gc/reports/{plan_id}/", self.prefix)
    }

    /// Incarnation `n` of a call record.
    pub fn call_record(
        &self,
        tenant: &Tenant,
        session: &SessionKey,
        did: &DecisionId,
        n: u32,
    ) -> Key {
        if n == 0 {
            self.build(format_args!("t/{tenant}/c/{session}/{did}"))
        } else {
            self.build(format_args!("t/{tenant}/c/{session}/{did}.{n}"))
        }
    }

    /// Record `n` of a turn's decisions.
    pub fn turn_record(
        &self,
        tenant: &Tenant,
        session: &SessionKey,
        turn: &TurnHash,
        n: u32,
    ) -> Key {
        if n == 0 {
            self.build(format_args!("t/{tenant}/d/{session}/{turn}"))
        } else {
            self.build(format_args!("t/{tenant}/d/{session}/{turn}.{n}"))
        }
    }

    /// Record `seq` of a session's journal.
    pub fn journal_record(&self, tenant: &Tenant, session: &SessionKey, seq: u64) -> Key {
        self.build(format_args!("t/{tenant}/j/{session}/{seq:020}"))
    }

    /// The prefix of a session's journal; a listing gives the oldest record first.
    pub fn journal_records(&self, tenant: &Tenant, session: &SessionKey) -> String {
        format!("{}v1/t/{tenant}/j/{session}/", self.prefix)
    }

    /// Reads the sequence number off a journal key of a session; `None` for a key that is not one.
    pub fn seq_of_journal_record(
        &self,
        tenant: &Tenant,
        session: &SessionKey,
        key: &str,
    ) -> Option<u64> {
        parse_seq(key.strip_prefix(&self.journal_records(tenant, session))?)
    }

    /// The checkpoint through record `seq` of a session's journal.
    pub fn checkpoint(&self, tenant: &Tenant, session: &SessionKey, seq: u64) -> Key {
        let descending = u64::MAX - seq;
        self.build(format_args!("t/{tenant}/k/{session}/{descending:020}"))
    }

    /// The prefix of a session's checkpoints; a listing gives the newest first.
    pub fn checkpoints(&self, tenant: &Tenant, session: &SessionKey) -> String {
        format!("{}v1/t/{tenant}/k/{session}/", self.prefix)
    }

    /// Reads the sequence number off a checkpoint key of a session; `None` for a key that is not one.
    pub fn seq_of_checkpoint(
        &self,
        tenant: &Tenant,
        session: &SessionKey,
        key: &str,
    ) -> Option<u64> {
        let descending = parse_seq(key.strip_prefix(&self.checkpoints(tenant, session))?)?;
        Some(u64::MAX - descending)
    }

    /// Reads the artifact id off a manifest key of a session; `None` for a key that is not one.
    pub fn artifact_of_manifest(
        &self,
        tenant: &Tenant,
        session: &SessionKey,
        key: &str,
    ) -> Option<ArtifactId> {
        key.strip_prefix(&self.manifests(tenant, session))?
            .parse()
            .ok()
    }
}

/// Reads 20 digits; any other spelling of the number is another key.
fn parse_seq(digits: &str) -> Option<u64> {
    let is_ours = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_safe_alphabet() {
        for good in [
            "a",
            "a/b",
            "v1/t/d/j/x/00000000000000000042",
            "a.b_c-d/0",
            &"a".repeat(199),
        ] {
            assert!(Key::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "a/../b",
            "a/./b",
            "A",
            "a b",
            "é",
            "a\\b",
            &"a".repeat(200),
        ] {
            assert!(Key::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_key_is_valid_and_none_is_a_path_prefix_of_another() {
        let space = KeySpace::new("/team-a/spill/").unwrap();
        let tenant: Tenant = "acme".parse().unwrap();
        let session = SessionKey::derive(&tenant, &"s".parse().unwrap());
        let artifact = ArtifactRef {
            session_key: session,
            artifact_id: ArtifactId::new(1, [0; 10]),
        };
        let did: DecisionId = "00000000000000000000000001".parse().unwrap();
        let turn = TurnHash::derive(&tenant, &"s".parse().unwrap(), &"t/1".parse().unwrap());
        let keys = [
            space.format(),
            space.probe(&uuid::Uuid::nil()),
            space.attestation("0a1b").unwrap(),
            space.session(&tenant, &session),
            space.body(&tenant, &artifact),
            space.manifest(&tenant, &artifact),
            space.call_record(&tenant, &session, &did, 0),
            space.call_record(&tenant, &session, &did, 32),
            space.turn_record(&tenant, &session, &turn, 0),
            space.turn_record(&tenant, &session, &turn, 255),
            space.journal_record(&tenant, &session, 0),
            space.journal_record(&tenant, &session, u64::MAX),
            space.checkpoint(&tenant, &session, 0),
            space.checkpoint(&tenant, &session, 10),
            space.gc_plan(&uuid::Uuid::nil()),
            space.gc_plan_part(&uuid::Uuid::nil(), 0),
            space.gc_usage(&uuid::Uuid::nil()),
            space.gc_usage_part(&uuid::Uuid::nil(), 0),
            space.gc_report(&uuid::Uuid::nil(), &uuid::Uuid::nil()),
        ];
        for key in &keys {
            assert!(key.as_str().starts_with("team-a/spill/v1/"));
            assert_eq!(Key::parse(key.as_str()).as_ref(), Ok(key));
            for other in &keys {
                assert!(
                    !other.as_str().starts_with(&format!("{key}/")),
                    "{key} {other}"
                );
            }
        }
        let body = space.body(&tenant, &artifact);
        let named = space.artifact_of_body(body.as_str());
        assert_eq!(named, Some((tenant.clone(), artifact)));
        let manifest = space.manifest(&tenant, &artifact);
        assert_eq!(space.artifact_of_body(manifest.as_str()), None);
        assert_eq!(
            space.artifact_of_manifest(&tenant, &session, manifest.as_str()),
            Some(artifact.artifact_id)
        );
        assert!(KeySpace::new("a//b").is_err() && KeySpace::new("Upper").is_err());
        assert!(KeySpace::new(&"p/".repeat(80)).is_err());
    }
    #[test]
    fn journal_keys_count_up_and_checkpoints_list_the_newest_first() {
        let space = KeySpace::new("p").unwrap();
        let tenant: Tenant = "acme".parse().unwrap();
        let session = SessionKey::derive(&tenant, &"s".parse().unwrap());
        let numbers = [0, 9, 10, 99, 1 << 40, u64::MAX];
        let records = numbers.map(|seq| space.journal_record(&tenant, &session, seq));
        assert!(records.is_sorted());
        assert!(records[2].as_str().ends_with("/00000000000000000010"));
        let checkpoints = numbers.map(|seq| space.checkpoint(&tenant, &session, seq));
        assert!(checkpoints.iter().rev().is_sorted());
        for ((seq, record), checkpoint) in numbers.iter().zip(&records).zip(&checkpoints) {
            let (record, checkpoint) = (record.as_str(), checkpoint.as_str());
            assert_eq!(
                space.seq_of_journal_record(&tenant, &session, record),
                Some(*seq)
            );
            assert_eq!(
                space.seq_of_checkpoint(&tenant, &session, checkpoint),
                Some(*seq)
            );
            assert_eq!(space.seq_of_checkpoint(&tenant, &session, record), None);
        }
        let prefix = space.journal_records(&tenant, &session);
        for bad in [
            "",
            "7",
            "+0000000000000000007",
            "000000000000000000007",
            "99999999999999999999",
        ] {
            let key = format!("{prefix}{bad}");
            assert_eq!(
                space.seq_of_journal_record(&tenant, &session, &key),
                None,
                "{bad}"
            );
        }
    }
}
