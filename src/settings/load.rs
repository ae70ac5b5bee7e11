//! Reads the settings from their sources and names the source of what is wrong.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use figment::error::Kind;
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::{Settings, known};
use crate::auth::TokenTable;
use crate::policy::profiles::Profiles;

const PREFIX: &str = "SPILLBOX_";
const FILE_SUFFIX: &str = "_FILE";

/// A setting that was refused: where it was given, which one, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {key}: {rule}")]
pub struct SettingsError {
    /// The file, environment variable or flag.
    pub origin: String,
    /// The setting, as `section.key`.
    pub key: String,
    /// What is wrong, or what is allowed.
    pub rule: String,
}

impl SettingsError {
    pub(super) fn new(
        origin: impl Into<String>,
        key: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        Self {
            origin: origin.into(),
            key: key.into(),
            rule: rule.into(),
        }
    }
}

/// The environment variables that settings are read from; a parameter, so that tests need no process.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Takes this process's environment.
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.0.get(name).filter(|value| !value.is_empty())
    }

    /// The store that is used when none is named: a directory under the user's data directory.
    fn default_store(&self) -> Option<String> {
        let data_home = self
            .get("XDG_DATA_HOME")
            .map(PathBuf::from)
            // The XDG specification says that a relative path here is to be ignored.
            .filter(|dir| dir.is_absolute())
            .or_else(|| Some(PathBuf::from(self.get("HOME")?).join(".local/share")))?;
        Some(format!("local:{}", data_home.join("spillbox").to_str()?))
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        Self(variables.into_iter().filter_map(named).collect())
    }
}

/// A setting that was given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// How the user wrote it, as `--listen`.
    pub name: &'static str,
    /// Which setting it is, as `server.listen`.
    pub key: &'static str,
    /// Its value.
    pub value: String,
}

/// One value from the environment or the command line.
struct Entry {
    origin: String,
    key: String,
    value: Value,
}

impl Entry {
    fn new(origin: String, key: String, text: String) -> Self {
        Self {
            origin,
            key,
            value: typed(text),
        }
    }
}

/// Text sources have no types: what reads as a number or a truth value is one.
fn typed(text: String) -> Value {
    match text.as_str() {
        "true" => Value::from(true),
        "false" => Value::from(false),
        digits => match digits.parse::<u64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(text),
        },
    }
}

impl Provider for Entry {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = figment::util::nest(&self.key, self.value.clone());
        let dict = nested.into_dict().unwrap_or_default();
        Ok(Profile::Default.collect(dict))
    }
}

/// Reads the settings; the later source wins: defaults, `file`, `environment`, `flags`.
///
/// # Errors
/// A source cannot be read, or a setting is unknown, of a wrong type or out of bounds; the error names
/// the source and the setting.
pub fn load(
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Settings, SettingsError> {
    let mut figment = Figment::new();
    if let Some(store) = environment.default_store() {
        let origin = "default store".to_owned();
        figment = figment.merge(Entry::new(origin, "store.url".to_owned(), store));
    }
    if let Some(path) = file {
        // Read here, so that a missing file is an error of its own and not a parse error.
        std::fs::read_to_string(path).map_err(|error| {
            SettingsError::new(path.display().to_string(), "file", error.to_string())
        })?;
        figment = figment.merge(Toml::file_exact(path));
    }
    for entry in environment_entries(environment)? {
        figment = figment.merge(entry);
    }
    for flag in flags {
        let origin = format!("flag `{}`", flag.name);
        figment = figment.merge(Entry::new(origin, flag.key.to_owned(), flag.value.clone()));
    }
    let settings: Settings = figment
        .extract()
        .map_err(|error| explain(&figment, error))?;
    // Those of `access.tokens_from` are read by who serves; commands must not need that file.
    if let Err(error) = TokenTable::new(&settings.tokens) {
        let origin = origin_of(&figment, "tokens");
        return Err(SettingsError::new(origin, error.key(), error.rule));
    }
    if let Err(error) = Profiles::load(&settings.profiles, &BTreeMap::new()) {
        let origin = origin_of(&figment, &error.key);
        return Err(SettingsError::new(origin, error.key, error.rule));
    }
    match settings.broken_bound() {
        None => Ok(settings),
        Some((key, rule)) => Err(SettingsError::new(origin_of(&figment, key), key, rule)),
    }
}

/// The variables with a section separator; the others (`SPILLBOX_URL`, …) are the CLI's own.
fn environment_entries(environment: &Environment) -> Result<Vec<Entry>, SettingsError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (name, value) in &environment.0 {
        let Some(path) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if !path.contains("__") {
            refuse_lost_separator(name, path)?;
            continue;
        }
        let (path, is_file) = match path.strip_suffix(FILE_SUFFIX) {
            Some(path) => (path, true),
            None => (path, false),
        };
        let key = path.to_ascii_lowercase().replace("__", ".");
        let origin = format!("environment variable `{name}`");
        if entries.iter().any(|entry| entry.key == key) {
            let rule = format!("given both as `{PREFIX}{path}` and with {FILE_SUFFIX}");
            return Err(SettingsError::new(origin, key, rule));
        }
        let text = if is_file {
            std::fs::read_to_string(value)
                .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
                .map_err(|error| error.to_string())
        } else {
            value
                .to_str()
                .map(str::to_owned)
                .ok_or("not UTF-8".to_owned())
        };
        let text = text.map_err(|rule| SettingsError::new(&origin, &key, rule))?;
        entries.push(Entry::new(origin, key, text));
    }
    Ok(entries)
}

/// `SPILLBOX_LIMITS_MAX_BODY_BYTES` would else be passed over in silence.
fn refuse_lost_separator(name: &str, path: &str) -> Result<(), SettingsError> {
    let flat = path.to_ascii_lowercase();
    let flat = flat.strip_suffix("_file").unwrap_or(&flat);
    let Some(key) = known::with_separator(flat) else {
        return Ok(());
    };
    let meant = key.to_ascii_uppercase().replace('.', "__");
    let origin = format!("environment variable `{name}`");
    let rule = format!("unknown variable; did you mean `{PREFIX}{meant}`?");
    Err(SettingsError::new(origin, key, rule))
}

fn origin_of(figment: &Figment, key: &str) -> String {
    figment
        .find_metadata(key)
        .map_or_else(|| "settings".to_owned(), describe)
}

/// A file is named by its path, everything else by the name that its entry has.
fn describe(metadata: &Metadata) -> String {
    let path = metadata
        .source
        .as_ref()
        .and_then(|source| source.file_path());
    path.map_or_else(
        || metadata.name.to_string(),
        |path| path.display().to_string(),
    )
}

fn explain(figment: &Figment, error: figment::Error) -> SettingsError {
    let mut path = error.path.clone();
    let rule = if let Kind::UnknownField(field, known) = &error.kind {
        if path.last() != Some(field) {
            path.push(field.clone());
        }
        match known::nearest(&path.join(".")) {
            Some(near) => format!("unknown setting; did you mean `{near}`?"),
            None => format!("unknown setting; known here: {}", known.join(", ")),
        }
    } else if let Kind::MissingField(field) = &error.kind
        && path.first().is_some_and(|section| section == "tokens")
    {
        format!("has no {field}")
    } else if let Kind::MissingField(_) = &error.kind {
        // The one setting without a fixed default.
        path = vec!["store".to_owned(), "url".to_owned()];
        "has no default here, since neither XDG_DATA_HOME nor HOME is set; name a store".to_owned()
    } else {
        error.kind.to_string()
    };
    let key = path.join(".");
    let origin = match figment.find_metadata(&key).or(error.metadata.as_ref()) {
        Some(metadata) => describe(metadata),
        None => "settings".to_owned(),
    };
    SettingsError::new(origin, with_indexes(&path), rule)
}

/// Writes a path as `tokens[2].sha256`.
fn with_indexes(path: &[String]) -> String {
    let mut key = String::new();
    for part in path {
        if part.bytes().all(|b| b.is_ascii_digit()) {
            key.push_str(&format!("[{part}]"));
        } else {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(part);
        }
    }
    key
}
