//! `[access]` and `[[tokens]]`: who may come in, and where it is written down.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};
use crate::audit_log::AuditTarget;
use crate::auth::{TokenEntry, TokenTable};

/// The environment variable in which clients keep their bearer token, also where a printed command
/// looks for it.
pub const TOKEN_VARIABLE: &str = "SPILLBOX_TOKEN";

/// The setting that every refusal about tokens names.
const TOKENS: &str = "tokens";

/// `[access]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessSettings {
    /// A TOML file with further `[[tokens]]`, for those who hand out secrets as files.
    pub tokens_from: Option<PathBuf>,
    /// Where the audit stream goes: a file, or `stdout`; nowhere when absent.
    pub audit_log: Option<AuditTarget>,
}

/// What stands in the file of `access.tokens_from`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default)]
    tokens: Vec<TokenEntry>,
}

impl Settings {
    /// Returns whether callers of the service need a token.
    pub fn needs_tokens(&self) -> bool {
        !self.tokens.is_empty() || self.access.tokens_from.is_some()
    }

    /// Builds the table of all tokens: those of the settings, then those of `access.tokens_from`, which is
    /// read here. `None` when neither names one.
    ///
    /// # Errors
    /// An entry is refused, or the file cannot be read, or holds no token: a file that was mounted empty
    /// must not open the service to everybody.
    pub fn token_table(&self) -> Result<Option<TokenTable>, SettingsError> {
        let mut entries = self.tokens.clone();
        let file = self.access.tokens_from.as_deref();
        if let Some(path) = file {
            entries.extend(read(path)?);
        }
        let table = TokenTable::new(&entries).map_err(|mut error| {
            let origin = match file {
                Some(path) if error.index >= self.tokens.len() => {
                    error.index -= self.tokens.len();
                    path.display().to_string()
                }
                Some(_) | None => "settings".to_owned(),
            };
            SettingsError::new(origin, error.key(), error.rule)
        })?;
        Ok((!table.is_empty()).then_some(table))
    }
}

fn read(path: &Path) -> Result<Vec<TokenEntry>, SettingsError> {
    let refuse = |rule: String| SettingsError::new(path.display().to_string(), TOKENS, rule);
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    // The parser's message shows the line, which may hold a token that was put in the wrong place.
    let file: TokensFile =
        toml::from_str(&text).map_err(|error| refuse(error.message().to_owned()))?;
    if file.tokens.is_empty() {
        return Err(refuse("holds no [[tokens]]".to_owned()));
    }
    Ok(file.tokens)
}
