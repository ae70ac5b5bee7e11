//! One turn: what its results are, and what is answered for them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::measure::{Measure, Measures};
use crate::artifact::read::ReadError;
use crate::artifact::request::SaveError;
use crate::decision::Decider;
use crate::decision::answer::Answer;
use crate::digest::{Sha256Digest, tagged_hash};
use crate::error::ErrorCode;
use crate::ids::{ArtifactId, CallId, SessionId, Tenant, TurnId};
use crate::limits::MAX_TURN_RESULTS;
use crate::policy::limit::Limit;
use crate::policy::parts::Parts;
use crate::policy::profile::Profile;

/// The results of one turn.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// The tenant of the caller.
    pub tenant: Tenant,
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The session that this one forks from.
    pub parent: Option<SessionId>,
    /// The profile that decides.
    pub profile: Arc<Profile>,
    /// How the agent can read on.
    pub means: Vec<RetrievalMeans>,
    /// The model's context window.
    pub context_tokens: Option<u64>,
    /// The results, in the order of their calls.
    pub results: Vec<TurnResult>,
}

/// One result of a turn.
#[derive(Debug, Clone)]
pub struct TurnResult {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: Option<String>,
    /// The most that the tool's server declared for its results.
    pub server_max: Option<u64>,
    /// What it is.
    pub content: TurnContent,
}

/// What a result of a turn is.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnContent {
    /// A text.
    Text(String),
    /// Parts.
    Parts(Parts),
    /// What an artifact's replacement says.
    Artifact(ArtifactId),
}

impl TurnContent {
    /// Returns the digest by which records name it; of an artifact there is none.
    pub(super) fn digest(&self) -> Option<Sha256Digest> {
        match self {
            Self::Text(text) => Some(Sha256Digest::of(text.as_bytes())),
            // Members are sorted, so equal parts are equal bytes.
            Self::Parts(parts) => {
                let bytes = serde_json::to_vec(parts.as_values())
                    .expect("values that came as JSON go as JSON");
                Some(tagged_hash("spillbox/parts/v1", &[&bytes]))
            }
            Self::Artifact(_) => None,
        }
    }

    /// Returns the length of its text.
    pub(super) fn size(&self) -> Measures {
        match self {
            Self::Text(text) => Measures::of(text.as_bytes()),
            Self::Parts(parts) => parts.text_size(),
            Self::Artifact(_) => Measures::default(),
        }
    }

    /// Returns the text that would be taken out.
    pub(super) fn main_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Parts(parts) => parts.text(parts.largest_text()?),
            Self::Artifact(_) => None,
        }
    }
}

/// The results of a turn contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTurnError {
    /// There are too many.
    #[error("a turn has at most {MAX_TURN_RESULTS} results, this one has {0}")]
    TooMany(usize),
    /// One call has two results.
    #[error("results {first} and {second} have one call_id but other content")]
    Duplicate {
        /// The place of one, from 0.
        first: usize,
        /// The place of the other.
        second: usize,
    },
}

impl TurnRequest {
    /// Finds what is to be decided once, and for each result which of it.
    ///
    /// # Errors
    /// See [`InvalidTurnError`].
    pub(super) fn distinct(&self) -> Result<(Vec<usize>, Vec<usize>), InvalidTurnError> {
        if self.results.len() > MAX_TURN_RESULTS {
            return Err(InvalidTurnError::TooMany(self.results.len()));
        }
        let (mut distinct, mut of_result) = (Vec::new(), Vec::new());
        let mut seen: HashMap<&CallId, usize> = HashMap::new();
        for (place, result) in self.results.iter().enumerate() {
            let entry = *seen.entry(&result.call_id).or_insert_with(|| {
                distinct.push(place);
                distinct.len() - 1
            });
            let first = distinct[entry];
            if self.results[first].content != result.content {
                return Err(InvalidTurnError::Duplicate {
                    first,
                    second: place,
                });
            }
            of_result.push(entry);
        }
        Ok((distinct, of_result))
    }
}

/// A turn was not decided.
#[derive(Debug, thiserror::Error)]
pub enum DecideTurnError {
    /// Its results contradict each other.
    #[error(transparent)]
    Invalid(#[from] InvalidTurnError),
    /// It names an artifact that was never there.
    #[error("result {place}: no artifact {artifact} in this session or those above it")]
    NoArtifact {
        /// The place of the result, from 0.
        place: usize,
        /// What it names.
        artifact: ArtifactId,
    },
    /// An artifact that it names could not be looked at.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The session cannot be used so, or the profile wants an error where a save fails.
    #[error(transparent)]
    Save(#[from] SaveError),
}

impl DecideTurnError {
    /// Returns the code that this error is answered with.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Invalid(_) => ErrorCode::InvalidBody,
            Self::NoArtifact { .. } => ErrorCode::ArtifactNotFound,
            Self::Read(error) => error.code(),
            Self::Save(error) => error.code(),
        }
    }
}

/// What is answered for a turn.
#[derive(Debug, Clone)]
pub struct TurnAnswer {
    /// One answer for each result, in its order.
    pub answers: Vec<Answer>,
    /// What the turn holds now.
    pub total: u64,
    /// What it may hold.
    pub budget: Limit,
    /// The unit of both.
    pub unit: Measure,
    /// Whether it holds more.
    pub is_over_budget: bool,
}

impl Decider {
    /// Decides the results of a turn together.
    ///
    /// # Errors
    /// See [`DecideTurnError`]; nothing is stored by a request that is not well formed.
    pub async fn decide_turn(&self, request: TurnRequest) -> Result<TurnAnswer, DecideTurnError> {
        let decider = self.clone();
        let work = async move { decider.decide_turn_here(&request).await };
        let ended = self.library.detached(work).await;
        ended.unwrap_or_else(|| {
            let cause = "the decision ended early".to_owned();
            Err(SaveError::Internal(cause).into())
        })
    }
}
