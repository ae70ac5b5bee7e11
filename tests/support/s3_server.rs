//! An S3 server inside the test process: the real AWS client speaks HTTP to it, by default without a
//! socket. One mutex and one map make its conditions exact; named quirk sets make it as wrong as
//! servers in the field are; faults hit single requests; every request is counted.
#![allow(dead_code, reason = "shared support: no suite uses all of it")]

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{
    BehaviorVersion, Builder, Credentials, HttpClient, Region, RuntimeComponents,
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use http::header;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::auth::SimpleAuth;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use spillbox::clock::{SharedClock, SystemClock};
use spillbox::store::s3::{S3Settings, S3Store};
use tokio::task::JoinSet;

pub(crate) use self::fault::{Action, Fault};
use self::front::Front;
pub(crate) use self::log::{Op, RequestLog};
use self::operation::Operations;
pub(crate) use self::quirk::Quirks;
use self::service::Backend;
pub(crate) use self::state::BucketVersioning;

mod fault;
mod front;
mod listing;
mod log;
mod operation;
mod quirk;
mod service;
mod state;

/// The only bucket.
pub(crate) const BUCKET: &str = "spill";
/// The only credentials.
pub(crate) const ACCESS_KEY: &str = "TESTACCESSKEY";
/// See [`ACCESS_KEY`].
pub(crate) const SECRET_KEY: &str = "test-secret";
const ENDPOINT: &str = "http://in-process.test";

/// A running server; clones are handles to the same one.
#[derive(Debug, Clone)]
pub(crate) struct S3Server {
    front: Arc<Front>,
    /// Loopback listeners; they end with the last handle.
    listeners: Arc<Mutex<JoinSet<()>>>,
}

/// What kind of server is wanted.
#[derive(Debug)]
pub(crate) struct S3ServerBuilder {
    quirks: Quirks,
    versioning: BucketVersioning,
    clock: SharedClock,
    page_keys: usize,
    any_signing_time: bool,
}

impl S3ServerBuilder {
    /// Plays this server.
    pub(crate) fn quirks(mut self, quirks: Quirks) -> Self {
        self.quirks = quirks;
        self
    }

    /// Starts with a bucket in this mode.
    pub(crate) fn versioning(mut self, versioning: BucketVersioning) -> Self {
        self.versioning = versioning;
        self
    }

    /// The server's own clock (`Date`, `Last-Modified`); signatures are judged by the machine's.
    pub(crate) fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Takes signatures of any date: a test that moves the server's clock by days moves the client's
    /// signing time with it, since the client follows the server's `Date`.
    pub(crate) fn any_signing_time(mut self) -> Self {
        self.any_signing_time = true;
        self
    }

    /// Entries of a listing page at most; 1,000 unless told.
    pub(crate) fn page_keys(mut self, page_keys: usize) -> Self {
        self.page_keys = page_keys;
        self
    }

    pub(crate) fn start(self) -> S3Server {
        let backend = Arc::new(Backend::new(
            BUCKET,
            self.quirks,
            self.versioning,
            self.clock,
            self.page_keys,
        ));
        let mut builder = S3ServiceBuilder::new(Operations(Arc::clone(&backend)));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        if self.any_signing_time {
            let mut config = S3Config::default();
            config.presigned_url_max_skew_time_secs = u32::MAX;
            builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
        }
        S3Server {
            front: Arc::new(Front::new(builder.build(), backend)),
            listeners: Arc::default(),
        }
    }
}

impl S3Server {
    /// AWS's behaviour, no versions, the machine's clock.
    pub(crate) fn builder() -> S3ServerBuilder {
        S3ServerBuilder {
            quirks: Quirks::AWS,
            versioning: BucketVersioning::Never,
            clock: SystemClock::shared(),
            page_keys: 1_000,
            any_signing_time: false,
        }
    }

    /// A server with every default.
    pub(crate) fn start() -> Self {
        Self::builder().start()
    }

    /// The settings that fit this server.
    pub(crate) fn settings() -> S3Settings {
        S3Settings {
            bucket: BUCKET.to_owned(),
            endpoint: Some(ENDPOINT.to_owned()),
            ..S3Settings::default()
        }
    }

    /// The product's backend over this server, with default settings.
    pub(crate) fn store(&self) -> S3Store {
        self.store_with(&Self::settings())
    }

    /// The product's backend over this server.
    pub(crate) fn store_with(&self, settings: &S3Settings) -> S3Store {
        let front = Arc::clone(&self.front);
        store_over(client_config().http_client(InProcess(front)), settings)
    }

    /// A bare client, for requests that the product never makes.
    pub(crate) fn client(&self) -> Client {
        let connector = InProcess(Arc::clone(&self.front));
        let settings = Self::settings();
        let config = client_config().http_client(connector);
        Client::from_conf(
            settings
                .configure(config, settings.endpoint.as_deref())
                .build(),
        )
    }

    /// The product's backend over the SDK's own connector, to the endpoint of the settings.
    pub(crate) fn store_over_socket(&self, settings: &S3Settings) -> S3Store {
        store_over(client_config(), settings)
    }

    /// What was asked so far.
    pub(crate) fn log(&self) -> &RequestLog {
        &self.front.log
    }

    /// Adds a fault.
    pub(crate) fn fault(&self, fault: Fault) {
        self.front.faults.add(fault);
    }

    /// Drops every fault that has not happened yet.
    pub(crate) fn clear_faults(&self) {
        self.front.faults.clear();
    }

    /// Answers 403 instead of 404 from now on, as S3 does for principals that may not list.
    pub(crate) fn hide_missing(&self, hides: bool) {
        self.front.hides_missing.store(hides, Ordering::Relaxed);
    }

    /// Applies what `Action::ApplyLate` held back; answers how many requests there were.
    pub(crate) async fn apply_late(&self) -> usize {
        self.front.apply_late().await
    }

    /// Switches the bucket's versioning.
    pub(crate) fn set_versioning(&self, versioning: BucketVersioning) {
        self.front.backend.bucket().versioning = versioning;
    }

    /// Keys that a plain read finds, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let bucket = self.front.backend.bucket();
        let keys = bucket.objects.keys();
        keys.filter(|key| bucket.current(key).is_some())
            .cloned()
            .collect()
    }

    /// The bytes that a plain read finds.
    pub(crate) fn bytes(&self, key: &str) -> Option<bytes::Bytes> {
        let bucket = self.front.backend.bucket();
        bucket.current(key).map(|version| version.bytes.clone())
    }

    /// How many versions and markers a key has.
    pub(crate) fn version_count(&self, key: &str) -> usize {
        let bucket = self.front.backend.bucket();
        bucket.objects.get(key).map_or(0, Vec::len)
    }

    /// How many versions and markers all keys have together.
    pub(crate) fn total_versions(&self) -> usize {
        let bucket = self.front.backend.bucket();
        bucket.objects.values().map(Vec::len).sum()
    }

    /// The bytes of every version of every key.
    pub(crate) fn all_bytes(&self) -> Vec<bytes::Bytes> {
        let bucket = self.front.backend.bucket();
        let versions = bucket.objects.values().flatten();
        versions.map(|version| version.bytes.clone()).collect()
    }

    /// Puts bytes there behind everybody's back; no request, no log.
    pub(crate) fn plant(&self, key: &str, bytes: impl Into<bytes::Bytes>) {
        let version = self.front.backend.version_of(bytes.into(), None);
        self.front.backend.bucket().write(key, version);
    }

    /// Unfinished multipart uploads.
    pub(crate) fn open_uploads(&self) -> usize {
        self.front.backend.bucket().uploads.len()
    }

    /// Also listens on a loopback port, for other processes; answers the endpoint's URL.
    pub(crate) async fn listen(&self) -> String {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .expect("a free loopback port");
        let address = listener.local_addr().expect("a bound listener");
        let front = Arc::clone(&self.front);
        let accepting = async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let front = Arc::clone(&front);
                connections.spawn(async move {
                    let service =
                        service_fn(move |request: http::Request<hyper::body::Incoming>| {
                            let front = Arc::clone(&front);
                            async move { front.serve(request.map(s3s::Body::from)).await }
                        });
                    // A lost reply ends the connection with an error, which is the point of it.
                    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        };
        self.listeners
            .lock()
            .expect("no listener panics while it holds the lock")
            .spawn(accepting);
        format!("http://{address}")
    }
}

fn client_config() -> Builder {
    aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test"))
}

fn store_over(config: Builder, settings: &S3Settings) -> S3Store {
    let endpoint = settings.endpoint.as_deref();
    let config = settings.configure(config, endpoint).build();
    S3Store::with_client(Client::from_conf(config), settings, endpoint)
}

/// The AWS client's way to the server, without a socket.
#[derive(Debug, Clone)]
struct InProcess(Arc<Front>);

impl HttpClient for InProcess {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for InProcess {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let front = Arc::clone(&self.0);
        HttpConnectorFuture::new_boxed(Box::pin(async move {
            let mut request = request
                .try_into_http1x()
                .map_err(|error| ConnectorError::user(error.into()))?;
            if let Some(authority) = request.uri().authority() {
                let host = authority
                    .as_str()
                    .parse()
                    .expect("an authority is a header");
                request.headers_mut().entry(header::HOST).or_insert(host);
            }
            let request = request.map(s3s::Body::http_body);
            let reply = front
                .serve(request)
                .await
                .map_err(|lost| ConnectorError::io(lost.into()))?;
            HttpResponse::try_from(reply.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::user(error.into()))
        }))
    }
}
