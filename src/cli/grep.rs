//! `spillbox grep`: the lines of an artifact that match.

use axum::body::to_bytes;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};

use crate::artifact::escape::Shown;
use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::download::get;
use crate::cli::failure::{EXIT_DONE, EXIT_FAILURE, Failure, Stop};
use crate::cli::output::{self, Raw};
use crate::cli::profiles::{configured, named};
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::ids::ArtifactRef;
use crate::limits::{DEFAULT_SEARCH_HITS, MAX_REPLY_BYTES};
use crate::policy::text_bounds::TextBounds;

/// Nothing matches: as grep says it.
const EXIT_NO_MATCH: u8 = 1;
/// Whatever else went wrong, so that nobody takes it for the absence of a match.
const EXIT_TROUBLE: u8 = 2;

/// A reply is at most what was asked for and its frame.
const MAX_PAGE_BYTES: u64 = 2 * MAX_REPLY_BYTES;

/// Prints matching lines.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 something matches, 1 nothing does, 2 it could not be searched."
)]
pub struct GrepArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// What to look for, as it stands
    #[arg(value_name = "PATTERN", allow_hyphen_values = true)]
    pub pattern: String,
    /// Reads the pattern as a regular expression
    #[arg(short = 'E', long)]
    pub regex: bool,
    /// Upper and lower case are the same
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Lines to show before and after each match
    #[arg(short = 'C', long, value_name = "N")]
    pub context: Option<u64>,
    /// Matches at most [default: 100]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Bytes at most, up to 1048576 [default: 24000]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// Bounds the output as this profile's own reader would: bytes, lines, characters of a line
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub profile: Option<String>,
    /// Goes on where an earlier search stopped
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
    pub cursor: Option<String>,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints the reply as JSON
    #[arg(long)]
    pub json: bool,
    /// Prints control characters to a terminal as they are
    #[arg(long)]
    pub raw: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact cannot be searched.
pub async fn run(args: &GrepArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let profile = match &args.profile {
        Some(name) => Some(named(&configured()?, name)?),
        None => None,
    };
    let bounds = profile.as_ref().and_then(|profile| profile.text_bounds);
    let reply_bytes = profile.as_ref().map(|profile| profile.max_reply_bytes);
    let reply_bytes = reply_bytes.map(|bytes| bytes.min(MAX_REPLY_BYTES));
    let most_hits = bounds.map_or(u64::MAX, |bounds| bounds.max_lines as u64);
    let limit = args.limit.unwrap_or(DEFAULT_SEARCH_HITS as u64);
    let limit = limit.min(most_hits);
    let mut cursor = args.cursor.clone();
    let mut found = 0;
    loop {
        let asked = Asked {
            cursor: cursor.as_deref(),
            limit: limit - found,
            max_bytes: args.max_bytes.or(reply_bytes),
        };
        let page = Page::ask(args, transport, &artifact, &asked).await?;
        found += page.matches;
        page.print(args, bounds.as_ref())?;
        // A service that ran out of time has only not finished.
        let goes_on = page.reason.as_deref() == Some("deadline") && found < limit && !args.json;
        if !goes_on {
            page.say_where_to_go_on();
            let is_over = found > 0 || page.reason.is_some();
            return Ok(if is_over { EXIT_DONE } else { EXIT_NO_MATCH });
        }
        cursor = page.next_cursor;
    }
}

/// Gives a failure the exit status that grep has for it, so that nobody takes it for "nothing matches".
pub fn trouble(stop: Stop) -> Stop {
    match stop {
        Stop::Failed(failure) if failure.exit == EXIT_FAILURE => {
            Stop::from(failure.with_exit(EXIT_TROUBLE))
        }
        Stop::Failed(_) | Stop::OutputClosed => stop,
    }
}

/// What of the matches is wanted.
struct Asked<'a> {
    cursor: Option<&'a str>,
    limit: u64,
    max_bytes: Option<u64>,
}

/// One reply.
struct Page {
    bytes: Bytes,
    matches: u64,
    reason: Option<String>,
    next_cursor: Option<String>,
}

impl Page {
    async fn ask(
        args: &GrepArgs,
        transport: &Transport,
        artifact: &ArtifactRef,
        asked: &Asked<'_>,
    ) -> Result<Self, Failure> {
        let path = ApiPath::artifact(artifact, "/grep")
            .with("pattern", Some(&args.pattern))
            .with("mode", args.regex.then_some("regex"))
            .with("ignore_case", args.ignore_case.then_some("true"))
            .with("context", args.context)
            .with("limit", Some(asked.limit))
            .with("max_bytes", asked.max_bytes)
            .with("cursor", asked.cursor);
        let mut request = get(&path)?;
        let accept = if args.json {
            "application/json"
        } else {
            "text/plain"
        };
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static(accept));
        let response = transport.ask(request).await?;
        let headers = response.headers().clone();
        let most = usize::try_from(MAX_PAGE_BYTES).unwrap_or(usize::MAX);
        let bytes = to_bytes(response.into_body(), most)
            .await
            .map_err(|error| Failure::new(format!("the transfer stopped: {error}")))?;
        if args.json {
            return Self::of_json(bytes);
        }
        Ok(Self {
            bytes,
            matches: text_of(&headers, "spillbox-matches")
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            reason: text_of(&headers, "spillbox-truncated"),
            next_cursor: text_of(&headers, "spillbox-next-cursor"),
        })
    }

    fn of_json(bytes: Bytes) -> Result<Self, Failure> {
        let page: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|error| Failure::new(format!("the reply is not JSON: {error}")))?;
        let matches = page["matches"].as_array().map_or(0, Vec::len);
        Ok(Self {
            bytes,
            matches: matches as u64,
            reason: page["reason"].as_str().map(str::to_owned),
            next_cursor: None,
        })
    }

    fn print(&self, args: &GrepArgs, bounds: Option<&TextBounds>) -> Result<(), Stop> {
        let bounded = bounds.zip(std::str::from_utf8(&self.bytes).ok());
        let bounded = bounded.map(|(bounds, text)| bounds.apply(text).text());
        let bytes = bounded.as_deref().map_or(&self.bytes[..], str::as_bytes);
        if args.json {
            output::write_bytes(&self.bytes)?;
            output::write_bytes(b"\n")?;
        } else {
            match Raw::for_stdout(args.raw) {
                Raw::Yes => output::write_bytes(bytes)?,
                Raw::No => output::write_bytes(Shown::of(bytes).text.as_bytes())?,
            }
        }
        output::flush()
    }

    fn say_where_to_go_on(&self) {
        if let Some(cursor) = &self.next_cursor {
            let matches = self.matches;
            output::say(&format!(
                "note: {matches} matches, and there may be more; to go on: --cursor {cursor}"
            ));
        }
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
