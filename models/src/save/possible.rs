//! Which events can happen in a state.

use super::action::Event;
use super::erase::Next;
use super::state::{Journal, Lease, Manifest, Mode, Record, State, Step, Verdict};
use super::{Rule, SaveModel};

impl SaveModel {
    pub(super) fn possible(&self, s: &State, out: &mut Vec<Event>) {
        for i in self.artifacts() {
            let is_dead = s.dead == Some(i as u8);
            self.landings(s, i, out);
            if !is_dead {
                self.steps(s, i, out);
            }
            let is_busy =
                !matches!(s.savers[i].step, Step::Idle) && !s.savers[i].step.is_answered();
            let is_last = i + 1 == self.parts.len();
            if self.retries && s.dead.is_none() && !is_last && is_busy {
                out.push(Event::Dies(i as u8));
            }
        }
        for artifact in self.artifacts() {
            self.requests_of(s, artifact, out);
            self.collector(s, artifact, out);
        }
        self.eraser(s, out);
    }

    /// What a saver has on the wire, whether it lives or not.
    fn landings(&self, s: &State, i: usize, out: &mut Vec<Event>) {
        let v = &s.savers[i];
        let k = i as u8;
        let records = &s.records[self.records_of(self.parts[i].chain)];
        match v.step {
            Step::Stream if !s.is_streamed[i] => out.push(Event::StreamLands(k)),
            Step::Record if records[usize::from(v.record)] == Record::Empty => {
                out.push(Event::RecordLands(k));
            }
            Step::Manifest => {
                let stands = s.manifests[usize::from(v.artifact)];
                let overwrites = self.lacks(Rule::ManifestsAreCreated);
                let is_over = overwrites && matches!(stands, Manifest::Tombstone(_));
                if stands == Manifest::Absent || is_over {
                    out.push(Event::ManifestLands(k));
                }
            }
            _ => {}
        }
        if v.verdict == Verdict::Sent && s.results[self.parts[i].chain].is_none() {
            out.push(Event::ResultLands(k));
        }
    }

    /// What a living saver does next.
    fn steps(&self, s: &State, i: usize, out: &mut Vec<Event>) {
        let v = &s.savers[i];
        let k = i as u8;
        match v.verdict {
            Verdict::Asking => out.push(Event::ResultAsked(k)),
            Verdict::Sent if s.results[self.parts[i].chain].is_some() => {
                out.push(Event::ResultSeen(k));
            }
            Verdict::None | Verdict::Open | Verdict::Sent | Verdict::Known(_) => {}
        }
        if self.may_delete_own(s, i) {
            out.push(Event::DeleteOwn(k));
        }
        if self.waits_for_result(s, i) {
            return;
        }
        let artifact = usize::from(v.artifact);
        match v.step {
            Step::Idle if self.may_start(s, i) => out.push(Event::Start(k)),
            Step::Stream if s.bodies[i] != 0 => out.push(Event::StreamSeen(k)),
            Step::Own => out.push(Event::OwnChain(k)),
            Step::Parent => {
                out.push(Event::ParentChain(k));
                if self.touches {
                    out.push(Event::ParentChainOld(k));
                }
            }
            Step::Record => self.record_steps(s, i, out),
            Step::Look => self.look_steps(s, i, out),
            Step::Head => out.push(Event::HeadBody(k)),
            Step::Touch => out.push(Event::Touch(k)),
            Step::Bury => out.push(Event::BuryInstead(k)),
            Step::Body if s.bodies[artifact] != 0 => out.push(Event::BodySeen(k)),
            Step::Body if s.body_puts[artifact] & (1 << i) == 0 => out.push(Event::BodyAgain(k)),
            Step::Manifest if s.manifests[artifact] != Manifest::Absent => {
                out.push(Event::ManifestSeen(k));
            }
            _ => {}
        }
        let waits = matches!(v.step, Step::Head) || v.step == Step::Body && artifact != i;
        if self.lacks(Rule::UnfinishedIsFinished) && waits {
            out.push(Event::SkipAhead(k));
        }
    }

    fn may_start(&self, s: &State, i: usize) -> bool {
        let has_ended =
            |other: usize| s.dead == Some(other as u8) || s.savers[other].step == Step::Failed;
        let is_last = i + 1 == self.parts.len();
        !self.retries || !is_last || self.artifacts().any(|other| other != i && has_ended(other))
    }

    fn record_steps(&self, s: &State, i: usize, out: &mut Vec<Event>) {
        let v = &s.savers[i];
        let records = &s.records[self.records_of(self.parts[i].chain)];
        if records[usize::from(v.record)] == Record::Empty {
            return;
        }
        if !self.lacks(Rule::LostRecordsAreRead) {
            out.push(Event::RecordSeen(i as u8));
        }
        if self.lacks(Rule::LostRecordsAreRead) || self.lacks(Rule::CompareBeforeOwnDelete) {
            out.push(Event::RecordBelieved(i as u8));
        }
    }

    fn look_steps(&self, s: &State, i: usize, out: &mut Vec<Event>) {
        let artifact = usize::from(s.savers[i].artifact);
        let k = i as u8;
        out.push(Event::GetManifest(k));
        if self.touches && s.is_live(artifact) {
            out.push(Event::GetManifestOld(k));
        }
        let is_stale = self.is_stale || self.lacks(Rule::ReadsSeeWrites);
        if is_stale && s.manifests[artifact] != Manifest::Absent {
            out.push(Event::GetStaleAbsent(k));
            if s.is_tombstone(artifact) && s.is_condemned(artifact) {
                out.push(Event::GetStaleLive(k));
            }
        }
    }

    /// Bodies and DELETEs on the wire, and leases.
    fn requests_of(&self, s: &State, x: usize, out: &mut Vec<Event>) {
        let artifact = x as u8;
        for i in self.artifacts().filter(|i| s.body_puts[x] & (1 << i) != 0) {
            let by = i as u8;
            let v = &s.savers[i];
            out.push(Event::BodyLands {
                artifact,
                by,
                reply: false,
            });
            // A 200 tells the generation; a 412 tells nothing that BodySeen does not.
            let waits_here = v.step == Step::Body && usize::from(v.artifact) == x;
            let waits_beside = x == i && v.step == Step::Record;
            let is_heard = (waits_here || waits_beside) && s.dead != Some(by);
            if s.bodies[x] == 0 && is_heard && !(waits_here && self.waits_for_result(s, i)) {
                out.push(Event::BodyLands {
                    artifact,
                    by,
                    reply: true,
                });
            }
        }
        let on_wire = (0..8).filter(|generation| s.deletes[x] & (1 << generation) != 0);
        out.extend(on_wire.map(|generation| Event::DeleteLands {
            artifact,
            generation,
        }));
        if self.leases {
            match s.leases[x] {
                Lease::None if s.is_acknowledged[x] && s.is_live(x) => {
                    out.push(Event::PrepareReads(artifact));
                }
                Lease::Seen if !s.is_condemned(x) || self.lacks(Rule::PrepareReadsJournal) => {
                    out.push(Event::Prepared(artifact));
                }
                Lease::Leased => out.push(Event::Released(artifact)),
                Lease::None | Lease::Seen | Lease::Released => {}
            }
        }
    }

    fn collector(&self, s: &State, x: usize, out: &mut Vec<Event>) {
        let artifact = x as u8;
        let has_body = s.bodies[x] != 0;
        let is_free = s.leases[x] != Lease::Leased || self.lacks(Rule::LeasesBlockCondemned);
        let is_condemned = matches!(s.journal[x], Journal::Condemned(_));
        if self.condemns && s.journal[x] == Journal::Live && is_free && s.is_live(x) {
            out.push(Event::Condemned(artifact));
        }
        if is_condemned && s.is_live(x) && !self.lacks(Rule::TombstoneOverwrites) {
            out.push(Event::TombstoneLands(artifact));
        }
        if has_body && s.manifests[x] == Manifest::Absent && !s.burials[x] {
            out.push(Event::BurySent(artifact));
        }
        if s.burials[x] {
            out.push(Event::BuryLands(artifact));
        }
        let is_closed =
            self.lacks(Rule::LateBodiesGo) && matches!(s.journal[x], Journal::Deleted(_));
        if has_body && s.is_tombstone(x) && !is_closed {
            out.push(Event::SweepBody(artifact));
        }
        if s.has_old_version[x] && s.is_tombstone(x) {
            out.push(Event::SweepVersion(artifact));
        }
        if self.appends_deleted && !has_body && s.is_tombstone(x) && is_condemned {
            out.push(Event::Deleted(artifact));
        }
        let is_absent = s.manifests[x] == Manifest::Absent;
        let is_unlicensed = self.lacks(Rule::OrphansAreBuriedFirst) && is_absent
            || self.lacks(Rule::BurialIsAwaited) && s.burials[x]
            || self.lacks(Rule::LostBurialIsNoLicence) && s.burials[x] && !is_absent
            || self.lacks(Rule::TombstoneBeforeDelete) && is_condemned
            || self.lacks(Rule::TombstoneOverwrites) && is_condemned;
        if has_body && s.deletes[x] == 0 && is_unlicensed {
            out.push(Event::UnlicensedDelete(artifact));
        }
    }

    fn eraser(&self, s: &State, out: &mut Vec<Event>) {
        let Some(target) = s.erase else {
            if self.erases {
                let can_be = |x: &usize| s.is_acknowledged[*x] && self.parts[*x].mode != Mode::Bare;
                out.extend(
                    self.artifacts()
                        .filter(can_be)
                        .map(|x| Event::Erase(x as u8)),
                );
            }
            return;
        };
        if s.is_erased {
            return;
        }
        match self.erase_next(s, usize::from(target)) {
            Next::Record(record) => out.push(Event::ErasedRecordLands {
                record: record as u8,
            }),
            Next::Artifact(x) if s.manifests[x] == Manifest::Absent => {
                out.push(Event::EraseBuries(x as u8));
            }
            Next::Artifact(x) if s.leases[x] != Lease::Leased => {
                out.push(Event::EraseCondemns(x as u8));
            }
            Next::Artifact(_) | Next::Wait => {} // 409, or it is still waiting
            Next::Done => out.push(Event::EraseAcknowledged),
        }
    }
}
