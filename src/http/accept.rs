//! Which of two forms a caller wants: JSON, or the bare lines.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Returns whether `Accept` prefers `text/plain` to `application/json`. Without a preference (no
/// header, `*/*` as curl sends it) the form is JSON.
pub(crate) fn prefers_text(headers: &HeaderMap) -> bool {
    quality(headers, "text", "plain") > quality(headers, "application", "json")
}

/// The weight, in thousandths, that the most specific matching range gives the type.
fn quality(headers: &HeaderMap, kind: &str, subtype: &str) -> u32 {
    let values = headers.get_all(ACCEPT).iter();
    let ranges = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let matching = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (range_kind, range_subtype) = parts.next()?.split_once('/')?;
        let is = |range: &str, name: &str| range.eq_ignore_ascii_case(name);
        let specificity = match (range_kind, range_subtype) {
            ("*", "*") => 0,
            (range_kind, "*") if is(range_kind, kind) => 1,
            (range_kind, range_subtype) if is(range_kind, kind) && is(range_subtype, subtype) => 2,
            _ => return None,
        };
        Some((specificity, weight(parts)))
    });
    matching.max().map_or(0, |(_, weight)| weight)
}

fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u32 {
    let stated = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    match stated.and_then(|value| value.parse::<f64>().ok()) {
        // In 0 to 1 the product is a small whole number.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1000 before"
        )]
        Some(quality) => (quality * 1_000.0).clamp(0.0, 1_000.0) as u32,
        None => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sent_only_to_who_prefers_it() {
        for (accept, is_text) in [
            ("text/plain", true),
            ("Text/Plain; charset=utf-8", true),
            ("text/*", true),
            ("text/plain, */*;q=0.1", true),
            ("application/json;q=0.5, text/plain", true),
            ("*/*", false),
            ("", false),
            ("application/json", false),
            ("text/plain, application/json", false),
            ("text/plain;q=0.5, */*", false),
            ("text/plain;q=0", false),
            ("image/png", false),
            ("text/plain;q=x", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(prefers_text(&headers), is_text, "{accept}");
        }
        assert!(!prefers_text(&HeaderMap::new()));
    }
}
