//! What a saver does with what it learns.

use super::chain::ChainEnd;
use super::state::{Action, Journal, Manifest, Mode, RECORDS, Record, State, Step, Verdict, Why};
use super::{Rule, SaveModel};

impl SaveModel {
    /// The save begins. What the checker must remember of this moment is remembered here.
    pub(super) fn start(&self, s: &mut State, i: usize) {
        let part = self.parts[i];
        let is_alone = self.artifacts().all(|other| {
            let step = s.savers[other].step;
            other == i
                || self.parts[other].chain != part.chain
                || step == Step::Idle
                || step.is_answered()
        });
        let own = self.chain_end(s, part.chain);
        let parent = self.parent_of(part.chain);
        if let Some(parent) = parent
            && is_alone
            && own == (ChainEnd::Free { record: 0 })
            && let ChainEnd::Live(artifact) = self.chain_end(s, parent)
        {
            s.savers[i].inherits = Some(artifact);
        }
        let erased = s.erase.filter(|_| s.is_erased);
        s.savers[i].is_after_erase = erased.is_some_and(|target| {
            let chain = self.parts[usize::from(target)].chain;
            let is_heir =
                parent == Some(chain) && is_alone && own == (ChainEnd::Free { record: 0 });
            chain == part.chain || is_heir
        });
        if part.result.is_none() {
            return self.start_save(s, i);
        }
        let inherited = parent.and_then(|parent| s.results[parent]);
        let frozen = s.results[part.chain].or(inherited).filter(|_| is_alone);
        let v = &mut s.savers[i];
        v.frozen = frozen;
        v.verdict = if parent.is_some() {
            Verdict::Asking
        } else {
            Verdict::Sent
        };
        v.step = Step::Result;
        if part.result == Some(Action::Spilled) && parent.is_none() {
            s.savers[i].verdict = Verdict::Open;
            self.start_save(s, i);
        }
    }

    /// The body, and where the session has a parent a look at the records first.
    pub(super) fn start_save(&self, s: &mut State, i: usize) {
        let part = self.parts[i];
        match part.mode {
            Mode::Bare => {
                s.body_puts[i] |= 1 << i;
                s.savers[i].artifact = i as u8;
                s.savers[i].step = Step::Body;
            }
            Mode::Streamed => s.savers[i].step = Step::Stream,
            Mode::Known => self.look_or_record(s, i),
        }
    }

    /// The digest is known: look what the sessions have decided, or ask for the record at once.
    pub(super) fn look_or_record(&self, s: &mut State, i: usize) {
        if self.parent_of(self.parts[i].chain).is_some() {
            s.savers[i].step = Step::Own;
        } else {
            self.send_record(s, i, 0);
        }
    }

    fn send_record(&self, s: &mut State, i: usize, record: u8) {
        if usize::from(record) >= RECORDS {
            return Self::end(s, i, Step::Exhausted);
        }
        if self.parts[i].mode == Mode::Known && !s.savers[i].has_own_body {
            s.body_puts[i] |= 1 << i;
        }
        let v = &mut s.savers[i];
        v.step = Step::Record;
        v.record = record;
        v.artifact = 0;
        v.generation = 0;
    }

    /// The result is known: go on, begin, or answer.
    pub(super) fn result_known(&self, s: &mut State, i: usize, action: Action) {
        let v = &mut s.savers[i];
        v.verdict = Verdict::Known(action);
        match action {
            Action::Spilled if v.step == Step::Result => self.start_save(s, i),
            Action::Spilled => {}
            // A manifest that is on the wire may still land: the step stays, and it is answered.
            Action::Inline if v.step == Step::Manifest => {}
            Action::Inline => Self::end(s, i, Step::Inline),
        }
    }

    /// Returns whether the saver takes no step but waits for its result.
    pub(super) fn waits_for_result(&self, s: &State, i: usize) -> bool {
        match s.savers[i].verdict {
            Verdict::None | Verdict::Open | Verdict::Known(Action::Spilled) => false,
            Verdict::Known(Action::Inline) => true,
            Verdict::Asking => true,
            Verdict::Sent => !self.lacks(Rule::AnswerWaitsForResult),
        }
    }

    pub(super) fn own_chain(&self, s: &mut State, i: usize) {
        match self.chain_end(s, self.parts[i].chain) {
            ChainEnd::Live(artifact) => self.look_at(s, i, artifact),
            ChainEnd::Unfinished { record, artifact } => {
                s.savers[i].record = record;
                self.look_at(s, i, artifact);
            }
            ChainEnd::Erased => Self::end(s, i, Step::Gone),
            ChainEnd::Free { record } if self.lacks(Rule::ParentsAreRead) => {
                self.send_record(s, i, record);
            }
            ChainEnd::Free { record } => {
                let v = &mut s.savers[i];
                v.step = Step::Parent;
                v.record = record;
            }
        }
    }

    fn look_at(&self, s: &mut State, i: usize, artifact: u8) {
        let v = &mut s.savers[i];
        v.step = Step::Look;
        v.artifact = artifact;
    }

    pub(super) fn parent_chain(&self, s: &mut State, i: usize, is_old: bool) {
        let Some(parent) = self.parent_of(self.parts[i].chain) else {
            return;
        };
        let record = s.savers[i].record;
        match self.chain_end(s, parent) {
            ChainEnd::Live(artifact) => {
                s.savers[i].artifact = artifact;
                if is_old {
                    s.savers[i].step = Step::Touch;
                } else {
                    self.acknowledge(s, i);
                }
            }
            ChainEnd::Erased if !self.lacks(Rule::ParentErasedIsFinal) => {
                Self::end(s, i, Step::Gone);
            }
            ChainEnd::Unfinished { .. } if self.lacks(Rule::ParentUnfinishedIsPassed) => {
                Self::end(s, i, Step::Failed);
            }
            ChainEnd::Free { record }
                if record > 0 && self.lacks(Rule::ParentCollectedIsPassed) =>
            {
                Self::end(s, i, Step::Gone);
            }
            ChainEnd::Erased | ChainEnd::Unfinished { .. } | ChainEnd::Free { .. } => {
                self.send_record(s, i, record);
            }
        }
    }

    pub(super) fn send_manifest(&self, s: &mut State, i: usize, generation: u8) {
        let v = &mut s.savers[i];
        v.step = Step::Manifest;
        v.generation = generation;
        v.has_sent_manifest |= usize::from(v.artifact) == i;
        if v.verdict == Verdict::Open {
            v.verdict = Verdict::Sent;
        }
    }

    /// The record names its own artifact: on to the body, or straight to the manifest.
    pub(super) fn won(&self, s: &mut State, i: usize) {
        s.savers[i].artifact = i as u8;
        let has_body = s.savers[i].has_own_body
            || self.parts[i].mode == Mode::Streamed
            || self.lacks(Rule::BodyBeforeManifest);
        if has_body {
            self.send_manifest(s, i, i as u8 + 1);
        } else {
            s.savers[i].step = Step::Body;
        }
    }

    /// What a decided record says.
    pub(super) fn record_decided(&self, s: &mut State, i: usize) {
        let chain = self.records_of(self.parts[i].chain);
        match s.records[chain][usize::from(s.savers[i].record)] {
            Record::Saved(artifact) if usize::from(artifact) == i => self.won(s, i),
            Record::Saved(artifact) => self.look_at(s, i, artifact),
            Record::Erased => Self::end(s, i, Step::Gone),
            Record::Empty => {}
        }
    }

    /// The manifest behind another's record is not there: finish that save.
    pub(super) fn finish_other(&self, s: &mut State, i: usize) {
        let artifact = usize::from(s.savers[i].artifact);
        if self.parts[i].mode == Mode::Known {
            s.body_puts[artifact] |= 1 << i;
            s.savers[i].step = Step::Body;
        } else {
            s.savers[i].step = Step::Head;
        }
    }

    pub(super) fn head_body(&self, s: &mut State, i: usize) {
        let generation = s.bodies[usize::from(s.savers[i].artifact)];
        if generation != 0 {
            self.send_manifest(s, i, generation);
        } else {
            s.savers[i].step = Step::Bury;
        }
    }

    pub(super) fn touch(&self, s: &mut State, i: usize) {
        match s.journal[usize::from(s.savers[i].artifact)] {
            Journal::Live => self.acknowledge(s, i),
            Journal::Condemned(why) | Journal::Deleted(why) => self.met_tombstone(s, i, why),
        }
    }

    pub(super) fn met_tombstone(&self, s: &mut State, i: usize, why: Why) {
        let v = &s.savers[i];
        let artifact = usize::from(v.artifact);
        let part = self.parts[i];
        let is_own = artifact == i && (s.is_recorded(i) || part.mode == Mode::Bare);
        let is_parents = self.parent_of(part.chain) == Some(self.parts[artifact].chain);
        if why == Why::Erased && !self.lacks(Rule::ErasedIsFinal) {
            Self::end(s, i, Step::Gone);
        } else if is_own {
            Self::end(s, i, Step::Failed); // the next try has a fresh artifact id
        } else if is_parents {
            self.send_record(s, i, v.record);
        } else {
            self.next_record(s, i);
        }
    }

    /// What the record names is gone: the next record, under its own artifact id.
    pub(super) fn next_record(&self, s: &mut State, i: usize) {
        if s.savers[i].has_sent_delete {
            s.savers[i].has_own_body = false; // it still has the bytes: they are sent again
        }
        self.send_record(s, i, s.savers[i].record + 1);
    }

    pub(super) fn manifest_seen(&self, s: &mut State, i: usize) {
        match s.manifests[usize::from(s.savers[i].artifact)] {
            Manifest::Live(_) => self.acknowledge(s, i),
            Manifest::Tombstone(_) if self.lacks(Rule::LostManifestsAreRead) => {
                self.acknowledge(s, i);
            }
            Manifest::Tombstone(Why::Abandoned) => Self::end(s, i, Step::Failed),
            Manifest::Tombstone(why) => self.met_tombstone(s, i, why),
            Manifest::Absent => {}
        }
    }

    pub(super) fn get_manifest(&self, s: &mut State, i: usize) {
        match s.manifests[usize::from(s.savers[i].artifact)] {
            Manifest::Live(_) => self.acknowledge(s, i),
            Manifest::Absent => self.finish_other(s, i),
            Manifest::Tombstone(Why::Abandoned) if self.lacks(Rule::AbandonedMovesOn) => {
                Self::end(s, i, Step::Failed);
            }
            Manifest::Tombstone(why) => self.met_tombstone(s, i, why),
        }
    }

    pub(super) fn acknowledge(&self, s: &mut State, i: usize) {
        let v = &mut s.savers[i];
        if v.verdict == Verdict::Open {
            // A replay: the result is decided first, and then the manifest is read again.
            v.verdict = Verdict::Sent;
            if !self.lacks(Rule::AnswerWaitsForResult) {
                return;
            }
        }
        v.step = Step::Acknowledged;
        v.generation = 0;
        s.is_acknowledged[usize::from(v.artifact)] = true;
        s.is_erase_broken |= v.is_after_erase;
    }

    pub(super) fn end(s: &mut State, i: usize, step: Step) {
        let v = &mut s.savers[i];
        v.step = step;
        (v.artifact, v.generation, v.record) = (0, 0, 0);
    }

    /// Returns whether the saver may delete its own body now.
    pub(super) fn may_delete_own(&self, s: &State, i: usize) -> bool {
        let v = &s.savers[i];
        let is_sent = v.has_sent_manifest && !self.lacks(Rule::OwnDeleteNotAfterManifest);
        if v.has_sent_delete || is_sent {
            return false;
        }
        if self.parts[i].mode == Mode::Bare {
            let is_late = v.has_sent_manifest && v.step == Step::Manifest;
            return matches!(v.step, Step::Body | Step::Failed) || is_late;
        }
        if matches!(v.step, Step::Idle | Step::Result | Step::Stream) || s.is_recorded(i) {
            return false;
        }
        if v.step == Step::Record {
            return self.lacks(Rule::OwnDeleteWaitsForRecords) && v.record > 0;
        }
        let is_own = v.step == Step::Acknowledged && usize::from(v.artifact) == i;
        !is_own && (v.step.is_answered() || self.lacks(Rule::OwnDeleteIsLast))
    }
}
