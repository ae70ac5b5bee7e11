//! One way to ask: an HTTP request, answered by a service or, in this process, by the same router over
//! a store. So every command behaves alike against a URL and straight on a store.
//!
//! Danger: tool output may hold a forged locator. The credential goes to the configured URL and nowhere
//! else: redirects are not followed, and a request never names another host.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use reqwest::Url;
use tower::ServiceExt;

use crate::auth::is_token_text;
use crate::cli::failure::Failure;
use crate::http::app::AppState;

/// Time to reach a service; a host that does not answer must not hold up a tool.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What an error reply may be at most; more is not read.
const MAX_PROBLEM_BYTES: usize = 64 << 10;

/// Where requests go.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A service.
    Service(ServiceTransport),
    /// A store that this process opened.
    Store(Box<StoreTransport>),
}

/// Requests over HTTP to one service.
#[derive(Debug, Clone)]
pub struct ServiceTransport {
    client: reqwest::Client,
    base: String,
    token: Option<HeaderValue>,
}

/// Requests to the router over a store of this process.
#[derive(Debug, Clone)]
pub struct StoreTransport {
    /// The same routes that a service has.
    pub router: Router,
    /// What they share.
    pub state: AppState,
}

impl ServiceTransport {
    /// Prepares to ask the service at `url`, with `token` as its bearer token. No request is made.
    ///
    /// # Errors
    /// The URL or the token cannot be used.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, Failure> {
        let parsed = Url::parse(url).ok().filter(is_base);
        let Some(parsed) = parsed else {
            return Err(
                Failure::usage(format!("`{url}` is not the URL of a service")).with_hint(
                    "http or https, a host, perhaps a port and a path: http://127.0.0.1:8787",
                ),
            );
        };
        let token = match token {
            None => None,
            Some(token) if is_token_text(token.as_bytes()) => {
                let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                    .expect("a token's text is of a header's alphabet");
                value.set_sensitive(true);
                Some(value)
            }
            Some(_) => {
                return Err(Failure::usage("the token holds characters that no token has")
                    .with_hint("a token is one word of letters, digits and -._~+/, perhaps with = at its end"));
            }
        };
        let builder = || {
            reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .user_agent(concat!("spillbox/", env!("CARGO_PKG_VERSION")))
        };
        let client = match builder().build() {
            Ok(client) => client,
            // A bare container has no CA certificates, and plain HTTP needs none.
            Err(_) if parsed.scheme() == "http" => builder()
                .tls_certs_only([])
                .build()
                .map_err(|error| cannot_set_up(&error))?,
            Err(error) => return Err(cannot_set_up(&error)),
        };
        Ok(Self {
            client,
            base: parsed.as_str().trim_end_matches('/').to_owned(),
            token,
        })
    }

    /// Returns the service's URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.base
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let (parts, body) = request.into_parts();
        let url = format!("{}{}", self.base, parts.uri);
        let mut outgoing = self
            .client
            .request(parts.method, url)
            .headers(parts.headers)
            .body(reqwest::Body::wrap_stream(body.into_data_stream()));
        if let Some(token) = &self.token {
            outgoing = outgoing.header(AUTHORIZATION, token.clone());
        }
        let response = outgoing.send().await.map_err(|error| {
            let failure = Failure::new(format!("{}: {}", self.base, chain(&error))).away();
            if error.is_connect() {
                failure.with_hint(
                    "check that the service runs and that --url or SPILLBOX_URL names it",
                )
            } else {
                failure
            }
        })?;
        Ok(Response::from(response).map(Body::new))
    }
}

fn cannot_set_up(error: &reqwest::Error) -> Failure {
    Failure::new(format!("cannot set up HTTP: {}", chain(error)))
        .with_hint("install the system's CA certificates (ca-certificates), or set SSL_CERT_FILE")
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

/// The reasons of an HTTP error stand in its sources; the URL, which may hold a session, does not.
fn chain(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut text = None;
    while let Some(cause) = source {
        text = Some(cause.to_string());
        source = cause.source();
    }
    text.unwrap_or_else(|| error.to_string())
}

impl Transport {
    /// Sends a request whose URI is a path and a query, and returns the head of the reply with its
    /// body still streaming.
    ///
    /// # Errors
    /// No reply came.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        match self {
            Self::Service(service) => service.send(request).await,
            Self::Store(store) => match store.router.clone().oneshot(request).await {
                Ok(response) => Ok(response),
                Err(never) => match never {},
            },
        }
    }

    /// Sends a request and returns the reply if it is a success.
    ///
    /// # Errors
    /// No reply came, or one that says what is wrong.
    pub async fn ask(&self, request: Request<Body>) -> Result<Response<Body>, Failure> {
        let response = self.send(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = axum::body::to_bytes(response.into_body(), MAX_PROBLEM_BYTES).await;
        Err(Failure::of_reply(status, &body.unwrap_or_default()))
    }

    /// Waits for what a finished request may have left to do on a store (aborting an upload).
    pub async fn close(&self) {
        match self {
            Self::Service(_) => {}
            Self::Store(store) => store.state.drain().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_base_url_is_taken() {
        for (url, base) in [
            ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
            ("https://host/team/", "https://host/team"),
        ] {
            assert_eq!(ServiceTransport::new(url, None).unwrap().base, base);
        }
        for bad in [
            "",
            "host",
            "ftp://h",
            "http://u:p@h",
            "http://h?q",
            "http://h#f",
            "http://",
        ] {
            let failure = ServiceTransport::new(bad, None).unwrap_err();
            assert_eq!(failure.exit, 2, "{bad}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let service = ServiceTransport::new("http://h", Some("s3cret")).unwrap();
        assert!(!format!("{service:?}").contains("s3cret"));
        for bad in ["a\nb", "two words", "", "é"] {
            let failure = ServiceTransport::new("http://h", Some(bad)).unwrap_err();
            assert_eq!(failure.exit, 2, "{bad:?}");
        }
    }
}
