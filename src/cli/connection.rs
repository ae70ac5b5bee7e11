//! Where a command looks: a service, a store of its own, or the service that a locator names.
//!
//! A flag wins over the environment, so that a printed command with its own `--store` runs as printed
//! whatever the shell has set.

use std::path::{Path, PathBuf};

use crate::artifact::locator::parse_locator;
use crate::cli::failure::Failure;
use crate::ids::ArtifactRef;
use crate::settings::TOKEN_VARIABLE;

/// Options that say where to look.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ConnectionArgs {
    /// The service to ask [env: SPILLBOX_URL]
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub url: Option<String>,
    /// A file with the service's token [env: SPILLBOX_TOKEN, SPILLBOX_TOKEN_FILE]
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub token_file: Option<PathBuf>,
    /// Without a service, the store to work on: local:DIR, s3://bucket/prefix or memory:
    /// [env: SPILLBOX_STORE] [default: local:$XDG_DATA_HOME/spillbox]
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
}

/// What the environment says for commands. Empty variables count as unset.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// `SPILLBOX_URL`
    pub url: Option<String>,
    /// `SPILLBOX_STORE`
    pub store: Option<String>,
    /// `SPILLBOX_TOKEN`
    pub token: Option<Token>,
    /// `SPILLBOX_TOKEN_FILE`
    pub token_file: Option<PathBuf>,
    /// `SPILLBOX_SESSION`
    pub session: Option<String>,
    /// Whether the settings name a store (`SPILLBOX_STORE__URL`).
    pub store_is_set: bool,
    /// `SPILLBOX_SPOOL`
    pub spool: Option<PathBuf>,
    /// `SPILLBOX_SPOOL_BYTES`
    pub spool_bytes: Option<u64>,
    /// Where programs keep what they must not forget: `XDG_STATE_HOME`, else `.local/state` of `HOME`.
    pub state_home: Option<PathBuf>,
}

/// A bearer token. Its text is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Takes the text of a token.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Variables {
    /// Reads this process's environment.
    ///
    /// # Errors
    /// One of the variables is not UTF-8.
    pub fn of_process() -> Result<Self, Failure> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Ok(Self {
            url: variable("SPILLBOX_URL")?,
            store: variable("SPILLBOX_STORE")?,
            token: variable(TOKEN_VARIABLE)?.map(Token),
            token_file: variable("SPILLBOX_TOKEN_FILE")?.map(PathBuf::from),
            session: variable("SPILLBOX_SESSION")?,
            store_is_set: is_set("SPILLBOX_STORE__URL") || is_set("SPILLBOX_STORE__URL_FILE"),
            spool: path("SPILLBOX_SPOOL"),
            spool_bytes: number("SPILLBOX_SPOOL_BYTES")?,
            state_home: path("XDG_STATE_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| Some(path("HOME")?.join(".local/state"))),
        })
    }
}

impl Variables {
    /// Returns the same with the token that a command is to use: that of `--token-file`, or the
    /// environment's, read from its file if it stands in one.
    ///
    /// # Errors
    /// There are two tokens, the file cannot be read or is empty, or no service is named that a token of
    /// the command line is for.
    pub fn with_token(&self, args: &ConnectionArgs) -> Result<Self, Failure> {
        let token = match (&args.token_file, &self.token_file) {
            (Some(path), _) => {
                if args.url.is_none() && self.url.is_none() {
                    return Err(Failure::usage(
                        "--token-file is given, but no service is named that the token is for",
                    )
                    .with_hint("name the service with --url or SPILLBOX_URL"));
                }
                Some(read_token("--token-file", path)?)
            }
            (None, Some(_)) if self.token.is_some() => {
                let both = "both SPILLBOX_TOKEN and SPILLBOX_TOKEN_FILE are given";
                return Err(Failure::usage(both).with_hint("drop one of them"));
            }
            (None, Some(path)) => Some(read_token("SPILLBOX_TOKEN_FILE", path)?),
            (None, None) => self.token.clone(),
        };
        Ok(Self {
            token,
            token_file: None,
            ..self.clone()
        })
    }
}

/// Reads a token's file; the line end that editors put there is not part of it.
fn read_token(origin: &str, path: &Path) -> Result<Token, Failure> {
    let refuse = |rule: String| Failure::usage(format!("{origin}: {}: {rule}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(refuse("holds no token".to_owned())),
        token => Ok(Token::new(token)),
    }
}

fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(Failure::usage(format!("{name} is not UTF-8")))
        }
    }
}

fn path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name)?;
    (!path.is_empty()).then(|| path.into())
}

fn number(name: &str) -> Result<Option<u64>, Failure> {
    let Some(text) = variable(name)? else {
        return Ok(None);
    };
    let refuse = |_| Failure::usage(format!("{name} is no number of bytes"));
    text.parse().map(Some).map_err(refuse)
}

/// Where a command looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A service, with the token that it is to be given.
    Service {
        /// Its URL.
        url: String,
        /// The bearer token.
        token: Option<Token>,
    },
    /// A store, opened by this process.
    Store {
        /// The store, where one was named; the settings' own otherwise.
        url: Option<String>,
        /// Whether it was named by a flag, so that a printed command must name it too.
        is_flag: bool,
    },
}

/// Decides where a command looks. `locator` is what it was asked for, if anything.
///
/// # Errors
/// What is configured contradicts itself, or would send nothing anywhere.
pub fn choose_place(
    args: &ConnectionArgs,
    variables: &Variables,
    locator: Option<&str>,
) -> Result<Place, Failure> {
    let service = |url: &String| Place::Service {
        url: url.clone(),
        token: variables.token.clone(),
    };
    let store = |url: Option<&String>, is_flag| Place::Store {
        url: url.cloned(),
        is_flag,
    };
    match (&args.url, &args.store) {
        (Some(_), Some(_)) => return Err(both_given("--url", "--store")),
        (Some(url), None) => return Ok(service(url)),
        (None, Some(url)) => return Ok(store(Some(url), true)),
        (None, None) => {}
    }
    match (&variables.url, &variables.store) {
        (Some(_), Some(_)) => return Err(both_given("SPILLBOX_URL", "SPILLBOX_STORE")),
        (Some(url), None) => return Ok(service(url)),
        (None, Some(url)) => return Ok(store(Some(url), false)),
        (None, None) => {}
    }
    match locator.and_then(origin_of) {
        Some(_) if variables.store_is_set => Ok(store(None, false)),
        // A locator may be forged: a credential goes only where the user said.
        Some(_) if variables.token.is_some() => Err(Failure::usage(
            "SPILLBOX_TOKEN is set, but no service is named that it is for",
        )
        .with_hint(
            "name the service with --url or SPILLBOX_URL; the locator's own host is not asked",
        )),
        Some(url) => Ok(Place::Service { url, token: None }),
        None => Ok(store(None, false)),
    }
}

fn both_given(one: &str, other: &str) -> Failure {
    Failure::usage(format!("both {one} and {other} are given"))
        .with_hint("a command asks either a service or a store; drop one of them")
}

/// The service that a locator names, where it names one.
fn origin_of(locator: &str) -> Option<String> {
    let locator = locator.trim();
    let is_url = locator.starts_with("http://") || locator.starts_with("https://");
    let (base, _) = locator.rsplit_once("/a/").filter(|_| is_url)?;
    Some(base.to_owned())
}

/// Reads the artifact off a locator; nothing else of it is used.
///
/// # Errors
/// The text is no locator.
pub fn artifact_of(locator: &str) -> Result<ArtifactRef, Failure> {
    parse_locator(locator).ok_or_else(|| {
        let shown = crate::artifact::escape::escape_field(locator);
        let shown: String = shown.chars().take(120).collect();
        Failure::new(format!("`{shown}` is not a locator")).with_hint(
            "a locator ends in {26 characters}.{26 characters}; `spillbox ls` prints them",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCATOR: &str =
        "http://foreign:1/t/a/00000000000000000000000001.00000000000000000000000002";

    fn args(url: Option<&str>, store: Option<&str>) -> ConnectionArgs {
        ConnectionArgs {
            url: url.map(str::to_owned),
            store: store.map(str::to_owned),
            token_file: None,
        }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_flag_wins_over_the_environment_and_a_pair_is_refused() {
        let both = Variables {
            url: some("http://env"),
            store: some("local:env"),
            ..Variables::default()
        };
        let flag = choose_place(&args(None, Some("local:flag")), &both, None).unwrap();
        let named = Place::Store {
            url: some("local:flag"),
            is_flag: true,
        };
        assert_eq!(flag, named);
        assert_eq!(
            choose_place(&args(None, None), &both, None)
                .unwrap_err()
                .exit,
            2
        );
        let pair = args(Some("http://x"), Some("memory:"));
        assert_eq!(
            choose_place(&pair, &Variables::default(), None)
                .unwrap_err()
                .exit,
            2
        );
    }

    #[test]
    fn a_credential_never_goes_to_the_host_of_a_locator() {
        let mut variables = Variables {
            url: some("http://mine"),
            token: Some(Token::new("t")),
            ..Variables::default()
        };
        let mine = Place::Service {
            url: "http://mine".to_owned(),
            token: Some(Token::new("t")),
        };
        assert_eq!(
            choose_place(&args(None, None), &variables, Some(LOCATOR)),
            Ok(mine)
        );
        variables.url = None;
        assert!(choose_place(&args(None, None), &variables, Some(LOCATOR)).is_err());
        variables.token = None;
        let foreign = Place::Service {
            url: "http://foreign:1/t".to_owned(),
            token: None,
        };
        assert_eq!(
            choose_place(&args(None, None), &variables, Some(LOCATOR)),
            Ok(foreign)
        );
        variables.store_is_set = true;
        let own = choose_place(&args(None, None), &variables, Some(LOCATOR)).unwrap();
        assert!(matches!(own, Place::Store { .. }));
    }

    #[test]
    fn a_token_comes_from_one_place_and_is_for_a_named_service() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        write(&path, "from-file\n");
        let mut args = args(Some("http://mine"), None);
        args.token_file = Some(path.clone());
        let variables = Variables {
            token: Some(Token::new("from-environment")),
            ..Variables::default()
        };
        let token = |args: &ConnectionArgs, variables: &Variables| {
            variables.with_token(args).map(|found| found.token)
        };
        assert_eq!(token(&args, &variables), Ok(Some(Token::new("from-file"))));
        args.url = None;
        assert_eq!(token(&args, &variables).unwrap_err().exit, 2);
        args.token_file = None;
        assert_eq!(token(&args, &variables), Ok(variables.token.clone()));

        let mut by_file = Variables {
            token_file: Some(path.clone()),
            ..Variables::default()
        };
        assert_eq!(token(&args, &by_file), Ok(Some(Token::new("from-file"))));
        by_file.token = variables.token.clone();
        assert_eq!(token(&args, &by_file).unwrap_err().exit, 2);
        by_file.token = None;
        write(&path, "\r\n");
        assert!(
            token(&args, &by_file)
                .unwrap_err()
                .message
                .contains("no token")
        );
        by_file.token_file = Some("/nonexistent/token".into());
        let failure = token(&args, &by_file).unwrap_err();
        assert!(failure.message.contains("SPILLBOX_TOKEN_FILE"), "{failure}");
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own file")]
    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn without_anything_the_default_store_is_used() {
        let none = Variables::default();
        let default = Place::Store {
            url: None,
            is_flag: false,
        };
        for locator in [None, Some("spillbox:a.b"), Some("a.b")] {
            assert_eq!(
                choose_place(&args(None, None), &none, locator),
                Ok(default.clone())
            );
        }
    }
}
