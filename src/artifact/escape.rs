//! Shows bytes inside our own text without letting them pass for it.
//!
//! * Every line of ours begins with [`SIGIL`]; wherever body text has those characters, in any case, a
//!   backslash is put behind their bracket (`[\spillbox`). So no line of a body can look like a notice,
//!   a gap marker or a closing line, wherever it stands. The tags between which the message forms of
//!   some profiles stand are escaped likewise (`<\persisted-output>`), in every form: one escaping, so
//!   that no text is safe under one profile and forged under another.
//! * Control characters but LF and TAB, which could move a terminal's cursor or hide text, are shown as
//!   their pictures (ESC as `␛`, CR as `␍`), one visible character each; C1 controls and the
//!   characters that reorder text as `\u{85}`. Everything else stays as it is.
//! * What is not UTF-8 is shown as U+FFFD.
//!
//! Escaping never makes text shorter, and works character by character, so that a cut between two
//! characters of the body is a cut between two escapes.

/// How every line of ours begins.
pub const SIGIL: &str = "[spillbox]";

/// What is escaped in body text: the sigil without its closing bracket.
const MARK: &str = "[spillbox";

/// The tags of the message forms that stand between tags, escaped in the same way.
const TAGS: [&str; 2] = ["<persisted-output", "</persisted-output"];

/// Bytes behind a character that decide how it is shown.
pub const LOOKAHEAD_BYTES: usize = TAGS[1].len();

/// Bytes as they are shown, and the cuts that are possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The escaped text.
    pub text: String,
    /// For each character border of the body: its offset in the bytes and in `text`; ascending, the
    /// first is `(0, 0)`, the last are the two lengths.
    pub borders: Vec<(usize, usize)>,
}

impl Shown {
    /// Escapes `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let mut shown = Self {
            text: String::with_capacity(bytes.len()),
            borders: vec![(0, 0)],
        };
        let mut raw = 0;
        for chunk in bytes.utf8_chunks() {
            let valid = chunk.valid();
            for (at, character) in valid.char_indices() {
                raw += character.len_utf8();
                shown.push(character, &valid.as_bytes()[at..]);
                shown.borders.push((raw, shown.text.len()));
            }
            if !chunk.invalid().is_empty() {
                raw += chunk.invalid().len();
                shown.text.push(char::REPLACEMENT_CHARACTER);
                shown.borders.push((raw, shown.text.len()));
            }
        }
        shown
    }

    fn push(&mut self, character: char, from_here: &[u8]) {
        match character {
            '\n' | '\t' => self.text.push(character),
            '[' | '<' => {
                self.text.push(character);
                if begins_mark(from_here) {
                    self.text.push('\\');
                }
            }
            '\0'..='\u{1f}' => self.text.push(picture(0x2400 + u32::from(character))),
            '\u{7f}' => self.text.push(picture(0x2421)),
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                self.text.extend(character.escape_unicode());
            }
            _ => self.text.push(character),
        }
    }
}

fn begins_mark(text: &[u8]) -> bool {
    let begins = |mark: &str| {
        let start = text.get(..mark.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
    };
    begins(MARK) || TAGS.iter().any(|tag| begins(tag))
}

fn picture(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Escapes a field of the notice: as body text, and on one line.
pub fn escape_field(text: &str) -> String {
    Shown::of(text.as_bytes()).text.replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_become_visible_and_text_stays() {
        assert_eq!(
            Shown::of("a\u{1b}[31m\r\n\tb\0\u{7f}\u{85}\u{202e}é界🙂\u{2028}".as_bytes()).text,
            "a␛[31m␍\n\tb␀␡\\u{85}\\u{202e}é界🙂\u{2028}"
        );
        assert_eq!(Shown::of(b"A\xff\xfeB").text, "A\u{fffd}\u{fffd}B");
    }

    #[test]
    fn nothing_in_a_body_can_begin_like_a_line_of_ours() {
        assert_eq!(
            Shown::of(b"[spillbox] x\n [SpillBox] [spill").text,
            "[\\spillbox] x\n [\\SpillBox] [spill"
        );
        assert_eq!(escape_field("a\nb\t[spillbox]"), "a b [\\spillbox]");
        assert_eq!(
            Shown::of(b"<persisted-output></Persisted-Output> <persisted").text,
            "<\\persisted-output><\\/Persisted-Output> <persisted"
        );
    }

    proptest! {
        #[test]
        fn escaping_never_shortens_and_leaves_no_mark(
            parts in proptest::collection::vec(prop_oneof![
                any::<char>().prop_map(|c| c.to_string().into_bytes()),
                Just(b"[spillbox]".to_vec()),
                Just(b"[spillBOX".to_vec()),
                Just(b"\r".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..4),
            ], 0..20),
        ) {
            let bytes = parts.concat();
            let shown = Shown::of(&bytes);
            prop_assert_eq!(shown.borders.last(), Some(&(bytes.len(), shown.text.len())));
            let is_bad = |c: char| c.is_control() && c != '\n' && c != '\t';
            prop_assert!(!shown.text.contains(is_bad));
            prop_assert!(!shown.text.to_ascii_lowercase().contains(MARK));
            for pair in shown.borders.windows(2) {
                let (raw, text) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
                prop_assert!(raw > 0 && text >= raw);
                prop_assert!(shown.text.is_char_boundary(pair[1].1));
            }
        }
    }
}
