//! The route table's vocabulary: a path, and for each of its methods what it does for callers.
//!
//! There is no way to register a handler without saying which [`Operation`] it is, or that it is
//! public. From that one word follow its scope, its authentication (before anything of the request but
//! the head is read) and its line in the audit stream.

use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter};

use crate::http::app::AppState;
use crate::http::gate::{Gate, admit};
use crate::http::operation::Operation;

/// Who may call a method of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Everybody: it tells nothing of any tenant.
    Public,
    /// Callers who may do this.
    Needs(Operation),
}

/// One path and its methods.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) methods: Vec<(Method, Guard)>,
    handlers: MethodRouter<AppState>,
    state: AppState,
}

impl Route {
    pub(crate) fn at(path: &'static str, state: &AppState) -> Self {
        Self {
            path,
            methods: Vec::new(),
            handlers: MethodRouter::new(),
            state: state.clone(),
        }
    }

    /// Answers GET, and HEAD with the same headers, to everybody.
    pub(crate) fn public<H, T>(mut self, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.methods.push((Method::GET, Guard::Public));
        self.handlers = self.handlers.on(MethodFilter::GET, handler);
        self
    }

    /// Answers GET, and HEAD with the same headers.
    pub(crate) fn get<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.on(Method::GET, MethodFilter::GET, operation, handler)
    }

    pub(crate) fn post<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.on(Method::POST, MethodFilter::POST, operation, handler)
    }

    pub(crate) fn put<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.on(Method::PUT, MethodFilter::PUT, operation, handler)
    }

    pub(crate) fn delete<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        self.on(Method::DELETE, MethodFilter::DELETE, operation, handler)
    }

    fn on<H, T>(
        mut self,
        method: Method,
        filter: MethodFilter,
        operation: Operation,
        handler: H,
    ) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        let gate = Gate {
            state: self.state.clone(),
            operation,
        };
        let guarded = MethodRouter::new()
            .on(filter, handler)
            .route_layer(from_fn_with_state(gate, admit));
        self.methods.push((method, Guard::Needs(operation)));
        self.handlers = self.handlers.merge(guarded);
        self
    }

    pub(crate) fn into_handlers(self) -> MethodRouter<AppState> {
        self.handlers
    }
}
