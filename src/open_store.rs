//! The one place that names concrete backends.

use std::sync::Arc;

use crate::artifact::format::{FormatError, StoreFormat};
use crate::artifact::library::{Library, LibraryOptions, max_concurrent_searches};
use crate::artifact::locator::LocatorBase;
use crate::artifact::quota::Quotas;
use crate::clock::SystemClock;
use crate::gc::collector::{Collector, Fence};
use crate::ids::SystemIds;
use crate::lease::journals::Journals;
use crate::settings::{
    Checksum, CollectorSettings, Settings, StoreSettings, StoreUrl, TOKEN_VARIABLE,
};
use crate::store::attest::{AttestOptions, Endpoint, Target};
use crate::store::keys::KeySpace;
use crate::store::local::LocalStore;
use crate::store::memory::MemoryStore;
use crate::store::s3::{ChecksumMode, S3Settings, S3SetupError, S3Store};
use crate::store::{SharedStore, StoreError};

/// A store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// The directory cannot be opened.
    #[error("cannot open the store: {0}")]
    Local(StoreError),
    /// The settings do not lead to a bucket.
    #[error(transparent)]
    S3(#[from] S3SetupError),
    /// The prefix cannot stand in keys.
    #[error("the store's prefix `{0}` cannot stand in keys")]
    Prefix(String),
    /// The format marker cannot be read or written.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl OpenStoreError {
    /// Returns whether another try may succeed: the store is there, but does not answer well.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Format(FormatError::Store(error)) => error.kind.is_transient(),
            Self::Local(_) | Self::S3(_) | Self::Prefix(_) | Self::Format(_) => false,
        }
    }
}

/// Opens the store that the settings name. Of a bucket nothing is asked yet.
///
/// # Errors
/// The directory cannot be created or entered, or the settings do not lead to a bucket.
pub async fn open_store(
    settings: &StoreSettings,
) -> Result<(SharedStore, KeySpace), OpenStoreError> {
    let keys =
        |prefix: &str| KeySpace::new(prefix).map_err(|_| OpenStoreError::Prefix(prefix.to_owned()));
    match &settings.url {
        StoreUrl::Memory => {
            let store = MemoryStore::new(SystemClock::shared());
            Ok((Arc::new(store), keys("")?))
        }
        StoreUrl::Local { dir } => {
            let store = LocalStore::open(dir, SystemClock::shared(), SystemIds::shared())
                .map_err(OpenStoreError::Local)?;
            Ok((Arc::new(store), keys("")?))
        }
        StoreUrl::S3 { bucket, prefix } => {
            let keys = keys(prefix)?;
            let store = S3Store::connect(&s3_settings(settings, bucket)).await?;
            Ok((Arc::new(store), keys))
        }
    }
}

fn s3_settings(settings: &StoreSettings, bucket: &str) -> S3Settings {
    S3Settings {
        bucket: bucket.to_owned(),
        endpoint: settings.endpoint.clone(),
        region: settings.region.clone(),
        path_style: settings.path_style,
        checksum: match settings.checksum {
            Checksum::Header => ChecksumMode::Header,
            Checksum::Off => ChecksumMode::Off,
        },
        sign_payload: settings.sign_payload,
        ..S3Settings::default()
    }
}

/// Opens the store as `[store.collector]` says that collections see it; `None` where they use the service's
/// own credentials. Nothing is asked yet.
///
/// # Errors
/// The settings do not lead to a bucket.
pub async fn open_collector_store(
    settings: &StoreSettings,
) -> Result<Option<SharedStore>, OpenStoreError> {
    let CollectorSettings {
        profile,
        credentials_path,
    } = &settings.collector;
    match &settings.url {
        StoreUrl::S3 { bucket, .. } if profile.is_some() => {
            let s3 = S3Settings {
                profile: profile.clone(),
                credentials_file: credentials_path.clone(),
                ..s3_settings(settings, bucket)
            };
            Ok(Some(Arc::new(S3Store::connect(&s3).await?)))
        }
        StoreUrl::S3 { .. } | StoreUrl::Local { .. } | StoreUrl::Memory => Ok(None),
    }
}

/// Builds what erases and collects in the store of a library, through `store` where it has credentials of
/// its own. It appends to the journals of the same process: one process is one writer.
pub fn collector_over(
    library: &Library,
    journals: Journals,
    fence: Fence,
    store: Option<SharedStore>,
) -> Collector {
    let Some(store) = store else {
        return Collector::of(library, journals, fence);
    };
    Collector::new(
        store,
        library.keys().clone(),
        library.orphan_ttl(),
        journals,
        fence,
        (Arc::clone(library.clock()), Arc::clone(library.ids())),
    )
}

/// Whether a service may write to its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It saves and serves.
    ReadWrite,
    /// It serves what is there.
    ReadOnly,
}

/// Names what attestation tries: the store as it was opened, and the further endpoints of its bucket.
///
/// # Errors
/// A further endpoint does not lead to a bucket.
pub async fn attestation_target(
    settings: &StoreSettings,
    store: &SharedStore,
    keys: &KeySpace,
) -> Result<Target, OpenStoreError> {
    let name = settings
        .endpoint
        .clone()
        .unwrap_or_else(|| settings.url.to_string());
    let store = Arc::clone(store);
    let mut endpoints = vec![Endpoint { name, store }];
    for other in &settings.other_endpoints {
        let of_other = StoreSettings {
            endpoint: Some(other.clone()),
            ..settings.clone()
        };
        let (store, _) = open_store(&of_other).await?;
        endpoints.push(Endpoint {
            name: other.clone(),
            store,
        });
    }
    Ok(Target {
        endpoints,
        store_url: settings.url.to_string(),
        keys: keys.clone(),
    })
}

/// How hard attestation tries the store.
pub fn attest_options(settings: &StoreSettings) -> AttestOptions {
    AttestOptions {
        contenders: settings.contenders,
        ..AttestOptions::default()
    }
}

/// Reads the store's format marker (a new store gets one, unless it is only read), and builds what works
/// on it.
///
/// # Errors
/// The marker cannot be read or written.
pub async fn library_over(
    (store, keys): (SharedStore, KeySpace),
    settings: &Settings,
    locator_base: LocatorBase,
    cli_args: Vec<String>,
    access: Access,
) -> Result<(Library, Journals), OpenStoreError> {
    let orphan_ttl = settings.gc.orphan_ttl;
    let format = match access {
        Access::ReadWrite => StoreFormat::open(store.as_ref(), &keys, orphan_ttl).await?,
        Access::ReadOnly => StoreFormat::read(store.as_ref(), &keys)
            .await?
            .unwrap_or_else(|| StoreFormat::new(orphan_ttl)),
    };
    let options = LibraryOptions {
        locator_base,
        max_body_bytes: settings.limits.max_body_bytes,
        max_concurrent_uploads: settings.limits.max_concurrent_uploads,
        upload_memory_bytes: settings.limits.upload_memory_bytes,
        max_concurrent_searches: match settings.limits.max_concurrent_searches {
            0 => max_concurrent_searches(),
            most => most,
        },
        search_deadline: settings.limits.search_deadline,
        quotas: Quotas {
            session_bytes: quota(settings.limits.session_bytes),
            tenant_bytes: quota(settings.limits.tenant_bytes),
        },
        is_read_only: access == Access::ReadOnly,
        touch_on_read: settings.gc.touch_on_read,
        token_variable: settings.needs_tokens().then_some(TOKEN_VARIABLE),
        cli_args,
        ..LibraryOptions::default()
    };
    let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
    let journals = Journals::new(
        Arc::clone(&store),
        keys.clone(),
        Arc::clone(&clock),
        Arc::clone(&ids),
    );
    let keep_alive = Arc::new(journals.clone());
    let library = Library::new(store, keys, format, clock, ids, options);
    Ok((library.with_keep_alive(keep_alive), journals))
}

/// In the settings 0 means no quota.
fn quota(bytes: u64) -> Option<u64> {
    (bytes > 0).then_some(bytes)
}

/// Opens the store and builds what works on it, without attesting it: for commands that work straight
/// on a store.
///
/// # Errors
/// See [`OpenStoreError`].
pub async fn open_library(
    settings: &Settings,
    locator_base: LocatorBase,
    cli_args: Vec<String>,
) -> Result<(Library, Journals), OpenStoreError> {
    let opened = open_store(&settings.store).await?;
    library_over(opened, settings, locator_base, cli_args, Access::ReadWrite).await
}
