//! The text of `Authorization: Bearer …` (RFC 6750 §2.1), read strictly.

use std::fmt;

use crate::auth::grant::SESSION_TOKEN_PREFIX;
use crate::digest::Sha256Digest;
use crate::limits::MAX_TOKEN_BYTES;

/// What a request says of itself. Holds the text of a sealed token until it is opened, of any other one
/// the digest.
#[derive(Clone, PartialEq, Eq)]
pub enum PresentedToken {
    /// No bearer credential: no header, or one of another scheme.
    Nothing,
    /// A bearer credential that no token can be: several headers, a wrong alphabet, too long.
    Malformed,
    /// A well-formed token, by its SHA-256.
    Token(Sha256Digest),
    /// A token that the service may have sealed itself.
    Sealed(String),
}

impl fmt::Debug for PresentedToken {
    /// Not even the digest: it stands in the configuration and tells whose token was tried.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Malformed => "Malformed",
            Self::Token(_) | Self::Sealed(_) => "Token(…)",
        })
    }
}

impl PresentedToken {
    /// Reads the values of all `Authorization` headers of a request.
    ///
    /// The scheme's case does not matter, one or more spaces follow it, and the token is RFC 6750's
    /// `b64token`. Two headers are no choice that we make for the sender.
    pub fn of_headers<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter();
        let Some(value) = values.next() else {
            return Self::Nothing;
        };
        if values.next().is_some() {
            return Self::Malformed;
        }
        let scheme_end = value.iter().position(|b| *b == b' ');
        let (scheme, rest) = value.split_at(scheme_end.unwrap_or(value.len()));
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Self::Nothing;
        }
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        let token = &rest[spaces..];
        match std::str::from_utf8(token) {
            Ok(text) if is_token_text(token) => {
                if text.starts_with(SESSION_TOKEN_PREFIX) {
                    Self::Sealed(text.to_owned())
                } else {
                    Self::Token(Sha256Digest::of(token))
                }
            }
            Ok(_) | Err(_) => Self::Malformed,
        }
    }
}

/// Returns whether `text` can stand behind `Bearer`: 1 to 512 bytes of `b64token`, that is
/// `[A-Za-z0-9._~+/-]` with `=` at the end only.
pub fn is_token_text(text: &[u8]) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let letters = &text[..text.len() - padding];
    !letters.is_empty() && text.len() <= MAX_TOKEN_BYTES && letters.iter().copied().all(is_letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn of(values: &[&str]) -> PresentedToken {
        PresentedToken::of_headers(values.iter().map(|value| value.as_bytes()))
    }

    #[rstest]
    #[case::usual("Bearer abc")]
    #[case::lower("bearer abc")]
    #[case::upper("BEARER abc")]
    #[case::spaces("Bearer   abc")]
    fn one_bearer_header_presents_its_token(#[case] value: &str) {
        let token = PresentedToken::Token(Sha256Digest::of(b"abc"));
        assert!(of(&[value]) == token, "{value}");
    }

    #[rstest]
    #[case::basic("Basic dXNlcjpwdw==")]
    #[case::bare_token("abc")]
    #[case::empty("")]
    #[case::no_space("Bearerabc")]
    #[case::leading_space(" Bearer abc")]
    #[case::tab("Bearer\tabc")]
    #[case::longer_scheme("BearerX abc")]
    fn another_scheme_presents_nothing(#[case] value: &str) {
        assert!(of(&[value]) == PresentedToken::Nothing, "{value}");
    }

    #[rstest]
    #[case::no_token(&["Bearer"])]
    #[case::only_spaces(&["Bearer  "])]
    #[case::two_words(&["Bearer abc def"])]
    #[case::trailing_space(&["Bearer abc "])]
    #[case::list(&["Bearer abc,def"])]
    #[case::quoted(&["Bearer \"abc\""])]
    #[case::padding_alone(&["Bearer =="])]
    #[case::padding_inside(&["Bearer a=b"])]
    #[case::not_ascii(&["Bearer ab\u{e9}"])]
    #[case::two_headers(&["Bearer abc", "Bearer abc"])]
    #[case::two_schemes(&["Basic abc", "Bearer abc"])]
    fn what_no_token_can_be_is_malformed(#[case] values: &[&str]) {
        assert!(of(values) == PresentedToken::Malformed, "{values:?}");
    }

    #[test]
    fn the_length_is_bounded() {
        assert!(is_token_text(&[b'x'; MAX_TOKEN_BYTES]));
        assert!(!is_token_text(&[b'x'; MAX_TOKEN_BYTES + 1]));
        assert!(is_token_text(b"a-._~+/9=="));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_show_themselves(value in proptest::collection::vec(any::<u8>(), 0..64)) {
            let presented = PresentedToken::of_headers([value.as_slice()]);
            let shown = format!("{presented:?}");
            prop_assert!(["Nothing", "Malformed", "Token(…)"].contains(&shown.as_str()));
        }
    }
}
