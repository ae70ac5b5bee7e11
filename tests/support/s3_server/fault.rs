//! Faults: which request is hit, and what becomes of it.

use std::sync::{Mutex, PoisonError};

use super::log::{Op, Seen};

/// What becomes of a request that a fault hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Refused with this status and code before anything happens.
    Refuse { status: u16, code: &'static str },
    /// Applied, then answered with this status and code all the same.
    ApplyThenRefuse { status: u16, code: &'static str },
    /// The connection breaks before the request arrives.
    LoseRequest,
    /// Applied, and the connection breaks before the reply.
    LoseReply,
    /// The connection breaks now, and the request is applied when the test says so
    /// (`S3Server::apply_late`).
    ApplyLate,
    /// A proxy sends it twice; the second answer is given.
    ApplyTwice,
    /// The reply's body stops after so many bytes; `is_silent`: as if that were its end.
    CutBody { after_bytes: usize, is_silent: bool },
    /// A success that carries an error (CompleteMultipartUpload), applied or not.
    ErrorInSuccess {
        code: &'static str,
        is_applied: bool,
    },
    /// A listing page of at most so many keys; `is_honest`: it says that more follows.
    ShortListing { keys: usize, is_honest: bool },
    /// 403 where the answer was 404.
    DenyMissing,
    /// The stored body differs from the sent one in a bit, and the checksum is not looked at.
    Corrupt,
    /// A proxy's web page.
    WebPage { status: u16 },
    /// No answer, ever.
    Hang,
}

/// Hits requests of a kind and key class.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    op: Option<Op>,
    class: Option<String>,
    /// Matching requests to let pass first.
    skip: usize,
    /// Matching requests to hit after that.
    times: usize,
    action: Action,
}

impl Fault {
    /// Hits the first request of this kind, whatever its key.
    pub(crate) fn on(op: Op, action: Action) -> Self {
        Self {
            op: Some(op),
            class: None,
            skip: 0,
            times: 1,
            action,
        }
    }

    /// Hits the next request, whatever it is.
    pub(crate) fn on_any(action: Action) -> Self {
        Self {
            op: None,
            ..Self::on(Op::Other, action)
        }
    }

    /// Only keys of this class (`a`, `b`, …).
    pub(crate) fn of_class(mut self, class: &str) -> Self {
        self.class = Some(class.to_owned());
        self
    }

    /// Lets `skip` matching requests pass first.
    pub(crate) fn after(mut self, skip: usize) -> Self {
        self.skip = skip;
        self
    }

    /// Hits so many matching requests.
    pub(crate) fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Hits every matching request.
    pub(crate) fn always(self) -> Self {
        self.times(usize::MAX)
    }

    fn matches(&self, seen: &Seen) -> bool {
        self.op.is_none_or(|op| op == seen.op)
            && self.class.as_ref().is_none_or(|class| *class == seen.class)
    }
}

/// The faults that are still to come.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan(Mutex<Vec<Fault>>);

impl FaultPlan {
    pub(crate) fn add(&self, fault: Fault) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(fault);
    }

    pub(crate) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Decides what becomes of a request; the oldest fault that matches is used up by it.
    pub(crate) fn take(&self, seen: &Seen) -> Option<Action> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = plan
            .iter_mut()
            .find(|fault| fault.times > 0 && fault.matches(seen))?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        if fault.times != usize::MAX {
            fault.times -= 1;
        }
        let action = fault.action.clone();
        plan.retain(|fault| fault.times > 0);
        Some(action)
    }
}
