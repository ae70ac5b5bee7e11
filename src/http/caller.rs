//! Who asks, and in which artifacts they may look.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::library::Library;
use crate::auth::Principal;
use crate::error::ErrorCode;
use crate::gc::collector::Collector;
use crate::gc::policy::PolicySettings;
use crate::http::app::AppState;
use crate::http::gc::jobs::Jobs;
use crate::http::metrics::Metrics;
use crate::http::problem::Problem;
use crate::http::read_back::ReadBack;
use crate::ids::Tenant;
use crate::lease::leases::Leases;
use crate::policy::profiles::Profiles;

/// The caller of a request that needs the store.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The artifacts.
    pub(crate) library: Library,
    /// The leases on them.
    pub(crate) leases: Leases,
    /// What erases them.
    pub(crate) collector: Collector,
    /// What goes on after its request is answered.
    pub(crate) jobs: Jobs,
    /// Times of collections.
    pub(crate) gc_settings: PolicySettings,
    /// Who it is.
    pub(crate) principal: Principal,
    /// The tenant that the request acts in: the principal's.
    pub(crate) tenant: Tenant,
    /// What was read back of each session.
    pub(crate) read_back: ReadBack,
    /// What is measured.
    pub(crate) metrics: Metrics,
    /// How replacements say to read on, where the request does not declare it.
    pub(crate) default_means: Vec<RetrievalMeans>,
    /// The profiles that it may name.
    pub(crate) profiles: Profiles,
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        // Only the gate puts a principal there; a handler that it does not guard has no caller.
        let Some(principal) = parts.extensions.get::<Principal>() else {
            let detail = "the route has no gate, so nobody may use it";
            return Err(Problem::new(ErrorCode::Internal, detail));
        };
        let (Some(library), Some(leases), Some(collector), Some(read_back)) = (
            state.library(),
            state.leases(),
            state.collector(),
            state.read_back(),
        ) else {
            let detail = "the service has not opened its store yet";
            return Err(Problem::new(ErrorCode::StoreUnavailable, detail));
        };
        Ok(Self {
            library: library.clone(),
            leases: leases.clone(),
            collector: collector.clone(),
            jobs: state.jobs().clone(),
            gc_settings: state.gc_settings(),
            principal: principal.clone(),
            tenant: principal.tenant.clone(),
            read_back: read_back.clone(),
            metrics: state.metrics().clone(),
            default_means: state.default_means().to_vec(),
            profiles: state.profiles(),
        })
    }
}
