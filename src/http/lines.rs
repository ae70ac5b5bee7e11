//! `GET /a/{locator}/lines`: a page of lines, as JSON or bare.

use axum::body::Body;
use axum::http::header::{ACCEPT, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::Response;
use serde::Serialize;

use crate::artifact::line_page::{InvalidPageError, LinePage, PageForm, PageRequest, PageStart};
use crate::http::accept::prefers_text;
use crate::http::artifact_path::ArtifactPath;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::query::{InvalidParameterError, Query};
use crate::http::reply::{artifact_json, artifact_text};
use crate::limits::{DEFAULT_PAGE_LINES, DEFAULT_REPLY_BYTES, MAX_PAGE_LINES, MAX_REPLY_BYTES};

const PARAMETERS: &[&str] = &["offset", "limit", "from_end", "byte_offset", "max_bytes"];

const NEXT_OFFSET: HeaderName = HeaderName::from_static("spillbox-next-offset");
const NEXT_BYTE: HeaderName = HeaderName::from_static("spillbox-next-byte");
const TOTAL_LINES: HeaderName = HeaderName::from_static("spillbox-total-lines");
const PAST_END: HeaderName = HeaderName::from_static("spillbox-past-end");

#[derive(Serialize)]
struct JsonPage {
    #[serde(flatten)]
    page: LinePage,
    /// Whether U+FFFD stands for bytes that are not UTF-8: what is lossy says so.
    lossy: bool,
}

/// Serves a page of lines.
pub(crate) async fn lines(
    caller: Caller,
    ArtifactPath(artifact): ArtifactPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_text = prefers_text(&headers);
    let form = if is_text {
        PageForm::Text
    } else {
        PageForm::Json
    };
    let request = page_request(uri.query(), form)?;
    let page = caller
        .library
        .lines(&caller.tenant, &artifact, &request)
        .await?;
    let mut reply = if is_text {
        bare(page)
    } else {
        let lossy = std::str::from_utf8(&page.bytes).is_err();
        artifact_json(&JsonPage { page, lossy })
    };
    let accept = HeaderValue::from_name(ACCEPT);
    reply.headers_mut().insert(VARY, accept);
    Ok(reply)
}

fn page_request(raw: Option<&str>, form: PageForm) -> Result<PageRequest, InvalidParameterError> {
    let query = Query::parse(raw, PARAMETERS)?;
    let offset = query.number("offset", 0..=u64::MAX)?;
    let from_end = query.number("from_end", 1..=MAX_PAGE_LINES)?;
    let byte_offset = query.number("byte_offset", 0..=u64::MAX)?;
    let limit = query.number("limit", 1..=MAX_PAGE_LINES)?;
    let max_bytes = query.number("max_bytes", 1..=MAX_REPLY_BYTES)?;
    let start = match (offset, from_end, byte_offset) {
        (offset, None, None) => PageStart::Line(offset.unwrap_or(0)),
        (None, Some(lines), None) => PageStart::FromEnd(lines),
        (None, None, Some(byte)) => PageStart::Byte(byte),
        (_, Some(_), _) => return Err(one_start("from_end")),
        (_, None, Some(_)) => return Err(one_start("byte_offset")),
    };
    // Who asks for the last 5,000 lines means all of them.
    let limit = limit.or(from_end).unwrap_or(DEFAULT_PAGE_LINES);
    let max_bytes = max_bytes.unwrap_or(DEFAULT_REPLY_BYTES);
    PageRequest::new(start, limit, max_bytes, form).map_err(|rule| {
        let name = match rule {
            InvalidPageError::Limit => "limit",
            InvalidPageError::MaxBytes => "max_bytes",
        };
        InvalidParameterError::new(name, rule.to_string())
    })
}

fn one_start(name: &str) -> InvalidParameterError {
    InvalidParameterError::new(name, "give one of offset, from_end and byte_offset")
}

/// The bytes of the page alone; where it stands and how to go on is in headers.
fn bare(page: LinePage) -> Response {
    let fields = [
        (TOTAL_LINES, Some(page.total_lines)),
        (NEXT_OFFSET, page.next_offset),
        (NEXT_BYTE, page.next_byte),
    ];
    let is_past_end = page.past_end;
    let mut reply = artifact_text(Body::from(page.bytes));
    let headers = reply.headers_mut();
    for (name, value) in fields {
        if let Some(value) = value {
            headers.insert(name, value.into());
        }
    }
    if is_past_end {
        headers.insert(PAST_END, HeaderValue::from_static("true"));
    }
    reply
}
