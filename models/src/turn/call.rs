//! What a call does with what it reads.

use super::{Action, Decisions, Event, Part, RECORDS, Record, Rule, State, Step, TurnModel};

impl TurnModel {
    pub(super) fn lacks(&self, rule: Rule) -> bool {
        self.without == Some(rule)
    }

    /// The records of the session that a call belongs to.
    pub(super) fn records<'a>(
        &self,
        state: &'a State,
        call: usize,
    ) -> &'a [Option<Record>; RECORDS] {
        &state.records[usize::from(self.parts[call].is_fork)]
    }

    pub(super) fn after(&self, last: &State, event: Event) -> Option<State> {
        let mut s = last.clone();
        match event {
            Event::Start(i) => self.start(&mut s, usize::from(i)),
            Event::Read(i) => self.read(&mut s, usize::from(i))?,
            Event::Lands(i) => {
                let call = usize::from(i);
                let session = usize::from(self.parts[call].is_fork);
                if let Step::Sent { at, decisions } = s.calls[call].step {
                    s.records[session][usize::from(at)] = Some(Record { by: i, decisions });
                }
            }
            Event::Seen(i) => self.seen(&mut s, usize::from(i))?,
        }
        Some(s)
    }

    fn start(&self, s: &mut State, i: usize) {
        let part = self.parts[i];
        let is_alone = s.calls.iter().zip(&self.parts).all(|(call, other)| {
            other.is_fork != part.is_fork || matches!(call.step, Step::Idle | Step::Answered)
        });
        if is_alone {
            s.calls[i].frozen = self.decided(s, part.is_fork);
        }
        if !self.lacks(Rule::SpilledIsNoCandidate) {
            let spilled =
                |result: Option<Action>| result.filter(|action| *action == Action::Spilled);
            s.calls[i].known = self.results.map(spilled);
        }
        s.calls[i].step = if part.is_fork && self.lacks(Rule::OwnSessionFirst) {
            Step::Parent { at: 0, free: 0 }
        } else {
            Step::Own(0)
        };
    }

    /// What the records of a session, and behind them those of its parent, name.
    pub(super) fn decided(&self, s: &State, is_fork: bool) -> Decisions {
        let mut decided = named(&s.records[usize::from(is_fork)]);
        if is_fork {
            merge(&mut decided, named(&s.records[0]));
        }
        decided
    }

    fn read(&self, s: &mut State, i: usize) -> Option<()> {
        let is_fork = self.parts[i].is_fork;
        let own_last = self.lacks(Rule::OwnSessionFirst);
        match s.calls[i].step {
            Step::Own(at) => match self.records(s, i).get(usize::from(at)).copied().flatten() {
                Some(record) => {
                    if !self.lacks(Rule::EarlierRecordsDecide) {
                        merge(&mut s.calls[i].known, record.decisions);
                    }
                    s.calls[i].step = Step::Own(at + 1);
                }
                None if is_fork && !own_last && !self.lacks(Rule::ParentsAreRead) => {
                    s.calls[i].step = Step::Parent { at: 0, free: at };
                }
                None => self.decide(s, i, at),
            },
            Step::Parent { at, free } => match s.records[0].get(usize::from(at)).copied().flatten()
            {
                Some(record) => {
                    let mut decisions = record.decisions;
                    if self.lacks(Rule::ParentInlineIsTaken) {
                        decisions =
                            decisions.map(|d| d.filter(|action| *action == Action::Spilled));
                    }
                    merge(&mut s.calls[i].known, decisions);
                    s.calls[i].step = Step::Parent { at: at + 1, free };
                }
                None if own_last => s.calls[i].step = Step::Own(0),
                None => self.decide(s, i, free),
            },
            Step::Idle | Step::Sent { .. } | Step::Answered => return None,
        }
        Some(())
    }

    /// Decides what nothing has decided, as far as the call brings it.
    fn decide(&self, s: &mut State, i: usize, free: u8) {
        let call = &mut s.calls[i];
        let Part { wishes, .. } = self.parts[i];
        let is_met = call.known.contains(&Some(Action::Spilled));
        let mut decisions =
            wishes.map(|wish| wish.map(|wish| if is_met { Action::Inline } else { wish }));
        for (decision, known) in decisions.iter_mut().zip(call.known) {
            *decision = decision.filter(|_| known.is_none());
        }
        let at = free + u8::from(self.lacks(Rule::FirstFreeNumber));
        let has_room = usize::from(at) < RECORDS;
        call.step = if decisions.iter().all(Option::is_none) || !has_room {
            Step::Answered
        } else {
            Step::Sent { at, decisions }
        };
    }

    fn seen(&self, s: &mut State, i: usize) -> Option<()> {
        let Step::Sent { at, decisions } = s.calls[i].step else {
            return None;
        };
        let stands = self.records(s, i)[usize::from(at)]?;
        let has_won = usize::from(stands.by) == i || self.lacks(Rule::LostRecordsAreRead);
        let call = &mut s.calls[i];
        if has_won {
            merge(&mut call.known, decisions);
            call.step = Step::Answered;
        } else if self.lacks(Rule::LostRecordsAreDecidedAgain) {
            let has_room = usize::from(at) + 1 < RECORDS;
            call.step = if has_room {
                Step::Sent {
                    at: at + 1,
                    decisions,
                }
            } else {
                Step::Answered
            };
        } else {
            call.step = Step::Own(at); // reads what won, and goes on
        }
        Some(())
    }
}

/// What one session's records name, up to the first free number; the first record rules.
pub(super) fn named(records: &[Option<Record>; RECORDS]) -> Decisions {
    let mut decided = Decisions::default();
    for record in records.iter().map_while(|record| record.as_ref()) {
        merge(&mut decided, record.decisions);
    }
    decided
}

fn merge(known: &mut Decisions, more: Decisions) {
    for (known, more) in known.iter_mut().zip(more) {
        *known = known.or(more);
    }
}
