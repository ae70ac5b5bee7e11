//! `GET /a/{locator}/grep`: a page of hits, as JSON or as rows of text.

use std::fmt::Write as _;

use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::Response;

use crate::artifact::search::{
    Hit, InvalidSearchError, Needle, SearchMode, SearchPage, SearchQuery, TruncatedReason,
};
use crate::http::accept::prefers_text;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, Query};
use crate::http::reply::{artifact_json, artifact_text};
use crate::limits::{MAX_CONTEXT_LINES, MAX_REPLY_BYTES, MAX_SEARCH_HITS};

const PARAMETERS: &[&str] = &[
    "pattern",
    "mode",
    "ignore_case",
    "context",
    "limit",
    "max_bytes",
    "cursor",
];

const MATCHES: HeaderName = HeaderName::from_static("spillbox-matches");
const NEXT_CURSOR: HeaderName = HeaderName::from_static("spillbox-next-cursor");
const TRUNCATED: HeaderName = HeaderName::from_static("spillbox-truncated");

/// Serves a page of hits.
pub(crate) async fn grep(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut query = search_query(uri.query())?;
    query.deadline = caller.library.options().search_deadline;
    let page = caller
        .library
        .search(&caller.tenant, &artifact, &query)
        .await?;
    let mut reply = if prefers_text(&headers) {
        rows(&page)
    } else {
        artifact_json(&page)
    };
    let accept = HeaderValue::from_name(ACCEPT);
    reply.headers_mut().insert(VARY, accept);
    Ok(reply)
}

fn search_query(raw: Option<&str>) -> Result<SearchQuery, InvalidParameterError> {
    let query = Query::parse(raw, PARAMETERS)?;
    let Some(pattern) = query.text("pattern") else {
        return Err(InvalidParameterError::new("pattern", "required"));
    };
    let modes = [
        ("literal", SearchMode::Literal),
        ("regex", SearchMode::Regex),
    ];
    let small = |name: &str, least: u64, most: usize| -> Result<Option<usize>, _> {
        let number = query.number(name, least..=most as u64)?;
        Ok::<_, InvalidParameterError>(number.and_then(|number| usize::try_from(number).ok()))
    };
    let defaults = SearchQuery::literal(pattern);
    Ok(SearchQuery {
        needle: Needle {
            mode: query.one_of("mode", &modes)?.unwrap_or_default(),
            ignore_case: query.flag("ignore_case")?.unwrap_or(false),
            ..defaults.needle
        },
        context_lines: small("context", 0, MAX_CONTEXT_LINES)?.unwrap_or(0),
        limit: small("limit", 1, MAX_SEARCH_HITS)?.unwrap_or(defaults.limit),
        max_bytes: query
            .number("max_bytes", 1..=MAX_REPLY_BYTES)?
            .unwrap_or(defaults.max_bytes),
        cursor: query.text("cursor").map(str::to_owned),
        deadline: defaults.deadline,
    })
}

/// Returns the parameter that an error of the search is about.
pub(crate) fn parameter_of(error: &InvalidSearchError) -> &'static str {
    match error {
        InvalidSearchError::PatternLength
        | InvalidSearchError::PatternLineFeed
        | InvalidSearchError::Pattern(_) => "pattern",
        InvalidSearchError::Context => "context",
        InvalidSearchError::Limit => "limit",
        InvalidSearchError::MaxBytes => "max_bytes",
        InvalidSearchError::Cursor => "cursor",
    }
}

/// `{line}:{text}` for hits and `{line}-{text}` for context, `--` between groups, as grep prints them.
fn rows(page: &SearchPage) -> Response {
    let mut text = String::new();
    for (index, hit) in page.matches.iter().enumerate() {
        let has_context = !hit.context_before.is_empty() || !hit.context_after.is_empty();
        if index > 0 && has_context {
            text.push_str("--\n");
        }
        add_rows(&mut text, hit);
    }
    let mut reply = artifact_text(text);
    let headers = reply.headers_mut();
    headers.insert(MATCHES, page.matches.len().into());
    if let Some(reason) = page.reason {
        let reason = match reason {
            TruncatedReason::Limit => "limit",
            TruncatedReason::MaxBytes => "max_bytes",
            TruncatedReason::Deadline => "deadline",
        };
        headers.insert(TRUNCATED, HeaderValue::from_static(reason));
    }
    let cursor = page.next_cursor.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(cursor)) = cursor {
        headers.insert(NEXT_CURSOR, cursor);
    }
    reply
}

fn add_rows(text: &mut String, hit: &Hit) {
    let mut add = |number: u64, mark: char, line: &str| {
        writeln!(text, "{number}{mark}{line}").expect("writing to a string does not fail");
    };
    let before = hit.context_before.len() as u64;
    for (number, line) in (hit.line_number - before..).zip(&hit.context_before) {
        add(number, '-', line);
    }
    add(hit.line_number, ':', &hit.text);
    for (number, line) in (hit.line_number + 1..).zip(&hit.context_after) {
        add(number, '-', line);
    }
}
