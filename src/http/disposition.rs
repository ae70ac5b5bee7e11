//! `Content-Disposition` of artifact bytes: always a download, under a name that is safe to write.

use std::fmt::Write as _;

use axum::http::HeaderValue;

use crate::limits::MAX_FILE_NAME_BYTES;

/// Returns `attachment`, with the caller's file name where there is a usable one (RFC 6266).
pub(crate) fn attachment(name: Option<&str>) -> HeaderValue {
    let bare = HeaderValue::from_static("attachment");
    let Some(name) = name.and_then(safe_name) else {
        return bare;
    };
    let mut field = format!("attachment; filename=\"{}\"", ascii(&name));
    if !name.is_ascii() {
        field.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
                field.push(char::from(byte));
            } else {
                write!(field, "%{byte:02X}").expect("writing to a string does not fail");
            }
        }
    }
    HeaderValue::try_from(field).unwrap_or(bare)
}

/// Makes one visible, relative path segment of `name`; `None` when nothing of it is left.
fn safe_name(name: &str) -> Option<String> {
    let replaced: String = name
        .chars()
        .map(|c| match c {
            '/' | '\\' | ':' | '"' => '_',
            c if c.is_control() || is_direction_mark(c) => '_',
            c => c,
        })
        .collect();
    // A leading dot hides the file, and `..` leaves the directory.
    let visible = replaced.trim_matches([' ', '.']);
    let mut end = visible.len().min(MAX_FILE_NAME_BYTES);
    while !visible.is_char_boundary(end) {
        end -= 1;
    }
    let cut = visible[..end].trim_end_matches([' ', '.']);
    (!cut.is_empty()).then(|| cut.to_owned())
}

/// Marks that turn the reading direction make `exe.txt` of `txt.exe`.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn ascii(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii() { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(name: &str) -> String {
        attachment(Some(name)).to_str().unwrap().to_owned()
    }

    #[test]
    fn names_become_one_visible_segment() {
        for (name, field) in [
            ("grep.txt", "attachment; filename=\"grep.txt\""),
            ("a b.log", "attachment; filename=\"a b.log\""),
            (
                "../../etc/passwd",
                "attachment; filename=\"_.._etc_passwd\"",
            ),
            ("a\"; x=\"b", "attachment; filename=\"a_; x=_b\""),
            (
                "a\r\nSet-Cookie: x",
                "attachment; filename=\"a__Set-Cookie_ x\"",
            ),
            (
                "żó.txt",
                "attachment; filename=\"__.txt\"; filename*=UTF-8''%C5%BC%C3%B3.txt",
            ),
            ("a\u{202e}txt.exe", "attachment; filename=\"a_txt.exe\""),
            (".bashrc", "attachment; filename=\"bashrc\""),
            ("", "attachment"),
            ("..", "attachment"),
        ] {
            assert_eq!(of(name), field, "{name:?}");
        }
        assert_eq!(attachment(None), "attachment");
        assert!(of(&"x".repeat(5_000)).len() < 300);
    }

    proptest! {
        #[test]
        fn any_name_gives_a_header_of_visible_ascii(name in any::<String>()) {
            let field = of(&name);
            prop_assert!(field.bytes().all(|b| (b' '..=b'~').contains(&b)), "{}", field);
            prop_assert!(!field.contains(['/', '\\']));
        }
    }
}
