//! `POST /v1/sessions/{session}/tokens` and `POST /a/{locator}/capability`: credentials for those who get
//! none of the configuration.
//!
//! Only a configured token makes them. What it makes has no scope that it lacks, and ends with it: each
//! use looks whether its maker is still configured, and what it may still do.

use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::artifact::locator::Locator;
use crate::auth::{CapabilityGrant, Credential, Scope, Scopes, SessionGrant, SigningKeys};
use crate::error::ErrorCode;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::confine::CAPABILITY;
use crate::http::gate::require;
use crate::http::json_body;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::session_path::SessionPath;
use crate::ids::{SessionId, SessionKey};
use crate::limits::{MAX_CAPABILITY_TTL, MAX_MINT_REQUEST_BYTES, MAX_SESSION_TOKEN_TTL};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRequest {
    ttl_seconds: u64,
    scopes: Vec<String>,
    parent: Option<SessionId>,
}

#[derive(Serialize)]
struct Token {
    token: String,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilityRequest {
    ttl_seconds: u64,
}

#[derive(Serialize)]
struct Capability {
    url: String,
    expires_at: Timestamp,
}

/// Makes a token for one session; 201.
pub(crate) async fn token(
    caller: Caller,
    SessionPath(session): SessionPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let keys = may_mint(&caller)?;
    let most = MAX_MINT_REQUEST_BYTES;
    let asked: TokenRequest =
        json_body::read(&parts.headers, body, most, ErrorCode::InvalidBody).await?;
    let scopes = scopes_of(&asked.scopes)?;
    for scope in scopes.iter() {
        require(&caller.principal, scope)?;
    }
    let expires_at = end_of(&caller, asked.ttl_seconds, MAX_SESSION_TOKEN_TTL)?;
    if let Some(parent) = &asked.parent {
        // The session is created with its parent now, so that its sandbox cannot choose another.
        let library = &caller.library;
        library
            .create_session(&caller.tenant, &session, parent)
            .await?;
    }
    let grant = SessionGrant {
        session_key: SessionKey::derive(&caller.tenant, &session),
        tenant: caller.tenant.clone(),
        scopes,
        expires_at,
        minter: caller.principal.id.clone(),
    };
    let token = grant.seal(keys);
    Ok(secret(&Token { token, expires_at }))
}

/// Makes a URL that reads one artifact; 201.
pub(crate) async fn capability(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Query::parse(parts.uri.query(), &[])?;
    let keys = may_mint(&caller)?;
    let most = MAX_MINT_REQUEST_BYTES;
    let asked: CapabilityRequest =
        json_body::read(&parts.headers, body, most, ErrorCode::InvalidBody).await?;
    let expires_at = end_of(&caller, asked.ttl_seconds, MAX_CAPABILITY_TTL)?;
    // Only for what is there to be read.
    let manifest = caller.library.stat(&caller.tenant, &artifact).await?;
    let locator = Locator::of(&manifest);
    let grant = CapabilityGrant {
        tenant: caller.tenant.clone(),
        artifact,
        expires_at,
        minter: caller.principal.id.clone(),
    };
    let url = format!("{}?{CAPABILITY}={}", locator.as_str(), grant.seal(keys));
    Ok(secret(&Capability { url, expires_at }))
}

/// Returns the keys that sign for this caller.
fn may_mint(caller: &Caller) -> Result<&SigningKeys, Problem> {
    let refuse = |detail: &str| Problem::new(ErrorCode::MintingUnavailable, detail);
    match caller.principal.credential {
        Credential::ConfiguredToken => {}
        Credential::Anonymous => {
            return Err(refuse(
                "the service has no [[tokens]], so nobody needs another one",
            ));
        }
        Credential::SessionToken(_) | Credential::Capability(_) => {
            return Err(refuse("what was minted mints nothing"));
        }
    }
    let keys = caller.signing_keys.as_ref();
    keys.ok_or_else(|| refuse("access.signing_keys_from is not set"))
}

fn scopes_of(words: &[String]) -> Result<Scopes, Problem> {
    let refuse = |rule: String| Problem::new(ErrorCode::InvalidBody, format!("`scopes`: {rule}"));
    let scopes: Result<Vec<Scope>, _> = words.iter().map(|word| word.parse()).collect();
    let scopes =
        scopes.map_err(|error: crate::auth::UnknownScopeError| refuse(error.to_string()))?;
    if scopes.is_empty() {
        return Err(refuse(
            "names no scope, so that the token could do nothing".to_owned(),
        ));
    }
    Ok(scopes.into_iter().collect())
}

/// Returns the end, in whole seconds.
fn end_of(caller: &Caller, ttl_seconds: u64, longest: Duration) -> Result<Timestamp, Problem> {
    let longest = longest.as_secs();
    let refuse = || {
        let detail = format!("`ttl_seconds`: 1 to {longest}");
        Problem::new(ErrorCode::InvalidBody, detail)
    };
    if !(1..=longest).contains(&ttl_seconds) {
        return Err(refuse());
    }
    let ttl = i64::try_from(ttl_seconds).map_err(|_| refuse())?;
    let now = caller.library.clock().now();
    let end = now.checked_add(SignedDuration::from_secs(ttl)).ok();
    end.and_then(|end| Timestamp::from_second(end.as_second()).ok())
        .ok_or_else(refuse)
}

/// A reply that nobody on the way keeps.
fn secret(document: &impl Serialize) -> Response {
    crate::http::lease::reply::fresh(StatusCode::CREATED, document)
}
