//! What is to become of the results of a turn that nobody has decided: first each by itself, then all
//! together.

use std::sync::Arc;

use crate::artifact::measure::Measures;
use crate::artifact::replacement::{Rendered, RenderedForm};
use crate::artifact::request::SaveRequest;
use crate::artifact::scan::BodyFacts;
use crate::decision::turn::{TurnContent, TurnRequest, TurnResult};
use crate::decision::turn_plan::{Choice, Run};
use crate::policy::decide::{Circumstance, Decision, ResultFacts, decide, is_blank};
use crate::policy::frozen::Nearest;
use crate::policy::profile::{Given, MixedParts, Profile};
use crate::policy::turn::{Standing, TurnItem, plan};

impl Run<'_> {
    pub(super) fn given(&self, result: &TurnResult) -> Given {
        Given {
            server_max: result.server_max,
            context_tokens: self.request.context_tokens,
        }
    }

    /// Decides what nobody has decided: first each by itself, then all together.
    pub(super) fn choose(&mut self) -> Vec<Choice> {
        let profile = &self.request.profile;
        let measure = profile.turn.measure;
        let mut choices = vec![Choice::Stays; self.entries.len()];
        let mut items = Vec::with_capacity(self.entries.len());
        for (index, choice) in choices.iter_mut().enumerate() {
            let (size, standing) = match &self.entries[index].answer {
                Some(answer) => (
                    answer.size(self.entries[index].size).get(measure),
                    Standing::Frozen,
                ),
                None => {
                    let (decision, standing) = self.alone(index);
                    match decision {
                        Decision::Spilled | Decision::Described => match self.price(index) {
                            Some(price) => {
                                *choice = Choice::Spilled;
                                (price, Standing::Frozen)
                            }
                            None => (self.entries[index].size.get(measure), Standing::Frozen),
                        },
                        Decision::Inline | Decision::Sentence => {
                            (self.entries[index].size.get(measure), standing)
                        }
                    }
                }
            };
            items.push(TurnItem { size, standing });
        }
        let budget = profile.turn_budget(&self.turn_given());
        let rule = profile.turn;
        let taken = plan(budget, &rule, &items, |index| self.price(index));
        for index in taken.spilled {
            choices[index] = Choice::Spilled;
        }
        choices
    }

    pub(super) fn turn_given(&self) -> Given {
        Given {
            server_max: None,
            context_tokens: self.request.context_tokens,
        }
    }

    /// Decides one result by itself, and says whether the turn may take it out.
    fn alone(&self, index: usize) -> (Decision, Standing) {
        let entry = &self.entries[index];
        let profile = &self.request.profile;
        let tool = entry.result.tool.as_deref().unwrap_or_default();
        let given = self.given(entry.result);
        let (is_blank, is_mixed) = match &entry.result.content {
            TurnContent::Text(text) => (is_blank(text), false),
            TurnContent::Parts(parts) => (parts.is_blank(), parts.is_mixed()),
            TurnContent::Artifact(_) => (false, false),
        };
        let facts = ResultFacts {
            tool,
            size: entry.size,
            is_binary: false,
            is_blank,
            is_mixed,
            circumstance: Circumstance::Ordinary,
        };
        let decision = decide(profile, &facts, &given);
        let is_untouched = is_mixed && profile.mixed_parts == MixedParts::Untouched;
        let standing = if profile.is_exempt(tool, &given) || is_untouched || is_blank {
            Standing::Exempt
        } else {
            Standing::Fresh
        };
        // A result that was left in the prompt on its own is only the turn's to take out.
        match self.nearest(index) {
            Nearest::ByResult(_) if decision != Decision::Sentence => (Decision::Inline, standing),
            Nearest::ByResult(_) | Nearest::ByTurn(_) | Nearest::Undecided => (decision, standing),
        }
    }

    fn main_size(&self, index: usize) -> u64 {
        let measure = self.request.profile.turn.measure;
        let text = self.entries[index].result.content.main_text();
        text.map_or(0, |text| Measures::of(text.as_bytes()).get(measure))
    }

    /// Returns what the result would cost with something in the place of its text; `None` where nothing can
    /// stand there.
    pub(super) fn price(&mut self, index: usize) -> Option<u64> {
        if let Some(price) = self.entries[index].price {
            return price;
        }
        let measure = self.request.profile.turn.measure;
        let others = self.entries[index].size.get(measure) - self.main_size(index);
        let price = self
            .rendered(index)
            .map(|rendered| others + Measures::of(rendered.text.as_bytes()).get(measure));
        self.entries[index].price = Some(price);
        price
    }

    fn rendered(&self, index: usize) -> Option<Rendered> {
        let text = self.entries[index].result.content.main_text()?;
        let request = self.save_request(index);
        let facts = BodyFacts::of(text.as_bytes(), request.render.window_bytes());
        let rendered = self.decider.library.price(&request, &facts).ok()?;
        (rendered.form != RenderedForm::Inline).then_some(rendered)
    }

    pub(super) fn save_request(&self, index: usize) -> SaveRequest {
        let TurnRequest {
            tenant,
            session,
            parent,
            profile,
            means,
            ..
        } = self.request;
        let result = self.entries[index].result;
        let mut save = SaveRequest::new(tenant.clone(), session.clone());
        save.parent.clone_from(parent);
        save.call_id = Some(result.call_id.clone());
        save.tool.clone_from(&result.tool);
        save.media_type = "text/plain; charset=utf-8".to_owned();
        save.means.clone_from(means);
        save.render = Arc::<Profile>::clone(profile);
        save
    }
}
