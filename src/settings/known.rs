//! The names of all settings, to say what a misspelled one was probably meant to be.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Settings, StoreSettings, StoreUrl};

/// Below this likeness (0 to 1) a suggestion would be a guess.
const LEAST_LIKENESS: f64 = 0.6;

/// Returns every setting as `section.key`, and the sections.
fn names() -> BTreeSet<String> {
    let settings = Settings::over(StoreSettings::at(StoreUrl::Memory));
    let mut names = BTreeSet::new();
    let Ok(Value::Object(sections)) = serde_json::to_value(&settings) else {
        return names;
    };
    for (section, value) in sections {
        for (key, value) in value.as_object().into_iter().flatten() {
            names.insert(format!("{section}.{key}"));
            for below in value.as_object().into_iter().flat_map(|keys| keys.keys()) {
                names.insert(format!("{section}.{key}.{below}"));
            }
        }
        names.insert(section);
    }
    names
}

/// Returns the setting that `unknown` (as `section.key`) was probably meant to be.
pub(super) fn nearest(unknown: &str) -> Option<String> {
    names()
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&name, unknown), name))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Returns the setting whose variable `flat` (lower case, single underscores) would be if it were written
/// with its separator: `limits_max_body_bytes` is `limits.max_body_bytes`.
pub(super) fn with_separator(flat: &str) -> Option<String> {
    names()
        .into_iter()
        .find(|name| name.contains('.') && name.replace('.', "_") == flat)
}
