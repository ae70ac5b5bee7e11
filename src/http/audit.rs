//! The audit stream: one line per operation, who did what to which artifact, and how it ended.
//!
//! What must hold (ADR 11): an operation runs only when the stream has a place for its line, so that no
//! line is ever dropped for want of room; a line names ids and never content, names, queries, session
//! ids or tokens; and a line is sent once its reply ended, however it ended. This half makes the lines;
//! `audit_log` writes them.

use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tokio::sync::mpsc;

use crate::auth::{Principal, PrincipalId};
use crate::clock::SharedClock;
use crate::error::ErrorCode;
use crate::http::artifact_path::artifact_of_path;
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::http::request_id::RequestId;
use crate::http::session_path::session_of_path;
use crate::ids::{ArtifactId, ArtifactRef, SessionKey, Tenant};
use crate::limits::{AUDIT_QUEUE_LINES, AUDIT_WAIT};

mod body;

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered in full.
    Ok,
    /// It was refused, or failed.
    Failed(ErrorCode),
    /// Its reply was not taken to the end: the caller left, or the stored bytes could not be read any
    /// further. A save may have landed all the same.
    Cut,
}

impl Outcome {
    /// Returns the word in the stream: `ok`, `cut`, or the error's code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(code) => code.as_str(),
            Self::Cut => "cut",
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One line. Unknown members are null, so that every line has the same ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEvent {
    /// When the request came.
    pub time: Timestamp,
    /// The id that its reply carries.
    pub request_id: String,
    /// Who asked; null where nobody was recognised.
    pub principal: Option<PrincipalId>,
    /// The tenant that it acted in.
    pub tenant: Option<Tenant>,
    /// The operation's word.
    pub operation: &'static str,
    /// The key of the session: a hash, where the session's id is the caller's text.
    pub session_key: Option<SessionKey>,
    /// The artifact that was asked for, or that a save became.
    pub artifact_id: Option<ArtifactId>,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes of a successful reply that were handed to the connection.
    pub bytes_served: u64,
}

/// The artifact that a reply is about, where the request's path does not say it; in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditSubject(pub(crate) ArtifactRef);

/// Where lines go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditSink {
    sender: mpsc::Sender<AuditEvent>,
    clock: SharedClock,
    wait: Duration,
}

impl AuditSink {
    /// Creates a stream; whoever has the receiver writes the lines.
    pub fn new(clock: SharedClock) -> (Self, mpsc::Receiver<AuditEvent>) {
        Self::with_capacity(clock, AUDIT_QUEUE_LINES)
    }

    /// The same with room for `lines` lines.
    pub fn with_capacity(clock: SharedClock, lines: usize) -> (Self, mpsc::Receiver<AuditEvent>) {
        let (sender, receiver) = mpsc::channel(lines);
        let sink = Self {
            sender,
            clock,
            wait: AUDIT_WAIT,
        };
        (sink, receiver)
    }

    /// Takes a place in the stream for one request.
    ///
    /// # Errors
    /// 503 `saturated`: no place came free in time, or nobody writes the lines any more.
    pub(crate) async fn reserve(&self) -> Result<AuditPlace, Problem> {
        let time = self.clock.now();
        let reserving = self.sender.clone().reserve_owned();
        match tokio::time::timeout(self.wait, reserving).await {
            Ok(Ok(permit)) => Ok(AuditPlace { permit, time }),
            Ok(Err(_)) | Err(_) => {
                let detail = "the audit stream takes no more lines now";
                Err(Problem::new(ErrorCode::Saturated, detail)
                    .caused_by("the audit stream is not being written; nothing runs unrecorded"))
            }
        }
    }
}

/// A place in the stream, taken before the operation begins.
#[derive(Debug)]
pub(crate) struct AuditPlace {
    permit: mpsc::OwnedPermit<AuditEvent>,
    time: Timestamp,
}

impl AuditPlace {
    /// Begins the line of a request.
    pub(crate) fn begin(self, operation: Operation, request: &Request) -> AuditLine {
        let request_id = request.extensions().get::<RequestId>();
        let artifact = artifact_of_path(request.uri().path());
        AuditLine {
            permit: Some(self.permit),
            event: AuditEvent {
                time: self.time,
                request_id: request_id.map_or(String::new(), |id| id.as_str().to_owned()),
                principal: None,
                tenant: None,
                operation: operation.as_str(),
                session_key: artifact.map(|artifact| artifact.session_key),
                artifact_id: artifact.map(|artifact| artifact.artifact_id),
                outcome: Outcome::Cut,
                bytes_served: 0,
            },
        }
    }
}

/// The line of a request that is running. It is sent when this value goes, whatever ends the request.
#[derive(Debug)]
pub(crate) struct AuditLine {
    permit: Option<mpsc::OwnedPermit<AuditEvent>>,
    event: AuditEvent,
}

impl AuditLine {
    /// Notes who asks, and with the tenant which session a path names.
    pub(crate) fn recognise(&mut self, principal: &Principal, path: &str) {
        self.event.principal = Some(principal.id.clone());
        self.event.tenant = Some(principal.tenant.clone());
        if let Ok(session) = session_of_path(path) {
            let key = SessionKey::derive(&principal.tenant, &session);
            self.event.session_key = Some(key);
        }
    }

    /// Goes with a reply until its last byte.
    pub(crate) fn follow(mut self, reply: Response) -> Response {
        let status = reply.status();
        if status.is_client_error() || status.is_server_error() {
            let problem = reply.extensions().get::<Problem>();
            let code = problem.map_or_else(|| Problem::for_status(status).code(), Problem::code);
            self.event.outcome = Outcome::Failed(code);
            return reply;
        }
        if let Some(AuditSubject(artifact)) = reply.extensions().get() {
            self.event.session_key = Some(artifact.session_key);
            self.event.artifact_id = Some(artifact.artifact_id);
        }
        body::follow(reply, self)
    }
}

impl Drop for AuditLine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.event.outcome = Outcome::Failed(ErrorCode::Internal);
        }
        if let Some(permit) = self.permit.take() {
            permit.send(self.event.clone());
        }
    }
}

#[cfg(test)]
mod tests;
