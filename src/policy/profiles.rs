//! The profiles that are built in, and the set of all that a service offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::profile::Profile;
use super::table::{InvalidProfileError, ProfileTable};

mod claude_code;
mod default;
mod dsh;
mod hermes;
mod tiny_claw;
mod workbuddy;

pub use claude_code::claude_code;
pub use default::default;
pub use dsh::dsh;
pub use hermes::hermes;
pub use tiny_claw::tiny_claw;
pub use workbuddy::{WORKBUDDY_SHELL, workbuddy};

/// The name of the profile that holds where none is asked for.
pub const DEFAULT_NAME: &str = "default";

/// Our own reading tools: their results are what was taken out before, so taking them out again would
/// leave an agent that can read nothing.
pub const OWN_READERS: [&str; 5] = [
    "artifact_read",
    "artifact_grep",
    "artifact_outline",
    "artifact_stat",
    "artifact_list",
];

/// Returns every built-in profile, in the order in which they are shown.
pub fn built_in() -> Vec<Profile> {
    vec![
        default(),
        workbuddy(),
        claude_code(),
        tiny_claw(),
        dsh(),
        hermes(),
    ]
}

/// The profiles that can be asked for, by name. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Profiles(Arc<BTreeMap<String, Arc<Profile>>>);

impl Default for Profiles {
    /// Returns the built-in ones.
    fn default() -> Self {
        Self::of(built_in())
    }
}

impl Profiles {
    fn of(profiles: impl IntoIterator<Item = Profile>) -> Self {
        let named = |profile: Profile| (profile.name.clone(), Arc::new(profile));
        Self(Arc::new(profiles.into_iter().map(named).collect()))
    }

    /// Adds an operator's own profiles, and applies the environment's switches to the system that has
    /// them.
    ///
    /// # Errors
    /// A profile or a switch cannot be; the error names the key.
    pub fn load(
        tables: &BTreeMap<String, ProfileTable>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, InvalidProfileError> {
        let mut all: BTreeMap<String, Profile> = BTreeMap::new();
        for profile in built_in() {
            let profile = profile.with_switches(variables)?;
            all.insert(profile.name.clone(), profile);
        }
        let bases = all.clone();
        for (name, table) in tables {
            let resolved = table.resolve(name, &bases).map_err(|mut error| {
                error.key = format!("profiles.{name}.{}", error.key);
                error
            })?;
            all.insert(name.clone(), resolved);
        }
        Ok(Self::of(all.into_values()))
    }

    /// Returns a profile.
    pub fn get(&self, name: &str) -> Option<Arc<Profile>> {
        self.0.get(name).map(Arc::clone)
    }

    /// Returns the profile that holds where none is asked for.
    pub fn default_profile(&self) -> Arc<Profile> {
        self.get(DEFAULT_NAME)
            .unwrap_or_else(|| Arc::new(default()))
    }

    /// Returns all of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.0.values()
    }

    /// Returns their names.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests;
