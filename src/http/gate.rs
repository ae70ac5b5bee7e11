//! The one place where a request is let in: authentication, then authorisation, before anything else.
//!
//! Nothing of the request but its head was looked at when this decides: no body is read, no parameter
//! parsed, no store asked. So a caller without a token learns nothing from how a malformed request is
//! answered, and a refused one costs nothing.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::auth::{PresentedToken, Principal, Refusal, Scope};
use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::artifact_path::artifact_of_path;
use crate::http::failed_access::PeerAddress;
use crate::http::measure;
use crate::http::operation::Operation;
use crate::http::problem::Problem;

/// What one method of one path asks of its callers.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) state: AppState,
    pub(crate) operation: Operation,
}

/// A layer: the request goes on with its [`Principal`] among its extensions, or is refused. Either way
/// the audit stream, where there is one, gets its line.
pub(crate) async fn admit(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let mut line = match gate.state.audit() {
        None => None,
        Some(sink) => match sink.reserve().await {
            Ok(place) => Some(place.begin(gate.operation, &request)),
            Err(problem) => return problem.into_response(),
        },
    };
    let admitted = principal_of(&gate, &request).and_then(|principal| {
        if let Some(line) = &mut line {
            line.recognise(principal, request.uri().path());
        }
        require(principal, gate.operation.scope())?;
        if let Some(limits) = gate.state.request_limits() {
            limits.admit(&principal.id)?;
        }
        Ok(principal.clone())
    });
    let reply = match admitted {
        Ok(principal) => {
            let artifact = artifact_of_path(request.uri().path());
            let artifact = artifact.filter(|_| gate.operation.reads_back());
            let tenant = principal.tenant.clone();
            request.extensions_mut().insert(principal);
            let reply = next.run(request).await;
            match (artifact, gate.state.read_back().cloned()) {
                (Some(artifact), Some(read_back)) if reply.status().is_success() => {
                    let session = artifact.session_key;
                    measure::counted(reply, move |bytes| read_back.add(&tenant, session, bytes))
                }
                _ => reply,
            }
        }
        Err(problem) => problem.into_response(),
    };
    match line {
        Some(line) => line.follow(reply),
        None => reply,
    }
}

fn principal_of<'a>(gate: &'a Gate, request: &Request) -> Result<&'a Principal, Problem> {
    let values = request.headers().get_all(AUTHORIZATION).iter();
    let presented = PresentedToken::of_headers(values.map(HeaderValue::as_bytes));
    let found = gate.state.authenticator().authenticate(presented);
    if found.is_err() {
        let peer = request.extensions().get::<PeerAddress>();
        gate.state.failed_access().admit(peer)?;
    }
    Ok(found?)
}

/// Refuses a principal that may not do what needs `scope`.
///
/// # Errors
/// 403 `insufficient_scope`, which names the scope.
pub(crate) fn require(principal: &Principal, scope: Scope) -> Result<(), Problem> {
    if principal.may(scope) {
        return Ok(());
    }
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
    let challenge = HeaderValue::try_from(challenge).expect("a scope is a lower-case word");
    let detail = format!("the token lacks the scope `{scope}`");
    Err(Problem::new(ErrorCode::InsufficientScope, detail).with_header(WWW_AUTHENTICATE, challenge))
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        // Without a credential the challenge names no error (RFC 6750 §3.1).
        let challenge = match refusal {
            Refusal::NothingPresented => "Bearer",
            Refusal::InvalidToken => "Bearer error=\"invalid_token\"",
        };
        Self::new(ErrorCode::Unauthenticated, refusal.to_string())
            .with_header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }
}
