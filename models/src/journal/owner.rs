//! The owner's side: publishing, sealing, removing.

use super::entry::Entry;
use super::fold::Lease;
use super::host::{Append, Host, Role, Step};
use super::state::{Reference, State};
use super::{JournalModel, Rule};

impl JournalModel {
    pub(super) fn publication_lands(&self, s: &mut State, lease: u8) {
        let at = usize::from(lease);
        s.publishes[at] -= 1;
        let is_accepted = s.references[at] == Reference::Absent;
        if is_accepted {
            s.references[at] = Reference::Published;
        }
        let (tail, fold) = s.cold(self.without);
        let waits =
            |host: &Host| host.role == Role::Publisher(lease) && host.step == Step::AwaitPublish;
        for h in s.hosts.iter_mut().filter(|host| waits(host)) {
            h.step = match is_accepted {
                false => Step::Done,
                true if self.commit_first && self.removes => Step::MayRemove,
                true if self.commit_first || h.reads == 0 => Step::Done,
                true if !matches!(fold.lease(lease), Lease::Prepared(_)) => Step::Idle,
                true => {
                    h.reads -= 1;
                    h.is_stale = false;
                    h.tail = if self.stalls { tail } else { 0 };
                    let entry = Entry::Committed(lease);
                    Step::Ready(Append { entry, slot: tail })
                }
            };
        }
    }

    pub(super) fn seal(s: &mut State, host: u8) {
        let h = &mut s.hosts[usize::from(host)];
        match h.step {
            Step::Seal(lease, slot) => {
                let reference = &mut s.references[usize::from(lease)];
                let entry = match *reference {
                    Reference::Published => Entry::Committed(lease),
                    Reference::Absent => {
                        *reference = Reference::Sealed;
                        Entry::Aborted(lease)
                    }
                    Reference::Removed | Reference::Sealed => Entry::Aborted(lease),
                };
                h.step = Step::Ready(Append { entry, slot });
            }
            Step::SealLate(lease) => {
                let reference = &mut s.references[usize::from(lease)];
                if *reference == Reference::Absent {
                    *reference = Reference::Sealed;
                }
                h.step = h.rest();
            }
            _ => {}
        }
    }

    pub(super) fn remove(&self, s: &mut State, host: u8) {
        let tail = s.cold(self.without).0;
        let h = &mut s.hosts[usize::from(host)];
        let Role::Publisher(lease) = h.role else {
            return;
        };
        if self.lacks(Rule::RemoveBeforeReleased) {
            let entry = Entry::ReleasedRemoved(lease);
            h.step = Step::Ready(Append { entry, slot: tail });
            return;
        }
        let reference = &mut s.references[usize::from(lease)];
        if *reference == Reference::Published {
            *reference = Reference::Removed;
        }
        h.step = h.rest();
    }
}
