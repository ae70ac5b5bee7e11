//! What must hold, looked up in the store's true state after every write that takes effect and at every
//! answer: invariants I1 to I9 of the journal, P2 to P6 of saving, and rule R1 on the wire.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use spillbox::artifact::manifest::{Manifest, TombstoneReason};
use spillbox::artifact::save::Saved;
use spillbox::digest::Sha256Digest;
use spillbox::ids::{ArtifactRef, DecisionId, SessionId, SessionKey};
use spillbox::lease::chain::Chain;
use spillbox::lease::entry::ReleaseReason;
use spillbox::lease::journal::Receipt;
use spillbox::lease::names::TransactionId;
use spillbox::lease::state::{ArtifactStatus, Phase, State};
use spillbox::store::keys::{Key, KeyClass};
use spillbox::store::{DeleteFence, ETag, PutMode, StoreErrorKind, VersionId};

use crate::request::Request;
use crate::short::short_key;
use crate::truth::{Stands, Truth};

/// What an owner shows of one transaction. A decide-once register: whatever is in flight, it says one of
/// these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Nothing yet.
    Absent,
    /// The reference.
    Published,
    /// Nothing, for ever.
    Sealed,
    /// Nothing any more.
    Removed,
}

/// A session's journal as it truly is.
#[derive(Debug)]
pub(crate) struct TrueJournal {
    chain: Chain,
    hashes: Vec<Sha256Digest>,
    /// The fold of so many records.
    states: Vec<Arc<State>>,
}

/// What one process has sent to one slot.
#[derive(Debug)]
struct Slot {
    bytes: Sha256Digest,
    unheard: u64,
    may_have_landed: bool,
}

#[derive(Debug, Default)]
struct Known {
    journals: BTreeMap<SessionKey, TrueJournal>,
    owners: BTreeMap<(SessionKey, TransactionId), Shows>,
    slots: BTreeMap<(String, String), Slot>,
    saved: BTreeMap<(SessionKey, spillbox::ids::ArtifactId), Manifest>,
    calls: BTreeMap<(SessionKey, DecisionId), BTreeSet<spillbox::ids::ArtifactId>>,
    erased_calls: BTreeSet<(SessionKey, DecisionId)>,
    erased: BTreeSet<(SessionKey, spillbox::ids::ArtifactId)>,
    /// Bodies that a plain delete met after the bucket had begun to keep versions.
    hidden: BTreeSet<String>,
    /// The manifest that a write is about to meet.
    before: Option<Before>,
    violations: Vec<String>,
}

#[derive(Debug)]
enum Before {
    Absent,
    Live,
    Tombstone(TombstoneReason),
}

#[derive(Debug)]
pub(crate) struct Oracle {
    known: Mutex<Known>,
    /// Whether everything that was written is read.
    reads_writes: bool,
    /// Whether journal records are.
    reads_records: bool,
}

impl Oracle {
    pub(crate) fn new(reads_writes: bool, reads_records: bool) -> Self {
        Self {
            known: Mutex::default(),
            reads_writes,
            reads_records,
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reads_writes(&self) -> bool {
        self.reads_writes
    }

    pub(crate) fn reads_records(&self) -> bool {
        self.reads_records
    }

    pub(crate) fn violation(&self, text: String) {
        self.known().violations.push(text);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.known().violations.clone()
    }

    pub(crate) fn watch(&self, truth: &Truth, session: &SessionId) {
        let key = SessionKey::derive(&truth.tenant, session);
        let chain = Chain::genesis(truth.tenant.clone(), session.clone());
        let states = vec![Arc::clone(chain.state())];
        let journal = TrueJournal {
            chain,
            hashes: Vec::new(),
            states,
        };
        self.known().journals.insert(key, journal);
    }

    /// Records of a session's journal.
    pub(crate) fn len(&self, session: &SessionKey) -> u64 {
        self.known().journals[session].chain.next_seq()
    }

    /// The fold of the first `records` records.
    pub(crate) fn state_of(&self, session: &SessionKey, records: u64) -> Option<Arc<State>> {
        let known = self.known();
        let nth = usize::try_from(records).ok()?;
        known.journals[session].states.get(nth).cloned()
    }

    pub(crate) fn state(&self, session: &SessionKey) -> Arc<State> {
        Arc::clone(self.known().journals[session].chain.state())
    }

    pub(crate) fn hash(&self, session: &SessionKey, seq: u64) -> Option<Sha256Digest> {
        let known = self.known();
        known.journals[session]
            .hashes
            .get(usize::try_from(seq).ok()?)
            .copied()
    }

    pub(crate) fn sessions(&self) -> Vec<SessionKey> {
        self.known().journals.keys().copied().collect()
    }

    /// Whether a body's older versions were hidden by a delete that was on its way while the bucket began
    /// to keep versions.
    pub(crate) fn is_hidden(&self, key: &str) -> bool {
        self.known().hidden.contains(key)
    }

    // R1: one process sends a slot one set of bytes until it has seen it decided.

    pub(crate) fn sends(&self, host: &str, key: &Key, bytes: &Bytes) {
        let mut known = self.known();
        let bytes = Sha256Digest::of(bytes);
        let place = (host.to_owned(), key.as_str().to_owned());
        let slot = known.slots.entry(place).or_insert(Slot {
            bytes,
            unheard: 0,
            may_have_landed: false,
        });
        let is_open = slot.may_have_landed || slot.unheard > 0;
        let breaks = is_open && slot.bytes != bytes;
        *slot = Slot {
            bytes,
            unheard: slot.unheard + 1,
            may_have_landed: slot.may_have_landed,
        };
        if breaks {
            let text = format!("R1: {host} sends other bytes to the undecided slot {key}");
            known.violations.push(text);
        }
    }

    pub(crate) fn hears(&self, host: &str, key: &Key, error: Option<StoreErrorKind>) {
        let mut known = self.known();
        let place = (host.to_owned(), key.as_str().to_owned());
        let Some(slot) = known.slots.get_mut(&place) else {
            return;
        };
        slot.unheard -= 1;
        match error {
            None | Some(StoreErrorKind::AlreadyExists) => {
                known.slots.remove(&place);
            }
            Some(kind) => slot.may_have_landed |= kind.is_undecided(),
        }
    }

    /// A process has read what stands in a slot.
    pub(crate) fn sees(&self, host: &str, key: &Key) {
        let mut known = self.known();
        known
            .slots
            .remove(&(host.to_owned(), key.as_str().to_owned()));
    }

    // Writes.

    pub(crate) fn before(&self, truth: &Truth, host: &str, request: &Request, key: &Key) {
        let class = truth.keys.class_of(key.as_str());
        let name = short_key(&truth.keys, key.as_str());
        let stands = (class == KeyClass::Manifest)
            .then(|| truth.artifact_of(key.as_str()))
            .flatten()
            .map(|(artifact, _)| truth.manifest(&artifact));
        let mut known = self.known();
        known.before = stands.map(|stands| match stands {
            Stands::Live(_) => Before::Live,
            Stands::Tombstone(found) => Before::Tombstone(found.tombstone),
            Stands::Nothing | Stands::Garbage(_) => Before::Absent,
        });
        let is_create = matches!(request, Request::Put(_, _, PutMode::CreateIfAbsent));
        let creates_only = matches!(
            class,
            KeyClass::Journal
                | KeyClass::Checkpoint
                | KeyClass::CallRecord
                | KeyClass::Turn
                | KeyClass::Session
        );
        if creates_only && !is_create {
            known
                .violations
                .push(format!("I4: {host} sends {} {name}", request.name()));
        }
        if class == KeyClass::Manifest
            && matches!(
                request,
                Request::Delete(_, DeleteFence::None | DeleteFence::IfMatch(_))
            )
        {
            known
                .violations
                .push(format!("P: {host} frees the manifest key {name}"));
        }
        if class == KeyClass::Body
            && matches!(
                request,
                Request::Put(_, _, PutMode::Overwrite | PutMode::ReplaceIfMatch(_))
            )
        {
            known
                .violations
                .push(format!("P: {host} overwrites the body {name}"));
        }
        if class == KeyClass::Body
            && matches!(
                request,
                Request::Delete(_, DeleteFence::None | DeleteFence::IfMatch(_))
            )
            && truth.is_versioned()
        {
            known.hidden.insert(key.as_str().to_owned());
        }
    }

    pub(crate) fn applied(&self, truth: &Truth, request: &Request, key: &Key) {
        match truth.keys.class_of(key.as_str()) {
            KeyClass::Journal => self.record_landed(truth, key),
            KeyClass::Manifest => self.manifest_changed(truth, request, key),
            KeyClass::Body => {
                if let Some((artifact, _)) = truth.artifact_of(key.as_str()) {
                    self.check_whole(truth, &artifact, "a body changed");
                    self.check_protected(truth, &artifact, "a body changed");
                }
            }
            KeyClass::Format
            | KeyClass::Probe
            | KeyClass::Attest
            | KeyClass::Session
            | KeyClass::CallRecord
            | KeyClass::Turn
            | KeyClass::Checkpoint
            | KeyClass::Plan
            | KeyClass::Report
            | KeyClass::Reconciliation => {}
            KeyClass::Foreign => self.violation(format!("a write to the foreign key {key}")),
        }
    }

    fn record_landed(&self, truth: &Truth, key: &Key) {
        let mut touched = Vec::new();
        {
            let mut guard = self.known();
            let known = &mut *guard;
            let found = known.journals.iter_mut().find_map(|(session, journal)| {
                let seq = truth
                    .keys
                    .seq_of_journal_record(&truth.tenant, session, key.as_str())?;
                Some((*session, journal, seq))
            });
            let Some((session, journal, seq)) = found else {
                known
                    .violations
                    .push(format!("a record of no session: {key}"));
                return;
            };
            if seq != journal.chain.next_seq() {
                known.violations.push(format!(
                    "I3: record {seq} landed beyond {}",
                    journal.chain.next_seq()
                ));
                return;
            }
            let bytes = truth.record(&session, seq).expect("it was just written");
            let earlier = Arc::clone(journal.chain.state());
            let record = match journal.chain.push(&bytes) {
                Ok(record) => record,
                Err(error) => {
                    known
                        .violations
                        .push(format!("I3: record {seq} does not fit: {error}"));
                    return;
                }
            };
            let state = Arc::clone(journal.chain.state());
            journal.hashes.push(journal.chain.head());
            journal.states.push(Arc::clone(&state));
            if state.is_suspect() && !earlier.is_suspect() {
                known.violations.push(format!(
                    "I3: an entry of record {seq} has no effect: {:?}",
                    record.entries
                ));
            }
            for (artifact_id, after) in state.artifacts() {
                let before = earlier.artifact(artifact_id).map(|record| &record.status);
                if rank(Some(&after.status)) < rank(before) {
                    known
                        .violations
                        .push(format!("I8: {artifact_id} came back in record {seq}"));
                }
                if !matches!(after.status, ArtifactStatus::Live) && state.is_protected(artifact_id)
                {
                    known.violations.push(format!(
                        "I1: {artifact_id} is leased and condemned in record {seq}"
                    ));
                }
                if after.last_seq == seq && state.is_protected(artifact_id) {
                    touched.push(ArtifactRef {
                        session_key: session,
                        artifact_id,
                    });
                }
            }
            let Known {
                owners, violations, ..
            } = known;
            for ((of, transaction), shows) in owners.iter() {
                if *of == session {
                    let phase = state.lease(transaction).map(|lease| lease.phase);
                    violations.extend(contradiction(transaction, *shows, phase));
                }
            }
        }
        for artifact in touched {
            self.check_protected(truth, &artifact, "a lease was appended");
        }
    }

    fn manifest_changed(&self, truth: &Truth, request: &Request, key: &Key) {
        let Some((artifact, _)) = truth.artifact_of(key.as_str()) else {
            return self.violation(format!("a manifest of no artifact: {key}"));
        };
        let name = short_key(&truth.keys, key.as_str());
        let stands = truth.manifest(&artifact);
        let before = self.known().before.take();
        let status = self.status(&artifact);
        let is_delete = matches!(request, Request::Delete(..));
        match (before, &stands) {
            (_, Stands::Garbage(error)) => self.violation(format!("{name} holds garbage: {error}")),
            (Some(Before::Live | Before::Tombstone(_)), Stands::Nothing) => {
                self.violation(format!("P: the manifest key {name} is free again"));
            }
            (_, Stands::Nothing) => {}
            (Some(Before::Absent), Stands::Live(manifest)) if !is_delete => {
                let known = self.known();
                let is_erased = manifest
                    .head
                    .decision_id
                    .is_some_and(|did| known.erased_calls.contains(&(artifact.session_key, did)));
                drop(known);
                if is_erased {
                    self.violation(format!("P4: {name} went live after its call was erased"));
                }
            }
            (_, Stands::Live(_)) if is_delete => {
                if !matches!(status, None | Some(ArtifactStatus::Live)) {
                    self.violation(format!("P4: an older live {name} came to light"));
                }
            }
            (_, Stands::Live(_)) => {
                self.violation(format!("P: {name} was overwritten by a live manifest"))
            }
            (Some(Before::Live), Stands::Tombstone(_))
                if matches!(status, None | Some(ArtifactStatus::Live)) =>
            {
                self.violation(format!(
                    "I6: {name} was buried, and its journal has not condemned it"
                ));
            }
            (Some(Before::Tombstone(TombstoneReason::Erased)), Stands::Tombstone(now))
                if now.tombstone != TombstoneReason::Erased =>
            {
                self.violation(format!("P4: {name} is not erased any more"));
            }
            (_, Stands::Tombstone(_)) => {}
        }
        self.check_whole(truth, &artifact, "a manifest changed");
        self.check_protected(truth, &artifact, "a manifest changed");
    }

    fn status(&self, artifact: &ArtifactRef) -> Option<ArtifactStatus> {
        let known = self.known();
        let journal = known.journals.get(&artifact.session_key)?;
        let record = journal.chain.state().artifact(artifact.artifact_id)?;
        Some(record.status.clone())
    }

    /// Whether the journal has condemned it, or more.
    pub(crate) fn is_condemned(&self, artifact: &ArtifactRef) -> bool {
        matches!(
            self.status(artifact),
            Some(ArtifactStatus::Condemned(_) | ArtifactStatus::Deleted(_))
        )
    }

    /// P5: a live manifest has its body.
    fn check_whole(&self, truth: &Truth, artifact: &ArtifactRef, when: &str) {
        let Stands::Live(manifest) = truth.manifest(artifact) else {
            return;
        };
        let body = &manifest.head.body;
        let recorded = body.version_id.clone().map(VersionId);
        let is_its_body = truth.body(artifact).is_some_and(|meta| {
            meta.etag == ETag(body.etag.clone())
                && meta.size_bytes == body.size_bytes
                && VersionId::generation(recorded.as_ref())
                    == VersionId::generation(meta.version_id.as_ref())
        });
        if !is_its_body {
            self.violation(format!("P5: {artifact} is live without its body ({when})"));
        }
    }

    /// I1: what a lease protects is there.
    pub(crate) fn check_protected(&self, truth: &Truth, artifact: &ArtifactRef, when: &str) {
        let state = {
            let known = self.known();
            let Some(journal) = known.journals.get(&artifact.session_key) else {
                return;
            };
            Arc::clone(journal.chain.state())
        };
        if !state.is_protected(artifact.artifact_id) {
            return;
        }
        if !matches!(truth.manifest(artifact), Stands::Live(_)) || truth.body(artifact).is_none() {
            self.violation(format!("I1: {artifact} is leased and gone ({when})"));
        }
    }

    // Answers.

    /// I2: what is acknowledged stands.
    pub(crate) fn acknowledged(&self, session: &SessionKey, receipt: &Receipt, what: &str) {
        let stands = self.hash(session, receipt.seq);
        if stands != Some(receipt.sha256) {
            let seq = receipt.seq;
            self.violation(format!(
                "I2: {what} was acknowledged with record {seq}, which is not there"
            ));
        }
    }

    /// P2, P3, P6: a save was answered.
    pub(crate) fn saved(&self, truth: &Truth, saved: &Saved, digest: &Sha256Digest, is_fork: bool) {
        let head = &saved.manifest.head;
        let artifact = head.artifact_ref();
        if head.body.sha256 != *digest {
            self.violation(format!("P6: the receipt of {artifact} is of other bytes"));
        }
        let is_live = matches!(truth.manifest(&artifact), Stands::Live(_));
        if !is_live && !self.is_condemned(&artifact) {
            self.violation(format!("P2: {artifact} was acknowledged and is not there"));
        }
        let place = (artifact.session_key, artifact.artifact_id);
        let mut known = self.known();
        let first = known
            .saved
            .entry(place)
            .or_insert_with(|| Manifest::clone(&saved.manifest));
        if *first != *saved.manifest {
            known
                .violations
                .push(format!("P3: two receipts of {artifact} differ"));
        }
        let Some(did) = head.decision_id.filter(|_| !is_fork) else {
            return;
        };
        let named = known.calls.entry((artifact.session_key, did)).or_default();
        named.insert(artifact.artifact_id);
        let named = named.clone();
        drop(known);
        let session_key = artifact.session_key;
        let live = named.into_iter().filter(|artifact_id| {
            !self.is_condemned(&ArtifactRef {
                session_key,
                artifact_id: *artifact_id,
            })
        });
        let live: Vec<_> = live.collect();
        if live.len() > 1 {
            self.violation(format!("P3: one call has the receipts {live:?}"));
        }
    }

    /// P4: an erasure was answered.
    pub(crate) fn erased(&self, truth: &Truth, artifact: &ArtifactRef, did: Option<DecisionId>) {
        let mut known = self.known();
        known
            .erased
            .insert((artifact.session_key, artifact.artifact_id));
        let mut gone = BTreeSet::from([artifact.artifact_id]);
        if let Some(did) = did {
            known.erased_calls.insert((artifact.session_key, did));
            gone.extend(
                known
                    .calls
                    .get(&(artifact.session_key, did))
                    .into_iter()
                    .flatten(),
            );
        }
        drop(known);
        for artifact_id in gone {
            let artifact = ArtifactRef {
                session_key: artifact.session_key,
                artifact_id,
            };
            if !matches!(truth.manifest(&artifact), Stands::Tombstone(_)) {
                self.violation(format!("P4: {artifact} was erased and has no tombstone"));
            }
            let key = truth.keys.manifest(&truth.tenant, &artifact);
            if truth.versions(key.as_str()).len() > 1 {
                self.violation(format!(
                    "P4: {artifact} was erased and an older manifest is left"
                ));
            }
        }
    }

    pub(crate) fn is_erased(&self, artifact: &ArtifactRef) -> bool {
        let place = (artifact.session_key, artifact.artifact_id);
        self.known().erased.contains(&place)
    }

    pub(crate) fn is_erased_call(&self, session: &SessionKey, did: &DecisionId) -> bool {
        self.known().erased_calls.contains(&(*session, *did))
    }

    // Owners.

    pub(crate) fn shows(&self, session: &SessionKey, transaction: &TransactionId) -> Shows {
        let known = self.known();
        let shows = known.owners.get(&(*session, transaction.clone()));
        shows.copied().unwrap_or(Shows::Absent)
    }

    /// An owner's register goes from one state to another, if it stands at that one.
    pub(crate) fn moves(
        &self,
        session: &SessionKey,
        transaction: &TransactionId,
        from: Shows,
        to: Shows,
    ) -> bool {
        let mut guard = self.known();
        let known = &mut *guard;
        let shows = known
            .owners
            .entry((*session, transaction.clone()))
            .or_insert(Shows::Absent);
        if *shows != from {
            return false;
        }
        *shows = to;
        let state = known.journals[session].chain.state();
        let phase = state.lease(transaction).map(|lease| lease.phase);
        known
            .violations
            .extend(contradiction(transaction, to, phase));
        true
    }
}

/// I1, I5, I7: what an owner shows and what the journal says.
fn contradiction(
    transaction: &TransactionId,
    shows: Shows,
    phase: Option<Phase>,
) -> Option<String> {
    let rule = match (shows, phase) {
        (Shows::Published, None) => "I2: published on a prepare that is not there",
        (Shows::Published, Some(Phase::Aborted(_))) => "I5: published and aborted",
        (Shows::Published, Some(Phase::Released(ReleaseReason::Removed))) => {
            "I7: published and released"
        }
        (Shows::Published, Some(_)) | (Shows::Absent | Shows::Sealed | Shows::Removed, _) => {
            return None;
        }
    };
    Some(format!("{rule}: {transaction}"))
}

fn rank(status: Option<&ArtifactStatus>) -> u8 {
    match status {
        None | Some(ArtifactStatus::Live) => 0,
        Some(ArtifactStatus::Condemned(_)) => 1,
        Some(ArtifactStatus::Deleted(_)) => 2,
    }
}
