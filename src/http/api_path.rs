//! Paths and queries of the API, percent-encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ids::{ArtifactRef, SessionId};

/// Everything but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiPath(String);

impl ApiPath {
    /// The artifacts of a session.
    pub fn artifacts(session: &SessionId) -> Self {
        let session = utf8_percent_encode(session.as_str(), RESERVED);
        Self(format!("/v1/sessions/{session}/artifacts"))
    }

    /// The results of a session.
    pub fn results(session: &SessionId) -> Self {
        let session = utf8_percent_encode(session.as_str(), RESERVED);
        Self(format!("/v1/sessions/{session}/results"))
    }

    /// What was read back of a session.
    pub fn usage(session: &SessionId) -> Self {
        let session = utf8_percent_encode(session.as_str(), RESERVED);
        Self(format!("/v1/sessions/{session}/usage"))
    }

    /// The journal of a session, or with `below` something under it, as `/verify`.
    pub fn journal(session: &SessionId, below: &str) -> Self {
        let session = utf8_percent_encode(session.as_str(), RESERVED);
        Self(format!("/v1/sessions/{session}/journal{below}"))
    }

    /// One artifact, or with `below` something under it, as `/lines`.
    pub fn artifact(artifact: &ArtifactRef, below: &str) -> Self {
        Self(format!("/a/{artifact}{below}"))
    }

    /// Takes a path of [`ApiPath::artifacts`] that was kept as text; `None` for any other.
    pub fn kept(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let (path, _) = text.split_once('?').unwrap_or((text, ""));
        let session = path
            .strip_prefix("/v1/sessions/")?
            .strip_suffix("/artifacts")?;
        (is_plain && !session.contains('/')).then(|| Self(text.to_owned()))
    }

    /// Adds a parameter where there is a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let mark = if self.0.contains('?') { '&' } else { '?' };
            let value = value.to_string();
            let value = utf8_percent_encode(&value, RESERVED);
            self.0.push_str(&format!("{mark}{name}={value}"));
        }
        self
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_values_are_data() {
        let session = "a/b ?é+".parse().unwrap();
        let path = ApiPath::artifacts(&session)
            .with("tool", Some("x&y=1"))
            .with("label", None::<&str>)
            .with("means", Some(""));
        assert_eq!(
            path.as_str(),
            "/v1/sessions/a%2Fb%20%3F%C3%A9%2B/artifacts?tool=x%26y%3D1&means="
        );
        assert_eq!(ApiPath::kept(path.as_str()), Some(path));
    }

    #[test]
    fn only_a_save_is_taken_from_text() {
        for bad in [
            "",
            "http://h/v1/sessions/s/artifacts",
            "/v1/sessions/s/results?tool=x",
            "/v1/sessions/s/../t/artifacts",
            "/v1/sessions/s/artifacts?a=b c",
            "/v1/gc/plans",
        ] {
            assert_eq!(ApiPath::kept(bad), None, "{bad}");
        }
    }
}
