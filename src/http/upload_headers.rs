//! The headers of a save: what they say of the body, and which are refused.

use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};

use crate::digest::{Sha256Digest, parse_digest_field};
use crate::error::ErrorCode;
use crate::http::problem::Problem;
use crate::limits::MAX_MEDIA_TYPE_BYTES;

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

/// The type of bytes of which nothing is known.
const OCTET_STREAM: &str = "application/octet-stream";

/// What `curl --data-binary` says of every body; nobody means it.
const CURL_DEFAULT: &str = "application/x-www-form-urlencoded";

fn refuse(name: &HeaderName, rule: &str) -> Problem {
    Problem::new(ErrorCode::InvalidHeader, format!("header `{name}`: {rule}"))
}

/// Returns the field's text, several fields joined by commas; `None` when it is absent or empty.
fn text(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Problem> {
    let mut joined = String::new();
    for value in headers.get_all(name) {
        let value = value
            .to_str()
            .map_err(|_| refuse(name, "visible ASCII only"))?;
        if !joined.is_empty() {
            joined.push_str(", ");
        }
        joined.push_str(value.trim());
    }
    Ok(Some(joined).filter(|joined| !joined.is_empty()))
}

/// Returns the media type as it is kept and served.
pub(crate) fn media_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(stated) = text(headers, &CONTENT_TYPE)? else {
        return Ok(OCTET_STREAM.to_owned());
    };
    if stated.len() > MAX_MEDIA_TYPE_BYTES {
        let rule = format!("at most {MAX_MEDIA_TYPE_BYTES} bytes");
        return Err(refuse(&CONTENT_TYPE, &rule));
    }
    let is_one = headers.get_all(CONTENT_TYPE).iter().count() == 1;
    let essence = stated.split(';').next().unwrap_or_default().trim();
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_token_byte);
    match essence.split_once('/') {
        Some((kind, subtype)) if is_one && is_name(kind) && is_name(subtype) => {}
        _ => return Err(refuse(&CONTENT_TYPE, "one media type, as in text/plain")),
    }
    if essence.eq_ignore_ascii_case(CURL_DEFAULT) {
        return Ok(OCTET_STREAM.to_owned());
    }
    Ok(stated)
}

/// RFC 9110 `tchar`.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the size that the caller states, before a byte of the body was read.
pub(crate) fn stated_length(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(stated) = text(headers, &CONTENT_LENGTH)? else {
        return Ok(None);
    };
    let is_number = stated.bytes().all(|b| b.is_ascii_digit());
    match stated.parse() {
        Ok(length) if is_number => Ok(Some(length)),
        _ => Err(refuse(&CONTENT_LENGTH, "one whole number")),
    }
}

/// Returns the digest that the body must have.
pub(crate) fn stated_digest(headers: &HeaderMap) -> Result<Option<Sha256Digest>, Problem> {
    let mut found: Option<Sha256Digest> = None;
    for name in [REPR_DIGEST, CONTENT_DIGEST] {
        if !headers.contains_key(&name) {
            continue;
        }
        let field = text(headers, &name)?.unwrap_or_default();
        let digest = parse_digest_field(&field)
            .map_err(|_| refuse(&name, "must be sha-256=:<base64 of 32 bytes>:"))?;
        // The body travels unencoded and whole, so both fields speak of the same bytes.
        if let (Some(earlier), Some(digest)) = (found, digest)
            && earlier != digest
        {
            return Err(refuse(&name, "differs from the other digest field"));
        }
        found = found.or(digest);
    }
    Ok(found)
}

/// Refuses a body that is not the artifact's bytes themselves, all of them.
pub(crate) fn refuse_encoded_or_partial(headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(coding) = text(headers, &CONTENT_ENCODING)?
        && !coding.eq_ignore_ascii_case("identity")
    {
        let rule = "bytes are stored as they come; send them without a content coding";
        return Err(refuse(&CONTENT_ENCODING, rule));
    }
    if headers.contains_key(CONTENT_RANGE) {
        let rule = "a save takes the whole body; partial uploads are not supported";
        return Err(refuse(&CONTENT_RANGE, rule));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_media_type_is_kept_as_sent_and_curls_default_is_none() {
        let of = |value: &str| media_type(&headers(&[(CONTENT_TYPE, value)])).unwrap();
        assert_eq!(of("text/plain; charset=utf-8"), "text/plain; charset=utf-8");
        assert_eq!(of("image/svg+xml"), "image/svg+xml");
        assert_eq!(of(CURL_DEFAULT), OCTET_STREAM);
        assert_eq!(of("Application/X-WWW-Form-URLencoded"), OCTET_STREAM);
        assert_eq!(of(""), OCTET_STREAM);
        assert_eq!(media_type(&HeaderMap::new()).unwrap(), OCTET_STREAM);
    }

    #[test]
    fn what_is_no_media_type_is_refused() {
        let long = format!("text/{}", "x".repeat(MAX_MEDIA_TYPE_BYTES));
        for bad in [
            "text",
            "/",
            "text/",
            "a b/c",
            "text/plain, text/html",
            "é/x",
            &long,
        ] {
            let mut fields = HeaderMap::new();
            let value = axum::http::HeaderValue::from_bytes(bad.as_bytes()).unwrap();
            fields.insert(CONTENT_TYPE, value);
            let problem = media_type(&fields).unwrap_err();
            assert_eq!(problem.code(), ErrorCode::InvalidHeader, "{bad}");
        }
        let two = headers(&[(CONTENT_TYPE, "text/plain"), (CONTENT_TYPE, "text/html")]);
        assert!(media_type(&two).is_err());
    }

    #[test]
    fn digests_of_both_fields_must_agree() {
        let a = Sha256Digest::of(b"a").to_digest_field();
        let b = Sha256Digest::of(b"b").to_digest_field();
        let ask = |fields: &[(HeaderName, &str)]| stated_digest(&headers(fields));
        assert_eq!(ask(&[]).unwrap(), None);
        let want = Some(Sha256Digest::of(b"a"));
        assert_eq!(ask(&[(REPR_DIGEST, &a)]).unwrap(), want);
        assert_eq!(ask(&[(CONTENT_DIGEST, &a)]).unwrap(), want);
        assert_eq!(
            ask(&[(REPR_DIGEST, &a), (CONTENT_DIGEST, &a)]).unwrap(),
            want
        );
        for (one, other) in [(REPR_DIGEST, CONTENT_DIGEST), (REPR_DIGEST, REPR_DIGEST)] {
            assert!(ask(&[(one, &a), (other, &b)]).is_err());
        }
        for bad in ["", "sha-256", "sha-256=abc", "sha-256=:abc:", "sha256:00"] {
            assert!(ask(&[(REPR_DIGEST, bad)]).is_err(), "{bad}");
        }
    }

    #[test]
    fn codings_ranges_and_odd_lengths_are_refused() {
        let check = |name, value| refuse_encoded_or_partial(&headers(&[(name, value)]));
        assert!(check(CONTENT_ENCODING, "Identity").is_ok());
        assert!(check(CONTENT_ENCODING, "gzip").is_err());
        assert!(check(CONTENT_RANGE, "bytes 0-1/5").is_err());
        let length = |value| stated_length(&headers(&[(CONTENT_LENGTH, value)]));
        assert_eq!(length("17").unwrap(), Some(17));
        for bad in ["-1", "+1", "1x", "99999999999999999999"] {
            assert!(length(bad).is_err(), "{bad}");
        }
    }
}
