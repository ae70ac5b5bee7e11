//! `[access]` and `[[tokens]]`: who may come in, and where it is written down.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};
use crate::audit_log::AuditTarget;
use crate::auth::{SigningKeys, TokenEntry, TokenTable};
use crate::limits::MAX_SIGNING_SECRET_BYTES;

/// The environment variable in which clients keep their bearer token, also where a printed command
/// looks for it.
pub const TOKEN_VARIABLE: &str = "SPILLBOX_TOKEN";

/// The setting of the secrets that sign.
const SIGNING_KEYS: &str = "access.signing_keys_from";

/// The setting that every refusal about tokens names.
const TOKENS: &str = "tokens";

/// `[access]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccessSettings {
    /// A TOML file with further `[[tokens]]`, for those who hand out secrets as files.
    pub tokens_from: Option<PathBuf>,
    /// Files that hold the secrets which sign session tokens and capabilities: the one in use first, then
    /// the one before it, for as long as what it signed lives. Nothing is minted without any.
    pub signing_keys_from: Vec<PathBuf>,
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
        let keys = self.signing_keys()?;
        let table = match keys {
            Some(keys) => table.signed_by(keys),
            None => table,
        };
        Ok((!table.is_empty()).then_some(table))
    }
}

impl Settings {
    /// Reads the secrets of `access.signing_keys_from`; `None` where it names no file.
    fn signing_keys(&self) -> Result<Option<SigningKeys>, SettingsError> {
        let files = &self.access.signing_keys_from;
        if files.is_empty() {
            return Ok(None);
        }
        let secrets = files.iter().map(|path| read_secret(path));
        let secrets: Vec<Vec<u8>> = secrets.collect::<Result<_, _>>()?;
        let keys = SigningKeys::new(&secrets);
        keys.map(Some)
            .map_err(|error| SettingsError::new("settings", SIGNING_KEYS, error.to_string()))
    }
}

/// Reads a secret, without the white space around it.
fn read_secret(path: &Path) -> Result<Vec<u8>, SettingsError> {
    let refuse = |rule: String| SettingsError::new(path.display().to_string(), SIGNING_KEYS, rule);
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut bytes = Vec::new();
    let mut file = file.take(MAX_SIGNING_SECRET_BYTES + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    if bytes.len() as u64 > MAX_SIGNING_SECRET_BYTES {
        let rule = format!("a secret has at most {MAX_SIGNING_SECRET_BYTES} bytes");
        return Err(refuse(rule));
    }
    Ok(bytes.trim_ascii().to_vec())
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
