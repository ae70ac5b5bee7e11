//! Which scenarios a test run explores.

use crate::scenario::Scenario;

/// The variable that names them.
pub const VARIABLE: &str = "SPILLBOX_MODEL_SCENARIOS";

/// A choice of scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The small ones.
    Small,
    /// Every one.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

impl Selection {
    /// Reads the variable's text: `all`, or names with commas between them.
    pub fn parse(text: Option<&str>) -> Self {
        match text.map(str::trim) {
            None | Some("") => Self::Small,
            Some("all") => Self::All,
            Some(names) => Self::Named(names.split(',').map(|name| name.trim().into()).collect()),
        }
    }

    /// Reads the variable.
    pub fn from_env() -> Self {
        Self::parse(std::env::var(VARIABLE).ok().as_deref())
    }

    /// Returns whether it takes this scenario.
    pub fn takes<M>(&self, scenario: &Scenario<M>) -> bool {
        match self {
            Self::Small => scenario.is_small,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == scenario.name),
        }
    }
}
