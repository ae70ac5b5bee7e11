//! Locators: the short, stable name of an artifact that stands in a prompt.
//!
//! `{public_url}/a/{skey}.{aid}` from a service, `spillbox:{skey}.{aid}` from a bare store. It is worth
//! nothing without a credential. Readers take only `{skey}.{aid}` from it and ask the store that they
//! are configured for: tool output may hold a forged one.

use std::fmt;

use crate::artifact::confirmed::ConfirmedManifest;
use crate::ids::ArtifactRef;
use crate::limits::MAX_PUBLIC_URL_BYTES;

/// What stands before `{skey}.{aid}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocatorBase {
    /// A service reachable under this URL, without a trailing slash.
    Service(String),
    /// No service: the CLI works straight on a store.
    Store,
}

/// The URL cannot stand in a locator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "public URL `{0}` must be http:// or https://, at most 64 bytes, one word without query or trailing slash"
)]
pub struct InvalidPublicUrlError(String);

impl LocatorBase {
    /// Takes the service's public URL.
    ///
    /// # Errors
    /// It is no plain http(s) URL, or too long for a locator of 120 bytes.
    pub fn service(public_url: &str) -> Result<Self, InvalidPublicUrlError> {
        let host = public_url
            .strip_prefix("http://")
            .or_else(|| public_url.strip_prefix("https://"))
            .unwrap_or_default();
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b".-_~/:[]".contains(&b);
        let valid = !host.is_empty()
            && !host.starts_with(['/', ':'])
            && !public_url.ends_with('/')
            && public_url.len() <= MAX_PUBLIC_URL_BYTES
            && host.bytes().all(is_word);
        if valid {
            Ok(Self::Service(public_url.to_owned()))
        } else {
            Err(InvalidPublicUrlError(public_url.to_owned()))
        }
    }

    /// Returns the text that `artifact`'s locator will have once its manifest is confirmed. For the
    /// rendering inside that manifest only; everybody else needs a [`Locator`].
    pub(crate) fn planned(&self, artifact: &ArtifactRef) -> String {
        match self {
            Self::Service(url) => format!("{url}/a/{artifact}"),
            Self::Store => format!("spillbox:{artifact}"),
        }
    }
}

/// The locator of an artifact whose manifest is known to be stored: it cannot be built from anything
/// else, so no reply ever names what a reader would not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locator(String);

impl Locator {
    /// Returns the locator that the artifact's replacement was rendered with.
    pub fn of(manifest: &ConfirmedManifest) -> Self {
        Self(manifest.head.replacement.locator.clone())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads `{skey}.{aid}` off any form of a locator: the URL, `spillbox:…`, the bare words, with or
/// without a sub-resource behind them.
pub fn parse_locator(text: &str) -> Option<ArtifactRef> {
    let text = text.trim();
    let words = text
        .strip_prefix("spillbox:")
        .unwrap_or_else(|| text.rsplit_once("/a/").map_or(text, |(_, rest)| rest));
    let end = words.find(['/', '?', '#']).unwrap_or(words.len());
    words[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_is_one_short_word() {
        let artifact: ArtifactRef = "00000000000000000000000001.00000000000000000000000002"
            .parse()
            .unwrap();
        let url = format!("https://{}", "h".repeat(MAX_PUBLIC_URL_BYTES - 8));
        for base in [LocatorBase::service(&url).unwrap(), LocatorBase::Store] {
            let text = base.planned(&artifact);
            assert!(text.len() <= 120 && !text.contains([' ', '%']), "{text}");
            assert_eq!(parse_locator(&text), Some(artifact));
            assert_eq!(
                parse_locator(&format!("{text}/lines?offset=3")),
                Some(artifact)
            );
        }
        assert_eq!(parse_locator(&artifact.to_string()), Some(artifact));
        for bad in ["", "spillbox:", "http://x/a/", "http://x/a/../..", "a/b"] {
            assert_eq!(parse_locator(bad), None, "{bad}");
        }
    }

    #[test]
    fn public_urls_are_plain() {
        for good in [
            "http://127.0.0.1:8787",
            "https://spill.example/team",
            "http://[::1]:80",
        ] {
            assert!(LocatorBase::service(good).is_ok(), "{good}");
        }
        let long = format!("http://{}", "h".repeat(MAX_PUBLIC_URL_BYTES));
        for bad in [
            "",
            "ftp://x",
            "http://",
            "http:///",
            "http://x/",
            "http://x?a",
            "http://a b",
            "http://x%20y",
            &long,
        ] {
            assert!(LocatorBase::service(bad).is_err(), "{bad}");
        }
    }
}
