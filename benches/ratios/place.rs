//! The store that is measured, and the two ways to it.

use std::sync::Arc;

use anyhow::Context as _;
use spillbox::store::SharedStore;
use spillbox::store::s3::{S3Settings, S3Store};

use crate::service::Service;
use crate::support::s3_server::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};

/// Prefix of everything that a run writes.
pub(crate) const PREFIX: &str = "bench";

/// A store, straight and through a service.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) bare: SharedStore,
    pub(crate) service: Service,
    /// Lives as long as the place; nothing where the store is somebody else's.
    _in_process: Option<S3Server>,
}

impl Place {
    /// The endpoint that the environment names, else a server in this process.
    pub(crate) async fn find() -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let Some(endpoint) = variable("SPILLBOX_TEST_ENDPOINT") else {
            let server = S3Server::start();
            let endpoint = server.listen().await;
            let settings = settings(&endpoint, BUCKET);
            let bare = Arc::new(server.store_over_socket(&settings));
            let keys = (ACCESS_KEY.to_owned(), SECRET_KEY.to_owned());
            let service = Service::start(&endpoint, BUCKET, &keys).await?;
            return Ok(Self {
                name: "in-process".to_owned(),
                bare,
                service,
                _in_process: Some(server),
            });
        };
        let bucket = variable("SPILLBOX_TEST_BUCKET").context("SPILLBOX_TEST_BUCKET is not set")?;
        let key = |name| variable(name).with_context(|| format!("{name} is not set"));
        let keys = (key("AWS_ACCESS_KEY_ID")?, key("AWS_SECRET_ACCESS_KEY")?);
        let bare = S3Store::connect(&settings(&endpoint, &bucket)).await?;
        Ok(Self {
            name: variable("SPILLBOX_TEST_STORE").unwrap_or_else(|| "store".to_owned()),
            bare: Arc::new(bare),
            service: Service::start(&endpoint, &bucket, &keys).await?,
            _in_process: None,
        })
    }
}

/// Payloads are not signed on either way: over TLS nobody signs them, and the second hash of every body
/// would hide what the service itself costs.
fn settings(endpoint: &str, bucket: &str) -> S3Settings {
    S3Settings {
        bucket: bucket.to_owned(),
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        sign_payload: Some(false),
        ..S3Settings::default()
    }
}
