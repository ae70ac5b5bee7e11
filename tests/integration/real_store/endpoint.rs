//! The endpoint that the environment names.

use std::env;
use std::sync::Arc;

use spillbox::clock::{Clock, SystemClock};
use spillbox::ids::{IdSource, SystemIds};
use spillbox::store::s3::{S3Settings, S3Store};
use spillbox::store::testing::Capabilities;
use spillbox::store::{SharedStore, Versioning};

/// Which of an endpoint's buckets a suite works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Versioned,
}

/// A bucket behind the endpoint, and what is known of it.
#[derive(Debug)]
pub(super) struct Ground {
    /// For the reports: the server's name and the mode.
    pub(super) name: String,
    pub(super) store: SharedStore,
    pub(super) capabilities: Capabilities,
    prefix: String,
    ids: SystemIds,
}

impl Ground {
    /// Opens the bucket of `mode`; says why and answers `None` where there is nothing to run on.
    pub(super) async fn open(mode: Mode) -> Option<Self> {
        let Some(url) = setting("SPILLBOX_TEST_ENDPOINT") else {
            println!("skipped: SPILLBOX_TEST_ENDPOINT is not set");
            return None;
        };
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
            bucket,
            endpoint: Some(url),
            ..S3Settings::default()
        };
        let store: SharedStore = Arc::new(S3Store::connect(&settings).await.unwrap());
        let name = setting("SPILLBOX_TEST_STORE").unwrap_or_else(|| "unnamed".to_owned());
        let mut prefix = setting("SPILLBOX_TEST_PREFIX").unwrap_or_default();
        if !prefix.is_empty() && !prefix.ends_with('/') {
            prefix.push('/');
        }
        let contenders = setting("SPILLBOX_TEST_CONTENDERS").map_or(32, |text| {
            text.parse().expect("SPILLBOX_TEST_CONTENDERS is a number")
        });
        let versioning = match mode {
            // A bucket of one's own may be of any kind.
            Mode::Plain => store.versioning().await.unwrap(),
            Mode::Versioned => Versioning::Enabled,
        };
        Some(Self {
            name: format!("{name} {mode:?}").to_lowercase(),
            store,
            capabilities: capabilities(contenders, versioning, &setting(lacks).unwrap_or_default()),
            prefix,
            ids: SystemIds::default(),
        })
    }

    /// A prefix that nobody else uses; ends in a slash.
    pub(super) fn fresh_prefix(&self) -> String {
        let unique = self.ids.uuid(SystemClock.now());
        format!("{}spillbox-suite/{}/", self.prefix, unique.simple())
    }
}

/// Whether attestation is expected to refuse the endpoint, so that no other suite means anything.
pub(super) fn expects_refusal() -> bool {
    match setting("SPILLBOX_TEST_EXPECT").as_deref() {
        None => false,
        Some("refused") => true,
        Some(other) => panic!("SPILLBOX_TEST_EXPECT is `refused` or absent, not `{other}`"),
    }
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
