//! `POST /mcp`: the tools of [`crate::mcp`] over streamable HTTP, without sessions of the protocol.
//!
//! Each request is answered alone, by any replica. A tool's request goes through this service's own routes
//! with the caller's credential, so that it needs the scope, gets the audit line and spends the pace that
//! it would over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{self, Extensions, StatusCode};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Limited};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tower::ServiceExt;

use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::problem::Problem;
use crate::http::query::NoQuery;
use crate::http::request_id::WellFormedError;
use crate::ids::SessionId;
use crate::limits::MAX_MCP_REQUEST_BYTES;
use crate::mcp::{ArtifactTools, Ask, NoAnswerError};

/// The routes that a tool's requests go through: those of the API, without `/mcp`.
#[derive(Debug, Clone)]
pub(crate) struct ToolRoutes(pub(crate) Router);

/// Answers one message.
pub(crate) async fn answer(
    State(state): State<AppState>,
    Extension(ToolRoutes(routes)): Extension<ToolRoutes>,
    NoQuery: NoQuery,
    request: Request,
) -> Result<Response, Problem> {
    let Ok(_place) = state.mcp_calls().try_acquire() else {
        return Err(Problem::new(
            ErrorCode::Saturated,
            "too many tool calls are being answered",
        ));
    };
    let (mut parts, body) = request.into_parts();
    // The SDK insists on what is always so here: a JSON message, a client that takes any form of reply, and a
    // host name, which was looked at before (`host_policy`).
    let headers = &mut parts.headers;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    let any = "application/json, text/event-stream";
    headers.insert(ACCEPT, HeaderValue::from_static(any));
    let message = Limited::new(body, MAX_MCP_REQUEST_BYTES).collect().await;
    let message = message.map_err(|_| {
        let detail =
            format!("a message takes at most {MAX_MCP_REQUEST_BYTES} bytes, and all of them");
        Problem::new(ErrorCode::BodyTooLarge, detail)
    })?;
    let tools = ArtifactTools::new(
        Arc::new(OwnRoutes::for_call(routes, &parts)),
        SessionId::default(),
    );
    let service = StreamableHttpService::new(
        move || Ok(tools.clone()),
        Arc::new(NeverSessionManager::default()),
        // Which hosts and origins may ask is decided for every route (`host_policy`).
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts(),
    );
    let message = http::Request::from_parts(parts, Body::from(message.to_bytes()));
    let reply = service.handle(message).await.map(Body::new);
    Ok(in_the_protocols_form(reply))
}

/// An error that is a message of the protocol keeps its form: clients negotiate versions by it.
fn in_the_protocols_form(mut reply: Response) -> Response {
    let is_json = reply
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if is_json && reply.status() != StatusCode::INTERNAL_SERVER_ERROR {
        reply.extensions_mut().insert(WellFormedError);
    }
    reply
}

/// This service's own routes, asked in the name of one caller.
#[derive(Debug)]
struct OwnRoutes {
    routes: Router,
    headers: HeaderMap,
    extensions: Extensions,
}

impl OwnRoutes {
    fn for_call(routes: Router, call: &Parts) -> Self {
        let mut headers = HeaderMap::new();
        for value in call.headers.get_all(AUTHORIZATION) {
            headers.append(AUTHORIZATION, value.clone());
        }
        Self {
            routes,
            headers,
            extensions: call.extensions.clone(),
        }
    }
}

impl Ask for OwnRoutes {
    fn ask(
        &self,
        mut request: http::Request<Body>,
    ) -> BoxFuture<'_, Result<Response, NoAnswerError>> {
        request.headers_mut().extend(self.headers.clone());
        *request.extensions_mut() = self.extensions.clone();
        let answered = self.routes.clone().oneshot(request);
        async move {
            match answered.await {
                Ok(reply) => Ok(reply),
                Err(never) => match never {},
            }
        }
        .boxed()
    }
}
