//! Asking owners what they hold, over HTTP.
//!
//! The service asks with its own place in the network, so where it asks is the operator's alone: base URLs
//! stand in the settings, redirects are not followed, proxies of the environment are not used, and unless
//! `allow_private` is set a name may only lead to public addresses. That is checked on the addresses that
//! the connection is then made to, not on an earlier look-up of the same name. Time and size are bounded.
//! A base URL may hold a secret in its path: it stands in no message.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_MATCH};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Method, RequestBuilder, Response, Url};
use tokio::sync::Semaphore;

use crate::lease::leases::Owners;
use crate::lease::names::{OwnerGeneration, OwnerName, TransactionId};
use crate::lease::owner::{OwnerLink, OwnerReply, Question};
use crate::limits::{
    MAX_OWNER_REPLY_BYTES, OWNER_CONNECT_TIMEOUT, OWNER_DEADLINE, OWNER_QUESTIONS,
};
use crate::settings::Settings;

pub mod address;
pub mod check;

use self::address::is_public;

/// What stands bare in the path segment of a transaction.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An owner cannot be asked as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum OwnerSetupError {
    /// The URL is none that can be asked.
    #[error(
        "owner `{0}`: base_url is an http:// or https:// URL with a host, without user, query or fragment"
    )]
    Url(OwnerName),
    /// The URL itself names an address that is not public.
    #[error("owner `{0}`: base_url leads to a private address, which needs allow_private = true")]
    Private(OwnerName),
    /// HTTP cannot be set up.
    #[error("owner `{0}`: cannot set up HTTP: {1}")]
    Http(OwnerName, String),
}

/// One owner's endpoint.
#[derive(Clone)]
pub struct Endpoint {
    client: reqwest::Client,
    base: String,
    deadline: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// The configured owners, each at its own endpoint. Questions have places: callers cannot make this
/// process flood an owner.
#[derive(Debug)]
pub struct OwnerClient {
    endpoints: BTreeMap<OwnerName, Endpoint>,
    places: Semaphore,
}

impl OwnerClient {
    /// Asks each owner at its endpoint.
    pub fn new(endpoints: BTreeMap<OwnerName, Endpoint>) -> Self {
        Self {
            endpoints,
            places: Semaphore::new(OWNER_QUESTIONS),
        }
    }

    /// Asks an owner as soon as there is a place.
    async fn ask(
        &self,
        owner: &OwnerName,
        question: impl AsyncFnOnce(&Endpoint) -> OwnerReply,
    ) -> OwnerReply {
        let Some(endpoint) = self.endpoints.get(owner) else {
            return OwnerReply::Lost("the owner has no base_url".to_owned());
        };
        let place = tokio::time::timeout(endpoint.deadline, self.places.acquire()).await;
        match place {
            Ok(Ok(_place)) => question(endpoint).await,
            Ok(Err(_)) | Err(_) => {
                OwnerReply::Lost("too many questions to owners are waiting".to_owned())
            }
        }
    }
}

/// Returns the owners of the settings and the way to ask them. No request is made.
///
/// # Errors
/// See [`OwnerSetupError`].
pub fn owners(settings: &Settings) -> Result<Owners, OwnerSetupError> {
    let mut endpoints = BTreeMap::new();
    for (name, owner) in &settings.owners {
        let (Ok(name), Some(url)) = (name.parse::<OwnerName>(), &owner.base_url) else {
            continue;
        };
        let endpoint = Endpoint::new(&name, url, owner.allow_private)?;
        endpoints.insert(name, endpoint);
    }
    Ok(Owners {
        modes: settings.owner_modes(),
        link: Arc::new(OwnerClient::new(endpoints)),
    })
}

#[async_trait]
impl OwnerLink for OwnerClient {
    fn knows(&self, owner: &OwnerName) -> bool {
        self.endpoints.contains_key(owner)
    }

    async fn observe(&self, owner: &OwnerName, question: &Question) -> OwnerReply {
        let transaction = &question.transaction_id;
        let look = async |endpoint: &Endpoint| endpoint.observe(transaction).await;
        self.ask(owner, look).await
    }

    async fn seal(
        &self,
        owner: &OwnerName,
        question: &Question,
        generation: &OwnerGeneration,
    ) -> OwnerReply {
        let generation = generation.as_str();
        let seal = async |endpoint: &Endpoint| endpoint.seal(question, generation).await;
        self.ask(owner, seal).await
    }
}

impl Endpoint {
    /// Prepares to ask at `url`; `name` is for messages.
    ///
    /// # Errors
    /// See [`OwnerSetupError`].
    pub fn new(name: &OwnerName, url: &str, allow_private: bool) -> Result<Self, OwnerSetupError> {
        let parsed = Url::parse(url).ok().filter(is_base);
        let Some(parsed) = parsed else {
            return Err(OwnerSetupError::Url(name.clone()));
        };
        // A literal is never resolved, in whatever spelling (`127.1`, `0x7f000001`): the parser has
        // settled it.
        let literal = parsed
            .host_str()
            .and_then(|host| host.trim_matches(['[', ']']).parse().ok());
        if !allow_private && literal.is_some_and(|address| !is_public(address)) {
            return Err(OwnerSetupError::Private(name.clone()));
        }
        let builder = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .connect_timeout(OWNER_CONNECT_TIMEOUT)
                .dns_resolver(Arc::new(CheckedResolver { allow_private }))
                .user_agent(concat!("spillbox/", env!("CARGO_PKG_VERSION")))
        };
        let client = match builder().build() {
            Ok(client) => client,
            // A bare container has no CA certificates, and plain HTTP needs none.
            Err(_) if parsed.scheme() == "http" => {
                let bare = builder().tls_certs_only([]).build();
                bare.map_err(|error| OwnerSetupError::Http(name.clone(), error.to_string()))?
            }
            Err(error) => return Err(OwnerSetupError::Http(name.clone(), error.to_string())),
        };
        Ok(Self {
            client,
            base: parsed.as_str().trim_end_matches('/').to_owned(),
            deadline: OWNER_DEADLINE,
        })
    }

    /// Waits for so long for each answer, all of it included.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Looks at a transaction.
    pub async fn observe(&self, transaction: &TransactionId) -> OwnerReply {
        self.ask(self.request(Method::GET, transaction, "")).await
    }

    /// Asks for a seal at a generation; the transaction's claim goes with it, for owners that compare.
    pub async fn seal(&self, question: &Question, generation: &str) -> OwnerReply {
        let Ok(tag) = HeaderValue::try_from(format!("\"{generation}\"")) else {
            return OwnerReply::Lost("the generation cannot stand in a header".to_owned());
        };
        let request = self.request(Method::PUT, &question.transaction_id, "/seal");
        self.ask(with_json(request, question).header(IF_MATCH, tag))
            .await
    }

    /// Publishes, on a test endpoint (`spillbox owner check`).
    pub async fn publish(&self, question: &Question) -> OwnerReply {
        let request = self.request(Method::PUT, &question.transaction_id, "");
        self.ask(with_json(request, question)).await
    }

    /// Removes, on a test endpoint (`spillbox owner check`).
    pub async fn remove(&self, transaction: &TransactionId) -> OwnerReply {
        self.ask(self.request(Method::DELETE, transaction, ""))
            .await
    }

    async fn ask(&self, request: RequestBuilder) -> OwnerReply {
        let asked = async {
            let mut response = request.send().await?;
            let (status, etag) = (response.status().as_u16(), only_etag(response.headers()));
            Ok(match read(&mut response).await? {
                Some(body) => OwnerReply::Answered { status, etag, body },
                None => OwnerReply::Lost(format!(
                    "the owner's answer is longer than {MAX_OWNER_REPLY_BYTES} bytes"
                )),
            })
        };
        match tokio::time::timeout(self.deadline, asked).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => OwnerReply::Lost(said(&error)),
            Err(_) => OwnerReply::Lost("the owner did not answer in time".to_owned()),
        }
    }

    fn request(&self, method: Method, transaction: &TransactionId, rest: &str) -> RequestBuilder {
        let segment = utf8_percent_encode(transaction.as_str(), SEGMENT);
        let url = format!("{}/v1/artifact-references/{segment}{rest}", self.base);
        self.client.request(method, url)
    }
}

fn with_json(request: RequestBuilder, question: &Question) -> RequestBuilder {
    let body = serde_json::to_vec(question).expect("three words serialise");
    request.header(CONTENT_TYPE, "application/json").body(body)
}

/// Scheme, host, port and path; no user, query or fragment.
fn is_base(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// Reads the body; `None` where it is longer than any answer. What follows is not read.
async fn read(response: &mut Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > MAX_OWNER_REPLY_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

fn only_etag(headers: &HeaderMap) -> Option<String> {
    let mut tags = headers.get_all(ETAG).iter();
    let tag = tags.next()?.to_str().ok()?.to_owned();
    tags.next().is_none().then_some(tag)
}

/// What went wrong, without the URL.
fn said(error: &reqwest::Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<PrivateAddressError>() {
            return cause.to_string();
        }
        source = cause.source();
    }
    if error.is_connect() {
        "the owner cannot be reached".to_owned()
    } else {
        "the owner's answer was cut off or is no HTTP".to_owned()
    }
}

/// A name leads to an address that may not be asked.
#[derive(Debug, thiserror::Error)]
#[error("the owner's name leads to a private address, and allow_private is not set")]
struct PrivateAddressError;

/// Resolves names, and hands out only addresses that may be connected to: what is checked is what is
/// used, so a name that changes its mind gains nothing.
#[derive(Debug, Clone, Copy)]
struct CheckedResolver {
    allow_private: bool,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<_> = found.collect();
            // One private address among public ones is no accident.
            if !allow_private && found.iter().any(|address| !is_public(address.ip())) {
                return Err(PrivateAddressError.into());
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests;
