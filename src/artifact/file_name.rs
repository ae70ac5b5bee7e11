//! A caller's suggested file name as one safe path segment, for `get -o DIR` (never for a key).

use crate::digest::Sha256Digest;
use crate::limits::MAX_FILE_NAME_BYTES;

/// Stands before the digest of a name that was cut. No encoding holds two tildes in a row, so a cut name
/// never equals one that was not.
const CUT_MARK: &str = "~~";
const DIGEST_CHARS: usize = 12;

/// Encodes `name` as one segment: letters, digits, `.`, `_` and `-` stay, everything else becomes `~` and
/// four hex digits per UTF-16 unit; empty is `~`, and `.` and `..` are encoded whole. Two names never
/// share a segment, but for those over 200 bytes, which are cut and end in 12 hex digits of the encoded
/// name's SHA-256.
pub fn encode_file_name(name: &str) -> String {
    let encoded = encode(name);
    if encoded.len() <= MAX_FILE_NAME_BYTES {
        return encoded;
    }
    let digest = Sha256Digest::of(encoded.as_bytes()).to_hex();
    let room = MAX_FILE_NAME_BYTES - CUT_MARK.len() - DIGEST_CHARS;
    let mut cut = &encoded[..room];
    // Half an escape would be readable as something else.
    if let Some(at) = cut.rfind('~')
        && cut.len() - at < ESCAPE_CHARS
    {
        cut = &cut[..at];
    }
    format!("{cut}{CUT_MARK}{}", &digest[..DIGEST_CHARS])
}

/// `~` and four digits.
const ESCAPE_CHARS: usize = 5;

fn encode(name: &str) -> String {
    if name.is_empty() {
        return "~".to_owned();
    }
    let is_dots = matches!(name, "." | "..");
    let mut encoded = String::with_capacity(name.len());
    for character in name.chars() {
        let is_safe = character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
        if is_safe && !is_dots {
            encoded.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            encoded.push_str(&format!("~{unit:04X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(segment: &str) -> Option<String> {
        if segment == "~" {
            return Some(String::new());
        }
        let mut units = Vec::new();
        let mut rest = segment;
        while let Some(first) = rest.chars().next() {
            if first == '~' {
                units.push(u16::from_str_radix(rest.get(1..5)?, 16).ok()?);
                rest = &rest[5..];
            } else {
                units.push(u16::try_from(u32::from(first)).ok()?);
                rest = &rest[1..];
            }
        }
        String::from_utf16(&units).ok()
    }

    #[test]
    fn names_become_one_segment() {
        for (name, segment) in [
            ("report 7.txt", "report~00207.txt"),
            ("../../root", "..~002F..~002Froot"),
            ("~tilde", "~007Etilde"),
            ("", "~"),
            (".", "~002E"),
            ("..", "~002E~002E"),
            ("...", "..."),
            ("🙂", "~D83D~DE42"),
            ("a\0b", "a~0000b"),
        ] {
            assert_eq!(encode_file_name(name), segment);
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let names = [
            "x".repeat(201),
            "x".repeat(202),
            "界".repeat(5_000),
            format!("{}界", "x".repeat(184)),
        ];
        let segments = names.each_ref().map(|name| encode_file_name(name));
        for (index, segment) in segments.iter().enumerate() {
            assert!(segment.len() <= MAX_FILE_NAME_BYTES, "{segment}");
            assert!(!segments[..index].contains(segment));
        }
        assert_eq!(encode_file_name(&"x".repeat(200)), "x".repeat(200));
    }

    proptest! {
        #[test]
        fn encoding_is_one_to_one_and_safe(name in ".{0,30}") {
            let segment = encode(&name);
            prop_assert_eq!(decode(&segment), Some(name));
            prop_assert!(!segment.contains(CUT_MARK) && !segment.is_empty());
            let is_safe = |c: char| c.is_ascii_alphanumeric() || "._-~".contains(c);
            prop_assert!(segment.chars().all(is_safe) && segment != "." && segment != "..");
        }
    }
}
