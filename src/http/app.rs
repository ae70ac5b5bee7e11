//! The service as one router: which path leads where.
//!
//! No handler depends on a socket, so that the command line calls the same router in its own process
//! (`tower::ServiceExt::oneshot`) when it works straight on a store.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::library::Library;
use crate::auth::Authenticator;
use crate::gc::collector::{Collector, Fence};
use crate::gc::policy::PolicySettings;
use crate::http::audit::AuditSink;
use crate::http::failed_access::FailedAccess;
use crate::http::gc::jobs::Jobs;
use crate::http::gc::{plans, reports};
use crate::http::host_policy::{HostPolicy, refuse_foreign};
use crate::http::lease::{change, hold, list as leases, prepare, reconcile};
use crate::http::metrics::Metrics;
use crate::http::operation::Operation;
use crate::http::rate_limit::RequestLimits;
use crate::http::read_back::{self, ReadBack};
use crate::http::readiness::{NotReady, StoreHealth};
use crate::http::request_id::RequestIds;
use crate::http::route::{Guard, Route};
use crate::http::{
    bytes, erase, finish, grep, health, journal, lines, list, mcp, measure, outline, refused_body,
    results, save, stat, turns, with_fallbacks,
};
use crate::ids::Tenant;
use crate::lease::journals::Journals;
use crate::lease::leases::{LeaseOptions, Leases, Owners};
use crate::limits::{MAX_CONCURRENT_MCP_CALLS, MAX_CONCURRENT_WALKS};
use crate::policy::profiles::Profiles;

/// The paths of this service.
pub mod path {
    /// Saves and lists a session's artifacts.
    pub const ARTIFACTS: &str = "/v1/sessions/{session}/artifacts";
    /// Decides one result.
    pub const RESULTS: &str = "/v1/sessions/{session}/results";
    /// Decides the results of a turn.
    pub const TURN: &str = "/v1/sessions/{session}/turns/{turn}";
    /// What was read back of a session.
    pub const USAGE: &str = "/v1/sessions/{session}/usage";
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
    /// Keeps an artifact, and stops keeping it.
    pub const HOLD: &str = "/a/{locator}/hold";
    /// Claims artifacts and lists the claims.
    pub const LEASES: &str = "/v1/sessions/{session}/leases";
    /// One claim.
    pub const LEASE: &str = "/v1/sessions/{session}/leases/{txn}";
    /// The owner holds its references.
    pub const COMMIT: &str = "/v1/sessions/{session}/leases/{txn}/commit";
    /// The owner refused the references.
    pub const ABORT: &str = "/v1/sessions/{session}/leases/{txn}/abort";
    /// The owner removed the references.
    pub const RELEASE: &str = "/v1/sessions/{session}/leases/{txn}/release";
    /// The owner keeps them longer.
    pub const EXTEND: &str = "/v1/sessions/{session}/leases/{txn}/extend";
    /// Finds out what became of it.
    pub const RECONCILE: &str = "/v1/sessions/{session}/leases/{txn}/reconcile";
    /// Makes an unknown outcome final.
    pub const RESOLVE: &str = "/v1/sessions/{session}/leases/{txn}/resolve";
    /// Where a session's journal ends.
    pub const JOURNAL: &str = "/v1/sessions/{session}/journal";
    /// Walks it.
    pub const VERIFY_JOURNAL: &str = "/v1/sessions/{session}/journal/verify";
    /// Ends its being suspect.
    pub const CLEAR_JOURNAL: &str = "/v1/sessions/{session}/journal/clear";
    /// Makes a plan of what may go.
    pub const GC_PLANS: &str = "/v1/gc/plans";
    /// One plan.
    pub const GC_PLAN: &str = "/v1/gc/plans/{id}";
    /// Deletes what it proposes.
    pub const GC_APPLY: &str = "/v1/gc/plans/{id}/apply";
    /// What that did.
    pub const GC_REPORT: &str = "/v1/gc/reports/{id}";
    /// The tools of the Model Context Protocol.
    pub const MCP: &str = "/mcp";
    /// Whether the process runs.
    pub const LIVEZ: &str = "/livez";
    /// The same, under the name that some platforms ask for.
    pub const HEALTHZ: &str = "/healthz";
    /// Whether requests are welcome.
    pub const READYZ: &str = "/readyz";
    /// The contract.
    pub const OPENAPI: &str = "/openapi.yaml";
}

/// The route table: the only place where a handler meets a path.
fn routes(state: &AppState) -> Vec<Route> {
    let at = |path| Route::at(path, state);
    vec![
        at(path::ARTIFACTS)
            .post(Operation::Save, save::save)
            .put(Operation::Save, save::save)
            .get(Operation::List, list::list),
        at(path::RESULTS).post(Operation::Result, results::decide),
        at(path::TURN).post(Operation::Turn, turns::decide),
        at(path::USAGE).get(Operation::Usage, read_back::usage),
        at(path::BYTES)
            .get(Operation::Read, bytes::bytes)
            .delete(Operation::Erase, erase::erase),
        at(path::LINES).get(Operation::Lines, lines::lines),
        at(path::GREP).get(Operation::Grep, grep::grep),
        at(path::OUTLINE).get(Operation::Outline, outline::outline),
        at(path::STAT).get(Operation::Stat, stat::stat),
        at(path::REFERENCE).get(Operation::Reference, stat::reference),
        at(path::REPLACEMENT).get(Operation::Replacement, stat::replacement),
        at(path::HOLD)
            .post(Operation::Hold, hold::hold)
            .delete(Operation::Lift, hold::lift),
        at(path::LEASES)
            .post(Operation::Prepare, prepare::prepare)
            .get(Operation::ListLeases, leases::list),
        at(path::LEASE).get(Operation::GetLease, leases::get),
        at(path::COMMIT).post(Operation::Commit, change::commit),
        at(path::ABORT).post(Operation::Abort, change::abort),
        at(path::RELEASE).post(Operation::Release, change::release),
        at(path::EXTEND).post(Operation::Extend, change::extend),
        at(path::RECONCILE).post(Operation::Reconcile, reconcile::reconcile),
        at(path::RESOLVE).post(Operation::Resolve, change::resolve),
        at(path::JOURNAL).get(Operation::Journal, journal::head),
        at(path::VERIFY_JOURNAL).post(Operation::VerifyJournal, journal::verify),
        at(path::CLEAR_JOURNAL).post(Operation::ClearJournal, journal::clear),
        at(path::GC_PLANS).post(Operation::GcPlan, plans::make),
        at(path::GC_PLAN).get(Operation::GcShowPlan, plans::show),
        at(path::GC_APPLY).post(Operation::GcApply, plans::apply),
        at(path::GC_REPORT).get(Operation::GcReport, reports::show),
        at(path::MCP).post(Operation::Mcp, mcp::answer),
        at(path::LIVEZ).public(health::livez),
        at(path::HEALTHZ).public(health::livez),
        at(path::READYZ).public(health::readyz),
        at(path::OPENAPI).public(health::openapi),
    ]
}

/// Returns every path with its methods and who may call them, for the comparison with the contract
/// and for the suites that try every route.
pub fn route_table() -> Vec<(&'static str, Vec<(Method, Guard)>)> {
    let nobody = AppState::starting(Authenticator::anonymous(Tenant::default()), Vec::new());
    routes(&nobody)
        .into_iter()
        .map(|route| (route.path, route.methods))
        .collect()
}

/// Builds the whole service.
pub fn router(state: AppState, request_ids: RequestIds) -> Router {
    let router = routes(&state)
        .into_iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path, route.into_handlers())
        })
        .with_state(state.clone());
    let tool_routes = mcp::ToolRoutes(with_fallbacks(router.clone()));
    let router = with_fallbacks(router)
        .layer(Extension(tool_routes))
        .layer(from_fn_with_state(state.clone(), refuse_foreign));
    let drains = state.0.drains.clone();
    let metrics = state.metrics().clone();
    finish(router, request_ids)
        .layer(from_fn_with_state(metrics, measure::measure))
        .layer(from_fn_with_state(drains, refused_body::read_on))
}

/// What all requests share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

/// What a service decides about its callers, before it has a store.
#[derive(Debug, Clone)]
pub struct CallerRules {
    /// Who they are and in which tenant they act.
    pub authenticator: Authenticator,
    /// The retrieval means of callers that declare none.
    pub default_means: Vec<RetrievalMeans>,
    /// Under which names they may ask; any when absent.
    pub host_policy: Option<HostPolicy>,
    /// Where a line about each of their operations goes.
    pub audit: Option<AuditSink>,
    /// The configured owners of leases.
    pub owners: Owners,
}

impl CallerRules {
    /// Creates the rules of a service that takes any host name and keeps no audit stream.
    pub fn new(authenticator: Authenticator, default_means: Vec<RetrievalMeans>) -> Self {
        Self {
            authenticator,
            default_means,
            host_policy: None,
            audit: None,
            owners: Owners::default(),
        }
    }
}

/// What there is once the store is open.
#[derive(Debug)]
struct Opened {
    library: Library,
    leases: Leases,
    collector: Collector,
    read_back: ReadBack,
}

#[derive(Debug)]
struct Shared {
    opened: OnceLock<Opened>,
    walks: Semaphore,
    mcp_calls: Semaphore,
    callers: CallerRules,
    is_draining: AtomicBool,
    store_health: StoreHealth,
    metrics: Metrics,
    request_limits: OnceLock<RequestLimits>,
    failed_access: FailedAccess,
    drains: TaskTracker,
    jobs: Jobs,
    gc_settings: OnceLock<PolicySettings>,
    profiles: OnceLock<Profiles>,
}

impl AppState {
    /// Offers other profiles than the built-in ones; the first call counts.
    pub fn offer(&self, profiles: Profiles) {
        if self.0.profiles.set(profiles).is_err() {
            tracing::warn!("the service has profiles already; it keeps those");
        }
    }

    /// Sets times of collections that are asked for here; the first call counts.
    pub fn collect_by(&self, settings: PolicySettings) {
        if self.0.gc_settings.set(settings).is_err() {
            tracing::warn!("the service has settings for collections already; it keeps those");
        }
    }

    pub(crate) fn gc_settings(&self) -> PolicySettings {
        self.0.gc_settings.get().copied().unwrap_or_default()
    }

    /// What goes on after its request is answered.
    pub(crate) fn jobs(&self) -> &Jobs {
        &self.0.jobs
    }

    pub(crate) fn profiles(&self) -> Profiles {
        self.0.profiles.get_or_init(Profiles::default).clone()
    }

    /// Starts without a store: everything that needs one answers 503 until [`AppState::open`].
    ///
    /// `authenticator` says who callers are and in which tenant they act; `default_means` are the
    /// retrieval means of callers that declare none.
    pub fn starting(authenticator: Authenticator, default_means: Vec<RetrievalMeans>) -> Self {
        Self::with_rules(CallerRules::new(authenticator, default_means))
    }

    /// Starts without a store, with all rules about callers.
    pub fn with_rules(callers: CallerRules) -> Self {
        Self(Arc::new(Shared {
            opened: OnceLock::new(),
            walks: Semaphore::new(MAX_CONCURRENT_WALKS),
            mcp_calls: Semaphore::new(MAX_CONCURRENT_MCP_CALLS),
            callers,
            is_draining: AtomicBool::new(false),
            store_health: StoreHealth::default(),
            metrics: Metrics::new(),
            request_limits: OnceLock::new(),
            failed_access: FailedAccess::default(),
            drains: TaskTracker::new(),
            jobs: Jobs::default(),
            gc_settings: OnceLock::new(),
            profiles: OnceLock::new(),
        }))
    }

    /// Starts on a store that is known to be good.
    pub fn opened(
        library: Library,
        authenticator: Authenticator,
        default_means: Vec<RetrievalMeans>,
    ) -> Self {
        let state = Self::starting(authenticator, default_means);
        state.open(library);
        state
    }

    /// Gives the service its store, whose delete fences nobody has tried; the first one stays. It becomes a
    /// writer of the journals there.
    pub fn open(&self, library: Library) {
        let journals = Journals::beside(&library);
        self.open_with(library, journals);
    }

    /// Gives the service its store and the journals there, where the library has them too: one process is
    /// one writer.
    pub fn open_with(&self, library: Library, journals: Journals) {
        self.open_fenced(library, journals, Fence::None);
    }

    /// Gives the service its store, the journals there, and the strongest delete fence that the store was
    /// seen to honour; the first one stays.
    pub fn open_fenced(&self, library: Library, journals: Journals, fence: Fence) {
        let collector = Collector::of(&library, journals.clone(), fence);
        self.open_collected(library, journals, collector);
    }

    /// Gives the service its store, the journals there, and what erases and collects there, with credentials
    /// of its own perhaps; the first one stays.
    pub fn open_collected(&self, library: Library, journals: Journals, collector: Collector) {
        let options = LeaseOptions {
            is_read_only: library.options().is_read_only,
            owners: self.0.callers.owners.clone(),
        };
        let leases = Leases::new(library.clone(), journals, options);
        let opened = Opened {
            read_back: ReadBack::starting(Arc::clone(library.clock())),
            library,
            leases,
            collector,
        };
        if self.0.opened.set(opened).is_err() {
            tracing::warn!("the service has a store already; it keeps that one");
        }
    }

    /// Makes `/readyz` say no, so that new requests go elsewhere while running ones end.
    pub fn start_draining(&self) {
        self.0.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns the artifacts, once the store is open.
    pub fn library(&self) -> Option<&Library> {
        self.0.opened.get().map(|opened| &opened.library)
    }

    /// Returns the leases, once the store is open.
    pub fn leases(&self) -> Option<&Leases> {
        self.0.opened.get().map(|opened| &opened.leases)
    }

    /// Returns the collector, once the store is open.
    pub fn collector(&self) -> Option<&Collector> {
        self.0.opened.get().map(|opened| &opened.collector)
    }

    /// Returns what was read back, once the store is open.
    pub(crate) fn read_back(&self) -> Option<&ReadBack> {
        self.0.opened.get().map(|opened| &opened.read_back)
    }

    /// Waits until everything that outlives its request is over: saves, aborts, appends, erasures.
    /// Collections are cut off.
    pub async fn drain(&self) {
        self.0.jobs.drain().await;
        if let Some(Opened {
            library, leases, ..
        }) = self.0.opened.get()
        {
            leases.drain().await;
            library.drain().await;
        }
    }

    /// Places for messages of the Model Context Protocol.
    pub(crate) fn mcp_calls(&self) -> &Semaphore {
        &self.0.mcp_calls
    }

    /// Places for verifications.
    pub(crate) fn walks(&self) -> &Semaphore {
        &self.0.walks
    }

    pub(crate) fn authenticator(&self) -> &Authenticator {
        &self.0.callers.authenticator
    }

    pub(crate) fn default_means(&self) -> &[RetrievalMeans] {
        &self.0.callers.default_means
    }

    pub(crate) fn host_policy(&self) -> Option<&HostPolicy> {
        self.0.callers.host_policy.as_ref()
    }

    pub(crate) fn audit(&self) -> Option<&AuditSink> {
        self.0.callers.audit.as_ref()
    }

    /// Returns what is known of the store's health, for the one who looks at it.
    pub fn store_health(&self) -> &StoreHealth {
        &self.0.store_health
    }

    /// Returns what is measured.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Limits the pace of each principal; the first limit stays.
    pub fn limit_requests(&self, limits: RequestLimits) {
        // Set once at the start; a second one could only come from a defect, and the first is in force.
        let _ = self.0.request_limits.set(limits);
    }

    /// Returns the limit of each principal's pace, where there is one.
    pub fn request_limits(&self) -> Option<&RequestLimits> {
        self.0.request_limits.get()
    }

    /// Returns the pace of callers without a valid token.
    pub fn failed_access(&self) -> &FailedAccess {
        &self.0.failed_access
    }

    /// Returns why requests are not welcome now, if so.
    pub fn not_ready(&self) -> Option<NotReady> {
        if self.0.is_draining.load(Ordering::Relaxed) {
            Some(NotReady::Draining)
        } else if self.library().is_none() {
            Some(NotReady::Starting)
        } else {
            self.0.store_health.verdict()
        }
    }
}
