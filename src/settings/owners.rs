//! `[owners.NAME]`: the memory systems that hold references, and how each of them publishes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::ids::InvalidIdError;
use crate::lease::entry::OwnerMode;
use crate::lease::names::OwnerName;
use crate::owner_client::address::is_public;

/// One owner. A request cannot change any of it: the URL is asked with the service's own authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerSettings {
    /// In which order it publishes.
    pub mode: OwnerMode,
    /// Where it is asked what it holds; never, when absent.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Whether `base_url` may lead to a private, link-local or loopback address.
    #[serde(default)]
    pub allow_private: bool,
}

impl OwnerSettings {
    fn broken_rule(&self) -> Option<&'static str> {
        let url = self.base_url.as_deref()?;
        let Some(host) = host_of(url) else {
            return Some(
                "base_url is an http:// or https:// URL with a host, without user, query or fragment",
            );
        };
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        let is_private = literal.is_ok_and(|address| !is_public(address))
            || host.eq_ignore_ascii_case("localhost");
        (is_private && !self.allow_private)
            .then_some("base_url leads to a private address, which needs allow_private = true")
    }
}

impl Settings {
    /// Returns in which order each configured owner publishes.
    pub fn owner_modes(&self) -> BTreeMap<OwnerName, OwnerMode> {
        let owners = self.owners.iter();
        owners
            .filter_map(|(name, owner)| Some((name.parse().ok()?, owner.mode)))
            .collect()
    }

    /// Returns what is wrong with the first owner that breaks a rule.
    pub(super) fn broken_owner(&self) -> Option<String> {
        self.owners.iter().find_map(|(name, owner)| {
            let rule = match name.parse::<OwnerName>() {
                Err(InvalidIdError { rule, .. }) => Some(rule),
                Ok(name) if name.is_hold() => Some("holds have no owner to configure"),
                Ok(_) => owner.broken_rule(),
            };
            rule.map(|rule| format!("owner `{}`: {rule}", name.escape_debug()))
        })
    }
}

fn host_of(url: &str) -> Option<String> {
    let uri = url.parse::<axum::http::Uri>().ok()?;
    let is_plain = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.query().is_none()
        && !url.contains(['@', '#']);
    let host = uri.host().filter(|host| !host.is_empty())?;
    is_plain.then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(url: &str, allow_private: bool) -> Option<&'static str> {
        OwnerSettings {
            mode: OwnerMode::OwnerFenced,
            base_url: Some(url.to_owned()),
            allow_private,
        }
        .broken_rule()
    }

    #[test]
    fn an_owners_url_is_plain_and_public_unless_allowed() {
        for good in [
            "https://memory.example",
            "http://8.8.8.8:80/base",
            "https://[2606:4700::1]",
        ] {
            assert_eq!(rule(good, false), None, "{good}");
        }
        for private in [
            "http://127.0.0.1:9000",
            "http://localhost",
            "http://10.0.0.7",
            "http://169.254.169.254",
            "http://[::1]",
            "http://[::ffff:10.0.0.1]",
            "http://[fd00::1]",
            "http://0.0.0.0",
        ] {
            assert!(rule(private, false).is_some(), "{private}");
            assert_eq!(rule(private, true), None, "{private}");
        }
        for bad in [
            "",
            "memory.example",
            "ftp://memory.example",
            "https://",
            "https://user@memory.example",
            "https://memory.example?a=1",
            "https://memory.example#x",
        ] {
            assert!(rule(bad, true).is_some(), "{bad}");
        }
    }
}
