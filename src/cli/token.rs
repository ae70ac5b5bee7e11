//! `spillbox token`: what an operator needs to let somebody in.

use std::io::{self, BufRead as _, IsTerminal, Read};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::auth::{TokenEntry, TokenTable, is_token_text};
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output;
use crate::digest::Sha256Digest;
use crate::ids::random_secret;
use crate::limits::{MAX_TOKEN_BYTES, MIN_TOKEN_BYTES};

pub mod mint;

/// Begins generated tokens, so that people and scanners for leaked secrets know one when they see it.
const PREFIX: &str = "sbx_";

/// Fewer different characters are a pattern, however long.
const MIN_DIFFERENT_BYTES: usize = 8;

/// Work on tokens.
#[derive(Debug, clap::Args)]
pub struct TokenArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// The commands about tokens.
#[derive(Debug, clap::Subcommand)]
pub enum TokenCommand {
    /// Print the settings' lines for a token, which is read from standard input or made
    Hash(HashArgs),
    /// Ask a service for a token that is limited to one session, for a sandbox
    Mint(mint::MintArgs),
}

/// `spillbox token hash`.
#[derive(Debug, clap::Args)]
pub struct HashArgs {
    /// Make a random token and print it once, to standard error
    #[arg(long)]
    pub generate: bool,
    /// The tenant that the token acts in
    #[arg(long, value_name = "TENANT", default_value = "default")]
    pub tenant: String,
    /// What it may do: a comma list of save, read, lease, gc, admin
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "save,read"
    )]
    pub scopes: Vec<String>,
    /// Its name in logs and in the audit stream
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Runs `token hash`. A token never is an argument: those stand in shell histories and process lists.
///
/// # Errors
/// The description is refused, or what is read is no good token.
pub fn hash(args: &HashArgs) -> Result<u8, Stop> {
    // What is wrong with the description is told before anybody types a token.
    check(args, &Sha256Digest::of(b""))?;
    let token = if args.generate {
        generated(random_secret())
    } else {
        let is_typed = io::stdin().is_terminal();
        if is_typed {
            output::say("type or paste the token and press Enter (--generate makes one):");
        }
        read_token(io::stdin().lock(), is_typed)?
    };
    let lines = check(args, &Sha256Digest::of(token.as_bytes()))?;
    output::write_bytes(lines.as_bytes())?;
    output::flush()?;
    if args.generate {
        output::say("the token, shown this once; the settings hold only its SHA-256:");
        output::say(&token);
    }
    Ok(EXIT_DONE)
}

fn generated(random: [u8; 32]) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random))
}

/// Checks what the arguments say of a token, as a service would, and writes it as settings.
fn check(args: &HashArgs, sha256: &Sha256Digest) -> Result<String, Failure> {
    let entry = TokenEntry {
        sha256: sha256.to_hex(),
        tenant: args.tenant.clone(),
        scopes: args.scopes.clone(),
        name: args.name.clone(),
    };
    TokenTable::new(std::slice::from_ref(&entry)).map_err(|error| {
        let flag = error.field.unwrap_or("token");
        Failure::usage(format!("--{flag}: {}", error.rule))
    })?;
    // The table allows no character that TOML would have to escape.
    let scopes: Vec<_> = entry.scopes.iter().map(|s| format!("\"{s}\"")).collect();
    let name = entry.name.map(|name| format!("name = \"{name}\"\n"));
    Ok(format!(
        "[[tokens]]\n{}sha256 = \"{}\"\ntenant = \"{}\"\nscopes = [{}]\n",
        name.unwrap_or_default(),
        entry.sha256,
        entry.tenant,
        scopes.join(", ")
    ))
}

/// Reads one line, or, where nobody types, everything, which then is one line.
fn read_token(input: impl io::BufRead, is_typed: bool) -> Result<String, Failure> {
    let cannot = |error: io::Error| Failure::new(format!("cannot read standard input: {error}"));
    let mut bytes = Vec::new();
    // With its line end, and one byte more to see that it is too long.
    let mut input = input.take(MAX_TOKEN_BYTES as u64 + 3);
    if is_typed {
        input.read_until(b'\n', &mut bytes).map_err(cannot)?;
    } else {
        input.read_to_end(&mut bytes).map_err(cannot)?;
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(rule) = broken_rule(line) {
        return Err(
            Failure::usage(format!("the token on standard input {rule}"))
                .with_hint("`spillbox token hash --generate` makes a good one"),
        );
    }
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Returns what is wrong with a token, without a character of it.
fn broken_rule(token: &[u8]) -> Option<String> {
    if token.is_empty() {
        return Some("is empty".to_owned());
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Some(format!("is longer than {MAX_TOKEN_BYTES} bytes"));
    }
    if !is_token_text(token) {
        return Some(
            "is not one word of letters, digits and -._~+/, perhaps with = at its end".to_owned(),
        );
    }
    if token.len() < MIN_TOKEN_BYTES {
        return Some(format!(
            "is shorter than {MIN_TOKEN_BYTES} bytes; it could be guessed"
        ));
    }
    let mut different = token.to_vec();
    different.sort_unstable();
    different.dedup();
    let is_pattern = different.len() < MIN_DIFFERENT_BYTES;
    is_pattern.then(|| "repeats a few characters; it could be guessed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(tenant: &str, scopes: &[&str], name: Option<&str>) -> HashArgs {
        HashArgs {
            generate: false,
            tenant: tenant.to_owned(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            name: name.map(str::to_owned),
        }
    }

    #[test]
    fn the_lines_are_settings_that_let_the_token_in() {
        let digest = Sha256Digest::of(b"sbx_abc");
        let lines = check(&args("acme", &["read", "gc"], Some("ci")), &digest).unwrap();
        #[derive(serde::Deserialize)]
        struct File {
            tokens: Vec<TokenEntry>,
        }
        let file: File = toml::from_str(&lines).unwrap();
        let table = TokenTable::new(&file.tokens).unwrap();
        let principal = table.find(&digest).unwrap();
        assert_eq!(principal.id.as_str(), "ci");
        assert_eq!(principal.tenant.as_str(), "acme");
    }

    #[test]
    fn a_wrong_description_names_its_flag() {
        let digest = Sha256Digest::of(b"");
        for (args, flag) in [
            (args("A", &["read"], None), "--tenant"),
            (args("a", &["write"], None), "--scopes"),
            (args("a", &[""], None), "--scopes"),
            (args("a", &["read"], Some("a b")), "--name"),
        ] {
            let failure = check(&args, &digest).unwrap_err();
            assert_eq!(failure.exit, 2);
            assert!(failure.message.starts_with(flag), "{failure}");
        }
    }

    #[test]
    fn a_generated_token_is_a_good_one_and_looks_like_ours() {
        let token = generated(std::array::from_fn(|place| place as u8));
        assert!(token.starts_with("sbx_") && token.len() == 47, "{token}");
        assert_eq!(broken_rule(token.as_bytes()), None);
    }

    #[test]
    fn a_bad_token_is_refused_without_showing_it() {
        let long = "abcdefgh".repeat(65);
        for (input, part) in [
            ("", "empty"),
            ("\n", "empty"),
            ("abcdefgh1234567\n", "shorter than 16"),
            ("aaaaaaaaaaaaaaaaaaaaaaaa", "repeats"),
            ("two words of a token", "one word"),
            ("abcdefgh12345678\nmore", "one word"),
            (long.as_str(), "longer than 512"),
        ] {
            let failure = read_token(input.as_bytes(), false).unwrap_err();
            assert!(failure.message.contains(part), "{input}: {failure}");
            assert!(!failure.to_string().contains("abcdefgh"), "{failure}");
        }
        let good = "abcdefgh12345678";
        for input in [format!("{good}\r\n"), format!("{good}\n"), good.to_owned()] {
            assert_eq!(read_token(input.as_bytes(), false).unwrap(), good);
            assert_eq!(read_token(input.as_bytes(), true).unwrap(), good);
        }
    }
}
