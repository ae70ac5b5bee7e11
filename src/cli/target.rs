//! The place that a command works on, checked but not opened yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::artifact::hint::RetrievalMeans;
use crate::artifact::locator::LocatorBase;
use crate::auth::Authenticator;
use crate::cli::connection::{Place, Token};
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::profiles::{named, offered};
use crate::cli::store::{default_tenant, failure_of, settings};
use crate::cli::transport::{ServiceTransport, StoreTransport, Transport};
use crate::clock::SystemClock;
use crate::gc::collector::Fence;
use crate::http::app::{AppState, router};
use crate::http::request_id::RequestIds;
use crate::ids::SystemIds;
use crate::open_store::{collector_over, open_collector_store, open_library};
use crate::policy::profile::Profile;
use crate::policy::profiles::DEFAULT_NAME;
use crate::settings::{Flag, Settings, StoreUrl};

/// Where a command's requests will go. Whether anything answers there is not known yet.
#[derive(Debug, Clone)]
pub enum Target {
    /// Ready: a service, whose requests open their connections themselves.
    Open(Transport),
    /// A store.
    Store {
        /// All settings.
        settings: Box<Settings>,
        /// What a printed command needs to find the store.
        cli_args: Vec<String>,
    },
}

impl Target {
    /// Checks what the user said of a place.
    ///
    /// # Errors
    /// URL, token or settings cannot be used.
    pub fn of(place: Place) -> Result<Self, Failure> {
        match place {
            Place::Service { url, token } => {
                let token = token.as_ref().map(Token::expose);
                let service = ServiceTransport::new(&url, token)?;
                Ok(Self::Open(Transport::Service(service)))
            }
            Place::Store { url, is_flag } => {
                let name = if is_flag { "--store" } else { "SPILLBOX_STORE" };
                let flag = url.map(|value| Flag {
                    name,
                    key: "store.url",
                    value,
                });
                let settings = settings(None, flag.as_slice())?;
                let cli_args = if is_flag {
                    vec!["--store".to_owned(), from_anywhere(&settings.store.url)]
                } else {
                    Vec::new()
                };
                Ok(Self::Store {
                    settings: Box::new(settings),
                    cli_args,
                })
            }
        }
    }

    /// Returns the profile of that name, or the default one. What a service made of its own is not known
    /// here.
    ///
    /// # Errors
    /// There is none, or a setting is refused.
    pub fn profile(&self, name: Option<&str>) -> Result<Arc<Profile>, Failure> {
        let none = BTreeMap::new();
        let tables = match self {
            Self::Open(_) => &none,
            Self::Store { settings, .. } => &settings.profiles,
        };
        let profiles = offered(tables)?;
        named(&profiles, name.unwrap_or(DEFAULT_NAME))
    }

    /// Makes the place ready for requests.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub async fn open(self) -> Result<Transport, Failure> {
        match self {
            Self::Open(transport) => Ok(transport),
            Self::Store { settings, cli_args } => open_store(&settings, cli_args).await,
        }
    }
}

async fn open_store(settings: &Settings, cli_args: Vec<String>) -> Result<Transport, Failure> {
    let url = &settings.store.url;
    if *url == StoreUrl::Memory {
        output::say("warning: the store memory: ends with this command; nothing can be read later");
    }
    let (library, journals) = open_library(settings, LocatorBase::Store, cli_args)
        .await
        .map_err(|error| failure_of(&error, url))?;
    let anonymous = Authenticator::anonymous(default_tenant());
    let state = AppState::starting(anonymous, vec![RetrievalMeans::Cli]);
    state.collect_by(settings.collections());
    let own = open_collector_store(&settings.store).await;
    let own = own.map_err(|error| failure_of(&error, url))?;
    let collector = collector_over(&library, journals.clone(), Fence::None, own);
    state.open_collected(library, journals, collector);
    state.offer(offered(&settings.profiles)?);
    let request_ids = RequestIds::new(SystemClock::shared(), SystemIds::shared());
    Ok(Transport::Store(Box::new(StoreTransport {
        router: router(state.clone(), request_ids),
        state,
    })))
}

/// A printed command runs from any working directory.
fn from_anywhere(url: &StoreUrl) -> String {
    if let StoreUrl::Local { dir } = url
        && let Ok(dir) = std::path::absolute(dir)
    {
        return StoreUrl::Local { dir }.to_string();
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_named_from_the_root_in_printed_commands() {
        let url: StoreUrl = "local:some/dir".parse().unwrap();
        assert!(from_anywhere(&url).starts_with("local:/"));
        let url: StoreUrl = "s3://bucket/p".parse().unwrap();
        assert_eq!(from_anywhere(&url), "s3://bucket/p");
    }

    #[test]
    fn a_store_that_cannot_be_is_wrong_usage_before_anything_is_opened() {
        let place = Place::Store {
            url: Some("nowhere".to_owned()),
            is_flag: true,
        };
        let failure = Target::of(place).unwrap_err();
        assert_eq!(failure.exit, 2);
        assert!(failure.to_string().contains("--store"), "{failure}");
    }
}
