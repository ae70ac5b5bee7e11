//! One result: decided, frozen, and saved where it is spilled.
//!
//! The result's record is decided beside the manifest of its save, so that both cost one round trip; a
//! record that says `spilled` needs no artifact in it, because whoever meets it brings the same bytes and
//! meets the save's own record. Where another decided `inline` first, that counts, and what was stored
//! here is left to the collector.

use std::sync::Arc;

use bytes::Bytes;

use crate::artifact::decision_access::DecisionName;
use crate::artifact::received::{Received, SavedResult};
use crate::artifact::replacement::RenderedForm;
use crate::artifact::request::{BodyError, BodyStream, SaveError, SaveRequest};
use crate::artifact::session::SessionError;
use crate::decision::answer::Answer;
use crate::decision::freeze::{did_of, frozen_of};
use crate::decision::outcome::{Unsaved, is_of_the_caller};
use crate::decision::{Chain, DecideResultError, Decider};
use crate::ids::DecisionId;
use crate::policy::decide::{Circumstance, Decision, ResultFacts, decide, is_blank};
use crate::policy::fallback::Seen;
use crate::policy::frozen::{Action, Frozen, ResultRecord};
use crate::policy::limit::Limit;
use crate::policy::profile::{Given, Profile};
use crate::policy::template::Template;

/// One result to be decided.
#[derive(Debug, Clone)]
pub struct ResultRequest {
    /// How it is saved, should it be: session, call, tool, rendering.
    pub save: SaveRequest,
    /// The profile that decides.
    pub profile: Arc<Profile>,
    /// The circumstances.
    pub given: Given,
}

impl Decider {
    /// Decides one result and answers what stands in the prompt for it.
    ///
    /// # Errors
    /// The request is not well formed, or the profile wants an error where a save fails.
    pub async fn decide_result(
        &self,
        request: ResultRequest,
        body: BodyStream,
    ) -> Result<Answer, DecideResultError> {
        let decider = self.clone();
        let work = async move { Box::pin(decider.decide_here(&request, body)).await };
        let ended = self.library.detached(work).await;
        let ended = ended.unwrap_or_else(|| {
            let cause = "the decision ended early".to_owned();
            Err(SaveError::Internal(cause))
        });
        Ok(ended?)
    }

    async fn decide_here(
        &self,
        request: &ResultRequest,
        body: BodyStream,
    ) -> Result<Answer, SaveError> {
        let ResultRequest {
            save,
            profile,
            given,
        } = request;
        if let Some(parent) = &save.parent {
            let (tenant, session) = (&save.tenant, &save.session);
            let checked = self.library.check_parent(tenant, session, parent).await;
            if let Err(
                error @ (SessionError::ParentNotFound(_) | SessionError::ParentConflict { .. }),
            ) = checked
            {
                return Err(error.into());
            }
        }
        let tool = save.tool.as_deref().unwrap_or_default();
        let is_exempt = profile.limit_of(tool, given).limit == Limit::Never;
        let received = self.library.receive(save, body, is_exempt).await?;
        let step = Step {
            decider: self,
            request,
            decision: self.decision_of(request, &received),
        };
        Box::pin(step.run(received)).await
    }

    fn decision_of(&self, request: &ResultRequest, received: &Received) -> Decision {
        let facts = received.facts();
        let result = ResultFacts {
            tool: request.save.tool.as_deref().unwrap_or_default(),
            size: facts.measures,
            is_binary: facts.is_binary(),
            is_blank: facts.size_bytes == 0 || received.text().is_some_and(is_blank),
            is_mixed: false,
            circumstance: Circumstance::Ordinary,
        };
        let decision = decide(&request.profile, &result, &request.given);
        if decision != Decision::Spilled {
            return decision;
        }
        match self.library.price(&request.save, facts) {
            Ok(rendered) if rendered.form != RenderedForm::Inline => Decision::Spilled,
            // Nothing smaller can stand for it.
            Ok(_) | Err(_) => Decision::Inline,
        }
    }
}

/// One result whose bytes are here.
struct Step<'a> {
    decider: &'a Decider,
    request: &'a ResultRequest,
    decision: Decision,
}

impl Step<'_> {
    async fn run(&self, received: Received) -> Result<Answer, SaveError> {
        let save = &self.request.save;
        let library = &self.decider.library;
        let newest = self.decider.templates.newest();
        if !received.is_whole() {
            // Nothing can be decided of a body whose end is not known.
            let limit_bytes = library.options().max_body_bytes;
            let error = BodyError::TooLarge { limit_bytes };
            return self.unsaved(&received).answer(error.into(), newest);
        }
        let (tenant, session) = (&save.tenant, &save.session);
        let parent = save.parent.as_ref();
        let chain = match self.decider.open_chain(tenant, session, parent).await {
            Ok(chain) => chain,
            Err(error) => return self.not_frozen(&received, error).await,
        };
        let frozen = match &save.call_id {
            None => None,
            Some(call) => {
                let digest = &received.facts().sha256;
                let found = self
                    .decider
                    .frozen_result(tenant, &chain, call, digest)
                    .await;
                match found {
                    Ok(found) => found,
                    Err(error) => return self.not_frozen(&received, error).await,
                }
            }
        };
        match frozen {
            Some(frozen) => self.repeat(frozen, received, &chain).await,
            None if self.decision.is_stored() => self.spill(received, &chain).await,
            None => self.leave(received, &chain).await,
        }
    }

    fn did(&self, received: &Received) -> Option<DecisionId> {
        let save = &self.request.save;
        let call = save.call_id.as_ref()?;
        let digest = &received.facts().sha256;
        Some(did_of(&save.tenant, &save.session, call, digest))
    }

    fn unsaved<'a>(&'a self, received: &'a Received) -> Unsaved<'a> {
        Unsaved {
            profile: &self.request.profile,
            tool: self.request.save.tool.as_deref(),
            windows: &received.facts().windows,
            text: received.text(),
            seen: if received.is_whole() {
                Seen::Whole
            } else {
                Seen::StartOnly
            },
        }
    }

    /// The text stays.
    fn inline(&self, received: &Received, words: &Template) -> Answer {
        let facts = received.facts();
        let is_blank = facts.size_bytes == 0 || received.text().is_some_and(is_blank);
        if is_blank {
            let tool = self.request.save.tool.as_deref();
            let text = (words.nothing_printed)(tool, facts.size_bytes);
            return Answer::sentence(Action::Inline, text);
        }
        Answer::inline(received.text())
    }

    /// Earlier decisions cannot be read: small results stay as they are, large ones get the fallback.
    async fn not_frozen(&self, received: &Received, error: SaveError) -> Result<Answer, SaveError> {
        self.decider
            .library
            .let_go(&self.request.save, received)
            .await;
        let newest = self.decider.templates.newest();
        if is_of_the_caller(&error) {
            return Err(error);
        }
        if self.decision.is_stored() {
            return self.unsaved(received).answer(error, newest);
        }
        let reason = error.code().as_str();
        Ok(self.inline(received, newest).because(reason))
    }

    /// Records that the text stays; where another decided otherwise, that counts.
    async fn leave(&self, received: Received, chain: &Chain) -> Result<Answer, SaveError> {
        let save = &self.request.save;
        let newest = self.decider.templates.newest();
        let Some(did) = self.did(&received) else {
            self.decider.library.let_go(save, &received).await;
            return Ok(self.inline(&received, newest));
        };
        let (tenant, session) = (&save.tenant, &save.session);
        let frozen = self
            .decider
            .freeze_result(tenant, session, did, Action::Inline);
        match frozen.await {
            Ok(frozen) => self.repeat(frozen, received, chain).await,
            Err(error) => {
                self.decider.library.let_go(save, &received).await;
                let reason = error.code().as_str();
                Ok(self.inline(&received, newest).because(reason))
            }
        }
    }

    /// Saves the text and records that it is spilled, together.
    async fn spill(&self, received: Received, chain: &Chain) -> Result<Answer, SaveError> {
        let newest = self.decider.templates.newest();
        let Some(did) = self.did(&received) else {
            return self.save(received, None, newest, chain).await;
        };
        let record = ResultRecord::new(Action::Spilled, newest.version);
        let beside = (DecisionName::Result(did), Bytes::from(record.encode()));
        self.save(received, Some(beside), newest, chain).await
    }

    /// Answers as was decided before.
    async fn repeat(
        &self,
        frozen: Frozen,
        received: Received,
        chain: &Chain,
    ) -> Result<Answer, SaveError> {
        let words = self.decider.templates.of(frozen.template_version);
        let words = match words {
            Ok(words) => words,
            Err(error) => {
                let error = SaveError::Format(error.to_string());
                return self.not_frozen(&received, error).await;
            }
        };
        match frozen.action {
            Action::Inline => {
                self.decider
                    .library
                    .let_go(&self.request.save, &received)
                    .await;
                Ok(self.inline(&received, words))
            }
            Action::Spilled => self.save(received, None, words, chain).await,
        }
    }

    async fn save(
        &self,
        received: Received,
        beside: Option<(DecisionName, Bytes)>,
        words: &Template,
        chain: &Chain,
    ) -> Result<Answer, SaveError> {
        let save = &self.request.save;
        let library = &self.decider.library;
        let digest = received.facts().sha256;
        // What a fallback needs outlives the bytes.
        let windows = received.facts().windows.clone();
        let text = received.text().map(str::to_owned);
        let unsaved = Unsaved {
            profile: &self.request.profile,
            tool: save.tool.as_deref(),
            windows: &windows,
            text: text.as_deref(),
            seen: Seen::Whole,
        };
        let is_wanted = beside.is_some();
        let SavedResult { saved, beside } = library.save_received(save, received, beside).await;
        let manifest = match saved {
            Ok(saved) => saved.manifest,
            Err(error) if matches!(error, SaveError::Erased(_)) || is_of_the_caller(&error) => {
                return unsaved.answer(error, words);
            }
            // What cannot be saved now may have been saved before.
            Err(error) => match library.find_saved(save, chain, digest).await {
                Ok(Some(manifest)) => manifest,
                Ok(None) => return unsaved.answer(error, words),
                Err(erased @ SaveError::Erased(_)) => return unsaved.answer(erased, words),
                Err(_) => return unsaved.answer(error, words),
            },
        };
        let recorded = match (is_wanted, beside) {
            (false, _) => None,
            (true, Some(decided)) => Some(decided.map_err(SaveError::from).and_then(|bytes| {
                let record = ResultRecord::decode(&bytes)?;
                Ok(frozen_of(record))
            })),
            // The save was a repeat: no manifest was sent, and the record is still to be decided.
            (true, None) => {
                let call = save.call_id.as_ref();
                let did = call.map(|call| did_of(&save.tenant, &save.session, call, &digest));
                match did {
                    Some(did) => {
                        let (tenant, session) = (&save.tenant, &save.session);
                        let freezing =
                            self.decider
                                .freeze_result(tenant, session, did, Action::Spilled);
                        Some(freezing.await)
                    }
                    None => None,
                }
            }
        };
        match recorded {
            None => Ok(Answer::spilled(manifest)),
            Some(Ok(frozen)) if frozen.action == Action::Spilled => Ok(Answer::spilled(manifest)),
            // Another decided first that it stays.
            Some(Ok(_)) => Ok(Answer::inline(text.as_deref())),
            Some(Err(error)) => {
                let reason = error.code().as_str();
                Ok(Answer::spilled(manifest).because(reason))
            }
        }
    }
}
