//! The real router over a real store, in this process: requests in, checked replies out.
#![allow(dead_code, reason = "shared support: no suite uses all of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::http::{Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use spillbox::artifact::format::StoreFormat;
use spillbox::artifact::hint::RetrievalMeans;
use spillbox::artifact::library::{Library, LibraryOptions};
use spillbox::artifact::locator::LocatorBase;
use spillbox::artifact::manifest::{Tombstone, TombstoneReason};
use spillbox::auth::{Authenticator, Scope, TokenEntry, TokenTable};
use spillbox::clock::{Clock, ManualClock, SharedClock, SystemClock};
use spillbox::digest::Sha256Digest;
use spillbox::error::ErrorCode;
use spillbox::http::app::{AppState, CallerRules, router};
use spillbox::http::request_id::{RequestIds, X_REQUEST_ID};
use spillbox::ids::{SeededIds, Tenant};
use spillbox::lease::entry::OwnerMode;
use spillbox::lease::leases::Owners;
use spillbox::limits::DEFAULT_ORPHAN_TTL;
use spillbox::store::keys::{Key, KeySpace};
use spillbox::store::local::LocalStore;
use spillbox::store::memory::MemoryStore;
use spillbox::store::{GetOptions, GetReply, ListRequest, PutMode, SharedStore, paging};
use tower::ServiceExt;

use super::contract::Contract;
use super::s3_server::{BucketVersioning, Quirks, S3Server};

/// Where the artifacts of an app are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Local,
    /// An S3 server that behaves as AWS does.
    S3,
    /// The same with a versioned bucket.
    S3Versioned,
    /// An S3 server that behaves as MinIO does.
    Minio,
    /// The same with a versioned bucket.
    MinioVersioned,
}

impl Backend {
    /// Everything that a suite of the product runs over.
    pub(crate) const ALL: [Self; 6] = [
        Self::Memory,
        Self::Local,
        Self::S3,
        Self::S3Versioned,
        Self::Minio,
        Self::MinioVersioned,
    ];

    /// Starts the server of an S3 backend.
    fn server(self) -> S3Server {
        let quirks = match self {
            Self::Minio | Self::MinioVersioned => Quirks::MINIO,
            Self::Memory | Self::Local | Self::S3 | Self::S3Versioned => Quirks::AWS,
        };
        let versioning = match self {
            Self::S3Versioned | Self::MinioVersioned => BucketVersioning::Enabled,
            Self::Memory | Self::Local | Self::S3 | Self::Minio => BucketVersioning::Never,
        };
        S3Server::builder()
            .quirks(quirks)
            .versioning(versioning)
            .start()
    }
}

/// What stands before the path in this app's locators.
pub(crate) const PUBLIC_URL: &str = "http://spill.test:8787";

/// A service without a socket.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) router: Router,
    pub(crate) state: AppState,
    pub(crate) store: SharedStore,
    pub(crate) clock: Arc<ManualClock>,
    /// The server under an S3 backend.
    pub(crate) s3: Option<S3Server>,
    local: Option<(LocalStore, tempfile::TempDir)>,
}

impl TestApp {
    pub(crate) async fn new(backend: Backend) -> Self {
        Self::with(backend, |_| {}).await
    }

    pub(crate) async fn with(backend: Backend, adjust: impl FnOnce(&mut LibraryOptions)) -> Self {
        // The S3 client checks the server's date against the machine's, so this clock starts there.
        // Whole seconds, as stores write them.
        let start = Timestamp::from_second(SystemClock.now().as_second()).unwrap();
        let clock = Arc::new(ManualClock::new(start));
        let (mut s3, mut local) = (None, None);
        let store: SharedStore = match backend {
            Backend::Memory => Arc::new(MemoryStore::new(shared(&clock))),
            Backend::Local => {
                let root = tempfile::tempdir().unwrap();
                let ids = Arc::new(SeededIds::new(9));
                let opened = LocalStore::open(root.path(), shared(&clock), ids).unwrap();
                let (store, _) = local.insert((opened, root));
                Arc::new(store.clone())
            }
            Backend::S3 | Backend::S3Versioned | Backend::Minio | Backend::MinioVersioned => {
                Arc::new(s3.insert(backend.server()).store())
            }
        };
        let mut options = LibraryOptions {
            locator_base: LocatorBase::service(PUBLIC_URL).unwrap(),
            ..LibraryOptions::default()
        };
        adjust(&mut options);
        let library = library(&store, &clock, 1, options).await;
        let means = vec![RetrievalMeans::Http];
        let state = AppState::opened(library, Authenticator::anonymous(Tenant::default()), means);
        let ids = RequestIds::new(shared(&clock), Arc::new(SeededIds::new(2)));
        Self {
            router: router(state.clone(), ids),
            state,
            store,
            clock,
            s3,
            local,
        }
    }

    /// The directory of [`Backend::Local`].
    pub(crate) fn root(&self) -> &Path {
        self.local.as_ref().expect("a local store").1.path()
    }

    /// The file of an object of [`Backend::Local`].
    pub(crate) fn local_path(&self, key: &Key) -> PathBuf {
        let (store, _) = self.local.as_ref().expect("a local store");
        store.object_path(key)
    }

    /// A second service over the same store, with caches of its own, for another tenant or the same.
    pub(crate) async fn replica(&self, tenant: &str) -> Router {
        let options = LibraryOptions {
            locator_base: LocatorBase::service(PUBLIC_URL).unwrap(),
            ..LibraryOptions::default()
        };
        let library = library(&self.store, &self.clock, 3, options).await;
        let state = AppState::opened(
            library,
            Authenticator::anonymous(tenant.parse().unwrap()),
            Vec::new(),
        );
        let ids = RequestIds::new(shared(&self.clock), Arc::new(SeededIds::new(4)));
        router(state, ids)
    }

    /// The same service over the same artifacts and caches, for callers with these tokens only.
    pub(crate) fn guarded(&self, tokens: &[TokenEntry]) -> Router {
        let table = TokenTable::new(tokens).unwrap();
        let library = self.state.library().unwrap().clone();
        let means = vec![RetrievalMeans::Http];
        let state = AppState::opened(library, Authenticator::Tokens(table), means);
        let ids = RequestIds::new(shared(&self.clock), Arc::new(SeededIds::new(5)));
        router(state, ids)
    }

    /// The same artifacts under a service that knows an owner which publishes after its commit.
    pub(crate) async fn with_owner(&self, name: &str) -> Router {
        let mut rules = CallerRules::new(Authenticator::anonymous(Tenant::default()), Vec::new());
        let modes = &mut rules.owners.modes;
        modes.insert(name.parse().unwrap(), OwnerMode::CommitFirst);
        let state = AppState::with_rules(rules);
        state.open(self.state.library().unwrap().clone());
        let ids = RequestIds::new(shared(&self.clock), Arc::new(SeededIds::new(6)));
        router(state, ids)
    }

    /// The same artifacts under a service of its own journals that knows these owners.
    pub(crate) fn with_owners(&self, owners: Owners) -> Router {
        let mut rules = CallerRules::new(Authenticator::anonymous(Tenant::default()), Vec::new());
        rules.owners = owners;
        let state = AppState::with_rules(rules);
        state.open(self.state.library().unwrap().clone());
        let ids = RequestIds::new(shared(&self.clock), Arc::new(SeededIds::new(7)));
        router(state, ids)
    }

    /// Sends any request and holds the reply against the contract.
    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        send_to(&self.router, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path, &[]).await
    }

    /// Sends a request without a body.
    pub(crate) async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(request(method, path, headers, Body::empty()))
            .await
    }

    /// Saves `bytes` in the session `s` and answers the receipt.
    pub(crate) async fn put(&self, query: &str, bytes: impl Into<Body>) -> Saved {
        let reply = self.save("s", query, &[], bytes).await;
        assert!(reply.status.is_success(), "{}", reply.text());
        Saved::of(&reply)
    }

    pub(crate) async fn save(
        &self,
        session: &str,
        query: &str,
        headers: &[(&str, &str)],
        bytes: impl Into<Body>,
    ) -> Reply {
        let path = format!("/v1/sessions/{}/artifacts?{query}", escape(session));
        self.send(request(Method::POST, &path, headers, bytes.into()))
            .await
    }

    /// Every key of the store.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut pages = paging::list(&*self.store, ListRequest::default());
        let mut keys = Vec::new();
        while let Some(page) = pages.next_page().await.unwrap() {
            keys.extend(page.objects.into_iter().map(|listed| listed.key));
        }
        keys
    }

    /// The keys of one class (`a` manifests, `b` bodies, `c` call records, `s` sessions).
    pub(crate) async fn keys_of(&self, class: char) -> Vec<String> {
        let needle = format!("/{class}/");
        let mut keys = self.keys().await;
        keys.retain(|key| key.contains(&needle));
        keys
    }

    pub(crate) async fn open_uploads(&self) -> usize {
        let mut pages = paging::list_uploads(&*self.store);
        let mut count = 0;
        while let Some(page) = pages.next_page().await.unwrap() {
            count += page.uploads.len();
        }
        count
    }

    /// Nothing was stored and nothing is left behind but the store's format marker.
    pub(crate) async fn assert_untouched(&self, why: &str) {
        assert_eq!(self.keys().await, ["v1/format.json"], "{why}");
        assert_eq!(self.open_uploads().await, 0, "{why}");
    }

    /// Changes a stored object behind the service's back.
    pub(crate) async fn overwrite(&self, key: &str, bytes: impl Into<Bytes>) {
        let key = Key::parse(key).unwrap();
        let payload = bytes.into().into();
        let written = self.store.put(&key, payload, PutMode::Overwrite).await;
        written.unwrap();
    }

    pub(crate) async fn stored(&self, key: &str) -> Vec<u8> {
        let key = Key::parse(key).unwrap();
        let reply = self.store.get(&key, GetOptions::default()).await.unwrap();
        let GetReply::Found(object) = reply else {
            panic!("no condition was set");
        };
        let body = Body::from_stream(object.body);
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    /// Puts the tombstone where the artifact's manifest stands.
    pub(crate) async fn bury(&self, saved: &Saved, reason: TombstoneReason) {
        let id = saved.receipt["artifact_id"].as_str().unwrap();
        let digest: Sha256Digest = saved.receipt["digest"].as_str().unwrap().parse().unwrap();
        let tombstone = Tombstone {
            v: 1,
            artifact_id: id.parse().unwrap(),
            tombstone: reason,
            decision_id: None,
            sha256: Some(digest),
            size_bytes: saved.receipt["size_bytes"].as_u64(),
            deleted_at: Some("2027-01-16T08:00:00Z".to_owned()),
        };
        let manifests = self.keys_of('a').await;
        let key = manifests.iter().find(|key| key.ends_with(id)).unwrap();
        self.overwrite(key, tombstone.encode()).await;
    }
}

/// The handle that the service takes.
pub(crate) fn shared(clock: &Arc<ManualClock>) -> SharedClock {
    Arc::<ManualClock>::clone(clock)
}

async fn library(
    store: &SharedStore,
    clock: &Arc<ManualClock>,
    seed: u16,
    options: LibraryOptions,
) -> Library {
    let keys = KeySpace::new("").unwrap();
    let format = StoreFormat::open(&**store, &keys, DEFAULT_ORPHAN_TTL)
        .await
        .unwrap();
    let ids = Arc::new(SeededIds::new(seed));
    Library::new(Arc::clone(store), keys, format, shared(clock), ids, options)
}

/// An entry of the configuration for a token.
pub(crate) fn token(text: &str, tenant: &str, scopes: &[Scope]) -> TokenEntry {
    TokenEntry {
        sha256: Sha256Digest::of(text.as_bytes()).to_hex(),
        tenant: tenant.to_owned(),
        scopes: scopes.iter().map(|scope| scope.to_string()).collect(),
        name: None,
    }
}

/// Builds a request as a client sends it.
pub(crate) fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Body,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// Sends any request and holds it and the reply against the contract.
pub(crate) async fn send_to(router: &Router, request: Request<Body>) -> Reply {
    let contract = Contract::shared();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let headers = request.headers().clone();
    let (request, sent) = if contract.takes_json(method.as_str(), &path) {
        let (parts, body) = request.into_parts();
        let sent = body.collect().await.unwrap().to_bytes();
        (Request::from_parts(parts, Body::from(sent.clone())), sent)
    } else {
        (request, Bytes::new())
    };
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let (body, is_cut) = match body.collect().await {
        Ok(collected) => (collected.to_bytes(), false),
        Err(_) => (Bytes::new(), true),
    };
    assert!(parts.headers.contains_key(X_REQUEST_ID));
    let kind = parts.headers.get(CONTENT_TYPE);
    let kind = kind.map_or("", |kind| kind.to_str().unwrap());
    let status = parts.status.as_u16();
    contract.judge(method.as_str(), &path, status, kind, &body);
    if parts.status.is_success() {
        contract.judge_accepted(method.as_str(), (&path, &query), &headers, &sent);
    }
    Reply {
        status: parts.status,
        headers: parts.headers,
        body,
        is_cut,
    }
}

/// Percent-encodes any text as one segment or value.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A reply, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The body ended with an error.
    pub(crate) is_cut: bool,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// The reply is this problem, complete with a hint.
    #[track_caller]
    pub(crate) fn is_problem(&self, code: ErrorCode) -> Value {
        let problem = self.json();
        assert_eq!(problem["code"], code.as_str(), "{problem:#}");
        assert_eq!(self.status, code.status());
        assert_eq!(problem["hint"], code.hint());
        assert_eq!(self.header("cache-control"), "no-store");
        problem
    }
}

/// A receipt, and the path that its locator leads to.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    pub(crate) receipt: Value,
    pub(crate) path: String,
}

impl Saved {
    pub(crate) fn of(reply: &Reply) -> Self {
        let receipt = reply.json();
        let locator = receipt["locator"].as_str().unwrap();
        let path = locator.strip_prefix(PUBLIC_URL).unwrap().to_owned();
        Self { receipt, path }
    }

    pub(crate) fn at(&self, rest: &str) -> String {
        format!("{}{rest}", self.path)
    }
}
