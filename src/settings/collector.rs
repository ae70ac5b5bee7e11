//! `[store.collector]`: with whose credentials a service erases and collects.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which credentials those are. A secret never stands here: a profile names where it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectorSettings {
    /// A profile of the AWS configuration; the service's own credentials when absent.
    pub profile: Option<String>,
    /// The file in which the profile is looked up, in the form of `~/.aws/credentials`; the usual files
    /// when absent.
    pub credentials_path: Option<PathBuf>,
}

impl CollectorSettings {
    /// Returns what is wrong, if so.
    pub(super) fn broken_rule(&self) -> Option<&'static str> {
        let is_empty = self.profile.as_deref().is_some_and(str::is_empty);
        if is_empty {
            return Some("profile: the name of a profile, or leave it out");
        }
        let has_file = self.credentials_path.is_some();
        (has_file && self.profile.is_none())
            .then_some("credentials_path needs profile, which names an entry of it")
    }
}
