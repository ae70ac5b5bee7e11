//! What a credential that the service made is limited to: a session token to its session and, for
//! reading, to the sessions above it; a capability to its artifact.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;

use crate::artifact::read::ReadError;
use crate::auth::{Credential, Principal, Scope};
use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::artifact_path::artifact_of_path;
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::http::session_path::session_of_path;
use crate::ids::{SessionKey, Tenant};

/// The parameter that holds a capability.
pub(crate) const CAPABILITY: &str = "capability";

/// Takes the capability out of a request's URI, so that no handler, log or metric meets it. One beside
/// others of the same name stays: the handler refuses it as unknown.
pub(crate) fn take_capability(request: &mut Request) -> Option<String> {
    let uri = request.uri();
    let query = uri.query()?;
    let is_ours = |pair: &&str| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        name == CAPABILITY
    };
    let mut ours = query.split('&').filter(is_ours);
    let (first, None) = (ours.next()?, ours.next()) else {
        return None;
    };
    let text = first
        .split_once('=')
        .map_or("", |(_, value)| value)
        .to_owned();
    let rest: Vec<&str> = query.split('&').filter(|pair| !is_ours(pair)).collect();
    let target = match rest.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), rest.join("&")),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    Some(text)
}

/// Refuses what the principal's credential does not reach.
///
/// # Errors
/// 404 for an artifact of another session, as for one that does not exist; 403 `session_forbidden` else.
pub(crate) async fn confine(
    state: &AppState,
    principal: &Principal,
    operation: Operation,
    path: &str,
) -> Result<(), Problem> {
    let own = match principal.credential {
        Credential::Anonymous | Credential::ConfiguredToken => return Ok(()),
        Credential::Capability(artifact) => {
            let is_its = artifact_of_path(path) == Some(artifact) && operation.reads_an_artifact();
            return if is_its { Ok(()) } else { Err(forbidden()) };
        }
        Credential::SessionToken(own) => own,
    };
    if operation.mints() {
        return Err(Problem::new(
            ErrorCode::MintingUnavailable,
            "what was minted mints nothing",
        ));
    }
    if operation == Operation::Mcp {
        // Each tool asks the routes of the API, with this credential, and is confined there.
        return Ok(());
    }
    if path.starts_with("/a/") {
        let artifact = artifact_of_path(path).ok_or(ReadError::NotFound)?;
        let asked = artifact.session_key;
        let may_inherit = operation.reads_an_artifact();
        if asked == own || may_inherit && is_above(state, &principal.tenant, own, asked).await? {
            return Ok(());
        }
        return Err(ReadError::NotFound.into());
    }
    if path.starts_with("/v1/sessions/") {
        let session = session_of_path(path)?;
        if SessionKey::derive(&principal.tenant, &session) == own {
            return Ok(());
        }
    }
    Err(forbidden())
}

fn forbidden() -> Problem {
    let detail = "the credential is limited to a session or artifact that this is not about";
    Problem::new(ErrorCode::SessionForbidden, detail)
}

/// Returns whether `asked` is among the sessions from which `own` was forked.
async fn is_above(
    state: &AppState,
    tenant: &Tenant,
    own: SessionKey,
    asked: SessionKey,
) -> Result<bool, Problem> {
    let Some(library) = state.library() else {
        let detail = "the service has not opened its store yet";
        return Err(Problem::new(ErrorCode::StoreUnavailable, detail));
    };
    Ok(library.session_is_above(tenant, &own, &asked).await?)
}

/// Refuses a parent that the caller may not read.
///
/// # Errors
/// 403 without the scope; 404 `parent_not_found` where a session token names a session that is not above
/// its own.
pub(crate) async fn demand_readable(
    caller: &crate::http::caller::Caller,
    parent: Option<&crate::ids::SessionId>,
) -> Result<(), Problem> {
    let Some(parent) = parent else {
        return Ok(());
    };
    crate::http::gate::require(&caller.principal, Scope::Read)?;
    let Credential::SessionToken(own) = caller.principal.credential else {
        return Ok(());
    };
    let asked = SessionKey::derive(&caller.tenant, parent);
    let library = &caller.library;
    if library
        .session_is_above(&caller.tenant, &own, &asked)
        .await?
    {
        return Ok(());
    }
    let detail = "the token may not read that session, or it does not exist";
    Err(Problem::new(ErrorCode::ParentNotFound, detail))
}
