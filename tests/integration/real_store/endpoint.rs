//! The endpoint that the environment names.

use std::env;
use std::sync::Arc;

use spillbox::clock::{Clock, SystemClock};
use spillbox::ids::{IdSource, SystemIds};
use spillbox::store::attest::CheckName;
use spillbox::store::s3::{S3Settings, S3Store};
use spillbox::store::testing::Capabilities;
use spillbox::store::{SharedStore, Versioning};

use super::attestation::{attest_once, passed};

/// In place of a list of what a store lacks.
const UNKNOWN: &str = "unknown";

/// What the product can do without, and attestation does not look for.
const NEEDLESS: &str = "nested_keys,refuses_replaced_parts,exact_prefixes,byte_order";

/// Which of an endpoint's buckets a suite works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Versioned,
}

/// What attestation is to say of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expectation {
    Trusted,
    Refused,
}

/// A bucket behind the endpoint, and what is known of it.
#[derive(Debug)]
pub(super) struct Ground {
    /// The server's name.
    pub(super) server: String,
    /// For the reports: the server's name and the mode.
    pub(super) name: String,
    pub(super) url: String,
    pub(super) bucket: String,
    pub(super) store: SharedStore,
    pub(super) capabilities: Capabilities,
    /// Codes of which a refusal must have one.
    pub(super) reasons: Vec<String>,
    pub(super) ids: SystemIds,
    /// Nothing is known of what the store lacks.
    pub(super) is_unknown: bool,
    prefix: String,
}

impl Ground {
    /// Opens the bucket of `mode`; says why and answers `None` where the suite does not apply.
    pub(super) async fn open_for(mode: Mode, wanted: Expectation) -> Option<Self> {
        let Some(url) = setting("SPILLBOX_TEST_ENDPOINT") else {
            println!("skipped: SPILLBOX_TEST_ENDPOINT is not set");
            return None;
        };
        let (expectation, reasons) = expectation();
        if expectation != wanted {
            println!("skipped: attestation is expected to find this endpoint {expectation:?}");
            return None;
        }
        let (bucket, lacks) = match mode {
            Mode::Plain => ("SPILLBOX_TEST_BUCKET", "SPILLBOX_TEST_LACKS"),
            Mode::Versioned => (
                "SPILLBOX_TEST_VERSIONED_BUCKET",
                "SPILLBOX_TEST_VERSIONED_LACKS",
            ),
        };
        let Some(bucket) = setting(bucket) else {
            println!("skipped: {bucket} is not set");
            return None;
        };
        let settings = S3Settings {
            bucket: bucket.clone(),
            endpoint: Some(url.clone()),
            ..S3Settings::default()
        };
        let store: SharedStore = Arc::new(S3Store::connect(&settings).await.unwrap());
        let server = setting("SPILLBOX_TEST_STORE").unwrap_or_else(|| "unnamed".to_owned());
        let mut prefix = setting("SPILLBOX_TEST_PREFIX").unwrap_or_default();
        if !prefix.is_empty() && !prefix.ends_with('/') {
            prefix.push('/');
        }
        let contenders = setting("SPILLBOX_TEST_CONTENDERS").map_or(32, |text| {
            text.parse().expect("SPILLBOX_TEST_CONTENDERS is a number")
        });
        let versioning = match (mode, wanted) {
            // A bucket of one's own may be of any kind.
            (Mode::Plain, Expectation::Trusted) => store.versioning().await.unwrap(),
            (Mode::Plain, Expectation::Refused) => Versioning::NeverEnabled,
            (Mode::Versioned, _) => Versioning::Enabled,
        };
        let kind = match versioning {
            Versioning::NeverEnabled => "plain",
            Versioning::Enabled => "versioned",
            Versioning::Suspended => "suspended",
        };
        let lacks = setting(lacks).unwrap_or_default();
        let is_unknown = lacks == UNKNOWN;
        let lacks = if is_unknown { NEEDLESS } else { &lacks };
        let ground = Self {
            name: format!("{server} {kind}"),
            capabilities: capabilities(contenders, versioning, lacks),
            ids: SystemIds::default(),
            is_unknown,
            server,
            url,
            bucket,
            store,
            reasons,
            prefix,
        };
        Some(ground)
    }

    /// Opens the bucket of `mode` for a suite that needs a sound store; what is not known of the store
    /// is taken from its attestation.
    pub(super) async fn open(mode: Mode) -> Option<Self> {
        let mut ground = Self::open_for(mode, Expectation::Trusted).await?;
        if ground.is_unknown {
            let attestation = attest_once(&ground, &ground.fresh_prefix()).await;
            if !attestation.is_writable() {
                println!("skipped: attestation does not let this store be written to");
                return None;
            }
            let passed = |name| passed(&attestation, name);
            ground.capabilities.delete_if_match = passed(CheckName::DeleteIfMatch);
            ground.capabilities.delete_if_match_in_races = passed(CheckName::DeleteRace);
        }
        Some(ground)
    }

    /// A prefix that nobody else uses; ends in a slash.
    pub(super) fn fresh_prefix(&self) -> String {
        let unique = self.ids.uuid(SystemClock.now());
        format!("{}spillbox-suite/{}/", self.prefix, unique.simple())
    }
}

/// What `SPILLBOX_TEST_EXPECT` says: nothing, or `refused:` and the codes of the findings.
fn expectation() -> (Expectation, Vec<String>) {
    let Some(text) = setting("SPILLBOX_TEST_EXPECT") else {
        return (Expectation::Trusted, Vec::new());
    };
    let reasons = text.strip_prefix("refused:");
    let reasons = reasons.expect("SPILLBOX_TEST_EXPECT is `refused:CODE,…` or absent");
    let reasons = reasons.split(',').map(str::to_owned).collect();
    (Expectation::Refused, reasons)
}

pub(super) fn setting(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Everything but what the server is known to lack.
fn capabilities(contenders: usize, versioning: Versioning, lacks: &str) -> Capabilities {
    let mut capabilities = Capabilities {
        contenders,
        versioning,
        // The S3 backend sends what it is told to: not to fence by version there is its caller's duty.
        refuses_unversioned_fence: false,
        ..Capabilities::full()
    };
    for lack in lacks.split([',', ' ']).filter(|lack| !lack.is_empty()) {
        let field = match lack {
            "delete_if_match" => &mut capabilities.delete_if_match,
            "delete_if_match_in_races" => &mut capabilities.delete_if_match_in_races,
            "nested_keys" => &mut capabilities.nested_keys,
            "refuses_replaced_parts" => &mut capabilities.refuses_replaced_parts,
            "exact_prefixes" => &mut capabilities.exact_prefixes,
            "byte_order" => &mut capabilities.byte_order,
            other => panic!("no capability `{other}`"),
        };
        *field = false;
    }
    capabilities
}
