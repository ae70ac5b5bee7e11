//! Keys as people can tell them apart: the class, and the end of each word.

use spillbox::store::keys::KeySpace;

use crate::request::Request;

/// What a request is about.
pub(crate) fn short(keys: &KeySpace, request: &Request) -> String {
    match request {
        Request::List(list) => {
            let after = list.start_after.as_ref();
            let after = after.map_or(String::new(), |after| {
                format!(" after {}", short_key(keys, after))
            });
            format!("{}{after}", short_key(keys, &list.prefix))
        }
        Request::ListVersions(prefix, _) => short_key(keys, prefix),
        other => other
            .key()
            .map_or(String::new(), |key| short_key(keys, key.as_str())),
    }
}

/// A key, or a prefix of keys.
pub(crate) fn short_key(keys: &KeySpace, key: &str) -> String {
    let class = keys.class_of(key).as_str();
    let rest = key
        .split('/')
        .skip(if key.starts_with("v1/t/") { 4 } else { 2 });
    let words = rest.map(|word| {
        let (word, suffix) = word
            .split_once('.')
            .map_or((word, None), |(w, s)| (w, Some(s)));
        let word = match word.len() {
            // A journal's numbers.
            20 => word.trim_start_matches('0'),
            ..7 => word,
            len => &word[len - 6..],
        };
        let word = if word.is_empty() { "0" } else { word };
        suffix.map_or(word.to_owned(), |suffix| format!("{word}.{suffix}"))
    });
    format!("{class} {}", words.collect::<Vec<_>>().join("/"))
}
