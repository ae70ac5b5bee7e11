//! The URL under which clients reach the service; the first part of every locator.

use std::fmt;
use std::str::FromStr;

use axum::http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::MAX_PUBLIC_URL_BYTES;

/// An `http` or `https` URL without a slash at its end, at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

/// The text is no usable public URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a public URL: {rule}")]
pub struct PublicUrlError {
    /// What was given.
    pub text: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl PublicUrl {
    /// Returns the URL's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the rule that `text` breaks.
fn broken_rule(text: &str) -> Option<&'static str> {
    // A locator stands in prompts and in shell lines: no white space, quotes or shell signs.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b":/.-_~%[]".contains(&b);
    let after_scheme = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(after_scheme) = after_scheme else {
        return Some("it begins with http:// or https://");
    };
    if text.len() > MAX_PUBLIC_URL_BYTES {
        return Some("at most 64 bytes, so that locators stay short");
    }
    if text.ends_with('/') {
        return Some("no slash at its end");
    }
    if !text.bytes().all(is_plain) || after_scheme.contains("//") {
        return Some(
            "a host, perhaps a port and a path; no user, query, fragment or special signs",
        );
    }
    let uri = text.parse::<Uri>().ok();
    let host_is_there = uri.is_some_and(|uri| {
        let port_is_number = |authority: &axum::http::uri::Authority| {
            let after_host = &authority.as_str()[authority.host().len()..];
            after_host.is_empty() || authority.port_u16().is_some()
        };
        uri.host().is_some_and(|host| !host.is_empty())
            && uri.authority().is_some_and(port_is_number)
    });
    (!host_is_there).then_some("it names a host and, if any, a port from 0 to 65535")
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match broken_rule(text) {
            None => Ok(Self(text.to_owned())),
            Some(rule) => Err(PublicUrlError {
                text: text.to_owned(),
                rule,
            }),
        }
    }
}

impl From<std::net::SocketAddr> for PublicUrl {
    fn from(address: std::net::SocketAddr) -> Self {
        Self(format!("http://{address}"))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PublicUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn urls_of_a_service_are_taken_as_written() {
        for text in [
            "http://127.0.0.1:8787",
            "https://spill.example.org",
            "https://example.org/team/spill",
            "http://[::1]:8787",
        ] {
            assert_eq!(text.parse::<PublicUrl>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_default_made_from_an_address_is_valid() {
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
        for address in ["0.0.0.0:1", "[::]:8787", longest] {
            let address: SocketAddr = address.parse().unwrap();
            let url = PublicUrl::from(address).to_string();
            assert!(url.parse::<PublicUrl>().is_ok(), "{url}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_rule() {
        let long = format!("https://{}.org", "x".repeat(60));
        for (text, part) in [
            ("", "http://"),
            ("example.org", "http://"),
            ("ftp://example.org", "http://"),
            ("HTTP://example.org", "http://"),
            (long.as_str(), "64 bytes"),
            ("http://example.org/", "slash"),
            ("http://", "slash"),
            ("http:///a", "host"),
            ("http://:80", "host"),
            ("http://a:99999", "port"),
            ("http://a:", "port"),
            ("http://a:b", "port"),
            ("http://u:p@host", "no user"),
            ("http://host?q=1", "query"),
            ("http://host#f", "fragment"),
            ("http://ho st", "special"),
            ("http://host/$(x)", "special"),
            ("http://host/a//b", "special"),
            ("http://höst", "special"),
        ] {
            let error = text.parse::<PublicUrl>().unwrap_err();
            assert!(error.rule.contains(part), "{text}: {error}");
        }
    }
}
