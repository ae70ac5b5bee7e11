//! What an event changes.

use super::action::Event;
use super::state::{Action, Journal, Lease, Manifest, Mode, Record, State, Step, Verdict, Why};
use super::{Rule, SaveModel};

impl SaveModel {
    /// Returns the state after `event`, or `None` where it changes nothing.
    pub(super) fn after(&self, last: &State, event: Event) -> Option<State> {
        let mut s = last.clone();
        match event {
            Event::Start(i) => self.start(&mut s, usize::from(i)),
            Event::Dies(i) => s.dead = Some(i),
            Event::StreamLands(i) => {
                s.is_streamed[usize::from(i)] = true;
                s.bodies[usize::from(i)] = i + 1;
            }
            Event::StreamSeen(i) => self.look_or_record(&mut s, usize::from(i)),
            Event::ResultAsked(i) => self.result_asked(&mut s, usize::from(i)),
            Event::ResultLands(i) => {
                let part = self.parts[usize::from(i)];
                s.results[part.chain] = part.result;
            }
            Event::ResultSeen(i) => {
                let part = self.parts[usize::from(i)];
                let is_believed = self.lacks(Rule::ResultsAreCompared);
                let said = if is_believed {
                    part.result
                } else {
                    s.results[part.chain]
                };
                self.result_known(&mut s, usize::from(i), said?);
            }
            Event::OwnChain(i) => self.own_chain(&mut s, usize::from(i)),
            Event::ParentChain(i) => self.parent_chain(&mut s, usize::from(i), false),
            Event::ParentChainOld(i) => {
                self.parent_chain(&mut s, usize::from(i), true);
                if s.savers[usize::from(i)].step != Step::Touch {
                    return None;
                }
            }
            Event::RecordLands(i) => {
                let v = &s.savers[usize::from(i)];
                let chain = self.records_of(self.parts[usize::from(i)].chain);
                s.records[chain][usize::from(v.record)] = Record::Saved(i);
            }
            Event::RecordSeen(i) => self.record_decided(&mut s, usize::from(i)),
            Event::RecordBelieved(i) => {
                let i = usize::from(i);
                if self.lacks(Rule::LostRecordsAreRead) {
                    self.won(&mut s, i);
                } else {
                    // "Lost", so the own body goes first; then it looks who won.
                    s.deletes[i] |= 1 << 7;
                    s.savers[i].has_sent_delete = true;
                    self.record_decided(&mut s, i);
                }
            }
            Event::GetManifest(i) => self.get_manifest(&mut s, usize::from(i)),
            Event::GetManifestOld(i) => s.savers[usize::from(i)].step = Step::Touch,
            Event::GetStaleAbsent(i) => self.finish_other(&mut s, usize::from(i)),
            Event::GetStaleLive(i) => self.acknowledge(&mut s, usize::from(i)),
            Event::HeadBody(i) => self.head_body(&mut s, usize::from(i)),
            Event::Touch(i) => self.touch(&mut s, usize::from(i)),
            Event::BuryInstead(i) => {
                let v = &mut s.savers[usize::from(i)];
                v.step = Step::Look;
                bury(&mut s.manifests[usize::from(v.artifact)], Why::Abandoned);
            }
            Event::BodyLands {
                artifact,
                by,
                reply,
            } => {
                let (x, i) = (usize::from(artifact), usize::from(by));
                s.body_puts[x] &= !(1 << i);
                if s.bodies[x] == 0 {
                    s.bodies[x] = by + 1;
                }
                if reply && s.savers[i].step == Step::Body {
                    self.send_manifest(&mut s, i, by + 1);
                } else if reply {
                    s.savers[i].has_own_body = true;
                }
            }
            Event::BodySeen(i) => {
                let generation = s.bodies[usize::from(s.savers[usize::from(i)].artifact)];
                self.send_manifest(&mut s, usize::from(i), generation);
            }
            Event::BodyAgain(i) => {
                let artifact = s.savers[usize::from(i)].artifact;
                s.body_puts[usize::from(artifact)] |= 1 << i;
            }
            Event::ManifestLands(i) => {
                let v = &s.savers[usize::from(i)];
                s.manifests[usize::from(v.artifact)] = Manifest::Live(v.generation);
            }
            Event::ManifestSeen(i) => self.manifest_seen(&mut s, usize::from(i)),
            Event::DeleteOwn(i) => self.delete_own(&mut s, usize::from(i)),
            Event::SkipAhead(i) => self.next_record(&mut s, usize::from(i)),
            Event::DeleteLands {
                artifact,
                generation,
            } => {
                let x = usize::from(artifact);
                s.deletes[x] &= !(1 << generation);
                if generation == 7 || s.bodies[x] == generation {
                    s.bodies[x] = 0;
                }
            }
            Event::PrepareReads(x) => s.leases[usize::from(x)] = Lease::Seen,
            Event::Prepared(x) => s.leases[usize::from(x)] = Lease::Leased,
            Event::Released(x) => s.leases[usize::from(x)] = Lease::Released,
            Event::Condemned(x) => s.journal[usize::from(x)] = Journal::Condemned(Why::Ttl),
            Event::TombstoneLands(x) => {
                let x = usize::from(x);
                if let Journal::Condemned(why) = s.journal[x] {
                    s.manifests[x] = Manifest::Tombstone(why);
                    s.has_old_version[x] = self.is_versioned;
                }
            }
            Event::BurySent(x) => s.burials[usize::from(x)] = true,
            Event::BuryLands(x) => {
                let x = usize::from(x);
                s.burials[x] = false;
                if self.lacks(Rule::BurialCreates) {
                    s.manifests[x] = Manifest::Absent;
                }
                bury(&mut s.manifests[x], Why::Abandoned);
            }
            Event::SweepBody(x) => {
                let x = usize::from(x);
                s.bodies[x] = 0;
                if self.lacks(Rule::ManifestKeyStaysTaken) {
                    s.manifests[x] = Manifest::Absent;
                }
            }
            Event::SweepVersion(x) => s.has_old_version[usize::from(x)] = false,
            Event::Deleted(x) => {
                if let Journal::Condemned(why) = s.journal[usize::from(x)] {
                    s.journal[usize::from(x)] = Journal::Deleted(why);
                }
            }
            Event::UnlicensedDelete(x) => s.deletes[usize::from(x)] |= 1 << 7,
            Event::Erase(x) => s.erase = Some(x),
            Event::EraseCondemns(x) => {
                s.journal[usize::from(x)] = Journal::Condemned(Why::Erased);
            }
            Event::ErasedRecordLands { record } => {
                let target = usize::from(s.erase?);
                let chain = self.records_of(self.parts[target].chain);
                s.records[chain][usize::from(record)] = Record::Erased;
            }
            Event::EraseBuries(x) => bury(&mut s.manifests[usize::from(x)], Why::Erased),
            Event::EraseAcknowledged => s.is_erased = true,
        }
        (s != *last).then_some(s)
    }

    /// What the own session has decided on a result, else its parent; else the own record goes out.
    fn result_asked(&self, s: &mut State, i: usize) {
        let part = self.parts[i];
        let is_taken = !self.lacks(Rule::ParentResultsAreTaken);
        let parent = self.parent_of(part.chain).filter(|_| is_taken);
        let inherited = parent.and_then(|parent| s.results[parent]);
        match s.results[part.chain].or(inherited) {
            Some(action) => self.result_known(s, i, action),
            None if part.result == Some(Action::Spilled) => {
                s.savers[i].verdict = Verdict::Open;
                self.start_save(s, i);
            }
            None => s.savers[i].verdict = Verdict::Sent,
        }
    }

    fn delete_own(&self, s: &mut State, i: usize) {
        s.savers[i].has_sent_delete = true;
        if self.parts[i].mode == Mode::Bare && s.savers[i].step == Step::Body {
            Self::end(s, i, Step::Failed); // it gives up
        }
        s.deletes[i] |= match s.bodies[i] {
            _ if !self.is_versioned => 1 << 7,
            0 => 0,
            generation => 1 << generation,
        };
    }
}

/// A create-only tombstone.
fn bury(manifest: &mut Manifest, why: Why) {
    if *manifest == Manifest::Absent {
        *manifest = Manifest::Tombstone(why);
    }
}
