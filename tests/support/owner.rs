//! Owners of leases on a socket: the reference owner, and one that answers what it is told to.
#![allow(dead_code, reason = "shared support: no suite uses all of it")]

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::json;
use spillbox::digest::Sha256Digest;
use spillbox::lease::entry::OwnerMode;
use spillbox::lease::leases::Owners;
use spillbox::settings::{OwnerSettings, Settings, StoreSettings, StoreUrl};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

#[path = "../../examples/reference_owner.rs"]
#[allow(
    unreachable_pub,
    dead_code,
    reason = "an example, which is a program of its own"
)]
pub(crate) mod reference_owner;

pub(crate) use reference_owner::Broken;

/// A server that ends with its handle.
pub(crate) struct Served {
    pub(crate) url: String,
    _task: JoinSet<()>,
}

pub(crate) async fn serve(router: Router) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut task = JoinSet::new();
    task.spawn(async move {
        axum::serve(listener, router).await.unwrap();
    });
    Served { url, _task: task }
}

/// The reference owner, with a rule broken or none.
pub(crate) async fn reference(broken: Option<Broken>) -> Served {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let owner = reference_owner::Owner::new(connection, broken).unwrap();
    serve(reference_owner::router(owner)).await
}

/// What the next look or seal is answered.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// A status, an ETag (none where empty), a body.
    Plainly(u16, &'static str, String),
    /// A body without end.
    Endlessly,
    /// Nothing, and the connection stays open.
    Never,
    /// To ask somewhere else.
    Elsewhere(String),
}

pub(crate) fn says(etag: &'static str, document: serde_json::Value) -> Said {
    Said::Plainly(200, etag, document.to_string())
}

/// What an owner answers of a claim that it published.
pub(crate) fn published(source_id: &str, digest: &Sha256Digest) -> serde_json::Value {
    json!({"state": "published", "source_id": source_id, "sha256": digest.to_hex()})
}

/// The method and the path, and the seal's If-Match.
pub(crate) type Asked = (Method, String, Option<String>);

/// An owner with a script: its last line is said again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    looks: Arc<Mutex<VecDeque<Said>>>,
    seals: Arc<Mutex<VecDeque<Said>>>,
    /// What was asked.
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Script {
    pub(crate) fn new(looks: Vec<Said>, seals: Vec<Said>) -> Self {
        Self {
            looks: Arc::new(Mutex::new(looks.into())),
            seals: Arc::new(Mutex::new(seals.into())),
            asked: Arc::default(),
        }
    }

    pub(crate) async fn serve(&self) -> Served {
        let router = Router::new().fallback(act).with_state(self.clone());
        serve(router).await
    }

    pub(crate) fn count(&self, method: &Method) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(known, ..)| known == method).count()
    }

    fn next(&self, method: &Method) -> Option<Said> {
        let lines = if method == Method::GET {
            &self.looks
        } else {
            &self.seals
        };
        let mut lines = lines.lock().unwrap();
        if lines.len() > 1 {
            lines.pop_front()
        } else {
            lines.front().cloned()
        }
    }
}

async fn act(State(script): State<Script>, request: Request) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let tag = request.headers().get("if-match");
    let tag = tag.map(|tag| tag.to_str().unwrap().to_owned());
    let asked = (method.clone(), path, tag);
    script.asked.lock().unwrap().push(asked);
    match script.next(&method) {
        None => plain(500, "", "nothing is to be said".to_owned()),
        Some(Said::Plainly(status, etag, body)) => plain(status, etag, body),
        Some(Said::Endlessly) => {
            let megabyte = Bytes::from(vec![b' '; 1 << 20]);
            let pieces = stream::repeat_with(move || Ok::<_, Infallible>(megabyte.clone()));
            Response::builder()
                .header("etag", "\"1\"")
                .body(Body::from_stream(pieces))
                .unwrap()
        }
        Some(Said::Never) => std::future::pending().await,
        Some(Said::Elsewhere(url)) => Response::builder()
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", url)
            .body(Body::empty())
            .unwrap(),
    }
}

fn plain(status: u16, etag: &str, body: String) -> Response {
    let mut response = Response::builder().status(status);
    if !etag.is_empty() {
        response = response.header("etag", etag);
    }
    response.body(Body::from(body)).unwrap()
}

/// The owners of a service whose settings name `memory` at this URL.
pub(crate) fn memory_at(url: &str) -> Owners {
    owners(&[("memory", OwnerMode::OwnerFenced, Some(url))])
}

pub(crate) fn owners(listed: &[(&str, OwnerMode, Option<&str>)]) -> Owners {
    let mut settings = settings();
    for (name, mode, url) in listed {
        let owner = OwnerSettings {
            mode: *mode,
            base_url: url.map(str::to_owned),
            allow_private: true,
        };
        settings.owners.insert((*name).to_owned(), owner);
    }
    spillbox::owner_client::owners(&settings).unwrap()
}

fn settings() -> Settings {
    Settings {
        server: Default::default(),
        store: StoreSettings::at(StoreUrl::Memory),
        limits: Default::default(),
        gc: Default::default(),
        access: Default::default(),
        tokens: Vec::new(),
        profiles: BTreeMap::new(),
        owners: BTreeMap::new(),
    }
}
