//! `POST /v1/sessions/{session}/results`: one tool result; the reply is what stands in the prompt for it.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;

use crate::decision::{Decider, ResultRequest};
use crate::http::budget::{self, Decided};
use crate::http::caller::Caller;
use crate::http::confine::demand_readable;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::reply;
use crate::http::save::{describe_result, stream_of};
use crate::http::session_path::SessionPath;
use crate::policy::profile::Given;

const PARAMETERS: &[&str] = &[
    "tool",
    "call_id",
    "profile",
    "parent",
    "means",
    "server_max_chars",
    "context_tokens",
];

/// Decides a result; 200 whatever became of it.
pub(crate) async fn decide(
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query(), PARAMETERS)?;
    let profile = budget::profile(&caller, query.text("profile"))?;
    let given = Given {
        server_max: budget::count(&query, "server_max_chars")?,
        context_tokens: budget::count(&query, "context_tokens")?,
    };
    let save = describe_result(&caller, session, &query, &parts.headers, &profile)?;
    demand_readable(&caller, save.parent.as_ref()).await?;
    let request = ResultRequest {
        save,
        profile,
        given,
    };
    let decider = Decider::new(caller.library.clone());
    let answer = decider.decide_result(request, stream_of(body)).await?;
    Ok(reply::json(StatusCode::OK, &Decided::of(&caller, answer)))
}
