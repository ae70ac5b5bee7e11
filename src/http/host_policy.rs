//! Against DNS rebinding: a service without tokens takes requests under its own names only.
//!
//! A page of a foreign site can let its host name resolve to 127.0.0.1 and then read, as its own origin,
//! what a local service answers; its requests still carry the foreign name in `Host`. A page that asks
//! 127.0.0.1 directly cannot read the reply but could store things; its requests carry the foreign
//! `Origin`. With tokens neither gets in, and this is off: behind proxies any name may be right.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ErrorCode;
use crate::http::app::AppState;
use crate::http::problem::{Problem, excerpt};

/// The names under which a service may be asked, with any port: those of loopback, and one more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPolicy {
    public_host: Option<String>,
}

impl HostPolicy {
    /// Allows loopback names and the host of the URL that locators begin with, if it is a URL.
    pub fn new(public_url: &str) -> Self {
        let uri = public_url.parse::<Uri>().ok();
        let host = uri.as_ref().and_then(Uri::host);
        Self {
            public_host: host.map(str::to_ascii_lowercase),
        }
    }

    /// Returns whether `authority` (`host`, `host:port`, `[v6]:port`) is one of the names.
    pub fn allows(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else {
            return false;
        };
        let host = authority.host().to_ascii_lowercase();
        let is_plain = !authority.as_str().contains('@');
        is_plain && (is_loopback(&host) || self.public_host.as_ref() == Some(&host))
    }

    /// Returns what is wrong with a request, if anything: the foreign name, for the problem's detail.
    fn foreign_name(&self, request: &Request) -> Option<String> {
        // HTTP/2 and proxies name the host in the target, HTTP/1.1 in the header; each that is there
        // must be ours, and one must be there.
        let target = request.uri().authority().map(Authority::as_str);
        let headers = request.headers().get_all(HOST).iter().map(text_of);
        let names: Vec<_> = target.into_iter().chain(headers).collect();
        if names.is_empty() {
            return Some("no host name".to_owned());
        }
        if let Some(name) = names.into_iter().find(|name| !self.allows(name)) {
            return Some(format!("host `{}`", excerpt(name)));
        }
        let mut origins = request.headers().get_all(ORIGIN).iter().map(text_of);
        let origin = origins.find(|origin| !self.allows_origin(origin))?;
        Some(format!("origin `{}`", excerpt(origin)))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let scheme_end = origin.find("://").map(|at| at + "://".len());
        scheme_end.is_some_and(|at| self.allows(&origin[at..]))
    }
}

/// A header that is not text names nobody.
fn text_of(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

fn is_loopback(host: &str) -> bool {
    let v6 = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = match v6 {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    };
    match address {
        Some(address) => address.is_loopback(),
        None => host == "localhost",
    }
}

/// A layer around all routes: refuses what was asked under a foreign name.
pub(crate) async fn refuse_foreign(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let foreign = state
        .host_policy()
        .and_then(|policy| policy.foreign_name(&request));
    match foreign {
        None => next.run(request).await,
        Some(what) => {
            let detail = format!(
                "{what} is not this service's; without tokens it answers loopback names only"
            );
            Problem::new(ErrorCode::HostNotAllowed, detail).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use rstest::rstest;

    use super::*;

    fn policy() -> HostPolicy {
        HostPolicy::new("https://Spill.example:8443/team")
    }

    #[rstest]
    #[case("localhost")]
    #[case("LOCALHOST:1")]
    #[case("127.0.0.1:8787")]
    #[case("127.255.0.9")]
    #[case("[::1]:8787")]
    #[case("[0:0:0:0:0:0:0:1]")]
    #[case("spill.example")]
    #[case("SPILL.example:1")]
    fn its_own_names_are_allowed_with_any_port(#[case] name: &str) {
        assert!(policy().allows(name), "{name}");
    }

    #[rstest]
    #[case("")]
    #[case("evil.example")]
    #[case("localhost.evil.example")]
    #[case("127.0.0.1.evil.example")]
    #[case("spill.example.evil.example")]
    #[case("evil.example@localhost")]
    #[case("localhost@evil.example")]
    #[case("localhost/evil")]
    #[case("128.0.0.1")]
    #[case("0.0.0.0")]
    #[case("127.1")]
    #[case("2130706433")]
    #[case("[::2]")]
    #[case("[::ffff:127.0.0.1]")]
    #[case("::1")]
    #[case("localhost,evil.example")]
    #[case("local host")]
    fn every_other_name_is_foreign(#[case] name: &str) {
        assert!(!policy().allows(name), "{name}");
    }

    #[rstest]
    #[case::http1("/", &[("host", "localhost:1")], None)]
    #[case::http2("http://localhost:1/", &[], None)]
    #[case::both("http://localhost:1/", &[("host", "127.0.0.1")], None)]
    #[case::own_page("/", &[("host", "localhost"), ("origin", "http://localhost:3000")], None)]
    #[case::neither("/", &[], Some("no host name"))]
    #[case::foreign("/", &[("host", "evil.example")], Some("evil.example"))]
    #[case::foreign_target("http://evil.example/", &[("host", "localhost")], Some("evil.example"))]
    #[case::foreign_header("http://localhost/", &[("host", "evil.example")], Some("evil.example"))]
    #[case::two("/", &[("host", "localhost"), ("host", "evil.example")], Some("evil.example"))]
    #[case::page("/", &[("host", "localhost"), ("origin", "https://evil.example")], Some("origin"))]
    #[case::sandboxed("/", &[("host", "localhost"), ("origin", "null")], Some("origin"))]
    fn every_name_of_a_request_must_be_its_own(
        #[case] target: &str,
        #[case] headers: &[(&str, &str)],
        #[case] foreign: Option<&str>,
    ) {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        match (policy().foreign_name(&request), foreign) {
            (None, None) => {}
            (Some(found), Some(part)) => assert!(found.contains(part), "{found}"),
            (found, _) => panic!("{found:?}"),
        }
    }
}
