//! `spillbox lines`: a page of an artifact, by lines, from its end, or from a byte on.

use axum::body::to_bytes;
use http::HeaderMap;
use http::header::{ACCEPT, HeaderValue};
use std::io::{self, IsTerminal};

use crate::artifact::escape::Shown;
use crate::cli::connection::{ConnectionArgs, artifact_of};
use crate::cli::download::get;
use crate::cli::failure::{EXIT_DONE, Failure, Stop};
use crate::cli::output::{self, Raw};
use crate::cli::profiles::{configured, named};
use crate::cli::transport::Transport;
use crate::http::api_path::ApiPath;
use crate::limits::{DEFAULT_PAGE_LINES, MAX_REPLY_BYTES};

/// JSON may write one byte as six characters.
const MAX_PAGE_BYTES: u64 = 8 * MAX_REPLY_BYTES;

/// Prints a page of lines.
#[derive(Debug, clap::Args)]
pub struct LinesArgs {
    /// The artifact
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// The first line, counted from 0
    #[arg(long, value_name = "N", conflicts_with_all = ["from_end", "byte_offset"])]
    pub offset: Option<u64>,
    /// Lines at most [default: 2000]
    #[arg(long, value_name = "N", conflicts_with = "from_end")]
    pub limit: Option<u64>,
    /// The last N lines
    #[arg(long, value_name = "N", conflicts_with = "byte_offset")]
    pub from_end: Option<u64>,
    /// Begins at this byte of the body, also inside a line
    #[arg(long, value_name = "N")]
    pub byte_offset: Option<u64>,
    /// Bytes at most, up to 1048576 [default: 24000]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// Bounds the page as this profile's own reader would: bytes, lines, characters of a line
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub profile: Option<String>,
    /// Where to look.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Prints the page and where to go on as JSON
    #[arg(long)]
    pub json: bool,
    /// Prints control characters to a terminal as they are
    #[arg(long)]
    pub raw: bool,
}

/// Runs the command.
///
/// # Errors
/// The artifact or the page cannot be read.
pub async fn run(args: &LinesArgs, transport: &Transport) -> Result<u8, Stop> {
    let artifact = artifact_of(&args.locator)?;
    let profile = match &args.profile {
        Some(name) => Some(named(&configured()?, name)?),
        None => None,
    };
    let bounds = profile.as_ref().and_then(|profile| profile.text_bounds);
    let most_lines = bounds.map(|bounds| bounds.max_lines as u64);
    let at_most = |wanted: Option<u64>| match most_lines {
        Some(most) => Some(wanted.unwrap_or(most).min(most)),
        None => wanted,
    };
    let from_end = args
        .from_end
        .map(|lines| most_lines.map_or(lines, |most| lines.min(most)));
    let limit = args.from_end.map_or_else(|| at_most(args.limit), |_| None);
    let reply_bytes = profile.as_ref().map(|profile| profile.max_reply_bytes);
    let path = ApiPath::artifact(&artifact, "/lines")
        .with("offset", args.offset)
        .with("limit", limit)
        .with("from_end", from_end)
        .with("byte_offset", args.byte_offset)
        .with("max_bytes", args.max_bytes.or(reply_bytes));
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
    let limit = usize::try_from(MAX_PAGE_BYTES).unwrap_or(usize::MAX);
    let page = to_bytes(response.into_body(), limit)
        .await
        .map_err(|error| Failure::new(format!("the transfer stopped: {error}")))?;
    if args.json {
        output::write_bytes(&page)?;
        if page.last() != Some(&b'\n') {
            output::write_bytes(b"\n")?;
        }
        return Ok(EXIT_DONE);
    }
    let page = match bounds.zip(std::str::from_utf8(&page).ok()) {
        // Only lines that are too long are left to be clipped.
        Some((bounds, text)) => bounds.apply(text).text().into_bytes().into(),
        None => page,
    };
    match Raw::for_stdout(args.raw) {
        Raw::Yes => output::write_bytes(&page)?,
        Raw::No => output::write_bytes(Shown::of(&page).text.as_bytes())?,
    }
    output::flush()?;
    say_where_to_go_on(args, &headers, &page);
    Ok(EXIT_DONE)
}

/// Says where the next page begins: to a person, and to anybody whose page was cut before the lines
/// that were asked for.
fn say_where_to_go_on(args: &LinesArgs, headers: &HeaderMap, page: &[u8]) {
    let number = |name: &str| -> Option<u64> { headers.get(name)?.to_str().ok()?.parse().ok() };
    let total = number("spillbox-total-lines");
    let go_on = if let Some(byte) = number("spillbox-next-byte") {
        format!("--byte-offset {byte}")
    } else if let Some(line) = number("spillbox-next-offset") {
        format!("--offset {line}")
    } else {
        if page.is_empty()
            && let Some(total) = total
        {
            output::say(&format!("note: no such line; the body has {total} lines"));
        }
        return;
    };
    let shown = memchr::memchr_iter(b'\n', page).count() as u64;
    let wanted = args.from_end.or(args.limit).unwrap_or(DEFAULT_PAGE_LINES);
    let is_cut = headers.contains_key("spillbox-next-byte") || shown < wanted;
    if !is_cut && !io::stderr().is_terminal() {
        return;
    }
    let of_total = total
        .map(|total| format!(" of {total}"))
        .unwrap_or_default();
    output::say(&format!(
        "note: {shown} lines{of_total}; to read on: {go_on}"
    ));
}
