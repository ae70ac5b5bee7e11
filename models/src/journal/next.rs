//! What an action changes.

use super::JournalModel;
use super::Rule;
use super::action::Action;
use super::decide::{Decision, View};
use super::entry::{Entry, Record};
use super::host::{Append, Host, Role, Step};
use super::state::{Answer, Put, Slot, State};

impl JournalModel {
    /// Returns the state after `action`, or `None` where it changes nothing.
    pub(super) fn after(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Action::Look(host) => {
                let (mut tail, fold) = s.cold(self.without);
                let h = &s.hosts[usize::from(host)];
                if self.lacks(Rule::ColdOpenAfterStall) && h.is_stale {
                    // It trusts its cached tail, and asks only for the slot there.
                    let is_free =
                        !matches!(s.slots.get(usize::from(h.tail)), Some(Slot::Record(_)));
                    tail = if is_free { h.tail } else { tail };
                }
                self.look(&mut s, host, View { tail, fold });
            }
            Action::LookOld { host, tail } => {
                let fold = s.prefix(tail, self.without);
                self.look(&mut s, host, View { tail, fold });
            }
            Action::LookForged(host) => {
                let slot = s.cold(self.without).0 + 1;
                let entry = Entry::Noop;
                let h = &mut s.hosts[usize::from(host)];
                h.reads -= 1;
                h.step = if self.lacks(Rule::ResolveFirstFreeOnly) {
                    Step::Ready(Append { entry, slot })
                } else {
                    h.rest() // 400
                };
            }
            Action::Send(host) => self.send(&mut s, host),
            Action::PutLands(nonce) => self.put_lands(&mut s, nonce)?,
            Action::Timeout(host) => {
                let h = &mut s.hosts[usize::from(host)];
                if let Step::Sent(append) = h.step {
                    h.step = Step::Unknown(append);
                }
            }
            Action::Recheck(host) => self.recheck(&mut s, host, false)?,
            Action::RecheckOld(host) => self.recheck(&mut s, host, true)?,
            Action::Answer202(host) => self.answer_202(&mut s, host),
            Action::Finish(host) => self.finish(&mut s, host),
            Action::Publish(host) => {
                let h = &mut s.hosts[usize::from(host)];
                if let Role::Publisher(lease) = h.role {
                    h.step = Step::AwaitPublish;
                    s.publishes[usize::from(lease)] += 1;
                }
            }
            Action::PublicationLands(lease) => self.publication_lands(&mut s, lease),
            Action::Seal(host) => Self::seal(&mut s, host),
            Action::Delete(host) => {
                s.deletes += 1;
                s.hosts[usize::from(host)].step = Step::AwaitDelete;
            }
            Action::DeleteLands => {
                s.deletes -= 1;
                s.has_body = false;
                let waits = |host: &&mut Host| host.step == Step::AwaitDelete;
                if let Some(h) = s.hosts.iter_mut().find(waits) {
                    h.step = h.rest();
                }
            }
            Action::Remove(host) => self.remove(&mut s, host),
            Action::Keep(host) => s.hosts[usize::from(host)].step = Step::Done,
            Action::Crash(host) => {
                // A caller that was told 202 is gone for good: its next try is another request.
                let was_told = s.ticket.is_some_and(|ticket| ticket.host == host);
                let h = &mut s.hosts[usize::from(host)];
                h.crashes -= 1;
                h.is_stale = false;
                h.step = if was_told { Step::Done } else { h.rest() };
            }
            Action::Stall(host) => s.hosts[usize::from(host)].is_stale = true,
            Action::Truncate => {
                s.floor = s.cold(self.without).0 - 1;
                for slot in &mut s.slots[..usize::from(s.floor)] {
                    *slot = Slot::Hole;
                }
            }
            Action::Tick => s.date += 1,
        }
        s.hosts.iter_mut().for_each(Host::forget_if_done);
        Some(s)
    }

    fn look(&self, s: &mut State, host: u8, view: View) {
        let decision = self.decide(s, &s.hosts[usize::from(host)], view);
        let h = &mut s.hosts[usize::from(host)];
        h.reads -= 1;
        h.is_stale = false;
        h.tail = if self.stalls { view.tail } else { 0 };
        match decision {
            Decision::Step(step) => h.step = step,
            Decision::Plan => {
                h.step = h.rest();
                s.plan = Some(view.tail);
            }
            Decision::Resolve(answer) => {
                h.step = h.rest();
                self.resolved(s, answer, view.fold);
            }
            Decision::Rest => h.step = h.rest(),
        }
    }

    fn send(&self, s: &mut State, host: u8) {
        let tail = s.cold(self.without).0;
        let h = &mut s.hosts[usize::from(host)];
        if let Step::Ready(mut append) = h.step {
            if self.lacks(Rule::FoldEverySlot) {
                append.slot = tail; // the next number, unread
            }
            let nonce = host * 16 + h.sends;
            h.sends -= 1;
            h.step = Step::Sent(append);
            h.tail = if self.stalls { append.slot } else { 0 };
            let Append { entry, slot } = append;
            s.put(Put {
                nonce,
                host,
                slot,
                entry,
            });
        }
    }

    fn put_lands(&self, s: &mut State, nonce: u8) -> Option<()> {
        let Put {
            host, slot, entry, ..
        } = s.take_put(nonce)?;
        let at = usize::from(slot);
        // A gateway that checks first and acts later tells both writers 200, and the later bytes stay.
        let is_raced = self.lacks(Rule::OneWinnerPerSlot);
        let standing = match s.slots[at] {
            Slot::Record(record) => Some(record),
            Slot::Empty | Slot::Hole => None,
        };
        if standing.is_none() || is_raced {
            let record = Record { entry, nonce };
            s.slots[at] = Slot::Record(record);
            s.first[at].get_or_insert(record);
        }
        let has_won = standing.is_none_or(|record| record.nonce == nonce) || is_raced;
        let h = &mut s.hosts[usize::from(host)];
        let append = Append { entry, slot };
        if h.step == Step::Sent(append) && nonce == h.latest_nonce(host) {
            h.step = if has_won || self.lacks(Rule::CompareAfterConflict) {
                Step::Won(append)
            } else {
                h.rest()
            };
        }
        Some(())
    }

    fn recheck(&self, s: &mut State, host: u8, is_old: bool) -> Option<()> {
        let h = s.hosts[usize::from(host)];
        let Step::Unknown(append) = h.step else {
            return None;
        };
        let nonce = h.latest_nonce(host);
        let step = match s.slots[usize::from(append.slot)] {
            Slot::Record(record) if !is_old && record.nonce == nonce => Step::Won(append),
            Slot::Record(_) if !is_old => h.rest(),
            Slot::Empty | Slot::Hole if is_old => return None, // the fresh GET says the same
            _ => {
                if s.has_put(nonce) {
                    return None; // a copy is on the wire already
                }
                let Append { entry, slot } = append;
                s.put(Put {
                    nonce,
                    host,
                    slot,
                    entry,
                });
                Step::Sent(append)
            }
        };
        s.hosts[usize::from(host)].step = step;
        Some(())
    }

    pub(super) fn acknowledge(&self, s: &mut State, lease: u8) {
        let at = usize::from(lease);
        s.is_acknowledged[at] = true;
        s.promised[at] = s.promised[at].max(Some(self.first_end));
    }

    fn finish(&self, s: &mut State, host: u8) {
        let h = s.hosts[usize::from(host)];
        let Step::Won(Append { entry, slot }) = h.step else {
            return;
        };
        if h.is_stale && !self.lacks(Rule::RecheckAfterStall) && slot < s.floor {
            s.hosts[usize::from(host)].step = h.rest();
            return;
        }
        let mut step = h.rest();
        match entry {
            Entry::Prepared(lease, _) => {
                self.acknowledge(s, lease);
                if !self.commit_first {
                    step = Step::Publish;
                }
            }
            Entry::Committed(lease) if h.role == Role::Publisher(lease) => {
                if self.commit_first {
                    step = Step::Publish;
                } else if self.removes {
                    step = Step::MayRemove;
                }
            }
            Entry::Aborted(lease) if self.lacks(Rule::SealBeforeAborted) => {
                step = Step::SealLate(lease);
            }
            Entry::Extended(lease, end) => {
                let promised = &mut s.promised[usize::from(lease)];
                *promised = (*promised).max(Some(end));
            }
            Entry::Condemned { .. } => step = Step::Delete,
            // The caller who asked for the resolve is answered: the slot is taken, and not by it.
            Entry::Noop => {
                let fold = s.cold(self.without).1;
                self.resolved(s, Answer::Never, fold);
            }
            Entry::Recreated => s.has_body = true,
            Entry::Touched => s.is_touched = true,
            _ => {}
        }
        let h = &mut s.hosts[usize::from(host)];
        h.is_stale = false;
        h.step = step;
    }
}
