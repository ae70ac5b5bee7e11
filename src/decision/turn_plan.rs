//! Carrying out a turn: read what was decided, decide the rest, record it, save what is taken out.
//!
//! The record is written before the saves. A replica that meets it has the same texts and saves them
//! itself, so a crash between the two costs nothing; and of two replicas that decide at once only the
//! winner's choice is ever stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::artifact::decision_access::DecisionName;
use crate::artifact::manifest_access::Lookup;
use crate::artifact::measure::Measures;
use crate::artifact::read::ReadError;
use crate::artifact::replacement::{Rendered, RenderedForm};
use crate::artifact::request::{SaveError, SaveRequest};
use crate::artifact::scan::BodyFacts;
use crate::artifact::session::SessionError;
use crate::artifact::windows::Windows;
use crate::decision::answer::{Answer, Content};
use crate::decision::freeze::did_of;
use crate::decision::outcome::{Unsaved, deleted, is_of_the_caller};
use crate::decision::turn::{DecideTurnError, TurnAnswer, TurnContent, TurnRequest, TurnResult};
use crate::decision::{Chain, Decider};
use crate::digest::Sha256Digest;
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SessionKey, TurnHash};
use crate::limits::{
    MAX_INLINE_TEXT_BYTES, MAX_TURN_RECORDS, TURN_READS_AT_ONCE, TURN_SAVES_AT_ONCE,
};
use crate::policy::decide::{Circumstance, Decision, ResultFacts, decide, is_blank};
use crate::policy::fallback::Seen;
use crate::policy::frozen::{Action, Frozen, Level, Nearest, ResultRecord, TurnRecord, nearest};
use crate::policy::profile::{Given, MixedParts};
use crate::policy::template::Template;
use crate::policy::turn::{Standing, TurnItem, plan};

/// One distinct result of the turn.
struct Entry<'a> {
    result: &'a TurnResult,
    /// Absent of an artifact.
    digest: Option<Sha256Digest>,
    size: Measures,
    /// What each session's own record says of it, nearest first.
    records: Vec<Option<ResultRecord>>,
    /// What is answered, once that is known.
    answer: Option<Answer>,
    /// What the text that would be taken out costs then; rendered once.
    price: Option<Option<u64>>,
}

/// What is to become of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Stays,
    Spilled,
}

/// A turn that is being decided.
struct Run<'a> {
    decider: &'a Decider,
    request: &'a TurnRequest,
    chain: Chain,
    turn: TurnHash,
    entries: Vec<Entry<'a>>,
    /// The turn's records of each session of the chain, nearest first.
    records: Vec<Vec<TurnRecord>>,
    /// Why nothing can be frozen, where it cannot.
    not_frozen: Option<SaveError>,
}

impl Decider {
    pub(super) async fn decide_turn_here(
        &self,
        request: &TurnRequest,
    ) -> Result<TurnAnswer, DecideTurnError> {
        let (distinct, of_result) = request.distinct()?;
        let entries = distinct.iter().map(|place| {
            let result = &request.results[*place];
            Entry {
                result,
                digest: result.content.digest(),
                size: result.content.size(),
                records: Vec::new(),
                answer: None,
                price: None,
            }
        });
        let (tenant, session) = (&request.tenant, &request.session);
        let mut run = Run {
            decider: self,
            request,
            chain: vec![session.clone()],
            turn: TurnHash::derive(tenant, session, &request.turn),
            entries: entries.collect(),
            records: vec![Vec::new()],
            not_frozen: None,
        };
        run.look_at_artifacts(&distinct).await?;
        run.read_decisions().await?;
        run.decide().await?;
        Ok(run.answer(&of_result))
    }
}

impl Run<'_> {
    fn given(&self, result: &TurnResult) -> Given {
        Given {
            server_max: result.server_max,
            context_tokens: self.request.context_tokens,
        }
    }

    /// Takes the texts of the artifacts that the turn names. The session need not exist for that: an
    /// artifact that is nowhere ends the request before anything is written.
    async fn look_at_artifacts(&mut self, distinct: &[usize]) -> Result<(), DecideTurnError> {
        let named: Vec<(usize, ArtifactId)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| match entry.result.content {
                TurnContent::Artifact(artifact) => Some((index, artifact)),
                TurnContent::Text(_) | TurnContent::Parts(_) => None,
            })
            .collect();
        if named.is_empty() {
            return Ok(());
        }
        let (tenant, session) = (&self.request.tenant, &self.request.session);
        let library = &self.decider.library;
        let chain = library
            .existing_chain(tenant, session, self.request.parent.as_ref())
            .await
            .map_err(SaveError::from)?;
        let words = self.decider.templates.newest();
        let finding = named.into_iter().map(|(index, artifact_id)| {
            let chain = &chain;
            async move {
                for session in chain {
                    let artifact = ArtifactRef {
                        session_key: SessionKey::derive(tenant, session),
                        artifact_id,
                    };
                    match library
                        .look_up(tenant, &artifact)
                        .await
                        .map_err(ReadError::from)?
                    {
                        Lookup::Absent => {}
                        found => return Ok((index, artifact_id, Some(found))),
                    }
                }
                Ok::<_, DecideTurnError>((index, artifact_id, None))
            }
        });
        let found: Vec<_> = stream::iter(finding)
            .buffered(TURN_READS_AT_ONCE)
            .try_collect()
            .await?;
        for (index, artifact, found) in found {
            let entry = &mut self.entries[index];
            let tool = entry.result.tool.as_deref();
            entry.answer = Some(match found {
                Some(Lookup::Live(manifest)) => Answer::spilled(manifest),
                Some(Lookup::Tombstone(tombstone)) => {
                    deleted(words, tool, tombstone.tombstone.as_str())
                }
                Some(Lookup::Absent) | None => {
                    let place = distinct[index];
                    return Err(DecideTurnError::NoArtifact { place, artifact });
                }
            });
        }
        Ok(())
    }

    /// Reads what was decided before. Where that cannot be read, nothing is frozen by this call.
    async fn read_decisions(&mut self) -> Result<(), DecideTurnError> {
        match self.try_read_decisions().await {
            Ok(()) => Ok(()),
            Err(error) if is_of_the_caller(&error) => Err(error.into()),
            Err(error) => {
                self.not_frozen = Some(error);
                Ok(())
            }
        }
    }

    async fn try_read_decisions(&mut self) -> Result<(), SaveError> {
        let request = self.request;
        let library = &self.decider.library;
        let (tenant, session) = (&request.tenant, &request.session);
        let parent = request.parent.as_ref();
        let chain = self.decider.open_chain(tenant, session, parent).await?;
        let reading = chain.iter().map(|session| async move {
            let turn = TurnHash::derive(tenant, session, &request.turn);
            let mut records = Vec::new();
            for n in 0..MAX_TURN_RECORDS {
                let name = DecisionName::Turn(turn, n);
                match library.find_decision(tenant, session, name).await? {
                    Some(bytes) => records.push(TurnRecord::decode(&bytes)?),
                    None => break,
                }
            }
            Ok::<_, SaveError>(records)
        });
        let records = futures_util::future::try_join_all(reading).await?;
        (self.chain, self.records) = (chain, records);
        let (decider, chain) = (self.decider, &self.chain);
        let open: Vec<usize> = (0..self.entries.len())
            .filter(|index| {
                // What the own turn names needs no further look.
                let own = self.did(*index);
                own.is_some_and(|did| {
                    let mut own_records = self.records.first().into_iter().flatten();
                    !own_records.any(|record| record.results.contains_key(&did))
                })
            })
            .collect();
        let reading = open.into_iter().filter_map(|index| {
            let entry = &self.entries[index];
            let (call, digest) = (&entry.result.call_id, entry.digest?);
            Some(async move {
                let found = decider.result_records(tenant, chain, call, &digest).await?;
                Ok::<_, SaveError>((index, found))
            })
        });
        let found: Vec<_> = stream::iter(reading)
            .buffer_unordered(TURN_READS_AT_ONCE)
            .try_collect()
            .await?;
        for (index, records) in found {
            self.entries[index].records = records;
        }
        if library.options().is_read_only {
            return Err(SaveError::ReadOnly);
        }
        Ok(())
    }

    fn did_in(&self, index: usize, level: usize) -> Option<DecisionId> {
        let entry = &self.entries[index];
        let session = self.chain.get(level)?;
        let call = &entry.result.call_id;
        Some(did_of(&self.request.tenant, session, call, &entry.digest?))
    }

    fn did(&self, index: usize) -> Option<DecisionId> {
        self.did_in(index, 0)
    }

    fn nearest(&self, index: usize) -> Nearest {
        let entry = &self.entries[index];
        let levels: Vec<Level<'_>> = self
            .records
            .iter()
            .enumerate()
            .map(|(level, turns)| Level {
                did: self.did_in(index, level),
                turns,
                result: entry.records.get(level).copied().flatten(),
            })
            .collect();
        nearest(&levels)
    }

    /// Decides until what was decided is recorded, then carries it out.
    async fn decide(&mut self) -> Result<(), DecideTurnError> {
        loop {
            self.repeat_frozen().await?;
            let choices = self.choose();
            let Some(named) = self.to_record(&choices) else {
                return self.carry_out(&choices).await;
            };
            match self.record(named).await {
                Ok(true) => return self.carry_out(&choices).await,
                // Another decided first: its word counts, and the rest is decided anew.
                Ok(false) => {}
                Err(error) => {
                    self.not_frozen = Some(error);
                    return self.carry_out(&choices).await;
                }
            }
        }
    }

    /// Answers what was decided before, as it was decided.
    async fn repeat_frozen(&mut self) -> Result<(), DecideTurnError> {
        let mut spilled = Vec::new();
        for index in 0..self.entries.len() {
            if self.entries[index].answer.is_some() {
                continue;
            }
            let frozen = match self.nearest(index) {
                Nearest::ByTurn(frozen) => frozen,
                // One that stayed is still a candidate.
                Nearest::ByResult(frozen) if frozen.action == Action::Spilled => frozen,
                Nearest::ByResult(_) | Nearest::Undecided => continue,
            };
            match self.words_of(frozen) {
                Ok(words) if frozen.action == Action::Inline => {
                    self.entries[index].answer = Some(self.inline(index, words));
                }
                Ok(words) => spilled.push((index, words)),
                Err(error) => {
                    let words = self.decider.templates.newest();
                    self.entries[index].answer = Some(self.unsaved(index, error, words)?);
                }
            }
        }
        self.spill(spilled).await
    }

    fn words_of(&self, frozen: Frozen) -> Result<&'static Template, SaveError> {
        let words = self.decider.templates.of(frozen.template_version);
        words.map_err(|error| SaveError::Format(error.to_string()))
    }

    /// Decides what nobody has decided: first each by itself, then all together.
    fn choose(&mut self) -> Vec<Choice> {
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

    fn turn_given(&self) -> Given {
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
    fn price(&mut self, index: usize) -> Option<u64> {
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

    fn save_request(&self, index: usize) -> SaveRequest {
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
        save.render = profile.clone();
        save
    }

    /// Returns what this call decides newly, where anything is to be recorded.
    fn to_record(&self, choices: &[Choice]) -> Option<BTreeMap<DecisionId, Action>> {
        if self.not_frozen.is_some() {
            return None;
        }
        let mut named = BTreeMap::new();
        for (index, choice) in choices.iter().enumerate() {
            if self.entries[index].answer.is_some() {
                continue;
            }
            if let Some(did) = self.did(index) {
                let action = match choice {
                    Choice::Stays => Action::Inline,
                    Choice::Spilled => Action::Spilled,
                };
                named.insert(did, action);
            }
        }
        (!named.is_empty()).then_some(named)
    }

    /// Records decisions; `false` when another record stands there, which is kept instead.
    async fn record(&mut self, named: BTreeMap<DecisionId, Action>) -> Result<bool, SaveError> {
        let (tenant, session) = (&self.request.tenant, &self.request.session);
        let own = self.records.first().map_or(0, Vec::len);
        let n = u32::try_from(own).unwrap_or(u32::MAX);
        if n >= MAX_TURN_RECORDS {
            return Err(SaveError::IncarnationsExhausted(MAX_TURN_RECORDS));
        }
        let record = TurnRecord::new(named, self.decider.templates.newest().version);
        let ours = Bytes::from(record.encode());
        let name = DecisionName::Turn(self.turn, n);
        let library = &self.decider.library;
        let stands = library.decide(tenant, session, name, ours.clone()).await?;
        let is_ours = stands == ours;
        if let Some(records) = self.records.first_mut() {
            records.push(TurnRecord::decode(&stands)?);
        }
        Ok(is_ours)
    }

    async fn carry_out(&mut self, choices: &[Choice]) -> Result<(), DecideTurnError> {
        let words = self.decider.templates.newest();
        let mut spilled = Vec::new();
        for (index, choice) in choices.iter().enumerate() {
            if self.entries[index].answer.is_some() {
                continue;
            }
            match choice {
                Choice::Spilled => spilled.push((index, words)),
                Choice::Stays => {
                    let mut answer = self.inline(index, words);
                    if let Some(error) = &self.not_frozen {
                        answer = answer.because(error.code().as_str());
                    }
                    self.entries[index].answer = Some(answer);
                }
            }
        }
        self.spill(spilled).await
    }

    /// Saves results and answers what stands for them.
    async fn spill(
        &mut self,
        spilled: Vec<(usize, &'static Template)>,
    ) -> Result<(), DecideTurnError> {
        // Collected first: a closure inside the stream would tie its lifetimes together.
        let mut saving = Vec::with_capacity(spilled.len());
        for (index, words) in spilled {
            saving.push(self.save(index, words));
        }
        let answers: Vec<_> = stream::iter(saving)
            .buffer_unordered(TURN_SAVES_AT_ONCE)
            .try_collect()
            .await?;
        for (index, answer) in answers {
            self.entries[index].answer = Some(answer);
        }
        Ok(())
    }

    async fn save(
        &self,
        index: usize,
        words: &'static Template,
    ) -> Result<(usize, Answer), SaveError> {
        Ok((index, self.save_one(index, words).await?))
    }

    async fn save_one(&self, index: usize, words: &Template) -> Result<Answer, SaveError> {
        let library = &self.decider.library;
        let content = &self.entries[index].result.content;
        let Some(text) = content.main_text() else {
            return Ok(self.inline(index, words));
        };
        let request = self.save_request(index);
        let body = Bytes::copy_from_slice(text.as_bytes());
        let body = stream::once(async move { Ok(body) }).boxed();
        let manifest = match library.save(request.clone(), body).await {
            Ok(saved) => saved.manifest,
            Err(error) if matches!(error, SaveError::Erased(_)) => {
                return self.unsaved(index, error, words);
            }
            // What cannot be saved now may have been saved before.
            Err(error) => {
                let digest = Sha256Digest::of(text.as_bytes());
                match library.find_saved(&request, &self.chain, digest).await {
                    Ok(Some(manifest)) => manifest,
                    Err(erased @ SaveError::Erased(_)) => {
                        return self.unsaved(index, erased, words);
                    }
                    Ok(None) | Err(_) => return self.unsaved(index, error, words),
                }
            }
        };
        let mut answer = Answer::spilled(manifest);
        if let Some(error) = &self.not_frozen {
            answer = answer.because(error.code().as_str());
        }
        Ok(self.placed(index, answer))
    }

    /// Answers a save that failed.
    fn unsaved(
        &self,
        index: usize,
        error: SaveError,
        words: &Template,
    ) -> Result<Answer, SaveError> {
        let entry = &self.entries[index];
        let text = entry.result.content.main_text().unwrap_or_default();
        let window_bytes = self.save_request(index).render.window_bytes();
        let unsaved = Unsaved {
            profile: &self.request.profile,
            tool: entry.result.tool.as_deref(),
            windows: &Windows::of(text.as_bytes(), window_bytes),
            text: Some(text),
            seen: Seen::Whole,
        };
        let answer = unsaved.answer(error, words)?;
        Ok(self.placed(index, answer))
    }

    /// Puts the text of an answer where the result had it: among its parts.
    fn placed(&self, index: usize, mut answer: Answer) -> Answer {
        let TurnContent::Parts(parts) = &self.entries[index].result.content else {
            return answer;
        };
        answer.content = match (answer.content, parts.largest_text()) {
            (Content::Text(text), Some(place)) => Content::Parts(parts.with_text(place, text)),
            (content, _) => content,
        };
        answer
    }

    /// Answers a result that stays.
    fn inline(&self, index: usize, words: &Template) -> Answer {
        let entry = &self.entries[index];
        let tool = entry.result.tool.as_deref();
        match &entry.result.content {
            TurnContent::Text(text) if is_blank(text) => {
                let text = (words.nothing_printed)(tool, entry.size.bytes);
                Answer::sentence(Action::Inline, text)
            }
            TurnContent::Text(text) => Answer::inline(Some(text)),
            TurnContent::Parts(parts) if parts.is_blank() && !parts.is_mixed() => {
                let text = (words.nothing_printed)(tool, entry.size.bytes);
                self.placed(index, Answer::sentence(Action::Inline, text))
            }
            TurnContent::Parts(parts) => {
                let mut answer = Answer::inline(None);
                if entry.size.bytes <= MAX_INLINE_TEXT_BYTES {
                    answer.content = Content::Parts(parts.as_values().to_vec());
                }
                answer
            }
            TurnContent::Artifact(_) => Answer::inline(None),
        }
    }

    fn answer(self, of_result: &[usize]) -> TurnAnswer {
        let profile = &self.request.profile;
        let unit = profile.turn.measure;
        let budget = profile.turn_budget(&self.turn_given());
        let mut total = 0_u64;
        let mut answers = Vec::with_capacity(of_result.len());
        for entry in of_result.iter().map(|index| &self.entries[*index]) {
            let answer = entry.answer.clone().unwrap_or_else(|| Answer::inline(None));
            total = total.saturating_add(answer.size(entry.size).get(unit));
            answers.push(answer);
        }
        TurnAnswer {
            answers,
            total,
            budget,
            unit,
            is_over_budget: budget.is_exceeded_by(total),
        }
    }
}

impl From<SessionError> for DecideTurnError {
    fn from(error: SessionError) -> Self {
        Self::Save(error.into())
    }
}
