//! Who asks, and in which artifacts they may look.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::library::Library;
use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::problem::Problem;
use crate::ids::Tenant;
use crate::policy::profiles::Profiles;

/// The caller of a request that needs the store.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The artifacts.
    pub(crate) library: Library,
    /// The tenant that the request acts in.
    pub(crate) tenant: Tenant,
    /// How replacements say to read on, where the request does not declare it.
    pub(crate) default_means: Vec<RetrievalMeans>,
    /// The profiles that it may name.
    pub(crate) profiles: Profiles,
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let Some(library) = state.library() else {
            let detail = "the service has not opened its store yet";
            return Err(Problem::new(ErrorCode::StoreUnavailable, detail));
        };
        Ok(Self {
            library: library.clone(),
            tenant: state.tenant().clone(),
            default_means: state.default_means().to_vec(),
            profiles: state.profiles(),
        })
    }
}
