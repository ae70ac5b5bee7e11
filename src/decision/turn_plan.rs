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
use crate::artifact::request::SaveError;
use crate::artifact::session::SessionError;
use crate::decision::answer::Answer;
use crate::decision::freeze::did_of;
use crate::decision::outcome::{deleted, is_of_the_caller};
use crate::decision::turn::{DecideTurnError, TurnAnswer, TurnContent, TurnRequest, TurnResult};
use crate::decision::{Chain, Decider};
use crate::digest::Sha256Digest;
use crate::error::ErrorCode;
use crate::ids::{ArtifactId, ArtifactRef, DecisionId, SessionKey, TurnHash};
use crate::limits::{MAX_TURN_RECORDS, TURN_READS_AT_ONCE};
use crate::policy::frozen::{Action, Frozen, Level, Nearest, ResultRecord, TurnRecord, nearest};
use crate::policy::profile::OnSaveFailure;
use crate::policy::template::Template;

/// One distinct result of the turn.
pub(super) struct Entry<'a> {
    pub(super) result: &'a TurnResult,
    /// Absent of an artifact.
    pub(super) digest: Option<Sha256Digest>,
    pub(super) size: Measures,
    /// What each session's own record says of it, nearest first.
    pub(super) records: Vec<Option<ResultRecord>>,
    /// What is answered, once that is known.
    pub(super) answer: Option<Answer>,
    /// What the text that would be taken out costs then; rendered once.
    pub(super) price: Option<Option<u64>>,
}

/// What is to become of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Stays,
    Spilled,
}

/// A turn that is being decided.
pub(super) struct Run<'a> {
    pub(super) decider: &'a Decider,
    pub(super) request: &'a TurnRequest,
    pub(super) chain: Chain,
    pub(super) turn: TurnHash,
    pub(super) entries: Vec<Entry<'a>>,
    /// The turn's records of each session of the chain, nearest first.
    pub(super) records: Vec<Vec<TurnRecord>>,
    /// Why nothing can be frozen, where it cannot.
    pub(super) not_frozen: Option<SaveError>,
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
            .map_err(SaveError::from);
        let chain = match chain {
            Ok(chain) => chain,
            Err(error) if is_of_the_caller(&error) => return Err(error.into()),
            Err(error) => {
                for (index, _) in named {
                    self.entries[index].answer = Some(self.not_looked_at(error.code())?);
                }
                return Ok(());
            }
        };
        let words = self.decider.templates.newest();
        let finding = named.into_iter().map(|(index, artifact_id)| {
            let chain = &chain;
            async move {
                for session in chain {
                    let artifact = ArtifactRef {
                        session_key: SessionKey::derive(tenant, session),
                        artifact_id,
                    };
                    let found = library.look_up(tenant, &artifact).await;
                    match found.map_err(ReadError::from) {
                        Ok(Lookup::Absent) => {}
                        found => return (index, artifact_id, Some(found)),
                    }
                }
                (index, artifact_id, None)
            }
        });
        let found: Vec<_> = stream::iter(finding)
            .buffered(TURN_READS_AT_ONCE)
            .collect()
            .await;
        for (index, artifact, found) in found {
            let tool = self.entries[index].result.tool.as_deref();
            let answer = match found {
                Some(Ok(Lookup::Live(manifest))) => Answer::spilled(manifest),
                Some(Ok(Lookup::Tombstone(tombstone))) => {
                    deleted(words, tool, tombstone.tombstone.as_str())
                }
                Some(Ok(Lookup::Absent)) | None => {
                    let place = distinct[index];
                    return Err(DecideTurnError::NoArtifact { place, artifact });
                }
                Some(Err(error)) => self.not_looked_at(error.code())?,
            };
            self.entries[index].answer = Some(answer);
        }
        Ok(())
    }

    /// Answers an artifact that cannot be looked at now: what the caller has of it stays.
    fn not_looked_at(&self, code: ErrorCode) -> Result<Answer, DecideTurnError> {
        if self.request.profile.on_save_failure == OnSaveFailure::Error {
            return Err(DecideTurnError::NotLookedAt(code));
        }
        let mut answer = Answer::inline(None).because(code.as_str());
        answer.action = Action::Spilled;
        Ok(answer)
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

    pub(super) fn did(&self, index: usize) -> Option<DecisionId> {
        self.did_in(index, 0)
    }

    pub(super) fn nearest(&self, index: usize) -> Nearest {
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
}

impl From<SessionError> for DecideTurnError {
    fn from(error: SessionError) -> Self {
        Self::Save(error.into())
    }
}
