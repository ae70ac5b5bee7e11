//! The service as one router: which path leads where.
//!
//! No handler depends on a socket, so that the command line calls the same router in its own process
//! (`tower::ServiceExt::oneshot`) when it works straight on a store.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use tokio_util::task::TaskTracker;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::library::Library;
use crate::http::request_id::RequestIds;
use crate::http::{bytes, finish, grep, health, lines, list, outline, refused_body, save, stat};
use crate::http::{results, turns};
use crate::ids::Tenant;
use crate::policy::profiles::Profiles;

/// The paths of this service.
pub mod path {
    /// Saves and lists a session's artifacts.
    pub const ARTIFACTS: &str = "/v1/sessions/{session}/artifacts";
    /// Decides one result.
    pub const RESULTS: &str = "/v1/sessions/{session}/results";
    /// Decides the results of a turn.
    pub const TURN: &str = "/v1/sessions/{session}/turns/{turn}";
    /// The bytes of an artifact.
    pub const BYTES: &str = "/a/{locator}";
    /// Pages of lines.
    pub const LINES: &str = "/a/{locator}/lines";
    /// Search hits.
    pub const GREP: &str = "/a/{locator}/grep";
    /// Errors, warnings, gaps and sections.
    pub const OUTLINE: &str = "/a/{locator}/outline";
    /// The manifest without its chunk table.
    pub const STAT: &str = "/a/{locator}/stat";
    /// What a memory may keep.
    pub const REFERENCE: &str = "/a/{locator}/reference";
    /// The frozen text.
    pub const REPLACEMENT: &str = "/a/{locator}/replacement";
    /// Whether the process runs.
    pub const LIVEZ: &str = "/livez";
    /// The same, under the name that some platforms ask for.
    pub const HEALTHZ: &str = "/healthz";
    /// Whether requests are welcome.
    pub const READYZ: &str = "/readyz";
    /// The contract.
    pub const OPENAPI: &str = "/openapi.yaml";
}

fn routes() -> Vec<(&'static str, MethodRouter<AppState>)> {
    vec![
        (
            path::ARTIFACTS,
            post(save::save).put(save::save).get(list::list),
        ),
        (path::RESULTS, post(results::decide)),
        (path::TURN, post(turns::decide)),
        (path::BYTES, get(bytes::bytes)),
        (path::LINES, get(lines::lines)),
        (path::GREP, get(grep::grep)),
        (path::OUTLINE, get(outline::outline)),
        (path::STAT, get(stat::stat)),
        (path::REFERENCE, get(stat::reference)),
        (path::REPLACEMENT, get(stat::replacement)),
        (path::LIVEZ, get(health::livez)),
        (path::HEALTHZ, get(health::livez)),
        (path::READYZ, get(health::readyz)),
        (path::OPENAPI, get(health::openapi)),
    ]
}

/// Returns the path of every route, for the comparison with the contract.
pub fn paths() -> Vec<&'static str> {
    routes().into_iter().map(|(path, _)| path).collect()
}

/// Builds the whole service.
pub fn router(state: AppState, request_ids: RequestIds) -> Router {
    let router = routes()
        .into_iter()
        .fold(Router::new(), |router, (path, methods)| {
            router.route(path, methods)
        })
        .with_state(state.clone());
    let drains = state.0.drains.clone();
    finish(router, request_ids).layer(from_fn_with_state(drains, refused_body::read_on))
}

/// What all requests share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    library: OnceLock<Library>,
    tenant: Tenant,
    default_means: Vec<RetrievalMeans>,
    is_draining: AtomicBool,
    drains: TaskTracker,
    profiles: OnceLock<Profiles>,
}

impl AppState {
    /// Offers other profiles than the built-in ones; the first call counts.
    pub fn offer(&self, profiles: Profiles) {
        if self.0.profiles.set(profiles).is_err() {
            tracing::warn!("the service has profiles already; it keeps those");
        }
    }

    pub(crate) fn profiles(&self) -> Profiles {
        self.0.profiles.get_or_init(Profiles::default).clone()
    }

    /// Starts without a store: everything that needs one answers 503 until [`AppState::open`].
    ///
    /// `default_means` are the retrieval means of callers that declare none.
    pub fn starting(tenant: Tenant, default_means: Vec<RetrievalMeans>) -> Self {
        Self(Arc::new(Shared {
            library: OnceLock::new(),
            tenant,
            default_means,
            is_draining: AtomicBool::new(false),
            drains: TaskTracker::new(),
            profiles: OnceLock::new(),
        }))
    }

    /// Starts on a store that is known to be good.
    pub fn opened(library: Library, tenant: Tenant, default_means: Vec<RetrievalMeans>) -> Self {
        let state = Self::starting(tenant, default_means);
        state.open(library);
        state
    }

    /// Gives the service its store; the first one stays.
    pub fn open(&self, library: Library) {
        if self.0.library.set(library).is_err() {
            tracing::warn!("the service has a store already; it keeps that one");
        }
    }

    /// Makes `/readyz` say no, so that new requests go elsewhere while running ones end.
    pub fn start_draining(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns the artifacts, once the store is open.
    pub fn library(&self) -> Option<&Library> {
        self.0.library.get()
    }

    pub(crate) fn tenant(&self) -> &Tenant {
        &self.0.tenant
    }

    pub(crate) fn default_means(&self) -> &[RetrievalMeans] {
        &self.0.default_means
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Relaxed)
    }
}
