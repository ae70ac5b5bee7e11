//! A 202, and the answer to the resolve that follows it.

use super::fold::{Fold, Lease};
use super::host::{Append, Role, Step};
use super::state::{Answer, State, Ticket};
use super::{JournalModel, Rule};

impl JournalModel {
    pub(super) fn answer_202(&self, s: &mut State, host: u8) {
        let h = &mut s.hosts[usize::from(host)];
        if let Step::Unknown(append) = h.step {
            let Append { entry, slot } = append;
            let nonce = h.latest_nonce(host);
            if !self.lacks(Rule::UnknownStaysInItsSlot) {
                // What is on the wire may still land in its slot, and nothing else will.
                h.step = Step::Told202;
            }
            let answer = Answer::Open;
            s.ticket = Some(Ticket {
                host,
                entry,
                slot,
                nonce,
                answer,
            });
        }
    }

    /// A resolve was answered with the lease's folded state: the caller goes on from there.
    pub(super) fn resolved(&self, s: &mut State, answer: Answer, fold: Fold) {
        let Some(ticket) = &mut s.ticket else { return };
        if ticket.answer != Answer::Open {
            return;
        }
        ticket.answer = answer;
        let host = ticket.host;
        let h = &s.hosts[usize::from(host)];
        let Role::Publisher(lease) = h.role else {
            return;
        };
        if h.step != Step::Told202 {
            return;
        }
        let step = match fold.lease(lease) {
            Lease::Prepared(_) if answer == Answer::Landed => {
                self.acknowledge(s, lease);
                if self.commit_first {
                    Step::Idle
                } else {
                    Step::Publish
                }
            }
            Lease::Committed(_) if answer == Answer::Landed && self.commit_first => Step::Publish,
            Lease::Committed(_) if answer == Answer::Landed && self.removes => Step::MayRemove,
            _ => Step::Done,
        };
        s.hosts[usize::from(host)].step = step;
    }
}
