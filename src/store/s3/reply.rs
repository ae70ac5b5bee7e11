//! What every reply tells beside its typed output: status, the store's date, the request id.
//!
//! The SDK's outputs drop these; an interceptor reads them off the raw reply before it is parsed, so
//! that errors have them too.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_s3::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_sdk_s3::primitives::DateTime;
use jiff::Timestamp;

/// The raw reply of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) date: Option<Timestamp>,
    pub(super) request_id: Option<String>,
    /// The reply is a web page: a proxy's, or an endpoint that is no S3.
    pub(super) is_html: bool,
}

/// Catches the reply of the one request that it is given to.
#[derive(Debug, Clone, Default)]
pub(super) struct Probe(Arc<Mutex<Option<Reply>>>);

impl Probe {
    /// Returns the reply, if one came.
    pub(super) fn reply(&self) -> Option<Reply> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the store's date of the reply, if one came.
    pub(super) fn date(&self) -> Option<Timestamp> {
        self.reply().and_then(|reply| reply.date)
    }

    /// Returns the status of the reply; 0 if none came.
    pub(super) fn status(&self) -> u16 {
        self.reply().map_or(0, |reply| reply.status)
    }
}

impl Intercept for Probe {
    fn name(&self) -> &'static str {
        "reply probe"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let raw = context.response();
        let header = |name: &str| raw.headers().get(name);
        let reply = Reply {
            status: raw.status().as_u16(),
            date: header("date").and_then(parse_date),
            request_id: header("x-amz-request-id").map(str::to_owned),
            is_html: header("content-type").is_some_and(|kind| kind.starts_with("text/html")),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
        Ok(())
    }
}

/// Reads an HTTP date.
fn parse_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()
}

/// Converts the SDK's time; `None` beyond what can be represented.
pub(super) fn timestamp(time: &DateTime) -> Option<Timestamp> {
    let nanos = i32::try_from(time.subsec_nanos()).ok()?;
    Timestamp::new(time.secs(), nanos).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_are_read_and_other_text_is_not() {
        let date = parse_date("Mon, 30 Nov 2026 19:38:17 GMT").unwrap();
        assert_eq!(date.to_string(), "2026-11-30T19:38:17Z");
        assert_eq!(parse_date("yesterday"), None);
        assert_eq!(parse_date(""), None);
    }
}
