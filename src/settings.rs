//! What an operator can set, with its defaults and bounds.
//!
//! Values come from defaults, then the TOML file, then `SPILLBOX_{SECTION}__{KEY}` in the environment
//! (or `…_FILE`, the path of a file that holds the value), then flags; the later one wins. Unknown keys
//! are refused everywhere, so that a misspelled setting is not a silent default.
//! `deploy/config.example.toml` explains every key; a test keeps it complete.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::auth::TokenEntry;
use crate::gc::policy::PolicySettings;
use crate::limits as bounds;
use crate::policy::table::ProfileTable;

mod access;
mod collector;
mod known;
mod limits;
mod load;
mod owners;
mod public_url;
mod store_url;

pub use access::{AccessSettings, TOKEN_VARIABLE};
pub use collector::CollectorSettings;
pub use limits::LimitSettings;
pub use load::{Environment, Flag, SettingsError, load};
pub use owners::OwnerSettings;
pub use public_url::{PublicUrl, PublicUrlError};
pub use store_url::{StoreUrl, StoreUrlError};

/// All settings of a service or a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `[server]`
    #[serde(default)]
    pub server: ServerSettings,
    /// `[store]`
    pub store: StoreSettings,
    /// `[limits]`
    #[serde(default)]
    pub limits: LimitSettings,
    /// `[gc]`
    #[serde(default)]
    pub gc: GcSettings,
    /// `[access]`
    #[serde(default)]
    pub access: AccessSettings,
    /// `[[tokens]]`
    #[serde(default)]
    pub tokens: Vec<TokenEntry>,
    /// `[profiles.NAME]`: tool result budgets of the operator's own.
    #[serde(default)]
    pub profiles: BTreeMap<String, ProfileTable>,
    /// `[owners.NAME]`
    #[serde(default)]
    pub owners: BTreeMap<String, OwnerSettings>,
}

/// `[server]`: where the service listens and how clients name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The address of the API; loopback unless told otherwise.
    pub listen: SocketAddr,
    /// The URL that locators begin with; `http://{listen}` when absent.
    pub public_url: Option<PublicUrl>,
    /// The address of `/metrics`; none when absent.
    pub admin_listen: Option<SocketAddr>,
    /// How often `/readyz` has the store looked at.
    #[serde(with = "humantime_serde")]
    pub ready_check_interval: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            public_url: None,
            admin_listen: None,
            ready_check_interval: bounds::READY_CHECK_INTERVAL,
        }
    }
}

impl ServerSettings {
    /// Returns the URL that locators begin with, given the address that was bound (port 0 is only known
    /// then).
    pub fn public_url_at(&self, bound: SocketAddr) -> PublicUrl {
        self.public_url.clone().unwrap_or_else(|| bound.into())
    }
}

/// Whether writes carry a CRC-32 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// `x-amz-checksum-crc32` on every body.
    #[default]
    Header,
    /// None, for servers that refuse it.
    Off,
}

/// `[store]`: where objects are kept. Credentials come from the usual `AWS_*` environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// The store.
    pub url: StoreUrl,
    /// The S3 endpoint; that of `AWS_ENDPOINT_URL` or AWS itself when absent.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Further endpoints of the same bucket, which writers elsewhere use: attestation races over all of
    /// them, because some clusters are exact behind each node and not across nodes.
    #[serde(default)]
    pub other_endpoints: Vec<String>,
    /// Writers of one key that attestation races; fewer for servers that serialise them slowly.
    #[serde(default = "default_contenders")]
    pub contenders: usize,
    /// The S3 region; that of the environment when absent.
    #[serde(default)]
    pub region: Option<String>,
    /// Whether the bucket stands in the path; yes for custom endpoints when absent.
    #[serde(default)]
    pub path_style: Option<bool>,
    /// Whether writes carry a CRC-32 header.
    #[serde(default)]
    pub checksum: Checksum,
    /// Whether the signature covers the body; only over plain HTTP when absent.
    #[serde(default)]
    pub sign_payload: Option<bool>,
    /// `[store.collector]`
    #[serde(default)]
    pub collector: CollectorSettings,
}

impl StoreSettings {
    /// Returns the settings of a store of which nothing but its URL is said.
    pub fn at(url: StoreUrl) -> Self {
        Self {
            url,
            endpoint: None,
            other_endpoints: Vec::new(),
            contenders: default_contenders(),
            region: None,
            path_style: None,
            checksum: Checksum::default(),
            sign_payload: None,
            collector: CollectorSettings::default(),
        }
    }
}

fn default_contenders() -> usize {
    bounds::ATTEST_CONTENDERS
}

/// `[gc]`: how long artifacts without a lease stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcSettings {
    /// Orphan TTL of a store that is used for the first time; later the store's own rules.
    #[serde(with = "humantime_serde")]
    pub orphan_ttl: Duration,
    /// Plans younger than this are not applied: an artifact is seen twice before it goes.
    #[serde(with = "humantime_serde")]
    pub min_plan_age: Duration,
    /// Time between the decision to delete and the first delete.
    #[serde(with = "humantime_serde")]
    pub settle: Duration,
    /// Whether times below their floors are allowed (tests, demos).
    pub allow_short_times: bool,
    /// Whether reads of old artifacts keep them alive.
    pub touch_on_read: bool,
}

impl Default for GcSettings {
    fn default() -> Self {
        Self {
            orphan_ttl: bounds::DEFAULT_ORPHAN_TTL,
            min_plan_age: bounds::GC_MIN_PLAN_AGE,
            settle: bounds::GC_SETTLE,
            allow_short_times: false,
            touch_on_read: true,
        }
    }
}

impl Settings {
    /// Returns the defaults over a store.
    fn over(store: StoreSettings) -> Self {
        Self {
            server: ServerSettings::default(),
            store,
            limits: LimitSettings::default(),
            gc: GcSettings::default(),
            access: AccessSettings::default(),
            tokens: Vec::new(),
            profiles: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    /// Returns the times of collections.
    pub fn collections(&self) -> PolicySettings {
        let GcSettings {
            min_plan_age,
            settle,
            allow_short_times,
            ..
        } = self.gc;
        PolicySettings {
            min_plan_age,
            settle,
            allow_short_times,
            is_one_host: matches!(self.store.url, StoreUrl::Local { .. } | StoreUrl::Memory),
        }
    }

    /// Returns the first key whose value breaks a bound, with the rule.
    fn broken_bound(&self) -> Option<(&'static str, String)> {
        let broken = |key, rule: &str| Some((key, rule.to_owned()));
        if let Some(broken) = self.limits.broken_bound() {
            return Some(broken);
        }
        let interval = bounds::MIN_READY_CHECK_INTERVAL..=bounds::MAX_READY_CHECK_INTERVAL;
        if !interval.contains(&self.server.ready_check_interval) {
            return broken("server.ready_check_interval", "from 1s to 10m");
        }
        if !(2..=64).contains(&self.store.contenders) {
            return broken("store.contenders", "from 2 to 64");
        }
        if self.gc.orphan_ttl > bounds::MAX_ORPHAN_TTL {
            return broken("gc.orphan_ttl", "at most 3650 days");
        }
        if self.gc.orphan_ttl < bounds::MIN_ORPHAN_TTL && !self.gc.allow_short_times {
            let rule = "at least 1h, unless gc.allow_short_times is true";
            return broken("gc.orphan_ttl", rule);
        }
        if let Some(rule) = self.store.collector.broken_rule() {
            return broken("store.collector", rule);
        }
        let endpoint = self.store.endpoint.as_deref();
        if endpoint.is_some_and(|endpoint| !is_endpoint_url(endpoint)) {
            return broken("store.endpoint", "an http:// or https:// URL with a host");
        }
        self.broken_owner().map(|rule| ("owners", rule))
    }
}

fn is_endpoint_url(text: &str) -> bool {
    let uri = text.parse::<axum::http::Uri>().ok();
    uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.query().is_none()
            && !text.contains('@')
    })
}

#[cfg(test)]
mod tests;
