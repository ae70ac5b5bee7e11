//! Settings and stores as commands see them.

use std::path::Path;

use crate::artifact::format::FormatError;
use crate::cli::failure::{EXIT_REFUSED, Failure};
use crate::ids::Tenant;
use crate::open_store::OpenStoreError;
use crate::settings::{Environment, Flag, Settings, StoreUrl, load};

/// The tenant of a service without tokens, and of the command line.
pub fn default_tenant() -> Tenant {
    "default".parse().expect("`default` is a tenant's name")
}

/// Reads the settings, with `flags` over everything else.
///
/// # Errors
/// A setting is refused; exit status 2.
pub fn settings(file: Option<&Path>, flags: &[Flag]) -> Result<Settings, Failure> {
    load(file, &Environment::of_process(), flags).map_err(|error| Failure::usage(error.to_string()))
}

/// Says what is wrong with a store.
pub fn failure_of(error: &OpenStoreError, url: &StoreUrl) -> Failure {
    let failure = Failure::new(format!("{url}: {error}"));
    match error {
        OpenStoreError::Local(_) => {
            failure.with_hint("name a directory that this user can write: --store local:DIR")
        }
        OpenStoreError::S3(_) | OpenStoreError::Prefix(_) => failure,
        OpenStoreError::Format(FormatError::Store(_)) => failure.with_hint(match url {
            StoreUrl::S3 { .. } => {
                "check bucket, endpoint and credentials (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …)"
            }
            StoreUrl::Local { .. } | StoreUrl::Memory => {
                "check the directory's owner and free space"
            }
        }),
        OpenStoreError::Format(FormatError::Unsupported(_)) => failure
            .with_hint("another version of Spillbox wrote it, or it is no Spillbox store")
            .with_exit(EXIT_REFUSED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_another_version_is_refused_and_not_merely_failed() {
        let error = OpenStoreError::Format(FormatError::Unsupported("version 9".to_owned()));
        let failure = failure_of(&error, &StoreUrl::Memory);
        assert_eq!(failure.exit, EXIT_REFUSED);
        assert_eq!(default_tenant().as_str(), "default");
    }
}
