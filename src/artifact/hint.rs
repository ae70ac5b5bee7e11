//! The retrieval hint: the one command with which the reader of a replacement goes on.
//!
//! Built only from means that the caller declared, because a hint that names a tool the agent lacks is
//! worse than none. Without a usable one there is no hint and the bare locator stands alone.
//! A shell hint runs as printed: every argument is quoted, and it names a place, never a credential.

use std::fmt;
use std::str::FromStr;

/// How the caller's agent can fetch bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RetrievalMeans {
    /// Plain HTTP with `curl`.
    Http,
    /// The `spillbox` command in a shell.
    Cli,
    /// A tool of this name.
    Mcp(String),
    /// A download into a file with the `spillbox` command.
    File,
}

impl fmt::Display for RetrievalMeans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http => f.write_str("http"),
            Self::Cli => f.write_str("cli"),
            Self::Mcp(tool) => write!(f, "mcp:{tool}"),
            Self::File => f.write_str("file"),
        }
    }
}

/// The text is no list of retrieval means.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown retrieval means `{0}`: a comma list of http, cli, file, mcp:TOOL (TOOL: 1 to 128 of [A-Za-z0-9_.:/-])"
)]
pub struct InvalidMeansError(String);

impl FromStr for RetrievalMeans {
    type Err = InvalidMeansError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_.:/-".contains(&b);
        match text {
            "http" => Ok(Self::Http),
            "cli" => Ok(Self::Cli),
            "file" => Ok(Self::File),
            _ => match text.strip_prefix("mcp:") {
                Some(tool) if (1..=128).contains(&tool.len()) && tool.bytes().all(is_word) => {
                    Ok(Self::Mcp(tool.to_owned()))
                }
                _ => Err(InvalidMeansError(text.chars().take(160).collect())),
            },
        }
    }
}

/// Reads a comma list of means; empty means none. Duplicates are dropped, the order is kept: the first
/// usable one makes the hint.
///
/// # Errors
/// A member is not a known means.
pub fn parse_means(list: &str) -> Result<Vec<RetrievalMeans>, InvalidMeansError> {
    let mut means = Vec::new();
    if list.trim().is_empty() {
        return Ok(means);
    }
    for member in list.split(',') {
        let parsed = member.trim().parse()?;
        if !means.contains(&parsed) {
            means.push(parsed);
        }
    }
    Ok(means)
}

/// Where reading goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOn {
    /// At the line with this 0-based index.
    Line(u64),
    /// At this body offset, inside a line.
    Byte(u64),
    /// The whole body, into a file: it is no text.
    Whole,
}

/// What a hint is built from.
#[derive(Debug, Clone, Copy)]
pub struct HintTarget<'a> {
    /// The locator, whole.
    pub locator: &'a str,
    /// The environment variable in which the agent finds its bearer token, where the service wants
    /// one; the token itself never enters a hint.
    pub token_variable: Option<&'a str>,
    /// Arguments that the `spillbox` command needs to find the store (for example `--store`, `local:x`).
    pub cli_args: &'a [String],
}

/// Lines that a hint asks for.
const HINT_LINES: u64 = 200;

/// Quotes `argument` for a POSIX shell, and leaves plain words bare.
pub fn shell_quote(argument: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&b);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        return argument.to_owned();
    }
    force_quote(argument)
}

fn force_quote(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', "'\\''"))
}

/// Returns the command for the first of `means` that can reach the target, or `None`.
pub fn hint(means: &[RetrievalMeans], target: &HintTarget<'_>, read_on: ReadOn) -> Option<String> {
    means
        .iter()
        .find_map(|means| hint_for(means, target, read_on))
}

fn hint_for(means: &RetrievalMeans, target: &HintTarget<'_>, read_on: ReadOn) -> Option<String> {
    match means {
        RetrievalMeans::Http => http_hint(target, read_on),
        RetrievalMeans::Cli => Some(cli_hint(target, read_on)),
        RetrievalMeans::File => Some(cli_hint(target, ReadOn::Whole)),
        RetrievalMeans::Mcp(tool) => {
            let locator = target.locator;
            let place = match read_on {
                ReadOn::Line(offset) => format!(",\"offset\":{offset},\"limit\":{HINT_LINES}"),
                ReadOn::Byte(offset) => format!(",\"byte_offset\":{offset}"),
                ReadOn::Whole => String::new(),
            };
            // A locator is made of URL characters; none of them needs escaping in JSON.
            Some(format!(
                "call the tool {tool} with {{\"locator\":\"{locator}\"{place}}}"
            ))
        }
    }
}

fn http_hint(target: &HintTarget<'_>, read_on: ReadOn) -> Option<String> {
    let locator = target.locator;
    let is_url = ["http://", "https://"]
        .iter()
        .any(|scheme| locator.starts_with(scheme));
    if !is_url {
        return None;
    }
    // Double quotes, so that the shell puts the token in.
    let token = target
        .token_variable
        .map(|name| format!(" -H \"Authorization: Bearer ${name}\""))
        .unwrap_or_default();
    let command = match read_on {
        ReadOn::Line(offset) => format!(
            "curl -fsS -H 'Accept: text/plain'{token} {}",
            force_quote(&format!(
                "{locator}/lines?offset={offset}&limit={HINT_LINES}"
            ))
        ),
        ReadOn::Byte(offset) => format!(
            "curl -fsS -H 'Accept: text/plain'{token} {}",
            force_quote(&format!("{locator}/lines?byte_offset={offset}"))
        ),
        ReadOn::Whole => format!(
            "curl -fsS{token} -o {} {}",
            file_of(locator),
            force_quote(locator)
        ),
    };
    Some(command)
}

fn cli_hint(target: &HintTarget<'_>, read_on: ReadOn) -> String {
    let locator = shell_quote(target.locator);
    let mut command = match read_on {
        ReadOn::Line(offset) => {
            format!("spillbox lines {locator} --offset {offset} --limit {HINT_LINES}")
        }
        ReadOn::Byte(offset) => format!("spillbox lines {locator} --byte-offset {offset}"),
        ReadOn::Whole => format!("spillbox get {locator} -o {}", file_of(target.locator)),
    };
    for argument in target.cli_args {
        command.push(' ');
        command.push_str(&shell_quote(argument));
    }
    command
}

/// A file name that is free in practice: the artifact's id, as the locator ends in it.
fn file_of(locator: &str) -> String {
    let id = locator.rsplit(['.', ':', '/']).next().unwrap_or_default();
    let is_word = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric());
    format!("{}.out", if is_word { id } else { "artifact" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str =
        "http://127.0.0.1:8787/a/00000000000000000000000000.7zzzzzzzzzzzzzzzzzzzzzzzzz";

    fn target(locator: &str) -> HintTarget<'_> {
        HintTarget {
            locator,
            token_variable: None,
            cli_args: &[],
        }
    }

    #[test]
    fn means_are_a_comma_list_and_unknown_ones_are_refused() {
        assert_eq!(parse_means(""), Ok(vec![]));
        assert_eq!(
            parse_means("http, mcp:artifact_read,http,file,cli"),
            Ok(vec![
                RetrievalMeans::Http,
                RetrievalMeans::Mcp("artifact_read".to_owned()),
                RetrievalMeans::File,
                RetrievalMeans::Cli,
            ])
        );
        for bad in ["ftp", "http,", "mcp:", "mcp:a b", "mcp:x\ny", "HTTP", ","] {
            assert!(parse_means(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_means_no_hint_and_no_tool_name() {
        assert_eq!(hint(&[], &target(URL), ReadOn::Line(5)), None);
        let local = "spillbox:a.b";
        assert_eq!(
            hint(&[RetrievalMeans::Http], &target(local), ReadOn::Line(5)),
            None
        );
    }

    #[test]
    fn hints_name_the_first_omitted_place() {
        let lines = |means| hint(&[means], &target(URL), ReadOn::Line(80)).unwrap();
        assert_eq!(
            lines(RetrievalMeans::Http),
            format!("curl -fsS -H 'Accept: text/plain' '{URL}/lines?offset=80&limit=200'")
        );
        assert_eq!(
            lines(RetrievalMeans::Cli),
            format!("spillbox lines {URL} --offset 80 --limit 200")
        );
        assert_eq!(
            lines(RetrievalMeans::File),
            format!("spillbox get {URL} -o 7zzzzzzzzzzzzzzzzzzzzzzzzz.out")
        );
        assert_eq!(
            lines(RetrievalMeans::Mcp("artifact_read".to_owned())),
            format!(
                "call the tool artifact_read with {{\"locator\":\"{URL}\",\"offset\":80,\"limit\":200}}"
            )
        );
        let byte = hint(&[RetrievalMeans::Http], &target(URL), ReadOn::Byte(4_096)).unwrap();
        assert!(byte.ends_with("/lines?byte_offset=4096'"), "{byte}");
    }

    #[test]
    fn a_token_is_named_by_its_variable_and_arguments_are_quoted() {
        let args = ["--store".to_owned(), "local:/tmp/a b'c".to_owned()];
        let target = HintTarget {
            locator: URL,
            token_variable: Some("SPILLBOX_TOKEN"),
            cli_args: &args,
        };
        let http = hint(&[RetrievalMeans::Http], &target, ReadOn::Whole).unwrap();
        assert!(http.contains("-H \"Authorization: Bearer $SPILLBOX_TOKEN\""));
        let cli = hint(&[RetrievalMeans::Cli], &target, ReadOn::Line(0)).unwrap();
        assert!(cli.ends_with("--store 'local:/tmp/a b'\\''c'"), "{cli}");
    }
}
