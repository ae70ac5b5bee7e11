//! What is answered for each result of a turn, and the saves that it takes.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::artifact::request::SaveError;
use crate::artifact::windows::Windows;
use crate::decision::answer::{Answer, Content};
use crate::decision::outcome::Unsaved;
use crate::decision::turn::{DecideTurnError, TurnAnswer, TurnContent};
use crate::decision::turn_plan::Run;
use crate::digest::Sha256Digest;
use crate::limits::{MAX_INLINE_TEXT_BYTES, TURN_SAVES_AT_ONCE};
use crate::policy::decide::is_blank;
use crate::policy::fallback::Seen;
use crate::policy::frozen::Action;
use crate::policy::template::Template;

impl Run<'_> {
    /// Saves results and answers what stands for them.
    pub(super) async fn spill(
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
    pub(super) fn unsaved(
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
    pub(super) fn inline(&self, index: usize, words: &Template) -> Answer {
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

    pub(super) fn answer(self, of_result: &[usize]) -> TurnAnswer {
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
