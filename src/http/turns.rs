//! `POST /v1/sessions/{session}/turns/{turn}`: the results of one turn together.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::artifact::measure::Measure;
use crate::decision::{DecideTurnError, Decider, TurnContent, TurnRequest, TurnResult};
use crate::error::ErrorCode;
use crate::http::budget::{self, Decided};
use crate::http::caller::Caller;
use crate::http::confine::demand_readable;
use crate::http::problem::{Problem, excerpt};
use crate::http::query::{NoQuery, decode_percent};
use crate::http::reply;
use crate::http::session_path::SessionPath;
use crate::http::upload_headers::refuse_encoded_or_partial;
use crate::ids::{ArtifactId, CallId, SessionId, TurnId};
use crate::limits::{
    BODY_IDLE_TIMEOUT, MAX_DESCRIPTION_BYTES, MAX_TURN_BODY_BYTES, TURN_QUEUE_TIMEOUT,
    TURNS_AT_ONCE,
};
use crate::policy::limit::Limit;
use crate::policy::parts::Parts;

/// Turns whose documents are in memory.
static TURNS: Semaphore = Semaphore::const_new(TURNS_AT_ONCE);

/// What a caller sends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    profile: Option<String>,
    #[serde(default)]
    parent: Option<SessionId>,
    #[serde(default)]
    means: Option<Means>,
    #[serde(default)]
    context_tokens: Option<u64>,
    results: Vec<Entry>,
}

/// A comma list, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Means {
    Line(String),
    List(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    call_id: CallId,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    server_max_chars: Option<u64>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    artifact_id: Option<ArtifactId>,
    #[serde(default)]
    parts: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct Reply<'a> {
    results: Vec<Named<'a>>,
    total: u64,
    /// Absent budgets are null.
    budget: Option<u64>,
    unit: Measure,
    over_budget: bool,
}

#[derive(Serialize)]
struct Named<'a> {
    call_id: &'a CallId,
    #[serde(flatten)]
    decided: Decided,
}

/// Decides a turn; 200 whatever became of its results.
pub(crate) async fn decide(
    caller: Caller,
    SessionPath(session): SessionPath,
    _: NoQuery,
    request: Request,
) -> Result<Response, Problem> {
    let turn = turn_of_path(request.uri().path())?;
    let (parts, body) = request.into_parts();
    refuse_encoded_or_partial(&parts.headers)?;
    let waiting = timeout(TURN_QUEUE_TIMEOUT, TURNS.acquire()).await;
    let Ok(Ok(_place)) = waiting else {
        let detail = format!("{TURNS_AT_ONCE} turns are being decided");
        return Err(Problem::new(ErrorCode::Saturated, detail));
    };
    let bytes = read(body, MAX_TURN_BODY_BYTES, BODY_IDLE_TIMEOUT).await?;
    let document: Document = serde_json::from_slice(&bytes).map_err(|error| {
        // What serde says of the text is short, but for names that the caller chose.
        invalid(excerpt(&error.to_string()))
    })?;
    drop(bytes);
    let request = turn_request(&caller, session, turn, document)?;
    demand_readable(&caller, request.parent.as_ref()).await?;
    let call_ids: Vec<CallId> = request
        .results
        .iter()
        .map(|result| result.call_id.clone())
        .collect();
    let decider = Decider::new(caller.library.clone());
    let turn = decider.decide_turn(request).await?;
    let answers = call_ids.iter().zip(turn.answers);
    let results = answers.map(|(call_id, answer)| Named {
        call_id,
        decided: Decided::of(&caller, answer),
    });
    let reply = Reply {
        results: results.collect(),
        total: turn.total,
        budget: match turn.budget {
            Limit::AtMost(most) => Some(most),
            Limit::Never => None,
        },
        unit: turn.unit,
        over_budget: turn.is_over_budget,
    };
    Ok(reply::json(StatusCode::OK, &reply))
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::InvalidBody, detail)
}

/// Reads the segment behind `/turns/`, as a session's is read.
fn turn_of_path(path: &str) -> Result<TurnId, Problem> {
    let segment = path.rsplit('/').next().unwrap_or_default();
    let refuse = |rule: String| {
        let detail = format!("parameter `turn`: `{}`: {rule}", excerpt(segment));
        Problem::new(ErrorCode::InvalidParameter, detail)
    };
    let text = decode_percent(segment).map_err(|rule| refuse(rule.to_owned()))?;
    text.parse()
        .map_err(|error: crate::ids::InvalidIdError| refuse(error.to_string()))
}

/// Reads a bounded document.
async fn read(body: Body, most_bytes: usize, idle: Duration) -> Result<Bytes, Problem> {
    let mut frames = body.into_data_stream();
    let mut bytes = Vec::new();
    loop {
        let frame = match timeout(idle, frames.next()).await {
            Ok(None) => return Ok(bytes.into()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                let detail = "the document ended early";
                return Err(Problem::new(ErrorCode::BodyIncomplete, detail).caused_by(error));
            }
            Err(_) => {
                let detail = format!("no byte of the document arrived for {} s", idle.as_secs());
                return Err(Problem::new(ErrorCode::RequestTimeout, detail));
            }
        };
        if bytes.len() + frame.len() > most_bytes {
            let detail = format!(
                "the document is larger than {most_bytes} bytes: save large results first (POST …/results) and name them by artifact_id"
            );
            return Err(Problem::new(ErrorCode::BodyTooLarge, detail));
        }
        bytes.extend_from_slice(&frame);
    }
}

fn turn_request(
    caller: &Caller,
    session: SessionId,
    turn: TurnId,
    document: Document,
) -> Result<TurnRequest, Problem> {
    let refuse = |error: crate::http::query::InvalidParameterError| invalid(error.to_string());
    let profile = budget::profile(caller, document.profile.as_deref()).map_err(refuse)?;
    let list = document.means.map(|means| match means {
        Means::Line(list) => list,
        Means::List(list) => list.join(","),
    });
    let means = budget::means(caller, &profile, list.as_deref()).map_err(refuse)?;
    let results = document.results.into_iter().enumerate();
    let results = results.map(|(place, entry)| turn_result(place, entry));
    Ok(TurnRequest {
        tenant: caller.tenant.clone(),
        session,
        turn,
        parent: document.parent,
        profile,
        means,
        context_tokens: document.context_tokens,
        results: results.collect::<Result<_, _>>()?,
    })
}

fn turn_result(place: usize, entry: Entry) -> Result<TurnResult, Problem> {
    let refuse = |rule: &str| invalid(format!("results[{place}]: {rule}"));
    let content = match (entry.text, entry.artifact_id, entry.parts) {
        (Some(text), None, None) => TurnContent::Text(text),
        (None, Some(artifact), None) => TurnContent::Artifact(artifact),
        (None, None, Some(parts)) => {
            TurnContent::Parts(Parts::new(parts).map_err(|error| refuse(&error.to_string()))?)
        }
        _ => return Err(refuse("exactly one of text, artifact_id and parts")),
    };
    if entry
        .tool
        .as_ref()
        .is_some_and(|tool| tool.len() > MAX_DESCRIPTION_BYTES)
    {
        return Err(refuse(&format!(
            "tool: at most {MAX_DESCRIPTION_BYTES} bytes of UTF-8"
        )));
    }
    Ok(TurnResult {
        call_id: entry.call_id,
        tool: entry.tool.filter(|tool| !tool.is_empty()),
        server_max: entry.server_max_chars,
        content,
    })
}

impl From<DecideTurnError> for Problem {
    fn from(error: DecideTurnError) -> Self {
        let code = error.code();
        match error {
            DecideTurnError::Invalid(_)
            | DecideTurnError::NoArtifact { .. }
            | DecideTurnError::NotLookedAt(_) => Self::new(code, error.to_string()),
            DecideTurnError::Save(error) => error.into(),
        }
    }
}
