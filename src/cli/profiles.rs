//! `spillbox profiles`: what the profiles say, as a table and as settings.

use std::collections::BTreeMap;

use crate::artifact::escape::escape_field;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::cli::store::settings;
use crate::policy::limit::{Limit, ToolLimit};
use crate::policy::profile::Profile;
use crate::policy::profiles::Profiles;
use crate::policy::switches;
use crate::policy::table::ProfileTable;
use crate::settings::{Flag, StoreUrl};

/// Prints the tool result budgets that can be asked for.
#[derive(Debug, clap::Args)]
pub struct ProfilesArgs {
    /// Only this one, with every field
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Prints tables for the settings file
    #[arg(long, conflicts_with = "json")]
    pub toml: bool,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Returns the profiles of this process: the built-in ones, those that the settings make, and what the
/// environment switches.
///
/// # Errors
/// A setting or a switch is refused; exit status 2.
pub fn offered(tables: &BTreeMap<String, ProfileTable>) -> Result<Profiles, Failure> {
    let variables = switches::VARIABLES
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
        .collect();
    Profiles::load(tables, &variables).map_err(|error| Failure::usage(error.to_string()))
}

/// Returns the profiles that this process's own settings make, whatever store they name.
///
/// # Errors
/// A setting or a switch is refused; exit status 2.
pub fn configured() -> Result<Profiles, Failure> {
    // No store is looked at, so none need be named.
    let no_store = Flag {
        name: "profiles",
        key: "store.url",
        value: StoreUrl::Memory.to_string(),
    };
    offered(&settings(None, &[no_store])?.profiles)
}

/// Runs the command.
///
/// # Errors
/// There is no such profile, or a setting is refused.
pub fn run(args: &ProfilesArgs) -> Result<u8, Stop> {
    let profiles = configured()?;
    let chosen: Vec<_> = match &args.name {
        None => profiles.iter().cloned().collect(),
        Some(name) => vec![named(&profiles, name)?],
    };
    let tables: BTreeMap<&str, ProfileTable> = chosen
        .iter()
        .map(|profile| (profile.name.as_str(), ProfileTable::of(profile)))
        .collect();
    if args.json {
        let all = serde_json::to_value(&tables).map_err(cannot_word)?;
        output::write_json(&all)?;
        return Ok(EXIT_DONE);
    }
    if args.toml {
        output::write_bytes(toml_of(&tables)?.as_bytes())?;
        return Ok(EXIT_DONE);
    }
    let rows: Vec<_> = chosen.iter().map(|profile| row(profile)).collect();
    output::write_bytes(table(&rows).as_bytes())?;
    if args.name.is_some() {
        output::write_bytes(format!("\n{}", toml_of(&tables)?).as_bytes())?;
    }
    Ok(EXIT_DONE)
}

/// Returns a profile of this process.
///
/// # Errors
/// There is none of that name; exit status 2.
pub fn named(profiles: &Profiles, name: &str) -> Result<std::sync::Arc<Profile>, Failure> {
    profiles.get(name).ok_or_else(|| {
        let known = profiles.names().join(", ");
        Failure::usage(format!("no profile `{}`", escape_field(name)))
            .with_hint(format!("one of {known}"))
    })
}

fn cannot_word(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("a profile cannot be written down: {error}"))
}

fn toml_of(tables: &BTreeMap<&str, ProfileTable>) -> Result<String, Failure> {
    let document = BTreeMap::from([("profiles", tables)]);
    toml::to_string(&document).map_err(cannot_word)
}

const COLUMNS: [&str; 6] = [
    "PROFILE",
    "INLINE UP TO",
    "TOOLS",
    "TURN",
    "FORM",
    "SAVE FAILS",
];

fn limit(limit: &ToolLimit) -> String {
    match limit.limit {
        Limit::Never => "everything".to_owned(),
        Limit::AtMost(most) => format!("{most} {}", limit.measure.as_str()),
    }
}

fn row(profile: &Profile) -> [String; 6] {
    let limits = &profile.limits;
    let by_name = [
        &limits.pinned,
        &limits.operator,
        &limits.prefixes,
        &limits.tools,
    ];
    let tools: usize = by_name.iter().map(|map| map.len()).sum();
    let turn = ToolLimit {
        limit: profile.turn.budget,
        measure: profile.turn.measure,
    };
    [
        profile.name.clone(),
        limit(&limits.default),
        format!("{tools} of their own"),
        limit(&turn),
        profile.form.to_string(),
        profile.on_save_failure.to_string(),
    ]
}

fn table(rows: &[[String; 6]]) -> String {
    let header = COLUMNS.map(str::to_owned);
    let all: Vec<_> = std::iter::once(&header).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].len()).max();
    let widths: Vec<usize> = (0..COLUMNS.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in all {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::profiles::{built_in, hermes};

    #[test]
    fn what_is_printed_loads_again_as_equal_profiles() {
        let profiles = Profiles::default();
        let tables: BTreeMap<_, _> = profiles
            .iter()
            .map(|profile| (profile.name.as_str(), ProfileTable::of(profile)))
            .collect();
        let text = toml_of(&tables).unwrap();
        let read: BTreeMap<String, BTreeMap<String, ProfileTable>> = toml::from_str(&text).unwrap();
        let again = Profiles::load(&read["profiles"], &BTreeMap::new()).unwrap();
        for profile in built_in() {
            assert_eq!(*again.get(&profile.name).unwrap(), profile, "{text}");
        }
    }

    #[test]
    fn the_table_says_what_a_choice_depends_on() {
        let text = table(&[row(&hermes())]);
        assert_eq!(
            text,
            "PROFILE  INLINE UP TO       TOOLS           TURN               FORM           SAVE FAILS\n\
             hermes   100000 characters  7 of their own  200000 characters  tagged_paging  head_and_tail\n"
        );
    }
}
