//! The environment switches of the `workbuddy` system. They come as a map: nothing here reads the
//! process's environment.

use std::collections::BTreeMap;

use super::limit::{MAX_LIMIT, ToolLimit};
use super::profile::Profile;
use super::table::InvalidProfileError;
use crate::artifact::measure::Measure;

/// Characters that the shell's output may have.
pub const SHELL_VARIABLE: &str = "BASH_MAX_OUTPUT_LENGTH";

/// KiB that any other tool's output may have.
pub const OTHERS_VARIABLE: &str = "CODEBUDDY_TOOL_RESULT_THRESHOLD_KB";

/// Every variable that a profile may look at.
pub const VARIABLES: [&str; 2] = [SHELL_VARIABLE, OTHERS_VARIABLE];

impl Profile {
    /// Returns the profile as the variables change it; only `workbuddy` knows any. An empty value says
    /// nothing.
    ///
    /// # Errors
    /// A value is no whole number above zero, or too large; the error names the variable.
    pub fn with_switches(
        mut self,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, InvalidProfileError> {
        if self.base != "workbuddy" {
            return Ok(self);
        }
        if let Some(characters) = number(variables, SHELL_VARIABLE, MAX_LIMIT)? {
            let limit = ToolLimit::at_most(characters, Measure::Characters);
            let shell = super::profiles::WORKBUDDY_SHELL.to_owned();
            self.limits.tools.insert(shell, limit);
        }
        if let Some(kib) = number(variables, OTHERS_VARIABLE, MAX_LIMIT >> 10)? {
            self.limits.default = ToolLimit::at_most(kib << 10, Measure::Bytes);
        }
        Ok(self)
    }
}

fn number(
    variables: &BTreeMap<String, String>,
    name: &str,
    most: u64,
) -> Result<Option<u64>, InvalidProfileError> {
    let Some(text) = variables.get(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    let number = is_plain.then(|| text.parse().ok()).flatten();
    match number.filter(|number| (1..=most).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(InvalidProfileError::new(
            name,
            format!("a whole number from 1 to {most}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::limit::Limit;
    use crate::policy::profile::Given;
    use crate::policy::profiles::{hermes, workbuddy};

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn both_switches_change_their_limit_and_nothing_else() {
        let set = variables(&[(SHELL_VARIABLE, "100"), (OTHERS_VARIABLE, "2")]);
        let profile = workbuddy().with_switches(&set).unwrap();
        let limit = |tool| profile.limit_of(tool, &Given::default()).limit;
        assert_eq!(limit("bash"), Limit::AtMost(100));
        assert_eq!(limit("search"), Limit::AtMost(2_048));
        assert_eq!(hermes().with_switches(&set).unwrap(), hermes());
        let empty = variables(&[(SHELL_VARIABLE, "")]);
        assert_eq!(workbuddy().with_switches(&empty).unwrap(), workbuddy());
    }

    #[test]
    fn a_switch_that_is_no_number_is_named() {
        for bad in [
            "0",
            "-1",
            "1.5",
            "1e3",
            " 5",
            "2000001",
            "99999999999999999999",
        ] {
            let set = variables(&[(SHELL_VARIABLE, bad)]);
            let error = workbuddy().with_switches(&set).unwrap_err();
            assert_eq!(error.key, SHELL_VARIABLE, "{bad}");
        }
    }
}
